//! What is measured of each stream of packets, for a table: losses, jitter, gaps.

use std::net::SocketAddr;

use weir_record::calls::StreamDirection;
use weir_record::calls::stats::Kind;

use super::rtp::RtpPacket;
use super::sequence::{Arrival, Hole, Sequence};

/// Copies of packets are known again by their IP identification among so many of a stream.
const REMEMBERED: usize = 256;

/// The clock of video, whose marker is that of a frame's last packet.
const VIDEO_CLOCK: u32 = 90_000;

/// A stream of packets as an engineer asks for it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamFacts {
    /// Its direction.
    pub direction: StreamDirection,
    /// Video or audio.
    pub kind: Kind,
    /// Its SSRC.
    pub ssrc: u32,
    /// From where and to where; `None` in event logs.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// RTP payload types, the most frequent one first.
    pub payload_types: Vec<u8>,
    /// Name of its codec, of the payload type or of a session description in the file.
    pub codec: Option<String>,
    /// Clock of its timestamps.
    pub clock_hz: Option<u32>,
    /// Times of the first and last packet, in s since the first packet of the file.
    pub span_s: (f64, f64),
    /// Packets without their copies.
    pub packets: u64,
    /// Packets that were sent, as far as sequence numbers tell.
    pub expected: u64,
    /// Of these, packets that never came.
    pub lost: u64,
    /// Packets that came behind later ones.
    pub reordered: u64,
    /// Copies of packets that were there before.
    pub duplicates: u64,
    /// Of these, copies of one and the same IP packet: it was captured at several places.
    pub captured_again: u64,
    /// How often the sequence numbers began anew.
    pub restarts: u64,
    /// Payload and RTP headers.
    pub bytes: u64,
    /// Mean and largest interarrival jitter in ms [RFC3550 §6.4.1]; `None` without a clock.
    ///
    /// [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
    pub jitter_ms: Option<(f64, f64)>,
    /// Longest time without a packet, in ms, and when it began, in s.
    pub longest_gap: (f64, f64),
    /// Longest time that the stream stood still: time that its timestamps do not know, with nothing
    /// lost meanwhile. In ms, and when it began, in s.
    pub longest_stall: (f64, f64),
    /// Whether its sender said that it ends (BYE).
    pub is_ended: bool,
    /// Times in which packets in a row were lost, and the longest of them, in packets.
    pub bursts: (u64, u64),
    /// Call-ID of SIP.
    pub call_id: Option<String>,
}

impl StreamFacts {
    /// A line for people.
    pub(crate) fn words(&self) -> String {
        let ends = match self.ends {
            Some((from, to)) => format!("{from} to {to}, "),
            None => String::new(),
        };
        let kind = match self.kind {
            Kind::Audio => "audio",
            Kind::Video => "video",
        };
        let codec = match (&self.codec, self.payload_types.first()) {
            (Some(codec), _) => format!(" {codec}"),
            (None, Some(number)) => format!(" of payload type {number}"),
            (None, None) => String::new(),
        };
        let share = 100.0 * self.lost as f64 / self.expected.max(1) as f64;
        let mut text = format!(
            "{ends}{kind}{codec}, SSRC {}: {} packets, {} lost ({share:.1} %), {} out of order, {} \
             twice",
            self.ssrc, self.packets, self.lost, self.reordered, self.duplicates
        );
        if let Some((mean, largest)) = self.jitter_ms {
            text += &format!(", jitter {mean:.1} ms, at most {largest:.1} ms");
        }
        text + &format!(", longest gap {:.0} ms", self.longest_gap.0)
    }
}

/// What is known of a stream besides its packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    pub kind: Option<Kind>,
    pub clock_hz: Option<u32>,
    pub codec: Option<String>,
    pub payload_types: Vec<u8>,
    pub ends: Option<(SocketAddr, SocketAddr)>,
    pub call_id: Option<String>,
    /// Whether this end sends what it receives under the same SSRC, as a server does.
    pub is_forwarded: bool,
}

/// A step of the timestamps that is so far off in s is no step of the same count.
const NEW_COUNT_S: f64 = 1.0;

/// Interarrival jitter [RFC3550 §6.4.1].
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    /// Time, RTP timestamp and payload type of the packet before.
    last: Option<(i64, u32, u8)>,
    now_s: f64,
    /// Packets, and the sum and the largest of their jitters.
    count: u64,
    sum_s: f64,
    largest_s: f64,
}

