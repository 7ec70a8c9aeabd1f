//! Rivals of `weir-sfu`: servers that decide by the rules of others, over the same transport, the
//! same numbers and the same controllers.
//!
//! They are sketches of published rules, not ports. What they leave out, or do in another way:
//!
//! - `greedy`: a controller with its own probes, and an allocator that gives layers from the
//!   smallest on while they fit, twice a second.
//! - `mediasoup`: the rules of mediasoup's transports (`mediasoup.rs`). Its controller is an older
//!   libwebrtc's, here it is the scenario's; its pacer counts media but does not hold it back, so
//!   packets leave as they come. Applications set preferred layers, here by the size shown.
//! - `livekit`: LiveKit's stream allocator. Everything in its best layer until congestion, then
//!   what fits the rate at that moment; one layer more after each probe, whose interval grows by
//!   1.5 from 3 s to 2 min. Here congestion is a fall of the controller's target below what is
//!   sent, not LiveKit's own detector, and probes are those of the controller. There is no pause by
//!   signalling and there are no temporal layers. Packets leave as they come, without a pacer.
//!
//! Both send retransmissions under the number of the original packet, and wait for key frames as
//! ours does.

mod levels;
mod mediasoup;
mod policy;

use std::collections::VecDeque;

use weir::controller::Controller;
use weir::media_sender::PacedPacket;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_rtcp::{RtcpEvent, Sender, SenderConfig};
use weir_sfu::{
    Cache, Change, Decision, Frame, Kind, OutgoingStream, Reason, Resend, Rewriter, Selection,
    TargetSelector, TrackConfig, TrackId, Verdict,
};

use super::forwarder::Forwarder;
use super::witness::Witness;
pub(super) use mediasoup::Mediasoup;
pub(super) use policy::Policy;

/// A packet is not sent again this soon: the first repetition is still on its way.
const AGAIN_AFTER: TimeDelta = TimeDelta::from_millis(40);
/// A missing key frame is asked for again after this time; a subscriber's request counts as often.
const ASK_AGAIN: TimeDelta = TimeDelta::from_millis(1_000);
const MARKER_FLAG: u8 = 1 << 7;

/// A track on its way to the subscriber.
struct Track {
    id: TrackId,
    config: TrackConfig,
    stream: OutgoingStream,
    rewriter: Rewriter,
    cache: Cache,
    /// The stream that was chosen, and the one that is sent.
    wanted: Option<usize>,
    active: Option<u8>,
    /// The highest temporal layer that is sent.
    temporal: u8,
    /// Chooses the frames of a stream of SVC.
    selector: Option<TargetSelector>,
    asked: Option<Timestamp>,
}

impl Track {
    fn is_audio(&self) -> bool {
        self.config.kind == Kind::Audio
    }

    /// The stream that was chosen, and its highest temporal layer.
    fn point(&self) -> Option<(u8, u8)> {
        let layer = self.config.layers.get(self.wanted?)?;
        Some((layer.stream, layer.temporal))
    }

    /// What becomes of a packet; `None` if its stream is not sent.
    fn select(&mut self, packet: &[u8], frame: Frame) -> Option<Selection> {
        let point = self.point();
        if let Some(selector) = &mut self.selector {
            selector.want(point);
            let selection = selector.decide(packet)?;
            let (spatial, _) = selector.active()?;
            if self.active != Some(spatial) {
                (self.active, self.asked) = (Some(spatial), None);
            }
            return Some(selection);
        }
        if self.is_audio() {
            self.active = Some(frame.stream);
        } else if frame.starts_key_frame && self.wanted_stream() == Some(frame.stream) {
            self.active = Some(frame.stream);
            self.asked = None;
        }
        if self.active != Some(frame.stream) {
            return None;
        }
        // After a frame of the lowest layer, any of the others can begin or end.
        if let Some((stream, temporal)) = point
            && frame.temporal == 0
            && stream == frame.stream
        {
            self.temporal = temporal;
        }
        Some(Selection::new(frame.temporal <= self.temporal))
    }

    fn pause(&mut self) {
        self.active = None;
        self.rewriter.pause();
        if let Some(selector) = &mut self.selector {
            selector.pause();
        }
    }

    fn wanted_stream(&self) -> Option<u8> {
        self.point().map(|(stream, _)| stream)
    }
}

