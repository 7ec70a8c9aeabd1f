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

/// Time zones differ by multiples of this, in ms.
const ZONE_MS: f64 = 15.0 * 60.0 * 1e3;
/// A larger distance is none of time zones, but of clocks that have nothing in common.
const ZONE_MAX_MS: f64 = 26.0 * 3600.0 * 1e3;
/// Longest time in ms by which the first event may seem to come after the first report.
const SHORTLY_MS: f64 = 60e3;

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
        /// Its own words, or the browser's; empty if there are none.
        text: String,
    },
    /// The browser refused what the application asked for: a camera, a description, a candidate.
    /// An event of the page names no connection.
    Refused {
        /// The method, such as `getUserMedia`.
        method: String,
        /// Its words, such as `NotAllowedError: Permission denied`.
        error: String,
    },
    /// The application made the connection, with so many servers.
    Created {
        /// STUN servers.
        stun: usize,
        /// TURN servers.
        turn: usize,
    },
    /// The application asked for an ICE restart.
    Restart,
    /// The application closed the connection.
    Close,
    /// The page went behind another tab or window, or came back. It names no connection.
    Hidden(bool),
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
    /// Events of a clock whose time zone is not known.
    local: Vec<(f64, String, ConnectionChange)>,
    /// The servers of connections, where the dump does not say since when.
    servers: Vec<(String, ConnectionChange)>,
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
            "create",
            "close",
            "visibilitychange",
        ];
        known.contains(&name.strip_prefix("on").unwrap_or(name)) || refused_method(name).is_some()
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

    /// The same by a clock of an unknown time zone.
    pub fn note_local(&mut self, local_ms: f64, connection: &str, name: &str, value: &Value) {
        if self.local.len() < EVENTS_MAX
            && let Some(change) = change(name, value)
        {
            self.local.push((local_ms, connection.into(), change));
        }
    }

    /// Notes the configuration of a connection that has no time.
    pub fn configured(&mut self, connection: &str, configuration: &Value) {
        if self.servers.len() < EVENTS_MAX {
            self.servers.extend(servers(configuration).map(|it| (connection.into(), it)));
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
        if let (Some(zero_ms), Some((first_ms, ..))) = (zero_ms, self.local.first()) {
            // A connection begins before its first report, or shortly after it by another clock.
            let passed_ms = zero_ms - first_ms;
            let zone_ms = ((passed_ms + SHORTLY_MS) / ZONE_MS).floor() * ZONE_MS;
            let is_zone = zone_ms.abs() < ZONE_MAX_MS;
            let zone_ms = if is_zone { zone_ms } else { passed_ms };
            self.local.iter_mut().for_each(|event| event.0 += zone_ms);
        }
        self.events.append(&mut self.local);
        self.events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let zero_ms = zero_ms.or_else(|| Some(self.events.first()?.0)).unwrap_or(0.0);
        let mut events = Vec::with_capacity(self.events.len());
        for (connection, change) in self.servers {
            events.push(ConnectionEvent { connection, time_s: 0.0, change });
        }
        for (time_ms, connection, change) in self.events {
            events.push(ConnectionEvent { connection, time_s: (time_ms - zero_ms) / 1e3, change });
        }
        events
    }
}

fn change(name: &str, value: &Value) -> Option<ConnectionChange> {
    if let Some(method) = refused_method(name) {
        let method = short(method.into());
        return Some(ConnectionChange::Refused { method, error: short(error_in_words(value)) });
    }
    let name = name.strip_prefix("on").unwrap_or(name);
    match name {
        "iceconnectionstatechange" | "iceConnectionStateChange" => {
            Some(ConnectionChange::Ice(state(value)?))
        }
        "connectionstatechange" => Some(ConnectionChange::Whole(state(value)?)),
        "dtlsstatechange" | "dtlstransportstatechange" => {
            Some(ConnectionChange::Dtls(state(value)?))
        }
        "icecandidateerror" => Some(ConnectionChange::ServerError {
            url: short(word(value, "url").unwrap_or_default()),
            code: number(value, "errorCode").or_else(|| number(value, "error_code")),
            text: short(
                word(value, "errorText").or_else(|| word(value, "error_text")).unwrap_or_default(),
            ),
        }),
        "create" => servers(value),
        "restartIce" => Some(ConnectionChange::Restart),
        "createOffer" if asks_for_restart(value) => Some(ConnectionChange::Restart),
        "close" => Some(ConnectionChange::Close),
        "visibilitychange" => Some(ConnectionChange::Hidden(value.as_str()? == "hidden")),
        _ => None,
    }
}

