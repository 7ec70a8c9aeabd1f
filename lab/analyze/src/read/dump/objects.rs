//! From the objects of one getStats report [WEBRTC-STATS §8] to a report for each stream.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};
use weir::units::Timestamp;
use weir_record::calls::derive::TimedReport;
use weir_record::calls::stats::{
    Candidate, CandidatePair, InboundRtp, Kind, MediaSource, OutboundRtp, RemoteInboundRtp,
    StatsReport, Transport,
};

use super::left_out::Refusal;
use super::members::Members;
use super::object::{Object, Objects};
use super::{Connection, DataChannel, Stream, StreamDirection, StreamReport, repair};

/// Largest number of streams, and of reports of streams, in one dump. A report takes about five
/// kilobytes until the page is written.
const STREAMS_MAX: usize = 1_000;
const REPORTS_MAX: usize = 50_000;
/// Longest distance of the reports that are judged, in reports: browsers write one a second.
const THINNED_MAX: u64 = 8;
/// Data channels that are counted.
const CHANNELS_MAX: usize = 1_000;
/// Largest time in ms since 1970 that a dump may contain: the year 2200.
const TIME_MAX_MS: f64 = 7.3e12;

/// The streams of a connection.
type Streams = BTreeMap<(StreamDirection, bool, u32), Stream>;

/// Collects the reports of all streams.
#[derive(Default)]
pub(crate) struct Collector {
    zero_ms: Option<f64>,
    /// The last report, of whatever it is, in s since then.
    end_s: f64,
    reports: usize,
    streams: usize,
    /// Connections in the order of their first report.
    connections: Vec<(String, Streams)>,
    /// Their places by name.
    places: BTreeMap<String, usize>,
    /// Of each connection's reports, this many are one, where there would be too many; 0 is 1.
    thinned: u64,
    /// Reports of each connection so far.
    seen: BTreeMap<String, u64>,
    /// Data channels by connection and id.
    channels: BTreeMap<(String, String), DataChannel>,
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

    /// When the last report was, in s since time began.
    pub fn end_s(&self) -> f64 {
        self.end_s
    }

    /// Adds the objects of one report of a connection, by their ids. `time_ms` counts from 1970.
    pub fn add(
        &mut self,
        connection: &str,
        time_ms: f64,
        objects: &Objects,
    ) -> Result<(), Refusal> {
        self.add_awake(connection, time_ms, objects, |_| true)
    }

    /// The same, without the streams that are not awake.
    pub fn add_awake(
        &mut self,
        connection: &str,
        time_ms: f64,
        objects: &Objects,
        is_awake: impl Fn(&str) -> bool,
    ) -> Result<(), Refusal> {
        if !(0.0..TIME_MAX_MS).contains(&time_ms) {
            return Err(Refusal::Odd(format!("a report has the time {time_ms} ms")));
        }
        let zero_ms = *self.zero_ms.get_or_insert(time_ms);
        self.end_s = self.end_s.max((time_ms - zero_ms) / 1e3);
        if self.thinned > 1 && self.is_left_out(connection) {
            return Ok(());
        }
        let time = Timestamp::from_nanos(((time_ms - zero_ms) * 1e6) as i64);
        let shared = Shared::of(objects);
        for (id, object) in objects {
            if object.kind() == Some("data-channel") {
                self.add_channel(connection, id, object);
                continue;
            }
            let Some((direction, kind, ssrc)) = identity(object) else { continue };
            if !is_awake(id) {
                continue;
            }
            if self.reports >= REPORTS_MAX {
                self.thin()?;
            }
            self.reports += 1;
            let stream = self.stream(connection, direction, kind, ssrc)?;
            let Some(mut report) = shared.report(direction, object) else { continue };
            add_energy(stream.reports.last(), time, &mut report, shared.level(direction, object));
            let active = object.boolean("active");
            let timed = TimedReport { time, report };
            if stream.rid.is_none() {
                stream.rid = object.text("rid").map(String::from);
            }
            stream.reports.push(StreamReport { timed, active });
        }
        Ok(())
    }

    /// Whether this report of a connection is one of those between others that are kept.
    fn is_left_out(&mut self, connection: &str) -> bool {
        let seen = self.seen.entry(connection.into()).or_default();
        *seen += 1;
        !seen.is_multiple_of(self.thinned)
    }

