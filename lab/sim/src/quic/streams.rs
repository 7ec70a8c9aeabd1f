//! What the application has written and what of it is to be sent. With streams, each group is one,
//! newer groups first, and a group is reset a second after its end. With datagrams, each frame is
//! a unit of its own, older ones first, and nothing is sent twice.

use std::collections::BTreeMap;

use weir_quic::testing::Frame;

use super::QuicDelivery;
use super::packet::{Chunk, FrameEnd, MAX_DATA};
use super::ranges::Ranges;

/// More than a stream of a run sends.
const ENDLESS: u64 = 1 << 60;
/// A group that ended a second ago is old, and so is a frame of a second ago.
const YOUNG_GROUPS: u64 = 2;
const YOUNG_FRAMES: u64 = 30;

/// A stream.
#[derive(Debug, Default)]
struct Stream {
    written: u64,
    /// The first byte that was never sent.
    next: u64,
    /// Lost bytes, which leave first.
    again: Ranges,
    /// Ends of frames by offset.
    ends: BTreeMap<u64, FrameEnd>,
}

/// The streams that may have something to send; of datagrams, one for each frame.
#[derive(Debug)]
pub(super) struct Streams {
    delivery: QuicDelivery,
    by_number: BTreeMap<u64, Stream>,
}

impl Streams {
    pub(super) fn new(delivery: QuicDelivery) -> Self {
        Self { delivery, by_number: BTreeMap::new() }
    }

    /// One stream that always has data.
    pub(super) fn bulk() -> Self {
        let endless = Stream { written: ENDLESS, ..Stream::default() };
        Self { delivery: QuicDelivery::Streams, by_number: BTreeMap::from([(0, endless)]) }
    }

    /// Whether something can be sent.
    pub(super) fn has_data(&self) -> bool {
        self.by_number.values().any(Stream::has_data)
    }

    /// The application writes a frame.
    pub(super) fn write(&mut self, frame: &Frame) {
        let (newest, young) = match self.delivery {
            QuicDelivery::Streams => (frame.group, YOUNG_GROUPS),
            QuicDelivery::Datagrams => (frame.number, YOUNG_FRAMES),
        };
        if !self.by_number.contains_key(&newest) {
            self.by_number.retain(|number, _| number + young > newest);
        }
        let stream = self.by_number.entry(newest).or_default();
        stream.written += frame.size.as_bytes();
        let (offset, size, captured) = (stream.written, frame.size, frame.captured);
        stream.ends.insert(offset, FrameEnd { offset, size, captured });
    }

    /// The next part to send.
    pub(super) fn next_chunk(&mut self) -> Option<Chunk> {
        let mut all = self.by_number.iter_mut().filter(|(_, stream)| stream.has_data());
        let (&group, stream) = match self.delivery {
            QuicDelivery::Streams => all.next_back()?,
            QuicDelivery::Datagrams => all.next()?,
        };
        let lost = stream.again.pop_first();
        let is_again = lost.is_some();
        let whole = lost.unwrap_or(stream.next..stream.written);
        let bytes = whole.start..whole.end.min(whole.start + MAX_DATA);
        if is_again {
            stream.again.insert(bytes.end..whole.end);
        } else {
            stream.next = bytes.end;
        }
        let ends = stream.ends.range(bytes.start + 1..=bytes.end);
        let ends = ends.map(|(_, end)| *end).collect();
        Some(Chunk { group, bytes, is_again, ends })
    }

    /// A part was lost. It leaves again unless its stream was reset, or it was a datagram.
    pub(super) fn send_again(&mut self, chunk: &Chunk) {
        if self.delivery == QuicDelivery::Datagrams {
            return;
        }
        if let Some(stream) = self.by_number.get_mut(&chunk.group) {
            stream.again.insert(chunk.bytes.clone());
        }
    }
}

impl Stream {
    fn has_data(&self) -> bool {
        !self.again.is_empty() || self.next < self.written
    }
}

/// A frame for tests.
#[cfg(test)]
pub(super) fn frame(number: u64, group: u64, bytes: u64) -> Frame {
    let captured = weir::units::Timestamp::from_millis(number as i64 * 33);
    Frame { number, group, captured, size: weir::units::DataSize::from_bytes(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_groups_leave_first_and_lost_bytes_before_new_ones() {
        let mut streams = Streams::new(QuicDelivery::Streams);
        streams.write(&frame(0, 0, 2_000));
        let first = streams.next_chunk().unwrap();
        assert_eq!((first.bytes.clone(), first.ends.len()), (0..MAX_DATA, 0));
        streams.write(&frame(30, 1, 100));
        let newer = streams.next_chunk().unwrap();
        assert_eq!((newer.group, newer.bytes.clone(), newer.ends.len()), (1, 0..100, 1));
        streams.send_again(&first);
        let again = streams.next_chunk().unwrap();
        assert_eq!(again, Chunk { is_again: true, ..first });
        let rest = streams.next_chunk().unwrap();
        assert!(!rest.is_again && rest.bytes == (MAX_DATA..2_000));
        assert_eq!(rest.ends[0].offset, 2_000);
        assert!(!streams.has_data());
    }

    #[test]
    fn a_group_that_ended_a_second_ago_is_forgotten() {
        let mut streams = Streams::new(QuicDelivery::Streams);
        streams.write(&frame(0, 0, 100));
        streams.write(&frame(30, 1, 100));
        let old = Chunk { group: 0, bytes: 0..100, is_again: false, ends: Vec::new() };
        streams.write(&frame(60, 2, 100));
        streams.send_again(&old);
        assert_eq!(streams.next_chunk().unwrap().group, 2);
        assert_eq!(streams.next_chunk().unwrap().group, 1);
        assert_eq!(streams.next_chunk(), None);
    }

    // [RFC9221 §5]
    #[test]
    fn datagrams_leave_once_and_in_order_and_old_ones_never() {
        let mut datagrams = Streams::new(QuicDelivery::Datagrams);
        for number in 0..31 {
            datagrams.write(&frame(number, number / 30, 100));
        }
        let first = datagrams.next_chunk().unwrap();
        assert_eq!((first.group, first.ends.len()), (1, 1));
        datagrams.send_again(&first);
        let mut left = Vec::new();
        while let Some(chunk) = datagrams.next_chunk() {
            assert!(!chunk.is_again);
            left.push(chunk.group);
        }
        assert_eq!(left, (2..31).collect::<Vec<_>>());
    }
}
