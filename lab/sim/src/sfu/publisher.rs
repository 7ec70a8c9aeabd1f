//! A publisher and its uplink: frames are encoded, cut into packets, delayed, lost and repaired.

use std::collections::{BTreeMap, VecDeque};

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::seed::Stream;
use weir_sfu::{DependencyReader, Layer, PayloadDescriptor, Structure, TrackConfig, Uplink};
use weir_wire::rtp::{RtpHeader, View};
use weir_wire::vp8::Descriptor;

use super::structure::{self, DEPENDENCY_ID, Svc};
use super::temporal::{Place, frames, place, share, weight};
use crate::config::{Degradation, EncoderVideo, Publisher, Source, TrackKind};
use crate::rtp_format::{
    EXTENSION_ID, IP_UDP, MAX_PACKET, OVERHEAD, PAYLOAD_TYPE, RTP_HEADER, SRTP_TAG, rtp_timestamp,
};
use crate::source::MediaSource;

/// Packets of a stream that a publisher can send again: 4 s at 2 Mbit/s.
const HISTORY: usize = 1_024;
/// How often the server asks for one packet at most, and the shortest time between two requests.
const MAX_REQUESTS: u32 = 10;
const MIN_REQUEST_INTERVAL: TimeDelta = TimeDelta::from_millis(20);
/// A packet of audio every 20 ms.
const AUDIO_INTERVAL: TimeDelta = TimeDelta::from_millis(20);

/// The fields of VP8's descriptor that streams with temporal layers have.
const EXTENDED_FLAG: u8 = 1 << 7;
const ID_INDEX_AND_LAYER: u8 = 1 << 7 | 1 << 6 | 1 << 5;
const LONG_PICTURE_ID: u16 = 1 << 15;
const LAYER_SHIFT: u8 = 6;
const SYNC_FLAG: u8 = 1 << 5;

/// A packet on its way to the server. Its payload follows from its role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub stream: u8,
    pub number: u16,
    pub timestamp: u32,
    pub is_last: bool,
    pub start: Descriptor,
    /// What the descriptor says of temporal layers; `None` if there are none.
    picture: Option<Picture>,
    /// What its dependency descriptor says, of a stream of SVC.
    place: Option<structure::Place>,
    pub size: DataSize,
}

impl Sent {
    /// Spatial layer or stream, and temporal layer.
    fn layers(&self) -> (u8, u8) {
        match (self.place, self.picture) {
            (Some(place), _) => (place.spatial, place.temporal),
            (None, picture) => (self.stream, picture.map_or(0, |picture| picture.place.layer)),
        }
    }
}

/// A picture of a stream with temporal layers.
#[derive(Clone, Copy, Debug)]
struct Picture {
    id: u16,
    base_index: u8,
    place: Place,
}

impl Picture {
    /// Bytes of the descriptor with these numbers, and of the first byte after it.
    const SIZE: usize = 7;

    /// Writes the descriptor in its long form around the short one [RFC7741 §4.2].
    fn emit(self, start: Descriptor) -> [u8; Self::SIZE] {
        let [first, media] = start.emit();
        let [high, low] = (self.id | LONG_PICTURE_ID).to_be_bytes();
        let sync = if self.place.is_switching_point { SYNC_FLAG } else { 0 };
        let layers = self.place.layer << LAYER_SHIFT | sync;
        [first | EXTENDED_FLAG, ID_INDEX_AND_LAYER, high, low, self.base_index, layers, media]
    }
}

/// What a packet is to the server.
pub(crate) struct Published<'a> {
    /// The publisher, by index.
    pub track: usize,
    /// The whole RTP packet.
    pub bytes: &'a [u8],
    pub frame: weir_sfu::Frame,
}

/// The encoder of one stream, or of one layer of SVC. The packets of all layers are in the history
/// of the first.
pub(super) struct Encoder {
    pub source: MediaSource,
    next_number: u16,
    /// When a key frame was asked for; the first picture after it is one.
    pub key_frame_at: Option<Timestamp>,
    pub is_on: bool,
    /// Frames since the last key frame, and the numbers of the last picture.
    frames: u32,
    picture_id: u16,
    base_index: u8,
    pub history: VecDeque<Sent>,
    /// The number that the server waits for next.
    expected: Option<u16>,
    /// Packets that the server has asked for: when last, and how often.
    asked: BTreeMap<u16, (Timestamp, u32)>,
}

