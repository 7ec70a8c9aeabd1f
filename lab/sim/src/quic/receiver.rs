//! The receiving end: ACKs, streams, and the frames that are whole.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_quic::testing::Frame;

use super::QuicAck;
use super::packet::{Ack, Chunk, Content, FrameEnd, QuicPacket};
use super::ranges::Ranges;
use crate::media::Freezes;
use crate::trace::{Transfer, Video};

/// An ACK has the newest ranges only.
const MAX_RANGES: usize = 32;
/// Receive times that an ACK repeats from those before it, in case one was lost.
const REPEATED_TIMES: usize = 4;
/// The most receive times of an ACK.
const MAX_TIMES: usize = 64;

/// A stream of frames as it arrives.
#[derive(Debug, Default)]
struct Incoming {
    bytes: Ranges,
    /// Bytes that the application has.
    read: u64,
    ends: BTreeMap<u64, FrameEnd>,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    config: QuicAck,
    /// Whether the sender's packets are ECN-capable, so that ACKs count marks.
    counts_marks: bool,
    numbers: Ranges,
    /// The newest packet and when it came.
    largest: Option<(u64, Timestamp)>,
    /// Ack-eliciting packets since the last ACK.
    unacked: u64,
    deadline: Option<Timestamp>,
    marks: u64,
    times: VecDeque<(u64, Timestamp)>,
    is_bulk: bool,
    streams: BTreeMap<u64, Incoming>,
    /// Results for the current row.
    video: Video,
    delays: (TimeDelta, i64),
    goodput: DataSize,
    freezes: Freezes,
    /// The source's pauses to come.
    pauses: VecDeque<Range<Timestamp>>,
    whole: Vec<FrameEnd>,
}