impl Jitter {
    /// Adds a packet, and returns how long the stream stood still before it: time that its
    /// timestamps do not know. `None` where they do not tell.
    fn add(&mut self, now: i64, packet: &RtpPacket, clock_hz: u32, is_copy: bool) -> Option<f64> {
        let own = (now, packet.rtp_timestamp, packet.payload_type);
        let (time, timestamp, payload_type) = self.last.replace(own)?;
        let units = packet.rtp_timestamp.wrapping_sub(timestamp) as i32;
        // Events such as dialled digits are packets of a type of their own, which all have the
        // timestamp of the event's begin [RFC4733 §2.2.1].
        let is_event = payload_type != packet.payload_type || units == 0 && !is_copy;
        if is_event && clock_hz != VIDEO_CLOCK {
            return None;
        }
        let moved_s = f64::from(units) / f64::from(clock_hz);
        let passed_s = (now - time) as f64 / 1e9;
        // No network makes a packet older than its time on the way: the sender began to count
        // anew.
        if moved_s < -NEW_COUNT_S || moved_s > passed_s + NEW_COUNT_S {
            return None;
        }
        let stood_s = passed_s - moved_s;
        self.now_s += (stood_s.abs() - self.now_s) / 16.0;
        (self.count, self.sum_s) = (self.count + 1, self.sum_s + self.now_s);
        self.largest_s = self.largest_s.max(self.now_s);
        Some(stood_s)
    }
}

/// Measures a stream packet by packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    first: i64,
    /// When the packet before came.
    last: Option<i64>,
    /// Of all packets, and without the copies.
    jitter: Jitter,
    jitter_once: Jitter,
    longest: (i64, i64),
    stall: (i64, i64),
    /// Lost numbers so far, when the packet before came.
    lost: u64,
    bursts: (u64, u64),
    /// Sequence number and IP identification of recent packets.
    recent: Vec<(u16, u16)>,
    captured_again: u64,
}

impl Measured {
    /// Adds a packet; `lost` are the numbers that miss so far.
    pub fn add(
        &mut self,
        now: i64,
        packet: &RtpPacket,
        (arrival, lost): (Arrival, u64),
        clock_hz: Option<u32>,
    ) {
        let place = usize::from(packet.sequence_number) % REMEMBERED;
        let own = (packet.sequence_number, packet.ip_id);
        if arrival == Arrival::Copy {
            self.captured_again += u64::from(self.recent.get(place) == Some(&own));
            if let Some(clock) = clock_hz {
                self.jitter.add(now, packet, clock, true);
            }
            return;
        }
        if self.recent.is_empty() {
            self.recent = vec![(0, 0); REMEMBERED];
        }
        self.recent[place] = own;
        if arrival == Arrival::Anew {
            // New numbers come with new timestamps.
            (self.jitter.last, self.jitter_once.last) = (None, None);
        }
        let stood_s = clock_hz.and_then(|clock| {
            self.jitter.add(now, packet, clock, false);
            self.jitter_once.add(now, packet, clock, false)
        });
        let Some(time) = self.last.replace(now) else {
            self.first = now;
            return;
        };
        if now - time > self.longest.0 {
            self.longest = (now - time, time);
        }
        let is_whole = lost <= std::mem::replace(&mut self.lost, lost);
        // A sender that was silent says so with a marker.
        let ends_silence = packet.is_marked && clock_hz != Some(VIDEO_CLOCK);
        let stood = stood_s.map_or(0, |seconds| (seconds * 1e9) as i64);
        if is_whole && !ends_silence && arrival == Arrival::Ahead && stood > self.stall.0 {
            self.stall = (stood, time);
        }
    }

    /// Numbers that never came.
    pub fn hole(&mut self, hole: &Hole) {
        self.bursts.0 += 1;
        self.bursts.1 = self.bursts.1.max(hole.count.into());
    }

    pub fn facts(
        self,
        direction: StreamDirection,
        (ssrc, kind): (u32, Kind),
        sequence: &Sequence,
        known: Option<Described>,
    ) -> StreamFacts {
        let known = known.unwrap_or_default();
        let seconds = |time: i64| time as f64 / 1e9;
        let is_twice = 2 * self.captured_again > sequence.unique;
        let Jitter { count, sum_s, largest_s, .. } =
            if is_twice { self.jitter_once } else { self.jitter };
        StreamFacts {
            direction,
            kind,
            ssrc,
            ends: known.ends,
            payload_types: known.payload_types,
            codec: known.codec,
            clock_hz: known.clock_hz,
            span_s: (seconds(self.first), seconds(self.last.unwrap_or(self.first))),
            packets: sequence.unique,
            expected: sequence.expected(),
            lost: sequence.lost(),
            reordered: sequence.late,
            duplicates: sequence.copies,
            captured_again: self.captured_again,
            restarts: sequence.runs,
            bytes: 0,
            jitter_ms: (count > 0).then(|| (sum_s / count as f64 * 1e3, largest_s * 1e3)),
            longest_gap: (self.longest.0 as f64 / 1e6, seconds(self.longest.1)),
            longest_stall: (self.stall.0 as f64 / 1e6, seconds(self.stall.1)),
            is_ended: false,
            bursts: self.bursts,
            call_id: known.call_id,
        }
    }
}
