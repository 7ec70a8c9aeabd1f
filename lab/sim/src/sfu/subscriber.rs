//! The two ends of a subscriber's flow: the server's part that serves it, and the receiver.

use std::collections::VecDeque;
use std::ops::Range;

use weir::controller::Controller;
use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_rtcp::SenderConfig;
use weir_sfu::{
    Change, Decision, OutgoingStream, Structure, Subscriber, SubscriberConfig, TrackConfig, TrackId,
};
use weir_wire::rtp::PayloadType;

use super::forwarder::Forwarder;
use super::good_time::GoodTime;
use super::receiver::{PADDING_SSRC, Receiver, ssrcs};
use super::rivals::{Mediasoup, Policy, Rival};
use super::structure::{DEPENDENCY_ID, header_size};
use super::witness::Witness;
use super::{News, Oracle, Published, Request};
use crate::config::{Content, Core, FlowConfig, Publisher, TrackKind, Watching};
use crate::flow::{Body, End, Ends, Outbox, Packet, SenderState};
use crate::rtp_format::{EXTENSION_ID, IP_UDP, PAYLOAD_TYPE, RTP_HEADER, SRTP_TAG};
use crate::trace::{DecisionKind, Forwarded, LayerDecision, Video};

const RTX_PAYLOAD_TYPE: PayloadType = PayloadType::new(97).unwrap();
/// Bytes of a payload that receivers read: the number of what is sent again, and a descriptor with
/// temporal layers.
const READ_PAYLOAD: usize = 2 + 7;
/// The same with the headers. In a stream of SVC their size differs.
const READ: usize = RTP_HEADER + READ_PAYLOAD;
const PADDING_FLAG: u8 = 1 << 5;

/// A track as this subscriber gets it.
struct Track {
    /// The publisher, by index.
    publisher: usize,
    is_audio: bool,
    /// What the server says of it; `None` while its publisher is away.
    config: Option<TrackConfig>,
    /// The stream that is sent now; `None`: nothing.
    sent: Option<u8>,
    /// When something of it was forwarded last.
    last_frame: Timestamp,
    /// The layer that was chosen.
    chosen: Option<usize>,
    has_begun: bool,
    /// Since when nothing is sent until a key frame comes.
    cut: Option<Timestamp>,
    is_hidden: bool,
    /// What the camera shows; `None` if its picture is not judged.
    content: Option<Content>,
    good_time: GoodTime,
}

impl Track {
    /// The stream of a layer.
    fn stream(&self, layer: usize) -> Option<u8> {
        let layers = &self.config.as_ref()?.layers;
        layers.get(layer).map(|layer| layer.stream)
    }

    /// The layer that is sent now: the chosen one, or the best of another stream until its key
    /// frame comes.
    fn level(&self) -> Option<usize> {
        let sent = self.sent?;
        let chosen = self.chosen.filter(|&chosen| self.stream(chosen) == Some(sent));
        let layers = &self.config.as_ref()?.layers;
        chosen.or_else(|| layers.iter().rposition(|layer| layer.stream == sent))
    }
}

/// A subscriber.
pub(crate) struct SubscriberEnds {
    name: String,
    server: Box<dyn Forwarder>,
    receiver: Receiver,
    tracks: Vec<Track>,
    ecn: Ecn,
    pauses: Vec<Range<Timestamp>>,
    /// Times at which everything is hidden or shown again, in order, and the start.
    turns: VecDeque<Timestamp>,
    has_started: bool,
    /// What was last noted of the target.
    target: Bitrate,
    forwarded: Forwarded,
    /// A track has layers of SVC.
    has_svc: bool,
    oracle: Oracle,
}