/// A server's part that serves one subscriber by a rival's rules.
pub(super) struct Rival {
    sender: Sender<Witness>,
    policy: Policy,
    tracks: Vec<Track>,
    next_choice: Timestamp,
    decisions: VecDeque<Decision>,
    missing: VecDeque<(TrackId, u8, u16)>,
}

impl Rival {
    pub(super) fn new(
        now: Timestamp,
        controller: Witness,
        config: SenderConfig,
        policy: Policy,
    ) -> Self {
        let config = config.with_sender_reports(false);
        Self {
            sender: Sender::new(now, controller, config, Box::new(|| 0.5)),
            policy,
            tracks: Vec::new(),
            next_choice: now,
            decisions: VecDeque::new(),
            missing: VecDeque::new(),
        }
    }

    fn note(&mut self, now: Timestamp, track: TrackId, change: Change, reason: Reason) {
        let budget = self.sender.target().bitrate;
        let needed = self.total();
        self.decisions.push_back(Decision::new(now, Some(track), change, reason, budget, needed));
    }

    /// What all chosen layers and audio take.
    fn total(&self) -> Bitrate {
        let mut sum = Bitrate::ZERO;
        for track in &self.tracks {
            let level = if track.is_audio() { Some(0) } else { track.wanted };
            sum = sum + levels::cost(&track.config, level);
        }
        sum
    }

    fn choose(&mut self, now: Timestamp) {
        let tracks: Vec<(&TrackConfig, Option<usize>)> =
            self.tracks.iter().map(|track| (&track.config, track.wanted)).collect();
        let controller = self.sender.media().controller();
        let reason = controller.metrics().reason;
        let choice = self.policy.choose(now, self.sender.target().bitrate, reason, &tracks);
        self.next_choice = now + choice.again;
        self.sender.set_desired_bitrate(now, choice.desired);
        for (index, to) in choice.levels.into_iter().enumerate() {
            let track = &mut self.tracks[index];
            let from = std::mem::replace(&mut track.wanted, to);
            if from == to {
                continue;
            }
            track.asked = None;
            if to.is_none() {
                track.pause();
            }
            let id = track.id;
            let reason = if to > from { Reason::Fits } else { Reason::OverBudget };
            self.note(now, id, Change::Choose { from, to }, reason);
        }
        self.ask_for_key_frames(now);
    }

    fn ask_for_key_frames(&mut self, now: Timestamp) {
        for index in 0..self.tracks.len() {
            let track = &mut self.tracks[index];
            let Some(stream) = track.wanted_stream().filter(|_| !track.is_audio()) else {
                continue;
            };
            let is_recent = track.asked.is_some_and(|asked| now - asked < ASK_AGAIN);
            if track.active == Some(stream) || is_recent {
                continue;
            }
            track.asked = Some(now);
            let id = track.id;
            self.note(now, id, Change::RequestKeyFrame { stream }, Reason::KeyFrameNeeded);
        }
    }

    /// Answers what the subscriber asks for.
    fn on_request(&mut self, now: Timestamp, event: &RtcpEvent<'_>) {
        match event {
            RtcpEvent::Retransmit(nack) => {
                for number in nack.sequence_numbers() {
                    self.repeat(now, nack.media_ssrc(), number);
                }
            }
            RtcpEvent::KeyFrame(request) => {
                for ssrc in request.media_ssrcs() {
                    self.ask_for(now, ssrc);
                }
            }
            _ => {}
        }
    }

    fn ask_for(&mut self, now: Timestamp, ssrc: u32) {
        let own = self.tracks.iter_mut().find(|track| track.stream.ssrc == ssrc);
        let Some(track) = own else { return };
        let is_recent = track.asked.is_some_and(|asked| now - asked < ASK_AGAIN / 2);
        let stream = track.active.or(track.wanted_stream());
        if let Some(stream) = stream.filter(|_| !is_recent) {
            track.asked = Some(now);
            let id = track.id;
            self.note(now, id, Change::RequestKeyFrame { stream }, Reason::SubscriberAsked);
        }
    }

    fn repeat(&mut self, now: Timestamp, ssrc: u32, number: u16) {
        let own = self.tracks.iter_mut().find(|track| track.stream.ssrc == ssrc);
        let Some(track) = own else { return };
        match track.cache.request(now, number, AGAIN_AFTER) {
            Resend::Packet(original) => {
                let mut buffer = self.sender.buffer();
                buffer.extend_from_slice(original);
                let _ = self.sender.enqueue_urgent(now, [buffer]);
            }
            Resend::Unknown => {
                let source = track.rewriter.source().zip(track.rewriter.missing(number));
                self.missing.extend(source.map(|(stream, number)| (track.id, stream, number)));
            }
            _ => {}
        }
    }

