//! An rtcstats dump: one JSON array a line.
//!
//! ```text
//! RTCStatsDump
//! {"fileFormat":3}
//! ["getStats", connection, {id: object, ...}, time]      other events have the same form
//! ```
//!
//! Dumps of the libraries `rtcstats` and `@jitsi/rtcstats` lack the first line, and those of some
//! servers the second one too. Times are ms. A small one counts from the event before, others from
//! 1970. A number of the event may follow.
//!
//! A report may leave out what has not changed since the report before, `type` among it. The latest
//! time of its objects then stands once for all: as `timestamp` or `t` beside them, and in them as
//! 0 or not at all. An object that is gone is `null`, or just absent, as one that has not changed
//! is (`@jitsi/rtcstats`). Streams that go on change with each report, so one that has not for a
//! while is gone. Names may be numbers (`names`).

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use super::event::{self, Event, Report, TEXT_MAX};
use super::left_out::{LeftOut, Refusal};
use super::object::{Object, Objects};
use super::{Collector, Dump, EventLog, legacy};
use crate::read::format::{Format, RTCSTATS};

/// The newest version of the format that is known here.
const NEWEST: u64 = 3;
/// Longest line in bytes: more than the report of a call with a thousand streams needs. As values,
/// a line takes 16 times as much memory.
const LINE_MAX: u64 = 2 << 20;
/// Most members in the last whole reports of all connections, and most that are kept over from
/// report to report in the whole file: the first bounds the memory, the second the time.
const KEPT_MAX: usize = 200_000;
const WORK_MAX: usize = 20_000_000;
/// A stream that has not changed for this time in ms is gone, where no object is ever `null`.
const ASLEEP_MS: f64 = 30_000.0;
/// A larger number is a time since 1970, not since the line before.
const ABSOLUTE_MS: f64 = 1e11;

/// Reads the dump line by line. Odd lines are skipped, and a file that ends early is read until
/// there.
pub(crate) fn read(from: Box<dyn BufRead>, collector: Collector) -> Result<Dump, String> {
    let mut lines = Lines { from, count: 0, line: Vec::new() };
    let mut reader = Reader::new(collector, KEPT_MAX);
    let mut left_out = LeftOut::default();
    let mut first = lines.next();
    if matches!(first, Ok(Line::Whole)) {
        if lines.line.trim_ascii_end() == RTCSTATS.trim_ascii_end() {
            let Ok(Line::Whole) = lines.next() else {
                return Err("the file ends after its first line".into());
            };
            heading(&lines.line).map_err(|what| format!("line 2: {what}"))?;
            first = lines.next();
        } else if lines.line.first() == Some(&b'{') {
            heading(&lines.line).map_err(|what| format!("line 1: {what}"))?;
            first = lines.next();
        }
    }
    let mut next = first;
    loop {
        let count = lines.count;
        let taken = match next {
            Ok(Line::End) => break,
            Ok(Line::Whole) => reader.line(&lines.line),
            Ok(Line::TooLong) => Err(Refusal::Odd(format!("it is longer than {LINE_MAX} bytes"))),
            Err(error) => Err(Refusal::Full(format!("the file cannot be read here: {error}"))),
        };
        match taken {
            Ok(()) => {}
            Err(Refusal::Odd(what)) => left_out.skip(format!("line {count}: {what}")),
            Err(Refusal::Full(what)) => {
                left_out.stop(format!("line {count}: {what}"));
                break;
            }
        }
        next = lines.next();
    }
    left_out.note(reader.collector.left_out());
    let zero_ms = reader.collector.zero_ms();
    let events = reader.events.finish(zero_ms);
    Ok(Dump {
        format: Format::Rtcstats,
        program: reader.program,
        end_s: reader.collector.end_s(),
        is_part: false,
        data_channels: reader.collector.take_channels(),
        connections: reader.collector.finish(),
        events,
        warnings: left_out.warnings("lines"),
        zero_ms,
    })
}

/// The lines of a file.
struct Lines {
    from: Box<dyn BufRead>,
    /// Number of the last line, from 1.
    count: u64,
    /// The last line, if it is whole.
    line: Vec<u8>,
}

/// What comes next in a file.
enum Line {
    Whole,
    /// It was passed over.
    TooLong,
    End,
}

impl Lines {
    /// Reads the next line.
    fn next(&mut self) -> std::io::Result<Line> {
        self.count += 1;
        self.line.clear();
        self.from.by_ref().take(LINE_MAX).read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(Line::End);
        }
        if self.line.len() as u64 == LINE_MAX && self.line.last() != Some(&b'\n') {
            self.from.skip_until(b'\n')?;
            return Ok(Line::TooLong);
        }
        Ok(Line::Whole)
    }
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

