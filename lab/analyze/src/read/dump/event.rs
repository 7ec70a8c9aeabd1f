//! An event of rtcstats, read without what the analysis does not use: three fifths of the members
//! of a browser's report.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::names;
use super::object::{Name, Object};

/// Most bytes of text in a member that is kept.
pub(super) const TEXT_MAX: usize = 200;
/// Where the report of an event stands.
const REPORT: usize = 2;

/// The parts of an event, not read yet but for its report.
pub(super) struct Event<'a> {
    /// All of them; that of the report is empty.
    parts: Vec<&'a str>,
    /// `None` if it has none.
    report: Option<Report<'a>>,
}

/// The objects of a report, as they are written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report<'a> {
    /// Objects by their ids; `None` for one that is gone.
    pub objects: Vec<(Cow<'a, str>, Option<Object>)>,
    /// A time that stands for those of the objects.
    pub time: Option<Value>,
}

/// What a line of a dump is.
pub(super) enum Line<'a> {
    Event(Event<'a>),
    /// JSON of another kind.
    Other,
}

/// Reads a line. Fails with the place of the first byte, counted from 1, that is no JSON.
pub(super) fn line(line: &[u8]) -> Result<Line<'_>, usize> {
    // All at once: one by one, the texts of a line take longer.
    let text = str::from_utf8(line).map_err(|error| error.valid_up_to() + 1)?;
    let read = if text.trim_ascii_start().starts_with('[') {
        serde_json::from_str(text).map(Line::Event)
    } else {
        serde_json::from_str::<IgnoredAny>(text).map(|_| Line::Other)
    };
    read.map_err(|error| error.column())
}

/// Whether an event of this name has a report.
pub(super) fn is_report(name: &str) -> bool {
    matches!(name, "getStats" | "getstats" | "g")
}

impl<'a> Event<'a> {
    /// Its name, also where a number stands for it.
    pub fn name(&self) -> Cow<'a, str> {
        match self.text(0) {
            Some(name) => name,
            None => self.whole(0).and_then(names::event).unwrap_or_default().into(),
        }
    }

    /// A part that is a text.
    pub fn text(&self, place: usize) -> Option<Cow<'a, str>> {
        let raw = *self.parts.get(place)?;
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
        self.parts.get(place)?.parse().ok()
    }

    /// A part of any kind but a report; null if it is not there.
    pub fn value(&self, place: usize) -> Value {
        let raw = self.parts.get(place);
        raw.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    /// The numbers at its end, the last one first.
    pub fn last_numbers(&self) -> impl Iterator<Item = f64> {
        self.parts.iter().rev().map_while(|raw| serde_json::from_str(raw).ok())
    }

    /// Its report: the objects with those of their members that are used, named, and short. `None`
    /// if it has none.
    pub fn take_report(&mut self) -> Option<Report<'a>> {
        self.report.take()
    }
}

impl<'de> Deserialize<'de> for Event<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(OfEvent)
    }
}

struct OfEvent;

impl<'de> Visitor<'de> for OfEvent {
    type Value = Event<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut event = Event { parts: Vec::new(), report: None };
        loop {
            if event.parts.len() == REPORT && is_report(&event.name()) {
                let Some(report) = from.next_element_seed(OfReport)? else { break };
                event.report = report;
                event.parts.push("");
                continue;
            }
            let Some(raw) = from.next_element::<&RawValue>()? else { break };
            event.parts.push(raw.get());
        }
        Ok(event)
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

struct OfReport;

impl<'de> DeserializeSeed<'de> for OfReport {
    type Value = Option<Report<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OfReport {
    type Value = Option<Report<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut report = Report::default();
        while let Some(id) = from.next_key_seed(Key)? {
            if id.len() > TEXT_MAX {
                from.next_value::<IgnoredAny>()?;
                continue;
            }
            match from.next_value_seed(OfPart)? {
                Part::Object(object) => report.objects.push((id, Some(object))),
                Part::Time(time) if id == "t" || (id == "timestamp" && report.time.is_none()) => {
                    report.time = Some(time);
                }
                Part::Time(_) | Part::Other => report.objects.push((id, None)),
            }
        }
        Ok(Some(report))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// A part of a report.
enum Part {
    Object(Object),
    /// A number.
    Time(Value),
    Other,
}

struct OfPart;

impl<'de> DeserializeSeed<'de> for OfPart {
    type Value = Part;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Part, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OfPart {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Part, A::Error> {
        let mut object = Object::with_room();
        while let Some(written) = from.next_key_seed(Key)? {
            let member = if written == "t" { "timestamp" } else { names::member(&written) };
            let Some(name) = Name::of(member) else {
                from.next_value::<IgnoredAny>()?;
                continue;
            };
            let mut value = from.next_value::<Value>()?;
            if member == "type" {
                let kind = value.as_u64().and_then(names::kind);
                value = kind.map_or(value, Value::from);
            }
            if is_small(&value) {
                object.set(name, value);
            }
        }
        Ok(Part::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Part, A::Error> {
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Part::Other)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Part, E> {
        Ok(Part::Other)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Part, E> {
        Ok(Part::Other)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Part, E> {
        Ok(Part::Time(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Part, E> {
        Ok(Part::Time(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Part, E> {
        Ok(Part::Time(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Part, E> {
        Ok(Part::Other)
    }
}

/// Whether a value is kept from report to report.
fn is_small(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= TEXT_MAX,
        Value::Object(parts) => parts.values().all(|part| !part.is_array() && is_small(part)),
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
            "nobody":{"needs":[1]},"rid":"X","t":5,"mid":[1]},"2":null,"3":7,"t":9,"LONG":{}},1]"#
            .replace("LONG", &"x".repeat(250))
            .replace("\"X\"", &format!("\"{}\"", "x".repeat(250)));
        let report = event(&text).take_report().unwrap();
        let mut object = Object::default();
        object.insert("type", "outbound-rtp");
        object.insert("bytesSent", 8);
        object.insert("timestamp", 5);
        let objects = [("1", Some(object)), ("2", None), ("3", None)];
        let objects = objects.map(|(id, object)| (Cow::from(id), object));
        assert_eq!(report, Report { objects: objects.into(), time: Some(json!(9)) });
    }

    #[test]
    fn an_event_without_objects_has_no_report() {
        for part in ["3", "-3", "3.5", "\"text\"", "null", "true", "[{}]"] {
            let text = format!("[\"getStats\",\"a\",{part},1]");
            assert_eq!(event(&text).take_report(), None, "{part}");
        }
        assert_eq!(event("[1,2]").take_report(), None);
        assert_eq!(event("[\"create\",\"a\",{},1]").take_report(), None);
        assert_eq!(event("[1,\"a\",{},1]").take_report(), Some(Report::default()));
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
    fn a_line_that_is_no_whole_json_is_an_error_and_another_kind_is_none() {
        assert!(matches!(line(b" {}"), Ok(Line::Other)));
        for broken in ["[1,", "{", "[1]x", "[\"\\q\"]", ""] {
            assert!(line(broken.as_bytes()).is_err(), "{broken}");
        }
        assert_eq!(line(b"[\"a\xff\"]").err(), Some(4));
    }
}
