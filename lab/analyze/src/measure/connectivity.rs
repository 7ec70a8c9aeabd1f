//! Findings about connections: failed, interrupted or restarted ones, servers that do not answer,
//! and the path that media take.

use std::collections::BTreeMap;

use weir_record::calls::stats::CandidatePair;

pub(crate) use crate::found::UsedPath;
use crate::found::{
    Ended, Evidence, Found, Interface, PathChange, Refusal, ServerError, Subject, Why,
};
use crate::read::dump::{Connection, ConnectionChange, ConnectionEvent, ConnectionState, Dump};

/// A connection whose checks go on for so long, in s, without an end in the dump is not connected.
/// ICE agents give up after 15 to 30 s.
const CHECKS_S: f64 = 10.0;
/// STUN checks are answered within this time in s after a change of the path.
const RTT_AFTER_S: f64 = 5.0;

/// Whether a connection of the dump failed, or was never made, or the browser refused something.
pub(crate) fn has_failure(dump: &Dump) -> bool {
    histories(&dump.events, last_time(dump))
        .iter()
        .any(|(_, history)| history.ended().is_some() || !history.refusals.is_empty())
}

/// Why a connection failed; `None` if it did not.
pub(crate) fn failure(dump: &Dump, connection: &str) -> Option<String> {
    let histories = histories(&dump.events, last_time(dump));
    let (_, history) = histories.iter().find(|(name, _)| name == connection)?;
    let evidence = history.ended()?;
    match &evidence {
        Evidence::ConnectionFailed(ended) | Evidence::NeverConnected(ended) => {
            Some(evidence.ended(ended))
        }
        _ => None,
    }
}

/// All findings about the connections of a dump.
pub(crate) fn findings(dump: &Dump) -> Vec<Found> {
    let mut found = of_events(&dump.events, last_time(dump));
    for connection in &dump.connections {
        paths(connection, &mut found);
    }
    found
}

/// What the events of connections say, by a time in s.
pub(crate) fn of_events(events: &[ConnectionEvent], last_s: f64) -> Vec<Found> {
    let mut found = Vec::new();
    for (name, history) in histories(events, last_s) {
        history.findings(&name, &mut found);
    }
    found
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It was up, or closed by the application.
    Up,
    /// It was up and failed at this time.
    Failed(f64),
    /// It was tried, and never up. The time is that of the failure, or the last of the dump.
    NeverConnected(f64),
}

/// What happened to one connection.
#[derive(Clone, Debug)]
struct ConnectionHistory {
    first_s: f64,
    connected_s: Option<f64>,
    end: End,
    /// Which layer failed.
    by: &'static str,
    interruptions: Vec<(f64, f64)>,
    restarts: Vec<f64>,
    servers: BTreeMap<String, (f64, ServerError)>,
    refusals: Vec<(f64, Refusal)>,
    /// STUN and TURN servers that are configured.
    configured: Option<(usize, usize)>,
}

/// When the page was behind another tab or window, in s.
pub(crate) fn hidden(events: &[ConnectionEvent]) -> Vec<(f64, f64)> {
    let (mut spans, mut since) = (Vec::new(), None);
    for event in events {
        match event.change {
            ConnectionChange::Hidden(true) => since = since.or(Some(event.time_s)),
            ConnectionChange::Hidden(false) => {
                if let Some(from) = since.take() {
                    spans.push((from, event.time_s));
                }
            }
            _ => {}
        }
    }
    if let Some(from) = since {
        spans.push((from, f64::INFINITY));
    }
    spans
}

/// What happened to each connection, by the order of their first events.
fn histories(events: &[ConnectionEvent], last_s: f64) -> Vec<(String, ConnectionHistory)> {
    let mut names: Vec<&str> = Vec::new();
    let mut by_name: BTreeMap<&str, Vec<&ConnectionEvent>> = BTreeMap::new();
    for event in events {
        let of_name = by_name.entry(&event.connection).or_default();
        if of_name.is_empty() {
            names.push(&event.connection);
        }
        of_name.push(event);
    }
    names.iter().map(|name| (String::from(*name), history(&by_name[name], last_s))).collect()
}

/// Time of the last event or report, in s. A page reports as long as it is open.
fn last_time(dump: &Dump) -> f64 {
    let mut last = dump.events.last().map_or(0.0, |event| event.time_s).max(dump.end_s);
    for stream in dump.connections.iter().flat_map(|it| &it.streams) {
        let end = stream.reports.last().map_or(0.0, |it| it.timed.time.as_secs_f64());
        last = last.max(end);
    }
    last
}

