//! From the objects of one getStats report [WEBRTC-STATS §8] to a report for each stream.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};
use weir::units::Timestamp;
use weir_lab::calls::derive::TimedReport;
use weir_lab::calls::stats::{
    Candidate, CandidatePair, InboundRtp, Kind, MediaSource, OutboundRtp, RemoteInboundRtp,
    StatsReport, Transport,
};

use super::left_out::Refusal;
use super::{Connection, Stream, StreamDirection, StreamReport, legacy, repair};

/// Largest number of streams, and of reports of streams, in one dump. A report takes about five
/// kilobytes until the page is written.
const STREAMS_MAX: usize = 1_000;
const REPORTS_MAX: usize = 50_000;
/// Largest time in ms since 1970 that a dump may contain: the year 2200.
const TIME_MAX_MS: f64 = 7.3e12;

/// Members that are read besides those of the report's structs.
const MORE: &[&str] = &[
    "type",
    "kind",
    "mediaType",
    "codecId",
    "mimeType",
    "selectedCandidatePairId",
    "nominated",
    "state",
    "localCandidateId",
    "remoteCandidateId",
    "address",
    "ip",
    "port",
    "protocol",
    "candidateType",
    "relayProtocol",
    "active",
    "mediaSourceId",
    "localId",
    "remoteId",
    "rid",
    "timestamp",
    "bytesSent",
    "bytesReceived",
    "packetsSent",
    "packetsReceived",
    "currentRoundTripTime",
    "responsesReceived",
    "availableOutgoingBitrate",
];

/// Whether the analysis uses this member of a statistics object.
pub(crate) fn is_wanted(member: &str) -> bool {
    WANTED.contains(member)
}

/// The members of all structs, and those besides them.
static WANTED: LazyLock<HashSet<String, BuildHasherDefault<Fnv>>> = LazyLock::new(|| {
    let mut wanted: HashSet<String, BuildHasherDefault<Fnv>> =
        MORE.iter().chain(legacy::MEMBERS).map(|name| (*name).into()).collect();
    for members in [
        OutboundRtp::defaults(),
        InboundRtp::defaults(),
        RemoteInboundRtp::defaults(),
        MediaSource::defaults(),
        Transport::defaults(),
    ] {
        wanted.extend(members.keys().cloned());
    }
    wanted
});

/// FNV-1a, for a set that never grows: each member of each dump is looked up in it.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The streams of a connection.
type Streams = BTreeMap<(StreamDirection, bool, u32), Stream>;

/// Collects the reports of all streams.
#[derive(Default)]
pub(crate) struct Collector {
    zero_ms: Option<f64>,
    reports: usize,
    streams: usize,
    /// Connections in the order of their first report.
    connections: Vec<(String, Streams)>,
    /// Their places by name.
    places: BTreeMap<String, usize>,
}

impl Collector {
    /// Times count from this moment, in ms since 1970, and not from the first report.
    pub fn since(zero_ms: f64) -> Self {
        Self { zero_ms: Some(zero_ms), ..Self::default() }
    }

    /// When time begins, in ms since 1970; `None` before the first report.
    pub fn zero_ms(&self) -> Option<f64> {
        self.zero_ms
    }

    /// Adds the objects of one report of a connection, by their ids. `time_ms` counts from 1970.
    pub fn add(
        &mut self,
        connection: &str,
        time_ms: f64,
        objects: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        if !(0.0..TIME_MAX_MS).contains(&time_ms) {
            return Err(Refusal::Odd(format!("a report has the time {time_ms} ms")));
        }
        let zero_ms = *self.zero_ms.get_or_insert(time_ms);
        let time = Timestamp::from_nanos(((time_ms - zero_ms) * 1e6) as i64);
        let shared = Shared::of(objects);
        let streams = objects.values().filter_map(Value::as_object);
        for object in streams {
            let Some((way, kind, ssrc)) = identity(object) else { continue };
            self.reports += 1;
            if self.reports > REPORTS_MAX {
                return Err(Refusal::Full(format!(
                    "it has more than {REPORTS_MAX} reports of streams"
                )));
            }
            let stream = self.stream(connection, way, kind, ssrc)?;
            let Some(report) = shared.report(way, object) else { continue };
            let active = object.get("active").and_then(Value::as_bool);
            let timed = TimedReport { time, report };
            if stream.rid.is_none() {
                stream.rid = text(object, "rid").map(String::from);
            }
            stream.reports.push(StreamReport { timed, active });
        }
        Ok(())
    }

