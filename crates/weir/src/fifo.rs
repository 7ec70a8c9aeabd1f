//! A queue whose items lie in one piece.
//!
//! The controllers walk their windows of packets at each report. `VecDeque` asks at each access where its
//! two pieces meet; here the items are a slice, and what has left the front makes room from time to time.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// So many places at the front stay empty, however short the queue is.
const MIN_EMPTY: usize = 32;

/// First in, first out. Takes at most twice the room of its items, and a little more.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    items: Vec<T>,
    /// Where the oldest item is; those before it have left.
    first: usize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { items: Vec::new(), first: 0 }
    }
}

impl<T: Copy> Fifo<T> {
    /// Puts an item behind the others.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Removes this many of the oldest items; there must be so many.
    #[inline]
    pub(crate) fn remove_first(&mut self, count: usize) {
        self.first += count;
        if self.first >= MIN_EMPTY && self.first > self.items.len() / 2 {
            self.make_room();
        }
    }

    /// Each item moves once on average: at least as many have left as are moved.
    #[cold]
    fn make_room(&mut self) {
        self.items.drain(..self.first);
        self.first = 0;
    }

    /// Keeps only the items of which this holds.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.drain(..self.first);
        self.first = 0;
        self.items.retain(keep);
    }

    /// Puts an item before the one at this place.
    pub(crate) fn insert(&mut self, at: usize, item: T) {
        self.items.insert(self.first + at, item);
    }
}

impl<T> Deref for Fifo<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.items[self.first..]
    }
}

impl<T> DerefMut for Fifo<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[self.first..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;

    #[test]
    fn it_holds_what_a_double_ended_queue_holds() {
        let (mut fifo, mut expected) = (Fifo::default(), VecDeque::new());
        for step in 0..5_000_usize {
            fifo.push(step);
            expected.push_back(step);
            // Grows for a while, shrinks for a while, and is empty in between.
            for _ in 0..if step / 300 % 2 == 0 { step % 2 } else { 2 } {
                assert_eq!(fifo.first(), expected.front());
                fifo.remove_first(usize::from(expected.pop_front().is_some()));
            }
            if step % 97 == 0 {
                let at = fifo.len() / 2;
                fifo.insert(at, step);
                expected.insert(at, step);
            }
            assert_eq!(*fifo, *expected.make_contiguous());
        }
    }

    #[test]
    fn its_memory_does_not_grow_with_what_has_left() {
        let mut fifo = Fifo::default();
        for step in 0..100_000 {
            fifo.push(step);
            if fifo.len() > 100 {
                fifo.remove_first(1);
            }
        }
        assert!(fifo.items.capacity() < 1_000, "{}", fifo.items.capacity());
    }
}
