//! An rtcstats dump: one JSON array a line.
//!
//! ```text
//! RTCStatsDump
//! {"fileFormat":3}
//! ["getStats", connection, {id: object, ...}, time]      other events have the same form
//! ```
//!
//! Dumps of the libraries `rtcstats` and `@jitsi/rtcstats` lack the first line, and those of some servers
//! the second one too. Times are ms. A small one counts from the event before, others from 1970. A number of
//! the event may follow.
//!
//! A report may leave out what has not changed since the report before, `type` among it. The latest time of
//! its objects then stands once for all: as `timestamp` or `t` beside them, and in them as 0 or not at all. An
//! object that is gone is `null`. Names may be numbers (`names`).

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use super::{Collector, Dump, names};
use crate::format::{Format, RTCSTATS};

/// The newest version of the format that is known here.
const NEWEST: u64 = 3;
/// Longest line in bytes: more than the report of a call with a thousand streams needs.
const LINE_MAX: u64 = 1 << 26;
/// The number of the event `getStats`.
const REPORT: u64 = 1;
/// A larger number is a time since 1970, not since the line before.
const ABSOLUTE_MS: f64 = 1e11;

/// Reads the dump line by line.
pub(crate) fn read(mut from: Box<dyn BufRead>, collector: Collector) -> Result<Dump, String> {
    let mut number = 0;
    let mut next = || -> Result<Option<Vec<u8>>, String> {
        number += 1;
        let mut line = Vec::new();
        let failed = |error: std::io::Error| format!("line {number}: {error}");
        from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).map_err(failed)?;
        if line.len() as u64 == LINE_MAX {
            return Err(format!("line {number} is longer than {LINE_MAX} bytes"));
        }
        Ok((!line.is_empty()).then_some(line))
    };
    let mut reader = Reader { collector, ..Reader::default() };
    let first = next()?.unwrap_or_default();
    let mut count = 1;
    if first == RTCSTATS {
        count = 2;
        heading(&next()?.ok_or("the file ends after its first line")?)
            .map_err(|what| format!("line 2: {what}"))?;
    } else if first.first() == Some(&b'{') {
        heading(&first).map_err(|what| format!("line 1: {what}"))?;
    } else {
        reader.line(&first).map_err(|what| format!("line 1: {what}"))?;
    }
    while let Some(line) = next()? {
        count += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        reader.line(&line).map_err(|what| format!("line {count}: {what}"))?;
    }
    let program = reader.program;
    Ok(Dump { format: Format::Rtcstats, program, connections: reader.collector.finish() })
}

/// Checks what precedes the events.
fn heading(line: &[u8]) -> Result<(), String> {
    let heading: Value = serde_json::from_slice(line).map_err(|error| {
        error.to_string().split(" at line").next().unwrap_or_default().to_owned()
    })?;
    let version =
        heading.get("fileFormat").and_then(Value::as_u64).ok_or("it has no fileFormat")?;
    if version > NEWEST {
        return Err(format!("its format {version} is newer than {NEWEST}, the newest known here"));
    }
    Ok(())
}

#[derive(Default)]
struct Reader {
    collector: Collector,
    time_ms: f64,
    program: Option<String>,
    /// The last whole report of each connection.
    last: BTreeMap<String, Map<String, Value>>,
}

