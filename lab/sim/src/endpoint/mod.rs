//! The two ends of a media flow. The sender sends packets and takes feedback; the receiver takes
//! packets and sends feedback.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use weir::controller::Controller;
use weir::feedback::{Ecn, RtpNumber};
use weir::media_sender::{MediaSender, PacedPacket, TargetChange};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::RembReporter;
use weir_net::seed::Stream;
use weir_net::{Schedule, Seed};
use weir_rtcp::{Feedback, Message, SenderReports};
use weir_wire::rtp::{self, AbsSendTime, RtpHeader};
use weir_wire::{header, report, vp8};

use crate::config::{FlowConfig, Media, Source};
use crate::feedback::{Plan, PlannedReporter, sender_reports};
use crate::flow::{Body, Change, End, Ends, Outbox, Packet, SenderState};
use crate::media::{self, Ssrcs, VideoReceiver, VideoSender, Vmaf};
use crate::padded::Padded;
use crate::receiver_clock::ReceiverClock;
use crate::rtp_format::{
    Departure, EXTENSION_ID, IP_UDP, MAX_PACKET, OVERHEAD, PAYLOAD_TYPE, RTP_HEADER, SRTCP_TRAILER,
    SRTP_TAG, rtp_timestamp,
};
use crate::source::{self, MediaSource};
use crate::trace::{Seen, Video};

/// SSRC of the media of the flow with this index.
fn ssrc_of(index: usize) -> u32 {
    index as u32 + 1
}

/// Content of a packet in the send queue.
#[derive(Clone, Debug)]
enum Queued {
    /// A packet for a receiver that only counts packets.
    Counted { rtp_timestamp: u32, marker: bool },
    /// A packet for a receiver that plays the video.
    Video(media::Packet),
}

/// A media flow.
pub(crate) struct MediaEnds {
    sender: Sender,
    receiver: Receiver,
}

impl MediaEnds {
    pub(crate) fn new(flow: &FlowConfig, media: &Media, index: usize, seed: Seed) -> Self {
        let ssrc = ssrc_of(index);
        let remb = remb_reporter(media, ssrc);
        // If the receiver estimates the rate from delay, the sender only needs reports of losses.
        let plan = match remb {
            Some(_) => &[(Timestamp::ZERO, Feedback::ReceiverReports)],
            None => media.feedback.as_slice(),
        };
        let mut sender = Sender::new(flow, media, index, plan, seed);
        sender.sends_departure_times = remb.is_some();
        Self { sender, receiver: Receiver::new(flow, media, index, (plan, remb), seed) }
    }
}

/// The half of the controller that runs at the receiver, if it has one.
fn remb_reporter(media: &Media, ssrc: u32) -> Option<RembReporter> {
    let estimator = media.controller.build_receiver();
    estimator.map(|half| RembReporter::new(half, ssrc, EXTENSION_ID, &[ssrc]))
}

impl MediaEnds {
    /// Passes the round-trip time to a browser's receiver. A real receiver gets it from extended
    /// reports. Here the value comes from the sender's model of reports.
    fn pass_on_round_trip_time(&mut self, now: Timestamp) {
        let rtt = self.sender.video.as_ref().and_then(VideoSender::receiver_rtt);
        if let (Some(rtt), Some(video)) = (rtt, &mut self.receiver.video) {
            video.on_round_trip_time(now, rtt);
        }
    }
}

impl MediaEnds {
    /// Tells the receiver how the picture made now looks. In a call both ends' pictures are
    /// compared afterwards.
    fn pass_on_judgement(&mut self, now: Timestamp) {
        if let (Some(vmaf), Some(video)) = (self.sender.judged.take(), &mut self.receiver.video) {
            video.on_judged(now, vmaf);
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
            End::Sender => {
                self.sender.on_deadline(now, out);
                self.pass_on_judgement(now);
            }
            End::Receiver => self.receiver.on_deadline(now, out),
        }
    }