/// When a connection began, in s. Servers may be known without their time.
fn first_s(events: &[&ConnectionEvent]) -> f64 {
    let timed = |it: &&&ConnectionEvent| !matches!(it.change, ConnectionChange::Created { .. });
    events.iter().find(timed).map_or(0.0, |it| it.time_s)
}

fn history(events: &[&ConnectionEvent], last_s: f64) -> ConnectionHistory {
    let mut history = ConnectionHistory {
        first_s: first_s(events),
        connected_s: None,
        end: End::Up,
        by: "the connection",
        interruptions: Vec::new(),
        restarts: Vec::new(),
        servers: BTreeMap::new(),
        refusals: Vec::new(),
        configured: None,
    };
    // Since when media cannot flow, while that lasts.
    let mut down_since: Option<f64> = None;
    let mut failed_at: Option<f64> = None;
    let mut tried_at: Option<f64> = None;
    let mut ice_is_down = false;
    let mut is_closed = false;
    for event in events {
        let time = event.time_s;
        let (state, by) = match &event.change {
            ConnectionChange::Ice(state) => (*state, "ICE"),
            ConnectionChange::Dtls(state) => (*state, "DTLS"),
            ConnectionChange::Whole(state) => (*state, "the connection"),
            ConnectionChange::ServerError { url, code, text } => {
                let error = ServerError { url: url.clone(), code: *code, text: text.clone() };
                history.servers.entry(url.clone()).or_insert((time, error));
                continue;
            }
            ConnectionChange::Refused { method, error } => {
                let refusal = Refusal { method: method.clone(), error: error.clone() };
                if !history.refusals.iter().any(|(_, known)| *known == refusal) {
                    history.refusals.push((time, refusal));
                }
                continue;
            }
            ConnectionChange::Created { stun, turn } => {
                history.configured = Some((*stun, *turn));
                continue;
            }
            ConnectionChange::Restart => {
                history.restarts.push(time);
                continue;
            }
            ConnectionChange::Close => {
                is_closed = true;
                continue;
            }
            ConnectionChange::Hidden(_) => continue,
        };
        if by == "ICE" {
            ice_is_down = matches!(state, ConnectionState::Disconnected | ConnectionState::Failed);
        }
        match state {
            ConnectionState::New => {}
            ConnectionState::Connecting => tried_at = tried_at.or(Some(time)),
            // DTLS stays connected while ICE is down.
            ConnectionState::Connected if by == "DTLS" => {}
            ConnectionState::Connected if by == "the connection" && ice_is_down => {}
            ConnectionState::Connected => {
                history.connected_s = history.connected_s.or(Some(time));
                if let Some(since) = down_since.take() {
                    history.interruptions.push((since, time));
                }
                failed_at = None;
            }
            ConnectionState::Disconnected => down_since = down_since.or(Some(time)),
            ConnectionState::Failed => {
                if failed_at.is_none() || by != "the connection" {
                    history.by = by;
                }
                if failed_at.is_none() && by == "the connection" && ice_is_down {
                    history.by = "ICE";
                }
                down_since = down_since.or(Some(time));
                failed_at = failed_at.or(Some(time));
            }
            ConnectionState::Closed => is_closed = true,
        }
    }
    history.end = match (failed_at, history.connected_s) {
        (Some(at), Some(_)) => End::Failed(at),
        (Some(at), None) => End::NeverConnected(at),
        (None, Some(_)) => {
            // Still down when the dump ends.
            if let Some(since) = down_since.filter(|_| !is_closed) {
                history.interruptions.push((since, last_s));
            }
            End::Up
        }
        (None, None) => match tried_at {
            Some(tried) if !is_closed && last_s - tried >= CHECKS_S => End::NeverConnected(last_s),
            _ => End::Up,
        },
    };
    history
}

impl ConnectionHistory {
    /// How it ended, if not as it should.
    fn ended(&self) -> Option<Evidence> {
        let why = match (self.by, self.end) {
            ("ICE", End::Failed(_)) => Why::NoAnswers,
            ("ICE", _) => Why::NoPath,
            ("DTLS", _) => Why::Dtls,
            (_, End::NeverConnected(_)) => Why::NotFound,
            _ => Why::GivenUp,
        };
        match self.end {
            End::Up => None,
            End::Failed(at_s) => {
                let seconds = (at_s - self.connected_s.unwrap_or(at_s)).max(0.0);
                Some(Evidence::ConnectionFailed(Ended { at_s, seconds, before_s: 0.0, why }))
            }
            End::NeverConnected(at_s) => {
                let seconds = (at_s - self.first_s).max(0.0);
                let before_s = (-self.first_s).clamp(0.0, seconds);
                Some(Evidence::NeverConnected(Ended { at_s, seconds, before_s, why }))
            }
        }
    }

