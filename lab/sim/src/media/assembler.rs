//! Assembler: combines packets into frames and releases frames to the decoder in order.
//!
//! Every frame except a key frame depends on the one before it. So a lost packet blocks all later
//! frames until it is repaired or a key frame is complete.

use std::collections::VecDeque;

use weir::units::{DataSize, Timestamp};

use super::MediaPacket;

/// Maximum number of waiting packets. Beyond it the oldest are discarded.
const MAX_WAITING: usize = 4_096;

/// A frame that can be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// When it was captured.
    pub(super) captured: Timestamp,
    /// Missing packets that the decoder skipped to reach this key frame.
    pub(super) skipped_packets: u64,
    /// Whether it is a key frame.
    pub(super) key: bool,
    /// When the first packet that came of it came, and when the last one did.
    pub(super) begun: Timestamp,
    pub(super) received: Timestamp,
    /// Bytes of its packets without the headers around them.
    pub(super) size: DataSize,
    /// Whether one of its packets is a retransmission.
    pub(super) repeated: bool,
}

/// Packets whose frame is incomplete, or whose earlier frames are.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembler {
    /// Sequence number of the front slot. Packets before it are not needed any more.
    first: i64,
    slots: VecDeque<Option<MediaPacket>>,
    /// Number of slots that contain the first packet of a key frame.
    key_frames: usize,
    /// Whether the decoder has all packets before the front slot.
    intact: bool,
    /// Number of missing packets that were discarded at the front.
    overflowed: u64,
}

impl Assembler {
    /// Sequence number of the first packet that is still needed.
    pub(super) fn first(&self) -> i64 {
        self.first
    }

    /// Takes a packet. Returns false if it is a duplicate or too late to be useful.
    pub(super) fn insert(&mut self, packet: MediaPacket) -> bool {
        if self.slots.is_empty() && !self.intact {
            self.first = packet.number;
        }
        // Before the first frame the start of the stream is unknown.
        while packet.number < self.first && !self.intact && self.slots.len() < MAX_WAITING {
            self.slots.push_front(None);
            self.first -= 1;
        }
        while packet.number - self.first >= MAX_WAITING as i64 {
            self.drop_front();
        }
        let Ok(index) = usize::try_from(packet.number - self.first) else { return false };
        if index >= self.slots.len() {
            self.slots.resize(index + 1, None);
        }
        if self.slots[index].is_some() {
            return false;
        }
        self.slots[index] = Some(packet);
        self.key_frames += usize::from(packet.first && packet.key);
        true
    }

    /// Returns the next frame that can be decoded.
    pub(super) fn next_frame(&mut self) -> Option<Frame> {
        if self.intact
            && let Some(packets) = self.frame_at(0)
        {
            return Some(self.take(0, packets));
        }
        if self.key_frames == 0 {
            return None;
        }
        let (index, packets) = (0..self.slots.len())
            .filter(|&index| self.slots[index].is_some_and(|packet| packet.key && packet.first))
            .find_map(|index| Some((index, self.frame_at(index)?)))?;
        Some(self.take(index, packets))
    }

    /// Whether only a new key frame helps. Missing packets up to `given_up` will not arrive any
    /// more.
    pub(super) fn needs_key_frame(&self, given_up: Option<i64>) -> bool {
        let broken_until = match given_up {
            Some(number) if number >= self.first => number,
            _ if self.intact || self.slots.is_empty() => return false,
            _ => self.first - 1,
        };
        let after = usize::try_from(broken_until + 1 - self.first).unwrap_or(0);
        let coming = |packet: &Option<MediaPacket>| packet.is_some_and(|p| p.first && p.key);
        self.key_frames == 0 || !self.slots.iter().skip(after).any(coming)
    }

