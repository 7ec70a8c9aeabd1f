//! The two ends of a media flow: packets out, feedback in; packets in, feedback out.

use std::ops::Range;

use weir::controller::{Controller, Settings, Target};
use weir::feedback::{Ecn, Outgoing, RtpNumber, SendHistory};
use weir::pacer::{Pacer, Release};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::seed::Stream;
use weir_wire::rtp::{self, AbsSendTime, RtpHeader};
use weir_wire::{header, report, vp8};

use crate::config::{FlowConfig, Media};
use crate::feedback::{Feedback, Heard, Limiter, Plan, Reporter, SenderReports};
use crate::flow::{Body, Change, End, Ends, Outbox, Packet, State};
use crate::media::{self, Ssrcs, VideoReceiver, VideoSender};
use crate::rtp_format::{
    EXTENSION_ID, IP_UDP, MAX_PACKET, OVERHEAD, PAYLOAD_TYPE, RTP_HEADER, SRTCP_TRAILER, SRTP_TAG,
    rtp_timestamp,
};
use crate::source::MediaSource;
use crate::trace::Video;

/// What waits in the send queue.
#[derive(Clone, Debug)]
enum Queued {
    /// A packet of a flow whose receiver only counts packets.
    Counted { rtp_timestamp: u32, marker: bool },
    /// A packet of a flow whose receiver shows the video.
    Video(media::Packet),
}

/// A media flow.
pub(crate) struct MediaEnds {
    sender: Sender,
    receiver: Receiver,
}

impl MediaEnds {
    pub(crate) fn new(flow: &FlowConfig, media: &Media, index: usize, seed: Seed) -> Self {
        let limiter = Limiter::new(media.algorithm, (index as u32 + 1, EXTENSION_ID));
        // Where the receiver watches the delay, the sender needs to hear of losses only.
        let plan = match limiter {
            Some(_) => &[(Timestamp::ZERO, Feedback::ReceiverReports)],
            None => media.feedback.as_slice(),
        };
        let mut sender = Sender::new(flow, media, index, plan, seed);
        sender.stamps = limiter.is_some();
        Self { sender, receiver: Receiver::new(flow, media, index, (plan, limiter), seed) }
    }
}

impl MediaEnds {
    /// What a browser's receiver learns by extended reports, the sender's model of reports says.
    fn tell_round_trip_time(&mut self) {
        let rtt = self.sender.video.as_ref().and_then(VideoSender::receiver_rtt);
        if let (Some(rtt), Some(video)) = (rtt, &mut self.receiver.video) {
            video.on_round_trip_time(rtt);
        }
    }
}

impl Ends for MediaEnds {
    fn next_deadline(&self, end: End) -> Option<Timestamp> {
        match end {
            End::Sender => self.sender.next_deadline(),
            End::Receiver => Some(self.receiver.next_deadline()),
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
            (End::Sender, Body::Rtcp(bytes)) => {
                self.sender.on_rtcp(now, bytes, out);
                self.tell_round_trip_time();
            }
            (End::Receiver, Body::Rtp(header)) => self.receiver.on_packet(now, header, packet, out),
            (End::Receiver, Body::RtpPayload(bytes)) => {
                self.receiver.on_packet(now, bytes, packet, out);
            }
            (End::Receiver, Body::Rtcp(bytes)) => self.receiver.on_rtcp(now, bytes),
            (end, body) => unreachable!("no {body:?} goes to the {end:?} of a media flow"),
        }
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate, out: &mut Outbox) {
        self.sender.controller.on_shared_rate(now, share);
        self.sender.refresh_target(now, out);
    }

    fn state(&self) -> State {
        let target = &self.sender.target;
        State {
            target: Some(target.bitrate),
            pacing_rate: Some(target.pacing_rate),
            congestion_window: target.window.map(|window| window.congestion_window),
        }
    }

    fn take_video(&mut self, is_last: bool) -> Option<Video> {
        self.receiver.video.as_mut().map(|video| video.take_noted(is_last))
    }
}