impl Reader {
    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let event: Value = serde_json::from_slice(line).map_err(|error| {
            let at = error.column();
            format!("not whole JSON, at byte {at}")
        })?;
        let Value::Array(mut event) = event else { return Ok(()) };
        let time = time(&event).ok_or("an event without a time")?;
        self.time_ms = if time > ABSOLUTE_MS { time } else { self.time_ms + time };
        let name = event.first().and_then(Value::as_str).unwrap_or_default();
        let is_report = matches!(name, "getStats" | "getstats" | "g")
            || event.first().and_then(Value::as_u64) == Some(REPORT);
        if name == "create" && self.program.is_none() {
            self.program = event.get(2).and_then(program);
        }
        if !is_report {
            return Ok(());
        }
        let Some(connection) = event.get(1).and_then(Value::as_str).map(String::from) else {
            return Ok(());
        };
        let Some(Value::Object(report)) = event.get_mut(2).map(Value::take) else {
            return Err("a report without objects".into());
        };
        let whole = self.whole(&connection, report);
        self.collector.add(&connection, self.time_ms, &whole)?;
        self.last.insert(connection, whole);
        Ok(())
    }

    /// A report with what it leaves out because it has not changed.
    fn whole(&self, connection: &str, mut report: Map<String, Value>) -> Map<String, Value> {
        let shared = ["t", "timestamp"]
            .into_iter()
            .find(|name| report.get(*name).is_some_and(Value::is_number));
        let shared = shared.and_then(|name| report.shift_remove(name));
        let objects = report.into_iter().map(|(id, object)| (id, named(object)));
        let report: Map<String, Value> = objects.collect();
        let has_type = |it: &Value| it.as_object().is_none_or(|it| it.contains_key("type"));
        let before = self.last.get(connection);
        let before = before.filter(|_| shared.is_some() || !report.values().all(has_type));
        let mut whole = before.cloned().unwrap_or_default();
        if let Some(time) = &shared {
            set_times(&mut whole, time, |_| true);
        }
        for (id, object) in report {
            match (object, whole.get_mut(&id).and_then(Value::as_object_mut)) {
                // Gone.
                (Value::Null, _) => {
                    whole.shift_remove(&id);
                }
                (Value::Object(changed), Some(known)) => merge(known, changed),
                (new, _) => {
                    whole.insert(id, new);
                }
            }
        }
        if let Some(time) = &shared {
            set_times(&mut whole, time, |own| {
                own.and_then(Value::as_f64).is_none_or(|it| it == 0.0)
            });
        }
        whole
    }
}

/// When an event happened. In dumps of Jitsi the event's number follows.
fn time(event: &[Value]) -> Option<f64> {
    let mut numbers = event.iter().rev().map_while(Value::as_f64);
    let last = numbers.next()?;
    Some(numbers.next().filter(|it| *it > ABSOLUTE_MS).unwrap_or(last))
}

/// An object with names for the numbers of members and type.
fn named(object: Value) -> Value {
    let Value::Object(object) = object else { return object };
    let named = object.into_iter().map(|(written, value)| match written.as_str() {
        "t" => (String::from("timestamp"), value),
        "type" => {
            let kind = value.as_u64().and_then(names::kind);
            (written, kind.map_or(value, Value::from))
        }
        _ => (names::member(&written).into(), value),
    });
    Value::Object(named.collect())
}

/// Adds what has changed. Of an object within an object, too, only the changed members are written.
fn merge(known: &mut Map<String, Value>, changed: Map<String, Value>) {
    for (name, value) in changed {
        match (value, known.get_mut(&name).and_then(Value::as_object_mut)) {
            (Value::Object(part), Some(whole)) => whole.extend(part),
            (value, _) => {
                known.insert(name, value);
            }
        }
    }
}

/// Gives the time of the report to the objects of which this holds.
fn set_times(
    objects: &mut Map<String, Value>,
    time: &Value,
    needs_it: impl Fn(Option<&Value>) -> bool,
) {
    for object in objects.values_mut().filter_map(Value::as_object_mut) {
        if needs_it(object.get("timestamp")) {
            object.insert("timestamp".into(), time.clone());
        }
    }
}

/// The browser's name and version, from the first event.
fn program(environment: &Value) -> Option<String> {
    if let Some(text) = environment.get("userAgent").and_then(Value::as_str) {
        return Some(text.into());
    }
    let brands = environment.get("userAgentData")?.get("brands")?.as_array()?;
    let mut named = brands.iter().filter_map(|brand| {
        let name = brand.get("brand")?.as_str()?;
        Some(format!("{name} {}", brand.get("version")?.as_str()?))
    });
    // One brand is there to confuse programs that parse such lists.
    named.rfind(|name| !name.contains("Not"))
}
