//! What `getStats` returned, as programs write it down: JSON of one report or of many, in whatever
//! wrapper.
//!
//! ```text
//! {id: object, ...}      [object, ...]      [[id, object], ...]        a report
//! one a line, in a list, or within other objects: {"pc-1": {"stats": [report, ...]}}
//! ```
//!
//! An object is one of a report if its `type` is one of the standard's [WEBRTC-STATS §6]. The file
//! is read as a stream, and only one report of it is kept.

use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::dates::since_1970;
use super::left_out::{LeftOut, Refusal};
use super::object::{Name, Object, Objects};
use super::texts::Texts;
use super::{Collector, Dump, EventLog};
use crate::read::format::{Format, is_type_of_statistics, json_in};

/// The connection of reports whose file names none.
const UNNAMED: &str = "getStats";
/// Names that programs give to reports, and not to connections.
const WRAPPERS: [&str; 16] = [
    "audio",
    "video",
    "inbound",
    "outbound",
    "stats",
    "report",
    "reports",
    "getStats",
    "getstats",
    "data",
    "values",
    "samples",
    "rtcStats",
    "webrtcStats",
    "statistics",
    "result",
];
/// Wrappers within each other, and objects of a report, that are read.
const DEPTH_MAX: usize = 16;
const OBJECTS_MAX: usize = 20_000;
/// Longest text that is kept, and most members of a member that is an object.
const TEXT_MAX: usize = 200;
/// Longest line of a log.
const LINE_MAX: u64 = 2 << 20;
/// Odd lines of which the reasons are kept.
const SKIPPED_MAX: usize = 1_000;
const MEMBERS_MAX: usize = 16;
/// A smaller number is no time since 1970.
const ABSOLUTE_MS: f64 = 1e11;
/// Between two reports that have no time.
const STEP_MS: f64 = 1_000.0;
/// Smallest numbers that are times since 1970 in ns, in µs as libwebrtc itself writes them, and in
/// s: of the years 2001 and later. Others are ms.
const NANOS: f64 = 1e17;
const MICROS: f64 = 1e14;
const SECONDS: std::ops::Range<f64> = 1e9..1e10;
/// Members in which programs of phones put those of an object, as libwebrtc's interfaces do.
const OF_AN_OBJECT: [&str; 3] = ["members", "values", "stats"];

/// Reads the file.
pub(crate) fn read(mut from: Box<dyn BufRead>, collector: Collector) -> Result<Dump, String> {
    let mut file = File { collector, ..File::default() };
    let mut left_out = LeftOut::default();
    let begin = from.fill_buf().map_err(|error| error.to_string())?;
    // The time in a line of a log may be in brackets.
    let is_json = match begin {
        [b'{' | b'"', ..] => true,
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start().first(), Some(b'{' | b'[' | b'"')),
        _ => false,
    };
    let read = match is_json {
        true => file.all(serde_json::Deserializer::from_reader(BufReader::new(Texts::new(from)))),
        false => file.lines(from),
    };
    if let Err(error) = read {
        left_out.stop(error);
    }
    file.close();
    if file.reports == 0 {
        let why = left_out.warnings("reports").pop();
        return Err(why.unwrap_or_else(|| "this JSON has no report of getStats".into()));
    }
    let is_one = file.reports == file.last.len();
    if is_one {
        file.add_beginnings();
        let what = "each connection has one report: what is said are means since the call began";
        left_out.note(Some(what.into()));
    }
    for what in std::mem::take(&mut file.skipped) {
        left_out.skip(what);
    }
    left_out.note(file.collector.left_out());
    if file.untimed > 0 && !is_one {
        let what = "reports without times, which are taken to be a second apart";
        left_out.note(Some(format!("{} {what}", file.untimed)));
    }
    let zero_ms = file.collector.zero_ms();
    Ok(Dump {
        format: Format::GetStats,
        program: None,
        end_s: file.collector.end_s(),
        is_part: false,
        data_channels: file.collector.take_channels(),
        connections: file.collector.finish(),
        warnings: left_out.warnings("reports"),
        events: EventLog::default().finish(zero_ms),
        zero_ms: zero_ms.filter(|ms| *ms > ABSOLUTE_MS),
    })
}