/// The method that failed, by the name of the event: `setRemoteDescriptionOnFailure`,
/// `navigator.mediaDevices.getUserMediaOnFailure`, `addIceCandidateFailed`.
fn refused_method(name: &str) -> Option<&str> {
    let method = name.strip_suffix("OnFailure").or_else(|| name.strip_suffix("Failed"))?;
    Some(method.rsplit('.').next().unwrap_or(method)).filter(|method| !method.is_empty())
}

/// `NotAllowedError: Permission denied`, of a text, an object, or the first of a list.
fn error_in_words(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::String(_))) => error_in_words(&inner),
            _ => text.trim().into(),
        },
        Value::Array(all) => all.first().map(error_in_words).unwrap_or_default(),
        Value::Object(parts) => {
            let text = |names: &[&str]| {
                let mut found = names.iter().filter_map(|name| parts.get(*name)?.as_str());
                found.find(|text| !text.is_empty()).map(String::from)
            };
            let name = text(&["name", "error"]);
            let message = text(&["message", "error_message", "errorMessage"]);
            match (name, message) {
                (Some(name), Some(message)) => format!("{name}: {message}"),
                (one, other) => one.or(other).unwrap_or_default(),
            }
        }
        _ => String::new(),
    }
}

/// How many servers a configuration has; `None` of another value, such as that of a page.
fn servers(configuration: &Value) -> Option<ConnectionChange> {
    let text = match configuration {
        Value::String(text) => text.clone(),
        Value::Object(_) | Value::Array(_) => configuration.to_string(),
        _ => return None,
    };
    let is_configuration = text.trim_start().starts_with(['{', '[']) && !text.contains("userAgent");
    let count = |schemes: [&str; 2]| schemes.iter().map(|it| text.matches(it).count()).sum();
    is_configuration.then(|| ConnectionChange::Created {
        stun: count(["stun:", "stuns:"]),
        turn: count(["turn:", "turns:"]),
    })
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
        let text = String::from("TURN host lookup received error.");
        let code = Some(701);
        let expected = Some(ConnectionChange::ServerError { url: url.clone(), code, text });
        let text = "TURN host lookup received error.";
        let forms = [
            json!({ "url": url, "errorCode": 701, "errorText": text }),
            json!(format!("{{\"url\":\"{url}\",\"errorCode\":701,\"errorText\":\"{text}\"}}")),
            json!(format!("url: {url}\naddress: [none]\nerror_code: 701\nerror_text: {text}")),
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

    #[test]
    fn what_the_browser_refused_is_said_in_its_words() {
        let refused = |method: &str, error: &str| {
            let (method, error) = (method.into(), error.into());
            Some(ConnectionChange::Refused { method, error })
        };
        let denied = json!({ "name": "NotAllowedError", "message": "Permission denied" });
        let name = "navigator.mediaDevices.getUserMediaOnFailure";
        let words = "NotAllowedError: Permission denied";
        assert_eq!(change(name, &denied), refused("getUserMedia", words));
        assert_eq!(change(name, &json!([denied])), refused("getUserMedia", words));
        let text = json!("Failed to parse SessionDescription. a=x");
        let expected = refused("setRemoteDescription", "Failed to parse SessionDescription. a=x");
        assert_eq!(change("setRemoteDescriptionOnFailure", &text), expected);
        assert_eq!(change("OnFailure", &json!(1)), None);
    }

    #[test]
    fn the_servers_of_a_configuration_are_counted_whatever_its_form() {
        let both = Some(ConnectionChange::Created { stun: 1, turn: 2 });
        let urls = ["stun:a.example", "turn:b.example", "turns:b.example:443"];
        let forms = [
            json!({ "iceServers": [{ "urls": urls }] }),
            json!(json!({ "iceServers": [{ "urls": urls }] }).to_string()),
            json!("{ iceServers: [stun:a.example, turn:b.example, turns:b.example:443] }"),
        ];
        for form in forms {
            assert_eq!(change("create", &form), both, "{form}");
        }
        assert_eq!(change("create", &json!("https://call.example/")), None);
        assert_eq!(change("create", &json!({ "userAgentData": {} })), None);
    }
}
