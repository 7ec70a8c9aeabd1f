//! A sender and a receiver, and the packets in flight between them. The delay is 20 ms in each
//! direction.

use std::collections::VecDeque;

use weir::controller::Settings;
use weir::feedback::Ecn;
use weir::media_sender::TargetChange;
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Random, Receiver, ReceiverConfig, Sender, SenderConfig, is_rtcp};
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader};

pub const SSRC: u32 = 0xcafe;
pub const RECEIVER: u32 = 0xbeef;
pub const ID: ExtensionId = ExtensionId::new(1).unwrap();
pub const TIME_ID: ExtensionId = ExtensionId::new(2).unwrap();
pub const BOTH: ExtensionIds =
    ExtensionIds::NONE.with_transport_sequence_number(Some(ID)).with_abs_send_time(Some(TIME_ID));
pub const DELAY: TimeDelta = TimeDelta::from_millis(20);

pub fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

pub fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

pub fn limits() -> RateLimits {
    RateLimits::new(kbps(150), kbps(500), kbps(5_000)).unwrap()
}

/// Always returns the middle of the range, so reports are sent exactly once per second.
pub fn middle() -> Random {
    Box::new(|| 0.5)
}

/// A media RTP packet with space for both extensions.
pub fn rtp(number: u16, timestamp: u32, payload: usize) -> Vec<u8> {
    let header = RtpHeader::new(SSRC, PayloadType::new(96).unwrap(), number, timestamp)
        .with_marker(true)
        .with_transport_sequence_number(Some((ID, 0)))
        .with_abs_send_time(Some((TIME_ID, AbsSendTime::from_ticks(0))));
    let mut bytes = vec![0; header.size() + payload];
    header.emit(&mut bytes);
    bytes
}

fn receiver(now: Timestamp, feedback: Feedback) -> Receiver {
    Receiver::new(now, ReceiverConfig::new(RECEIVER, BOTH, feedback), middle())
}

type Datagrams = VecDeque<(Timestamp, Vec<u8>)>;

pub struct Path {
    pub now: Timestamp,
    pub sender: Sender,
    pub receiver: Receiver,
    pub changes: Vec<TargetChange>,
    /// All RTP packets sent.
    pub sent: Vec<Vec<u8>>,
    /// All RTCP packets of the receiver.
    pub feedback: Vec<Vec<u8>>,
    pub sender_reports: usize,
    /// If not zero, every n-th packet is lost.
    pub lose_each: usize,
    /// Rate of the bottleneck.
    pub capacity: Bitrate,
    pub ecn: Ecn,
    /// How far the receiver's clock is ahead of the sender's.
    pub receiver_ahead: TimeDelta,
    free_at: Timestamp,
    to_receiver: Datagrams,
    to_sender: Datagrams,
    number: u16,
}

impl Path {
    pub fn new(algorithm: Algorithm, feedback: Feedback) -> Self {
        Self::with_settings(algorithm, Settings::new(limits()), feedback)
    }

    pub fn with_settings(algorithm: Algorithm, settings: Settings, feedback: Feedback) -> Self {
        let controller = algorithm.build(settings);
        let now = Timestamp::ZERO;
        let sender = Sender::new(now, controller, SenderConfig::new(SSRC, BOTH), middle());
        let receiver = receiver(now, feedback);
        Self {
            now,
            sender,
            receiver,
            changes: Vec::new(),
            sent: Vec::new(),
            feedback: Vec::new(),
            sender_reports: 0,
            lose_each: 0,
            capacity: kbps(3_000),
            ecn: Ecn::NotEct,
            receiver_ahead: TimeDelta::ZERO,
            free_at: now,
            to_receiver: VecDeque::new(),
            to_sender: VecDeque::new(),
            number: 0,
        }
    }

    /// Runs for `time`. Every 10 ms it sends a packet whose size matches the target bitrate.
    pub fn run(&mut self, time: TimeDelta) {
        let end = self.now + time;
        while self.now < end {
            if self.now.as_millis() % 10 == 0 {
                let payload = self.sender.target().bitrate.as_bps() / 8 / 100;
                self.enqueue_frame(payload as usize);
            }
            self.step();
            self.now += TimeDelta::from_millis(1);
        }
    }

    fn enqueue_frame(&mut self, mut payload: usize) {
        let timestamp = (self.now.as_millis() * 90) as u32;
        let mut packets = Vec::new();
        while payload > 0 {
            let size = payload.min(1_100);
            packets.push(rtp(self.number, timestamp, size));
            self.number = self.number.wrapping_add(1);
            payload -= size;
        }
        self.sender.enqueue(self.now, packets).unwrap();
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some((_, bytes)) = self.to_sender.pop_front_if(|(due, _)| *due <= now) {
            assert!(self.sender.on_rtcp(now, &bytes).is_empty());
        }
        self.sender.on_timeout(now);
        while let Some(bytes) = self.sender.next_rtcp() {
            self.sender_reports += 1;
            self.to_receiver.push_back((now + DELAY, bytes.to_vec()));
        }
        while let Some(packet) = self.sender.next_packet(now) {
            self.sent.push(packet.content.clone());
            let is_lost = self.lose_each > 0 && self.sent.len().is_multiple_of(self.lose_each);
            if !is_lost {
                self.free_at = self.free_at.max(now) + packet.size / self.capacity;
                self.to_receiver.push_back((self.free_at + DELAY, packet.content));
            }
        }
        self.changes.extend(self.sender.take_change());
        self.to_receiver.make_contiguous().sort_by_key(|(due, _)| *due);
        let shown = now + self.receiver_ahead;
        while let Some((_, bytes)) = self.to_receiver.pop_front_if(|(due, _)| *due <= now) {
            if is_rtcp(&bytes) {
                assert!(self.receiver.on_rtcp(shown, &bytes).is_empty());
            } else {
                self.receiver.on_rtp(shown, &bytes, self.ecn).unwrap();
            }
        }
        self.receiver.on_timeout(shown);
        while let Some(bytes) = self.receiver.next_rtcp() {
            self.feedback.push(bytes.to_vec());
            self.to_sender.push_back((now + DELAY, bytes.to_vec()));
        }
    }

    /// The RTP stream goes on with this number.
    pub fn go_on_with(&mut self, number: u16) {
        self.number = number;
    }

    /// The sender's program restarts. Only its SSRC is as before.
    pub fn begin_sender_anew(&mut self, algorithm: Algorithm, settings: Settings, number: u16) {
        let controller = algorithm.build(settings);
        self.sender = Sender::new(self.now, controller, SenderConfig::new(SSRC, BOTH), middle());
        self.number = number;
    }

    /// The receiver's program restarts.
    pub fn begin_receiver_anew(&mut self, feedback: Feedback) {
        self.receiver = receiver(self.now + self.receiver_ahead, feedback);
    }

    pub fn switch(&mut self, feedback: Feedback) {
        self.receiver.set_feedback(self.now, feedback);
        while let Some(bytes) = self.receiver.next_rtcp() {
            self.to_sender.push_back((self.now + DELAY, bytes.to_vec()));
        }
    }

    /// Loss ratio as the controller estimates it.
    pub fn loss_ratio(&self) -> f64 {
        self.sender.media().controller().metrics().loss_ratio
    }
}
