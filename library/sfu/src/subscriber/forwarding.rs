//! One track on its way to one subscriber: which packets are kept, and when layers change.

use alloc::vec::Vec;

use weir::PacketKind;
use weir::units::{DataSize, TimeDelta, Timestamp};

use super::config::{ForwardError, OutgoingStream};
use super::silence::Silence;
use crate::cache::Cache;
use crate::rewriter::{Rewriter, Verdict};
use crate::targets::{Selection, TargetSelector};
use crate::track::{Frame, Kind, Structure, TrackConfig};

const MARKER_FLAG: u8 = 1 << 7;
/// A stream of fewer spatial layers begins at a frame that allows it. If none comes, a key frame is
/// needed.
const NO_SWITCH: TimeDelta = TimeDelta::from_millis(500);

/// A stream and its highest temporal layer.
type Point = (u8, u8);

/// What was forwarded of a track. Sizes are those of RTP packets, without what other layers add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackStats {
    /// Packets of the publisher that were queued.
    pub packets: u64,
    /// Their bytes.
    pub size: DataSize,
    /// Packets that were sent again.
    pub repeats: u64,
    /// Their bytes.
    pub repeated: DataSize,
    /// Changes from one stream to another, with the first.
    pub switches: u64,
    /// How often the publisher's numbers began anew, or too many packets were missing.
    pub restarts: u64,
}

/// The state of a track.
pub(super) struct Forwarding {
    pub(super) stream: OutgoingStream,
    pub(super) cache: Cache,
    pub(super) rtx_number: u16,
    pub(super) stats: TrackStats,
    rewriter: Rewriter,
    /// What the packets' dependency descriptors allow, if they have them.
    targets: Option<TargetSelector>,
    selection: Selection,
    is_audio: bool,
    structure: Structure,
    /// The source makes frames all the time.
    is_camera: bool,
    silence: Silence,
    wanted: Option<Point>,
    active: Option<Point>,
    /// The last frame for which was decided: timestamp, stream, and whether it is kept.
    last_frame: Option<(u32, u8, bool)>,
    switched: bool,
    last_asked: Option<Timestamp>,
    /// Since when fewer spatial layers are wanted than are forwarded.
    waits_since: Option<Timestamp>,
}

impl Forwarding {
    pub(super) fn new(track: &TrackConfig, stream: OutgoingStream) -> Self {
        let is_audio = track.kind == Kind::Audio;
        Self {
            stream,
            cache: Cache::new(stream.cache_time, if is_audio { 0 } else { stream.cached_packets }),
            rtx_number: 0,
            stats: TrackStats::default(),
            rewriter: Rewriter::new(stream.clock_rate, stream.is_vp8)
                .with_dependency(stream.dependency)
                .with_window(stream.window),
            targets: stream.dependency.map(TargetSelector::new),
            selection: Selection::default(),
            is_audio,
            structure: track.structure,
            is_camera: track.kind == Kind::Camera,
            silence: Silence::default(),
            wanted: None,
            active: None,
            last_frame: None,
            switched: false,
            last_asked: None,
            waits_since: None,
        }
    }

    /// This layer was chosen.
    pub(super) fn want(&mut self, point: Option<Point>) {
        let stream = |point: Option<Point>| point.map(|(stream, _)| stream);
        if stream(point) != stream(self.wanted) {
            self.last_asked = None;
        }
        self.wanted = point;
        if let Some(targets) = &mut self.targets {
            // Of simulcast, each stream has spatial layers of its own, all of which are wanted.
            targets.want(point.map(|(stream, temporal)| match self.structure {
                Structure::Simulcast => (u8::MAX, temporal),
                Structure::Svc => (stream, temporal),
            }));
        }
        if point.is_none() && self.active.is_some() {
            self.pause();
        }
    }

    fn pause(&mut self) {
        self.active = None;
        self.last_frame = None;
        self.rewriter.pause();
        if let Some(targets) = &mut self.targets {
            targets.pause();
        }
    }

    /// The publisher's numbers begin anew. Audio goes on with the next packet, pictures with a key
    /// frame.
    pub(super) fn begin_anew(&mut self) {
        self.pause();
        self.rewriter.restart();
        self.stats.restarts += 1;
        self.last_asked = None;
        self.silence.clear();
        if let Some(targets) = &mut self.targets {
            targets.reset();
        }
    }

    /// The publisher stopped a stream.
    pub(super) fn on_layer_stopped(&mut self, stream: u8) {
        self.silence.stop(stream);
    }

    /// The streams that the publisher does not send now, one bit each. Layers of SVC end by
    /// themselves.
    pub(super) fn silent(&mut self, now: Timestamp) -> u8 {
        if self.is_audio || self.structure == Structure::Svc {
            return 0;
        }
        let active = self.active.map(|(stream, _)| stream);
        self.silence.silent(now, active, self.is_camera)
    }