impl SubscriberEnds {
    pub(crate) fn new(
        flow: &FlowConfig,
        watching: &Watching,
        publishers: &[Publisher],
        seed: Seed,
    ) -> Self {
        let media = &watching.media;
        let controller = Witness::new(media.controller.build(media.settings));
        let limits = media.settings.limits;
        let sender = SenderConfig::twcc(PADDING_SSRC, EXTENSION_ID)
            .with_padding_ssrc(PADDING_SSRC)
            .with_sender_reports(false)
            .with_overhead(DataSize::from_bytes(IP_UDP + SRTP_TAG));
        let server: Box<dyn Forwarder> = match watching.core {
            Core::Weir => {
                let config = SubscriberConfig::new(sender);
                Box::new(Subscriber::new(flow.start, controller, limits, config))
            }
            Core::Greedy => Box::new(Rival::new(flow.start, controller, sender, Policy::Greedy)),
            Core::LiveKit => {
                Box::new(Rival::new(flow.start, controller.unpaced(), sender, Policy::livekit()))
            }
            Core::Mediasoup => {
                let policy = Policy::Mediasoup(Mediasoup::default());
                Box::new(Rival::new(flow.start, controller.unpaced(), sender, policy))
            }
        };
        let mut tracks = Vec::new();
        for &publisher in &watching.publishers {
            tracks.push(Track {
                publisher,
                is_audio: publishers[publisher].kind == TrackKind::Audio,
                config: None,
                sent: None,
                last_frame: flow.start,
                chosen: None,
                has_begun: false,
                cut: None,
                is_hidden: true,
                content: (publishers[publisher].kind == TrackKind::Camera)
                    .then_some(publishers[publisher].content),
                good_time: GoodTime::default(),
            });
        }
        let is_video: Vec<bool> = tracks.iter().map(|track| !track.is_audio).collect();
        Self {
            name: flow.name.clone(),
            target: server.target(),
            server,
            receiver: Receiver::new(flow, media, &is_video, seed),
            tracks,
            ecn: media.controller.ecn_mode(media.settings.ecn).codepoint(),
            pauses: flow.pauses.clone(),
            turns: flow.pauses.iter().flat_map(|pause| [pause.start, pause.end]).collect(),
            has_started: false,
            forwarded: Forwarded::default(),
            has_svc: false,
            oracle: Oracle::default(),
        }
    }

    fn place(&self, publisher: usize) -> Option<usize> {
        self.tracks.binary_search_by_key(&publisher, |track| track.publisher).ok()
    }

    fn is_paused(&self, now: Timestamp) -> bool {
        self.pauses.iter().any(|pause| pause.contains(&now))
    }

    /// Tells the server's part of a track that came, or is shown in another size.
    fn pass_on(&mut self, now: Timestamp, place: usize, is_new: bool) {
        let is_paused = self.is_paused(now);
        let track = &mut self.tracks[place];
        let Some(mut config) = track.config.clone() else { return };
        if is_paused {
            (config.shown_width, config.shown_height) = (0, 0);
        }
        track.is_hidden = config.shown_width == 0;
        let id = TrackId(place as u32);
        if !is_new {
            return self.server.set_track(now, id, config);
        }
        let own = ssrcs(place);
        let is_svc = config.structure == Structure::Svc;
        self.has_svc |= is_svc;
        let stream = OutgoingStream::new(own.media, PAYLOAD_TYPE)
            .with_is_vp8(!track.is_audio && !is_svc)
            .with_dependency(is_svc.then_some(DEPENDENCY_ID))
            .with_rtx(Some((own.rtx, RTX_PAYLOAD_TYPE)));
        track.sent = track.is_audio.then_some(0);
        track.has_begun = false;
        self.server.add_track(now, id, config, stream);
    }

    /// Starts, and hides or shows everything.
    fn turn(&mut self, now: Timestamp) {
        let is_start = !self.has_started;
        self.has_started = true;
        let is_turn = self.turns.pop_front_if(|turn| *turn <= now).is_some();
        if is_start || is_turn {
            for place in 0..self.tracks.len() {
                self.pass_on(now, place, is_start);
            }
        }
    }

    fn on_packet_of_publisher(&mut self, now: Timestamp, packet: &Published<'_>) -> bool {
        let Some(place) = self.place(packet.track) else { return false };
        if self.tracks[place].config.is_none() {
            return false;
        }
        let is_forwarded =
            self.server.forward(now, TrackId(place as u32), packet.bytes, packet.frame);
        if is_forwarded {
            self.tracks[place].last_frame = now;
        }
        is_forwarded
    }

