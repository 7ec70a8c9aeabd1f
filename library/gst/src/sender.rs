//! The sender without its element: packets, events and RTCP in; packets, events and a target out.

use std::collections::VecDeque;

use weir::controller::{Controller, Metrics, Settings, Target};
use weir::feedback::{FeedbackReport, LossCounts, RtpNumber, TwccHeader};
use weir::media_sender::TargetChange;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{ControllerFactory, MediaSender, RateLimits};
use weir_rtcp::{FeedbackInput, FeedbackKind, Message, compact_ntp_to_time, messages};
use weir_wire::twcc::{ReferenceTime, TICK_US};

use crate::key_frames::KeyFrameRequests;
use crate::retransmissions::{MAX_REPAIR_TIME, Retransmissions};
use crate::streams::Streams;

/// Frames are discarded while the queue would take longer than this to leave.
const MAX_QUEUE: TimeDelta = TimeDelta::from_secs(2);
/// After that, frames are accepted again once the queue is this short.
const ACCEPTED_QUEUE: TimeDelta = TimeDelta::from_secs(1);

/// Unit of arrival times in transport-wide feedback.
const TICK_NS: u64 = TICK_US as u64 * 1_000;
/// Unit of the reference time, from which the arrival times count.
const UNIT_NS: u64 = ReferenceTime::UNIT_US as u64 * 1_000;

/// What the element does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Push this packet.
    Packet(gst::Buffer),
    /// Push this event.
    Event(gst::Event),
    /// Wait until this time, or until something else happens.
    Wait(Option<Timestamp>),
}

/// What has changed at the sender, for the application.
#[derive(Debug, Default)]
pub(crate) struct Update {
    /// The change of the target bitrate.
    pub(crate) change: Option<TargetChange>,
    /// Frames were discarded, so that the following ones cannot be decoded.
    pub(crate) wants_key_frame: bool,
    /// This packet should be sent again, so that the SSRC of its retransmissions becomes known.
    pub(crate) wants_retransmission: Option<RtpNumber>,
}

/// Numbers since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Packets that left, padding included.
    pub(crate) packets_sent: u64,
    /// Their bytes, with the layers below.
    pub(crate) bytes_sent: u64,
    /// Padding packets that left.
    pub(crate) padding_packets_sent: u64,
    /// Probes that were started.
    pub(crate) probes: u64,
    /// Packets without the transport-wide number, which are neither paced nor counted above.
    pub(crate) unpaced_packets: u64,
    /// Feedback packets that had news for the controller.
    pub(crate) feedback_packets: u64,
    /// Packets that feedback called lost.
    pub(crate) packets_lost: u64,
    /// Packets that were discarded because the queue was too long.
    pub(crate) packets_discarded: u64,
    /// Retransmissions that were discarded because the receiver could not have received an earlier
    /// one of the same packet yet.
    pub(crate) retransmissions_discarded: u64,
    /// How often a key frame was sooner than the retransmissions that waited.
    pub(crate) repairs_given_up: u64,
    /// Requests for a key frame that were not passed on, because an earlier one was still
    /// unanswered.
    pub(crate) key_frame_requests_ignored: u64,
}

/// Configuration of a [`PacedSender`].
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) controller: ControllerFactory,
    pub(crate) limits: RateLimits,
    /// The only kind of feedback to use; `None` takes the most precise kind that arrives.
    pub(crate) feedback: Option<FeedbackKind>,
    /// Bytes of the layers below RTP, per packet.
    pub(crate) overhead: DataSize,
}

impl Config {
    fn media_sender(&self) -> MediaSender<gst::Buffer> {
        MediaSender::new(self.controller.build(Settings::new(self.limits)))
    }
}

/// Send history, pacer and controller, with the events of the pipeline in their place between the
/// packets.
pub(crate) struct PacedSender {
    media: MediaSender<gst::Buffer>,
    config: Config,
    streams: Streams,
    retransmissions: Retransmissions,
    key_frame_requests: KeyFrameRequests,
    /// Events, each with the number of packets that must leave before it.
    events: VecDeque<(u64, gst::Event)>,
    /// Packets that are not part of the congestion-controlled flow.
    unpaced: VecDeque<gst::Buffer>,
    enqueued: u64,
    released: u64,
    feedback: FeedbackInput,
    /// RTCP arrives whole, so that the session's events are not needed.
    has_rtcp: bool,
    /// The receiver's limit (REMB).
    receiver_limit: Option<Bitrate>,
    last_probe: Option<u32>,
    /// The queue is too long, and packets that arrive are discarded.
    is_full: bool,
    wants_key_frame: bool,
    wants_retransmission: Option<RtpNumber>,
    /// Count of the events with feedback, in place of the one in the packets.
    twcc_events: u8,
    counts: Counts,
}