impl Receiver {
    pub(super) fn new(
        config: QuicAck,
        counts_marks: bool,
        is_bulk: bool,
        pauses: &[Range<Timestamp>],
    ) -> Self {
        Self {
            config,
            counts_marks,
            numbers: Ranges::default(),
            largest: None,
            unacked: 0,
            deadline: None,
            marks: 0,
            times: VecDeque::new(),
            is_bulk,
            streams: BTreeMap::new(),
            video: Video::default(),
            delays: (TimeDelta::ZERO, 0),
            goodput: DataSize::ZERO,
            freezes: Freezes::default(),
            pauses: pauses.iter().cloned().collect(),
            whole: Vec::new(),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// An ack-eliciting packet arrived. Returns an ACK if one is due at once.
    pub(super) fn on_data(
        &mut self,
        now: Timestamp,
        number: u64,
        content: &Content,
        is_marked: bool,
    ) -> Option<QuicPacket> {
        let size = content.size();
        if !self.numbers.insert(number..number + 1) {
            return None;
        }
        if let Content::Stream(chunk) = content {
            self.on_chunk(now, chunk, DataSize::from_bytes(size));
        }
        self.marks += u64::from(is_marked);
        self.unacked += 1;
        if self.config.receive_times {
            self.times.push_back((number, now));
        }
        let expected = self.largest.map_or(0, |(largest, _)| largest + 1);
        if number >= expected {
            self.largest = Some((number, now));
        }
        // A packet out of order or with a mark is acknowledged at once [RFC9000 §13.2.1].
        if number != expected || is_marked || self.unacked >= self.config.packets {
            return self.ack(now);
        }
        self.deadline.get_or_insert(now + self.config.delay);
        None
    }

    /// The ACK that is due.
    pub(super) fn ack(&mut self, now: Timestamp) -> Option<QuicPacket> {
        let (_, newest) = self.largest?;
        (self.unacked, self.deadline) = (0, None);
        let times = self.times.iter().rev().take(MAX_TIMES).rev().copied().collect();
        let old = self.times.len().saturating_sub(REPEATED_TIMES);
        self.times.drain(..old);
        while self.numbers.len() > MAX_RANGES {
            self.numbers.pop_first();
        }
        Some(QuicPacket::Ack(Ack {
            ranges: self.numbers.newest().collect(),
            delay: now - newest,
            ce_count: self.counts_marks.then_some(self.marks),
            times,
        }))
    }

    fn on_chunk(&mut self, now: Timestamp, chunk: &Chunk, size: DataSize) {
        let stream = self.streams.entry(chunk.group).or_default();
        let is_new = stream.bytes.insert(chunk.bytes.clone());
        let counted = if chunk.is_again { &mut self.video.rtx } else { &mut self.video.media };
        *counted += size;
        if !is_new {
            return;
        }
        self.video.media_packets += 1;
        stream.ends.extend(chunk.ends.iter().map(|end| (end.offset, *end)));
        let read = stream.bytes.length_from_zero();
        if self.is_bulk {
            self.goodput += DataSize::from_bytes(read - stream.read);
        }
        stream.read = read;
        let before = self.whole.len();
        while stream.ends.first_key_value().is_some_and(|(&offset, _)| offset <= read) {
            self.whole.extend(stream.ends.pop_first().map(|(_, end)| end));
        }
        for index in before..self.whole.len() {
            self.on_whole_frame(now, self.whole[index]);
        }
        // Nothing of a group comes that was reset so long ago.
        self.streams.retain(|group, _| group + 4 > chunk.group);
    }

    fn on_whole_frame(&mut self, now: Timestamp, end: FrameEnd) {
        self.video.frames += 1;
        self.delays.0 += now - end.captured;
        self.delays.1 += 1;
        self.goodput += end.size;
        // The time until the first frame after a pause is no interval.
        if self.pauses.pop_front_if(|pause| pause.start <= end.captured).is_some() {
            self.freezes.on_pause();
        }
        let freeze = self.freezes.on_frame(now);
        self.note_freeze(freeze);
    }

    fn note_freeze(&mut self, freeze: Option<TimeDelta>) {
        self.video.freezes += u64::from(freeze.is_some());
        self.video.frozen += freeze.unwrap_or(TimeDelta::ZERO);
    }

    /// The run ends. `last_frame` is when the sender's source had a frame last.
    pub(super) fn finish(&mut self, last_frame: Timestamp) {
        let freeze = self.freezes.finish(last_frame);
        self.note_freeze(freeze);
    }

    /// The frames of the row; `None` of a source without frames.
    pub(super) fn take_video(&mut self) -> Option<Video> {
        self.whole.clear();
        let mut video = std::mem::take(&mut self.video);
        let (sum, count) = std::mem::take(&mut self.delays);
        video.frame_delay = (count > 0).then(|| sum / count);
        (!self.is_bulk).then_some(video)
    }

    /// The frames that are whole since the last call or row, without their numbers.
    pub(super) fn take_whole(&mut self, whole: &mut Vec<Frame>) {
        for FrameEnd { size, captured, .. } in self.whole.drain(..) {
            whole.push(Frame { number: 0, group: 0, captured, size });
        }
    }

    /// What the application got, with what the sender sent again.
    pub(super) fn take_transfer(&mut self, sent_again: u64) -> Transfer {
        Transfer::new(std::mem::take(&mut self.goodput), sent_again)
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "one range is a list of ranges, too")]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn receiver(config: QuicAck) -> Receiver {
        Receiver::new(config, false, false, &[])
    }

    fn ranges(packet: Option<QuicPacket>) -> Option<Vec<std::ops::Range<u64>>> {
        match packet? {
            QuicPacket::Ack(ack) => Some(ack.ranges),
            other => panic!("{other:?}"),
        }
    }

    /// Answers to packets of these numbers, a millisecond apart.
    fn answers(config: QuicAck, numbers: &[u64]) -> Vec<bool> {
        let mut receiver = receiver(config);
        let mut answers = Vec::new();
        for (ms, &number) in (0..).zip(numbers) {
            answers.push(receiver.on_data(at(ms), number, &Content::Ping, false).is_some());
        }
        answers
    }

    // [RFC9000 §13.2.1] [RFC9000 §13.2.2]
    #[test]
    fn every_second_packet_is_acknowledged_and_each_that_is_out_of_order() {
        let usual = QuicAck::new();
        assert_eq!(answers(usual, &[0, 1, 2, 3]), [false, true, false, true]);
        assert_eq!(answers(usual, &[0, 2, 3, 1]), [false, true, false, true]);
        let rare = usual.with_packets(3);
        assert_eq!(answers(rare, &[0, 1, 2, 3, 4]), [false, false, true, false, false]);
    }

    #[test]
    fn an_ack_waits_for_its_delay_and_says_so() {
        let mut receiver = receiver(QuicAck::new());
        assert!(receiver.on_data(at(7), 0, &Content::Ping, false).is_none());
        assert_eq!(receiver.next_deadline(), Some(at(32)));
        let Some(QuicPacket::Ack(ack)) = receiver.ack(at(32)) else { panic!("an ACK") };
        assert_eq!((ack.delay, ack.ce_count), (TimeDelta::from_millis(25), None));
        assert_eq!(receiver.next_deadline(), None);
    }

    #[test]
    fn a_mark_is_told_at_once() {
        let mut receiver = Receiver::new(QuicAck::new(), true, false, &[]);
        let Some(QuicPacket::Ack(ack)) = receiver.on_data(at(0), 0, &Content::Ping, true) else {
            panic!("an ACK")
        };
        assert_eq!(ack.ce_count, Some(1));
    }

    #[test]
    fn receive_times_are_repeated_in_the_next_ack() {
        let mut receiver = receiver(QuicAck::new().with_receive_times(true).with_packets(8));
        let mut told = Vec::new();
        for number in 0..16 {
            let ms = number as i64;
            if let Some(QuicPacket::Ack(ack)) =
                receiver.on_data(at(ms), number, &Content::Ping, false)
            {
                told.push(ack.times.iter().map(|&(number, _)| number).collect::<Vec<_>>());
            }
        }
        assert_eq!(told, [(0..8).collect::<Vec<_>>(), (4..16).collect()]);
    }

    #[test]
    fn ranges_that_are_too_old_are_left_out() {
        let mut receiver = receiver(QuicAck::new());
        let mut last = None;
        for number in 0..50 {
            last = receiver.on_data(at(0), number * 2, &Content::Ping, false);
        }
        let ranges = ranges(last).unwrap();
        assert_eq!((ranges.len(), ranges[0].clone()), (MAX_RANGES, 98..99));
    }

    /// Frames that are whole after these parts of one stream, with a frame of 150 bytes and then
    /// one of 50.
    fn whole(parts: &[std::ops::Range<u64>]) -> u64 {
        let mut receiver = receiver(QuicAck::new());
        for (number, bytes) in (0..).zip(parts) {
            let mut ends = Vec::new();
            for (offset, size) in [(150, 150), (200, 50)] {
                if bytes.contains(&(offset - 1)) {
                    let size = DataSize::from_bytes(size);
                    ends.push(FrameEnd { offset, size, captured: at(0) });
                }
            }
            let chunk = Chunk { group: 3, bytes: bytes.clone(), is_again: false, ends };
            receiver.on_data(at(40), number, &Content::Stream(chunk), false);
        }
        let video = receiver.take_video().unwrap();
        let is_late = video.frame_delay == Some(TimeDelta::from_millis(40));
        assert_eq!(is_late, video.frames > 0);
        video.frames
    }

    #[test]
    fn a_frame_is_whole_when_all_bytes_up_to_its_end_are_there() {
        assert_eq!(whole(&[0..100]), 0);
        assert_eq!(whole(&[0..100, 100..200]), 2);
        assert_eq!(whole(&[100..200]), 0);
        assert_eq!(whole(&[100..200, 0..100]), 2);
        assert_eq!(whole(&[0..150, 0..150]), 1);
    }
}
