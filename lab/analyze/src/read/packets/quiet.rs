//! Times without packets, of which no loss tells: a stall, a stream that ends before the call does,
//! and a call in which sound goes one way only.
//!
//! A sender that pauses moves its timestamps on, and a voice that is silent does so, too. So a
//! stream stalls if time passes that its timestamps do not know.

use weir_record::calls::StreamDirection;
use weir_record::calls::stats::Kind;

use super::PacketLog;
use super::facts::StreamFacts;
use crate::found::{Evidence, Found, StreamId, Subject};
use crate::read::dump::capture::ends::Ends;
use crate::read::dump::{Connection, Dump};

/// A shorter stall in ms is what a jitter buffer may bridge.
const LEAST_STALL_MS: f64 = 500.0;
/// A stream that ends this much before the others of its call, in s, has ended by itself.
const LEAST_END_S: f64 = 5.0;
/// A call of one way that is shorter, in s, may only have begun.
const LEAST_ONE_WAY_S: f64 = 5.0;

/// What the captured streams of all connections show.
pub(crate) fn findings(dump: &Dump) -> Vec<Found> {
    let mut found = Vec::new();
    for connection in &dump.connections {
        let Some(log) = connection.packets.as_ref().filter(|log| log.ends.is_some()) else {
            continue;
        };
        for facts in &log.streams {
            found.extend(stall(connection, log, facts));
            found.extend(end(connection, log, facts));
        }
        // A recording of one stream has no other direction.
        if !log.ends.as_ref().is_some_and(Ends::is_recorded) {
            found.extend(one_way(connection, log).or_else(|| begin_of_one_way(connection, log)));
        }
    }
    found
}

fn stall(connection: &Connection, log: &PacketLog, facts: &StreamFacts) -> Option<Found> {
    let (stood_ms, at_s) = facts.longest_stall;
    // When this end sends, it decides itself; if it is this end.
    let is_own = facts.direction == StreamDirection::Sent
        && log.ends.as_ref().is_some_and(|ends| !ends.signs.is_empty());
    if stood_ms < LEAST_STALL_MS || is_own {
        return None;
    }
    let to_s = at_s + stood_ms / 1e3;
    let evidence = Evidence::StoodStill { what: in_words(facts), at_s };
    Some(Found::new(subject(connection, facts), (at_s, to_s), evidence))
}

fn end(connection: &Connection, log: &PacketLog, facts: &StreamFacts) -> Option<Found> {
    let (_, last_s) = facts.span_s;
    let others =
        log.streams.iter().filter(|it| it.ssrc != facts.ssrc || it.direction != facts.direction);
    // Another one of its kind and direction goes on in its place.
    let mut successors = others.clone();
    let has_successor = successors.any(|it| {
        it.direction == facts.direction && it.kind == facts.kind && it.span_s.1 > last_s + 1.0
    });
    let end_s = others.map(|it| it.span_s.1).fold(last_s, f64::max);
    // Who was silent for longer before may go on.
    let may_go_on = facts.longest_gap.0 / 1e3 > end_s - last_s;
    if has_successor || may_go_on || facts.is_ended || end_s - last_s < LEAST_END_S {
        return None;
    }
    let evidence = Evidence::StreamEnds { what: in_words(facts), at_s: last_s };
    Some(Found::new(subject(connection, facts), (last_s, end_s), evidence))
}

fn one_way(connection: &Connection, log: &PacketLog) -> Option<Found> {
    let audio = log.streams.iter().filter(|it| it.kind == Kind::Audio);
    let of = |direction| log.streams.iter().any(|it| it.direction == direction);
    let (sent, received) = (of(StreamDirection::Sent), of(StreamDirection::Received));
    let longest = audio.max_by(|a, b| length(a).total_cmp(&length(b)))?;
    if sent == received || length(longest) < LEAST_ONE_WAY_S {
        return None;
    }
    let (from_s, to_s) = longest.span_s;
    let evidence = Evidence::OneWay { nothing_sent: !sent, is_begin: false };
    Some(Found::new(subject(connection, longest), (from_s, to_s), evidence))
}

/// Sound of one direction that begins long after that of the other one.
fn begin_of_one_way(connection: &Connection, log: &PacketLog) -> Option<Found> {
    let (sent, received) =
        first_audio(log, StreamDirection::Sent).zip(first_audio(log, StreamDirection::Received))?;
    let nothing_sent = sent.span_s.0 > received.span_s.0;
    let (early, late) = if nothing_sent { (received, sent) } else { (sent, received) };
    let (from_s, to_s) = (early.span_s.0, late.span_s.0);
    // Who is silent as long later may only have listened.
    let listened = late.longest_gap.0 / 1e3 >= to_s - from_s;
    if to_s - from_s < LEAST_ONE_WAY_S || early.span_s.1 < to_s || listened {
        return None;
    }
    let evidence = Evidence::OneWay { nothing_sent, is_begin: true };
    Some(Found::new(subject(connection, late), (from_s, to_s), evidence))
}

/// The audio of a direction that begins first.
fn first_audio(log: &PacketLog, direction: StreamDirection) -> Option<&StreamFacts> {
    let own = log.streams.iter().filter(|it| it.kind == Kind::Audio && it.direction == direction);
    own.min_by(|a, b| a.span_s.0.total_cmp(&b.span_s.0))
}

fn length(facts: &StreamFacts) -> f64 {
    facts.span_s.1 - facts.span_s.0
}

fn in_words(facts: &StreamFacts) -> &'static str {
    match (facts.direction, facts.kind) {
        (StreamDirection::Sent, Kind::Audio) => "sent audio",
        (StreamDirection::Sent, Kind::Video) => "sent video",
        (StreamDirection::Received, Kind::Audio) => "received audio",
        (StreamDirection::Received, Kind::Video) => "received video",
    }
}

/// Its stream as other findings name it.
fn subject(connection: &Connection, facts: &StreamFacts) -> Subject {
    let mut own = connection.streams.iter();
    match own.find(|it| it.ssrc == facts.ssrc && it.direction == facts.direction) {
        Some(stream) => Subject::Stream(StreamId::of(connection, stream)),
        None => Subject::Connection(connection.name.clone()),
    }
}
