//! Paths and streams of RTP, while packets come.

use std::collections::HashMap;
use std::net::SocketAddr;

use weir::units::Timestamp;
use weir_capture::Rtp;

use crate::read::packets::extensions::{Candidates, Ids, WATCHED};

/// Most paths and streams that are watched. More are noise.
const PATHS_MAX: usize = 16_384;
pub(super) const STREAMS_MAX: usize = 4_096;
/// SSRCs of which a single packet was seen so far.
const NEW_MAX: usize = 4_096;
/// Packets of a new SSRC that are kept until it is known for one [RFC3550 §A.1].
const NEW_PACKETS: usize = 16;
/// So many packets in a row whose numbers go up by small steps are those of a source of which much
/// is lost.
const IN_ORDER: usize = 4;
const SMALL_STEP: u16 = 64;
/// Entries of a chunk of the packets.
const CHUNK: usize = 1 << 16;
/// Payload types of a stream. More are noise.
const KINDS_MAX: usize = 16;
/// Longest step between two packets that tells of the clock, in ns.
const CLOCK_STEP: i64 = 1_000_000_000;
/// A larger step of the timestamps is that of a new begin: two minutes of the fastest clock.
const NEW_TIME: i64 = 120 * 90_000;

/// From a socket to another one.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// A packet of RTP, as little of it as will be needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapturedRtp {
    /// In ns since 1970.
    pub time: i64,
    /// Index of its stream.
    pub stream: u32,
    pub timestamp: u32,
    /// Absolute send time, if any.
    send_time: u32,
    pub sequence_number: u16,
    /// Transport-wide number, if any.
    number: u16,
    pub ip_id: u16,
    pub header: u16,
    pub payload: u16,
    pub payload_type: u8,
    flags: u8,
}

const HAS_NUMBER: u8 = 1;
const HAS_SEND_TIME: u8 = 2;
const IS_PADDING: u8 = 4;
const IS_MARKED: u8 = 8;

impl CapturedRtp {
    pub fn number(&self) -> Option<u16> {
        (self.flags & HAS_NUMBER != 0).then_some(self.number)
    }

    pub fn send_time(&self) -> Option<u32> {
        (self.flags & HAS_SEND_TIME != 0).then_some(self.send_time)
    }

    pub fn is_padding(&self) -> bool {
        self.flags & IS_PADDING != 0
    }

    pub fn is_marked(&self) -> bool {
        self.flags & IS_MARKED != 0
    }

    fn set(&mut self, ids: &Ids, candidates: &Candidates) {
        if let Some(number) = ids.number(candidates) {
            (self.number, self.flags) = (number, self.flags | HAS_NUMBER);
        }
        if let Some(time) = ids.time(candidates) {
            (self.send_time, self.flags) = (time, self.flags | HAS_SEND_TIME);
        }
    }
}

/// One direction between two sockets.
#[derive(Debug)]
pub(super) struct Path {
    pub ends: Ends,
    /// Ids of its header extensions, or the first packets until they are known, with their places.
    ids: Option<Ids>,
    early: Vec<(usize, Timestamp, Candidates)>,
    /// Packets that the capture says were sent, and that it says were received.
    pub flagged: (u64, u64),
    /// RTCP that is encrypted or cut.
    pub unreadable: u64,
}

/// What is seen of a stream on the way.
#[derive(Debug)]
pub(super) struct Stream {
    pub path: u32,
    /// The path of its last packets: a stream may move to other sockets.
    last_path: u32,
    pub ssrc: u32,
    /// Which of all packets its first one is.
    pub order: u64,
    pub first: i64,
    pub last: i64,
    pub packets: u64,
    /// Steps from packet to packet that are no small step forward, and those to the next number.
    odd_steps: u64,
    next_steps: u64,
    /// Whether few packets are enough: no stream of the file has more.
    may_be_short: bool,
    number: u16,
    timestamp: u32,
    /// Units of RTP time in so many ns, without silences, and over all.
    clock: (i64, i64),
    whole_clock: (i64, i64),
    /// Packets with the timestamp of the one before.
    same_time: u64,
    pub payload_types: Vec<(u8, u64)>,
    pub largest: u32,
    /// Numbers and IP identifications of the first packets.
    pub first_ids: Vec<(u16, u16)>,
    /// Missing numbers so far, without those that came late.
    pub missing: i64,
    highest: u16,
}

