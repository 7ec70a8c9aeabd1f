//! Which packet of the library a transport-wide number of str0m's names.

use std::collections::VecDeque;

/// As many packets as feedback can still be about, at 1,000 packets a second for 10 s.
const MOST: usize = 10_000;

/// The library's numbers, in the order of str0m's.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// str0m's number of the first one.
    first: u16,
    ours: VecDeque<i64>,
}

impl Numbers {
    /// str0m gave this number to a packet of the library's number `ours`.
    pub(crate) fn insert(&mut self, theirs: u16, ours: i64) {
        if self.first.wrapping_add(self.ours.len() as u16) != theirs {
            // str0m counted a packet that it did not report: what was before cannot be told.
            self.ours.clear();
            self.first = theirs;
        }
        self.ours.push_back(ours);
        if self.ours.len() > MOST {
            self.ours.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// The library's number of a packet.
    pub(crate) fn get(&self, theirs: u16) -> Option<i64> {
        self.ours.get(usize::from(theirs.wrapping_sub(self.first))).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_packet_across_a_wrap() {
        let mut numbers = Numbers::default();
        for (theirs, ours) in [(65_534, 7), (65_535, 9), (0, 8), (1, 10)] {
            numbers.insert(theirs, ours);
        }
        let found = [65_533, 65_534, 65_535, 0, 1, 2].map(|theirs| numbers.get(theirs));
        assert_eq!(found, [None, Some(7), Some(9), Some(8), Some(10), None]);
    }

    #[test]
    fn old_numbers_are_forgotten() {
        let mut numbers = Numbers::default();
        for theirs in 0..=MOST as u16 {
            numbers.insert(theirs, i64::from(theirs));
        }
        assert_eq!(numbers.get(0), None);
        assert_eq!(numbers.get(1), Some(1));
    }
}
