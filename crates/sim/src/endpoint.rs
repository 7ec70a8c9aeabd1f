//! The two ends of a media flow: packets out, feedback in; packets in, feedback out.

use std::ops::Range;

use weir::controller::{Controller, Target};
use weir::feedback::{Ecn, Outgoing, RtpNumber, SendHistory};
use weir::pacer::{Pacer, Release};
use weir::units::{DataSize, Timestamp};
use weir_net::Seed;
use weir_wire::header;
use weir_wire::report;
use weir_wire::rtp::{self, ExtensionId, PayloadType, RtpHeader};

use crate::config::{Flow, Media};
use crate::feedback::{Heard, Reporter, SenderReports};
use crate::flow::{Body, Change, End, Ends, Outbox, Packet, State};
use crate::source::MediaSource;

/// IPv4 and UDP headers.
const IP_UDP: u64 = 20 + 8;
/// Authentication tag of SRTP with its default cipher [RFC3711 §4.2].
const SRTP_TAG: u64 = 10;
/// SRTCP adds an index to the tag [RFC3711 §3.4].
const SRTCP_TRAILER: u64 = 4 + SRTP_TAG;
/// Largest RTP packet, header included: what WebRTC endpoints use.
const MAX_RTP_PACKET: u64 = 1_200;
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

/// A media flow.
pub(crate) struct MediaEnds {
    sender: Sender,
    receiver: Receiver,
}

impl MediaEnds {
    pub(crate) fn new(flow: &Flow, media: &Media, index: usize, seed: Seed) -> Self {
        let sender = Sender::new(flow, media, index, seed);
        Self { sender, receiver: Receiver::new(flow, media, index, seed) }
    }
}

impl Ends for MediaEnds {
    fn next_deadline(&self, end: End) -> Option<Timestamp> {
        match end {
            End::Sender => self.sender.next_deadline(),
            End::Receiver => Some(self.receiver.reporter.next_deadline()),
        }
    }

    fn on_deadline(&mut self, now: Timestamp, end: End, out: &mut Outbox) {
        match end {
            End::Sender => self.sender.on_deadline(now, out),
            End::Receiver => self.receiver.on_deadline(now, out),
        }
    }

    fn on_packet(&mut self, now: Timestamp, end: End, packet: &Packet, out: &mut Outbox) {
        match (end, &packet.body) {
            (End::Sender, Body::Rtcp(bytes)) => self.sender.on_rtcp(now, bytes, out),
            (End::Receiver, Body::Rtp(header)) => self.receiver.on_packet(now, header, packet.ecn),
            (End::Receiver, Body::Rtcp(bytes)) => self.receiver.on_rtcp(now, bytes),
            (End::Sender, body) => unreachable!("no {body:?} goes to a sender of media"),
        }
    }

    fn state(&self) -> State {
        let target = &self.sender.target;
        State {
            target: Some(target.bitrate),
            pacing_rate: Some(target.pacing_rate),
            congestion_window: target.window.map(|window| window.congestion_window),
        }
    }
}

/// The sending end.
struct Sender {
    source: MediaSource,
    next_frame: Timestamp,
    pauses: Vec<Range<Timestamp>>,
    pacer: Pacer<Queued>,
    history: SendHistory,
    controller: Box<dyn Controller + Send>,
    target: Target,
    /// ECN bits of its packets.
    ecn: Ecn,
    ssrc: u32,
    rtp_sequence_number: u16,
    /// What the last packet carried: padding has its timestamp.
    last: Queued,
    sender_reports: Option<SenderReports>,
}

