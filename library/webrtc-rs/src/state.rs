//! The controlled stream: its queue, its controller, and how its packets leave.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use rtc_interceptor::{AttributedPacket, Packet, StreamInfo, TaggedPacket};
use rtc_shared::TransportContext;
use rtc_shared::marshal::MarshalSize;
use weir::controller::Controller;
use weir::feedback::RtpNumber;
use weir::media_sender::MediaSender;
use weir::units::{DataSize, Timestamp};
use weir_rtcp::{FeedbackInput, Message};

use crate::{padding, since};

const TRANSPORT_WIDE: &str =
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/// IPv4, UDP, and the authentication tag of SRTP.
const OVERHEAD_BYTES: usize = 20 + 8 + 10;
/// Bytes before the payload of a repeat: the number of the packet that it repeats [RFC4588 §4].
///
/// [RFC4588 §4]: https://www.rfc-editor.org/rfc/rfc4588#section-4
const ORIGINAL_BYTES: usize = 2;

/// What was agreed for the controlled stream.
#[derive(Clone, Copy)]
struct Stream {
    ssrc: u32,
    repeats_ssrc: u32,
    repeats_payload_type: u8,
    /// Id of the transport-wide number; `None` if feedback is of RFC 8888.
    number_id: Option<u8>,
}

/// A packet in the queue.
pub(crate) struct Queued {
    message: TaggedPacket,
    /// The number of the packet that it repeats.
    repeats: Option<u16>,
}

pub(crate) struct State {
    origin: Instant,
    pub(crate) media: MediaSender<Queued>,
    feedback: FeedbackInput,
    stream: Option<Stream>,
    /// The packets of a frame whose last one has not come.
    frame: Vec<(DataSize, Queued)>,
    /// The numbers of packets whose repeats wait.
    waiting: BTreeSet<u16>,
    /// Repeats and padding share a stream, so their numbers are given here.
    next_repeat: u16,
    /// RTP timestamp of the newest frame.
    timestamp: u32,
}

impl State {
    pub(crate) fn new(origin: Instant, controller: Box<dyn Controller + Send>) -> Self {
        Self {
            origin,
            media: MediaSender::new(controller),
            feedback: FeedbackInput::default(),
            stream: None,
            frame: Vec::new(),
            waiting: BTreeSet::new(),
            next_repeat: 0,
            timestamp: 0,
        }
    }

    pub(crate) fn time(&self, now: Instant) -> Timestamp {
        since(self.origin, now)
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.stream.is_some()
    }

    /// Takes a stream if there is none yet and its peer has agreed to what is needed.
    pub(crate) fn attach(&mut self, info: &StreamInfo) {
        let extensions = info.rtp_header_extensions.iter();
        let number = extensions.filter(|one| one.uri == TRANSPORT_WIDE).map(|one| one.id).next();
        let number_id = number.and_then(|id| u8::try_from(id).ok());
        let mut has_feedback = number_id.is_some();
        for feedback in &info.rtcp_feedback {
            has_feedback |= feedback.typ == "ack" && feedback.parameter == "ccfb";
        }
        if self.stream.is_some() || !has_feedback {
            return;
        }
        if let (Some(repeats_ssrc), Some(repeats_payload_type)) =
            (info.ssrc_rtx, info.payload_type_rtx)
        {
            let stream = Stream { ssrc: info.ssrc, repeats_ssrc, repeats_payload_type, number_id };
            self.media.set_padding_size(size_of(&stream.padding(0)));
            self.stream = Some(stream);
        }
    }

    pub(crate) fn detach(&mut self, info: &StreamInfo) {
        if self.stream.is_some_and(|stream| stream.ssrc == info.ssrc) {
            self.stream = None;
            // Time does not go back in the sender.
            self.clear_queue(Timestamp::ZERO);
        }
    }

    pub(crate) fn clear_queue(&mut self, now: Timestamp) {
        self.frame.clear();
        self.waiting.clear();
        self.media.clear_queue(now);
    }

