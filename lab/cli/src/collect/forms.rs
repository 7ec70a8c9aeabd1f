//! The forms in which clients send events, and the one in which they are kept: rtcstats' array, one
//! a line.
//!
//! ```text
//! ["getStats", connection, {id: object}, time]                       rtcstats-js, our own client
//! {"statsSessionId": .., "type": "stats-entry", "data": "[...]"}     Jitsi's client
//! {id: object} or [object, ...]                                      a snapshot, by POST
//! ```
//!
//! Snapshots may be in lists and within other objects, as programs wrap them.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Events of one request.
const EVENTS_MAX: usize = 1000;
/// A smaller number is no time since 1970.
const ABSOLUTE_MS: f64 = 1e11;

/// A message of Jitsi's client.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// What a message of a WebSocket brings: an event in one line, or nothing.
pub fn of_message(text: &str, is_jitsi: bool) -> Result<Option<String>, ()> {
    if !is_jitsi {
        return if text.trim_start().starts_with('[') {
            Ok(Some(in_one_line(text)))
        } else {
            Err(())
        };
    }
    let message: Message<'_> = serde_json::from_str(text).map_err(|_| ())?;
    match (message.kind, message.data) {
        ("identity", Some(data)) => Ok(Some(in_one_line(data.get()))),
        // The event is a text within the message.
        ("stats-entry", Some(data)) => {
            let event: String = serde_json::from_str(data.get()).map_err(|_| ())?;
            Ok(Some(in_one_line(&event)))
        }
        ("keepalive" | "close", _) => Ok(None),
        _ => Err(()),
    }
}

/// What the body of a POST brings: events and snapshots, one after the other. A snapshot is of the
/// connection with this name, and of this time in ms since 1970 if it has none.
pub fn of_body(body: &[u8], connection: &str, now_ms: f64) -> Result<Vec<String>, ()> {
    let mut lines = Vec::new();
    for value in serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>() {
        let text = value.map_err(|_| ())?.get();
        if lines.len() == EVENTS_MAX {
            return Err(());
        }
        let is_event =
            text.strip_prefix('[').is_some_and(|rest| !rest.trim_start().starts_with(['{', '[']));
        if is_event {
            lines.push(in_one_line(text));
            continue;
        }
        let value = serde_json::from_str(text).map_err(|_| ())?;
        let before = lines.len();
        add_snapshots(value, connection, now_ms, &mut lines);
        // What has no report is nothing that a client should go on to send.
        if lines.len() == before || lines.len() > EVENTS_MAX {
            return Err(());
        }
    }
    if lines.is_empty() { Err(()) } else { Ok(lines) }
}

/// Whether this is an object of a report.
fn is_statistics(value: &Value) -> bool {
    value.get("type").is_some_and(Value::is_string)
}

/// Whether this is an object of a report in a list, which has its id, or at least its time.
fn is_listed_statistics(value: &Value) -> bool {
    let is_named = value.get("id").is_some() || value.get("timestamp").is_some();
    is_statistics(value) && is_named
}

/// Adds the snapshots in a value as events: its own, or those in its parts. Values are nested at
/// most as deep as the parser allows.
fn add_snapshots(value: Value, connection: &str, now_ms: f64, lines: &mut Vec<String>) {
    match value {
        Value::Object(parts) if parts.values().any(is_statistics) => {
            lines.push(snapshot(parts, connection, now_ms));
        }
        Value::Array(list) if list.iter().any(is_listed_statistics) => {
            let mut objects = Map::new();
            for (number, object) in list.into_iter().enumerate() {
                let id = object.get("id").and_then(Value::as_str).map(String::from);
                objects.insert(id.unwrap_or_else(|| number.to_string()), object);
            }
            lines.push(snapshot(objects, connection, now_ms));
        }
        Value::Array(pairs) if pairs.iter().any(is_pair) => {
            let mut objects = Map::new();
            for pair in pairs {
                if let Value::Array(mut pair) = pair
                    && let (Some(object), Some(Value::String(id))) = (pair.pop(), pair.pop())
                {
                    objects.insert(id, object);
                }
            }
            lines.push(snapshot(objects, connection, now_ms));
        }
        Value::Object(parts) => {
            for (_, part) in parts {
                add_snapshots(part, connection, now_ms, lines);
            }
        }
        Value::Array(list) => {
            for part in list {
                add_snapshots(part, connection, now_ms, lines);
            }
        }
        _ => {}
    }
}

