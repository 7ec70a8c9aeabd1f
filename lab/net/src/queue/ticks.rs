//! A periodic tick that is evaluated on demand, so that no timer is needed.

use weir::units::{TimeDelta, Timestamp};

#[derive(Clone, Debug)]
pub(crate) struct Ticks {
    interval: TimeDelta,
    next: Timestamp,
}

impl Ticks {
    pub(crate) fn new(interval: TimeDelta) -> Self {
        Self { interval, next: Timestamp::ZERO + interval }
    }

    /// Returns the next tick due by `now` and advances. Call it until it returns `None`.
    pub(crate) fn pass(&mut self, now: Timestamp) -> Option<Timestamp> {
        let tick = self.next;
        if tick > now {
            return None;
        }
        self.next += self.interval;
        Some(tick)
    }

    /// Skips all ticks due by `now`.
    pub(crate) fn skip(&mut self, now: Timestamp) {
        if self.next <= now {
            let passed = (now - self.next).as_nanos() / self.interval.as_nanos() + 1;
            self.next += self.interval * passed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_their_phase_whether_passed_or_skipped() {
        let ms = Timestamp::from_millis;
        let mut ticks = Ticks::new(TimeDelta::from_millis(15));
        assert_eq!(ticks.pass(ms(14)), None);
        assert_eq!((ticks.pass(ms(31)), ticks.pass(ms(31))), (Some(ms(15)), Some(ms(30))));
        assert_eq!(ticks.pass(ms(31)), None);
        ticks.skip(ms(90));
        assert_eq!(ticks.pass(ms(104)), None);
        assert_eq!(ticks.pass(ms(105)), Some(ms(105)));
        ticks.skip(ms(106));
        assert_eq!(ticks.pass(ms(120)), Some(ms(120)));
    }
}