    /// Stops a stream that is to be replaced by a cheaper one. Returns whether there was one.
    /// Layers of SVC need no cut: they end at the next frame that allows it.
    pub(super) fn cut(&mut self) -> bool {
        if self.targets.is_some() && self.structure == Structure::Svc {
            return false;
        }
        let is_dearer = match (self.active, self.wanted) {
            (Some((active, _)), Some((wanted, _))) => active > wanted,
            _ => false,
        };
        if is_dearer {
            self.pause();
        }
        is_dearer
    }

    /// What waited of its pictures was thrown away: they begin anew, and what is gone is not sent
    /// again. Returns whether there were any.
    pub(super) fn cut_all(&mut self) -> bool {
        if self.is_audio || self.active.is_none() {
            return false;
        }
        self.pause();
        self.cache.clear();
        self.last_asked = None;
        true
    }

    /// The stream of which a key frame is needed, if it is time to ask.
    pub(super) fn key_frame_to_ask(&mut self, now: Timestamp, again: TimeDelta) -> Option<u8> {
        let (wanted, _) = self.wanted?;
        let has_it = match (self.active, self.structure) {
            (None, _) => false,
            (Some((active, _)), Structure::Simulcast) => active == wanted,
            (Some((active, _)), Structure::Svc) if active > wanted => {
                now - *self.waits_since.get_or_insert(now) < NO_SWITCH
            }
            (Some((active, _)), Structure::Svc) => {
                self.waits_since = None;
                active == wanted
            }
        };
        if has_it || self.last_asked.is_some_and(|last| now - last < again) {
            return None;
        }
        self.last_asked = Some(now);
        Some(wanted)
    }

    /// The stream that is watched, for a key frame that the subscriber asks for.
    pub(super) fn watched(&self) -> Option<u8> {
        self.active.or(self.wanted).map(|(stream, _)| stream)
    }

    /// Whether the subscriber's request for a key frame counts: not so soon after another.
    pub(super) fn may_ask(&mut self, now: Timestamp, interval: TimeDelta) -> bool {
        let may = self.last_asked.is_none_or(|last| now - last >= interval);
        if may {
            self.last_asked = Some(now);
        }
        may
    }

    /// The rewriter's name of the stream that a packet belongs to.
    fn source_of(&self, frame: Frame) -> u8 {
        match self.structure {
            Structure::Simulcast => frame.stream,
            Structure::Svc => 0,
        }
    }

    /// Whether a packet is kept; `None` if it belongs to another stream than the forwarded one.
    pub(super) fn decide(&mut self, now: Timestamp, frame: Frame, packet: &[u8]) -> Option<bool> {
        if self.is_audio {
            return Some(true);
        }
        let timestamp = timestamp_of(packet);
        self.silence.on_packet(now, frame.stream, timestamp, frame.starts_key_frame);
        let source = self.source_of(frame);
        if frame.starts_key_frame && self.rewriter.is_jump(packet, source) {
            self.begin_anew();
        }
        if self.targets.is_some() {
            return self.decide_by_target(frame, packet);
        }
        if frame.starts_key_frame {
            self.switch_at_key_frame(frame);
        }
        let (active, temporal) = self.active?;
        let is_forwarded = match self.structure {
            Structure::Simulcast => frame.stream == active,
            Structure::Svc => true,
        };
        if !is_forwarded {
            return None;
        }
        // All packets of a frame share its fate.
        if let Some((last, stream, keep)) = self.last_frame
            && (last, stream) == (timestamp, frame.stream)
        {
            return Some(keep);
        }
        let temporal = self.change_at_frame(frame, temporal);
        let (active, _) = self.active?;
        let keep = frame.temporal <= temporal && frame.stream <= active;
        self.last_frame = Some((timestamp, frame.stream, keep));
        Some(keep)
    }

    /// As [`decide`](Self::decide), by the packet's dependency descriptor.
    fn decide_by_target(&mut self, frame: Frame, packet: &[u8]) -> Option<bool> {
        let wanted = self.wanted;
        let targets = self.targets.as_mut()?;
        let before = self.active.map(|(stream, _)| stream);
        if self.structure == Structure::Simulcast && before != Some(frame.stream) {
            let begins = frame.starts_key_frame && wanted.is_some_and(|it| it.0 == frame.stream);
            if !begins {
                return None;
            }
            targets.reset();
        }
        // What says nothing is left out, so that its number is not missed.
        let is_forwarded = self.active.is_some();
        let Some(selection) = targets.decide(packet) else {
            return is_forwarded.then_some(false);
        };
        self.selection = selection;
        let (spatial, temporal) = targets.active()?;
        let stream = match self.structure {
            Structure::Simulcast => frame.stream,
            Structure::Svc => spatial,
        };
        self.active = Some((stream, temporal));
        if before != Some(stream) {
            self.switched = true;
            self.last_asked = None;
            self.waits_since = None;
        }
        Some(self.selection.keep)
    }