impl PacedSender {
    pub(crate) fn new(config: Config) -> Self {
        let mut sender = Self {
            media: config.media_sender(),
            streams: Streams::default(),
            retransmissions: Retransmissions::default(),
            key_frame_requests: KeyFrameRequests::default(),
            events: VecDeque::new(),
            unpaced: VecDeque::new(),
            enqueued: 0,
            released: 0,
            feedback: FeedbackInput::new(config.feedback),
            has_rtcp: false,
            receiver_limit: None,
            last_probe: None,
            is_full: false,
            wants_key_frame: false,
            wants_retransmission: None,
            twcc_events: 0,
            counts: Counts::default(),
            config,
        };
        sender.update_padding_size();
        sender
    }

    fn update_padding_size(&mut self) {
        self.media.set_padding_size(self.streams.padding_size() + self.config.overhead);
    }

    /// The caps of the packets that follow.
    pub(crate) fn set_caps(&mut self, now: Timestamp, caps: &gst::Caps) {
        let had_numbers = self.streams.has_transport_numbers();
        self.streams.set_caps(caps);
        let is_new = !had_numbers && self.streams.has_transport_numbers();
        // Receiver reports of the stream that came first name none of these numbers.
        let is_unheard = self.feedback.kind() < Some(FeedbackKind::Twcc);
        if is_new && self.enqueued > 0 && is_unheard {
            self.start_anew(now);
        }
        self.update_padding_size();
    }

    /// Counts the transport-wide numbers from 0 again. Packets of another stream came first, and
    /// the session numbers only those with the extension. What still waits of them is discarded.
    fn start_anew(&mut self, now: Timestamp) {
        self.media = self.config.media_sender();
        self.media.on_receiver_limit(now, self.receiver_limit);
        self.retransmissions = Retransmissions::default();
        self.counts.packets_discarded += self.enqueued - self.released;
        self.released = self.enqueued;
    }

    /// The streams as negotiated.
    pub(crate) fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    /// Queues the packets of one call of the payloader, usually a frame.
    pub(crate) fn enqueue(&mut self, now: Timestamp, buffers: impl Iterator<Item = gst::Buffer>) {
        self.update_fullness();
        if let Some(rtt) = self.metrics().rtt {
            self.retransmissions.set_round_trip_time(rtt);
        }
        let needs_number = self.streams.has_transport_numbers();
        // Sound overtakes pictures, but not an event: it may be about the sound.
        let may_overtake = self.events.is_empty();
        let (mut media, mut urgent, mut audio) = (Vec::new(), Vec::new(), Vec::new());
        for buffer in buffers {
            let kind = self.streams.kind(&buffer);
            let Some(kind) = kind.filter(|kind| kind.is_numbered || !needs_number) else {
                self.counts.unpaced_packets += 1;
                self.unpaced.push_back(buffer);
                continue;
            };
            let repeated = self.streams.retransmitted(&buffer);
            match repeated {
                None => {
                    let wanted = self.streams.wants_retransmission(&buffer);
                    self.wants_retransmission = wanted.or(self.wants_retransmission);
                }
                // Only this end asked for it.
                Some(packet) if self.streams.learn_rtx(&buffer, packet) => continue,
                Some(_) => {}
            }
            if repeated.is_some_and(|packet| !self.retransmissions.accept(now, packet)) {
                self.counts.retransmissions_discarded += 1;
                continue;
            }
            let is_audio = kind.is_audio && repeated.is_none();
            // Sound takes little, and leaves at once.
            if self.is_full && !is_audio {
                self.counts.packets_discarded += 1;
                repeated.inspect(|&packet| self.retransmissions.forget(packet));
                continue;
            }
            let size = DataSize::from_bytes(buffer.size() as u64) + self.config.overhead;
            if repeated.is_some() {
                self.retransmissions.on_queued(size);
                urgent.push((size, buffer));
            } else {
                self.streams.on_media_queued(kind.number);
                let queue = if is_audio && may_overtake { &mut audio } else { &mut media };
                queue.push((size, buffer));
            }
        }
        self.enqueued += (media.len() + urgent.len() + audio.len()) as u64;
        if !audio.is_empty() {
            self.media.enqueue_as(now, weir::PacketKind::Audio, audio);
        }
        if !urgent.is_empty() {
            // They overtake, so that all events wait for that many packets more.
            self.events.iter_mut().for_each(|(after, _)| *after += urgent.len() as u64);
            self.media.enqueue_urgent(now, urgent);
        }
        if !media.is_empty() {
            self.media.enqueue(now, media);
        }
        if self.time_of(self.retransmissions.waiting()) > MAX_REPAIR_TIME {
            self.give_up_repair(now);
        }
    }