/// A publisher and what the server knows of it.
pub(super) struct PublisherState {
    pub config: Publisher,
    pub encoders: Vec<Encoder>,
    /// The layers of one stream; `None` in simulcast.
    pub svc: Option<Svc>,
    /// Reads dependency descriptors, as a server does.
    pub reader: DependencyReader,
    /// SSRC of the first stream.
    pub ssrc: u32,
    chance: Stream,
    pub uplink: Uplink,
    /// The track with the size at which it is shown now.
    pub track: TrackConfig,
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// Keeps a packet to send it again.
    pub(super) fn note(&mut self, sent: Sent) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(sent);
    }

    /// The next picture among temporal layers; `None` if the stream has none.
    fn next_picture(&mut self, temporal_layers: u8, is_key: bool) -> Option<Picture> {
        if temporal_layers < 2 {
            return None;
        }
        self.frames = if is_key { 0 } else { self.frames + 1 };
        let place = place(temporal_layers, self.frames);
        self.picture_id = self.picture_id.wrapping_add(1) & !LONG_PICTURE_ID;
        if place.layer == 0 {
            self.base_index = self.base_index.wrapping_add(1);
        }
        Some(Picture { id: self.picture_id, base_index: self.base_index, place })
    }
}

impl PublisherState {
    /// `index` is its place among all publishers.
    pub(super) fn new(config: &Publisher, index: usize, seed: Seed) -> Self {
        let mut encoders = Vec::new();
        for (index, layer) in config.layers.iter().enumerate() {
            let video = EncoderVideo {
                width: layer.width.into(),
                height: layer.height.into(),
                content: config.content,
                degradation: Degradation::MaintainResolution,
                ..EncoderVideo::DEFAULT
            };
            let kind = match config.kind {
                TrackKind::Audio => Source::Filler { fps: 50.0, cap: None },
                _ => Source::Encoder { fps: config.fps, cap: None, video },
            };
            let mut stream = seed.stream(&format!("{}/source/{index}", config.name));
            let next_number = stream.bits() as u16;
            encoders.push(Encoder {
                source: MediaSource::new(kind, stream),
                next_number,
                key_frame_at: None,
                is_on: true,
                frames: 0,
                picture_id: next_number & !LONG_PICTURE_ID,
                base_index: next_number as u8,
                history: VecDeque::new(),
                expected: None,
                asked: BTreeMap::new(),
            });
        }
        let track = track_of(config);
        let first = encoders.first().map_or(0, |encoder: &Encoder| encoder.next_number);
        let svc = match config.structure {
            Structure::Svc => Svc::new(config, first),
            _ => None,
        };
        Self {
            svc,
            reader: DependencyReader::new(DEPENDENCY_ID),
            ssrc: (index as u32) << 8,
            uplink: Uplink::new(track.structure),
            track,
            config: config.clone(),
            encoders,
            chance: seed.stream(&format!("{}/uplink", config.name)),
            bytes: Vec::new(),
        }
    }

    pub(super) fn streams(&self) -> usize {
        if self.svc.is_some() { 1 } else { self.encoders.len() }
    }

    /// The encoder that makes a stream's key frames.
    fn key_encoder(&mut self, stream: u8) -> Option<&mut Encoder> {
        let index = if self.svc.is_some() { 0 } else { stream.into() };
        self.encoders.get_mut(index)
    }

