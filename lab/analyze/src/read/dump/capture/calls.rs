//! Calls of a file: which streams belong together.
//!
//! A call is what a connection of WebRTC is, or a leg of a telephone call: sockets of two hosts.
//! Other hosts are other calls. Between two hosts, sockets that are used at one time for different
//! kinds of media are of one call, as those of audio and video without BUNDLE; so are those that
//! SIP gives one Call-ID.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use weir_record::calls::stats::Kind;

use super::ends::{Ends, LocalEnd, Sign};
use super::flows::Stream;
use super::hosts::hosts;
use super::kinds::{self, KindFound};
use super::packets::Packets;
use super::sessions::Described;

/// Who is silent for longer in ns, in both directions, and comes back with other streams, calls
/// again.
const NEXT_CALL: i64 = 10_000_000_000;

/// Two sockets, the smaller one first.
pub(super) type Sockets = (SocketAddr, SocketAddr);

pub(super) fn sockets((a, b): (SocketAddr, SocketAddr)) -> Sockets {
    if a <= b { (a, b) } else { (b, a) }
}

/// A call.
pub(super) struct Call {
    pub name: String,
    pub ends: Ends,
    pub sockets: Vec<Sockets>,
    /// Other addresses that this end had later.
    moved_to: Vec<IpAddr>,
    /// Indices of its streams, each with what it is.
    pub streams: Vec<(u32, KindFound, Option<String>)>,
    first: i64,
    last: i64,
}

impl Call {
    /// Whether a socket is of this end. RTCP without a socket of its own has the next port.
    pub fn is_local(&self, socket: SocketAddr) -> bool {
        let local = self.ends.local;
        let is_first = socket.ip() == local.address
            && local.port.is_none_or(|port| {
                socket.port() == port || Some(socket.port()) == port.checked_add(1)
            });
        is_first || self.moved_to.contains(&socket.ip())
    }

    fn kinds(&self) -> Vec<Kind> {
        self.streams.iter().filter_map(|(_, found, _)| found.kind).collect()
    }
}

/// The calls of a file, by their begin.
#[derive(Default)]
pub(super) struct Calls {
    pub calls: Vec<Call>,
    /// Streams of others than the named end, and streams that are there twice.
    others: usize,
    twins: usize,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// What a reader should know.
    pub fn note(&self) -> Option<String> {
        let mut known = Vec::new();
        if self.others > 0 {
            known.push(format!("{} streams between other ends are left out", self.others));
        }
        if self.twins > 0 {
            known.push(format!(
                "{} streams were captured again behind an address translation, and count once",
                self.twins
            ));
        }
        (!known.is_empty()).then(|| known.join("; "))
    }
}

/// Finds the calls. With a named end, only its own.
pub(super) fn of(packets: &Packets, local: Option<LocalEnd>) -> Calls {
    let flows = &packets.flows;
    let mut calls = Calls::default();
    let mut known: Vec<u32> = Vec::new();
    for (index, stream) in flows.streams.iter().enumerate() {
        if !stream.is_rtp() {
            continue;
        }
        let ends = flows.paths[stream.path as usize].ends;
        if local.is_some_and(|local| !local.has(ends.0) && !local.has(ends.1)) {
            calls.others += 1;
        } else {
            known.push(index as u32);
        }
    }
    let once = without_twins(packets, &known);
    calls.twins = known.len() - once.len();
    let mut legs: BTreeMap<(Sockets, usize), Vec<u32>> = BTreeMap::new();
    for (index, place) in by_time(packets, &once) {
        let path = flows.streams[index as usize].path;
        let own = sockets(flows.paths[path as usize].ends);
        legs.entry((own, place)).or_default().push(index);
    }
    let mut all: Vec<Call> = Vec::new();
    for ((sockets, _), streams) in legs {
        let own = leg(packets, sockets, &streams, local);
        match all.iter_mut().find(|other| is_same(packets, other, &own)) {
            Some(other) => {
                other.sockets.extend(own.sockets);
                other.streams.extend(own.streams);
                (other.first, other.last) = (other.first.min(own.first), other.last.max(own.last));
            }
            None => all.push(own),
        }
    }
    all.sort_by_key(|call| call.first);
    give_names(&mut all);
    calls.calls = all;
    calls
}

/// Without the streams that are there twice. Of two sides of an address translation, one has all
/// streams that are left.
fn without_twins(packets: &Packets, streams: &[u32]) -> Vec<u32> {
    let flows = &packets.flows;
    let of = |index: u32| &flows.streams[index as usize];
    let side = |index: u32| sockets(flows.paths[of(index).path as usize].ends);
    let mut kept: Vec<u32> = Vec::new();
    let mut by_ssrc: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut left_out: BTreeSet<Sockets> = BTreeSet::new();
    for index in streams {
        let same = by_ssrc.entry(of(*index).ssrc).or_default();
        match same.iter().find(|place| is_twin(of(kept[**place]), of(*index))) {
            Some(place) if left_out.contains(&side(kept[*place])) => kept[*place] = *index,
            Some(_) => {
                left_out.insert(side(*index));
            }
            None => {
                same.push(kept.len());
                kept.push(*index);
            }
        }
    }
    kept
}