#[derive(Default)]
struct File {
    collector: Collector,
    reports: usize,
    /// Of these, reports without a time.
    untimed: usize,
    skipped: Vec<String>,
    /// The last report of each connection, while each has one.
    last: Vec<(String, f64, Objects)>,
    time_ms: f64,
    /// A report of a connection to which objects may still come.
    open: Option<(String, Objects)>,
    /// Why nothing more is read.
    full: Option<String>,
}

impl File {
    /// Reads one value after the other.
    fn all<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        mut parser: serde_json::Deserializer<R>,
    ) -> Result<(), String> {
        loop {
            match self.value(&mut parser) {
                Ok(()) => {}
                Err(error)
                    if error.is_eof()
                        && error.to_string().contains("EOF while parsing a value") =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            }
            if let Some(full) = self.full.take() {
                return Err(full);
            }
        }
    }

    /// Reads the lines of a log, each with a value behind a time and other words.
    fn lines(&mut self, mut from: Box<dyn BufRead>) -> Result<(), String> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = Read::take(&mut from, LINE_MAX).read_until(b'\n', &mut line);
            if read.map_err(|error| error.to_string())? == 0 {
                return Ok(());
            }
            let Some(at) = json_in(&line) else { continue };
            let mut parser = serde_json::Deserializer::from_slice(&line[at..]);
            if let Err(error) = self.value(&mut parser)
                && self.skipped.len() < SKIPPED_MAX
            {
                self.skipped.push(format!("in a line: {error}"));
            }
            if let Some(full) = self.full.take() {
                return Err(full);
            }
        }
    }

    /// Reads one value.
    fn value<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        parser: &mut serde_json::Deserializer<R>,
    ) -> Result<(), serde_json::Error> {
        let seed = Node { file: self, name: UNNAMED.into(), depth: 0 };
        if let Part::Object(id, object) = seed.deserialize(parser)? {
            self.report(UNNAMED, vec![(id, object)]);
        }
        Ok(())
    }

    /// Takes objects of a report. One that comes twice begins another report, and so does another
    /// time: some write a report in parts, such as an object a line or a list for each type.
    fn report(&mut self, connection: &str, objects: Vec<(Option<String>, Object)>) {
        let mut report = Objects::new();
        for (number, (id, object)) in objects.into_iter().enumerate() {
            let kind = object.kind().unwrap_or_default();
            let id = id.unwrap_or_else(|| format!("{kind} {number}"));
            if report.contains_key(&id) {
                self.part(connection, std::mem::take(&mut report));
            }
            report.insert(id, object);
        }
        self.part(connection, report);
    }

    /// Takes objects of one report, each of which has an id of its own.
    fn part(&mut self, connection: &str, part: Objects) {
        match &mut self.open {
            Some((name, open)) if name == connection && is_of_one_report(open, &part) => {
                open.extend(part);
            }
            _ => {
                self.close();
                self.open = Some((connection.into(), part));
            }
        }
    }

    /// No more objects come to the open report.
    fn close(&mut self) {
        if let Some((connection, report)) = self.open.take() {
            self.add(&connection, report);
        }
    }

    fn add(&mut self, connection: &str, mut objects: Objects) {
        let latest_ms = latest_ms(&objects);
        for object in objects.values_mut() {
            if let Some(ms) = object.get("timestamp").and_then(in_ms) {
                object.insert("timestamp", ms);
            }
        }
        let time_ms = latest_ms.unwrap_or(self.time_ms + STEP_MS);
        if latest_ms.is_none() {
            self.untimed += 1;
            objects.values_mut().for_each(|object| object.insert("timestamp", time_ms));
        }
        match self.collector.add(connection, time_ms, &objects) {
            Ok(()) => self.time_ms = time_ms,
            Err(Refusal::Odd(what)) => {
                self.skipped.push(what);
                return;
            }
            Err(Refusal::Full(what)) => {
                self.full = Some(what);
                return;
            }
        }
        self.reports += 1;
        match self.last.iter_mut().find(|(name, ..)| name == connection) {
            Some(last) => last.2 = Objects::new(),
            None => self.last.push((connection.into(), time_ms, objects)),
        }
    }

    /// Adds a report of the moment at which each connection's counters were 0, before its only one.
    fn add_beginnings(&mut self) {
        let only = std::mem::take(&mut self.last);
        let first = only.iter().map(|(_, time_ms, objects)| time_ms - age_s(objects) * 1e3);
        let Some(zero_ms) = first.min_by(f64::total_cmp) else { return };
        self.collector = Collector::since(zero_ms.max(0.0));
        for (name, time_ms, objects) in only {
            let mut begun = Objects::new();
            for (id, object) in &objects {
                begun.insert(id.clone(), without_counters(object, age_s(&objects)));
            }
            let begin_ms = (time_ms - age_s(&objects) * 1e3).max(0.0);
            for (at_ms, report) in [(begin_ms, begun), (time_ms, objects)] {
                if let Err(Refusal::Odd(what) | Refusal::Full(what)) =
                    self.collector.add(&name, at_ms, &report)
                {
                    self.skipped.push(what);
                }
            }
        }
    }
}