/// What the extension of an RTP header says of the packet's departure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Departure {
    /// The transport-wide sequence number.
    Number(u16),
    /// The absolute send time, for a receiver that estimates.
    Time(AbsSendTime),
}

impl Departure {
    pub(crate) fn write(self, header: &mut RtpHeader) {
        (header.transport_sequence_number, header.abs_send_time) = match self {
            Self::Number(number) => (Some((EXTENSION_ID, number)), None),
            Self::Time(time) => (None, Some((EXTENSION_ID, time))),
        };
    }
}

/// The way of packets from the pacer to the socket, one by one.
struct HandOver {
    /// What each takes on average, by an exponential distribution.
    mean: TimeDelta,
    stream: Stream,
    busy_until: Timestamp,
}

impl HandOver {
    fn begin(&mut self, now: Timestamp) {
        if self.mean > TimeDelta::ZERO {
            let factor = -libm::log(1.0 - self.stream.uniform());
            self.busy_until = now + TimeDelta::from_secs_f64(self.mean.as_secs_f64() * factor);
        }
    }
}

/// The sending end.
struct Sender {
    source: MediaSource,
    next_frame: Timestamp,
    hand_over: HandOver,
    pauses: Vec<Range<Timestamp>>,
    pacer: Pacer<Queued>,
    history: SendHistory,
    controller: Box<dyn Controller + Send>,
    target: Target,
    /// ECN bits of its packets.
    ecn: Ecn,
    ssrc: u32,
    /// Of the packets that are only counted.
    rtp_sequence_number: u16,
    /// The last packet's: padding has the same.
    rtp_timestamp: u32,
    video: Option<VideoSender>,
    /// What of a packet the controller is not told.
    uncounted: DataSize,
    sender_reports: Option<SenderReports>,
    /// Its packets say when they left in place of a transport-wide number.
    stamps: bool,
}