    /// The rate at which packets were sent again in the last second.
    pub(crate) fn repair_rate(&self, now: Timestamp) -> Bitrate {
        self.retransmissions.rate(now)
    }

    /// Discards all packets that wait, and asks for a key frame in their place.
    fn give_up_repair(&mut self, now: Timestamp) {
        self.counts.packets_discarded += self.enqueued - self.released;
        self.counts.repairs_given_up += 1;
        self.media.clear_queue(now);
        self.released = self.enqueued;
        for (after, _) in &mut self.events {
            *after = (*after).min(self.released);
        }
        self.retransmissions.give_up(now, self.streams.last_repairable());
        self.wants_key_frame = true;
    }

    fn update_fullness(&mut self) {
        let time = self.queue_time();
        if time > MAX_QUEUE {
            self.is_full = true;
        } else if self.is_full && time < ACCEPTED_QUEUE {
            self.is_full = false;
            self.wants_key_frame = true;
        }
    }

    /// Queues an event, which leaves after the packets that wait now.
    pub(crate) fn enqueue_event(&mut self, event: gst::Event) {
        self.events.push_back((self.enqueued, event));
    }

    /// Discards all packets that wait, and all events but those that describe the stream.
    pub(crate) fn flush(&mut self, now: Timestamp) {
        self.media.clear_queue(now);
        self.retransmissions = Retransmissions::default();
        self.unpaced.clear();
        self.released = self.enqueued;
        self.events.retain(|(_, event)| event.is_sticky() && event.type_() != gst::EventType::Eos);
        for (after, _) in &mut self.events {
            *after = 0;
        }
    }

    /// What to do at `now`. Call it until it says to wait.
    pub(crate) fn step(&mut self, now: Timestamp) -> Step {
        self.media.on_timeout(now);
        // The stream's first events leave before any packet, paced or not.
        if let Some((_, event)) = self.events.pop_front_if(|(after, _)| *after <= self.released) {
            return Step::Event(event);
        }
        if let Some(buffer) = self.unpaced.pop_front() {
            return Step::Packet(buffer);
        }
        // With an empty queue, the pacer would ask for padding, which takes a number at once.
        if self.media.queued() == DataSize::ZERO && !self.streams.can_pad() {
            return Step::Wait(self.controller_timeout());
        }
        self.next_packet(now).map_or_else(|| Step::Wait(self.media.next_timeout()), Step::Packet)
    }

    fn controller_timeout(&self) -> Option<Timestamp> {
        self.media.controller().next_timeout()
    }

    fn next_packet(&mut self, now: Timestamp) -> Option<gst::Buffer> {
        self.media.set_leads_probes(self.streams.can_pad());
        let (streams, released) = (&mut self.streams, &mut self.released);
        let retransmissions = &mut self.retransmissions;
        let packet = self.media.next_packet_with(now, |release| match release.media {
            Some(mut buffer) => {
                *released += 1;
                if let Some(packet) = streams.retransmitted(&buffer) {
                    retransmissions.on_sent(now, packet, release.size);
                }
                let number = streams.on_media_sent(&mut buffer);
                (Some(buffer), number)
            }
            None => {
                let padding: Option<(gst::Buffer, RtpNumber)> = streams.padding();
                padding.map_or((None, None), |(buffer, number)| (Some(buffer), Some(number)))
            }
        })?;
        let (sent, mut buffer) = (packet.sent, packet.content?);
        self.streams.fill_extensions(now, sent.transport_sequence_number(), &mut buffer);
        self.counts.packets_sent += 1;
        self.counts.bytes_sent += packet.size.as_bytes();
        self.counts.padding_packets_sent += u64::from(sent.padding);
        let probe = sent.probe.map(|id| id.0);
        if probe.is_some() && probe != self.last_probe {
            self.last_probe = probe;
            self.counts.probes += 1;
        }
        Some(buffer)
    }

