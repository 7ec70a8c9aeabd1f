//! Round trips with losses: only several of them one after another mean congestion.
//!
//! Not in the draft; a choice of libwebrtc that keeps random loss from lowering the rate.

use super::reference_window::VIRTUAL_RTT;
use crate::units::{TimeDelta, Timestamp};

/// Round trips with loss until losses count, and without any until they do not count again.
const UNTIL_CONGESTED: f64 = 3.0;
const UNTIL_CLEAR: f64 = 2.0;
/// The level is a sum of thirds and halves: what rounding leaves below one counts as one.
const CONGESTED: f64 = 0.99;

/// A level between 0, no congestion, and 1.
#[derive(Clone, Debug, Default)]
pub(super) struct LossRoundTrips {
    level: f64,
    lost: bool,
    updated: Timestamp,
}

impl LossRoundTrips {
    pub fn on_report(&mut self, now: Timestamp, rtt: TimeDelta, lost: bool) {
        self.lost |= lost;
        if now - self.updated < rtt.max(VIRTUAL_RTT) {
            return;
        }
        self.updated = now;
        let step = if core::mem::take(&mut self.lost) {
            1.0 / UNTIL_CONGESTED
        } else {
            -1.0 / UNTIL_CLEAR
        };
        self.level = (self.level + step).clamp(0.0, 1.0);
    }

    pub fn is_congestion(&self) -> bool {
        self.level >= CONGESTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_round_trips_with_loss_mean_congestion_and_two_without_clear_it() {
        let mut losses = LossRoundTrips::default();
        let mut seen = alloc::vec::Vec::new();
        for (number, lost) in [true, true, true, false, true, true, false, false].iter().enumerate()
        {
            let now = Timestamp::from_millis(1_000 + 100 * number as i64);
            losses.on_report(now, TimeDelta::from_millis(100), *lost);
            seen.push(losses.is_congestion());
        }
        // One round trip without loss takes a half, which two with loss make good.
        assert_eq!(seen, [false, false, true, false, false, true, false, false]);
    }
}
