//! A dump of `chrome://webrtc-internals`: one JSON object, in which each member of each statistics
//! object is a series.
//!
//! ```text
//! {"PeerConnections": {connection: {"stats": {"ID-member": {startTime, endTime, statsType, values}}}}}
//! ```
//!
//! `values` is a JSON array in a string, one value a report. A member that appears later has a later
//! `startTime`. The file is read as a stream: what the analysis does not use is skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::{Collector, Dump, is_wanted};
use crate::format::Format;

/// Reads the dump.
pub(crate) fn read(from: Box<dyn BufRead>, collector: Collector) -> Result<Dump, String> {
    let mut parser = serde_json::Deserializer::from_reader(from);
    let mut file = File { collector, program: None, has_connections: false };
    (&mut file).deserialize(&mut parser).map_err(|error| format!("{error}"))?;
    parser.end().map_err(|error| format!("after the dump: {error}"))?;
    if !file.has_connections {
        return Err("a JSON file without PeerConnections is no webrtc-internals dump".into());
    }
    Ok(Dump {
        format: Format::Internals,
        program: file.program,
        connections: file.collector.finish(),
    })
}

struct File {
    collector: Collector,
    program: Option<String>,
    has_connections: bool,
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
                    map.next_value_seed(Connections(&mut self.collector))?;
                }
                "UserAgent" => self.program = map.next_value::<Option<String>>()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Connections<'a>(&'a mut Collector);

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
            let connection: Connection = map.next_value()?;
            connection.stats.reports(&name, self.0).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Connection {
    #[serde(default)]
    stats: Objects,
}

/// The statistics objects of a connection.
#[derive(Default)]
struct Objects(BTreeMap<String, Object>);

/// A statistics object: its type, and a series for each member.
#[derive(Default)]
struct Object {
    kind: String,
    members: BTreeMap<String, Series>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Series {
    #[serde(deserialize_with = "time")]
    start_time: f64,
    #[serde(deserialize_with = "time")]
    end_time: f64,
    #[serde(default)]
    stats_type: String,
    #[serde(deserialize_with = "values")]
    values: Vec<Value>,
}

impl<'de> Deserialize<'de> for Objects {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Objects;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("series by object and member")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Objects, A::Error> {
                let mut objects = Objects::default();
                while let Some(key) = map.next_key::<String>()? {
                    // Names in brackets are computed by the page.
                    let parts = key.rsplit_once('-').filter(|(_, member)| is_wanted(member));
                    let Some((id, member)) = parts else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    let series: Series = map.next_value()?;
                    let object = objects.0.entry(id.into()).or_default();
                    object.kind.clone_from(&series.stats_type);
                    object.members.insert(member.into(), series);
                }
                Ok(objects)
            }
        }
        from.deserialize_map(All)
    }
}

/// A member, its series, and the number of the time at which the series starts.
type Start<'a> = (&'a String, &'a Series, usize);

impl Objects {
    /// Hands the reports to the collector, one by one.
    fn reports(&self, name: &str, collector: &mut Collector) -> Result<(), String> {
        let times = self.times();
        let starts: Vec<(&String, &Object, Vec<Start>)> = self
            .0
            .iter()
            .map(|(id, object)| {
                let of = |(member, series)| (member, series, nearest(&times, series));
                (id, object, object.members.iter().map(of).collect())
            })
            .collect();
        for (index, time) in times.iter().enumerate() {
            let mut objects = Map::new();
            for (id, object, members) in &starts {
                let value = |(member, series, start): &Start| {
                    let value = series.values.get(index.checked_sub(*start)?)?;
                    Some(((*member).clone(), value.clone()))
                };
                let mut members: Map<String, Value> = members.iter().filter_map(value).collect();
                if members.is_empty() {
                    continue;
                }
                members.entry("type").or_insert_with(|| object.kind.clone().into());
                members.entry("timestamp").or_insert_with(|| (*time).into());
                objects.insert((*id).clone(), members.into());
            }
            collector.add(name, *time, &objects)?;
        }
        Ok(())
    }

    /// When the reports were made, in ms since 1970: the longest series of timestamps. Old dumps
    /// have none, and their reports are a fixed interval apart.
    fn times(&self) -> Vec<f64> {
        let local = ["transport", "candidate-pair", "outbound-rtp", "inbound-rtp"];
        let is_local = |object: &&Object| local.contains(&object.kind.as_str());
        let stamped = self.0.values().filter(is_local);
        let stamps = stamped.filter_map(|object| object.members.get("timestamp"));
        if let Some(stamps) = stamps.max_by_key(|series| series.values.len()) {
            return stamps.values.iter().filter_map(Value::as_f64).collect();
        }
        let all = self.0.values().flat_map(|object| object.members.values());
        let Some(longest) = all.max_by_key(|series| series.values.len()) else { return Vec::new() };
        let steps = longest.values.len().saturating_sub(1).max(1) as f64;
        let step = (longest.end_time - longest.start_time) / steps;
        (0..longest.values.len()).map(|index| longest.start_time + step * index as f64).collect()
    }
}

/// Index of the report in which a series begins.
fn nearest(times: &[f64], series: &Series) -> usize {
    // A series that is as long as the whole begins with it, whatever the page's clock said.
    if series.values.len() >= times.len() {
        return 0;
    }
    let after = times.partition_point(|time| *time < series.start_time);
    let distance = |index: usize| times.get(index).map(|time| (time - series.start_time).abs());
    let before = after.saturating_sub(1);
    match (distance(before), distance(after)) {
        (Some(early), Some(late)) if early <= late => before,
        (Some(_), None) => before,
        _ => after,
    }
    .min(times.len() - series.values.len())
}

/// `2026-11-23T04:32:47.346Z`, or ms since 1970.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    match Value::deserialize(from)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => since_1970(&text),
        _ => None,
    }
    .ok_or_else(|| D::Error::custom("a time that is none"))
}

/// A JSON array, in a string or as it is.
fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Value>, D::Error> {
    match Value::deserialize(from)? {
        Value::Array(values) => Ok(values),
        Value::String(text) => serde_json::from_str(&text).map_err(D::Error::custom),
        _ => Err(D::Error::custom("values that are no array")),
    }
}

/// A time of ISO 8601 in UTC, in ms since 1970.
fn since_1970(text: &str) -> Option<f64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_sound =
        (1970..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_sound || !(0.0..61.0).contains(&second) {
        return None;
    }
    // Years begin in March, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    const DAYS_TO_1970: i64 = 719_468;
    let hours = (days - DAYS_TO_1970) as f64 * 24.0 + hour;
    Some(((hours * 60.0 + minute) * 60.0 + second) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_counted_from_1970() {
        assert_eq!(since_1970("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(since_1970("2000-02-29T12:00:00Z"), Some(951_825_600_000.0));
        assert_eq!(since_1970("2026-11-23T04:32:47.346Z"), Some(1_795_408_367_346.0));
        assert_eq!(since_1970("yesterday"), None);
        assert_eq!(since_1970("1969-01-01T00:00:00Z"), None);
    }
}
