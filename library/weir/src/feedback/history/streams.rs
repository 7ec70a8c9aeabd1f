//! Maps a packet's RTP sequence number to its transport-wide sequence number.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::RtpNumber;
use super::receiver_report::RoundTrip;
use crate::feedback::{SeqUnwrapper, Unwrapper};

/// A packet that the application numbered and did not send, such as one of a late picture.
const NOT_SENT: i64 = i64::MIN;
/// The most packets in a row that can be such. After more the stream has jumped: a large picture
/// has some 200 packets.
const MAX_NOT_SENT: i64 = 255;
/// With more numbers a late one could be mistaken for a new one.
const MAX_KEPT: i64 = super::MAX_PACKETS as i64;

/// The packets of one media source in the history.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    ssrc: u32,
    /// The reference is the newest RTP sequence number: all others are at most half a space older.
    unwrapper: SeqUnwrapper,
    /// RTP sequence number of the front packet, unwrapped.
    first: i64,
    /// Transport-wide sequence number of each packet, increasing, or [`NOT_SENT`].
    numbers: VecDeque<i64>,
    /// One after the highest number in congestion control feedback; `None` without such feedback.
    pub(super) reported_before: Option<i64>,
    /// Highest number and count of lost packets in the newest receiver report; `None` if feedback
    /// of another format came after it.
    pub(super) receiver_report: Option<(i64, i32)>,
    /// Round-trip time of the newest packet in it.
    pub(super) round_trip: Option<RoundTrip>,
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
            round_trip: None,
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

    /// RTP sequence number of the oldest packet, unwrapped.
    #[cfg(test)]
    pub(super) fn first_number(&self) -> i64 {
        self.first
    }

    /// Transport-wide number of a packet; `None` if the history does not have the packet.
    pub(super) fn transport_number(&self, rtp_number: i64) -> Option<i64> {
        self.number(rtp_number).filter(|&number| number != NOT_SENT)
    }

    /// Whether the packet was numbered between others that were sent, and not sent.
    pub(super) fn is_skipped(&self, rtp_number: i64) -> bool {
        self.number(rtp_number) == Some(NOT_SENT)
    }

    fn number(&self, rtp_number: i64) -> Option<i64> {
        let index = usize::try_from(rtp_number - self.first).ok()?;
        self.numbers.get(index).copied()
    }

    /// Whether the next packet can have this number, after some that were not sent.
    fn can_go_on_with(&self, rtp_number: i64) -> bool {
        let skipped = rtp_number - self.next_number();
        (0..=MAX_NOT_SENT).contains(&skipped) && rtp_number - self.first < MAX_KEPT
    }
}

/// All streams of a sender, in the order of their first packets. There are few.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Vec<Stream>);

impl Streams {
    pub(super) fn get(&mut self, ssrc: u32) -> Option<&mut Stream> {
        self.0.iter_mut().find(|stream| stream.ssrc == ssrc)
    }

    /// Records a packet. One that does not follow the last of its stream, or some that were not
    /// sent, restarts the stream: feedback on the packets before could be mistaken for feedback on
    /// new ones.
    pub(super) fn on_packet_sent(&mut self, rtp: RtpNumber, transport_number: i64) {
        let index = self.0.iter().position(|stream| stream.ssrc == rtp.ssrc).unwrap_or_else(|| {
            self.0.push(Stream::new(rtp));
            self.0.len() - 1
        });
        let stream = &mut self.0[index];
        let mut number = stream.unwrap(rtp.sequence_number);
        if !stream.can_go_on_with(number) {
            *stream = Stream { receiver_report: None, ..Stream::new(rtp) };
            number = stream.unwrap(rtp.sequence_number);
        }
        while stream.next_number() < number {
            stream.numbers.push_back(NOT_SENT);
        }
        stream.unwrapper.set_last(number);
        stream.numbers.push_back(transport_number);
    }

    /// Removes a stream's oldest packet, if it is this one.
    pub(super) fn forget(&mut self, ssrc: u32, transport_number: i64) {
        let Some(stream) = self.get(ssrc) else { return };
        // What was not sent before the next packet stays: a receiver report will count it as lost.
        let skipped = stream.numbers.iter().take_while(|&&number| number == NOT_SENT).count();
        if stream.numbers.get(skipped) == Some(&transport_number) {
            stream.numbers.drain(..=skipped);
            stream.first += skipped as i64 + 1;
        }
    }

    /// Resets how far feedback of each format has reported.
    pub(super) fn forget_feedback(&mut self) {
        for stream in &mut self.0 {
            stream.reported_before = None;
            (stream.receiver_report, stream.round_trip) = (None, None);
        }
    }
}