    /// An RTCP datagram of the receiver, compound or of reduced size. `compact_ntp` is the time of
    /// its arrival on the clock of this end's sender reports.
    pub(crate) fn on_rtcp(&mut self, now: Timestamp, compact_ntp: u32, bytes: &[u8]) {
        self.has_rtcp = true;
        for message in messages(bytes).flatten() {
            self.on_message(now, compact_ntp, message);
        }
    }

    /// Changes the range of the target bitrate.
    pub(crate) fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        if limits != self.config.limits {
            self.config.limits = limits;
            self.media.set_limits(now, limits);
        }
    }

    /// Packets take another route from now on.
    pub(crate) fn on_route_change(&mut self, now: Timestamp) {
        self.media.on_route_change(now);
    }

    fn on_message(&mut self, now: Timestamp, compact_ntp: u32, message: Message<'_>) {
        if message.kind().is_none() {
            self.receiver_limit = message.limit();
        }
        let counts = self.feedback.on_message(now, &message, &mut self.media, |block| {
            block.round_trip_time(compact_ntp).map(compact_ntp_to_time)
        });
        self.count(counts);
    }

    fn count(&mut self, feedback: Option<LossCounts>) {
        if let Some(counts) = feedback {
            self.counts.feedback_packets += 1;
            self.counts.packets_lost += counts.lost;
        }
    }

    /// Feedback as the events of an RTP session deliver it: the transport-wide numbers with the
    /// arrival times in ns, `None` for a lost packet. For use only if the RTCP itself does not
    /// arrive.
    pub(crate) fn on_twcc_event(&mut self, now: Timestamp, packets: &[(u16, Option<u64>)]) {
        let arrivals = packets.iter().filter_map(|(_, arrival)| *arrival);
        if self.has_rtcp {
            return;
        }
        let unit = arrivals.min().unwrap_or(0) / UNIT_NS;
        let header = TwccHeader {
            reference_time: ReferenceTime::from_units(unit as i64).units(),
            feedback_count: self.twcc_events,
        };
        self.twcc_events = self.twcc_events.wrapping_add(1);
        let packets = packets.iter().map(|&(number, arrival)| (number, ticks_after(unit, arrival)));
        if self.feedback.accepts(now, FeedbackKind::Twcc) {
            let report = self.media.on_feedback(now, |history| history.on_twcc(header, packets));
            let counts = report.map(FeedbackReport::loss_counts);
            self.count(counts);
        }
    }

    /// The coupled flows gave this flow a new share of their rate.
    pub(crate) fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.media.on_shared_rate(now, share);
    }

    /// Whether the receiver's request for a key frame of a stream goes on to its encoder.
    pub(crate) fn on_key_frame_request(&mut self, now: Timestamp, ssrc: Option<u32>) -> bool {
        // The key frame waits behind what is in the queue, and arrives after half a round trip.
        let answer_time = self.queue_time() + self.metrics().rtt.unwrap_or(TimeDelta::ZERO);
        let is_passed_on = self.key_frame_requests.accept(now, ssrc, answer_time);
        self.counts.key_frame_requests_ignored += u64::from(!is_passed_on);
        is_passed_on
    }

    /// What has changed since the last call.
    pub(crate) fn take_update(&mut self) -> Update {
        Update {
            change: self.media.take_change(),
            wants_key_frame: std::mem::take(&mut self.wants_key_frame),
            wants_retransmission: self.wants_retransmission.take(),
        }
    }

    pub(crate) fn target(&self) -> &Target {
        self.media.target()
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.media.controller().metrics()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The kind of feedback that drives the controller; `None` before the first.
    pub(crate) fn feedback(&self) -> Option<FeedbackKind> {
        self.feedback.kind()
    }

    /// Bytes in the pacer.
    pub(crate) fn queued(&self) -> DataSize {
        self.media.queued()
    }

    /// How long the queue takes to leave at the pacing rate.
    pub(crate) fn queue_time(&self) -> TimeDelta {
        self.time_of(self.media.queued())
    }

    fn time_of(&self, waiting: DataSize) -> TimeDelta {
        let rate = self.media.target().pacing_rate;
        if rate.as_bps() == 0 { TimeDelta::ZERO } else { waiting / rate }
    }
}

/// From the start of a unit to an arrival in ns, in ticks. `None` if the packet was lost, or if
/// that is too long.
fn ticks_after(unit: u64, arrival: Option<u64>) -> Option<i32> {
    i32::try_from((arrival? - unit * UNIT_NS) / TICK_NS).ok()
}
