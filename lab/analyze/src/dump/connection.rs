//! What happened to the connections of a dump: the states of ICE, DTLS and the whole connection,
//! failed servers, and ICE restarts.
//!
//! ```text
//! ["oniceconnectionstatechange", connection, "failed", time]
//! {"type": "oniceconnectionstatechange", "value": "\"failed\"", "timestamp": time}
//! ```

use serde_json::Value;

/// Events of one dump. A call that reconnects every second for a day stays below.
const EVENTS_MAX: usize = 100_000;

/// Most bytes of an address that is kept.
const TEXT_MAX: usize = 200;

/// An event of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionEvent {
    /// The connection's name in the dump.
    pub connection: String,
    /// When it happened, in s since the first report.
    pub time_s: f64,
    /// What happened.
    pub change: ConnectionChange,
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectionChange {
    /// ICE has another state.
    Ice(ConnectionState),
    /// DTLS has another state.
    Dtls(ConnectionState),
    /// The whole connection, ICE and DTLS together, has another state.
    Whole(ConnectionState),
    /// A STUN or TURN server did not answer, or refused.
    ServerError {
        /// The server, such as `turn:192.0.2.1:3478?transport=udp`; empty if unknown.
        url: String,
        /// Its answer; 701 if there was none.
        code: Option<u64>,
    },
    /// The application asked for an ICE restart.
    Restart,
    /// The application closed the connection.
    Close,
}

/// A state of ICE, of DTLS or of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Nothing has been tried.
    New,
    /// Checks, or the handshake, are under way.
    Connecting,
    /// Media can flow.
    Connected,
    /// No answers for some seconds. It may recover.
    Disconnected,
    /// It will not recover by itself.
    Failed,
    /// It is over.
    Closed,
}

impl ConnectionState {
    /// By its name in the W3C's enumerations.
    fn named(name: &str) -> Option<Self> {
        match name {
            "new" => Some(Self::New),
            "connecting" | "checking" => Some(Self::Connecting),
            "connected" | "completed" => Some(Self::Connected),
            "disconnected" => Some(Self::Disconnected),
            "failed" => Some(Self::Failed),
            "closed" => Some(Self::Closed),
            _ => None,
        }
    }
}

/// Collects the events while a dump is read. Times count from 1970 until the end.
#[derive(Clone, Default)]
pub(crate) struct EventLog {
    events: Vec<(f64, String, ConnectionChange)>,
}

impl EventLog {
    /// Whether an event of this name says something about connections.
    pub fn wants(name: &str) -> bool {
        let known = [
            "iceconnectionstatechange",
            "connectionstatechange",
            "dtlsstatechange",
            "dtlstransportstatechange",
            "icecandidateerror",
            "restartIce",
            "createOffer",
            "close",
        ];
        known.contains(&name.strip_prefix("on").unwrap_or(name))
    }

    /// Notes an event by its name in the dump. Events that say nothing about connections are left
    /// out.
    pub fn note(&mut self, time_ms: f64, connection: &str, name: &str, value: &Value) {
        if self.events.len() < EVENTS_MAX
            && let Some(change) = change(name, value)
        {
            self.events.push((time_ms, connection.into(), change));
        }
    }

    /// Keeps the latest events only.
    pub fn keep_latest(&mut self, count: usize) {
        if self.events.len() > 2 * count {
            self.events.drain(..self.events.len() - count);
        }
    }

    /// The events by time, in s since the first report, or since the first event if there is no
    /// report.
    pub fn finish(mut self, zero_ms: Option<f64>) -> Vec<ConnectionEvent> {
        self.events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let zero_ms = zero_ms.or_else(|| Some(self.events.first()?.0)).unwrap_or(0.0);
        let mut events = Vec::with_capacity(self.events.len());
        for (time_ms, connection, change) in self.events {
            events.push(ConnectionEvent { connection, time_s: (time_ms - zero_ms) / 1e3, change });
        }
        events
    }
}