    fn on_bitrates(&mut self, publisher: usize, bitrates: &[Bitrate]) {
        let Some(place) = self.place(publisher) else { return };
        if let Some(config) = &mut self.tracks[place].config {
            for (layer, &bitrate) in config.layers.iter_mut().zip(bitrates) {
                layer.bitrate = bitrate;
            }
        }
        self.server.set_bitrates(TrackId(place as u32), bitrates);
    }

    /// Sends what may leave, and acts on decisions.
    fn after_server(&mut self, now: Timestamp, out: &mut Outbox) {
        while let Some(packet) = self.server.next_packet(now) {
            let bytes = packet.content;
            let has_padding = bytes[0] & PADDING_FLAG != 0;
            if has_padding {
                self.forwarded.padding += packet.size;
            }
            let read = if self.has_svc { header_size(&bytes) + READ_PAYLOAD } else { READ };
            let read = if has_padding { bytes.len() } else { bytes.len().min(read) };
            let body = Body::RtpPayload(bytes[..read].to_vec());
            out.packets.push(Packet { size: packet.size, ecn: self.ecn, body });
            self.server.recycle(bytes);
        }
        while let Some(decision) = self.server.next_decision() {
            self.obey(now, decision, out);
        }
        while let Some((TrackId(place), stream, number)) = self.server.next_missing() {
            let track = self.tracks[place as usize].publisher;
            out.requests.push(Request::Missing { track, stream, number });
        }
        self.note_target(out);
    }

    /// Notes a change of the target with the controller's reason.
    fn note_target(&mut self, out: &mut Outbox) {
        let target = self.server.target();
        if target == self.target {
            return;
        }
        let from = std::mem::replace(&mut self.target, target);
        let controller = self.server.controller();
        let (own, metrics) = (controller.target().bitrate, controller.metrics());
        let reason = if target > own { "probed" } else { metrics.reason.as_str() };
        let signals = metrics.signals.iter();
        let signals = signals.map(|&(name, value)| (name.into(), value)).collect();
        let state = metrics.state;
        out.changes.push(crate::flow::Change { from, to: target, reason, state, signals });
    }

    fn obey(&mut self, now: Timestamp, decision: Decision, out: &mut Outbox) {
        let place = decision.track.map(|TrackId(place)| place as usize);
        let track = place.map(|place| self.tracks[place].publisher);
        let (mut from, mut to) = (None, None);
        let kind = match (decision.change, place) {
            (Change::Choose { from: before, to: after }, Some(place)) => {
                (from, to) = (number(before), number(after));
                self.choose(place, after, out);
                DecisionKind::Chosen
            }
            (Change::Switched { to: stream, from: before }, Some(place)) => {
                (from, to) = (before.map(u64::from), Some(u64::from(stream)));
                let own = &mut self.tracks[place];
                own.sent = Some(stream);
                if let Some(cut) = own.cut.take() {
                    self.receiver.note_cut(now - cut);
                } else {
                    self.receiver.note_switch(now, place);
                }
                DecisionKind::Switched
            }
            (Change::RequestKeyFrame { stream }, Some(place)) => {
                to = Some(u64::from(stream));
                let track = self.tracks[place].publisher;
                self.forwarded.key_frames += 1;
                out.requests.push(Request::KeyFrame { track, stream });
                DecisionKind::KeyFrameAsked
            }
            (Change::Refuse { layer }, _) => {
                to = number(Some(layer));
                DecisionKind::Refused
            }
            (Change::Cut, Some(place)) => {
                let own = &mut self.tracks[place];
                (own.sent, own.cut) = (None, Some(now));
                DecisionKind::Cut
            }
            (Change::Probe { .. }, _) => DecisionKind::Probe,
            (Change::Proved { .. }, _) => DecisionKind::Proved,
            (Change::Disproved { .. }, _) => DecisionKind::Disproved,
            _ => return,
        };
        out.decisions.push(LayerDecision {
            time: decision.at,
            flow: self.name.clone(),
            track: track.map(|track| track as u64 + 1),
            kind,
            from,
            to,
            reason: decision.reason.as_str().into(),
            budget: decision.budget,
            needed: decision.needed,
        });
    }