/// Whether a name is a date or a number of ms: reports may be kept by their times.
fn is_time(name: &str) -> bool {
    const DIGITS: usize = 9;
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    digits >= DIGITS && name.bytes().all(|it| it.is_ascii_digit() || b"-:.+TZ ".contains(&it))
}

/// A time in ms, of whatever unit it is in, or of a date.
fn in_ms(written: &Value) -> Option<f64> {
    let number = match written {
        Value::String(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return since_1970(text),
        },
        _ => written.as_f64()?,
    };
    Some(match number {
        NANOS.. => number / 1e6,
        MICROS.. => number / 1e3,
        _ if SECONDS.contains(&number) => number * 1e3,
        _ => number,
    })
}

/// For how long a report's streams have run, in s, by what counts seconds.
fn age_s(objects: &Objects) -> f64 {
    let mut age_s = 1.0_f64;
    for object in objects.values() {
        let limits = object.get("qualityLimitationDurations").and_then(Value::as_object);
        let limited: f64 = limits.into_iter().flat_map(Map::values).filter_map(Value::as_f64).sum();
        for seconds in [
            Some(limited),
            object.number("totalSamplesDuration"),
            object.number("totalInterFrameDelay"),
        ] {
            age_s = age_s.max(seconds.filter(|it| (0.0..1e6).contains(it)).unwrap_or(0.0));
        }
    }
    age_s
}

/// An object as it was before it counted anything.
fn without_counters(object: &Object, age_s: f64) -> Object {
    const KEPT: [&str; 16] = [
        "type",
        "kind",
        "mediaType",
        "ssrc",
        "codecId",
        "remoteId",
        "localId",
        "mediaSourceId",
        "selectedCandidatePairId",
        "localCandidateId",
        "remoteCandidateId",
        "nominated",
        "state",
        "mimeType",
        "rid",
        "rtxSsrc",
    ];
    let is_counted = object.kind().is_some_and(|kind| {
        !kind.ends_with("-candidate") && !matches!(kind, "codec" | "certificate")
    });
    if !is_counted {
        return object.clone();
    }
    let mut begun = Object::default();
    for (name, value) in object.iter() {
        match value.as_f64() {
            Some(ms) if name.text() == "timestamp" => {
                begun.set(name, Value::from(ms - age_s * 1e3));
            }
            // Counters begin with 0.
            Some(_) if !KEPT.contains(&name.text()) => begun.set(name, Value::from(0)),
            _ => begun.set(name, value.clone()),
        }
    }
    begun
}

/// What a value is.
enum Part {
    /// An object of a report, with the id within it.
    Object(Option<String>, Object),
    /// An id and its object.
    Pair(String, Object),
    /// A number, a short text, or a small object of them.
    Plain(Value),
    /// An object that is none of a report, and its members that one could have.
    Loose(Value, Object),
    /// Anything else. The reports in it are taken.
    Container,
}

/// Whether a name is one that programs give to reports, or to their parts.
fn is_wrapper(key: &str) -> bool {
    WRAPPERS.contains(&key) || is_type_of_statistics(key)
}

/// The latest time of some objects in ms.
fn latest_ms(objects: &Objects) -> Option<f64> {
    let mut latest: Option<f64> = None;
    for object in objects.values() {
        let ms = object.get("timestamp").and_then(in_ms).unwrap_or_default();
        if ms > latest.unwrap_or_default() {
            latest = Some(ms);
        }
    }
    latest
}

/// Whether objects may be of the report before: they are others, and of its time. What the far end
/// reported has an earlier one.
fn is_of_one_report(before: &Objects, part: &Objects) -> bool {
    const EARLIER_MS: f64 = 15_000.0;
    const LATER_MS: f64 = 500.0;
    for id in part.keys() {
        if before.contains_key(id) {
            return false;
        }
    }
    match (latest_ms(before), latest_ms(part)) {
        (Some(before), Some(time)) => (-EARLIER_MS..LATER_MS).contains(&(time - before)),
        _ => true,
    }
}

