//! RTCP that waits for the caller to take it.

use std::collections::VecDeque;

use crate::border::weir_bytes;

/// Maximum number of waiting bytes. A caller that takes nothing loses the oldest packets, whose
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

    /// Takes the oldest packet. Its bytes stay until the next call.
    pub(crate) fn pop(&mut self) -> Option<weir_bytes> {
        let end = self.ends.pop_front()?;
        let packet = &self.bytes[self.start..end];
        self.start = end;
        Some(weir_bytes { data: packet.as_ptr(), length: packet.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(outbox: &mut Outbox) -> Option<Vec<u8>> {
        let packet = outbox.pop()?;
        // SAFETY: the bytes are the outbox's, and nothing has changed since.
        Some(unsafe { core::slice::from_raw_parts(packet.data, packet.length) }.to_vec())
    }

    #[test]
    fn packets_come_out_in_order() {
        let mut outbox = Outbox::default();
        outbox.push(&[1, 2]);
        outbox.push(&[3]);
        assert_eq!(pop(&mut outbox), Some(vec![1, 2]));
        outbox.push(&[4, 5]);
        assert_eq!(pop(&mut outbox), Some(vec![3]));
        assert_eq!(pop(&mut outbox), Some(vec![4, 5]));
        assert_eq!(pop(&mut outbox), None);
    }

    #[test]
    fn packets_that_nobody_takes_do_not_fill_the_memory() {
        let mut outbox = Outbox::default();
        (0..1_000).for_each(|_| outbox.push(&[7; 1_000]));
        assert!(outbox.bytes.capacity() <= 2 * CAPACITY);
        let rest = std::iter::from_fn(|| pop(&mut outbox)).count();
        assert!((1..=65).contains(&rest), "{rest}");
    }
}