impl Stream {
    fn new(path: u32, (order, now): (u64, i64), rtp: &Rtp) -> Self {
        Self {
            path,
            last_path: path,
            ssrc: rtp.ssrc,
            order,
            first: now,
            last: now,
            packets: 0,
            odd_steps: 0,
            next_steps: 0,
            may_be_short: false,
            number: rtp.sequence_number,
            timestamp: rtp.timestamp,
            clock: (0, 0),
            whole_clock: (0, 0),
            same_time: 0,
            payload_types: Vec::new(),
            largest: 0,
            first_ids: Vec::new(),
            missing: 0,
            highest: rtp.sequence_number,
        }
    }

    fn add(&mut self, now: i64, rtp: &Rtp, ip_id: u16) {
        const FIRST: usize = 64;
        const LARGE_STEP: u16 = 1_000;
        if self.first_ids.len() < FIRST {
            self.first_ids.push((rtp.sequence_number, ip_id));
        }
        if self.packets > 0 {
            let step = rtp.sequence_number.wrapping_sub(self.number);
            self.odd_steps += u64::from(step > LARGE_STEP && step < u16::MAX - LARGE_STEP);
            self.next_steps += u64::from(step == 1);
            let ahead = rtp.sequence_number.wrapping_sub(self.highest) as i16;
            if ahead > 0 && ahead < LARGE_STEP as i16 {
                self.missing += i64::from(ahead) - 1;
            } else if ahead < 0 && ahead > -(LARGE_STEP as i16) {
                self.missing -= 1;
            }
            if ahead > 0 || ahead.unsigned_abs() > LARGE_STEP {
                self.highest = rtp.sequence_number;
            }
            let (units, passed) =
                (rtp.timestamp.wrapping_sub(self.timestamp) as i32, now - self.last);
            self.same_time += u64::from(units == 0 && step != 0);
            if units >= 0 && (0..CLOCK_STEP).contains(&passed) && step != 0 && step < 64 {
                self.clock.0 += i64::from(units);
                self.clock.1 += passed;
            }
            if passed >= 0 && i64::from(units.unsigned_abs()) < NEW_TIME {
                self.whole_clock.0 += i64::from(units);
                self.whole_clock.1 += passed;
            }
        }
        (self.number, self.timestamp) = (rtp.sequence_number, rtp.timestamp);
        self.last = self.last.max(now);
        self.packets += 1;
        self.largest = self.largest.max(rtp.payload_size);
        let place = self.payload_types.iter().position(|(kind, _)| *kind == rtp.payload_type);
        match place {
            Some(place) => self.payload_types[place].1 += 1,
            None if self.payload_types.len() < KINDS_MAX => {
                self.payload_types.push((rtp.payload_type, 1));
            }
            None => self.odd_steps += 1,
        }
    }

    /// Takes the packets of a stream that is the same one between other sockets.
    fn append(&mut self, other: &mut Self) {
        let ahead = other.first_number().wrapping_sub(self.highest) as i16;
        self.missing += other.missing + i64::from(ahead.max(1)) - 1;
        self.last_path = other.last_path;
        self.last = self.last.max(other.last);
        self.packets += std::mem::take(&mut other.packets);
        self.odd_steps += other.odd_steps;
        self.next_steps += other.next_steps;
        self.same_time += other.same_time;
        (self.number, self.timestamp, self.highest) =
            (other.number, other.timestamp, other.highest);
        self.largest = self.largest.max(other.largest);
        self.clock = (self.clock.0 + other.clock.0, self.clock.1 + other.clock.1);
    }

    fn first_number(&self) -> u16 {
        self.first_ids.first().map_or(self.number, |ids| ids.0)
    }