/// A value of the file.
struct Node<'a> {
    file: &'a mut File,
    /// The name of the connection, if a wrapper is one.
    name: String,
    depth: usize,
}

impl Node<'_> {
    fn within(&mut self, key: Option<&str>) -> Node<'_> {
        let name = match key {
            Some(key) if key.len() <= TEXT_MAX && !is_wrapper(key) && !is_time(key) => key.into(),
            _ => self.name.clone(),
        };
        Node { file: self.file, name, depth: self.depth + 1 }
    }

    fn is_deep<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth > DEPTH_MAX {
            return Err(E::custom("its objects are too deep in each other"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Part;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Part, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Part, A::Error> {
        self.is_deep::<A::Error>()?;
        let mut own = Object::with_room();
        let mut plain = Map::new();
        let mut id = None;
        let mut objects: Vec<(Option<String>, Object)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match map.next_value_seed(self.within(Some(&key)))? {
                Part::Plain(value) => {
                    if key == "id" {
                        id = value.as_str().map(String::from);
                    }
                    if plain.len() < MEMBERS_MAX && !value.is_object() {
                        plain.insert(key.clone(), value.clone());
                    }
                    let is_time = matches!(key.as_str(), "timestamp_us" | "timestampUs");
                    if let Some(name) = Name::of(if is_time { "timestamp" } else { &key }) {
                        own.set(name, value);
                    }
                }
                Part::Loose(_, members) if OF_AN_OBJECT.contains(&key.as_str()) => {
                    members.into_members().for_each(|(name, value)| own.set(name, value));
                }
                Part::Loose(value, _) => {
                    if let Some(name) = Name::of(&key) {
                        own.set(name, value);
                    }
                }
                Part::Object(_, object) if objects.len() < OBJECTS_MAX => {
                    objects.push((Some(key), object));
                }
                Part::Object(..) => return Err(A::Error::custom("a report has too many objects")),
                Part::Pair(..) | Part::Container => {}
            }
        }
        if !objects.is_empty() {
            let name = self.name.clone();
            self.file.report(&name, objects);
            return Ok(Part::Container);
        }
        let is_object = own.kind().is_some_and(is_type_of_statistics);
        Ok(match (is_object, own.is_empty()) {
            (true, _) => Part::Object(id, own),
            (false, true) => Part::Plain(plain.into()),
            (false, false) => Part::Loose(plain.into(), own),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut all: A) -> Result<Part, A::Error> {
        self.is_deep::<A::Error>()?;
        let mut objects: Vec<(Option<String>, Object)> = Vec::new();
        let mut first: Option<Value> = None;
        let mut count = 0;
        while let Some(part) = all.next_element_seed(self.within(None))? {
            count += 1;
            match part {
                Part::Plain(value) if count == 1 => first = Some(value),
                Part::Pair(id, object) => objects.push((Some(id), object)),
                Part::Object(id, object) => objects.push((id, object)),
                Part::Plain(_) | Part::Loose(..) | Part::Container => {}
            }
            if objects.len() > OBJECTS_MAX {
                return Err(A::Error::custom("a report has too many objects"));
            }
        }
        if let (2, Some(Value::String(id)), 1) = (count, first, objects.len()) {
            let object = objects.pop().map(|(_, object)| object).unwrap_or_default();
            return Ok(Part::Pair(id, object));
        }
        if !objects.is_empty() {
            let name = self.name.clone();
            self.file.report(&name, objects);
        }
        Ok(Part::Container)
    }

    fn visit_str<E>(mut self, text: &str) -> Result<Part, E> {
        // Programs of logs write a report as a text.
        if text.len() > TEXT_MAX && text.starts_with(['{', '[']) {
            let mut inner = serde_json::Deserializer::from_str(text);
            return Ok(self.within(None).deserialize(&mut inner).unwrap_or(Part::Container));
        }
        Ok(Part::Plain(if text.len() <= TEXT_MAX { text.into() } else { Value::Null }))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Part, E> {
        Ok(Part::Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Part, E> {
        Ok(Part::Plain(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Part, E> {
        Ok(Part::Plain(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Part, E> {
        Ok(Part::Plain(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Part, E> {
        Ok(Part::Plain(Value::Null))
    }
}