impl Sender {
    fn new(flow: &Flow, media: &Media, index: usize, seed: Seed) -> Self {
        let controller = media.algorithm.build(media.settings);
        let target = controller.target();
        let ssrc = index as u32 + 1;
        Self {
            source: MediaSource::new(media.source, seed.stream(&format!("{}/source", flow.name))),
            next_frame: flow.start,
            pauses: flow.pauses.clone(),
            pacer: Pacer::new(&target),
            history: SendHistory::default(),
            controller,
            target,
            ecn: media.settings.ecn.codepoint(),
            ssrc,
            rtp_sequence_number: 0,
            last: Queued { rtp_timestamp: 0, marker: false },
            sender_reports: SenderReports::new(
                flow.start,
                &media.feedback,
                ssrc,
                seed.stream(&format!("{}/rtcp/sender", flow.name)),
            ),
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let report = self.sender_reports.as_ref().map(SenderReports::next_deadline);
        let timers = [self.pacer.next_send_time(), self.controller.next_timeout(), report];
        Some(timers.into_iter().flatten().fold(self.next_frame, Timestamp::min))
    }

    fn on_deadline(&mut self, now: Timestamp, out: &mut Outbox) {
        if self.next_frame <= now {
            self.make_frame(now);
            self.refresh_target(now, out);
        }
        if self.controller.next_timeout().is_some_and(|due| due <= now) {
            self.controller.on_timeout(now);
            self.refresh_target(now, out);
        }
        if let Some(reports) = &mut self.sender_reports {
            reports.on_deadline(now, rtp_timestamp(now), |bytes| out.packets.push(rtcp(bytes)));
        }
        while let Some(packet) = self.send(now) {
            out.packets.push(packet);
            self.refresh_target(now, out);
        }
    }

    /// Reads the controller's target again and notes a change.
    fn refresh_target(&mut self, now: Timestamp, out: &mut Outbox) {
        let target = self.controller.target();
        self.pacer.set_target(now, &target);
        let old = std::mem::replace(&mut self.target, target);
        if old.bitrate == target.bitrate {
            return;
        }
        let metrics = self.controller.metrics();
        out.changes.push(Change {
            from: old.bitrate,
            to: target.bitrate,
            reason: metrics.reason.as_str(),
            state: metrics.state,
            signals: metrics.signals.map(|(name, value)| (name.into(), value)),
        });
    }

    /// Makes the frame that is due and puts its packets into the send queue.
    fn make_frame(&mut self, now: Timestamp) {
        if let Some(pause) = self.pauses.iter().find(|pause| pause.contains(&now)) {
            self.next_frame = pause.end;
            return;
        }
        let (size, interval) = self.source.frame(now, self.target.bitrate);
        let rtp_timestamp = rtp_timestamp(now);
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
        self.next_frame = now + interval;
    }

    /// The next packet, if one may leave now.
    fn send(&mut self, now: Timestamp) -> Option<Packet> {
        let Release { size, media, probe } = self.pacer.dequeue(now)?;
        let padding = media.is_none();
        let queued = media.unwrap_or(Queued { marker: false, ..self.last });
        self.last = queued;
        let rtp = RtpNumber { ssrc: self.ssrc, sequence_number: self.rtp_sequence_number };
        let outgoing =
            Outgoing { size, queued: self.pacer.queued(), probe, padding, rtp: Some(rtp) };
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
        if let Some(reports) = &mut self.sender_reports {
            reports.on_packet_sent(size.saturating_sub(DataSize::from_bytes(OVERHEAD)));
        }
        Some(Packet { size, ecn: self.ecn, body: Body::Rtp(bytes) })
    }

    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8], out: &mut Outbox) {
        let packet =
            header::Packet::parse(bytes).expect("the simulator's own receiver made this packet");
        let heard = Heard::read(packet).expect("a receiver sends nothing but feedback");
        let Some(report) = heard.join(now, &mut self.history) else { return };
        self.controller.on_feedback(now, report);
        out.rtt = report.rtt(now);
        self.refresh_target(now, out);
    }
}

/// The receiving end.
#[derive(Debug)]
struct Receiver {
    reporter: Reporter,
}

impl Receiver {
    fn new(flow: &Flow, media: &Media, index: usize, seed: Seed) -> Self {
        let reporter = Reporter::new(
            flow.start,
            &media.feedback,
            media.feedback_interval,
            (index as u32 + 1, EXTENSION_ID),
            seed.stream(&format!("{}/rtcp/receiver", flow.name)),
        );
        Self { reporter }
    }

    fn on_packet(&mut self, now: Timestamp, header: &MediaHeader, ecn: Ecn) {
        let view = rtp::View::parse(header).expect("the simulator's own sender made this header");
        self.reporter.on_packet(now, &view, ecn);
    }

    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]) {
        let view = report::View::parse(bytes).expect("the simulator's own sender made this report");
        if let Some(info) = view.sender_info() {
            self.reporter.on_sender_report(now, info);
        }
    }

    fn on_deadline(&mut self, now: Timestamp, out: &mut Outbox) {
        self.reporter.on_deadline(now, |bytes| out.packets.push(rtcp(bytes)));
    }
}

/// A packet around RTCP.
fn rtcp(bytes: &[u8]) -> Packet {
    let size = DataSize::from_bytes(bytes.len() as u64 + IP_UDP + SRTCP_TRAILER);
    Packet { size, ecn: Ecn::NotEct, body: Body::Rtcp(bytes.to_vec()) }
}

/// The video clock: 32 bits, which wrap.
fn rtp_timestamp(now: Timestamp) -> u32 {
    (now.as_secs_f64() * VIDEO_CLOCK_HZ) as u64 as u32
}