    /// Ends the stream. Returns the number of packets up to `given_up` that are missing.
    pub(super) fn finish(&mut self, given_up: Option<i64>) -> u64 {
        let Some(given_up) = given_up else { return std::mem::take(&mut self.overflowed) };
        let count = usize::try_from(given_up + 1 - self.first).unwrap_or(0);
        let missing = self.slots.iter().take(count).filter(|slot| slot.is_none()).count();
        std::mem::take(&mut self.overflowed) + missing as u64
    }

    /// Number of packets of the frame that begins at a slot, if it is complete.
    fn frame_at(&self, index: usize) -> Option<usize> {
        let mut packets = self.slots.iter().skip(index);
        let first = (*packets.next()?)?;
        if !first.first || first.last {
            return first.first.then_some(1);
        }
        for (count, packet) in (2..).zip(packets) {
            if (*packet)?.last {
                return Some(count);
            }
        }
        None
    }

    fn take(&mut self, index: usize, packets: usize) -> Frame {
        let mut frame = Frame { begun: Timestamp::MAX, ..Frame::default() };
        for packet in self.slots.range(index..index + packets).flatten() {
            frame.captured = packet.captured;
            frame.key |= packet.key && packet.first;
            frame.begun = frame.begun.min(packet.receipt.at);
            frame.received = frame.received.max(packet.receipt.at);
            frame.size += packet.receipt.size;
            frame.repeated |= packet.receipt.repeated;
        }
        let missing = self.slots.iter().take(index).filter(|slot| slot.is_none()).count();
        frame.skipped_packets = std::mem::take(&mut self.overflowed) + missing as u64;
        for _ in 0..index + packets {
            self.pop_front();
        }
        self.intact = true;
        frame
    }

    fn pop_front(&mut self) -> Option<MediaPacket> {
        self.first += 1;
        let packet = self.slots.pop_front().flatten()?;
        self.key_frames -= usize::from(packet.first && packet.key);
        Some(packet)
    }

    fn drop_front(&mut self) {
        if self.pop_front().is_none() {
            self.overflowed += 1;
        }
        self.intact = false;
    }
}

#[cfg(test)]
mod tests {
    use weir::units::TimeDelta;

    use super::super::Receipt;
    use super::*;

    /// Frame `n` consists of the packets 2n and 2n + 1 and was captured at n seconds. `keys` are
    /// the key frames.
    fn packet(number: i64, keys: &[i64]) -> MediaPacket {
        let frame = number.div_euclid(2);
        let first = number % 2 == 0;
        MediaPacket {
            number,
            captured: Timestamp::from_secs(frame),
            first,
            last: !first,
            key: first && keys.contains(&frame),
            receipt: Receipt::default(),
        }
    }

    /// Inserts the packets one by one and returns the frames that were released.
    fn frames(assembler: &mut Assembler, numbers: &[i64], keys: &[i64]) -> Vec<(i64, u64)> {
        let mut out = Vec::new();
        for &number in numbers {
            assembler.insert(packet(number, keys));
            while let Some(frame) = assembler.next_frame() {
                out.push((frame.captured.as_millis() / 1_000, frame.skipped_packets));
            }
        }
        out
    }

    #[test]
    fn frames_come_out_once_complete_and_in_order() {
        let mut assembler = Assembler::default();
        assert_eq!(frames(&mut assembler, &[0, 2, 3], &[0]), []);
        assert_eq!(frames(&mut assembler, &[1], &[0]), [(0, 0), (1, 0)]);
    }

