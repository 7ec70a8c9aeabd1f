//! Maps a packet's RTP sequence number to its transport-wide sequence number.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::RtpNumber;
use crate::feedback::{SeqUnwrapper, Unwrapper};

/// The packets of one media source in the history.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    ssrc: u32,
    /// The reference is the newest RTP sequence number: all others are at most half a space older.
    unwrapper: SeqUnwrapper,
    /// RTP sequence number of the front packet, unwrapped.
    first: i64,
    /// Transport-wide sequence number of each packet, increasing.
    numbers: VecDeque<i64>,
    /// One after the highest number in congestion control feedback; `None` without such feedback.
    pub(super) reported_before: Option<i64>,
    /// Highest number and count of lost packets in the newest receiver report; `None` if feedback
    /// of another format came after it.
    pub(super) receiver_report: Option<(i64, i32)>,
}

impl Stream {
    fn new(rtp: RtpNumber) -> Self {
        Self {
            ssrc: rtp.ssrc,
            unwrapper: Unwrapper::default(),
            first: i64::from(rtp.sequence_number),
            numbers: VecDeque::new(),
            reported_before: None,
            // Before the first packet the receiver has lost nothing.
            receiver_report: Some((i64::from(rtp.sequence_number) - 1, 0)),
        }
    }

    /// The RTP sequence number, unwrapped.
    pub(super) fn unwrap(&self, sequence_number: u16) -> i64 {
        self.unwrapper.peek(sequence_number.into())
    }

    /// RTP sequence number of the next packet, unwrapped.
    pub(super) fn next_number(&self) -> i64 {
        self.first + self.numbers.len() as i64
    }

    /// Transport-wide number of a packet; `None` if the history does not have the packet.
    pub(super) fn transport_number(&self, rtp_number: i64) -> Option<i64> {
        let index = usize::try_from(rtp_number - self.first).ok()?;
        self.numbers.get(index).copied()
    }
}

/// All streams of a sender, in the order of their first packets. There are few.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Vec<Stream>);

impl Streams {
    pub(super) fn get(&mut self, ssrc: u32) -> Option<&mut Stream> {
        self.0.iter_mut().find(|stream| stream.ssrc == ssrc)
    }

    /// Records a packet. A packet that does not follow the last one of its stream restarts the
    /// stream: feedback on the packets before could be mistaken for feedback on new ones.
    pub(super) fn on_packet_sent(&mut self, rtp: RtpNumber, transport_number: i64) {
        let index = self.0.iter().position(|stream| stream.ssrc == rtp.ssrc).unwrap_or_else(|| {
            self.0.push(Stream::new(rtp));
            self.0.len() - 1
        });
        let stream = &mut self.0[index];
        let mut number = stream.unwrap(rtp.sequence_number);
        if number != stream.next_number() {
            *stream = Stream { receiver_report: None, ..Stream::new(rtp) };
            number = stream.unwrap(rtp.sequence_number);
        }
        stream.unwrapper.set_last(number);
        stream.numbers.push_back(transport_number);
    }

    /// Removes a stream's oldest packet, if it is this one.
    pub(super) fn forget(&mut self, ssrc: u32, transport_number: i64) {
        let Some(stream) = self.get(ssrc) else { return };
        if stream.numbers.front() == Some(&transport_number) {
            stream.numbers.pop_front();
            stream.first += 1;
        }
    }

    /// Resets how far feedback of each format has reported.
    pub(super) fn forget_feedback(&mut self) {
        for stream in &mut self.0 {
            stream.reported_before = None;
            stream.receiver_report = None;
        }
    }
}