    fn stream(
        &mut self,
        connection: &str,
        way: StreamDirection,
        kind: Kind,
        ssrc: u32,
    ) -> Result<&mut Stream, Refusal> {
        let index = match self.places.get(connection) {
            Some(index) => *index,
            None => {
                self.places.insert(connection.into(), self.connections.len());
                self.connections.push((connection.into(), BTreeMap::new()));
                self.connections.len() - 1
            }
        };
        let streams = &mut self.connections[index].1;
        // Video before audio.
        let key = (way, kind == Kind::Audio, ssrc);
        if !streams.contains_key(&key) {
            self.streams += 1;
            if self.streams > STREAMS_MAX {
                return Err(Refusal::Full(format!("it has more than {STREAMS_MAX} streams")));
            }
        }
        let new = Stream { way, kind, ssrc, rid: None, reports: Vec::new() };
        Ok(streams.entry(key).or_insert(new))
    }

    /// The reports that came since the last time, by connection. None stays here.
    pub fn take(&mut self) -> Vec<(String, Vec<Stream>)> {
        self.places.clear();
        (self.reports, self.streams) = (0, 0);
        let mut taken = Vec::new();
        for (name, streams) in std::mem::take(&mut self.connections) {
            taken.push((name, repair::media(streams.into_values().collect())));
        }
        taken
    }

    /// The connections that have a stream with two reports.
    pub fn finish(self) -> Vec<Connection> {
        let connections = self.connections.into_iter().map(|(name, streams)| Connection {
            name,
            streams: repair::without_repairs(streams.into_values().collect()),
            packets: None,
        });
        connections.filter(|connection| !connection.streams.is_empty()).collect()
    }
}

/// Direction, kind and SSRC of a stream's object.
fn identity(object: &Map<String, Value>) -> Option<(StreamDirection, Kind, u32)> {
    let way = match text(object, "type")? {
        "outbound-rtp" => StreamDirection::Sent,
        "inbound-rtp" => StreamDirection::Received,
        _ => return None,
    };
    let kind = match text(object, "kind").or_else(|| text(object, "mediaType"))? {
        "video" => Kind::Video,
        "audio" => Kind::Audio,
        _ => return None,
    };
    Some((way, kind, u32::try_from(object.get("ssrc")?.as_u64()?).ok()?))
}

/// The objects that all streams of a connection share.
struct Shared<'a> {
    objects: &'a Map<String, Value>,
    transport: Option<Transport>,
    pair: Option<CandidatePair>,
    /// What the far end reported of each sent stream, by SSRC.
    remote: BTreeMap<u64, &'a Map<String, Value>>,
}

impl<'a> Shared<'a> {
    fn of(objects: &'a Map<String, Value>) -> Self {
        let all: Vec<&Map<String, Value>> = objects.values().filter_map(Value::as_object).collect();
        let transport =
            all.iter().copied().find(|object| text(object, "type") == Some("transport"));
        let selected = transport.and_then(|it| text(it, "selectedCandidatePairId"));
        let selected = selected.and_then(|id| objects.get(id)?.as_object());
        // Firefox and old dumps have no transport, or one without the pair.
        let nominated = all.iter().copied().find(|object| {
            text(object, "type") == Some("candidate-pair")
                && text(object, "state") == Some("succeeded")
                && object.get("nominated").and_then(Value::as_bool) == Some(true)
        });
        let used = selected.or(nominated);
        let mut remote = BTreeMap::new();
        for object in all {
            if text(object, "type") == Some("remote-inbound-rtp")
                && let Some(ssrc) = integer(object, "ssrc")
            {
                remote.entry(ssrc).or_insert(object);
            }
        }
        Self {
            objects,
            remote,
            transport: transport.and_then(overlaid),
            pair: used.and_then(|object| pair(objects, object)),
        }
    }

    fn report(&self, way: StreamDirection, object: &Map<String, Value>) -> Option<StatsReport> {
        let mut report = StatsReport {
            pair: self.pair.clone(),
            transport: self.transport.clone(),
            ..StatsReport::default()
        };
        match way {
            StreamDirection::Sent => {
                let mut outbound: OutboundRtp = overlaid(object)?;
                let codec = self.named(object, "codecId");
                outbound.mime_type = codec.and_then(|it| text(it, "mimeType")).map(String::from);
                report.remote_inbound = self.reported(object, &outbound).and_then(overlaid);
                report.media_source = self.named(object, "mediaSourceId").and_then(overlaid);
                report.outbound = Some(outbound);
            }
            StreamDirection::Received => report.inbound = Some(overlaid(object)?),
        }
        Some(report)
    }