impl Sender {
    fn new(flow: &FlowConfig, media: &Media, index: usize, plan: &Plan, seed: Seed) -> Self {
        // Among flows of one sender the priority is the group's to apply.
        let priority = if media.sender.is_some() { 1.0 } else { media.settings.priority };
        let controller = media.algorithm.build(Settings { priority, ..media.settings });
        let target = controller.target();
        let ssrc = index as u32 + 1;
        Self {
            source: MediaSource::new(media.source, seed.stream(&format!("{}/source", flow.name))),
            next_frame: flow.start,
            hand_over: HandOver {
                mean: media.source.hand_over(),
                stream: seed.stream(&format!("{}/hand-over", flow.name)),
                busy_until: flow.start,
            },
            pauses: flow.pauses.clone(),
            pacer: Pacer::new(&target),
            history: SendHistory::default(),
            controller,
            target,
            ecn: media.algorithm.ecn_mode(media.settings.ecn).codepoint(),
            ssrc,
            rtp_sequence_number: 0,
            rtp_timestamp: 0,
            video: media.repair.map(|repair| {
                let chance = seed.stream(&format!("{}/rtcp/reports", flow.name));
                let browser = media.source.is_browser().then_some(chance);
                VideoSender::new(repair, Ssrcs::of(ssrc), browser)
            }),
            uncounted: if media.source.is_browser() {
                DataSize::from_bytes(SRTP_TAG)
            } else {
                DataSize::ZERO
            },
            sender_reports: SenderReports::new(
                flow.start,
                plan,
                ssrc,
                seed.stream(&format!("{}/rtcp/sender", flow.name)),
            ),
            stamps: false,
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let report = self.sender_reports.as_ref().map(SenderReports::next_deadline);
        let send = self.pacer.next_send_time().map(|time| time.max(self.hand_over.busy_until));
        let timers = [send, self.controller.next_timeout(), report];
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
        let mut rate = self.target.bitrate;
        let mut is_key_frame = false;
        if let Some(video) = &mut self.video {
            rate = video.media_rate(now, &self.target);
            is_key_frame = video.begin_frame(now);
        }
        if is_key_frame {
            self.source.begin_key_frame();
        }
        let share = self.target.source_bitrate / self.target.bitrate;
        let (size, interval) = self.source.frame(now, rate, share);
        self.next_frame = now + interval;
        let Some(size) = size else { return };
        let queued = self.pacer.queued();
        self.enqueue_frame(now, size, is_key_frame);
        self.after_enqueue(now, queued);
    }

    fn enqueue_frame(&mut self, now: Timestamp, size: DataSize, is_key_frame: bool) {
        // A frame needs at least one packet with what its payload begins with.
        let bytes = size.as_bytes().max(OVERHEAD + vp8::Descriptor::SIZE as u64);
        let packets = bytes.div_ceil(MAX_PACKET) as usize;
        // Equal sizes, the remainder spread over the first ones.
        let sizes = (0..packets).map(|index| {
            let more = u64::from((index as u64) < bytes % packets as u64);
            DataSize::from_bytes(bytes / packets as u64 + more)
        });
        let pacer = &mut self.pacer;
        if let Some(video) = &mut self.video {
            video.packetize(now, is_key_frame, sizes, |packet| {
                pacer.enqueue(packet.size, Queued::Video(packet));
            });
            return;
        }
        let rtp_timestamp = rtp_timestamp(now);
        for (index, size) in sizes.enumerate() {
            pacer.enqueue(size, Queued::Counted { rtp_timestamp, marker: index + 1 == packets });
        }
    }

    /// Tells the controller what was added to a send queue that held `before`.
    fn after_enqueue(&mut self, now: Timestamp, before: DataSize) {
        let queued = self.pacer.queued();
        self.controller.on_media_queued(now, queued.saturating_sub(before), queued);
    }

    /// The next packet, if one may leave now.
    fn send(&mut self, now: Timestamp) -> Option<Packet> {
        if now < self.hand_over.busy_until {
            return None;
        }
        let Release { size, media, probe } = self.pacer.dequeue(now)?;
        self.hand_over.begin(now);
        let padding = media.is_none();
        let content = media.unwrap_or_else(|| self.padding(now, size));
        let rtp = match &content {
            Queued::Counted { rtp_timestamp, .. } => {
                self.rtp_timestamp = *rtp_timestamp;
                RtpNumber { ssrc: self.ssrc, sequence_number: self.rtp_sequence_number }
            }
            Queued::Video(packet) => packet.rtp_number(),
        };
        let counted = size.saturating_sub(self.uncounted);
        let outgoing =
            Outgoing { size: counted, queued: self.pacer.queued(), probe, padding, rtp: Some(rtp) };
        let packet = self.history.on_packet_sent(now, outgoing);
        self.controller.on_packet_sent(now, &packet);
        if let Some(reports) = self.sender_reports.as_mut().filter(|_| rtp.ssrc == self.ssrc) {
            reports.on_packet_sent(size.saturating_sub(DataSize::from_bytes(OVERHEAD)));
        }
        let departure = if self.stamps {
            Departure::Time(AbsSendTime::from_nanos(now.as_nanos()))
        } else {
            Departure::Number(packet.sequence_number as u16)
        };
        let body = match (content, &mut self.video) {
            (Queued::Video(packet), Some(video)) => {
                let pacer = &mut self.pacer;
                video.send(now, packet, departure, |parity| {
                    pacer.enqueue(parity.size, Queued::Video(parity));
                })
            }
            (Queued::Counted { marker, .. }, None) => self.counted(marker, departure),
            (content, _) => unreachable!("a sender has packets of one sort: {content:?}"),
        };
        Some(Packet { size, ecn: self.ecn, body })
    }

    fn padding(&mut self, now: Timestamp, size: DataSize) -> Queued {
        match &mut self.video {
            Some(video) => Queued::Video(video.padding(now, size)),
            None => Queued::Counted { rtp_timestamp: self.rtp_timestamp, marker: false },
        }
    }

    fn counted(&mut self, marker: bool, departure: Departure) -> Body {
        let mut header = RtpHeader {
            marker,
            payload_type: PAYLOAD_TYPE,
            sequence_number: self.rtp_sequence_number,
            timestamp: self.rtp_timestamp,
            ssrc: self.ssrc,
            transport_sequence_number: None,
            abs_send_time: None,
        };
        departure.write(&mut header);
        self.rtp_sequence_number = self.rtp_sequence_number.wrapping_add(1);
        let mut bytes = [0; RTP_HEADER];
        header.emit(&mut bytes);
        Body::Rtp(bytes)
    }

    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8], out: &mut Outbox) {
        let packet =
            header::Packet::parse(bytes).expect("the simulator's own receiver made this packet");
        if let Some(video) = &mut self.video
            && let Some(packets) = video.on_request(now, self.target.bitrate, packet)
        {
            let queued = self.pacer.queued();
            for packet in packets {
                self.pacer.enqueue_urgent(packet.size, Queued::Video(packet));
            }
            self.after_enqueue(now, queued);
            self.refresh_target(now, out);
            return;
        }
        let heard = Heard::read(packet).expect("what is no request is feedback");
        if let Some(limit) = heard.limit() {
            self.controller.on_receiver_limit(now, Some(limit));
            return self.refresh_target(now, out);
        }
        let Some(report) = heard.join(now, &mut self.history) else { return };
        self.controller.on_feedback(now, report);
        out.rtt = report.rtt(now);
        let told = self.video.as_mut().and_then(|video| video.on_feedback(now, report));
        if let Some(rtt) = told.filter(|rtt| *rtt > TimeDelta::ZERO) {
            self.controller.on_round_trip_time(now, rtt);
        }
        self.refresh_target(now, out);
    }
}

