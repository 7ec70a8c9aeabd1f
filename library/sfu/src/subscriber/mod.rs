//! One receiver of a forwarding server: packets of publishers in, packets and decisions out.

mod config;
mod forwarding;
mod repair;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use weir::controller::{Controller, RateLimits};
use weir::media_sender::PacedPacket;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_rtcp::{Ignored, Sender};

use crate::allocator::Allocator;
use crate::decision::{Change, Decision, Reason};
use crate::prober::{ProbeResult, Probing};
use crate::track::{Frame, TrackConfig, TrackId};
pub use config::{ForwardError, OutgoingStream, SubscriberConfig};
use forwarding::Forwarding;
use repair::RepairRate;

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
        // Reports are the host's: one subscriber has many streams.
        let sender = config.sender.with_sender_reports(false);
        Self {
            sender: Sender::new(now, controller, sender, alloc::boxed::Box::new(|| 0.5)),
            allocator: Allocator::default(),
            tracks: BTreeMap::new(),
            repair: RepairRate::default(),
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
        self.allocator.remove_track(id);
        self.next_allocation = now;
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
        let Some(keep) = track.decide(frame, packet) else { return Ok(false) };
        let from = before.or_else(|| track.rewriter_source());
        let mut buffer = self.sender.buffer();
        buffer.extend_from_slice(packet);
        let is_sent = track.write(now, &mut buffer, frame, keep)?;
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
        self.sender.enqueue(now, [buffer])?;
        self.last_forwarded = now;
        Ok(true)
    }

    /// An RTCP datagram came from the subscriber: feedback, requests for retransmissions and for
    /// key frames. Returns what is none of these.
    pub fn on_rtcp<'a>(&mut self, now: Timestamp, bytes: &'a [u8]) -> Vec<Ignored<'a>> {
        let ignored = self.sender.on_rtcp(now, bytes);
        let mut rest = Vec::new();
        for part in ignored {
            if !self.on_request(now, &part) {
                rest.push(part);
            }
        }
        if self.budget() < self.target * SUDDEN_FALL {
            self.allocate(now);
        }
        self.note_outcome();
        rest
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
    }

    fn allocate(&mut self, now: Timestamp) {
        self.next_allocation = now + ALLOCATION_INTERVAL;
        self.target = self.budget();
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
        for (&id, track) in &mut self.tracks {
            let Some(config) = self.allocator.track(id) else { continue };
            let level = self.allocator.level(id);
            let wanted = level.and_then(|level| config.layers.get(level));
            track.want(wanted.map(|layer| (layer.stream, layer.temporal)));
            if queue_time > MAX_QUEUE_TIME && track.cut() {
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

    /// The next RTCP packet to send. Call it until it returns `None`.
    pub fn next_rtcp(&mut self) -> Option<&[u8]> {
        self.sender.next_rtcp()
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
