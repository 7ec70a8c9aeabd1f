//! The event queue: holds one deadline for each part of the simulation and finds the earliest.
//!
//! Every part (a link, a pacer, a timer) has at most one deadline at a time. The queue is a
//! tournament tree over them: to set a deadline means to walk from a leaf towards the root; to read
//! the next one is a single look-up. No stale entries exist. Equal times come in the order in which
//! they were set, but those of [`FIRST`] before all others.

use weir::units::Timestamp;

/// Time, order of setting and part number packed into one number, so that one comparison decides a
/// match.
type Key = i128;
const NEVER: Key = Key::MAX;
const PART_BITS: u32 = 16;
/// Bits below the time: the order of setting, then the part number.
const LOW_BITS: u32 = 64;

/// The part whose deadline comes first among equal ones: it ends an interval, and what happens at
/// its end belongs to the next.
pub(crate) const FIRST: usize = 0;

fn time_of(key: Key) -> Timestamp {
    Timestamp::from_nanos((key >> LOW_BITS) as i64)
}

/// Deadlines by part number.
#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    /// A complete binary tree. The root is node 1, the leaves begin at node `leaves`, and each
    /// inner node is the smaller of its two children. The children of node `n` are the nodes `2 n`
    /// and `2 n + 1`, stored together at index `n`.
    pairs: Vec<[Key; 2]>,
    leaves: usize,
    /// A part whose deadline changes far more often than the others: it is a child of the root.
    busiest: Option<usize>,
    set_so_far: u64,
}

impl Deadlines {
    /// A queue for parts `0..parts`, none of which has a deadline. Setting the deadline of the
    /// `busiest` part, if there is one, costs one match; all others cost one more.
    pub(crate) fn new(parts: usize, busiest: Option<usize>) -> Self {
        assert!(parts <= 1 << PART_BITS, "a part's number has {PART_BITS} bits");
        // All leaves are below the root's left child if the right child is the busiest part.
        let halves = if busiest.is_some() { 2 } else { 1 };
        let leaves = halves * parts.next_power_of_two();
        Self { pairs: vec![[NEVER; 2]; leaves], leaves, busiest, set_so_far: 0 }
    }

    /// Sets or clears a part's deadline. If the deadline does not change, it keeps its place among
    /// equal ones.
    pub(crate) fn set(&mut self, part: usize, deadline: Option<Timestamp>) {
        let mut node = if self.busiest == Some(part) { 3 } else { self.leaves + part };
        let mut winner = match deadline {
            None => NEVER,
            Some(time) if time == time_of(self.pairs[node / 2][node % 2]) => return,
            Some(time) => {
                self.set_so_far += 1;
                let order = if part == FIRST { 0 } else { self.set_so_far };
                let low = order << PART_BITS | part as u64;
                Key::from(time.as_nanos()) << LOW_BITS | Key::from(low)
            }
        };
        loop {
            let pair = &mut self.pairs[node / 2];
            let before = std::mem::replace(&mut pair[node % 2], winner);
            // If a node does not change, no node above it changes.
            if before == winner || node == 1 {
                return;
            }
            winner = pair[0].min(pair[1]);
            node /= 2;
        }
    }

    /// The earliest deadline of all parts but the busiest; `None` without one, or without a busiest
    /// part.
    pub(crate) fn next_of_others(&self) -> Option<Timestamp> {
        self.busiest?;
        let [key, _] = self.pairs[1];
        (key != NEVER).then_some(time_of(key))
    }

    /// The earliest deadline and its part.
    pub(crate) fn next(&self) -> Option<(Timestamp, usize)> {
        let [_, key] = self.pairs[0];
        let part = key as usize & ((1 << PART_BITS) - 1);
        (key != NEVER).then_some((time_of(key), part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Option<Timestamp> {
        Some(Timestamp::from_millis(ms))
    }

    fn drain(deadlines: &mut Deadlines) -> Vec<(i64, usize)> {
        std::iter::from_fn(|| {
            let (time, part) = deadlines.next()?;
            deadlines.set(part, None);
            Some((time.as_millis(), part))
        })
        .collect()
    }

    #[test]
    fn the_earliest_comes_first_and_equals_by_the_order_they_were_set() {
        for busiest in [None, Some(0), Some(2), Some(4)] {
            let mut deadlines = Deadlines::new(6, busiest);
            for (part, at) in [(4, 7), (5, 7), (2, 3), (1, 7), (FIRST, 7)] {
                deadlines.set(part, ms(at));
            }
            deadlines.set(4, ms(7)); // keeps its place
            deadlines.set(2, ms(8)); // moves back
            assert_eq!(drain(&mut deadlines), [(7, FIRST), (7, 4), (7, 5), (7, 1), (8, 2)]);
            assert_eq!(deadlines.next(), None);
        }
    }

    #[test]
    fn the_others_are_all_but_the_busiest() {
        let mut deadlines = Deadlines::new(3, Some(1));
        assert_eq!(deadlines.next_of_others(), None);
        deadlines.set(1, ms(1));
        assert_eq!(deadlines.next_of_others(), None);
        deadlines.set(2, ms(9));
        deadlines.set(0, ms(7));
        assert_eq!(deadlines.next_of_others(), ms(7));
        deadlines.set(0, None);
        assert_eq!(deadlines.next_of_others(), ms(9));
        assert_eq!(Deadlines::new(3, None).next_of_others(), None);
    }

    #[test]
    fn one_part_alone_works() {
        for busiest in [None, Some(0)] {
            let mut deadlines = Deadlines::new(1, busiest);
            deadlines.set(0, ms(1));
            assert_eq!(drain(&mut deadlines), [(1, 0)]);
        }
    }
}
