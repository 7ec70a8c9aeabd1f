//! `loss_event_rate`: the share of round trips with lost packets [SCREAM §4.1.1.2] [SCREAMV2
//! §4.5.4].

use crate::units::{TimeDelta, Timestamp};

/// Gain of the average, per round trip (SCREAM-D6, SCREAMV2-D5).
const GAIN: f64 = 0.01;

/// Averages the share of round trips with loss.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct LossEventRate {
    round_trip_start: Timestamp,
    loss_in_round_trip: bool,
    rate: f64,
}

impl LossEventRate {
    /// Takes a feedback report; `lost` says whether it revealed a loss.
    pub fn on_report(&mut self, now: Timestamp, rtt: TimeDelta, lost: bool) {
        self.loss_in_round_trip |= lost;
        if now - self.round_trip_start >= rtt {
            // SCREAM-D6, SCREAMV2-D5: the specifications define the rate, but no filter for it.
            let sample = f64::from(u8::from(self.loss_in_round_trip));
            self.rate += GAIN * (sample - self.rate);
            self.loss_in_round_trip = false;
            self.round_trip_start = now;
        }
    }

    /// `loss_event_rate`, 0.0..=1.0.
    pub fn value(&self) -> f64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [SCREAM §4.1.1.2], SCREAM-D6
    #[test]
    fn the_loss_event_rate_counts_round_trips_not_packets() {
        let rtt = TimeDelta::from_millis(100);
        let mut events = LossEventRate::default();
        let mut report = |millis: i64, lost| {
            events.on_report(Timestamp::from_millis(1_000 + millis), rtt, lost);
            events.value()
        };
        assert_eq!(report(0, true), 0.01);
        assert_eq!([report(30, true), report(60, true)], [0.01; 2]);
        assert_eq!(report(100, false), 0.01 + 0.01 * (1.0 - 0.01));
    }
}