/// Reads events one after the other.
pub(crate) struct Reader {
    pub collector: Collector,
    time_ms: f64,
    program: Option<String>,
    pub events: EventLog,
    /// Number of the last event, where the dump has numbers.
    pub sequence: Option<u64>,
    /// The last whole report of each connection, with the number of its members.
    last: BTreeMap<String, (Objects, usize)>,
    /// When each object of each connection last changed.
    changed_ms: BTreeMap<String, BTreeMap<String, f64>>,
    /// Whether objects that are gone are written as null.
    has_null: bool,
    /// Members in all of them, and how many there may be.
    kept: usize,
    kept_max: usize,
    /// Members that were kept over so far.
    work: usize,
}

impl Reader {
    /// Keeps at most so many members of the last reports of all connections.
    pub fn new(collector: Collector, kept_max: usize) -> Self {
        Self {
            collector,
            kept_max,
            time_ms: 0.0,
            program: None,
            events: EventLog::default(),
            sequence: None,
            last: BTreeMap::new(),
            changed_ms: BTreeMap::new(),
            has_null: false,
            kept: 0,
            work: 0,
        }
    }

    /// Forgets how much was read so far, for events that have no end. Each report is still bounded.
    pub fn go_on(&mut self) {
        self.work = 0;
    }

    /// Forgets the last reports. What follows must be whole.
    pub fn forget(&mut self) {
        self.last.clear();
        self.changed_ms.clear();
        self.kept = 0;
    }

    /// Time of the last event in ms since 1970; 0 before the first.
    pub fn time_ms(&self) -> f64 {
        self.time_ms
    }

    /// Takes an event.
    pub fn line(&mut self, line: &[u8]) -> Result<(), Refusal> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let mut event = match event::line(line) {
            Ok(event::Line::Event(event)) => event,
            Ok(event::Line::Other) => return Ok(()),
            Err(at) => return Err(Refusal::Odd(format!("not whole JSON, at byte {at}"))),
        };
        let (time, sequence) = time(&event).ok_or("an event without a time")?;
        self.sequence = sequence.or(self.sequence);
        let connection = event.text(1);
        if connection.as_ref().is_some_and(|name| name.len() > TEXT_MAX) {
            return Err("a connection with a long name".into());
        }
        let before = self.time_ms;
        self.time_ms = if time > ABSOLUTE_MS { time } else { self.time_ms + time };
        let name = event.name();
        if matches!(&*name, "create" | "connectionInfo") && self.program.is_none() {
            self.program = program(&event.value(2));
        }
        let Some(connection) = connection else {
            // What the page itself asked for, such as a camera, has no connection.
            if name.ends_with("OnFailure") || name == "visibilitychange" {
                self.note("", &name, &event);
            }
            return Ok(());
        };
        if !event::is_report(&name) {
            self.note(&connection, &name, &event);
            return Ok(());
        }
        let Some(report) = event.take_report() else {
            return Err("a report without objects".into());
        };
        let whole = self.whole(&connection, report);
        let standard = legacy::standard(&whole, self.time_ms);
        let objects = standard.as_ref().unwrap_or(&whole);
        let (has_null, now_ms) = (self.has_null, self.time_ms);
        let changed_ms = self.changed_ms.get(&*connection);
        let is_awake = |id: &str| has_null || !is_asleep(changed_ms, id, now_ms);
        let added = self.collector.add_awake(&connection, now_ms, objects, is_awake);
        self.keep(connection.into_owned(), whole)?;
        if added.is_err() {
            // The next line counts from the last time that can be.
            self.time_ms = before;
        }
        added
    }

    /// Takes an event that is no report.
    fn note(&mut self, connection: &str, name: &str, event: &Event<'_>) {
        if name == "close" {
            self.changed_ms.remove(connection);
            self.kept -= self.last.remove(connection).map_or(0, |(_, count)| count);
        }
        if EventLog::wants(name) {
            self.events.note(self.time_ms, connection, name, &event.value(2));
        }
    }

    /// Remembers a connection's whole report for the next one.
    fn keep(&mut self, connection: String, mut whole: Objects) -> Result<(), Refusal> {
        let mut count = members(&whole);
        if self.kept + count > self.kept_max {
            self.forget_asleep(&connection, &mut whole);
            count = members(&whole);
        }
        self.work = self.work.saturating_add(count);
        if self.kept + count > self.kept_max {
            return Err(Refusal::Full(format!(
                "the last reports of its connections have more than {} members",
                self.kept_max
            )));
        }
        if self.work > WORK_MAX {
            return Err(Refusal::Full(format!(
                "the reports have more than {WORK_MAX} members together"
            )));
        }
        self.kept += count;
        self.last.insert(connection, (whole, count));
        Ok(())
    }

    /// Forgets the streams of a report that are gone.
    fn forget_asleep(&mut self, connection: &str, whole: &mut Objects) {
        let Some(changed_ms) = self.changed_ms.get_mut(connection) else { return };
        let now_ms = self.time_ms;
        whole.retain(|id, object| {
            !is_restless(object) || !is_asleep(Some(&*changed_ms), id, now_ms)
        });
        changed_ms.retain(|id, _| whole.contains_key(id));
    }

    /// A report with what it leaves out because it has not changed.
    fn whole(&mut self, connection: &str, report: Report<'_>) -> Objects {
        let Report { objects, time } = report;
        let mut changed = objects.iter().filter_map(|(_, object)| object.as_ref());
        let all_have_types = changed.all(|object| object.get("type").is_some());
        let before = self.last.remove(connection);
        self.kept -= before.as_ref().map_or(0, |(_, count)| *count);
        let before = before.filter(|_| time.is_some() || !all_have_types);
        let is_whole = before.is_none();
        let mut whole = before.map(|(whole, _)| whole).unwrap_or_default();
        let changed_ms = self.changed_ms.entry(connection.into()).or_default();
        if is_whole {
            changed_ms.clear();
        }
        self.has_null |= !is_whole && objects.iter().any(|(_, object)| object.is_none());
        if let Some(time) = &time {
            set_times(&mut whole, time, |_| true);
        }
        for (id, object) in objects {
            match changed_ms.get_mut(&*id) {
                Some(changed) => *changed = self.time_ms,
                None => {
                    changed_ms.insert(id.to_string(), self.time_ms);
                }
            }
            match (object, whole.get_mut(&*id)) {
                (None, _) => {
                    changed_ms.remove(&*id);
                    whole.shift_remove(&*id);
                }
                (Some(changed), Some(known)) => merge(known, changed),
                (Some(new), None) => {
                    whole.insert(id.into_owned(), new);
                }
            }
        }
        if let Some(time) = &time {
            set_times(&mut whole, time, |own| {
                own.and_then(Value::as_f64).is_none_or(|it| it == 0.0)
            });
        }
        whole
    }
}