    /// Units of RTP time in a second, as measured in two ways: without silences, whose time some
    /// senders do not count, and over all, where packets that waited are no faster than time.
    /// Nothing of less than half a second.
    pub fn measured_hz(&self) -> impl Iterator<Item = f64> {
        let all = [self.clock, self.whole_clock].into_iter();
        let known = all.filter(|(units, passed)| *passed >= CLOCK_STEP / 2 && *units > 0);
        known.map(|(units, passed)| units as f64 * 1e9 / passed as f64)
    }

    /// Share of the packets that have the timestamp of the one before, as those of a frame have.
    pub fn same_time(&self) -> f64 {
        self.same_time as f64 / self.packets.max(1) as f64
    }

    /// Whether its numbers go up from packet to packet, as those of RTP do, its timestamps move,
    /// and its payload type stays. Of a file with few packets, each number must follow the one
    /// before.
    pub fn is_rtp(&self) -> bool {
        const LEAST: u64 = 20;
        const SHORT: u64 = 8;
        const ODD: u64 = 10;
        let moves = self.same_time + 1 < self.packets;
        let is_long = self.packets >= LEAST && self.odd_steps * ODD <= self.packets;
        let is_whole = self.next_steps + 1 == self.packets && self.payload_types.len() == 1;
        moves && (is_long || self.may_be_short && self.packets >= SHORT && is_whole)
    }
}

/// A packet of an SSRC that is new.
#[derive(Clone, Copy)]
struct New {
    order: u64,
    time: i64,
    rtp: Rtp,
    candidates: Candidates,
    ip_id: u16,
}

/// A stream went on between other sockets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// In ns since 1970.
    pub at: i64,
    pub from: Ends,
    pub to: Ends,
}

/// All paths and streams, and their packets in the order of the file.
#[derive(Default)]
pub(super) struct Flows {
    pub paths: Vec<Path>,
    by_ends: HashMap<Ends, u32>,
    pub streams: Vec<Stream>,
    by_ssrc: HashMap<(u32, u32), u32>,
    new: HashMap<(u32, u32), Vec<New>>,
    chunks: Vec<Vec<CapturedRtp>>,
    count: usize,
    /// Packets that were offered.
    offered: u64,
}

impl Flows {
    /// The path between two sockets; `None` if there are too many.
    pub fn path(&mut self, ends: Ends) -> Option<u32> {
        if let Some(path) = self.by_ends.get(&ends) {
            return Some(*path);
        }
        if self.paths.len() >= PATHS_MAX {
            return None;
        }
        let path = self.paths.len() as u32;
        self.by_ends.insert(ends, path);
        self.paths.push(Path {
            ends,
            ids: None,
            early: Vec::new(),
            flagged: (0, 0),
            unreadable: 0,
        });
        Some(path)
    }

    /// The sockets of the media that RTCP between these sockets is about: without sockets of its
    /// own the same, otherwise those with the ports before [RFC3550 §11].
    pub fn media_ends(&self, ends: Ends) -> Ends {
        let (mut from, mut to) = ends;
        from.set_port(from.port().saturating_sub(1));
        to.set_port(to.port().saturating_sub(1));
        if !self.has_path(ends) && self.has_path((from, to)) { (from, to) } else { ends }
    }

    /// Whether RTP goes between two sockets, in either direction.
    fn has_path(&self, (a, b): Ends) -> bool {
        self.by_ends.contains_key(&(a, b)) || self.by_ends.contains_key(&(b, a))
    }

    /// Adds a packet, if its source is known; false otherwise.
    pub fn add_known(
        &mut self,
        path: u32,
        now: i64,
        rtp: &Rtp,
        candidates: &Candidates,
        ip_id: u16,
    ) -> bool {
        let Some(stream) = self.by_ssrc.get(&(path, rtp.ssrc)) else { return false };
        self.offered += 1;
        self.keep(*stream, now, rtp, candidates, ip_id);
        true
    }

