//! Findings about connections: failed, interrupted or restarted ones, servers that do not answer,
//! and the path that media take.

use std::collections::BTreeMap;

use weir_lab::calls::file;
use weir_lab::calls::stats::CandidatePair;

use crate::dump::{Connection, ConnectionChange, ConnectionEvent, ConnectionState, Dump};
use crate::finding::{Finding, rounded};
use crate::rules::Part;

/// Names of the rules, for findings and for the verdict.
pub(crate) const FAILED: &str = "connection failed";
pub(crate) const NEVER: &str = "never connected";
pub(crate) const INTERRUPTED: &str = "interruption";
pub(crate) const RESTART: &str = "ICE restart";
pub(crate) const SERVER: &str = "server error";
pub(crate) const PATH: &str = "path";
pub(crate) const PATH_CHANGE: &str = "path change";

/// A connection whose checks go on for so long, in s, without an end in the dump is not connected.
/// ICE agents give up after 15 to 30 s.
const CHECKS_S: f64 = 10.0;

/// Whether a connection of the dump failed, or was never made.
pub(crate) fn has_failure(dump: &Dump) -> bool {
    histories(&dump.events, last_time(dump))
        .iter()
        .any(|(_, history)| matches!(history.end, End::Failed(_) | End::NeverConnected(_)))
}

/// Why a connection failed; `None` if it did not.
pub(crate) fn failure(dump: &Dump, connection: &str) -> Option<String> {
    let histories = histories(&dump.events, last_time(dump));
    let (_, history) = histories.iter().find(|(name, _)| name == connection)?;
    match history.end {
        End::Failed(_) | End::NeverConnected(_) => Some(history.words()),
        End::Up => None,
    }
}

/// All findings about the connections of a dump.
pub(crate) fn findings(dump: &Dump) -> Vec<Finding> {
    let mut found = of_events(&dump.events, last_time(dump));
    for connection in &dump.connections {
        paths(connection, &mut found);
    }
    found
}

