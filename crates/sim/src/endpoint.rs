//! The two ends of a media flow: packets out, feedback in; packets in, feedback out.

use weir::controller::{Controller, Target};
use weir::feedback::{ArrivalRecorder, FeedbackReport, Outgoing, SendHistory, TwccHeader};
use weir::pacer::{Pacer, Release};
use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_wire::rtp::{ExtensionId, PayloadType, RtpHeader, TransportSequenceNumber};
use weir_wire::{rtp, twcc};

use crate::config::Flow;
use crate::source::MediaSource;

/// IPv4 and UDP headers.
const IP_UDP: u64 = 20 + 8;
/// Authentication tag of SRTP with its default cipher [RFC3711 §4.2].
const SRTP_TAG: u64 = 10;
/// SRTCP adds an index to the tag [RFC3711 §3.4].
const SRTCP_TRAILER: u64 = 4 + SRTP_TAG;
/// Largest RTP packet, header included: what WebRTC endpoints use.
const MAX_RTP_PACKET: u64 = 1_200;
/// Largest feedback packet.
const MAX_FEEDBACK: usize = 1_200;
/// RTP header with a one-byte header extension that carries the transport-wide sequence number.
const RTP_HEADER: usize = 12 + 8;
/// What every media packet takes besides its payload.
const OVERHEAD: u64 = IP_UDP + RTP_HEADER as u64 + SRTP_TAG;
/// Largest media packet on the wire.
const MAX_PACKET: u64 = IP_UDP + MAX_RTP_PACKET + SRTP_TAG;
const EXTENSION_ID: ExtensionId = ExtensionId::new(1).unwrap();
const PAYLOAD_TYPE: PayloadType = PayloadType::new(96).unwrap();
const VIDEO_CLOCK_HZ: f64 = 90_000.0;

/// The headers of a media packet as they go over the wire; its payload is only counted.
pub(crate) type MediaHeader = [u8; RTP_HEADER];

#[derive(Clone, Copy, Debug)]
struct Queued {
    rtp_timestamp: u32,
    marker: bool,
}

/// The sending end.
pub(crate) struct Sender {
    source: MediaSource,
    pacer: Pacer<Queued>,
    history: SendHistory,
    pub(crate) controller: Box<dyn Controller + Send>,
    target: Target,
    ssrc: u32,
    rtp_sequence_number: u16,
    /// What the last packet carried: padding has its timestamp.
    last: Queued,
}

impl Sender {
    pub(crate) fn new(flow: &Flow, index: usize, seed: Seed) -> Self {
        let controller = flow.algorithm.build(flow.limits);
        let target = controller.target();
        Self {
            source: MediaSource::new(flow.source, seed.stream(&format!("{}/source", flow.name))),
            pacer: Pacer::new(&target),
            history: SendHistory::default(),
            controller,
            target,
            ssrc: index as u32 + 1,
            rtp_sequence_number: 0,
            last: Queued { rtp_timestamp: 0, marker: false },
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Reads the controller's target again; returns the old bitrate if it changed.
    pub(crate) fn refresh_target(&mut self, now: Timestamp) -> Option<Target> {
        let target = self.controller.target();
        self.pacer.set_target(now, &target);
        let old = std::mem::replace(&mut self.target, target);
        (old.bitrate != target.bitrate).then_some(old)
    }

    /// Makes the frame that is due and puts its packets into the send queue. Returns the time until
    /// the next frame.
    pub(crate) fn make_frame(&mut self, now: Timestamp) -> TimeDelta {
        let (size, interval) = self.source.frame(now, self.target.bitrate);
        let rtp_timestamp = (now.as_secs_f64() * VIDEO_CLOCK_HZ) as u64 as u32;
        // A frame needs at least one packet with one byte of payload.
        let bytes = size.as_bytes().max(OVERHEAD + 1);
        let packets = bytes.div_ceil(MAX_PACKET);
        for index in 0..packets {
            // Equal sizes, the remainder spread over the first ones.
            let share = bytes / packets + u64::from(index < bytes % packets);
            let queued = Queued { rtp_timestamp, marker: index + 1 == packets };
            self.pacer.enqueue(DataSize::from_bytes(share), queued);
        }
        self.controller.on_media_queued(now, DataSize::from_bytes(bytes), self.pacer.queued());
        interval
    }

    pub(crate) fn next_send_time(&self) -> Option<Timestamp> {
        self.pacer.next_send_time()
    }

    /// The next packet, if one may leave now.
    pub(crate) fn send(&mut self, now: Timestamp) -> Option<(DataSize, MediaHeader)> {
        let Release { size, media, probe } = self.pacer.dequeue(now)?;
        let padding = media.is_none();
        let queued = media.unwrap_or(Queued { marker: false, ..self.last });
        self.last = queued;
        let outgoing = Outgoing { size, queued: self.pacer.queued(), probe, padding };
        let packet = self.history.on_packet_sent(now, outgoing);
        let header = RtpHeader {
            marker: queued.marker,
            payload_type: PAYLOAD_TYPE,
            sequence_number: self.rtp_sequence_number,
            timestamp: queued.rtp_timestamp,
            ssrc: self.ssrc,
            transport_sequence_number: Some((EXTENSION_ID, packet.sequence_number as u16)),
            abs_send_time: None,
        };
        self.rtp_sequence_number = self.rtp_sequence_number.wrapping_add(1);
        let mut bytes = [0; RTP_HEADER];
        header.emit(&mut bytes);
        self.controller.on_packet_sent(now, &packet);
        Some((size, bytes))
    }

    /// A feedback packet arrived; returns the report that the controller got, if it told anything.
    pub(crate) fn on_feedback(&mut self, now: Timestamp, bytes: &[u8]) -> Option<&FeedbackReport> {
        let view = twcc::View::parse(bytes).expect("the simulator's own receiver made this packet");
        let header = TwccHeader {
            reference_time: view.reference_time().units(),
            feedback_count: view.feedback_packet_count(),
        };
        let report = self.history.on_twcc(header, view.arrivals())?;
        self.controller.on_feedback(now, report);
        Some(report)
    }
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver {
    recorder: ArrivalRecorder,
    builder: twcc::Builder,
}

impl Receiver {
    pub(crate) fn new(index: usize) -> Self {
        let ssrc = index as u32 + 1;
        Self { recorder: ArrivalRecorder::default(), builder: twcc::Builder::new(ssrc, ssrc) }
    }

    pub(crate) fn on_packet(&mut self, now: Timestamp, header: &MediaHeader) {
        let view = rtp::View::parse(header).expect("the simulator's own sender made this header");
        let number = view
            .elements()
            .find(|element| element.id() == EXTENSION_ID)
            .and_then(|element| TransportSequenceNumber::parse(element.data()))
            .expect("the simulator's own sender numbers every packet");
        self.recorder.on_packet(now, number.sequence_number);
    }

    /// The feedback that is due: packets and their size on the wire.
    pub(crate) fn feedback(&mut self, now: Timestamp, mut send: impl FnMut(DataSize, &[u8])) {
        let batch = self.recorder.take_batch(now);
        if batch.is_empty() {
            return;
        }
        self.builder.build(batch, MAX_FEEDBACK, |bytes| {
            let size = bytes.len() as u64 + IP_UDP + SRTCP_TRAILER;
            send(DataSize::from_bytes(size), bytes);
        });
    }
}
