//! A subscriber behind a link with a first-in first-out queue, in virtual time.

use std::collections::VecDeque;

use weir::controller::Controller;
use weir::feedback::Ecn;
use weir::{Algorithm, Bitrate, DataSize, RateLimits, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig};
use weir_sfu::{
    Change, Decision, Frame, Layer, OutgoingStream, Structure, Subscriber, SubscriberConfig,
    TrackConfig, TrackId, Uplink,
};
use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader, View};

const ID: ExtensionId = ExtensionId::new(1).unwrap();
const PADDING_SSRC: u32 = 9;
const SOUND_SSRC: u32 = 2_000;
const SOUND: TrackId = TrackId(1_000);
const OVERHEAD: u64 = 28;
const MAX_PAYLOAD: usize = 1_100;
const STEP: TimeDelta = TimeDelta::from_millis(1);
/// How long a publisher takes to answer a request for a key frame.
const KEY_FRAME_DELAY: TimeDelta = TimeDelta::from_millis(150);
/// A key frame is this many times as large as another frame.
const KEY_FRAME_FACTOR: f64 = 5.0;
/// Bytes at the end of a payload that say when it was made.
const STAMP: usize = 8;
const MAX_QUEUE: TimeDelta = TimeDelta::from_millis(400);

pub fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

pub fn at(secs: f64) -> Timestamp {
    Timestamp::from_millis((secs * 1_000.0) as i64)
}

/// Three streams as browsers send them.
pub fn simulcast() -> Vec<Layer> {
    vec![
        Layer::new(0, 320, 180, kbps(150)),
        Layer::new(1, 640, 360, kbps(500)),
        Layer::new(2, 1280, 720, kbps(1_500)),
    ]
}

/// A publisher's encoder of one stream.
struct Encoder {
    bitrate: Bitrate,
    sequence_number: u16,
    frames: u64,
    key_frame_at: Option<Timestamp>,
}

struct Camera {
    id: TrackId,
    track: TrackConfig,
    encoders: Vec<Encoder>,
    uplink: Uplink,
    /// What is added to its RTP timestamps.
    timestamp: u32,
}

impl Camera {
    /// The packets of one frame of a stream, with what a server reads from them.
    fn frame(&mut self, now: Timestamp, stream: usize) -> Vec<(Vec<u8>, Frame)> {
        let encoder = &mut self.encoders[stream];
        if encoder.bitrate == Bitrate::ZERO {
            encoder.key_frame_at = Some(now); // It begins again with a key frame.
            return Vec::new();
        }
        let is_key = encoder.frames == 0 || encoder.key_frame_at.is_some_and(|due| due <= now);
        if is_key {
            encoder.key_frame_at = None;
        }
        encoder.frames += 1;
        // Frames vary by a fifth.
        let wobble = 0.9 + 0.05 * ((encoder.frames * 7 + stream as u64) % 5) as f64;
        let factor = if is_key { KEY_FRAME_FACTOR } else { wobble };
        let mut left = (encoder.bitrate.as_bps_f64() / 8.0 / 30.0 * factor) as usize;
        let mut packets = Vec::new();
        while left > 0 {
            let payload = left.min(MAX_PAYLOAD);
            left -= payload;
            let timestamp = ((now.as_millis() * 90) as u32).wrapping_add(self.timestamp);
            let ssrc = 100 * (self.id.0 + 1) + stream as u32;
            let header = RtpHeader::new(
                ssrc,
                PayloadType::new(96).unwrap(),
                encoder.sequence_number,
                timestamp,
            )
            .with_marker(left == 0)
            .with_transport_sequence_number(Some((ID, 0)));
            encoder.sequence_number = encoder.sequence_number.wrapping_add(1);
            let mut bytes = vec![0; header.size() + payload];
            header.emit(&mut bytes);
            if payload >= STAMP {
                let at = bytes.len() - STAMP;
                bytes[at..].copy_from_slice(&now.as_micros().to_be_bytes());
            }
            let starts = is_key && packets.is_empty();
            packets.push((bytes, Frame::new(stream as u8).with_starts_key_frame(starts)));
        }
        packets
    }
}

