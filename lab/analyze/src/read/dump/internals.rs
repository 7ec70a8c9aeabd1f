//! A dump of `chrome://webrtc-internals`: one JSON object, in which each member of each statistics
//! object is a series.
//!
//! ```text
//! {"PeerConnections": {connection: {"stats":
//!     {"ID-member": {startTime, endTime, statsType, values}}}}}
//! ```
//!
//! `values` is a JSON array in a string, one value a report. A member that appears later has a
//! later `startTime`. The file is read as a stream: what the analysis does not use is skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Value, json};

use super::cells::{Cell, Cells, VALUES_MAX};
use super::dates::{local_date, since_1970};
use super::left_out::{LeftOut, Refusal};
use super::object::{self, Name};
use super::texts::Texts;
use super::{Collector, Dump, EventLog, legacy, untyped};
use crate::read::format::Format;

/// Most values in all reports of a connection: this bounds the time.
const WORK_MAX: usize = 40_000_000;
/// Odd series of which the names are kept.
const SKIPPED_MAX: usize = 1_000;

/// Reads the dump.
pub(crate) fn read(from: Box<dyn BufRead>, collector: Collector) -> Result<Dump, String> {
    let mut parser = serde_json::Deserializer::from_reader(BufReader::new(Texts::new(from)));
    let mut file = File {
        collector,
        program: None,
        has_connections: false,
        skipped: Vec::new(),
        events: EventLog::default(),
        is_legacy: false,
    };
    let mut left_out = LeftOut::default();
    let read = (&mut file).deserialize(&mut parser);
    // Its series stand one after the other, and not by time.
    let is_part = read.is_err();
    if let Err(error) = read {
        left_out.stop(error.to_string());
    } else if let Err(error) = parser.end() {
        left_out.stop(format!("after the dump: {error}"));
    }
    if !file.has_connections {
        if let Some(why) = left_out.warnings("series").pop() {
            return Err(why);
        }
        return Err("a JSON file without PeerConnections is no webrtc-internals dump".into());
    }
    file.skipped.into_iter().for_each(|what| left_out.skip(what));
    if file.is_legacy {
        let what = "these are the statistics that Chrome had before the standard (googRtt and the \
            like): they lack freezes, concealment and jitter buffers";
        left_out.note(Some(what.into()));
    }
    left_out.note(file.collector.left_out());
    let warnings = left_out.warnings("series");
    let zero_ms = file.collector.zero_ms();
    let events = file.events.finish(zero_ms);
    Ok(Dump {
        format: Format::Internals,
        program: file.program,
        end_s: file.collector.end_s(),
        is_part,
        data_channels: file.collector.take_channels(),
        connections: file.collector.finish(),
        warnings,
        events,
        zero_ms,
    })
}

struct File {
    collector: Collector,
    program: Option<String>,
    has_connections: bool,
    /// Series that are not what they should be.
    skipped: Vec<String>,
    events: EventLog,
    /// Whether a connection has the statistics of before the standard.
    is_legacy: bool,
}

impl<'de> DeserializeSeed<'de> for &mut File {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut File {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a webrtc-internals dump")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "PeerConnections" => {
                    self.has_connections = true;
                    map.next_value_seed(Connections(self))?;
                }
                "getUserMedia" => map.next_value_seed(Requests(&mut self.events))?,
                "UserAgent" => {
                    self.program = map.next_value::<Cell>()?.0.as_str().map(String::from)
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Connections<'a>(&'a mut File);

impl<'de> DeserializeSeed<'de> for Connections<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Connections<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connections")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let mut objects = Objects::default();
            let events = &mut self.0.events;
            let read =
                map.next_value_seed(Connection { name: &name, objects: &mut objects, events });
            let File { collector, skipped, is_legacy, .. } = &mut *self.0;
            *is_legacy |= objects.is_legacy();
            // A file that ends within a connection has what came before.
            skipped.append(&mut objects.skipped);
            match objects.reports(&name, collector) {
                Ok(()) => {}
                Err(Refusal::Odd(what)) => skipped.push(format!("{name}: {what}")),
                Err(Refusal::Full(what)) => return Err(A::Error::custom(what)),
            }
            read?;
        }
        Ok(())
    }
}

/// Reads the objects and events of a connection.
struct Connection<'a> {
    name: &'a str,
    objects: &'a mut Objects,
    events: &'a mut EventLog,
}

