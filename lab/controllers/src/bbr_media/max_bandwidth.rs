//! `max_bw`: the highest delivery rate of the last two cycles [BBR3 §5.5].

use weir::units::Bitrate;

/// A maximum over this cycle and the one before.
#[derive(Clone, Debug)]
pub(super) struct MaxBandwidth {
    previous: Bitrate,
    current: Bitrate,
    /// Whether this cycle has a sample that was not limited by the source.
    sampled: bool,
}

impl MaxBandwidth {
    pub(super) fn new(start: Bitrate) -> Self {
        Self { previous: Bitrate::ZERO, current: start, sampled: false }
    }

    /// Takes the delivery rate of a round. One that the source limited counts only if it is higher.
    pub(super) fn update(&mut self, rate: Bitrate, source_limited: bool) {
        if !source_limited && !self.sampled {
            (self.sampled, self.current) = (true, rate);
        }
        if !source_limited || rate >= self.value() {
            self.current = self.current.max(rate);
        }
    }

    /// A cycle has ended. One in which the source limited every round forgets nothing.
    pub(super) fn advance(&mut self) {
        if self.sampled {
            (self.previous, self.sampled) = (self.current, false);
        }
    }

    /// Sets the rate from outside: no sample says otherwise.
    pub(super) fn set(&mut self, rate: Bitrate) {
        *self = Self::new(rate);
    }

    pub(super) fn value(&self) -> Bitrate {
        self.previous.max(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    // [BBR3 §5.5]
    #[test]
    fn a_maximum_lasts_for_its_cycle_and_the_next_one() {
        let mut max = MaxBandwidth::new(kbps(100));
        max.update(kbps(900), false);
        max.advance();
        max.update(kbps(500), false);
        assert_eq!(max.value(), kbps(900));
        max.advance();
        assert_eq!(max.value(), kbps(500));
    }

    // [BBR3 §5.5]
    #[test]
    fn rounds_that_the_source_limits_raise_it_and_do_not_lower_it() {
        let mut max = MaxBandwidth::new(kbps(100));
        max.update(kbps(900), false);
        for _ in 0..5 {
            max.advance();
            max.update(kbps(200), true);
        }
        assert_eq!(max.value(), kbps(900));
        max.update(kbps(1_000), true);
        assert_eq!(max.value(), kbps(1_000));
    }
}