/// When a packet of a picture came to the server.
fn stamp(packet: &[u8]) -> Option<Timestamp> {
    let payload = View::parse(packet).unwrap().payload();
    let bytes = payload.last_chunk::<STAMP>()?;
    Some(Timestamp::from_micros(i64::from_be_bytes(*bytes)))
}

fn receiver(now: Timestamp) -> Receiver {
    let ids = ExtensionIds::NONE.with_transport_sequence_number(Some(ID));
    Receiver::new(now, ReceiverConfig::new(1, ids, Feedback::Twcc), Box::new(|| 0.5))
}

/// One subscriber, its link, and the cameras that it watches.
pub struct Room {
    pub now: Timestamp,
    pub subscriber: Subscriber<Box<dyn Controller + Send>>,
    receiver: Receiver,
    /// How far its clock is ahead of the sender's.
    receiver_ahead: TimeDelta,
    /// What it gains in a second, in seconds.
    pub receiver_gains: f64,
    cameras: Vec<Camera>,
    pub capacity: Bitrate,
    pub delay: TimeDelta,
    /// When the link has sent all that it has taken.
    busy_until: Timestamp,
    down: VecDeque<(Timestamp, Vec<u8>)>,
    up: VecDeque<(Timestamp, Vec<u8>)>,
    next_frame: Timestamp,
    /// The server's part wakes up this often only; `STEP` is a host that is always there.
    pub wakes_every: TimeDelta,
    next_wake: Timestamp,
    pub decisions: Vec<Decision>,
    pub sent_bytes: u64,
    pub padding_bytes: u64,
    pub lost: u64,
    pub longest_queue: TimeDelta,
    /// The longest time in which the receiver got no media.
    pub longest_gap: TimeDelta,
    last_media: Timestamp,
    /// One of so many packets comes later by this time.
    pub late: Option<(u64, TimeDelta)>,
    sent_packets: u64,
    /// Feedback is lost.
    pub is_silent: bool,
    /// Sound of 32 kbit/s: when its packets were forwarded, until they leave.
    sound: Option<VecDeque<Timestamp>>,
    sound_number: u16,
    pub longest_wait_of_sound: TimeDelta,
    /// The longest time for which a packet of a picture waited in the server.
    pub longest_wait: TimeDelta,
    /// Sender reports: when they left, their SSRC, and their RTP time.
    pub reports: Vec<(Timestamp, u32, u32)>,
}

impl Room {
    pub fn new(algorithm: Algorithm, capacity: Bitrate, delay: TimeDelta) -> Self {
        Self::with_max(algorithm, capacity, delay, kbps(10_000))
    }

    pub fn with_max(
        algorithm: Algorithm,
        capacity: Bitrate,
        delay: TimeDelta,
        max: Bitrate,
    ) -> Self {
        let now = Timestamp::ZERO;
        let limits = RateLimits::new(kbps(50), kbps(300), max).unwrap();
        let config = SubscriberConfig::twcc(PADDING_SSRC, ID);
        let subscriber = Subscriber::new(now, algorithm.build(limits), limits, config);
        Self {
            now,
            subscriber,
            receiver: receiver(now),
            receiver_ahead: TimeDelta::ZERO,
            receiver_gains: 0.0,
            cameras: Vec::new(),
            capacity,
            delay,
            busy_until: now,
            down: VecDeque::new(),
            up: VecDeque::new(),
            next_frame: now,
            wakes_every: STEP,
            next_wake: now,
            decisions: Vec::new(),
            sent_bytes: 0,
            padding_bytes: 0,
            lost: 0,
            longest_queue: TimeDelta::ZERO,
            longest_gap: TimeDelta::ZERO,
            last_media: now,
            late: None,
            sent_packets: 0,
            is_silent: false,
            sound: None,
            sound_number: 0,
            longest_wait_of_sound: TimeDelta::ZERO,
            longest_wait: TimeDelta::ZERO,
            reports: Vec::new(),
        }
    }

    pub fn add_sound(&mut self) {
        let stream =
            OutgoingStream::new(SOUND_SSRC, PayloadType::new(111).unwrap()).with_clock_rate(48_000);
        self.subscriber.add_track(self.now, SOUND, TrackConfig::audio(kbps(32)), stream);
        self.sound = Some(VecDeque::new());
    }