impl<'de> DeserializeSeed<'de> for Connection<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Connection<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a connection")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "stats" => map.next_value_seed(AllSeries(self.objects))?,
                "updateLog" => map.next_value_seed(Updates(self.name, self.events))?,
                "rtcConfiguration" => {
                    self.events.configured(self.name, &map.next_value::<Cell>()?.0);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the events of a connection with this name.
struct Updates<'a>(&'a str, &'a mut EventLog);

impl<'de> DeserializeSeed<'de> for Updates<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Updates<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the events of a connection")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut updates: A) -> Result<(), A::Error> {
        while let Some(update) = updates.next_element::<Update>()? {
            let kind = update.kind.0.as_str().unwrap_or_default();
            let written = update.time.0.as_str().and_then(since_1970);
            if let Some(time_ms) = update.timestamp.0.as_f64().or(written) {
                self.1.note(time_ms, self.0, kind, &update.value.0);
            } else if let Some(local_ms) = update.time.0.as_str().and_then(local_date) {
                self.1.note_local(local_ms, self.0, kind, &update.value.0);
            }
        }
        Ok(())
    }
}

/// Reads what the page asked for: cameras, microphones and screens.
struct Requests<'a>(&'a mut EventLog);

impl<'de> DeserializeSeed<'de> for Requests<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Requests<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the requests of a page")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut requests: A) -> Result<(), A::Error> {
        // The answer does not say again what was asked for.
        let mut asked: BTreeMap<u64, String> = BTreeMap::new();
        while let Some(Cell(request)) = requests.next_element::<Cell>()? {
            let text = |member: &str| request.get(member).and_then(Value::as_str);
            let number = request.get("request_id").and_then(Value::as_u64);
            if let (Some(number), Some(method)) = (number, text("request_type"))
                && asked.len() < SKIPPED_MAX
            {
                asked.insert(number, method.into());
            }
            let Some(time_ms) = request.get("timestamp").and_then(Value::as_f64) else { continue };
            let Some(error) = text("error").filter(|it| !it.is_empty()) else { continue };
            let method = number.and_then(|number| asked.get(&number));
            let method = method.map_or("getUserMedia", String::as_str);
            let words = json!({ "name": error, "message": text("error_message") });
            self.0.note(time_ms, "", &format!("{method}OnFailure"), &words);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// An event of a connection. Old dumps write its time as a local date.
#[derive(Deserialize)]
struct Update {
    #[serde(default)]
    time: Cell,
    #[serde(rename = "type", default)]
    kind: Cell,
    #[serde(default)]
    value: Cell,
    #[serde(default)]
    timestamp: Cell,
}

/// The statistics objects of a connection.
#[derive(Default)]
struct Objects {
    by_id: BTreeMap<String, Object>,
    /// Values in all series.
    values: usize,
    /// Series that are not what they should be.
    skipped: Vec<String>,
}

/// A statistics object: its type, and a series for each member.
#[derive(Default)]
pub(super) struct Object {
    kind: String,
    members: BTreeMap<&'static str, Series>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    start_time: Cell,
    #[serde(default)]
    end_time: Cell,
    #[serde(default)]
    stats_type: Cell,
    #[serde(default)]
    values: Cells,
}

impl Written {
    fn series(self) -> Result<(String, Series), &'static str> {
        let times = [time(&self.start_time.0), time(&self.end_time.0)];
        let [Some(start_time), Some(end_time)] = times else { return Err("a time that is none") };
        let values = self.values.0.ok_or("values that are no array")?;
        let kind = self.stats_type.0.as_str().unwrap_or_default().to_owned();
        Ok((kind, Series { start_time, end_time, values }))
    }
}

impl Object {
    pub(super) fn has(&self, member: &str) -> bool {
        self.members.contains_key(member)
    }
}

struct Series {
    start_time: f64,
    end_time: f64,
    values: Vec<Value>,
}

/// Reads the series of a connection.
struct AllSeries<'a>(&'a mut Objects);

impl<'de> DeserializeSeed<'de> for AllSeries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AllSeries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("series by object and member")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            // Names in brackets are computed by the page.
            let parts = key.rsplit_once('-');
            let Some((id, member)) = parts.and_then(|(id, it)| Some((id, Name::of(it)?))) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            match map.next_value::<Written>()?.series() {
                Ok((kind, series)) => {
                    let kind = if kind.is_empty() { untyped::kind_of_id(id).into() } else { kind };
                    // A series without values takes memory, too.
                    self.0.values += series.values.len() + 10;
                    let object = self.0.by_id.entry(id.into()).or_default();
                    object.kind = kind;
                    object.members.insert(member.text(), series);
                }
                Err(what) if self.0.skipped.len() < SKIPPED_MAX => {
                    self.0.skipped.push(format!("{key}: {what}"));
                }
                Err(_) => {}
            }
            if self.0.values > VALUES_MAX {
                let what = format!("a connection has more than {VALUES_MAX} values");
                return Err(A::Error::custom(what));
            }
        }
        for object in self.0.by_id.values_mut().filter(|it| it.kind.is_empty()) {
            let written = object.members.get("type").and_then(|it| it.values.first()?.as_str());
            object.kind =
                written.unwrap_or(untyped::kind_of_members(|member| object.has(member))).into();
        }
        Ok(())
    }
}