/// The receiving end.
struct Receiver {
    reporter: Reporter,
    limiter: Option<Limiter>,
    video: Option<VideoReceiver>,
}

impl Receiver {
    fn new(
        flow: &FlowConfig,
        media: &Media,
        index: usize,
        (plan, limiter): (&Plan, Option<Limiter>),
        seed: Seed,
    ) -> Self {
        let ssrc = index as u32 + 1;
        let reporter = Reporter::new(
            flow.start,
            plan,
            media.feedback_interval,
            (ssrc, EXTENSION_ID),
            seed.stream(&format!("{}/rtcp/receiver", flow.name)),
        );
        let video = media.repair.map(|repair| VideoReceiver::new(repair, Ssrcs::of(ssrc)));
        Self { reporter, limiter, video }
    }

    fn next_deadline(&self) -> Timestamp {
        let limit = self.limiter.as_ref().and_then(Limiter::next_deadline);
        let video = self.video.as_ref().and_then(VideoReceiver::next_deadline);
        [limit, video].into_iter().flatten().fold(self.reporter.next_deadline(), Timestamp::min)
    }

    fn on_packet(&mut self, now: Timestamp, bytes: &[u8], packet: &Packet, out: &mut Outbox) {
        let view = rtp::View::parse(bytes).expect("the simulator's own sender made this header");
        self.reporter.on_packet(now, &view, packet.ecn);
        if let Some(limiter) = &mut self.limiter {
            limiter.on_packet(now, &view, packet.size, |bytes| out.packets.push(rtcp(bytes)));
        }
        if let Some(video) = &mut self.video {
            video.on_packet(now, &view, packet.size);
        }
    }

    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]) {
        let view = report::View::parse(bytes).expect("the simulator's own sender made this report");
        if let Some(info) = view.sender_info() {
            self.reporter.on_sender_report(now, info);
        }
    }

    fn on_deadline(&mut self, now: Timestamp, out: &mut Outbox) {
        if self.reporter.next_deadline() <= now {
            self.reporter.on_deadline(now, |bytes| out.packets.push(rtcp(bytes)));
        }
        if let Some(limiter) = &mut self.limiter {
            limiter.on_deadline(now, |bytes| out.packets.push(rtcp(bytes)));
        }
        if let Some(video) = &mut self.video {
            video.on_deadline(now, |bytes| out.packets.push(rtcp(bytes)));
        }
    }
}

/// A packet around RTCP.
fn rtcp(bytes: &[u8]) -> Packet {
    let size = DataSize::from_bytes(bytes.len() as u64 + IP_UDP + SRTCP_TRAILER);
    Packet { size, ecn: Ecn::NotEct, body: Body::Rtcp(bytes.to_vec()) }
}