/// What the events of connections say, by a time in s.
pub(crate) fn of_events(events: &[ConnectionEvent], last_s: f64) -> Vec<Finding> {
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
    servers: BTreeMap<String, (f64, Option<u64>)>,
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

/// Time of the last event or report, in s.
fn last_time(dump: &Dump) -> f64 {
    let mut last = dump.events.last().map_or(0.0, |event| event.time_s);
    for stream in dump.connections.iter().flat_map(|it| &it.streams) {
        let end = stream.reports.last().map_or(0.0, |it| it.timed.time.as_secs_f64());
        last = last.max(end);
    }
    last
}

fn history(events: &[&ConnectionEvent], last_s: f64) -> ConnectionHistory {
    let mut history = ConnectionHistory {
        first_s: events.first().map_or(0.0, |it| it.time_s),
        connected_s: None,
        end: End::Up,
        by: "the connection",
        interruptions: Vec::new(),
        restarts: Vec::new(),
        servers: BTreeMap::new(),
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
            ConnectionChange::ServerError { url, code } => {
                history.servers.entry(url.clone()).or_insert((time, *code));
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
    /// How it ended, in a sentence without its subject.
    fn words(&self) -> String {
        match self.end {
            End::Up => "stayed up".into(),
            End::Failed(at) => {
                let up = (at - self.connected_s.unwrap_or(at)).max(0.0);
                format!(
                    "failed at {at:.1} s, {up:.1} s after it was established ({})",
                    self.cause()
                )
            }
            End::NeverConnected(at) => {
                let tried = (at - self.first_s).max(0.0);
                format!("was never established: {tried:.1} s of attempts ({})", self.cause())
            }
        }
    }

    fn cause(&self) -> &'static str {
        match (self.by, self.end) {
            ("ICE", End::Failed(_)) => "ICE got no answers any more",
            ("ICE", _) => "ICE found no path",
            ("DTLS", _) => "the DTLS handshake failed",
            (_, End::NeverConnected(_)) => "no path was found",
            _ => "the browser gave it up",
        }
    }

    fn findings(&self, name: &str, found: &mut Vec<Finding>) {
        let words = format!("it {}", self.words());
        match self.end {
            End::Up => {}
            End::Failed(at) => found.push(finding(name, FAILED, (at, at), words)),
            End::NeverConnected(at) => {
                found.push(finding(name, NEVER, (self.first_s, at), words));
            }
        }
        for (from, to) in &self.interruptions {
            let says = format!("no media could pass for {:.1} s", to - from);
            found.push(finding(name, INTERRUPTED, (*from, *to), says));
        }
        for at in &self.restarts {
            let says = "the application restarted ICE";
            found.push(finding(name, RESTART, (*at, *at), says.into()));
        }
        for (url, (at, code)) in &self.servers {
            let server = if url.is_empty() { "a STUN or TURN server" } else { url };
            let says = match code {
                // What browsers report if nothing came back.
                Some(701) | None => format!("{server} did not answer"),
                Some(code) => format!("{server} refused with {code}"),
            };
            found.push(finding(name, SERVER, (*at, *at), says));
        }
    }
}

fn finding(connection: &str, rule: &str, (from_s, to_s): (f64, f64), says: String) -> Finding {
    Finding(file::Finding {
        stream: connection.into(),
        part: Part::Connection.to_string(),
        rule: rule.into(),
        // Events may precede the first report, with which time begins.
        from_s: rounded(from_s.max(0.0)),
        to_s: rounded(to_s.max(0.0)),
        says,
        samples: Vec::new(),
    })
}

/// The selected pairs of a connection that are worth a word, and their changes.
fn paths(connection: &Connection, found: &mut Vec<Finding>) {
    let longest = connection.streams.iter().max_by_key(|stream| stream.reports.len());
    let Some(stream) = longest else { return };
    let mut current: Option<(Endpoints, f64)> = None;
    let mut end_s = 0.0;
    for report in &stream.reports {
        let Some(pair) = &report.timed.report.pair else { continue };
        let Some(endpoints) = Endpoints::of(pair) else { continue };
        let now_s = report.timed.time.as_secs_f64();
        end_s = now_s;
        match &current {
            None => current = Some((endpoints, now_s)),
            Some((before, _)) if *before == endpoints => {}
            Some((before, since)) => {
                if let Some(says) = before.remark() {
                    found.push(finding(&connection.name, PATH, (*since, now_s), says));
                }
                let says =
                    format!("the path changed from {} to {}", before.path(), endpoints.path());
                found.push(finding(&connection.name, PATH_CHANGE, (now_s, now_s), says));
                current = Some((endpoints, now_s));
            }
        }
    }
    if let Some((endpoints, since)) = current
        && let Some(says) = endpoints.remark()
    {
        found.push(finding(&connection.name, PATH, (since, end_s), says));
    }
}

/// The path of a connection as people talk about it, last first.
pub(crate) fn path_in_words(connection: &Connection) -> Option<String> {
    let reports = connection.streams.iter().flat_map(|it| it.reports.last());
    let mut pairs = reports.filter_map(|it| Endpoints::of(it.timed.report.pair.as_ref()?));
    Some(pairs.next()?.path())
}

/// The two ends of a candidate pair.
#[derive(Clone, Debug, PartialEq)]
struct Endpoints {
    /// Of the packets that this browser sends, to a relay too.
    protocol: String,
    local: String,
    remote: String,
    /// Addresses and ports; browsers may hide them.
    places: [Option<(std::net::IpAddr, u16)>; 2],
}

impl Endpoints {
    fn of(pair: &CandidatePair) -> Option<Self> {
        if pair.local.protocol.is_empty() || pair.local.candidate_type.is_empty() {
            return None;
        }
        // Of a relayed candidate, `protocol` is that of the relay's other side.
        let to_relay = pair.local.relay_protocol.as_deref().filter(|it| !it.is_empty());
        Some(Self {
            protocol: to_relay.unwrap_or(&pair.local.protocol).to_lowercase(),
            local: pair.local.candidate_type.clone(),
            remote: pair.remote.candidate_type.clone(),
            places: [&pair.local, &pair.remote].map(|it| Some((it.address?, it.port))),
        })
    }

    /// Such as `UDP, relay to host`.
    fn path(&self) -> String {
        let remote = if self.remote.is_empty() { "unknown" } else { &self.remote };
        format!("{}, {} to {remote}", self.protocol.to_uppercase(), self.local)
    }

    /// What is unusual about it.
    fn remark(&self) -> Option<String> {
        let is_relayed = [&self.local, &self.remote].into_iter().any(|it| it.starts_with("relay"));
        let is_tcp = self.protocol.contains("tcp") || self.protocol.contains("tls");
        match (is_relayed, is_tcp) {
            (false, false) => None,
            (true, false) => Some(format!("media went through a TURN relay ({})", self.path())),
            (false, true) => Some(format!("media went over TCP ({})", self.path())),
            (true, true) => {
                Some(format!("media went through a TURN relay and over TCP ({})", self.path()))
            }
        }
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
        let words =
            "failed at 15.5 s, 15.0 s after it was established (ICE got no answers any more)";
        assert_eq!(history.words(), words);
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