/// A member, its series, and the number of the time at which the series starts.
type Start<'a> = (&'static str, &'a Series, usize);

impl Objects {
    /// Hands the reports to the collector, one by one.
    fn reports(&self, name: &str, collector: &mut Collector) -> Result<(), Refusal> {
        let times = self.times();
        let members: usize = self.by_id.values().map(|object| object.members.len()).sum();
        let most = WORK_MAX / members.max(1);
        let mut starts: Vec<(&String, &Object, Vec<Start>)> = Vec::new();
        for (id, object) in &self.by_id {
            let members = object.members.iter();
            let members = members.map(|(name, series)| (*name, series, nearest(&times, series)));
            starts.push((id, object, members.collect()));
        }
        for (index, time) in times.iter().enumerate() {
            if index == most {
                let what = format!("its reports have more than {WORK_MAX} members together");
                return Err(Refusal::Full(what));
            }
            let mut objects = object::Objects::new();
            for (id, object, members) in &starts {
                let mut values = object::Object::with_room();
                for (name, series, start) in members {
                    let at = index.checked_sub(*start);
                    if let Some(value) = at.and_then(|at| series.values.get(at)) {
                        values.insert(name, numbered(name, &object.kind, value));
                    }
                }
                if values.is_empty() {
                    continue;
                }
                if values.get("type").is_none() {
                    values.insert("type", object.kind.as_str());
                }
                if values.get("timestamp").is_none() {
                    values.insert("timestamp", *time);
                }
                objects.insert((*id).clone(), values);
            }
            match legacy::standard(&objects, *time) {
                Some(standard) => collector.add(name, *time, &standard)?,
                None => collector.add(name, *time, &objects)?,
            }
        }
        Ok(())
    }

    /// Whether these are the statistics that Chrome had before the standard.
    fn is_legacy(&self) -> bool {
        self.by_id.values().any(|object| object.kind == "ssrc")
    }

    /// When the reports were made, in ms since 1970: the longest series of timestamps. Old dumps
    /// have none, and their reports are a fixed interval apart.
    fn times(&self) -> Vec<f64> {
        const LOCAL: [&str; 4] = ["transport", "candidate-pair", "outbound-rtp", "inbound-rtp"];
        let stamped = self.by_id.values().filter(|object| LOCAL.contains(&object.kind.as_str()));
        let stamps = stamped.filter_map(|object| object.members.get("timestamp"));
        if let Some(stamps) = stamps.max_by_key(|series| series.values.len()) {
            return stamps.values.iter().filter_map(Value::as_f64).collect();
        }
        let all = self.by_id.values().flat_map(|object| object.members.values());
        let Some(longest) = all.max_by_key(|series| series.values.len()) else { return Vec::new() };
        let steps = longest.values.len().saturating_sub(1).max(1) as f64;
        let step = (longest.end_time - longest.start_time) / steps;
        (0..longest.values.len()).map(|index| longest.start_time + step * index as f64).collect()
    }
}

/// A value as the standard has it: Chrome 86 wrote SSRCs as text.
fn numbered(member: &str, kind: &str, value: &Value) -> Value {
    match value.as_str().filter(|_| member == "ssrc" && kind != "ssrc").map(str::parse::<u32>) {
        Some(Ok(ssrc)) => ssrc.into(),
        _ => value.clone(),
    }
}

/// Index of the report in which a series begins.
fn nearest(times: &[f64], series: &Series) -> usize {
    // A series with as many values as there are reports begins with the first report, even if the
    // page's clock says otherwise.
    if series.values.len() >= times.len() {
        return 0;
    }
    let after = times.partition_point(|time| *time < series.start_time);
    let (before, start) = (after.saturating_sub(1), series.start_time);
    match (times.get(before), times.get(after)) {
        (Some(early), Some(late)) if (early - start).abs() <= (late - start).abs() => before,
        (Some(_), None) => before,
        _ => after,
    }
    .min(times.len() - series.values.len())
}

/// `2026-11-23T04:32:47.346Z`, or ms since 1970.
fn time(written: &Value) -> Option<f64> {
    match written {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => since_1970(text),
        _ => None,
    }
}
