//! What a receiver without a decoder knows about the video that arrives: packets, and the pictures
//! that are complete.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::protocol::{ReceiverSettings, Reporter};

/// A picture that is incomplete this long after a newer one is lost, in ticks of 90 kHz.
const LOST_AFTER: i32 = 90_000;
/// A receiver asks for a key frame again after this time.
const KEY_INTERVAL: Duration = Duration::from_secs(1);
/// A freeze, by the rule of the W3C's statistics (webrtc-stats, freezeCount): pictures of the mean
/// gap, and what is longer than it.
const GAPS_OF_MEAN: usize = 30;
const LEAST_EXTRA: Duration = Duration::from_millis(150);

/// A packet of video.
pub struct Arrived<'a> {
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
    pub marker: bool,
    pub header_bytes: usize,
    pub payload: &'a [u8],
}

/// What there is to do after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    /// A picture is lost.
    KeyFrame,
}

/// All that arrived.
pub struct Inbound {
    interval: Duration,
    next_stats: Instant,
    ssrc: u32,
    packets: u64,
    bytes: usize,
    headers: usize,
    frames: u64,
    highest: u16,
    expected: u64,
    /// By their timestamps.
    pictures: BTreeMap<u32, Picture>,
    freezes: Freezes,
    asked: Option<Instant>,
}

impl Inbound {
    pub fn new(settings: &ReceiverSettings, now: Instant) -> Self {
        let interval = Duration::from_millis(settings.stats_interval);
        Self {
            interval,
            next_stats: now + interval,
            ssrc: 0,
            packets: 0,
            bytes: 0,
            headers: 0,
            frames: 0,
            highest: 0,
            expected: 0,
            pictures: BTreeMap::new(),
            freezes: Freezes::default(),
            asked: None,
        }
    }

    /// When the lab wants to be told again.
    pub fn next_stats(&self) -> Instant {
        self.next_stats
    }

    /// Tells the lab, if it is time.
    pub fn tell_in_time(&mut self, reporter: &Reporter, now: Instant) {
        if now >= self.next_stats {
            self.next_stats = now + self.interval;
            self.tell(reporter);
        }
    }

    pub fn tell(&self, reporter: &Reporter) {
        reporter.inbound(json!({
            "ssrc": self.ssrc,
            "packetsReceived": self.packets,
            "packetsLost": self.expected as i64 - self.packets as i64,
            "bytesReceived": self.bytes,
            "headerBytesReceived": self.headers,
            "framesReceived": self.frames,
            "freezeCount": self.freezes.count,
            "totalFreezesDuration": self.freezes.total.as_secs_f64(),
        }));
    }

    pub fn add(&mut self, reporter: &Reporter, packet: &Arrived<'_>, now: Instant) -> Wanted {
        let ahead = packet.sequence.wrapping_sub(self.highest) as i16;
        if self.packets == 0 {
            (self.highest, self.expected) = (packet.sequence, 1);
        } else if ahead > 0 {
            self.highest = packet.sequence;
            self.expected += ahead as u64;
        }
        self.ssrc = packet.ssrc;
        self.packets += 1;
        self.bytes += packet.payload.len();
        self.headers += packet.header_bytes;
        // Padding has no part of a picture.
        let Some(descriptor) = packet.payload.first() else { return Wanted::Nothing };
        let picture = self.pictures.entry(packet.timestamp).or_default();
        if picture.add(packet, *descriptor) {
            self.frames += 1;
            if self.frames == 1 {
                reporter.playing();
            }
            self.freezes.add(now);
        }
        let is_lost = self.forget_up_to(packet.timestamp);
        let may_ask = self.asked.is_none_or(|asked| now - asked > KEY_INTERVAL);
        if is_lost && may_ask {
            self.asked = Some(now);
            return Wanted::KeyFrame;
        }
        Wanted::Nothing
    }

    /// Forgets pictures that are old. Returns whether one of them was incomplete.
    fn forget_up_to(&mut self, timestamp: u32) -> bool {
        let mut is_lost = false;
        self.pictures.retain(|time, picture| {
            let is_old = timestamp.wrapping_sub(*time) as i32 >= LOST_AFTER;
            is_lost |= is_old && !picture.is_counted;
            !is_old
        });
        is_lost
    }
}

/// A picture of which some packets are there.
#[derive(Default)]
struct Picture {
    numbers: BTreeSet<u16>,
    first: Option<u16>,
    last: Option<u16>,
    is_counted: bool,
}

impl Picture {
    /// Adds a packet of VP8, whose descriptor says whether it begins the picture [RFC 7741].
    /// Returns whether this packet makes the picture complete.
    fn add(&mut self, packet: &Arrived<'_>, descriptor: u8) -> bool {
        self.numbers.insert(packet.sequence);
        if descriptor & 0x17 == 0x10 {
            self.first = Some(packet.sequence);
        }
        if packet.marker {
            self.last = Some(packet.sequence);
        }
        let (Some(first), Some(last)) = (self.first, self.last) else { return false };
        let count = usize::from(last.wrapping_sub(first)) + 1;
        let completes = !self.is_counted && count == self.numbers.len();
        self.is_counted |= completes;
        completes
    }
}

/// Gaps between pictures, and those that are freezes.
#[derive(Default)]
pub struct Freezes {
    pub count: u64,
    pub total: Duration,
    gaps: VecDeque<Duration>,
    last: Option<Instant>,
}

impl Freezes {
    /// A picture is there now.
    pub fn add(&mut self, now: Instant) {
        if let Some(last) = self.last {
            let gap = now - last;
            if self.gaps.len() == GAPS_OF_MEAN {
                let mean = self.gaps.iter().sum::<Duration>() / GAPS_OF_MEAN as u32;
                if gap > (3 * mean).max(mean + LEAST_EXTRA) {
                    self.count += 1;
                    self.total += gap;
                }
                self.gaps.pop_front();
            }
            self.gaps.push_back(gap);
        }
        self.last = Some(now);
    }
}