    #[test]
    fn a_lost_packet_holds_up_all_that_follows_until_it_is_repaired() {
        let mut assembler = Assembler::default();
        assert_eq!(frames(&mut assembler, &[0, 1, 3, 4, 5, 6, 7], &[0]), [(0, 0)]);
        assert_eq!(frames(&mut assembler, &[2], &[0]), [(1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn a_complete_key_frame_ends_the_wait_and_the_missing_packets_are_counted() {
        let mut assembler = Assembler::default();
        let keys = [0, 4];
        assert_eq!(frames(&mut assembler, &[0, 1, 3, 4, 7, 8], &keys), [(0, 0)]);
        assert_eq!(frames(&mut assembler, &[9, 10, 11], &keys), [(4, 3), (5, 0)]);
        assert!(!assembler.insert(packet(2, &keys)), "too late to be of use");
    }

    #[test]
    fn decoding_starts_with_a_key_frame_even_if_its_packets_come_out_of_order() {
        let mut assembler = Assembler::default();
        assert_eq!(frames(&mut assembler, &[1], &[0]), []);
        assert!(assembler.needs_key_frame(None));
        assert_eq!(frames(&mut assembler, &[2, 3, 0], &[0]), [(0, 0), (1, 0)]);
        let mut joined_late = Assembler::default();
        assert_eq!(frames(&mut joined_late, &[2, 3, 4, 5], &[0]), []);
        assert!(joined_late.needs_key_frame(None));
    }

    #[test]
    fn a_frame_may_be_one_packet() {
        let mut assembler = Assembler::default();
        for number in 0..3 {
            let (captured, key) = (Timestamp::from_secs(number), number == 0);
            let receipt = Receipt {
                at: captured + TimeDelta::from_millis(40),
                size: DataSize::from_bytes(500),
                repeated: number == 1,
            };
            let (first, last) = (true, true);
            assembler.insert(MediaPacket { number, captured, first, last, key, receipt });
            let Receipt { at: received, size, repeated } = receipt;
            let begun = received;
            let frame =
                Frame { captured, skipped_packets: 0, key, begun, received, size, repeated };
            assert_eq!(assembler.next_frame(), Some(frame));
        }
    }

    #[test]
    fn a_key_frame_is_needed_unless_one_is_coming_after_what_was_given_up() {
        let mut assembler = Assembler::default();
        frames(&mut assembler, &[0, 1, 3, 4], &[0]);
        assert!(!assembler.needs_key_frame(None), "2 may still be repaired");
        assert!(assembler.needs_key_frame(Some(2)));
        frames(&mut assembler, &[6], &[0, 3]);
        assert!(!assembler.needs_key_frame(Some(2)), "the key frame with packet 6 is coming");
        frames(&mut assembler, &[8], &[0, 3]);
        assert!(assembler.needs_key_frame(Some(7)), "its other packet will not come");
        let mut began = Assembler::default();
        frames(&mut began, &[0], &[0]);
        assert!(!began.needs_key_frame(None), "the stream began with one");
        assert!(!Assembler::default().needs_key_frame(None), "nothing was sent yet");
    }

    #[test]
    fn packets_that_wait_too_long_are_given_up() {
        let mut assembler = Assembler::default();
        assert_eq!(frames(&mut assembler, &[0, 1, 3], &[0]), [(0, 0)]);
        let far = 2 * MAX_WAITING as i64;
        assert_eq!(frames(&mut assembler, &[far, far + 1], &[0]), []);
        assert!(assembler.needs_key_frame(None));
        // All packets in 2..far except 3 are missing.
        let keys = [far / 2 + 1];
        assert_eq!(
            frames(&mut assembler, &[far + 2, far + 3], &keys),
            [(far / 2 + 1, far as u64 - 3)]
        );
    }

    #[test]
    fn a_packet_counts_once() {
        let mut assembler = Assembler::default();
        assert!(assembler.insert(packet(0, &[0])));
        assert!(!assembler.insert(packet(0, &[0])));
        assert_eq!(frames(&mut assembler, &[1], &[0]), [(0, 0)]);
    }

    #[test]
    fn at_the_end_the_packets_that_were_given_up_are_counted() {
        let mut assembler = Assembler::default();
        frames(&mut assembler, &[0, 1, 4, 5, 8], &[0]);
        assert_eq!(assembler.clone().finish(Some(2)), 1);
        assert_eq!(assembler.clone().finish(Some(3)), 2);
        assert_eq!(assembler.clone().finish(Some(7)), 4);
        assert_eq!(assembler.finish(None), 0);
    }
}