    /// Keeps every second report of each stream, and later on as few. A long call is judged as a
    /// whole, at a distance that its rules allow.
    fn thin(&mut self) -> Result<(), Refusal> {
        if self.thinned >= THINNED_MAX {
            return Err(Refusal::Full(format!(
                "it has more than {REPORTS_MAX} reports of streams"
            )));
        }
        self.thinned = 2 * self.thinned.max(1);
        self.reports = 0;
        for stream in self.connections.iter_mut().flat_map(|(_, streams)| streams.values_mut()) {
            let mut place = 0;
            stream.reports.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.reports += stream.reports.len();
        }
        Ok(())
    }

    /// What was left out of a long call, in a line.
    pub fn left_out(&self) -> Option<String> {
        (self.thinned > 1).then(|| {
            format!(
                "it has more than {REPORTS_MAX} reports of streams: one of {} is judged",
                self.thinned
            )
        })
    }

    fn add_channel(&mut self, connection: &str, id: &str, object: &Object) {
        let key = (connection.to_owned(), id.to_owned());
        if self.channels.len() >= CHANNELS_MAX && !self.channels.contains_key(&key) {
            return;
        }
        let count = |member| object.integer(member).unwrap_or(0);
        let channel = DataChannel {
            connection: connection.into(),
            messages_sent: count("messagesSent"),
            bytes_sent: count("bytesSent"),
            messages_received: count("messagesReceived"),
            bytes_received: count("bytesReceived"),
        };
        self.channels.insert(key, channel);
    }

    /// The data channels so far.
    pub fn take_channels(&mut self) -> Vec<DataChannel> {
        std::mem::take(&mut self.channels).into_values().collect()
    }

    fn stream(
        &mut self,
        connection: &str,
        direction: StreamDirection,
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
        let key = (direction, kind == Kind::Audio, ssrc);
        if !streams.contains_key(&key) {
            self.streams += 1;
            if self.streams > STREAMS_MAX {
                return Err(Refusal::Full(format!("it has more than {STREAMS_MAX} streams")));
            }
        }
        let new = Stream { direction, kind, ssrc, rid: None, reports: Vec::new() };
        Ok(streams.entry(key).or_insert(new))
    }

    /// The reports that came since the last time, by connection. None stays here.
    pub fn take(&mut self) -> Vec<(String, Vec<Stream>)> {
        self.places.clear();
        self.channels.clear();
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

/// Energy of a sound by its level, where the browser does not count it (Firefox, Chrome before
/// version 80): the level of a report stands for the time since the one before.
fn add_energy(
    before: Option<&StreamReport>,
    time: Timestamp,
    report: &mut StatsReport,
    level: Option<f64>,
) {
    let Some(level) = level else { return };
    let seconds = before.map_or(0.0, |it| (time - it.timed.time).as_secs_f64().max(0.0));
    let before = before.map(|it| &it.timed.report);
    let more = level * level * seconds;
    if let Some(inbound) = report.inbound.as_mut().filter(|it| it.total_audio_energy.is_none()) {
        let before = before.and_then(|it| it.inbound.as_deref());
        let known =
            before.map_or((None, None), |it| (it.total_audio_energy, it.total_samples_duration));
        inbound.total_audio_energy = Some(known.0.unwrap_or(0.0) + more);
        inbound.total_samples_duration = Some(known.1.unwrap_or(0.0) + seconds);
    }
    let source = report.media_source.as_mut();
    if let Some(source) = source.filter(|it| it.total_audio_energy.is_none()) {
        let before = before.and_then(|it| it.media_source.as_ref());
        let known =
            before.map_or((None, None), |it| (it.total_audio_energy, it.total_samples_duration));
        source.total_audio_energy = Some(known.0.unwrap_or(0.0) + more);
        source.total_samples_duration = Some(known.1.unwrap_or(0.0) + seconds);
    }
}

/// Direction, kind and SSRC of a stream's object.
fn identity(object: &Object) -> Option<(StreamDirection, Kind, u32)> {
    if is_of_far_end(object) {
        return None;
    }
    let direction = match object.kind()? {
        "outbound-rtp" => StreamDirection::Sent,
        "inbound-rtp" => StreamDirection::Received,
        _ => return None,
    };
    let kind = match object.text("kind").or_else(|| object.text("mediaType"))? {
        "video" => Kind::Video,
        "audio" => Kind::Audio,
        _ => return None,
    };
    let ssrc = object.get("ssrc")?;
    let ssrc = ssrc.as_u64().or_else(|| ssrc.as_str()?.parse().ok())?;
    Some((direction, kind, u32::try_from(ssrc).ok()?))
}

/// Whether an object is what the far end reported, under the types of its own streams: Firefox
/// wrote it so before version 66.
fn is_of_far_end(object: &Object) -> bool {
    is_true(object, "isRemote")
}

fn is_true(object: &Object, member: &str) -> bool {
    object.boolean(member) == Some(true)
}

/// The objects that all streams of a connection share.
struct Shared<'a> {
    objects: &'a Objects,
    transport: Option<Transport>,
    pair: Option<Box<CandidatePair>>,
    /// What the far end reported of each sent stream, by SSRC.
    remote: BTreeMap<u64, &'a Object>,
}

impl<'a> Shared<'a> {
    fn of(objects: &'a Objects) -> Self {
        let (mut transport, mut remote) = (None, BTreeMap::new());
        let (mut named, mut nominated) = (None, None);
        for object in objects.values() {
            match object.kind() {
                Some("transport") => {
                    transport.get_or_insert(object);
                }
                // Firefox and old dumps have no transport, or one without the pair.
                Some("candidate-pair") if is_true(object, "selected") => {
                    named.get_or_insert(object);
                }
                Some("candidate-pair") if is_in_use(object) => {
                    nominated.get_or_insert(object);
                }
                Some(kind) if kind == "remote-inbound-rtp" || is_of_far_end(object) => {
                    if let Some(ssrc) = object.integer("ssrc") {
                        remote.entry(ssrc).or_insert(object);
                    }
                }
                _ => {}
            }
        }
        let selected = transport.and_then(|it| it.text("selectedCandidatePairId"));
        let used = selected.and_then(|id| objects.get(id)).or(named).or(nominated);
        Self {
            objects,
            remote,
            transport: transport.and_then(overlaid),
            pair: used.and_then(|object| pair(objects, object)).map(Box::new),
        }
    }

