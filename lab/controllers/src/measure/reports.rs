//! Round-trip times and the time between reports.

use super::{Extreme, INITIAL_RTT, RecentExtreme};
use weir::feedback::FeedbackReport;
use weir::units::{TimeDelta, Timestamp};

/// Gain of the smoothed values, as of TCP's round-trip time [RFC6298 §2].
const GAIN: f64 = 1.0 / 8.0;
/// Range of a round-trip time.
const RTT_MIN: TimeDelta = TimeDelta::from_millis(1);
const RTT_MAX: TimeDelta = TimeDelta::from_secs(10);
/// Longest time between two reports that counts. A pause of the source makes none.
const INTERVAL_MAX: TimeDelta = TimeDelta::from_millis(500);

/// Measures with each report that names a packet that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    min_rtt: RecentExtreme,
    smoothed_rtt: Option<TimeDelta>,
    /// Averaged time between two reports.
    interval: TimeDelta,
    last: Option<Timestamp>,
}

impl Default for Reports {
    fn default() -> Self {
        Self {
            min_rtt: RecentExtreme::new(Extreme::Lowest),
            smoothed_rtt: None,
            interval: TimeDelta::ZERO,
            last: None,
        }
    }
}

impl Reports {
    /// Takes a report; the minimum round-trip time is that of the last `window`. Returns the
    /// round-trip time, or `None` if no packet arrived.
    pub(crate) fn on_report(
        &mut self,
        now: Timestamp,
        window: TimeDelta,
        report: &FeedbackReport,
    ) -> Option<TimeDelta> {
        let rtt = report.rtt(now)?.clamp(RTT_MIN, RTT_MAX);
        self.min_rtt.push(now, window, rtt);
        let smoothed = self.smoothed_rtt.unwrap_or(rtt);
        self.smoothed_rtt = Some(smoothed + (rtt - smoothed) * GAIN);
        if let Some(last) = self.last {
            let interval = (now - last).min(INTERVAL_MAX);
            self.interval += (interval - self.interval) * GAIN;
        }
        self.last = Some(now);
        Some(rtt)
    }

    pub(crate) fn min_rtt(&self) -> TimeDelta {
        self.min_rtt.value().unwrap_or(INITIAL_RTT)
    }

    pub(crate) fn smoothed_rtt(&self) -> Option<TimeDelta> {
        self.smoothed_rtt
    }

    pub(crate) fn interval(&self) -> TimeDelta {
        self.interval
    }

    /// Forgets the minimum, to measure it anew.
    pub(crate) fn forget_min_rtt(&mut self) {
        self.min_rtt.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::PacketReport;
    use weir::units::DataSize;

    /// Reports a packet. Returns the least round-trip time of ten seconds in ms.
    fn feed(reports: &mut Reports, sent: i64, now: i64, arrived: bool) -> i64 {
        let packet = PacketReport::new(0, DataSize::from_bytes(100), Timestamp::from_millis(sent))
            .with_arrival_time(arrived.then_some(Timestamp::ZERO));
        let report = FeedbackReport::new(vec![packet]);
        reports.on_report(Timestamp::from_millis(now), TimeDelta::from_secs(10), &report);
        reports.min_rtt().as_millis()
    }

    #[test]
    fn the_minimum_is_of_a_window_and_no_arrivals_measure_nothing() {
        let mut reports = Reports::default();
        assert_eq!(feed(&mut reports, 0, 10, false), 200, "nothing is known");
        assert_eq!(feed(&mut reports, 0, 50, true), 50);
        assert_eq!(feed(&mut reports, 9_000, 9_080, true), 50);
        let least = feed(&mut reports, 10_000, 10_090, true);
        assert_eq!(least, 80, "the first is older than ten seconds");
    }
}
