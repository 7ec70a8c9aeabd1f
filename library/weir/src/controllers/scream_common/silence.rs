//! Silence: detects missing acknowledgements and allows a minimum send rate (SCREAM-D2,
//! SCREAMV2-D2).
//!
//! [SCREAM §7] and [SCREAMV2 §8] assume a minimum send rate without feedback, but give no rule for
//! it.

use super::RATE_PACE_MIN;
use crate::controllers::silence::{MISSED_REPORTS, ReportInterval};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Maximum time between two feedback packets: twice the interval of 400 ms at low bitrates
/// [SCREAM §4.2.2].
const MAX_FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(800);

/// A report is late this time and this many usual intervals after the last one. One lost report
/// must not stop the sender: a receiver that gets nothing reports nothing, and a window that is
/// closed stays so. So until [`MISSED_REPORTS`] intervals have passed, as much may be in flight as
/// leaves at the target meanwhile (SCREAM-D2, SCREAMV2-D2).
const LATE_AFTER: TimeDelta = TimeDelta::from_millis(25);
const LATE_REPORTS: f64 = 1.25;

/// Detects missing acknowledgements, and then grants the minimum send rate.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Silence {
    /// Start of the wait for an acknowledgement; `None` while nothing new is in flight.
    waiting_since: Option<Timestamp>,
    /// Bytes that may be sent regardless of the window; `None` while acknowledgements arrive.
    /// Negative after a packet that was larger than the allowance.
    allowance: Option<i64>,
    reports: ReportInterval,
    /// When the next report is late, and whether it is.
    late_at: Option<Timestamp>,
    is_late: bool,
}

impl Silence {
    pub fn on_packet_sent(&mut self, now: Timestamp, size: DataSize, rtt: TimeDelta) {
        self.reports.on_packet_sent(now);
        self.waiting_since.get_or_insert(now);
        if let Some(allowance) = &mut self.allowance {
            *allowance = allowance.saturating_sub_unsigned(size.as_bytes());
        }
        if self.late_at.is_none() {
            self.late_at = self.late_after(now + rtt);
        }
    }

    /// An acknowledgement arrived; `in_flight` bytes remain in flight.
    pub fn on_acknowledged(&mut self, now: Timestamp, in_flight: DataSize) {
        self.reports.on_report(now);
        self.allowance = None;
        self.is_late = false;
        let waits = in_flight > DataSize::ZERO;
        self.waiting_since = waits.then_some(now);
        self.late_at = if waits { self.late_after(now) } else { None };
    }

    /// The usual time between two acknowledgements; `None` before the second.
    pub fn report_interval(&self) -> Option<TimeDelta> {
        self.reports.usual()
    }

    /// When the next report is late, if one was due from this time on.
    fn late_after(&self, from: Timestamp) -> Option<Timestamp> {
        let usual = self.reports.usual()?;
        Some(from + LATE_AFTER + usual * LATE_REPORTS)
    }

    /// When the next report is late.
    pub fn late_at(&self) -> Option<Timestamp> {
        self.late_at.filter(|_| !self.is_late)
    }

    /// Must be called at that time.
    pub fn on_late(&mut self, now: Timestamp) {
        self.is_late |= self.late_at.is_some_and(|at| at <= now);
    }

    /// Must be called every `interval`. Returns true if an acknowledgement is overdue. It returns
    /// true again only after another packet was sent without acknowledgement.
    pub fn on_tick(&mut self, now: Timestamp, interval: TimeDelta, rtt: TimeDelta) -> bool {
        let patience = self.reports.patience(MAX_FEEDBACK_INTERVAL);
        let overdue = self.waiting_since.is_some_and(|s| now - s >= rtt + patience);
        if overdue {
            self.waiting_since = None;
            (self.late_at, self.is_late) = (None, false);
            self.allowance.get_or_insert(0);
        }
        if let Some(allowance) = &mut self.allowance {
            // An unused allowance is not saved; a negative one is carried over.
            let share = (RATE_PACE_MIN * interval).as_bytes();
            *allowance = (*allowance).min(0).saturating_add_unsigned(share);
        }
        overdue
    }

    /// Whether acknowledgements are missing.
    pub fn is_silent(&self) -> bool {
        self.allowance.is_some()
    }