    /// Encodes the picture of a stream that is due now. Returns its packets, and when the next
    /// picture is due.
    pub(super) fn encode(&mut self, now: Timestamp, stream: usize) -> (Vec<Sent>, TimeDelta) {
        if self.svc.is_some() {
            return self.encode_layers(now);
        }
        let rate = self.config.layers[stream].rate.rate(now);
        let encoder = &mut self.encoders[stream];
        if rate == Bitrate::ZERO {
            // The layer is not sent. It begins again with a key frame.
            encoder.key_frame_at = Some(now);
            return (Vec::new(), TimeDelta::from_secs_f64(1.0 / self.config.fps));
        }
        let is_audio = self.config.kind == TrackKind::Audio;
        let is_key = encoder.key_frame_at.is_some_and(|due| due <= now);
        let is_key = is_key || encoder.history.is_empty();
        if is_key {
            encoder.key_frame_at = None;
            encoder.source.begin_key_frame();
        }
        let (size, interval) = encoder.source.frame(now, rate, 1.0);
        let interval = if is_audio { AUDIO_INTERVAL } else { interval };
        let mut packets = Vec::new();
        let Some(size) = size.filter(|_| encoder.is_on) else {
            // The encoder dropped the picture, so the key frame is still to come.
            encoder.key_frame_at = is_key.then_some(now).or(encoder.key_frame_at);
            return (packets, interval);
        };
        let picture = encoder.next_picture(self.config.temporal_layers, is_key);
        let scale = match picture {
            Some(picture) if !is_key => weight(self.config.temporal_layers, picture.place.layer),
            _ => 1.0,
        };
        let least = OVERHEAD + descriptor_size(picture) as u64;
        let bytes = (size * scale).as_bytes().max(least);
        let count = bytes.div_ceil(MAX_PACKET);
        for index in 0..count {
            let more = u64::from(index < bytes % count);
            let start = match (index, is_key) {
                (0, true) => Descriptor::KeyFrameStart,
                (0, false) => Descriptor::InterFrameStart,
                _ => Descriptor::Continuation,
            };
            let size = DataSize::from_bytes(bytes / count + more);
            let mut sent = self.send(stream, now, index + 1 == count, start, size, None);
            sent.picture = picture;
            self.encoders[stream].note(sent);
            packets.push(sent);
        }
        (packets, interval)
    }

    /// The next packet of a stream.
    pub(super) fn send(
        &mut self,
        stream: usize,
        now: Timestamp,
        is_last: bool,
        start: Descriptor,
        size: DataSize,
        place: Option<structure::Place>,
    ) -> Sent {
        let encoder = &mut self.encoders[stream];
        let sent = Sent {
            stream: stream as u8,
            number: encoder.next_number,
            timestamp: rtp_timestamp(now),
            is_last,
            start,
            picture: None,
            place,
            size,
        };
        encoder.next_number = encoder.next_number.wrapping_add(1);
        sent
    }

    /// Whether the uplink loses the next packet.
    pub(super) fn loses(&mut self) -> bool {
        self.config.uplink.loss > 0.0 && self.chance.chance(self.config.uplink.loss)
    }

    /// A packet came to the server. Returns the numbers of those before it that are missing.
    pub(super) fn on_arrival(&mut self, now: Timestamp, sent: Sent) -> Vec<u16> {
        let (layer, temporal) = sent.layers();
        self.uplink.on_packet(now, layer, temporal, sent.size);
        let encoder = &mut self.encoders[usize::from(sent.stream)];
        encoder.asked.remove(&sent.number);
        let expected = encoder.expected.unwrap_or(sent.number);
        let gap = sent.number.wrapping_sub(expected);
        if gap > u16::MAX / 2 {
            return Vec::new(); // It comes late.
        }
        encoder.expected = Some(sent.number.wrapping_add(1));
        let mut missing = Vec::new();
        for step in 0..gap.min(HISTORY as u16) {
            missing.push(expected.wrapping_add(step));
        }
        missing
    }

    /// The server asks for a packet. Returns it if the publisher still has it, unless it was asked
    /// for a moment ago.
    pub(super) fn ask_again(&mut self, now: Timestamp, stream: u8, number: u16) -> Option<Sent> {
        let interval = (self.config.uplink.delay * 2).max(MIN_REQUEST_INTERVAL);
        let encoder = self.encoders.get_mut(usize::from(stream))?;
        let (last, times) = encoder.asked.get(&number).copied().unwrap_or((now - interval, 0));
        if now - last < interval || times >= MAX_REQUESTS {
            return None;
        }
        let newest = encoder.history.back()?.number;
        let back = usize::from(newest.wrapping_sub(number));
        let place = encoder.history.len().checked_sub(back + 1)?;
        encoder.asked.retain(|_, (last, _)| now - *last < TimeDelta::from_secs(2));
        encoder.asked.insert(number, (now, times + 1));
        encoder.history.get(place).copied()
    }

    /// Whether a packet that was asked for has not come yet.
    pub(super) fn is_missing(&self, stream: u8, number: u16) -> bool {
        self.encoders
            .get(usize::from(stream))
            .is_some_and(|encoder| encoder.asked.contains_key(&number))
    }

