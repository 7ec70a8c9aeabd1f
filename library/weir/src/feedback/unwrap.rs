//! Unwraps counters that wrap on the wire. All such counters are unwrapped here.

/// Unwraps a counter of `BITS` bits: each value becomes the nearest candidate to the reference
/// point.
#[derive(Clone, Debug, Default)]
pub struct Unwrapper<const BITS: u32> {
    last: Option<i64>,
}

/// Unwrapper for RTP and transport-wide sequence numbers.
pub type SeqUnwrapper = Unwrapper<16>;

impl<const BITS: u32> Unwrapper<BITS> {
    /// How many values there are.
    pub(super) const PERIOD: i64 = 1 << BITS;

    /// The unwrapped value, which becomes the reference point. The first value is returned as it
    /// is. Bits above `BITS` are ignored. Of two equally near candidates, the later one is
    /// returned.
    pub fn unwrap(&mut self, value: u32) -> i64 {
        let unwrapped = self.peek(value);
        self.last = Some(unwrapped);
        unwrapped
    }

    /// Like [`Unwrapper::unwrap`], but keeps the reference point.
    pub fn peek(&self, value: u32) -> i64 {
        let value = i64::from(value) & (Self::PERIOD - 1);
        let Some(last) = self.last else { return value };
        // The reference of a host may be any number.
        let ahead = value.wrapping_sub(last).rem_euclid(Self::PERIOD);
        let forward = last.wrapping_add(ahead);
        if ahead <= Self::PERIOD / 2 { forward } else { forward.wrapping_sub(Self::PERIOD) }
    }

    /// The reference point: the last unwrapped value, if there is one.
    pub const fn last(&self) -> Option<i64> {
        self.last
    }

    /// Sets the reference point.
    pub fn set_last(&mut self, unwrapped: i64) {
        self.last = Some(unwrapped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_16_bit_values_is_at_most_half_a_period_apart() {
        for first in (0..=u16::MAX).step_by(257) {
            for second in 0..=u16::MAX {
                let mut unwrapper = SeqUnwrapper::default();
                let a = unwrapper.unwrap(first.into());
                let b = unwrapper.unwrap(second.into());
                assert_eq!(b & 0xFFFF, i64::from(second));
                assert!((-32_767..=32_768).contains(&(b - a)), "{first} {second}");
            }
        }
    }

    #[test]
    fn it_counts_on_over_the_wrap_and_back_for_a_late_value() {
        let mut unwrapper = SeqUnwrapper::default();
        let steps = [(65_534, 65_534), (1, 65_537), (65_535, 65_535), (2, 65_538)];
        for (wire, unwrapped) in steps {
            assert_eq!(unwrapper.unwrap(wire), unwrapped);
        }
    }

    #[test]
    fn a_24_bit_reference_time_wraps_at_its_own_period() {
        let mut unwrapper = Unwrapper::<24>::default();
        assert_eq!(unwrapper.unwrap(0xFF_FFFF), 0xFF_FFFF);
        assert_eq!(unwrapper.unwrap(0), 0x100_0000);
    }

    #[test]
    fn peeking_moves_nothing() {
        let mut unwrapper = SeqUnwrapper::default();
        unwrapper.unwrap(10);
        assert_eq!(unwrapper.peek(30_000), 30_000);
        assert_eq!(unwrapper.peek(40_000), 40_000 - 65_536);
    }
}