    fn on_packet(&mut self, now: Timestamp, end: End, packet: &Packet, out: &mut Outbox) {
        match (end, &packet.body) {
            (End::Sender, Body::Rtcp(bytes)) => {
                self.sender.on_rtcp(now, bytes, out);
                self.pass_on_round_trip_time(now);
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
        self.sender.media.on_shared_rate(now, share);
        self.sender.note_change(out);
    }

    fn state(&self) -> SenderState {
        let target = self.sender.media.target();
        SenderState {
            target: Some(target.bitrate),
            pacing_rate: Some(target.pacing_rate),
            congestion_window: target.window.map(|window| window.congestion_window),
            send_queue: Some(self.sender.media.queued()),
        }
    }

    fn take_video(&mut self, _now: Timestamp, is_last: bool) -> Option<Video> {
        let video = self.receiver.video.as_mut()?;
        if is_last {
            video.finish(self.sender.last_frame);
        }
        Some(video.take_noted())
    }

    fn take_seen(&mut self) -> Option<Seen> {
        self.receiver.video.as_mut()?.take_seen()
    }
}

/// Model of the time that a browser takes to pass packets from the pacer to the socket, one by one.
struct HandOver {
    /// Mean time of one packet. The times have an exponential distribution.
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
    source_limit: Option<Schedule>,
    is_pipeline: bool,
    next_frame: Timestamp,
    /// When the source last had a frame, also one that it skipped.
    last_frame: Timestamp,
    hand_over: HandOver,
    pauses: Vec<Range<Timestamp>>,
    /// The changes of route to come, in order.
    route_changes: VecDeque<Timestamp>,
    media: MediaSender<Queued>,
    /// ECN codepoint of its packets.
    ecn: Ecn,
    ssrc: u32,
    /// RTP sequence number of the next [`Queued::Counted`] packet.
    rtp_sequence_number: u16,
    /// RTP timestamp of the last packet. Padding repeats it.
    rtp_timestamp: u32,
    video: Option<VideoSender>,
    /// How the picture made last looks, until the receiver is told.
    judged: Option<Vmaf>,
    sender_reports: Option<SenderReports>,
    /// Whether its packets carry their departure time instead of a transport-wide sequence number.
    sends_departure_times: bool,
}

impl Sender {
    fn new(flow: &FlowConfig, media: &Media, index: usize, plan: &Plan, seed: Seed) -> Self {
        // For coupled flows, the group applies the priorities.
        let priority = if media.sender.is_some() { 1.0 } else { media.settings.priority };
        let controller = media.controller.build(media.settings.with_priority(priority));
        let controller: Box<dyn Controller + Send> = match media.source {
            Source::Encoder { video, .. } if video.layers > 1 => {
                Box::new(Padded { controller, up_to: source::padding(video) })
            }
            _ => controller,
        };
        let mut media_sender = MediaSender::new(controller);
        if media.source.is_browser() {
            media_sender.set_uncounted(DataSize::from_bytes(SRTP_TAG));
            media_sender.set_leads_probes(true);
        }
        let ssrc = ssrc_of(index);
        Self {
            source: MediaSource::new(media.source, seed.stream(&format!("{}/source", flow.name))),
            source_limit: media.source_limit.clone(),
            is_pipeline: media.source.is_pipeline(),
            next_frame: flow.start,
            last_frame: flow.start,
            hand_over: HandOver {
                mean: media.source.hand_over(),
                stream: seed.stream(&format!("{}/hand-over", flow.name)),
                busy_until: flow.start,
            },
            pauses: flow.pauses.clone(),
            route_changes: media.route_changes.iter().copied().collect(),
            media: media_sender,
            ecn: media.controller.ecn_mode(media.settings.ecn).codepoint(),
            ssrc,
            rtp_sequence_number: 0,
            rtp_timestamp: 0,
            video: media.repair.map(|repair| {
                let chance = seed.stream(&format!("{}/rtcp/reports", flow.name));
                let browser = media.source.is_browser().then_some(chance);
                VideoSender::new(repair, Ssrcs::of(ssrc), browser)
            }),
            judged: None,
            sender_reports: sender_reports(
                flow.start,
                plan,
                ssrc,
                seed.stream(&format!("{}/rtcp/sender", flow.name)),
            ),
            sends_departure_times: false,
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let report = self.sender_reports.as_ref().map(SenderReports::next_timeout);
        let send = self.media.next_send_time().map(|time| time.max(self.hand_over.busy_until));
        let route = self.route_changes.front().copied();
        let timers = [send, self.media.controller().next_timeout(), report, route];
        Some(earliest(self.next_frame, timers))
    }

    fn on_deadline(&mut self, now: Timestamp, out: &mut Outbox) {
        if self.route_changes.pop_front_if(|at| *at <= now).is_some() {
            self.media.on_route_change(now);
            self.note_change(out);
        }
        if self.next_frame <= now {
            self.make_frame(now);
            self.note_change(out);
        }
        self.media.on_timeout(now);
        self.note_change(out);
        if let Some(reports) = &mut self.sender_reports
            && let Some(report) = reports.on_timeout(now, rtp_timestamp(now))
        {
            out.packets.push(rtcp(&report));
        }
        while let Some(packet) = self.send(now) {
            out.packets.push(packet);
            self.note_change(out);
        }
    }

    /// Notes a change of the controller's target bitrate.
    fn note_change(&mut self, out: &mut Outbox) {
        let Some(TargetChange { from, to, metrics, .. }) = self.media.take_change() else { return };
        let signals = metrics.signals.iter();
        let signals = signals.map(|&(name, value)| (name.into(), value)).collect();
        let (reason, state) = (metrics.reason.as_str(), metrics.state);
        out.changes.push(Change { from, to, reason, state, signals });
    }

    /// Produces the frame that is due and puts its packets into the send queue.
    fn make_frame(&mut self, now: Timestamp) {
        if let Some(pause) = self.pauses.iter().find(|pause| pause.contains(&now)) {
            self.next_frame = pause.end;
            return;
        }
        self.last_frame = now;
        let target = *self.media.target();
        let queued = self.media.queued();
        if queued > target.pacing_rate * source::MAX_QUEUE
            && let Some(interval) = self.source.skip()
        {
            self.next_frame = now + interval;
            return;
        }
        let mut rate = target.bitrate;
        let mut is_key_frame = false;
        if let Some(video) = &mut self.video {
            rate = video.media_rate(now, &target);
            is_key_frame = video.begin_frame(now);
        }
        if is_key_frame {
            self.source.begin_key_frame();
        }
        if let Some(limit) = &self.source_limit {
            rate = rate.min(limit.rate(now));
        }
        if self.is_pipeline {
            rate = source::rate_beside(&target, queued, rate.min(target.source_bitrate));
        }
        let share = target.source_bitrate / target.bitrate;
        let (size, interval) = self.source.frame(now, rate, share);
        self.next_frame = now + interval;
        if let Some(size) = size {
            self.enqueue_frame(now, size, is_key_frame);
        }
    }

    fn enqueue_frame(&mut self, now: Timestamp, size: DataSize, is_key_frame: bool) {
        // A frame needs at least one packet, which contains at least the VP8 payload descriptor.
        let bytes = size.as_bytes().max(OVERHEAD + vp8::Descriptor::SIZE as u64);
        let packets = bytes.div_ceil(MAX_PACKET) as usize;
        // Packets of equal size; the first ones take one byte more each until the remainder is used
        // up.
        let sizes = (0..packets).map(|index| {
            let more = u64::from((index as u64) < bytes % packets as u64);
            DataSize::from_bytes(bytes / packets as u64 + more)
        });
        let headers = packets as u64 * OVERHEAD;
        self.judged = self.source.judge(now, DataSize::from_bytes(bytes.saturating_sub(headers)));
        if let Some(video) = &mut self.video {
            let mut frame = Vec::with_capacity(packets);
            video.packetize(now, is_key_frame, sizes, |packet| {
                frame.push((packet.size, Queued::Video(packet)));
            });
            self.media.enqueue(now, frame);
            return;
        }
        let rtp_timestamp = rtp_timestamp(now);
        let frame = sizes.enumerate().map(|(index, size)| {
            (size, Queued::Counted { rtp_timestamp, marker: index + 1 == packets })
        });
        self.media.enqueue(now, frame);
    }

    /// Returns the next packet if one may leave now.
    fn send(&mut self, now: Timestamp) -> Option<Packet> {
        if now < self.hand_over.busy_until {
            return None;
        }
        let Self { media, video, ssrc, rtp_sequence_number, rtp_timestamp, .. } = self;
        let packet = media.next_packet_with(now, |release| {
            let content = release.media.unwrap_or_else(|| match video {
                Some(video) => Queued::Video(video.padding(now, release.size)),
                None => Queued::Counted { rtp_timestamp: *rtp_timestamp, marker: false },
            });
            let rtp = match &content {
                Queued::Counted { rtp_timestamp: of_frame, .. } => {
                    *rtp_timestamp = *of_frame;
                    RtpNumber { ssrc: *ssrc, sequence_number: *rtp_sequence_number }
                }
                Queued::Video(packet) => packet.rtp_number(),
            };
            ((content, rtp), Some(rtp))
        })?;
        self.hand_over.begin(now);
        let PacedPacket { content: (content, rtp), size, sent, .. } = packet;
        if let Some(reports) = self.sender_reports.as_mut().filter(|_| rtp.ssrc == self.ssrc) {
            reports.on_packet_sent(size.saturating_sub(DataSize::from_bytes(OVERHEAD)));
        }
        let departure = if self.sends_departure_times {
            Departure::Time(AbsSendTime::from_nanos(now.as_nanos()))
        } else {
            Departure::Number(sent.transport_sequence_number())
        };
        let body = match (content, &mut self.video) {
            (Queued::Video(packet), Some(video)) => {
                let media = &mut self.media;
                video.send(now, packet, departure, |parity| {
                    media.enqueue_parity(parity.size, Queued::Video(parity));
                })
            }
            (Queued::Counted { marker, .. }, None) => self.counted(marker, departure),
            (content, _) => unreachable!("a sender has packets of one sort: {content:?}"),
        };
        Some(Packet { size, ecn: self.ecn, body })
    }

    fn counted(&mut self, marker: bool, departure: Departure) -> Body {
        let (number, timestamp) = (self.rtp_sequence_number, self.rtp_timestamp);
        let mut header =
            RtpHeader::new(self.ssrc, PAYLOAD_TYPE, number, timestamp).with_marker(marker);
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
            && let Some(packets) = video.on_request(now, self.media.target().bitrate, packet)
        {
            let packets = packets.into_iter().map(|packet| (packet.size, Queued::Video(packet)));
            self.media.enqueue_urgent(now, packets);
            return self.note_change(out);
        }
        let message = Message::read(packet).expect("what is no request is feedback");
        if let Some(limit) = message.limit() {
            self.media.on_receiver_limit(now, Some(limit));
            return self.note_change(out);
        }
        let video = &mut self.video;
        let report = self.media.on_feedback_with(
            now,
            |history| message.join(now, history),
            |report| {
                let rtt = video.as_mut()?.on_feedback(now, report)?;
                Some(rtt).filter(|rtt| *rtt > TimeDelta::ZERO)
            },
        );
        if let Some(report) = report {
            out.rtt = report.rtt(now);
        }
        self.note_change(out);
    }
}

/// The receiving end.
struct Receiver {
    /// Its clock. Feedback is made by it; the video is played by the simulation's time.
    clock: ReceiverClock,
    /// How often its program has begun anew.
    beginnings: usize,
    /// What a new program needs.
    plan: Vec<(Timestamp, Feedback)>,
    media: Media,
    ssrc: u32,
    timing: Stream,
    reporter: PlannedReporter,
    remb: Option<RembReporter>,
    video: Option<VideoReceiver>,
}

impl Receiver {
    fn new(
        flow: &FlowConfig,
        media: &Media,
        index: usize,
        (plan, remb): (&Plan, Option<RembReporter>),
        seed: Seed,
    ) -> Self {
        let ssrc = ssrc_of(index);
        let ssrcs = Ssrcs::of(ssrc);
        let clock = media.receiver_clock.clone();
        let timing = seed.stream(&format!("{}/rtcp/receiver", flow.name));
        let reporter = reporter(&clock, flow.start, plan, media, ssrcs, timing.clone());
        let mut video = media.repair.map(|repair| VideoReceiver::new(repair, ssrcs));
        if let Some(video) = video.as_mut().filter(|_| flow.quality) {
            video.play_as_browser(flow.start);
        }
        let beginnings = clock.beginnings(flow.start);
        let (plan, media) = (plan.to_vec(), media.clone());
        Self { clock, beginnings, plan, media, ssrc, timing, reporter, remb, video }
    }

    /// A program that restarts knows nothing of what arrived before.
    fn begin_anew(&mut self, now: Timestamp) {
        let beginnings = self.clock.beginnings(now);
        if beginnings == self.beginnings {
            return;
        }
        self.beginnings = beginnings;
        let (ssrcs, timing) = (Ssrcs::of(self.ssrc), self.timing.clone());
        self.reporter = reporter(&self.clock, now, &self.plan, &self.media, ssrcs, timing);
        self.remb = remb_reporter(&self.media, self.ssrc);
    }

    fn next_deadline(&self) -> Timestamp {
        let limit = self.remb.as_ref().and_then(RembReporter::next_timeout);
        let limit = limit.map(|local| self.clock.when(local, self.beginnings));
        let video = self.video.as_ref().and_then(VideoReceiver::next_deadline);
        let report = self.clock.when(self.reporter.next_deadline(), self.beginnings);
        earliest(report, [limit, video])
    }

    fn on_packet(&mut self, now: Timestamp, bytes: &[u8], packet: &Packet, out: &mut Outbox) {
        let view = rtp::View::parse(bytes).expect("the simulator's own sender made this header");
        self.begin_anew(now);
        let local = self.clock.at(now);
        self.reporter.on_packet(local, &view, packet.ecn);
        if let Some(remb) = &mut self.remb {
            let limit = remb.on_packet(local, &view, packet.size);
            out.packets.extend(limit.map(rtcp));
        }
        if let Some(video) = &mut self.video {
            video.on_packet(now, &view, packet.size);
        }
    }

    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]) {
        let view = report::View::parse(bytes).expect("the simulator's own sender made this report");
        self.begin_anew(now);
        if let Some(info) = view.sender_info() {
            self.reporter.on_sender_report(self.clock.at(now), info);
        }
    }

    fn on_deadline(&mut self, now: Timestamp, out: &mut Outbox) {
        self.begin_anew(now);
        let local = self.clock.at(now);
        if self.reporter.next_deadline() <= local {
            self.reporter.on_deadline(local);
            while let Some(bytes) = self.reporter.next_rtcp() {
                out.packets.push(rtcp(bytes));
            }
        }
        if let Some(remb) = &mut self.remb {
            out.packets.extend(remb.on_timeout(local).map(rtcp));
        }
        if let Some(video) = &mut self.video {
            video.on_deadline(now, |bytes| out.packets.push(rtcp(bytes)));
        }
    }
}

/// What makes the feedback of a receiver whose program begins now.
fn reporter(
    clock: &ReceiverClock,
    now: Timestamp,
    plan: &Plan,
    media: &Media,
    ssrcs: Ssrcs,
    timing: Stream,
) -> PlannedReporter {
    let plan = plan
        .iter()
        .filter(|(from, _)| *from <= now || clock.beginnings(*from) == clock.beginnings(now));
    let plan: Vec<_> = plan.map(|&(from, format)| (clock.at(from.max(now)), format)).collect();
    PlannedReporter::new(clock.at(now), &plan, media.feedback_interval, ssrcs, timing)
}

/// The earliest of a deadline and of timers, some of which may be off.
fn earliest<const TIMERS: usize>(
    deadline: Timestamp,
    timers: [Option<Timestamp>; TIMERS],
) -> Timestamp {
    timers.into_iter().fold(deadline, |least, timer| least.min(timer.unwrap_or(Timestamp::MAX)))
}

/// Wraps RTCP bytes into a packet.
fn rtcp(bytes: &[u8]) -> Packet {
    let size = DataSize::from_bytes(bytes.len() as u64 + IP_UDP + SRTCP_TRAILER);
    Packet { size, ecn: Ecn::NotEct, body: Body::Rtcp(bytes.to_vec()) }
}