    fn index(&self, id: TrackId) -> Option<usize> {
        self.tracks.iter().position(|track| track.id == id)
    }
}

impl Forwarder for Rival {
    fn add_track(
        &mut self,
        now: Timestamp,
        id: TrackId,
        config: TrackConfig,
        stream: OutgoingStream,
    ) {
        self.tracks.push(Track {
            id,
            config,
            stream,
            rewriter: Rewriter::new(stream.clock_rate, stream.is_vp8)
                .with_dependency(stream.dependency),
            selector: stream.dependency.map(TargetSelector::new),
            cache: Cache::new(stream.cache_time, stream.cached_packets),
            wanted: None,
            active: None,
            temporal: u8::MAX,
            asked: None,
        });
        self.next_choice = now;
    }

    fn set_track(&mut self, now: Timestamp, id: TrackId, config: TrackConfig) {
        if let Some(index) = self.index(id) {
            self.tracks[index].config = config;
            self.next_choice = now;
        }
    }

    fn remove_track(&mut self, now: Timestamp, id: TrackId) {
        self.tracks.retain(|track| track.id != id);
        self.next_choice = now;
    }

    fn set_bitrates(&mut self, id: TrackId, bitrates: &[Bitrate]) {
        if let Some(index) = self.index(id) {
            for (layer, &bitrate) in self.tracks[index].config.layers.iter_mut().zip(bitrates) {
                layer.bitrate = bitrate;
            }
        }
    }

    fn forward(&mut self, now: Timestamp, id: TrackId, packet: &[u8], frame: Frame) -> bool {
        let Some(index) = self.index(id) else { return false };
        let track = &mut self.tracks[index];
        let before = track.active;
        let Some(selection) = track.select(packet, frame) else { return false };
        // All layers of SVC are one stream.
        let source = if track.selector.is_some() { 0 } else { frame.stream };
        let mut buffer = self.sender.buffer();
        buffer.extend_from_slice(packet);
        let verdict = track.rewriter.rewrite(now, &mut buffer, source, selection.keep);
        let number = match verdict {
            Verdict::Forward { sequence_number } | Verdict::Fill { sequence_number } => {
                sequence_number
            }
            _ => {
                if verdict == Verdict::Lost {
                    track.pause();
                }
                self.sender.recycle(buffer);
                return false;
            }
        };
        buffer[1] = buffer[1] & MARKER_FLAG | track.stream.payload_type.get();
        buffer[8..12].copy_from_slice(&track.stream.ssrc.to_be_bytes());
        if selection.ends_picture {
            buffer[1] |= MARKER_FLAG;
        }
        if selection.announces
            && let Some(selector) = &track.selector
        {
            selector.announce(&mut buffer);
        }
        track.cache.insert(now, number, &buffer);
        if before != track.active
            && !track.is_audio()
            && let Some(to) = track.active
        {
            let change = Change::Switched { from: before, to };
            self.note(now, id, change, Reason::KeyFrameArrived);
        }
        self.sender.enqueue(now, [buffer]).expect("the server's own packet has room");
        true
    }

    fn on_rtcp(&mut self, now: Timestamp, bytes: &[u8]) {
        for part in self.sender.on_rtcp(now, bytes) {
            self.on_request(now, &part);
        }
    }

    fn next_timeout(&self) -> Timestamp {
        self.sender.next_timeout().map_or(self.next_choice, |due| due.min(self.next_choice))
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.sender.on_timeout(now);
        if self.next_choice <= now {
            self.choose(now);
        }
    }

    fn next_packet(&mut self, now: Timestamp) -> Option<PacedPacket<Vec<u8>>> {
        self.sender.next_packet(now)
    }

    fn recycle(&mut self, packet: Vec<u8>) {
        self.sender.recycle(packet);
    }

    fn next_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    fn next_missing(&mut self) -> Option<(TrackId, u8, u16)> {
        self.missing.pop_front()
    }

    fn target(&self) -> Bitrate {
        self.sender.target().bitrate
    }

    fn queued(&self) -> DataSize {
        self.sender.media().queued()
    }

    fn controller(&self) -> &Witness {
        self.sender.media().controller()
    }
}