    fn choose(&mut self, place: usize, to: Option<usize>, out: &mut Outbox) {
        let own = &mut self.tracks[place];
        // What is shown for the first time, hidden or shown again is no switch of the server's own.
        let is_own = own.has_begun && !own.is_hidden;
        self.forwarded.switches += u64::from(is_own);
        own.has_begun |= to.is_some();
        if own.is_hidden {
            own.has_begun = false;
        }
        own.chosen = to;
        if to.is_none() {
            (own.sent, own.cut) = (None, None);
        }
        let track = own.publisher;
        let stream = to.and_then(|layer| own.stream(layer));
        out.requests.push(Request::Watch { track, stream });
    }

    /// Counts the half seconds of the cameras that are over.
    fn judge(&mut self, row: &mut Forwarded) {
        for (place, track) in self.tracks.iter_mut().enumerate() {
            let Some(content) = track.content else { continue };
            let level = track.level();
            let Some(config) = track.config.as_ref().filter(|_| !track.is_hidden) else {
                track.good_time.stop();
                continue;
            };
            let shown = self.receiver.shown(place);
            if let Some(half) = track.good_time.push(shown, content, config, level) {
                row.note(half);
            }
        }
    }

    /// What was forwarded since the last call. `share` is the subscriber's part of the capacity;
    /// `None` if it is not known. `tracks` are those of the server.
    fn forwarded(
        &mut self,
        share: Option<Bitrate>,
        tracks: &mut dyn Iterator<Item = (usize, &TrackConfig)>,
    ) -> Forwarded {
        let freezes = self.receiver.take_switch_freezes();
        let mut row = std::mem::take(&mut self.forwarded);
        row.switch_freezes = freezes.count;
        row.switch_frozen = TimeDelta::from_micros(freezes.time.as_micros());
        self.judge(&mut row);
        for track in &self.tracks {
            if !track.is_audio {
                row.layers += track.sent.map_or(0, |stream| u64::from(stream) + 1);
            }
        }
        let Some(share) = share else { return row };
        let mut watched = Vec::new();
        let mut own = Vec::new();
        for (publisher, config) in tracks {
            if let Some(place) = self.place(publisher)
                && !self.tracks[place].is_hidden
            {
                watched.push((publisher, config));
                own.push(self.tracks[place].level());
            }
        }
        let best = self.oracle.levels(share, &watched);
        row.best_layers = Some(0);
        for (&(_, config), best) in watched.iter().zip(best) {
            let Some(best) = *best else { continue };
            let stream = config.layers[best].stream;
            row.best_layers = row.best_layers.map(|sum| sum + u64::from(stream) + 1);
            row.fitting += 1;
        }
        row.below = tracks_below(&watched, &own, best);
        row
    }
}

/// How many tracks are sent below the best layer that fits. Tracks that are shown alike may change
/// places: which of two equal pictures is sent is all the same.
fn tracks_below(
    watched: &[(usize, &TrackConfig)],
    sent: &[Option<usize>],
    best: &[Option<usize>],
) -> u64 {
    let mut below = 0;
    let mut is_seen = vec![false; watched.len()];
    for first in 0..watched.len() {
        let (mut have, mut want) = (Vec::new(), Vec::new());
        for other in first..watched.len() {
            if !is_seen[other] && are_alike(watched[first].1, watched[other].1) {
                is_seen[other] = true;
                have.push(sent[other]);
                want.push(best[other]);
            }
        }
        have.sort_unstable();
        want.sort_unstable();
        below += have.iter().zip(&want).filter(|(have, want)| have < want).count();
    }
    below as u64
}

/// Whether two tracks differ in nothing but what they show now and what that costs.
fn are_alike(one: &TrackConfig, other: &TrackConfig) -> bool {
    one.kind == other.kind
        && one.priority == other.priority
        && (one.shown_width, one.shown_height) == (other.shown_width, other.shown_height)
        && one.layers.len() == other.layers.len()
        && one.layers.iter().zip(&other.layers).all(|(one, other)| {
            (one.stream, one.temporal, one.width, one.height)
                == (other.stream, other.temporal, other.width, other.height)
        })
}

fn number(layer: Option<usize>) -> Option<u64> {
    layer.map(|layer| layer as u64)
}