    /// Adds a packet that looks like RTP. A source counts when two packets are in sequence
    /// [RFC3550 §A.1], or several go up by small steps: two never are where every second one is
    /// lost.
    pub fn add(&mut self, path: u32, now: i64, rtp: &Rtp, candidates: Candidates, ip_id: u16) {
        if self.add_known(path, now, rtp, &candidates, ip_id) {
            return;
        }
        let key = (path, rtp.ssrc);
        let order = self.offered;
        self.offered += 1;
        if self.new.len() >= NEW_MAX && !self.new.contains_key(&key) {
            self.new.clear();
        }
        let waiting = self.new.entry(key).or_default();
        if !is_source(waiting, rtp) || self.streams.len() >= STREAMS_MAX {
            if waiting.len() >= NEW_PACKETS {
                waiting.remove(0);
            }
            waiting.push(New { order, time: now, rtp: *rtp, candidates, ip_id });
            return;
        }
        let waiting = self.new.remove(&key).unwrap_or_default();
        let first = waiting.first().map_or((order, now), |it| (it.order, it.time));
        let stream = self.streams.len() as u32;
        let shown = waiting.first().map_or(*rtp, |it| it.rtp);
        self.streams.push(Stream::new(path, first, &shown));
        self.by_ssrc.insert(key, stream);
        for New { time, rtp, candidates, ip_id, .. } in waiting {
            self.keep(stream, time, &rtp, &candidates, ip_id);
        }
        self.keep(stream, now, rtp, &candidates, ip_id);
    }

    fn keep(&mut self, stream: u32, now: i64, rtp: &Rtp, candidates: &Candidates, ip_id: u16) {
        let own = &mut self.streams[stream as usize];
        own.add(now, rtp, ip_id);
        let mut seen = CapturedRtp {
            time: now,
            stream,
            timestamp: rtp.timestamp,
            send_time: 0,
            sequence_number: rtp.sequence_number,
            number: 0,
            ip_id,
            header: u16::try_from(rtp.header_size).unwrap_or(u16::MAX),
            payload: u16::try_from(rtp.payload_size).unwrap_or(u16::MAX),
            payload_type: rtp.payload_type,
            flags: (u8::from(rtp.is_padding) * IS_PADDING) | (u8::from(rtp.marker) * IS_MARKED),
        };
        let path = own.path as usize;
        match &self.paths[path].ids {
            Some(ids) => seen.set(ids, candidates),
            None => {
                let early = (self.count, Timestamp::from_nanos(now), *candidates);
                self.paths[path].early.push(early);
            }
        }
        if self.count.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(seen);
            self.count += 1;
        }
        if self.paths[path].early.len() >= WATCHED {
            self.decide(path);
        }
    }

    /// Decides the ids of a path's extensions, and reads those of its first packets.
    fn decide(&mut self, path: usize) {
        let early = std::mem::take(&mut self.paths[path].early);
        let ids = Ids::of(early.iter().map(|(_, time, candidates)| (*time, *candidates)));
        for (at, _, candidates) in &early {
            self.chunks[at / CHUNK][at % CHUNK].set(&ids, candidates);
        }
        self.paths[path].ids = Some(ids);
    }

    /// No more packets come.
    pub fn finish(&mut self) {
        for path in 0..self.paths.len() {
            if self.paths[path].ids.is_none() {
                self.decide(path);
            }
        }
        self.new.clear();
        if !self.streams.iter().any(Stream::is_rtp) {
            for stream in &mut self.streams {
                stream.may_be_short = true;
            }
        }
    }

    /// Joins streams that go on between other sockets, by time: behind a NAT with another port,
    /// in another network, or without a relay. `is_one` says of two paths whether they may be those
    /// of one stream.
    pub fn join_moved(&mut self, is_one: impl Fn(Ends, Ends) -> bool) -> Vec<Moved> {
        let mut begun: Vec<u32> = Vec::new();
        begun.extend(
            (0..self.streams.len() as u32).filter(|at| self.streams[*at as usize].is_rtp()),
        );
        begun.sort_by_key(|at| self.streams[*at as usize].first);
        let mut into: Vec<u32> = (0..self.streams.len() as u32).collect();
        let mut moved = Vec::new();
        let mut by_ssrc: HashMap<u32, Vec<u32>> = HashMap::new();
        for at in begun {
            let stream = &self.streams[at as usize];
            let known = by_ssrc.entry(stream.ssrc).or_default();
            let before = known.iter().copied().find(|before| {
                let before = &self.streams[*before as usize];
                let [from, to] = [before.last_path, stream.path].map(|it| self.ends(it));
                goes_on(before, stream) && is_one(from, to)
            });
            let Some(before) = before else {
                known.push(at);
                continue;
            };
            let from = self.ends(self.streams[before as usize].last_path);
            moved.push(Moved { at: stream.first, from, to: self.ends(stream.path) });
            into[at as usize] = before;
            let (head, tail) = self.streams.split_at_mut(before.max(at) as usize);
            let (low, high) = (&mut head[before.min(at) as usize], &mut tail[0]);
            if before < at { low.append(high) } else { high.append(low) }
        }
        if !moved.is_empty() {
            for seen in self.packets_mut() {
                seen.stream = into[seen.stream as usize];
            }
        }
        moved
    }

    fn ends(&self, path: u32) -> Ends {
        self.paths[path as usize].ends
    }

    /// Gives times to packets of a file that has none: those of their RTP timestamps. Returns the
    /// last one.
    pub fn retime(&mut self) -> i64 {
        #[derive(Clone, Copy, Default)]
        struct Clock {
            begin: i64,
            last: u32,
            units: i64,
            hz: i64,
        }
        let mut clocks: Vec<Option<Clock>> = vec![None; self.streams.len()];
        let mut now = 0;
        for seen in self.chunks.iter_mut().flatten() {
            let clock = clocks[seen.stream as usize].get_or_insert(Clock {
                begin: now,
                last: seen.timestamp,
                ..Clock::default()
            });
            let step = seen.timestamp.wrapping_sub(clock.last) as i32;
            if clock.hz == 0 && step > 0 {
                clock.hz = usual_clock(step);
            }
            clock.units += i64::from(step);
            clock.last = seen.timestamp;
            seen.time = clock.begin + clock.units.max(0) * 1_000_000_000 / clock.hz.max(1);
            now = now.max(seen.time);
            let stream = &mut self.streams[seen.stream as usize];
            (stream.first, stream.last) = (clock.begin, stream.last.max(seen.time));
        }
        now
    }

    /// All packets in the order of the file.
    pub fn packets(&self) -> impl Iterator<Item = &CapturedRtp> {
        self.chunks.iter().flatten()
    }

    /// The same, to be changed.
    pub fn packets_mut(&mut self) -> impl Iterator<Item = &mut CapturedRtp> {
        self.chunks.iter_mut().flatten()
    }

    /// Packets so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// All packets; each chunk is freed behind.
    pub fn take_packets(&mut self) -> impl Iterator<Item = CapturedRtp> + use<> {
        std::mem::take(&mut self.chunks).into_iter().flatten()
    }
}

