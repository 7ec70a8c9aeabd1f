//! Averaged queuing delay, converted to a marking ratio as if the queue marked packets: virtual L4S
//! marking.
//!
//! Implements [SCREAMV2 §4.2.1.4].

use super::reference_window::VIRTUAL_RTT;
use crate::controllers::silence::INTERVAL_LEAST;
use crate::units::{TimeDelta, Timestamp};

// Parameters [SCREAMV2 §4.2.1.4].
/// `QDELAY_AVG_G`: gain while the delay rises. When the delay falls, the average follows at once.
const QDELAY_AVG_G: f64 = 1.0 / 4.0;
/// Share of the delay target at which virtual marking begins.
pub(super) const MARKING_START: f64 = 0.5;

/// `qdelay_avg`. It rises slowly, so a delay spike of the link layer does not count as congestion.
#[derive(Clone, Debug, Default)]
pub(super) struct AverageDelay {
    average: TimeDelta,
    /// The same before the newest report, of which the newest part counts.
    before: TimeDelta,
    updated: Timestamp,
}

impl AverageDelay {
    /// Takes the queuing delay of an acknowledgement. Returns whether the average was updated, at
    /// most once per `interval`. `wait` is how long nothing was acknowledged before: a delay that
    /// lasted so long is no spike.
    pub fn update(
        &mut self,
        now: Timestamp,
        interval: TimeDelta,
        wait: TimeDelta,
        delay: TimeDelta,
    ) -> bool {
        let is_part = wait > TimeDelta::ZERO && now - self.updated < INTERVAL_LEAST;
        if now - self.updated < interval && !is_part {
            return false;
        }
        if !is_part {
            self.before = self.average;
        }
        self.updated = now;
        let before = self.before;
        self.average = if delay < before {
            delay
        } else if wait > TimeDelta::ZERO {
            // SCREAMV2-D9
            let kept = libm::pow(1.0 - QDELAY_AVG_G, 1.0 + wait / VIRTUAL_RTT);
            before + (delay - before) * (1.0 - kept)
        } else {
            before + (delay - before) * QDELAY_AVG_G
        };
        true
    }

    /// SCREAMV2-D13: the delay was no queue.
    pub fn forget(&mut self) {
        (self.average, self.before) = (TimeDelta::ZERO, TimeDelta::ZERO);
    }

    /// The averaged queuing delay, `qdelay_avg`.
    pub fn value(&self) -> TimeDelta {
        self.average
    }

    /// `l4s_alpha_v`: zero up to half of the delay target, one at the delay target.
    pub fn virtual_alpha(&self, target: TimeDelta) -> f64 {
        let start = target * MARKING_START;
        ((self.average - start) / (target - start)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    // [SCREAMV2 §4.2.1.4]
    #[test]
    fn it_rises_by_a_quarter_of_the_way_and_falls_at_once() {
        let mut average = AverageDelay::default();
        let values = [(0, 40), (25, 40), (49, 99), (50, 5)].map(|(at, delay)| {
            average.update(Timestamp::from_millis(1_000 + at), ms(25), ms(0), ms(delay));
            average.value().as_micros()
        });
        assert_eq!(values, [10_000, 17_500, 17_500, 5_000]);
    }

    // [SCREAMV2 §4.2.1.4]
    #[test]
    fn virtual_marking_rises_from_half_the_target_to_the_target() {
        let alpha = |delay| {
            AverageDelay { average: ms(delay), ..AverageDelay::default() }.virtual_alpha(ms(60))
        };
        assert_eq!([0, 30, 45, 60, 600].map(alpha), [0.0, 0.0, 0.5, 1.0, 1.0]);
    }
}
