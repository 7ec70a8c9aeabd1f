//! Plays the packets of each call to its recorder, when it is known which end is this one.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use weir::units::{TimeDelta, Timestamp};

use super::calls::{Call, Calls, Sockets, sockets};
use super::clock;
use super::flows::{CapturedRtp, Ends};
use super::packets::{Packets, Rtcp};
use crate::read::dump::{Connection, StreamDirection};
use crate::read::packets::facts::Described;
use crate::read::packets::recorder::Recorder;
use crate::read::packets::reports::Interval;
use crate::read::packets::rtp::RtpPacket;

/// The connections of the calls.
pub(super) fn connections(mut packets: Packets, calls: Calls) -> Vec<Connection> {
    let zero = packets.zero();
    let calls = calls.calls;
    let mut together = 0_i64;
    for (index, ..) in calls.iter().flat_map(|call| &call.streams) {
        let stream = &packets.flows.streams[*index as usize];
        together = together.saturating_add(stream.last - stream.first);
    }
    let interval = Interval::for_all(together);
    let mut recorders: Vec<Recorder> = Vec::new();
    recorders.resize_with(calls.len(), || Recorder::of_capture(interval));
    let received = received(&packets, &calls);
    // Call and direction of each stream.
    let mut places: Vec<Option<(u32, StreamDirection)>> = vec![None; packets.flows.streams.len()];
    for (at, call) in calls.iter().enumerate() {
        for (index, found, call_id) in &call.streams {
            let stream = &packets.flows.streams[*index as usize];
            let ends = packets.flows.paths[stream.path as usize].ends;
            let direction = direction(call, ends);
            places[*index as usize] = Some((at as u32, direction));
            let known = Described {
                kind: found.kind,
                clock_hz: found.clock_hz,
                codec: found.codec.clone(),
                payload_types: found.payload_types.clone(),
                ends: Some(ends),
                call_id: call_id.clone(),
                is_forwarded: direction == StreamDirection::Sent
                    && is_forwarded(&received, stream.ssrc, ends),
            };
            recorders[at].describe(direction, stream.ssrc, known);
        }
        if packets.rtcp.is_empty() {
            recorders[at].without_feedback();
        }
        let own = call.streams.iter().map(|(index, ..)| *index as usize);
        let own = own.filter(|index| places[*index] == Some((at as u32, StreamDirection::Sent)));
        recorders[at].reserve_sent(own.map(|index| packets.flows.streams[index].packets).sum());
    }
    let ssrcs: Vec<u32> = packets.flows.streams.iter().map(|it| it.ssrc).collect();
    let owners = Owners::of(&packets, &calls);
    for path in &packets.flows.paths {
        if path.unreadable > 0
            && let Some(at) = owners.of_sockets(path.ends)
        {
            recorders[at].unreadable_rtcp(path.unreadable);
        }
    }
    let mut rtcp = std::mem::take(&mut packets.rtcp).into_iter().peekable();
    let report = |recorders: &mut [Recorder], it: &Rtcp| {
        if let Some(at) = owners.of_report(it) {
            recorders[at].rtcp(since(zero, it.time), direction(&calls[at], it.ends), &it.bytes);
        }
    };
    for seen in packets.flows.take_packets() {
        while let Some(it) = rtcp.next_if(|it| it.time < seen.time) {
            report(&mut recorders, &it);
        }
        let Some((at, direction)) = places[seen.stream as usize] else { continue };
        let packet = rtp(&seen, ssrcs[seen.stream as usize]);
        recorders[at as usize].rtp(since(zero, seen.time), direction, &packet);
    }
    rtcp.for_each(|it| report(&mut recorders, &it));
    for ((from, to), time, after) in &packets.handshakes.round_trips {
        for (call, recorder) in calls.iter().zip(&mut recorders) {
            if (*from, *to) == (call.ends.local, call.ends.remote) {
                recorder.check(since(zero, *time), TimeDelta::from_nanos(*after));
            }
        }
    }
    let mut connections = Vec::new();
    for (call, recorder) in calls.iter().zip(recorders) {
        let mut connection = recorder.finish(&call.name);
        if let Some(log) = &mut connection.packets {
            log.ends = Some(call.ends.clone());
            log.end = since(zero, packets.end());
            log.notes.extend(in_words(&packets));
            log.notes.extend(steps_in_words(&packets, zero));
            log.notes.extend(moves(&packets, call, zero));
            log.notes.extend(interval.unusual_s().map(|seconds| {
                format!("the file is so long that losses are known in steps of {seconds:.0} s")
            }));
        }
        connections.push(connection);
    }
    connections
}

/// SSRCs of the streams that their calls' own ends receive, with the address of that end, and from
/// where they come.
type ReceivedFrom = BTreeMap<(u32, IpAddr), Vec<SocketAddr>>;

fn received(packets: &Packets, calls: &[Call]) -> ReceivedFrom {
    let mut found = ReceivedFrom::new();
    for call in calls {
        for (index, ..) in &call.streams {
            let stream = &packets.flows.streams[*index as usize];
            let ends = packets.flows.paths[stream.path as usize].ends;
            if direction(call, ends) == StreamDirection::Received {
                found.entry((stream.ssrc, ends.1.ip())).or_default().push(ends.0);
            }
        }
    }
    found
}