/// `[id, object]`, as `Array.from` makes it of a report.
fn is_pair(value: &Value) -> bool {
    matches!(
        value.as_array().map(Vec::as_slice),
        Some([Value::String(_), object]) if is_statistics(object)
    )
}

/// A snapshot as an event.
fn snapshot(objects: Map<String, Value>, connection: &str, now_ms: f64) -> String {
    let times = objects.values().filter_map(|object| object.get("timestamp")?.as_f64());
    let latest = times.filter(|ms| *ms > ABSOLUTE_MS).max_by(f64::total_cmp);
    json!(["getStats", connection, objects, latest.unwrap_or(now_ms)]).to_string()
}

/// JSON without line breaks, which are only between its words.
fn in_one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_kept_as_it_is_in_one_line() {
        let event = "[\"ontrack\",\r\n\"0\",\n\"a\\nb\",1]";
        assert_eq!(of_message(event, false), Ok(Some("[\"ontrack\",  \"0\", \"a\\nb\",1]".into())));
        assert_eq!(of_message("{}", false), Err(()));
    }

    #[test]
    fn jitsi_s_messages_carry_events() {
        let entry =
            r#"{"statsSessionId":"a","type":"stats-entry","data":"[\"ontrack\",null,\n0,1]"}"#;
        assert_eq!(of_message(entry, true), Ok(Some("[\"ontrack\",null, 0,1]".into())));
        let identity =
            r#"{"statsSessionId":"a","type":"identity","data":["identity",null,{},1,2]}"#;
        assert_eq!(of_message(identity, true), Ok(Some(r#"["identity",null,{},1,2]"#.into())));
        assert_eq!(of_message(r#"{"statsSessionId":"a","type":"keepalive"}"#, true), Ok(None));
        for odd in ["[]", "{}", r#"{"type":"stats-entry","data":7}"#, r#"{"type":"x"}"#] {
            assert_eq!(of_message(odd, true), Err(()), "{odd}");
        }
    }

    #[test]
    fn a_body_has_events_and_snapshots_of_both_forms() {
        let body = br#"["ontrack","0",1,1700000000000]
            {"o":{"type":"outbound-rtp","timestamp":1700000001000.5}}
            [{"id":"i","type":"inbound-rtp"}]"#;
        let lines = of_body(body, "1", 1.7e12).unwrap();
        let snapshot: Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!(snapshot[3], 1_700_000_001_000.5);
        assert_eq!(lines[0], r#"["ontrack","0",1,1700000000000]"#);
        let last = r#"["getStats","1",{"i":{"id":"i","type":"inbound-rtp"}},1700000000000.0]"#;
        assert_eq!(lines[2], last);
        let event = r#"[{"type":"getUserMedia","ts":1}]"#;
        for odd in ["", "7", "{", "[{}]", "null", "{}", event, r#"{"log":{"entries":[]}}"#] {
            assert_eq!(of_body(odd.as_bytes(), "0", 1.7e12), Err(()), "{odd}");
        }
        let one = r#"{"o":{"type":"codec"}}"#;
        assert!(of_body(one.repeat(EVENTS_MAX + 1).as_bytes(), "0", 1.7e12).is_err());
    }

    #[test]
    fn snapshots_are_found_in_any_wrapper() {
        let report = r#"{"o":{"id":"o","type":"codec"}}"#;
        let forms = [
            format!("[{report},{report}]"),
            r#"[[{"id":"o","type":"codec"}],[{"id":"o","type":"codec"}]]"#.into(),
            r#"[[["o",{"type":"codec"}]],[["o",{"type":"codec"}]]]"#.into(),
            format!(r#"{{"timestamp":1,"stats":[{report},{report}]}}"#),
        ];
        for form in forms {
            let lines = of_body(form.as_bytes(), "1", 1.7e12).unwrap();
            assert_eq!(lines.len(), 2, "{form}");
            assert!(lines[1].starts_with(r#"["getStats","1",{"o":{"#), "{lines:?}");
        }
    }
}