/// Whether an object has not changed for long.
fn is_asleep(changed_ms: Option<&BTreeMap<String, f64>>, id: &str, now_ms: f64) -> bool {
    changed_ms.and_then(|all| all.get(id)).is_some_and(|last| now_ms - last > ASLEEP_MS)
}

/// Whether an object changes with each report while its stream goes on.
fn is_restless(object: &Object) -> bool {
    const KINDS: [&str; 7] = [
        "inbound-rtp",
        "outbound-rtp",
        "remote-inbound-rtp",
        "remote-outbound-rtp",
        "media-source",
        "track",
        "ssrc",
    ];
    object.kind().is_some_and(|kind| KINDS.contains(&kind))
}

/// When an event happened. In dumps of Jitsi the event's number follows.
fn time(event: &Event<'_>) -> Option<(f64, Option<u64>)> {
    let mut numbers = event.last_numbers();
    let last = numbers.next()?;
    match numbers.next().filter(|it| *it > ABSOLUTE_MS) {
        Some(time) => Some((time, Some(last as u64))),
        None => Some((last, None)),
    }
}

/// The members of a report, and of the objects in its objects.
fn members(report: &Objects) -> usize {
    let mut count = 0;
    for object in report.values() {
        count += 1;
        for (_, value) in object.iter() {
            count += 1 + value.as_object().map_or(0, Map::len);
        }
    }
    count
}

/// Adds what has changed. Of an object within an object, too, only the changed members are written.
fn merge(known: &mut Object, changed: Object) {
    for (name, value) in changed.into_members() {
        match (value, known.value_mut(name).and_then(Value::as_object_mut)) {
            (Value::Object(part), Some(whole)) => whole.extend(part),
            (value, _) => known.set(name, value),
        }
    }
}

/// Gives the time of the report to the objects of which this holds.
fn set_times(objects: &mut Objects, time: &Value, needs_it: impl Fn(Option<&Value>) -> bool) {
    for object in objects.values_mut() {
        if needs_it(object.get("timestamp")) {
            object.insert("timestamp", time.clone());
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