    fn report(&self, direction: StreamDirection, object: &Object) -> Option<StatsReport> {
        let mut report = StatsReport {
            pair: self.pair.clone(),
            transport: self.transport.clone(),
            ..StatsReport::default()
        };
        let whole = self.with_track(object);
        match direction {
            StreamDirection::Sent => {
                let mut outbound: OutboundRtp = overlaid(&whole)?;
                let codec = self.named(object, "codecId");
                outbound.mime_type = codec.and_then(|it| it.text("mimeType")).map(String::from);
                report.remote_inbound = self.reported(object, &outbound).and_then(remote_inbound);
                report.media_source = self.named(object, "mediaSourceId").and_then(overlaid);
                report.outbound = Some(Box::new(outbound));
            }
            StreamDirection::Received => {
                let mut inbound: InboundRtp = overlaid(&whole)?;
                let codec = self.named(object, "codecId");
                inbound.mime_type = codec.and_then(|it| it.text("mimeType")).map(String::from);
                report.inbound = Some(Box::new(inbound));
            }
        }
        Some(report)
    }

    /// A stream with what Chrome until version 111 has in the object of its track: frames, freezes,
    /// the jitter buffer and concealment.
    fn with_track<'b>(&self, object: &'b Object) -> Cow<'b, Object> {
        let Some(track) = self.named(object, "trackId") else { return Cow::Borrowed(object) };
        let mut whole = object.clone();
        for (name, value) in track.iter().filter(|(name, _)| !object.has(*name)) {
            whole.set(name, value.clone());
        }
        Cow::Owned(whole)
    }

    /// The level of a stream's sound at this moment, of the microphone or as it is played.
    fn level(&self, direction: StreamDirection, object: &Object) -> Option<f64> {
        let track = self.named(object, "trackId");
        match direction {
            StreamDirection::Sent => self.named(object, "mediaSourceId").or(track),
            StreamDirection::Received => track,
        }
        .and_then(|it| it.number("audioLevel"))
        .or_else(|| object.number("audioLevel"))
    }

    /// The object that a member of this one names.
    fn named(&self, object: &Object, member: &str) -> Option<&'a Object> {
        self.objects.get(object.text(member)?)
    }

    /// What the far end reported about a sent stream.
    fn reported(&self, object: &Object, outbound: &OutboundRtp) -> Option<&'a Object> {
        self.named(object, "remoteId")
            .or_else(|| self.remote.get(&u64::from(outbound.ssrc?)).copied())
    }
}

/// The report of the far end. Firefox before version 66 wrote its round trip in ms.
fn remote_inbound(object: &Object) -> Option<RemoteInboundRtp> {
    let mut remote: RemoteInboundRtp = overlaid(object)?;
    if let Some(rtt) = &mut remote.round_trip_time
        && is_of_far_end(object)
    {
        *rtt /= 1e3;
    }
    Some(remote)
}