/// Whether an end sends a stream on that it receives from somebody else.
fn is_forwarded(received: &ReceivedFrom, ssrc: u32, (from, to): Ends) -> bool {
    match received.get(&(ssrc, from.ip())).map(Vec::as_slice) {
        None => false,
        Some([source]) => *source != to,
        // From several places, of which one at most is the other end.
        Some(_) => true,
    }
}

/// What else of the file matters to its calls.
fn in_words(packets: &Packets) -> Vec<String> {
    let mut lines = Vec::new();
    if packets.in_tcp > 0 {
        lines.push(format!("{} packets of media came in TCP", packets.in_tcp));
    }
    if packets.super_packets > 0 {
        lines.push(format!(
            "{} datagrams were captured before they were split into several packets (segmentation \
             offload), and were split here",
            packets.super_packets
        ));
    }
    lines
}

/// When and by how much the clock of the capture was set.
fn steps_in_words(packets: &Packets, zero: i64) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &packets.steps {
        let at = step.until + clock::missing_at(&packets.steps, step.until);
        let seconds = since(zero, at).as_secs_f64();
        let direction = if step.by > 0 { "forward" } else { "back" };
        let by_s = step.by.unsigned_abs() as f64 / 1e9;
        lines.push(format!(
            "the clock of the capture was set {direction} by {by_s:.1} s at {seconds:.1} s: the \
             times before that are corrected"
        ));
    }
    lines
}

/// When a call went on between other sockets.
fn moves(packets: &Packets, call: &Call, zero: i64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut known: Vec<Sockets> = vec![call.sockets[0]];
    for moved in &packets.moved {
        let now = sockets(moved.to);
        if !known.contains(&sockets(moved.from)) || known.contains(&now) {
            continue;
        }
        known.push(now);
        let seconds = since(zero, moved.at).as_secs_f64();
        let (from, to) = moved.to;
        lines.push(format!("from {seconds:.1} s on, the call went between {from} and {to}"));
    }
    lines
}

fn since(zero: i64, time: i64) -> Timestamp {
    Timestamp::from_nanos(time - zero)
}

fn direction(call: &Call, ends: Ends) -> StreamDirection {
    if call.is_local(ends.0) { StreamDirection::Sent } else { StreamDirection::Received }
}

fn rtp(seen: &CapturedRtp, ssrc: u32) -> RtpPacket {
    let payload = u32::from(seen.payload);
    let (payload_size, padding_size) = if seen.is_padding() { (0, payload) } else { (payload, 0) };
    RtpPacket {
        ssrc,
        sequence_number: seen.sequence_number,
        rtp_timestamp: seen.timestamp,
        payload_type: seen.payload_type,
        header_size: seen.header.into(),
        payload_size,
        padding_size,
        is_padding: seen.is_padding(),
        is_marked: seen.is_marked(),
        ip_id: seen.ip_id,
        number: seen.number(),
        send_time: seen.send_time(),
    }
}

/// Which call a report belongs to.
struct Owners {
    by_sockets: BTreeMap<Sockets, usize>,
    /// By a stream's SSRC and the address that sends it.
    by_ssrc: BTreeMap<(u32, IpAddr), usize>,
    /// The first call between two addresses.
    by_hosts: BTreeMap<(IpAddr, IpAddr), usize>,
}

impl Owners {
    fn of(packets: &Packets, calls: &[Call]) -> Self {
        let mut owners = Self {
            by_sockets: BTreeMap::new(),
            by_ssrc: BTreeMap::new(),
            by_hosts: BTreeMap::new(),
        };
        for (at, call) in calls.iter().enumerate() {
            for own in &call.sockets {
                owners.by_sockets.insert(*own, at);
                owners.by_hosts.entry(addresses(*own)).or_insert(at);
            }
            for (index, ..) in &call.streams {
                let stream = &packets.flows.streams[*index as usize];
                let (from, _) = packets.flows.paths[stream.path as usize].ends;
                owners.by_ssrc.insert((stream.ssrc, from.ip()), at);
            }
        }
        owners
    }

    /// By the sockets, or those whose ports are one less: RTCP without its own has the next ones
    /// [RFC3550 §11]. Where these are others, by the addresses.
    fn of_sockets(&self, ends: Ends) -> Option<usize> {
        let own = self.by_sockets.get(&sockets(ends)).copied();
        own.or_else(|| {
            let (mut from, mut to) = ends;
            from.set_port(from.port().checked_sub(1)?);
            to.set_port(to.port().checked_sub(1)?);
            self.by_sockets.get(&sockets((from, to))).copied()
        })
        .or_else(|| self.by_hosts.get(&addresses(sockets(ends))).copied())
    }

    /// By the stream that it is of, or about.
    fn of_report(&self, report: &Rtcp) -> Option<usize> {
        let (from, to) = (report.ends.0.ip(), report.ends.1.ip());
        let word = |at: usize| Some(u32::from_be_bytes(*report.bytes.get(at..)?.first_chunk()?));
        let of = |at: usize, address: IpAddr| self.by_ssrc.get(&(word(at)?, address)).copied();
        self.by_sockets
            .get(&sockets(report.ends))
            .copied()
            .or_else(|| of(4, from))
            .or_else(|| of(8, to))
            .or_else(|| self.of_sockets(report.ends))
    }
}

fn addresses((a, b): Sockets) -> (IpAddr, IpAddr) {
    let (a, b) = (a.ip(), b.ip());
    if a <= b { (a, b) } else { (b, a) }
}
