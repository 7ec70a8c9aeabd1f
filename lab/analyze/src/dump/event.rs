//! An event of rtcstats, read without what the analysis does not use: three fifths of the members
//! of a browser's report.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{is_wanted, names};

/// Members of an object that are kept, about.
const MEMBERS: usize = 24;

/// The parts of an event, not read yet.
pub(super) struct Event<'a>(Vec<&'a RawValue>);

/// What a line of a dump is.
pub(super) enum Line<'a> {
    Event(Event<'a>),
    /// JSON of another kind.
    Other,
}

/// Reads a line.
pub(super) fn line(line: &[u8]) -> Result<Line<'_>, serde_json::Error> {
    if line.trim_ascii_start().first() == Some(&b'[') {
        return serde_json::from_slice(line).map(|parts| Line::Event(Event(parts)));
    }
    serde_json::from_slice::<IgnoredAny>(line).map(|_| Line::Other)
}

impl<'a> Event<'a> {
    /// A part that is a text.
    pub fn text(&self, place: usize) -> Option<Cow<'a, str>> {
        let raw = self.0.get(place)?.get();
        if !raw.starts_with('"') {
            return None;
        }
        match raw[1..raw.len() - 1].contains('\\') {
            false => Some(raw[1..raw.len() - 1].into()),
            true => serde_json::from_str::<String>(raw).ok().map(Cow::Owned),
        }
    }

    /// A part that is a whole number.
    pub fn whole(&self, place: usize) -> Option<u64> {
        self.0.get(place)?.get().parse().ok()
    }

    /// A part of any kind; null if it is not there.
    pub fn value(&self, place: usize) -> Value {
        let raw = self.0.get(place);
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The numbers at its end, the last one first.
    pub fn last_numbers(&self) -> impl Iterator<Item = f64> {
        self.0.iter().rev().map_while(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// A part that is a report: its objects with those of their members that are used, named, and
    /// short. `None` if it is none. An id of more than `text_max` bytes is no id.
    pub fn report(&self, place: usize, text_max: usize) -> Option<Map<String, Value>> {
        let raw = self.0.get(place)?.get();
        let mut from = serde_json::Deserializer::from_str(raw);
        from.deserialize_map(OfReport { text_max }).ok()
    }
}

/// A name, copied only if it has escapes. A `Cow` of serde is always a copy.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(name.into())
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(name.to_owned().into())
    }
}

struct OfReport {
    text_max: usize,
}

impl<'de> Visitor<'de> for OfReport {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut report = Map::new();
        while let Some(id) = from.next_key_seed(Key)? {
            if id.len() > self.text_max {
                from.next_value::<IgnoredAny>()?;
                continue;
            }
            let object = from.next_value_seed(OfObject { text_max: self.text_max })?;
            report.insert(id.into_owned(), object);
        }
        Ok(report)
    }
}

/// An object of a report, or any other value.
struct OfObject {
    text_max: usize,
}

impl<'de> DeserializeSeed<'de> for OfObject {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OfObject {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        // An object grows by doubling, and most have about as many members.
        let mut object = Map::with_capacity(MEMBERS);
        while let Some(written) = from.next_key_seed(Key)? {
            let name = if written == "t" { "timestamp" } else { names::member(&written) };
            if !is_wanted(name) {
                from.next_value::<IgnoredAny>()?;
                continue;
            }
            let mut value = from.next_value::<Value>()?;
            if name == "type" {
                let kind = value.as_u64().and_then(names::kind);
                value = kind.map_or(value, Value::from);
            }
            if is_small(&value, self.text_max) {
                object.insert(name.into(), value);
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(Vec::new()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(if text.len() <= self.text_max { text.into() } else { Value::Bool(false) })
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Whether a value is kept from report to report.
fn is_small(value: &Value, text_max: usize) -> bool {
    match value {
        Value::String(text) => text.len() <= text_max,
        Value::Object(parts) => {
            parts.values().all(|part| !part.is_array() && is_small(part, text_max))
        }
        Value::Array(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(text: &str) -> Event<'_> {
        match line(text.as_bytes()).unwrap() {
            Line::Event(event) => event,
            Line::Other => panic!("{text} is no event"),
        }
    }

    #[test]
    fn of_a_report_only_what_is_used_remains() {
        let text = r#"["getStats","a",{"1":{"type":2,"80":7,"bytesSent":8,
            "nobody":{"needs":[1]},"rid":"X","t":5,"mid":[1]},"2":null,"3":7,"LONG":{}},1]"#
            .replace("LONG", &"x".repeat(50))
            .replace("\"X\"", &format!("\"{}\"", "x".repeat(50)));
        let report = event(&text).report(2, 40);
        let object = json!({ "type": "outbound-rtp", "bytesSent": 8, "timestamp": 5 });
        assert_eq!(Value::from(report.unwrap()), json!({ "1": object, "2": null, "3": 7 }));
        assert_eq!(event("[1,2,3]").report(2, 40), None);
    }

    #[test]
    fn parts_are_read_by_their_kind() {
        let event = event(r#"["g\u0065t", 25, {"a": 1}, 3.5, 1700000000000, 4]"#);
        assert_eq!(event.text(0).as_deref(), Some("get"));
        assert_eq!((event.text(1), event.whole(1), event.whole(2)), (None, Some(25), None));
        assert_eq!((event.value(2), event.value(9)), (json!({ "a": 1 }), Value::Null));
        assert_eq!(event.last_numbers().collect::<Vec<f64>>(), [4.0, 1.7e12, 3.5]);
    }

    #[test]
    fn a_line_that_is_no_whole_json_is_an_error_and_one_of_another_kind_is_none() {
        assert!(matches!(line(b" {}"), Ok(Line::Other)));
        for broken in ["[1,", "{", "[1]x", "[\"\\q\"]", ""] {
            assert!(line(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