fn change(name: &str, value: &Value) -> Option<ConnectionChange> {
    let name = name.strip_prefix("on").unwrap_or(name);
    match name {
        "iceconnectionstatechange" => Some(ConnectionChange::Ice(state(value)?)),
        "connectionstatechange" => Some(ConnectionChange::Whole(state(value)?)),
        "dtlsstatechange" | "dtlstransportstatechange" => {
            Some(ConnectionChange::Dtls(state(value)?))
        }
        "icecandidateerror" => Some(ConnectionChange::ServerError {
            url: short(word(value, "url").unwrap_or_default()),
            code: number(value, "errorCode").or_else(|| number(value, "error_code")),
        }),
        "restartIce" => Some(ConnectionChange::Restart),
        "createOffer" if asks_for_restart(value) => Some(ConnectionChange::Restart),
        "close" => Some(ConnectionChange::Close),
        _ => None,
    }
}

/// `"connected"`, or the same with quotes within the string.
fn state(value: &Value) -> Option<ConnectionState> {
    ConnectionState::named(value.as_str()?.trim_matches('"'))
}

/// A member of an object, which may be written as text: `url: stun:192.0.2.1` or JSON.
fn word(value: &Value, member: &str) -> Option<String> {
    if let Some(text) = value.get(member).and_then(Value::as_str) {
        return Some(text.into());
    }
    let text = value.as_str()?;
    if let Ok(inner @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
        return word(&inner, member);
    }
    let (_, rest) = text.split_once(&format!("{member}: "))?;
    let end = rest.find([',', '\n']).unwrap_or(rest.len());
    Some(rest[..end].trim().into())
}

fn short(text: String) -> String {
    if text.len() <= TEXT_MAX { text } else { text.chars().take(TEXT_MAX / 4).collect() }
}

fn number(value: &Value, member: &str) -> Option<u64> {
    match value.get(member) {
        Some(number) => number.as_u64(),
        None => {
            if let Some(Ok(inner @ Value::Object(_))) =
                value.as_str().map(serde_json::from_str::<Value>)
            {
                return inner.get(member)?.as_u64();
            }
            word(value, member)?.parse().ok()
        }
    }
}

/// Options of an offer are an object, an array with it, or its text.
fn asks_for_restart(value: &Value) -> bool {
    match value {
        Value::Object(options) => options.get("iceRestart") == Some(&Value::Bool(true)),
        Value::Array(arguments) => arguments.iter().any(asks_for_restart),
        Value::String(text) => {
            let plain: String = text.chars().filter(|c| !c.is_whitespace() && *c != '"').collect();
            plain.contains("iceRestart:true")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_are_read_with_and_without_inner_quotes() {
        let failed = Some(ConnectionChange::Whole(ConnectionState::Failed));
        assert_eq!(change("onconnectionstatechange", &json!("failed")), failed);
        assert_eq!(change("onconnectionstatechange", &json!("\"failed\"")), failed);
        let completed = Some(ConnectionChange::Ice(ConnectionState::Connected));
        assert_eq!(change("iceconnectionstatechange", &json!("completed")), completed);
        let dtls = Some(ConnectionChange::Dtls(ConnectionState::Failed));
        assert_eq!(change("ondtlsstatechange", &json!("failed")), dtls);
        assert_eq!(change("onconnectionstatechange", &json!("dreaming")), None);
        assert_eq!(change("ontrack", &json!("video")), None);
    }

    #[test]
    fn a_server_that_does_not_answer_is_named_whatever_the_form() {
        let url = String::from("turn:192.0.2.1:3478?transport=udp");
        let expected = Some(ConnectionChange::ServerError { url: url.clone(), code: Some(701) });
        let forms = [
            json!({ "url": url, "errorCode": 701 }),
            json!(format!("{{\"url\":\"{url}\",\"errorCode\":701}}")),
            json!(format!("url: {url}\naddress: [none]\nerror_code: 701")),
        ];
        for form in forms {
            assert_eq!(change("onicecandidateerror", &form), expected, "{form}");
        }
    }

    #[test]
    fn an_offer_with_ice_restart_is_a_restart() {
        for options in [json!({ "iceRestart": true }), json!([{ "iceRestart": true }])] {
            assert_eq!(change("createOffer", &options), Some(ConnectionChange::Restart));
        }
        let text = json!("{\"iceRestart\": true}");
        assert_eq!(change("createOffer", &text), Some(ConnectionChange::Restart));
        assert_eq!(change("createOffer", &json!({ "iceRestart": false })), None);
    }
}
