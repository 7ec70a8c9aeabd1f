//! One receiver of a forwarding server: packets of publishers in, packets and decisions out.

mod config;
mod forwarding;
mod repair;
mod reports;
mod silence;
mod waiting;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use weir::PacketKind;
use weir::controller::{Controller, RateLimits};
use weir::media_sender::PacedPacket;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_rtcp::{Message, RtcpEvent, Sender, messages, seeded};

use crate::allocator::Allocator;
use crate::decision::{Change, Decision, Reason};
use crate::prober::{ProbeResult, Probing};
use crate::track::{Frame, TrackConfig, TrackId};
pub use config::{ForwardError, OutgoingStream, SubscriberConfig};
use forwarding::Forwarding;
pub use forwarding::TrackStats;
use repair::RepairRate;
use reports::Reports;
use waiting::Waiting;

/// Time between two choices of layers.
const ALLOCATION_INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// A target that falls by this factor is followed at once.
const SUDDEN_FALL: f64 = 0.95;
/// A queue longer than this cannot wait for a key frame.
const MAX_QUEUE_TIME: TimeDelta = TimeDelta::from_millis(400);
/// Repair takes at most this part of the target away from the pictures. What a fall of the link
/// lost is sent again within a second or two, and would pause what it repairs.
const MAX_REPAIR_SHARE: f64 = 0.5;
/// A request for a key frame is repeated after this time.
const ASK_AGAIN: TimeDelta = TimeDelta::from_millis(1_000);
/// Without a packet for this time, a probe starts with padding.
const NO_MEDIA: TimeDelta = TimeDelta::from_millis(500);
/// Decisions that the host has not taken. The oldest go first.
const MAX_DECISIONS: usize = 512;

/// Forwards tracks to one subscriber over one transport, at the rate that a congestion controller
/// allows.
///
/// Events drive it. After each, ask [`next_packet`](Self::next_packet),
/// [`next_rtcp`](Self::next_rtcp) and [`next_decision`](Self::next_decision) until they return
/// `None`, and call [`on_timeout`](Self::on_timeout) when [`next_timeout`](Self::next_timeout) says
/// so.
pub struct Subscriber<C> {
    sender: Sender<Probing<C>>,
    allocator: Allocator,
    tracks: BTreeMap<TrackId, Forwarding>,
    repair: RepairRate,
    reports: Reports,
    waiting: Waiting,
    next_allocation: Timestamp,
    /// The target at the last choice.
    target: Bitrate,
    seen_outcome: u64,
    /// When a packet of a track was last queued, or the start.
    last_forwarded: Timestamp,
    /// Packets that did not come from a publisher, and that the subscriber misses.
    missing: VecDeque<(TrackId, u8, u16)>,
    decisions: VecDeque<Decision>,
}

impl<C: Controller> Subscriber<C> {
    /// A subscriber from `now` on, without tracks. `limits` are those of the controller.
    pub fn new(
        now: Timestamp,
        controller: C,
        limits: RateLimits,
        config: SubscriberConfig,
    ) -> Self {
        let controller = Probing::new(controller, limits);
        // The sender would report on one stream, and a subscriber has many.
        let sender = config.sender.with_sender_reports(false);
        let seed = config.sender.padding_ssrc.into();
        Self {
            sender: Sender::new(now, controller, sender, seeded(seed)),
            reports: Reports::new(config.sender.sender_reports),
            allocator: Allocator::default(),
            tracks: BTreeMap::new(),
            repair: RepairRate::default(),
            waiting: Waiting::default(),
            next_allocation: now,
            target: Bitrate::ZERO,
            seen_outcome: 0,
            last_forwarded: now,
            missing: VecDeque::new(),
            decisions: VecDeque::new(),
        }
    }

    /// Adds a track that leaves as this stream. The next timeout, which is now, chooses its layer.
    pub fn add_track(
        &mut self,
        now: Timestamp,
        id: TrackId,
        track: TrackConfig,
        stream: OutgoingStream,
    ) {
        self.tracks.insert(id, Forwarding::new(&track, stream));
        self.reports.add(now, id, &stream);
        self.allocator.set_track(id, track);
        self.next_allocation = now;
    }

