//! An rtcstats dump: after two lines of heading, one JSON array a line.
//!
//! ```text
//! RTCStatsDump
//! {"fileFormat":3}
//! ["getStats", connection, {id: object, ...}, time]      other events have the same form
//! ```
//!
//! Times are ms. The first one counts from 1970, and each of the others from the one before. A
//! report may leave out what has not changed since the report before, `type` among it.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use super::{Collector, Dump};
use crate::format::{Format, RTCSTATS};

/// The newest version of the format that is known here.
const NEWEST: u64 = 3;
/// Longest line in bytes: more than the report of a call with a thousand streams needs.
const LINE_MAX: u64 = 1 << 26;
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
    let first = next()?.unwrap_or_default();
    debug_assert_eq!(first, RTCSTATS, "the format was told by this line");
    let heading = next()?.ok_or("the file ends after its first line")?;
    let heading: Value = serde_json::from_slice(&heading).map_err(|error| {
        format!("line 2: {}", error.to_string().split(" at line").next().unwrap_or_default())
    })?;
    let version =
        heading.get("fileFormat").and_then(Value::as_u64).ok_or("line 2 has no fileFormat")?;
    if version > NEWEST {
        return Err(format!("its format {version} is newer than {NEWEST}, the newest known here"));
    }
    let mut reader = Reader { collector, ..Reader::default() };
    let mut count = 2;
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
        let time = event.last().and_then(Value::as_f64).ok_or("an event without a time")?;
        self.time_ms = if time > ABSOLUTE_MS { time } else { self.time_ms + time };
        let name = event.first().and_then(Value::as_str).unwrap_or_default();
        if name == "create" && self.program.is_none() {
            self.program = event.get(2).and_then(program);
        }
        if !matches!(name, "getStats" | "getstats" | "g") {
            return Ok(());
        }
        let Some(connection) = event.get(1).and_then(Value::as_str).map(String::from) else {
            return Ok(());
        };
        let Some(Value::Object(report)) = event.get_mut(2).map(Value::take) else {
            return Err("a report without objects".into());
        };
        let whole = self.whole(&connection, report)?;
        self.collector.add(&connection, self.time_ms, &whole)?;
        self.last.insert(connection, whole);
        Ok(())
    }

    /// A report with what it leaves out because it has not changed.
    fn whole(
        &self,
        connection: &str,
        report: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let before = self.last.get(connection);
        let objects = || report.values().filter_map(Value::as_object);
        if objects().any(|object| object.keys().any(|name| name.parse::<u32>().is_ok())) {
            return Err("its names are shortened to numbers, which are not read here".into());
        }
        let Some(before) = before.filter(|_| !objects().all(|it| it.contains_key("type"))) else {
            return Ok(report);
        };
        let mut whole = before.clone();
        for (id, object) in report {
            match (object, whole.get_mut(&id).and_then(Value::as_object_mut)) {
                // Gone.
                (Value::Null, _) => {
                    whole.shift_remove(&id);
                }
                (Value::Object(changed), Some(known)) => known.extend(changed),
                (new, _) => {
                    whole.insert(id, new);
                }
            }
        }
        Ok(whole)
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