    /// The object that a member of this one names.
    fn named(&self, object: &Map<String, Value>, member: &str) -> Option<&'a Map<String, Value>> {
        self.objects.get(text(object, member)?)?.as_object()
    }

    /// What the far end reported about a sent stream.
    fn reported(
        &self,
        object: &Map<String, Value>,
        outbound: &OutboundRtp,
    ) -> Option<&'a Map<String, Value>> {
        self.named(object, "remoteId")
            .or_else(|| self.remote.get(&u64::from(outbound.ssrc?)).copied())
    }
}

fn pair(objects: &Map<String, Value>, object: &Map<String, Value>) -> Option<CandidatePair> {
    Some(CandidatePair {
        timestamp: number(object, "timestamp").unwrap_or(0.0),
        packets_sent: integer(object, "packetsSent").unwrap_or(0),
        bytes_sent: integer(object, "bytesSent").unwrap_or(0),
        packets_received: integer(object, "packetsReceived").unwrap_or(0),
        bytes_received: integer(object, "bytesReceived").unwrap_or(0),
        current_round_trip_time: number(object, "currentRoundTripTime"),
        responses_received: integer(object, "responsesReceived"),
        available_outgoing_bitrate: number(object, "availableOutgoingBitrate"),
        local: candidate(objects, object, "localCandidateId"),
        remote: candidate(objects, object, "remoteCandidateId"),
    })
}

fn candidate(objects: &Map<String, Value>, pair: &Map<String, Value>, member: &str) -> Candidate {
    let unknown = Map::new();
    let named = text(pair, member).and_then(|id| objects.get(id)?.as_object());
    let object = named.unwrap_or(&unknown);
    Candidate {
        address: ["address", "ip"].iter().find_map(|name| text(object, name)?.parse().ok()),
        port: integer(object, "port").and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
        protocol: text(object, "protocol").unwrap_or_default().to_owned(),
        candidate_type: text(object, "candidateType").unwrap_or_default().to_owned(),
        relay_protocol: text(object, "relayProtocol").map(str::to_owned),
    }
}

fn text<'a>(object: &'a Map<String, Value>, member: &str) -> Option<&'a str> {
    object.get(member)?.as_str()
}

fn integer(object: &Map<String, Value>, member: &str) -> Option<u64> {
    object.get(member)?.as_u64()
}

fn number(object: &Map<String, Value>, member: &str) -> Option<f64> {
    object.get(member)?.as_f64()
}

/// A struct of a report, with all of its members at their defaults.
trait Members: Default + Serialize + DeserializeOwned {
    fn defaults() -> &'static Map<String, Value>;
}

fn written<T: Default + Serialize>() -> Map<String, Value> {
    match serde_json::to_value(T::default()) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

macro_rules! members {
    ($($name:ty),*) => {
        $(impl Members for $name {
            fn defaults() -> &'static Map<String, Value> {
                static DEFAULTS: LazyLock<Map<String, Value>> = LazyLock::new(written::<$name>);
                &DEFAULTS
            }
        })*
    };
}

members!(OutboundRtp, InboundRtp, RemoteInboundRtp, MediaSource, Transport);

/// The struct with the members that the object has in the right type. Dumps of other browsers and
/// other years lack some and write others differently.
fn overlaid<T: Members>(object: &Map<String, Value>) -> Option<T> {
    let whole = T::defaults();
    let known = object.iter().filter(|(name, _)| whole.contains_key(*name));
    // Null stands for what a struct need not have.
    let missing =
        whole.iter().filter(|(name, value)| !value.is_null() && !object.contains_key(*name));
    let all = known.chain(missing).map(|(name, value)| (name.as_str(), value));
    if let Ok(value) = T::deserialize(MapDeserializer::<_, serde_json::Error>::new(all)) {
        return Some(value);
    }
    // One by one, and without those of a wrong type.
    let mut right = whole.clone();
    for name in whole.keys() {
        let Some(value) = object.get(name) else { continue };
        let before = right.insert(name.clone(), value.clone());
        if T::deserialize(&right).is_err() {
            right.insert(name.clone(), before.unwrap_or(Value::Null));
        }
    }
    T::deserialize(&right).ok()
}