    /// Changes what is known of a track: its layers, the size at which it is shown, its priority.
    /// Without effect on an unknown track.
    pub fn set_track(&mut self, now: Timestamp, id: TrackId, track: TrackConfig) {
        if self.tracks.contains_key(&id) {
            self.allocator.set_track(id, track);
            self.next_allocation = now;
        }
    }

    /// Removes a track.
    pub fn remove_track(&mut self, now: Timestamp, id: TrackId) {
        self.tracks.remove(&id);
        self.reports.remove(id);
        self.allocator.remove_track(id);
        self.next_allocation = now;
    }

    /// The publisher of a track began anew, for instance after it connected again: its numbers go
    /// on elsewhere. Pictures go on with the next key frame, which is asked for. Without this call
    /// two packets in a row show it [RFC3550 §A.1].
    ///
    /// [RFC3550 §A.1]: https://www.rfc-editor.org/rfc/rfc3550#appendix-A.1
    pub fn on_publisher_restart(&mut self, now: Timestamp, id: TrackId) {
        if let Some(track) = self.tracks.get_mut(&id) {
            track.begin_anew();
            self.next_allocation = now;
        }
    }

    /// The publisher of a track stopped a stream, as its signalling says. Another one is chosen at
    /// once; a key frame of the stream begins it again. Without this call a silent stream is
    /// noticed within half a second.
    pub fn on_layer_stopped(&mut self, now: Timestamp, id: TrackId, stream: u8) {
        if let Some(track) = self.tracks.get_mut(&id) {
            track.on_layer_stopped(stream);
            self.next_allocation = now;
        }
    }

    /// The bitrates of a track's layers were measured again: see
    /// [`Uplink::bitrates`](crate::Uplink::bitrates).
    pub fn set_bitrates(&mut self, id: TrackId, bitrates: &[Bitrate]) {
        self.allocator.set_bitrates(id, bitrates);
    }

    /// A packet of a track came from its publisher, in any layer. Pass all of them: what the
    /// subscriber does not get is left out here. The packet needs room for the header extensions of
    /// the configuration; its SSRC and payload type are replaced.
    ///
    /// Returns whether it was queued.
    ///
    /// # Errors
    /// If the track is unknown, or if the bytes cannot be sent.
    pub fn forward(
        &mut self,
        now: Timestamp,
        id: TrackId,
        packet: &[u8],
        frame: Frame,
    ) -> Result<bool, ForwardError> {
        let track = self.tracks.get_mut(&id).ok_or(ForwardError::UnknownTrack)?;
        let before = track.forwarded_layer();
        let Some(keep) = track.decide(now, frame, packet) else { return Ok(false) };
        let from = before.or_else(|| track.rewriter_source());
        let mut buffer = self.sender.buffer();
        buffer.extend_from_slice(packet);
        let is_sent = track.write(now, &mut buffer, frame, keep)?;
        let kind = track.kind();
        if is_sent {
            track.note_forwarded(DataSize::from_bytes(buffer.len() as u64));
            self.reports.on_packet(id, &buffer);
        }
        if track.took_switch() {
            let to = track.forwarded_layer().unwrap_or(frame.stream);
            let change = Change::Switched { from, to };
            let reason = if frame.starts_key_frame {
                Reason::KeyFrameArrived
            } else {
                Reason::FrameBoundary
            };
            self.note(now, id, change, reason);
        }
        if !is_sent {
            self.sender.recycle(buffer);
            return Ok(false);
        }
        let before = self.queued();
        self.sender.enqueue_as(now, kind, [buffer])?;
        if kind == PacketKind::Video {
            self.waiting.on_queued(now, self.queued().saturating_sub(before));
        }
        self.last_forwarded = now;
        Ok(true)
    }