    fn findings(&self, name: &str, found: &mut Vec<Found>) {
        let ended = self.ended();
        if let (Some(evidence), End::Failed(at) | End::NeverConnected(at)) = (&ended, self.end) {
            let from = if matches!(self.end, End::Failed(_)) { at } else { self.first_s };
            found.push(finding(name, (from, at), evidence.clone()));
        }
        if let (Some(_), Some((servers, 0))) = (&ended, self.configured) {
            let at = self.first_s;
            found.push(finding(name, (at, at), Evidence::NoTurnServer { servers }));
        }
        for (from, to) in &self.interruptions {
            found.push(finding(name, (*from, *to), Evidence::Interruption));
        }
        for at in &self.restarts {
            found.push(finding(name, (*at, *at), Evidence::Restart));
        }
        for (at, error) in self.servers.values() {
            found.push(finding(name, (*at, *at), Evidence::ServerError(error.clone())));
        }
        for (at, refusal) in &self.refusals {
            found.push(finding(name, (*at, *at), Evidence::Refused(refusal.clone())));
        }
    }
}

/// A finding of a connection. That of a page has no name.
fn finding(connection: &str, (from_s, to_s): (f64, f64), evidence: Evidence) -> Found {
    let subject = match connection {
        "" => Subject::Page,
        name => Subject::Connection(name.into()),
    };
    // Events may precede the first report, with which time begins.
    Found::new(subject, (from_s.max(0.0), to_s.max(0.0)), evidence)
}

/// The selected pairs of a connection that are worth a word, and their changes.
fn paths(connection: &Connection, found: &mut Vec<Found>) {
    let mut used = used_paths(connection);
    let Some((mut since, mut current, mut before_ms)) = used.next() else { return };
    let mut end_s = since;
    for (now_s, path, rtt_ms) in used {
        end_s = now_s;
        if path == current {
            before_ms = rtt_ms.or(before_ms);
            continue;
        }
        if current.how().is_some() {
            let evidence = Evidence::Path(current.clone());
            found.push(finding(&connection.name, (since, now_s), evidence));
        }
        // The first check of the new path may not be answered yet.
        let after_ms = latest_rtt_ms(connection, now_s, now_s + RTT_AFTER_S);
        let rtt_ms = before_ms.zip(after_ms);
        let change = PathChange { from: current, to: path.clone(), rtt_ms };
        found.push(finding(&connection.name, (now_s, now_s), Evidence::PathChange(change)));
        (since, current, before_ms) = (now_s, path, rtt_ms.map(|(_, after)| after));
    }
    if current.how().is_some() {
        found.push(finding(&connection.name, (since, end_s), Evidence::Path(current)));
    }
}

/// The path of a connection at each report of its longest stream, with the time in s and the
/// round-trip time in ms.
fn used_paths(
    connection: &Connection,
) -> impl Iterator<Item = (f64, UsedPath, Option<f64>)> + use<'_> {
    let longest = connection.streams.iter().max_by_key(|stream| stream.reports.len());
    let reports = longest.map(|stream| stream.reports.as_slice()).unwrap_or_default();
    reports.iter().filter_map(|report| {
        let pair = report.timed.report.pair.as_deref()?;
        let rtt_ms = pair.current_round_trip_time.map(|seconds| seconds * 1e3);
        Some((report.timed.time.as_secs_f64(), UsedPath::of(pair)?, rtt_ms))
    })
}

/// The last round-trip time in ms within a time.
fn latest_rtt_ms(connection: &Connection, from_s: f64, to_s: f64) -> Option<f64> {
    let within = used_paths(connection).filter(|(at_s, ..)| (from_s..=to_s).contains(at_s));
    within.filter_map(|(.., rtt_ms)| rtt_ms).last()
}

/// When a connection's path changed, in s.
pub(crate) fn path_changes(connection: &Connection) -> Vec<f64> {
    let mut changes = Vec::new();
    let mut before: Option<UsedPath> = None;
    for (at_s, path, _) in used_paths(connection) {
        if before.as_ref().is_some_and(|before| *before != path) {
            changes.push(at_s);
        }
        before = Some(path);
    }
    changes
}

