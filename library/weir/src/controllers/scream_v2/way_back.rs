//! The round trip without the queue on the way there, for which the window holds (SCREAMV2-D12).
//!
//! The rate is the window over the round trip. A way back that becomes longer, such as one that an
//! upload fills, is no sign of congestion on the way there. But the same window over ten times the
//! round trip is a tenth of the rate. So the window is that of the same rate.
//!
//! Two times tell of the way back: the round trip less the queuing delay, which is wrong with the
//! base delay, and the time since the newest arrival, which is wrong when the receiver's clock
//! steps. What both tell counts.

use crate::units::{TimeDelta, Timestamp};

/// A way that differs by less is the same: reports wait for as long.
const SAME: TimeDelta = TimeDelta::from_millis(50);
/// Share of a new value in a period: four reports, each with the share of the smoothed round trip.
const GAIN: f64 = 0.4;
/// The shortest time of the last two periods counts: jitter is no longer way, nor is what the first
/// part of a report waited for the last one.
const PERIOD: TimeDelta = TimeDelta::from_millis(200);

/// The shortest round trip by which the window is scaled.
const LEAST: TimeDelta = TimeDelta::from_millis(1);

/// What a report says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Round trip of the newest packet without its queue.
    pub path: TimeDelta,
    /// Time since its arrival.
    pub back: TimeDelta,
}

impl Sample {
    fn shorter(self, other: Self) -> Self {
        Self { path: self.path.min(other.path), back: self.back.min(other.back) }
    }
}

/// The round trip without the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayBack {
    /// For which the window holds.
    held: Option<Sample>,
    shortest: [Option<Sample>; 2],
    period_begin: Timestamp,
}

impl WayBack {
    /// A report came, while the queue was this long in the mean. Returns the factor of the window.
    pub fn on_report(&mut self, now: Timestamp, sample: Sample, queue: TimeDelta) -> f64 {
        let Some(shortest) = self.finish_period(now, sample) else { return 1.0 };
        let held = self.held.get_or_insert(shortest);
        let (path, back) = (shortest.path - held.path, shortest.back - held.back);
        let change = both(path, back);
        if change == TimeDelta::ZERO {
            if path.abs().max(back.abs()) > SAME * 2 {
                // Another base delay, or another clock.
                *held = shortest;
            }
            return 1.0;
        }
        // A way that became shorter is known at once.
        let change = if change > TimeDelta::ZERO { change * GAIN } else { change };
        let before = (queue + held.path).max(LEAST);
        (held.path, held.back) = (held.path + change, held.back + change);
        (before + change).max(LEAST) / before
    }

    /// The shortest times, when a period is over. All parts of a report are in the same one.
    fn finish_period(&mut self, now: Timestamp, next: Sample) -> Option<Sample> {
        let is_over = now - self.period_begin >= PERIOD;
        let shortest = self.shortest.into_iter().flatten().reduce(Sample::shorter);
        if is_over {
            self.shortest = [None, self.shortest[0]];
            self.period_begin = now;
        }
        self.shortest[0] = Some(self.shortest[0].unwrap_or(next).shorter(next));
        if is_over { shortest } else { None }
    }

    /// The window holds for the round trip of the next report.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// The change that both times tell; zero if it is none.
fn both(path: TimeDelta, back: TimeDelta) -> TimeDelta {
    let (is_longer, is_shorter) = (path.min(back) > SAME, path.max(back) < -SAME);
    match (is_longer, is_shorter) {
        (true, _) => path.min(back),
        (_, true) => path.max(back),
        (false, false) => TimeDelta::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// The product of the factors over two seconds of reports each 50 ms. The mean queue is 20 ms.
    fn factor(way: &mut WayBack, from_ms: i64, samples: &[(i64, i64)]) -> f64 {
        let mut factor = 1.0;
        for report in 0..40 {
            let (path, back) = samples[report as usize % samples.len()];
            let sample = Sample { path: ms(path), back: ms(back) };
            factor *= way.on_report(Timestamp::from_millis(from_ms + 50 * report), sample, ms(20));
        }
        factor
    }

    // SCREAMV2-D12
    #[test]
    fn the_window_follows_a_way_back_of_a_second_there_and_back() {
        let mut way = WayBack::default();
        assert_eq!(factor(&mut way, 0, &[(60, 7_030)]), 1.0);
        let longer = factor(&mut way, 2_000, &[(980, 7_950)]);
        assert!((11.5..12.5).contains(&longer), "{longer}");
        let back = longer * factor(&mut way, 4_000, &[(60, 7_030)]);
        assert!((0.99..1.01).contains(&back), "{back}");
    }

    #[test]
    fn jitter_and_waits_of_up_to_50_ms_leave_the_window() {
        let mut way = WayBack::default();
        assert_eq!(factor(&mut way, 0, &[(60, 30), (260, 230)]), 1.0);
        assert_eq!(factor(&mut way, 2_000, &[(60, 30), (80, 50), (100, 70), (110, 80)]), 1.0);
    }

    #[test]
    fn parts_of_one_report_that_waited_for_the_last_one_leave_the_window() {
        let mut way = WayBack::default();
        for report in 0..20 {
            for waited in [1_540, 1_170, 800, 430, 0] {
                let sample = Sample { path: ms(140 + waited), back: ms(70 + waited) };
                let now = Timestamp::from_millis(1_800 * report);
                assert_eq!(way.on_report(now, sample, ms(0)), 1.0, "report {report}");
            }
        }
    }

    #[test]
    fn another_base_delay_or_clock_leaves_the_window() {
        let mut way = WayBack::default();
        assert_eq!(factor(&mut way, 0, &[(60, 30)]), 1.0);
        assert_eq!(factor(&mut way, 2_000, &[(360, 30)]), 1.0, "a base delay");
        assert_eq!(factor(&mut way, 4_000, &[(360, 3_600_030)]), 1.0, "a clock");
        let longer = factor(&mut way, 6_000, &[(740, 3_600_410)]);
        assert!((1.8..2.0).contains(&longer), "a way back of 380 ms more: {longer}");
    }
}