    /// Queues a packet of the controlled stream, and gives back others.
    pub(crate) fn take(&mut self, mut message: TaggedPacket) -> Option<TaggedPacket> {
        let Some(stream) = self.stream else { return Some(message) };
        let now = self.time(message.now);
        let Packet::Rtp(packet) = &mut message.message.packet else { return Some(message) };
        let is_media = packet.header.ssrc == stream.ssrc;
        if !is_media && packet.header.ssrc != stream.repeats_ssrc {
            return Some(message);
        }
        stream.number(packet, 0);
        let (size, is_last) = (size_of(packet), packet.header.marker);
        if is_media {
            // A forwarded frame may have lost its last packet.
            if packet.header.timestamp != self.timestamp && !self.frame.is_empty() {
                self.media.enqueue(now, self.frame.drain(..));
            }
            self.timestamp = packet.header.timestamp;
            self.frame.push((size, Queued { message, repeats: None }));
            // The controller looks at the queue once per call, so a frame comes whole.
            if is_last {
                self.media.enqueue(now, self.frame.drain(..));
            }
            return None;
        }
        let original = packet.payload.get(..ORIGINAL_BYTES)?;
        let original = u16::from_be_bytes([original[0], original[1]]);
        if self.waiting.insert(original) {
            let queued = Queued { message, repeats: Some(original) };
            self.media.enqueue_urgent(now, [(size, queued)]);
        }
        None
    }

    pub(crate) fn on_rtcp(&mut self, now: Instant, bytes: &[u8]) {
        let now = self.time(now);
        for message in weir_rtcp::messages(bytes).flatten() {
            // The times of webrtc-rs's own sender reports are unknown here, so a report tells
            // nothing. It must not count as feedback in another format while nothing is sent.
            if matches!(message, Message::Report(_)) {
                continue;
            }
            self.feedback.on_message(now, &message, &mut self.media, |_| None);
        }
    }

    /// Handles timeouts, and lets go what may leave.
    pub(crate) fn release(&mut self, instant: Instant, outbound: &mut VecDeque<TaggedPacket>) {
        let now = self.time(instant);
        self.media.on_timeout(now);
        let Some(stream) = self.stream else { return };
        let (next_repeat, timestamp) = (&mut self.next_repeat, self.timestamp);
        while let Some(packet) = self.media.next_packet_with(now, |release| {
            let mut queued = release.media.unwrap_or_else(|| stream.padding_at(instant, timestamp));
            let rtp = renumber(&mut queued.message, stream, next_repeat);
            (queued, rtp)
        }) {
            let number = packet.sent.transport_sequence_number();
            let Queued { mut message, repeats } = packet.content;
            if let Some(original) = repeats {
                self.waiting.remove(&original);
            }
            if let Packet::Rtp(packet) = &mut message.message.packet {
                stream.number(packet, number);
            }
            // The parts of the chain that are nearer to the network see when it left.
            message.now = instant;
            outbound.push_back(message);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        // Without a stream nothing may leave.
        self.stream?;
        self.media.next_timeout()?.to_instant(self.origin)
    }
}

impl Stream {
    /// Writes the transport-wide number.
    fn number(&self, packet: &mut rtc_rtp::packet::Packet, number: u16) {
        let Some(id) = self.number_id else { return };
        let bytes = Bytes::copy_from_slice(&number.to_be_bytes());
        // A packet with extensions of another profile stays without: nobody reports on it.
        let _ = packet.header.set_extension(id, bytes);
    }

    fn padding(&self, timestamp: u32) -> rtc_rtp::packet::Packet {
        let mut packet = padding::packet(self.repeats_ssrc, self.repeats_payload_type, timestamp);
        self.number(&mut packet, 0);
        packet
    }

    fn padding_at(&self, now: Instant, timestamp: u32) -> Queued {
        let message = AttributedPacket::new(Packet::Rtp(self.padding(timestamp)));
        let message = TaggedPacket { now, transport: TransportContext::default(), message };
        Queued { message, repeats: None }
    }
}

/// Gives a packet of the stream of repeats its number. Returns what identifies the packet.
fn renumber(message: &mut TaggedPacket, stream: Stream, next: &mut u16) -> Option<RtpNumber> {
    let Packet::Rtp(packet) = &mut message.message.packet else { return None };
    let header = &mut packet.header;
    if header.ssrc == stream.repeats_ssrc {
        header.sequence_number = *next;
        *next = next.wrapping_add(1);
    }
    Some(RtpNumber { ssrc: header.ssrc, sequence_number: header.sequence_number })
}

fn size_of(packet: &rtc_rtp::packet::Packet) -> DataSize {
    DataSize::from_bytes((packet.marshal_size() + OVERHEAD_BYTES) as u64)
}