    /// Somebody needs a key frame of a stream. Returns whether the publisher is asked for one.
    pub(super) fn ask_for_key_frame(&mut self, now: Timestamp, stream: u8) -> bool {
        // All layers of SVC begin with one key frame.
        let stream = if self.svc.is_some() { 0 } else { stream };
        if !self.uplink.on_key_frame_request(now, stream) {
            return false;
        }
        let way = self.config.uplink;
        if let Some(encoder) = self.encoders.get_mut(usize::from(stream)) {
            encoder.key_frame_at.get_or_insert(now + way.delay + way.key_frame_delay);
        }
        true
    }

    /// Tells the publisher which streams nobody watches.
    pub(super) fn pass_on_demands(&mut self, now: Timestamp) {
        if self.config.kind == TrackKind::Audio {
            return; // Sound is forwarded without being chosen, so nobody says that it is watched.
        }
        while let Some(demand) = self.uplink.next_demand(now) {
            let stream = usize::from(demand.stream);
            let Some(encoder) = self.encoders.get_mut(stream) else { continue };
            let begins = demand.is_watched && !encoder.is_on;
            encoder.is_on = demand.is_watched;
            let due = now + self.config.uplink.delay;
            if begins && let Some(encoder) = self.key_encoder(demand.stream) {
                encoder.key_frame_at = Some(due);
            }
        }
    }

    /// The bytes of a packet and what the server reads from them.
    pub(super) fn read(&mut self, track: usize, sent: Sent) -> Published<'_> {
        if let Some(place) = sent.place {
            let frame = self.read_layer(sent, place);
            return Published { track, bytes: &self.bytes, frame };
        }
        let header = RtpHeader::new(
            self.ssrc | u32::from(sent.stream),
            PAYLOAD_TYPE,
            sent.number,
            sent.timestamp,
        );
        let header = header
            .with_marker(sent.is_last)
            .with_transport_sequence_number(Some((EXTENSION_ID, 0)));
        let size = sent.size.as_bytes().saturating_sub(IP_UDP + SRTP_TAG) as usize;
        self.bytes.clear();
        self.bytes.resize(size.max(RTP_HEADER + descriptor_size(sent.picture)), 0);
        header.emit(&mut self.bytes);
        let payload = &mut self.bytes[RTP_HEADER..];
        match sent.picture {
            None => payload[..Descriptor::SIZE].copy_from_slice(&sent.start.emit()),
            Some(picture) => payload[..Picture::SIZE].copy_from_slice(&picture.emit(sent.start)),
        }
        let bytes = self.bytes.as_slice();
        let view = View::parse(bytes).expect("the publisher's own packet");
        let descriptor = PayloadDescriptor::parse(view.payload()).expect("a whole descriptor");
        Published { track, bytes, frame: descriptor.frame(sent.stream) }
    }
}

/// Bytes of a packet that say what it is.
fn descriptor_size(picture: Option<Picture>) -> usize {
    picture.map_or(Descriptor::SIZE, |_| Picture::SIZE)
}

/// The track at time zero, with the rates that its layers are asked for.
fn track_of(publisher: &Publisher) -> TrackConfig {
    let layers = match publisher.structure {
        Structure::Svc => structure::points(publisher),
        _ => streams_of(publisher),
    };
    let track = match publisher.kind {
        TrackKind::Camera => TrackConfig::camera(layers),
        TrackKind::Screen => TrackConfig::screen(layers),
        TrackKind::Audio => {
            TrackConfig::audio(layers.first().map_or_else(Default::default, |layer| layer.bitrate))
        }
    };
    let (width, height) = publisher.shown.first().map_or((0, 0), |step| step.1);
    let priority = track.priority * publisher.priority;
    let track = track.with_shown(width, height).with_priority(priority);
    match publisher.kind {
        TrackKind::Audio => track,
        _ => track.with_may_pause(publisher.may_pause).with_structure(publisher.structure),
    }
}

/// The operating points of streams of simulcast.
fn streams_of(publisher: &Publisher) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (index, layer) in publisher.layers.iter().enumerate() {
        let rate = layer.rate.rate(Timestamp::ZERO);
        let point = Layer::new(index as u8, layer.width, layer.height, rate);
        let temporal_layers = publisher.temporal_layers;
        for temporal in 0..temporal_layers.saturating_sub(1) {
            let frame_rate = publisher.fps * frames(temporal_layers, temporal);
            let part = rate * share(temporal_layers, temporal);
            let point = point.with_temporal(temporal).with_bitrate(part);
            layers.push(point.with_frame_rate(frame_rate));
        }
        layers.push(point.with_frame_rate(publisher.fps));
    }
    layers
}
