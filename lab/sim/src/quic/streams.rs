//! What the application has written and what of it is to be sent: a stream for each group, newer
//! groups first, and a group is reset a second after its end.

use std::collections::BTreeMap;

use weir_quic::testing::Frame;

use super::packet::{Chunk, FrameEnd, MAX_DATA};
use super::ranges::Ranges;

/// More than a stream of a run sends.
const ENDLESS: u64 = 1 << 60;

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

/// The streams that may have something to send.
#[derive(Debug, Default)]
pub(super) struct Streams(BTreeMap<u64, Stream>);

impl Streams {
    /// One stream that always has data.
    pub(super) fn bulk() -> Self {
        Self(BTreeMap::from([(0, Stream { written: ENDLESS, ..Stream::default() })]))
    }

    /// Whether something can be sent.
    pub(super) fn has_data(&self) -> bool {
        self.0.values().any(Stream::has_data)
    }

    /// The application writes a frame.
    pub(super) fn write(&mut self, frame: &Frame) {
        if !self.0.contains_key(&frame.group) {
            // Of a group that ended a second ago nothing is sent any more.
            self.0.retain(|group, _| group + 2 > frame.group);
        }
        let stream = self.0.entry(frame.group).or_default();
        stream.written += frame.size.as_bytes();
        let (offset, size, captured) = (stream.written, frame.size, frame.captured);
        stream.ends.insert(offset, FrameEnd { offset, size, captured });
    }

    /// The next part to send.
    pub(super) fn next_chunk(&mut self) -> Option<Chunk> {
        let (&group, stream) = self.0.iter_mut().rev().find(|(_, stream)| stream.has_data())?;
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

    /// A part was lost. It leaves again unless its stream was reset.
    pub(super) fn send_again(&mut self, chunk: &Chunk) {
        if let Some(stream) = self.0.get_mut(&chunk.group) {
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
        let mut streams = Streams::default();
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
        let mut streams = Streams::default();
        streams.write(&frame(0, 0, 100));
        streams.write(&frame(30, 1, 100));
        let old = Chunk { group: 0, bytes: 0..100, is_again: false, ends: Vec::new() };
        streams.write(&frame(60, 2, 100));
        streams.send_again(&old);
        assert_eq!(streams.next_chunk().unwrap().group, 2);
        assert_eq!(streams.next_chunk().unwrap().group, 1);
        assert_eq!(streams.next_chunk(), None);
    }
}
