//! RTCP that waits for the host to take it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of waiting bytes. A host that takes nothing loses the oldest packets, whose
/// content is out of date.
const CAPACITY: usize = 1 << 16;

/// Packets one behind the other. Its memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// Ends of the waiting packets in `bytes`.
    ends: VecDeque<usize>,
    /// Start of the first waiting packet.
    start: usize,
}

impl Outbox {
    /// Adds a packet.
    pub(crate) fn push(&mut self, packet: &[u8]) {
        if self.ends.is_empty() || self.bytes.len() + packet.len() > CAPACITY {
            self.bytes.clear();
            self.ends.clear();
            self.start = 0;
        }
        self.bytes.extend_from_slice(packet);
        self.ends.push_back(self.bytes.len());
    }

    /// Takes the oldest packet.
    pub(crate) fn pop(&mut self) -> Option<&[u8]> {
        let end = self.ends.pop_front()?;
        let packet = &self.bytes[self.start..end];
        self.start = end;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_in_order() {
        let mut outbox = Outbox::default();
        outbox.push(&[1, 2]);
        outbox.push(&[3]);
        assert_eq!(outbox.pop(), Some(&[1, 2][..]));
        outbox.push(&[4, 5]);
        assert_eq!(outbox.pop(), Some(&[3][..]));
        assert_eq!(outbox.pop(), Some(&[4, 5][..]));
        assert_eq!(outbox.pop(), None);
    }

    #[test]
    fn packets_that_nobody_takes_do_not_fill_the_memory() {
        let mut outbox = Outbox::default();
        for _ in 0..1_000 {
            outbox.push(&[7; 1_000]);
        }
        assert!(outbox.bytes.capacity() <= 2 * CAPACITY);
        let mut rest = 0;
        while outbox.pop().is_some() {
            rest += 1;
        }
        assert!((1..=65).contains(&rest), "{rest}");
    }
}
