//! A set of whole numbers as ranges: packet numbers, or bytes of a stream.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges that do not touch, by their starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range. Returns whether any of it is new.
    pub(super) fn insert(&mut self, range: Range<u64>) -> bool {
        let Range { mut start, mut end } = range;
        if start >= end {
            return false;
        }
        if let Some((&before, &until)) = self.0.range(..=start).next_back() {
            if until >= end {
                return false;
            }
            if until >= start {
                start = before;
            }
        }
        while let Some((&next, &until)) = self.0.range(start..=end).next() {
            end = end.max(until);
            self.0.remove(&next);
        }
        self.0.insert(start, end);
        true
    }

    /// Removes the lowest range.
    pub(super) fn pop_first(&mut self) -> Option<Range<u64>> {
        self.0.pop_first().map(|(start, end)| start..end)
    }

    /// The end of the range that begins at 0.
    pub(super) fn length_from_zero(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }

    /// Highest first.
    pub(super) fn newest(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().rev().map(|(&start, &end)| start..end)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "one range is a list of ranges, too")]
mod tests {
    use super::*;

    fn of(ranges: &[Range<u64>]) -> Ranges {
        let mut set = Ranges::default();
        for range in ranges {
            set.insert(range.clone());
        }
        set
    }

    #[test]
    fn ranges_that_touch_or_overlap_are_one() {
        for (ranges, is) in [
            (vec![0..2, 4..6], vec![4..6, 0..2]),
            (vec![0..2, 4..6, 2..4], vec![0..6]),
            (vec![4..6, 0..2, 1..5], vec![0..6]),
            (vec![0..1, 2..3, 4..5, 0..9], vec![0..9]),
            (vec![0..9, 2..3], vec![0..9]),
        ] {
            assert_eq!(of(&ranges).newest().collect::<Vec<_>>(), is, "{ranges:?}");
        }
    }

    #[test]
    fn what_is_known_is_not_new() {
        let mut set = of(&[0..4, 6..8]);
        assert!(!set.insert(1..3) && !set.insert(6..8) && !set.insert(5..5));
        assert!(set.insert(3..5) && set.length_from_zero() == 5);
        assert_eq!(set.pop_first(), Some(0..5));
        assert_eq!((set.length_from_zero(), set.len()), (0, 1));
    }
}