/// The interfaces of a connection, each with the time in s from which it was used.
pub(crate) fn interfaces(connection: &Connection) -> Vec<(f64, Interface)> {
    let mut found: Vec<(f64, Interface)> = Vec::new();
    for (at_s, path, _) in used_paths(connection) {
        let Some(interface) = path.interface else { continue };
        if found.last().is_none_or(|(_, before)| *before != interface) {
            found.push((at_s, interface));
        }
    }
    found
}

/// The path of a connection at its end.
pub(crate) fn last_path(connection: &Connection) -> Option<UsedPath> {
    let reports = connection.streams.iter().flat_map(|it| it.reports.last());
    reports.filter_map(|it| UsedPath::of(it.timed.report.pair.as_deref()?)).next()
}

impl UsedPath {
    fn of(pair: &CandidatePair) -> Option<Self> {
        if pair.local.protocol.is_empty() || pair.local.candidate_type.is_empty() {
            return None;
        }
        // Of a relayed candidate, `protocol` is that of the relay's other side.
        let to_relay = pair.local.relay_protocol.as_deref().filter(|it| !it.is_empty());
        let is_relayed = pair.local.candidate_type.starts_with("relay");
        Some(Self {
            protocol: to_relay.unwrap_or(&pair.local.protocol).to_lowercase(),
            local: pair.local.candidate_type.clone(),
            remote: pair.remote.candidate_type.clone(),
            interface: pair.local.network_type.as_deref().and_then(Interface::of),
            places: [&pair.local, &pair.remote].map(|it| Some((it.address?, it.port))),
            relay: pair.local.url.clone().filter(|_| is_relayed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionChange::{Close, Ice, Whole};
    use super::ConnectionState::{Connected, Connecting, Disconnected, Failed};
    use super::*;

    fn history_of(changes: &[(f64, ConnectionChange)], last_s: f64) -> ConnectionHistory {
        let events: Vec<ConnectionEvent> = changes
            .iter()
            .map(|(time_s, change)| ConnectionEvent {
                connection: "a".into(),
                time_s: *time_s,
                change: change.clone(),
            })
            .collect();
        history(&events.iter().collect::<Vec<_>>(), last_s)
    }

    #[test]
    fn a_connection_that_was_up_and_failed_says_after_how_long_and_why() {
        let up = [(0.0, Ice(Connecting)), (0.5, Ice(Connected)), (1.0, Whole(Connected))];
        let down = [(12.0, Ice(Disconnected)), (15.5, Ice(Failed)), (15.5, Whole(Failed))];
        let history = history_of(&[up, down].concat(), 20.0);
        assert_eq!(history.end, End::Failed(15.5));
        let ended = Ended { at_s: 15.5, seconds: 15.0, before_s: 0.0, why: Why::NoAnswers };
        assert_eq!(history.ended(), Some(Evidence::ConnectionFailed(ended)));
    }

    #[test]
    fn a_connection_that_comes_back_was_interrupted() {
        let changes = [
            (0.5, Ice(Connected)),
            (0.6, Whole(Connected)),
            (10.0, Ice(Disconnected)),
            (10.1, Whole(Disconnected)),
            (14.0, Ice(Connected)),
            (14.1, Whole(Connected)),
        ];
        let history = history_of(&changes, 20.0);
        assert_eq!((history.end, history.interruptions), (End::Up, vec![(10.0, 14.0)]));
    }

    #[test]
    fn a_failure_that_a_restart_mends_is_an_interruption() {
        let changes = [(0.5, Ice(Connected)), (9.0, Ice(Failed)), (9.5, ConnectionChange::Restart)];
        let history = history_of(&[&changes[..], &[(11.0, Ice(Connected))]].concat(), 20.0);
        assert_eq!((history.end, history.interruptions), (End::Up, vec![(9.0, 11.0)]));
        assert_eq!(history.restarts, [9.5]);
    }

    #[test]
    fn checks_without_an_end_are_a_failure_unless_the_application_ends_them() {
        assert_eq!(history_of(&[(0.0, Ice(Connecting))], 20.0).end, End::NeverConnected(20.0));
        assert_eq!(history_of(&[(0.0, Ice(Connecting))], 5.0).end, End::Up);
        assert_eq!(history_of(&[(0.0, Ice(Connecting)), (3.0, Close)], 20.0).end, End::Up);
    }
}
