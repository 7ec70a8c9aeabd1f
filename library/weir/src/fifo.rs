//! A queue whose items are contiguous in memory.
//!
//! The controllers iterate over their windows of packets at each report. `VecDeque` must check at
//! each access where its two halves meet. Here the items are one slice. The space of removed items
//! is freed from time to time.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// The space of up to this many removed items is kept, however short the queue is.
const MIN_EMPTY: usize = 32;

/// First in, first out. Allocates at most about twice the space of its items.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    items: Vec<T>,
    /// Index of the oldest item. The items before it have been removed.
    first: usize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { items: Vec::new(), first: 0 }
    }
}

impl<T: Copy> Fifo<T> {
    /// Appends an item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Removes the `count` oldest items. There must be at least that many.
    #[inline]
    pub(crate) fn remove_first(&mut self, count: usize) {
        self.first += count;
        if self.first >= MIN_EMPTY && self.first > self.items.len() / 2 {
            self.make_room();
        }
    }

    /// Frees the space of removed items. At most as many items are moved as were removed, so on
    /// average each item moves at most once.
    #[cold]
    fn make_room(&mut self) {
        self.items.drain(..self.first);
        self.first = 0;
    }

    /// Keeps only the items for which `keep` returns true.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.drain(..self.first);
        self.first = 0;
        self.items.retain(keep);
    }

    /// Inserts an item before the one at index `at`.
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
            // The queue grows for a while, then shrinks for a while, and becomes empty in between.
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