    /// A publisher's numbers go on elsewhere.
    pub fn jump(&mut self, camera: usize, by: u16) {
        for encoder in &mut self.cameras[camera].encoders {
            encoder.sequence_number = encoder.sequence_number.wrapping_add(by);
        }
    }

    /// A publisher's timestamps go on elsewhere.
    pub fn jump_in_time(&mut self, camera: usize, by: u32) {
        self.cameras[camera].timestamp = self.cameras[camera].timestamp.wrapping_add(by);
    }

    /// The receiver's program restarts, with its clock so far ahead of the sender's.
    pub fn restart_receiver(&mut self, ahead: TimeDelta) {
        self.receiver_ahead = ahead;
        self.receiver = receiver(self.receivers_time());
    }

    /// Key frames that were asked for.
    pub fn key_frames(&self) -> usize {
        let is_asked = |it: &&Decision| matches!(it.change, Change::RequestKeyFrame { .. });
        self.decisions.iter().filter(is_asked).count()
    }

    /// What the receiver's clock shows.
    fn receivers_time(&self) -> Timestamp {
        self.now + self.receiver_ahead + (self.now - Timestamp::ZERO) * self.receiver_gains
    }

    fn speak(&mut self) {
        let Some(waiting) = &mut self.sound else { return };
        let sound = PayloadType::new(111).unwrap();
        let timestamp = (self.now.as_millis() * 48) as u32;
        let header = RtpHeader::new(90, sound, self.sound_number, timestamp)
            .with_transport_sequence_number(Some((ID, 0)));
        self.sound_number = self.sound_number.wrapping_add(1);
        let mut bytes = vec![0; header.size() + 80];
        header.emit(&mut bytes);
        waiting.push_back(self.now);
        assert_eq!(self.subscriber.forward(self.now, SOUND, &bytes, Frame::new(0)), Ok(true));
    }

    pub fn add_camera(&mut self, id: u32, track: TrackConfig) {
        let id = TrackId(id);
        let stream = OutgoingStream::new(1_000 + id.0, PayloadType::new(96).unwrap());
        self.subscriber.add_track(self.now, id, track.clone(), stream);
        let mut encoders = Vec::new();
        for layer in &track.layers {
            let (bitrate, key_frame_at) = (layer.bitrate, None);
            encoders.push(Encoder { bitrate, sequence_number: 0, frames: 0, key_frame_at });
        }
        self.cameras.push(Camera {
            id,
            track,
            encoders,
            uplink: Uplink::new(Structure::Simulcast),
            timestamp: 0,
        });
    }

    /// Shows a camera in another size.
    pub fn show(&mut self, id: u32, track: TrackConfig) {
        self.subscriber.set_track(self.now, TrackId(id), track);
    }

    /// Another bitrate of one stream of a camera.
    pub fn set_bitrate(&mut self, camera: usize, stream: usize, bitrate: Bitrate) {
        self.cameras[camera].encoders[stream].bitrate = bitrate;
    }

    pub fn run_until(&mut self, secs: f64) {
        while self.now < at(secs) {
            self.step();
            self.now += STEP;
        }
    }

    fn step(&mut self) {
        let now = self.now;
        if self.next_frame <= now {
            self.next_frame += TimeDelta::from_micros(33_333);
            self.publish();
        }
        if now.as_millis() % 20 == 0 {
            self.speak();
        }
        while self.up.front().is_some_and(|(due, _)| *due <= now) {
            let (_, bytes) = self.up.pop_front().unwrap();
            if !self.is_silent {
                self.subscriber.on_rtcp(now, &bytes);
            }
        }
        if self.next_wake <= now {
            self.next_wake = now + self.wakes_every;
            self.wake();
        }
        while let Some(decision) = self.subscriber.next_decision() {
            self.obey(decision);
        }
        while self.down.front().is_some_and(|(due, _)| *due <= now) {
            let (_, bytes) = self.down.pop_front().unwrap();
            let ssrc = View::parse(&bytes).unwrap().ssrc();
            if ssrc != PADDING_SSRC && ssrc != SOUND_SSRC {
                self.longest_gap = self.longest_gap.max(now - self.last_media);
                self.last_media = now;
            }
            self.receiver.on_rtp(self.receivers_time(), &bytes, Ecn::NotEct).unwrap();
        }
        self.receiver.on_timeout(self.receivers_time());
        while let Some(bytes) = self.receiver.next_rtcp() {
            self.up.push_back((now + self.delay, bytes.to_vec()));
        }
    }