/// Whether a packet makes a source of those that wait.
fn is_source(waiting: &[New], rtp: &Rtp) -> bool {
    let (mut behind, mut in_order) = (rtp, 1);
    for New { rtp: before, .. } in waiting.iter().rev() {
        let step = behind.sequence_number.wrapping_sub(before.sequence_number);
        if step == 1 && in_order == 1 {
            return true;
        }
        if !(1..=SMALL_STEP).contains(&step) || before.payload_type != rtp.payload_type {
            return false;
        }
        (behind, in_order) = (before, in_order + 1);
        if in_order == IN_ORDER {
            return true;
        }
    }
    false
}

/// Whether a stream begins where another one of its SSRC ends, in time and in numbers.
fn goes_on(before: &Stream, stream: &Stream) -> bool {
    // Some packets may come late on the way before, or be lost.
    const PASSED: std::ops::Range<i64> = -1_000_000_000..10_000_000_000;
    const AHEAD: std::ops::Range<i16> = -64..1_000;
    let ahead = stream.first_number().wrapping_sub(before.highest) as i16;
    before.last_path != stream.path
        && PASSED.contains(&(stream.first - before.last))
        && AHEAD.contains(&ahead)
}

/// The clock whose packets usually have this step: frames of voice take 10 to 60 ms, and those of
/// video 16 to 100 ms.
fn usual_clock(step: i32) -> i64 {
    match step {
        ..=480 => 8_000,
        481..1_000 => 48_000,
        1_920 | 2_880 => 48_000,
        _ => 90_000,
    }
}