    /// Bytes that may be sent although the window is closed, at this rate and round trip.
    pub fn allowance(&self, rate: Bitrate, rtt: TimeDelta, in_flight: DataSize) -> DataSize {
        if let Some(allowance) = self.allowance {
            return DataSize::from_bytes(u64::try_from(allowance).unwrap_or(0));
        }
        match self.reports.usual() {
            Some(usual) if self.is_late => {
                (rate * (rtt + usual * MISSED_REPORTS)).saturating_sub(in_flight)
            }
            _ => DataSize::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(200);
    const TICK: TimeDelta = TimeDelta::from_millis(200);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    // SCREAM-D2
    #[test]
    fn an_acknowledgement_is_overdue_after_a_round_trip_and_800_ms() {
        let mut silence = Silence::default();
        assert!(!silence.on_tick(at(0), TICK, RTT), "nothing was sent");
        silence.on_packet_sent(at(100), bytes(1_200), RTT);
        silence.on_packet_sent(at(900), bytes(1_200), RTT);
        assert!(!silence.on_tick(at(1_099), TICK, RTT));
        assert!(silence.on_tick(at(1_100), TICK, RTT));
        assert!(!silence.on_tick(at(9_000), TICK, RTT), "nothing was sent since");
        silence.on_packet_sent(at(9_000), bytes(1_200), RTT);
        assert!(silence.on_tick(at(10_000), TICK, RTT));
    }

    // SCREAM-D2
    #[test]
    fn a_closed_window_lets_50_kbps_out_in_silence() {
        let mut silence = Silence::default();
        silence.on_packet_sent(at(0), bytes(1_200), RTT);
        let mut sent = 0;
        for tick in 1..=100 {
            silence.on_tick(at(200 * tick), TICK, RTT);
            while silence.allowance(Bitrate::ZERO, RTT, bytes(0)) > DataSize::ZERO {
                silence.on_packet_sent(at(200 * tick), bytes(1_200), RTT);
                sent += 1_200;
            }
        }
        // Overdue at the fifth of 100 ticks, so 96 ticks of 1250 bytes. The last packet exceeds the
        // allowance.
        assert_eq!(sent, 120_000);
    }

    // SCREAM-D2
    #[test]
    fn an_acknowledgement_ends_the_silence_and_is_owed_while_bytes_fly() {
        let mut silence = Silence::default();
        silence.on_packet_sent(at(0), bytes(1_200), RTT);
        silence.on_tick(at(1_000), TICK, RTT);
        assert!(silence.is_silent());
        silence.on_acknowledged(at(1_050), bytes(12_000));
        assert!(!silence.is_silent());
        // A second report may take twice as long as the first one, and a round trip.
        assert!(!silence.on_tick(at(3_349), TICK, RTT));
        assert!(
            silence.on_tick(at(3_350), TICK, RTT),
            "the window may be full: nothing more is sent"
        );
        silence.on_acknowledged(at(3_400), DataSize::ZERO);
        assert!(!silence.on_tick(at(9_000), TICK, RTT));
    }

    // SCREAMV2-D2
    #[test]
    fn a_late_report_does_not_stop_the_sender_at_any_interval() {
        let rate = Bitrate::from_kbps(8_000);
        for interval in [5, 50, 400, 2_000] {
            let mut silence = Silence::default();
            for report in 0..40 {
                silence.on_packet_sent(at(report * interval), bytes(1_200), RTT);
                silence.on_acknowledged(at(report * interval), bytes(1_200));
            }
            let last = 39 * interval;
            let late = silence.late_at().unwrap();
            assert_eq!((late - at(last)).as_millis(), 25 + interval * 5 / 4, "{interval}");
            assert_eq!(silence.allowance(rate, RTT, bytes(0)), DataSize::ZERO);
            silence.on_late(late);
            let allowed = (200 + 4 * interval as u64) * 1_000;
            assert_eq!(silence.allowance(rate, RTT, bytes(0)), bytes(allowed));
            assert_eq!(silence.allowance(rate, RTT, bytes(allowed)), DataSize::ZERO);
            let patience = (4 * interval).max(800) + 200;
            assert!(!silence.on_tick(at(last + patience - 1), TICK, RTT), "{interval}");
            assert!(silence.on_tick(at(last + patience), TICK, RTT), "{interval}");
        }
    }
}