/// Whether a candidate pair is the one in use.
fn is_in_use(pair: &Object) -> bool {
    pair.text("state") == Some("succeeded") && is_true(pair, "nominated")
}

fn pair(objects: &Objects, object: &Object) -> Option<CandidatePair> {
    Some(CandidatePair {
        timestamp: object.number("timestamp").unwrap_or(0.0),
        packets_sent: object.integer("packetsSent").unwrap_or(0),
        bytes_sent: object.integer("bytesSent").unwrap_or(0),
        packets_received: object.integer("packetsReceived").unwrap_or(0),
        bytes_received: object.integer("bytesReceived").unwrap_or(0),
        current_round_trip_time: object.number("currentRoundTripTime"),
        responses_received: object.integer("responsesReceived"),
        available_outgoing_bitrate: object.number("availableOutgoingBitrate"),
        local: candidate(objects, object, "localCandidateId"),
        remote: candidate(objects, object, "remoteCandidateId"),
    })
}

fn candidate(objects: &Objects, pair: &Object, member: &str) -> Candidate {
    let unknown = Object::default();
    let named = pair.text(member).and_then(|id| objects.get(id));
    let object = named.unwrap_or(&unknown);
    // Old drafts of the standard had longer names.
    let port = object.integer("port").or(object.integer("portNumber"));
    let protocol = object.text("protocol").or(object.text("transport"));
    Candidate {
        address: ["address", "ip", "ipAddress"]
            .iter()
            .find_map(|name| object.text(name)?.parse().ok()),
        port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
        protocol: protocol.unwrap_or_default().to_owned(),
        candidate_type: object.text("candidateType").unwrap_or_default().to_owned(),
        relay_protocol: object.text("relayProtocol").map(str::to_owned),
        network_type: object.text("networkType").map(str::to_owned),
        url: object.text("url").map(str::to_owned),
    }
}

/// A struct of a report, with all of its members at their defaults.
trait Defaults: Members {
    fn defaults() -> &'static Object;
}

fn object(written: &Map<String, Value>) -> Object {
    let mut object = Object::default();
    for (member, value) in written {
        object.insert(member, value.clone());
    }
    object
}

macro_rules! defaults {
    ($($name:ty),*) => {
        $(impl Defaults for $name {
            fn defaults() -> &'static Object {
                static DEFAULTS: LazyLock<Object> =
                    LazyLock::new(|| object(<$name>::written()));
                &DEFAULTS
            }
        })*
    };
}

defaults!(OutboundRtp, InboundRtp, RemoteInboundRtp, MediaSource, Transport);

/// The struct with the members that the object has in the right type. Dumps of other browsers and
/// other years lack some and write others differently.
fn overlaid<T: Defaults>(object: &Object) -> Option<T> {
    let whole = T::defaults();
    let known = object.iter().filter(|(name, _)| whole.has(*name));
    // Null stands for what a struct need not have.
    let missing = whole.iter().filter(|(name, value)| !value.is_null() && !object.has(*name));
    let all = known.chain(missing).map(|(name, value)| (name.text(), value));
    if let Ok(value) = T::deserialize(MapDeserializer::<_, serde_json::Error>::new(all)) {
        return Some(value);
    }
    // Programs of phones write numbers as texts.
    let mut right = T::written().clone();
    for (name, _) in whole.iter() {
        if let Some(value) = object.value(name) {
            right.insert(name.text().into(), as_number(value).unwrap_or_else(|| value.clone()));
        }
    }
    if let Ok(value) = T::deserialize(&right) {
        return Some(value);
    }
    // One by one, and without those of a wrong type.
    let mut right = T::written().clone();
    for (name, _) in whole.iter() {
        let Some(value) = object.value(name) else { continue };
        let before = right.insert(name.text().into(), value.clone());
        if T::deserialize(&right).is_err() {
            right.insert(name.text().into(), as_number(value).unwrap_or(Value::Null));
        }
        if T::deserialize(&right).is_err() {
            right.insert(name.text().into(), before.unwrap_or(Value::Null));
        }
    }
    T::deserialize(&right).ok()
}

/// The number or the truth that a text says.
fn as_number(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    match text.parse::<serde_json::Number>() {
        Ok(number) => Some(number.into()),
        Err(_) => text.parse::<bool>().ok().map(Value::from),
    }
}