/// Numbers the calls between two sockets: streams that begin long after all others ended are those
/// of a next one.
fn by_time(packets: &Packets, streams: &[u32]) -> Vec<(u32, usize)> {
    let flows = &packets.flows;
    let mut sorted = streams.to_vec();
    sorted.sort_by_key(|index| flows.streams[*index as usize].first);
    let mut ends: BTreeMap<Sockets, (i64, usize)> = BTreeMap::new();
    let mut found = Vec::new();
    for index in sorted {
        let stream = &flows.streams[index as usize];
        let own = sockets(flows.paths[stream.path as usize].ends);
        let (last, place) = ends.entry(own).or_insert((stream.last, 0));
        *place += usize::from(stream.first - *last > NEXT_CALL);
        *last = stream.last.max(*last);
        found.push((index, *place));
    }
    found
}

/// The streams between two sockets.
fn leg(packets: &Packets, sockets: Sockets, streams: &[u32], local: Option<LocalEnd>) -> Call {
    let flows = &packets.flows;
    let of = |index: u32| &flows.streams[index as usize];
    let earliest = streams.iter().copied().min_by_key(|index| of(*index).order).unwrap_or_default();
    // Who sent first, if nothing else tells.
    let (first, second) = hosts(flows.paths[of(earliest).path as usize].ends);
    let mut ends = packets.signs.decide(first, second, &packets.handshakes);
    // An address that both ends have names neither.
    let named = local.filter(|it| it.has(sockets.0) != it.has(sockets.1));
    if let Some(named) = named {
        let (a, b) = hosts(sockets);
        let (own, other) = if named.has(sockets.0) { (a, b) } else { (b, a) };
        ends = Ends { local: own, remote: other, signs: vec![Sign::Named] };
    }
    let mut found = Vec::new();
    for index in streams {
        let stream = of(*index);
        let path = &flows.paths[stream.path as usize];
        // Each end describes what it wants to receive; the types are those of both.
        let described = [path.ends.1, path.ends.0].map(|socket| packets.sessions.of(&socket));
        let described: Vec<&Described> = described.into_iter().flatten().collect();
        let mappings: Vec<_> = described.iter().flat_map(|it| it.mappings.clone()).collect();
        let call_id = described.iter().find_map(|it| it.call_id.clone());
        found.push((*index, kinds::of(stream, &mappings), call_id));
    }
    let (mut all, mut moved_to) = (vec![sockets], Vec::new());
    for moved in &packets.moved {
        if !all.contains(&self::sockets(moved.from)) {
            continue;
        }
        all.push(self::sockets(moved.to));
        for (before, now) in [(moved.from.0, moved.to.0), (moved.from.1, moved.to.1)] {
            let is_own = before.ip() == ends.local.address || moved_to.contains(&before.ip());
            if is_own && before.ip() != now.ip() {
                moved_to.push(now.ip());
            }
        }
    }
    Call {
        name: String::new(),
        ends,
        sockets: all,
        moved_to,
        streams: found,
        first: streams.iter().map(|index| of(*index).first).min().unwrap_or_default(),
        last: streams.iter().map(|index| of(*index).last).max().unwrap_or_default(),
    }
}

/// Whether two legs are of one call.
fn is_same(packets: &Packets, call: &Call, leg: &Call) -> bool {
    let hosts = |call: &Call| {
        let (a, b) = (call.ends.local.address, call.ends.remote.address);
        if a <= b { (a, b) } else { (b, a) }
    };
    if hosts(call) != hosts(leg) || leg.ends.local.port.is_some() {
        return false;
    }
    let id = |call: &Call| call.streams.iter().find_map(|(_, _, id)| id.clone());
    if let (Some(a), Some(b)) = (id(call), id(leg)) {
        return a == b;
    }
    let shared = call.last.min(leg.last) - call.first.max(leg.first);
    let shorter = (call.last - call.first).min(leg.last - leg.first);
    let kinds = call.kinds();
    // Streams of one SSRC would be one in the reports.
    let key = |index: u32| {
        let stream = &packets.flows.streams[index as usize];
        (stream.ssrc, packets.flows.paths[stream.path as usize].ends.0.ip())
    };
    let keys: Vec<_> = call.streams.iter().map(|(index, ..)| key(*index)).collect();
    2 * shared >= shorter
        && !leg.kinds().iter().any(|kind| kinds.contains(kind))
        && !leg.streams.iter().any(|(index, ..)| keys.contains(&key(*index)))
}

/// Whether a stream has the packets of another one with other addresses, as before and behind an
/// address translation: even their IP identification is the same.
fn is_twin(other: &Stream, stream: &Stream) -> bool {
    const LEAST: usize = 12;
    if other.ssrc != stream.ssrc || other.path == stream.path {
        return false;
    }
    let same = |ids: &&(u16, u16)| ids.1 != 0 && other.first_ids.contains(ids);
    stream.first_ids.iter().filter(same).count() >= LEAST
}

/// One call has the name of the format; several have that of their other end.
fn give_names(calls: &mut [Call]) {
    if let [call] = calls {
        call.name = "capture".into();
        return;
    }
    let is_one = calls.iter().all(|call| call.ends.local == calls[0].ends.local);
    let mut names: Vec<String> = Vec::new();
    for call in calls.iter() {
        let Ends { local, remote, .. } = &call.ends;
        names.push(if is_one { remote.to_string() } else { format!("{local} and {remote}") });
    }
    for (at, call) in calls.iter_mut().enumerate() {
        call.name = names[at].clone();
        if names.iter().filter(|name| **name == names[at]).count() > 1 {
            let (a, b) = call.sockets[0];
            let other = if a.ip() == call.ends.remote.address { a } else { b };
            call.name = other.to_string();
        }
    }
    for at in 1..calls.len() {
        if calls[..at].iter().any(|call| call.name == calls[at].name) {
            calls[at].name += &format!(" ({})", at + 1);
        }
    }
}