    /// Handles what is due at the server, and sends.
    fn wake(&mut self) {
        let now = self.now;
        if self.subscriber.next_timeout() <= now {
            self.subscriber.on_timeout(now);
        }
        while let Some(bytes) = self.subscriber.next_rtcp() {
            let view = weir_wire::report::View::parse(bytes).unwrap();
            let info = view.sender_info().expect("it is a sender report");
            self.reports.push((now, view.sender_ssrc(), info.rtp_time));
        }
        while let Some(packet) = self.subscriber.next_packet(now) {
            self.sent_bytes += packet.size.as_bytes();
            let ssrc = View::parse(&packet.content).unwrap().ssrc();
            if ssrc == PADDING_SSRC {
                self.padding_bytes += packet.size.as_bytes();
            } else if ssrc != SOUND_SSRC
                && let Some(made) = stamp(&packet.content)
            {
                self.longest_wait = self.longest_wait.max(now - made);
            }
            if let Some(queued) = self.sound.as_mut().filter(|_| ssrc == SOUND_SSRC) {
                let wait = now - queued.pop_front().expect("it was forwarded");
                self.longest_wait_of_sound = self.longest_wait_of_sound.max(wait);
            }
            self.send(packet.content);
        }
    }

    fn publish(&mut self) {
        for camera in &mut self.cameras {
            for stream in 0..camera.encoders.len() {
                for (bytes, frame) in camera.frame(self.now, stream) {
                    let size = DataSize::from_bytes(bytes.len() as u64 + OVERHEAD);
                    camera.uplink.on_packet(self.now, frame.stream, frame.temporal, size);
                    self.subscriber.forward(self.now, camera.id, &bytes, frame).unwrap();
                }
            }
            let bitrates = camera.uplink.bitrates(self.now, &camera.track);
            self.subscriber.set_bitrates(camera.id, &bitrates);
        }
    }

    /// What a host does with a decision.
    fn obey(&mut self, decision: Decision) {
        self.decisions.push(decision);
        if let Change::RequestKeyFrame { stream } = decision.change {
            let camera = self.cameras.iter_mut().find(|camera| Some(camera.id) == decision.track);
            let camera = camera.expect("the track is known");
            if camera.uplink.on_key_frame_request(self.now, stream) {
                camera.encoders[usize::from(stream)].key_frame_at =
                    Some(self.now + KEY_FRAME_DELAY);
            }
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        let queue = (self.busy_until - self.now).max(TimeDelta::ZERO);
        self.longest_queue = self.longest_queue.max(queue);
        if queue > MAX_QUEUE {
            self.lost += 1;
            return;
        }
        let size = DataSize::from_bytes(bytes.len() as u64 + OVERHEAD);
        self.busy_until = self.busy_until.max(self.now) + size / self.capacity;
        let mut due = self.busy_until + self.delay;
        self.sent_packets += 1;
        if let Some((every, late)) = self.late
            && self.sent_packets % every == every / 2
        {
            due += late;
        }
        let place = self.down.partition_point(|(other, _)| *other <= due);
        self.down.insert(place, (due, bytes));
    }

    pub fn level(&self, id: u32) -> Option<usize> {
        self.subscriber.level(TrackId(id))
    }

    /// Choices of layers from a time on.
    pub fn switches(&self, from_secs: f64) -> usize {
        let is_switch = |decision: &&Decision| {
            matches!(decision.change, Change::Choose { .. }) && decision.at >= at(from_secs)
        };
        self.decisions.iter().filter(is_switch).count()
    }

    /// The decisions as a log, for the message of a test that fails.
    pub fn log(&self) -> String {
        let mut log = String::new();
        for decision in &self.decisions {
            log += &format!("{decision}\n");
        }
        log
    }
}