    /// At a key frame every change is possible that leads to its stream.
    fn switch_at_key_frame(&mut self, frame: Frame) {
        let Some(wanted) = self.wanted else { return };
        let is_start = match self.structure {
            Structure::Simulcast => frame.stream == wanted.0,
            // A key frame of SVC starts with its lowest layer.
            Structure::Svc => frame.stream == 0,
        };
        if is_start && self.active != Some(wanted) {
            self.switched = self.active.map(|(stream, _)| stream) != Some(wanted.0);
            self.active = Some(wanted);
            self.last_frame = None;
            self.last_asked = None;
        }
    }

    /// Without a key frame, layers can be left out from any frame on, and temporal layers come back
    /// at a switching point. Returns the highest temporal layer from here on.
    fn change_at_frame(&mut self, frame: Frame, temporal: u8) -> u8 {
        let (Some((active, _)), Some((wanted, most))) = (self.active, self.wanted) else {
            return temporal;
        };
        let mut stream = active;
        if self.structure == Structure::Svc && frame.stream == 0 && wanted < active {
            stream = wanted;
            self.switched = true;
        }
        let mut next = temporal;
        if stream == wanted {
            let may_rise = frame.is_switching_point && frame.temporal <= most;
            if most < temporal || may_rise {
                next = most;
            }
        }
        self.active = Some((stream, next));
        next
    }

    /// Whether the stream changed at the last packet.
    pub(super) fn took_switch(&mut self) -> bool {
        let is_switch = core::mem::take(&mut self.switched);
        self.stats.switches += u64::from(is_switch);
        is_switch
    }

    /// What its packets are to the pacer.
    pub(super) fn kind(&self) -> PacketKind {
        if self.is_audio { PacketKind::Audio } else { PacketKind::Video }
    }

    pub(super) fn note_forwarded(&mut self, size: DataSize) {
        self.stats.packets += 1;
        self.stats.size += size;
    }

    pub(super) fn note_repeat(&mut self, size: DataSize) {
        self.stats.repeats += 1;
        self.stats.repeated += size;
    }

    /// The stream of simulcast from which the numbers before the next packet came.
    pub(super) fn rewriter_source(&self) -> Option<u8> {
        match self.structure {
            Structure::Simulcast => self.rewriter.source(),
            Structure::Svc => None,
        }
    }

    /// The highest spatial layer of SVC that is forwarded.
    pub(super) fn forwarded_layer(&self) -> Option<u8> {
        match self.structure {
            Structure::Simulcast => None,
            Structure::Svc => self.active.map(|(stream, _)| stream),
        }
    }

    /// Changes a packet for the subscriber and keeps a copy. Returns whether it is to be sent.
    pub(super) fn write(
        &mut self,
        now: Timestamp,
        packet: &mut Vec<u8>,
        frame: Frame,
        keep: bool,
    ) -> Result<bool, ForwardError> {
        let source = self.source_of(frame);
        let mut verdict = self.rewriter.rewrite(now, packet, source, keep);
        if verdict == Verdict::Lost {
            self.begin_anew();
            if self.is_audio {
                // Each of its packets stands alone.
                verdict = self.rewriter.rewrite(now, packet, source, keep);
            }
        }
        let number = match verdict {
            Verdict::Malformed => return Err(ForwardError::Malformed),
            Verdict::Drop | Verdict::Lost => return Ok(false),
            Verdict::Forward { sequence_number } => {
                self.mark(packet);
                sequence_number
            }
            Verdict::Fill { sequence_number } => sequence_number,
        };
        packet[1] = packet[1] & MARKER_FLAG | self.stream.payload_type.get();
        packet[8..12].copy_from_slice(&self.stream.ssrc.to_be_bytes());
        self.cache.insert(now, number, packet);
        Ok(true)
    }

    /// Marks the end of a picture whose larger layers are left out, and says what is left.
    fn mark(&self, packet: &mut Vec<u8>) {
        let Some(targets) = &self.targets else { return };
        if self.selection.ends_picture {
            packet[1] |= MARKER_FLAG;
        }
        if self.selection.announces {
            targets.announce(packet);
        }
    }

    /// The timestamp that a packet of the forwarded stream leaves with.
    pub(super) fn timestamp(&self, stream: u8, timestamp: u32) -> Option<u32> {
        let source = match self.structure {
            Structure::Simulcast => stream,
            Structure::Svc => 0,
        };
        self.rewriter.timestamp(timestamp).filter(|_| self.rewriter.source() == Some(source))
    }

    /// The newest timestamp that left, and when its first packet was queued.
    pub(super) fn newest_timestamp(&self) -> Option<(u32, Timestamp)> {
        self.rewriter.newest_timestamp()
    }

    /// The publisher's packet that is missing under this number.
    pub(super) fn missing(&self, number: u16) -> Option<(u8, u16)> {
        Some((self.rewriter.source()?, self.rewriter.missing(number)?))
    }
}

/// The RTP timestamp of a packet [RFC3550 §5.1].
fn timestamp_of(packet: &[u8]) -> u32 {
    match packet.get(4..8) {
        Some(&[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    }
}