    /// An RTCP datagram came from the subscriber: feedback, requests for retransmissions and for
    /// key frames. Returns what is none of these.
    pub fn on_rtcp<'a>(&mut self, now: Timestamp, bytes: &'a [u8]) -> Vec<RtcpEvent<'a>> {
        let mut rest = Vec::new();
        for message in messages(bytes) {
            match message {
                Ok(message) => self.on_message(now, message),
                Err(event) => {
                    if !self.on_request(now, &event) {
                        rest.push(event);
                    }
                }
            }
        }
        if self.budget() < self.target * SUDDEN_FALL {
            self.allocate(now);
        }
        self.note_outcome();
        rest
    }

    fn on_message(&mut self, now: Timestamp, message: Message<'_>) {
        // Reports answer those of this subscriber, or of the host, whose times are unknown here.
        if self.reports.is_on() || !matches!(message, Message::Report(_)) {
            let reports = &self.reports;
            self.sender.on_message_with(now, message, |block| reports.round_trip_time(now, block));
        }
    }

    /// When [`Subscriber::on_timeout`] and [`Subscriber::next_packet`] are due next.
    pub fn next_timeout(&self) -> Timestamp {
        let sender = self.sender.next_timeout();
        sender.map_or(self.next_allocation, |due| due.min(self.next_allocation))
    }

    /// Handles timeouts, and chooses layers ten times a second.
    pub fn on_timeout(&mut self, now: Timestamp) {
        self.sender.on_timeout(now);
        if self.next_allocation <= now {
            self.allocate(now);
        }
        self.note_outcome();
        for (&id, track) in &self.tracks {
            self.reports.on_timeout(now, id, track.newest_timestamp());
        }
    }

    fn allocate(&mut self, now: Timestamp) {
        self.next_allocation = now + ALLOCATION_INTERVAL;
        self.target = self.budget();
        for (&id, track) in &mut self.tracks {
            self.allocator.set_silent(id, track.silent(now));
        }
        let audio = self.allocator.audio();
        let repair = self.repair.rate(now).min(self.target * MAX_REPAIR_SHARE);
        let budget = self.target.saturating_sub(audio + repair);
        let room = self.sender.media().controller().room().saturating_sub(audio + repair);
        self.allocator.allocate_within(now, budget, room);
        while let Some(decision) = self.allocator.next_decision() {
            self.push(decision);
        }
        // Without a better layer, what is chosen must stay known to fit.
        let chosen = self.allocator.total();
        let own = self.controller().target().bitrate;
        let relied = (chosen + audio + repair > own).then_some(chosen);
        let need = self.allocator.next_need(now).or(relied).map(|need| need + audio + repair);
        let wanted = self.allocator.most_need() + audio + repair;
        self.sender.change_controller(now, |prober| prober.set_wanted(Some(wanted)));
        self.sender.set_desired_bitrate(now, need);
        self.carry_out(now);
    }

    /// What everything that is sent may take.
    fn budget(&self) -> Bitrate {
        self.sender.media().controller().budget()
    }

    /// Tells the tracks which layers were chosen, asks for key frames, and cuts what cannot wait.
    fn carry_out(&mut self, now: Timestamp) {
        let queue_time = self.sender.media().queued() / self.sender.target().pacing_rate;
        let mut notes: Vec<(TrackId, Change, Reason)> = Vec::new();
        let is_old = self.waiting.is_too_long(now, self.queued());
        if is_old {
            self.sender.clear_pictures(now);
            self.waiting.on_cut(now);
        }
        for (&id, track) in &mut self.tracks {
            let Some(config) = self.allocator.track(id) else { continue };
            let level = self.allocator.level(id);
            let wanted = level.and_then(|level| config.layers.get(level));
            track.want(wanted.map(|layer| (layer.stream, layer.temporal)));
            let is_cut = is_old && track.cut_all();
            if is_cut || queue_time > MAX_QUEUE_TIME && track.cut() {
                notes.push((id, Change::Cut, Reason::QueueTooLong));
            }
            if let Some(stream) = track.key_frame_to_ask(now, ASK_AGAIN) {
                notes.push((id, Change::RequestKeyFrame { stream }, Reason::KeyFrameNeeded));
            }
        }
        for (id, change, reason) in notes {
            self.note(now, id, change, reason);
        }
    }

    fn note_outcome(&mut self) {
        let Some(outcome) = self.sender.media().controller().last_outcome() else { return };
        if outcome.number == self.seen_outcome {
            return;
        }
        self.seen_outcome = outcome.number;
        let is_start = matches!(outcome.result, ProbeResult::Started(_));
        if is_start && outcome.at - self.last_forwarded >= NO_MEDIA {
            self.sender.enqueue_padding(outcome.at);
        }
        self.push(outcome.decision(self.target.saturating_sub(self.allocator.audio())));
    }

    fn note(&mut self, at: Timestamp, track: TrackId, change: Change, reason: Reason) {
        let budget = self.target.saturating_sub(self.allocator.audio());
        let needed = self.allocator.total();
        self.push(Decision { at, track: Some(track), change, reason, budget, needed });
    }

    fn push(&mut self, decision: Decision) {
        if self.decisions.len() == MAX_DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision);
    }

    /// The next decision, in the order in which they were made. A host must act on
    /// [`Change::RequestKeyFrame`], and tells its [`Uplink`](crate::Uplink) of [`Change::Choose`];
    /// the others are for its log. The last 512 are kept.
    pub fn next_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// The next packet that the subscriber misses because the publisher's has not come: track,
    /// stream and the publisher's sequence number, for a NACK to the publisher.
    pub fn next_missing(&mut self) -> Option<(TrackId, u8, u16)> {
        self.missing.pop_front()
    }

    /// The next packet to send, if one may leave now. Call it until it returns `None`.
    pub fn next_packet(&mut self, now: Timestamp) -> Option<PacedPacket<Vec<u8>>> {
        self.sender.next_packet(now)
    }

    /// The next RTCP packet to send: sender reports of the tracks, which give round-trip times and
    /// lip sync. Call it until it returns `None`.
    pub fn next_rtcp(&mut self) -> Option<&[u8]> {
        self.reports.pop()
    }

    /// The timestamp with which a packet of a track leaves, from the publisher's stream and
    /// timestamp: for a host that writes sender reports itself. `None` unless that stream is
    /// forwarded now.
    pub fn rtp_timestamp(&self, id: TrackId, stream: u8, timestamp: u32) -> Option<u32> {
        self.tracks.get(&id)?.timestamp(stream, timestamp)
    }

    /// What was forwarded of a track so far; `None` if it is unknown.
    pub fn track_stats(&self, id: TrackId) -> Option<TrackStats> {
        self.tracks.get(&id).map(|track| track.stats)
    }

    /// The host changed the range of the target, for instance for another tariff.
    pub fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.sender.set_limits(now, limits);
        self.next_allocation = now;
    }

    /// The subscriber sends no congestion feedback, as a recorder or a SIP gateway, and its path
    /// carries this rate; `None` ends that. Layers are chosen under the rate, and nothing is probed
    /// for. Without this call the controller takes its silence for a broken path, and all pictures
    /// are paused.
    pub fn set_fixed_rate(&mut self, now: Timestamp, rate: Option<Bitrate>) {
        self.sender.change_controller(now, |prober| prober.set_fixed(now, rate));
        self.next_allocation = now;
    }

    /// What probes may add: see [`Probing::set_padding_share`].
    pub fn set_padding_share(&mut self, now: Timestamp, share: f64) {
        self.sender.change_controller(now, |prober| prober.set_padding_share(share));
    }

    /// Gives back a packet after it was sent, so that its memory is used again.
    pub fn recycle(&mut self, packet: Vec<u8>) {
        self.sender.recycle(packet);
    }

    /// The layer that is chosen for a track; `None` is a pause. What is forwarded follows when it
    /// can be decoded: see [`Change::Switched`].
    pub fn level(&self, id: TrackId) -> Option<usize> {
        self.allocator.level(id)
    }

    /// What the transport may carry: the controller's target, or what was proved.
    pub fn target(&self) -> Bitrate {
        self.sender.target().bitrate
    }

    /// Bytes that wait.
    pub fn queued(&self) -> DataSize {
        self.sender.media().queued()
    }

    /// The controller, for its metrics.
    pub fn controller(&self) -> &C {
        self.sender.media().controller().inner()
    }

    /// Packets take another route from now on: see
    /// [`MediaSender::on_route_change`](weir::MediaSender::on_route_change).
    pub fn on_route_change(&mut self, now: Timestamp) {
        self.sender.on_route_change(now);
        self.next_allocation = now;
    }

    /// The host's transport measured the round-trip time of the path.
    pub fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.sender.on_round_trip_time(now, rtt);
    }
}