impl Ends for SubscriberEnds {
    fn next_deadline(&self, end: End) -> Option<Timestamp> {
        Some(match end {
            End::Sender => {
                let turn = self.turns.front().copied();
                turn.into_iter().chain([self.server.next_timeout()]).min()?
            }
            End::Receiver => self.receiver.next_deadline(),
        })
    }

    fn on_deadline(&mut self, now: Timestamp, end: End, out: &mut Outbox) {
        match end {
            End::Sender => {
                self.turn(now);
                self.server.on_timeout(now);
                self.after_server(now, out);
            }
            End::Receiver => self.receiver.on_deadline(now, out),
        }
    }

    fn on_packet(&mut self, now: Timestamp, end: End, packet: &Packet, out: &mut Outbox) {
        match (end, &packet.body) {
            (End::Sender, Body::Rtcp(bytes)) => {
                self.server.on_rtcp(now, bytes);
                out.rtt = self.server.controller().take_rtt();
                if let Some(rtt) = out.rtt {
                    self.receiver.on_round_trip_time(now, rtt);
                }
                self.after_server(now, out);
            }
            (End::Receiver, Body::RtpPayload(bytes)) => {
                self.receiver.on_packet(now, bytes, packet);
            }
            (end, body) => unreachable!("no {body:?} goes to the {end:?} of a subscriber"),
        }
    }

    fn on_news(&mut self, now: Timestamp, news: &News<'_>, out: &mut Outbox) -> bool {
        match news {
            News::Packet(packet) => {
                if !self.has_started || !self.on_packet_of_publisher(now, packet) {
                    return false;
                }
            }
            News::Bitrates { track, bitrates } => {
                self.on_bitrates(*track, bitrates);
                return false;
            }
            News::Track { track, config } => {
                let Some(place) = self.place(*track) else { return false };
                let is_new = self.tracks[place].config.replace((*config).clone()).is_none();
                if !self.has_started {
                    return false;
                }
                self.pass_on(now, place, is_new);
            }
            News::Left { track } => {
                let Some(place) = self.place(*track) else { return false };
                (self.tracks[place].config, self.tracks[place].sent) = (None, None);
                self.server.remove_track(now, TrackId(place as u32));
            }
        }
        self.after_server(now, out);
        true
    }

    fn state(&self) -> SenderState {
        SenderState {
            target: Some(self.server.target()),
            pacing_rate: None,
            congestion_window: None,
            send_queue: Some(self.server.queued()),
        }
    }

    fn take_video(&mut self, now: Timestamp, is_last: bool) -> Option<Video> {
        if is_last {
            for (place, track) in self.tracks.iter().enumerate() {
                self.receiver.finish(place, track.last_frame);
            }
        }
        Some(self.receiver.take_video(now))
    }

    fn take_forwarded(
        &mut self,
        share: Option<Bitrate>,
        tracks: &mut dyn Iterator<Item = (usize, &TrackConfig)>,
    ) -> Option<Forwarded> {
        Some(self.forwarded(share, tracks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_sfu::Layer;

    #[test]
    fn pictures_that_are_shown_alike_may_change_places_and_others_may_not() {
        let layers = vec![
            Layer::new(0, 320, 180, Bitrate::from_kbps(150)),
            Layer::new(1, 640, 360, Bitrate::from_kbps(500)),
        ];
        let speaker = TrackConfig::camera(layers.clone()).with_shown(1280, 720);
        let cheap =
            TrackConfig::camera(vec![layers[0].with_bitrate(Bitrate::from_kbps(90)), layers[1]]);
        let guest = TrackConfig::camera(layers);
        let watched = [(0, &speaker), (1, &guest), (2, &cheap)];
        let best = [Some(1), Some(0), None];
        assert_eq!(tracks_below(&watched, &[Some(1), None, Some(0)], &best), 0);
        assert_eq!(tracks_below(&watched, &[Some(0), Some(1), None], &best), 1);
        assert_eq!(tracks_below(&watched, &[None, None, None], &best), 2);
        assert_eq!(tracks_below(&watched, &[Some(1), Some(1), Some(1)], &best), 0);
    }
}
