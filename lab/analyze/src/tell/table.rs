//! The streams of a call, a row each, and what is known of how its connections began.

use weir_record::calls::stats::{Candidate, Kind, StatsReport};

use crate::judge::call::Call;
use crate::judge::quality;
use crate::measure::connectivity::{self, UsedPath};
use crate::measure::samples::losses;
use crate::measure::samples::{Sample, SampledStream, median};
use crate::read::dump::{
    Connection, ConnectionChange, ConnectionState, Dump, Stream, StreamDirection,
};
use crate::read::packets::facts::StreamFacts;

/// A first report so soon after the connection, in s, has its first frame.
const SOON_S: f64 = 2.0;

/// What is known of a stream, whatever was found. `None` is unknown.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamRow {
    /// The connection's name in the dump.
    pub connection: String,
    /// Its direction.
    pub direction: StreamDirection,
    /// Video or audio.
    pub kind: Kind,
    /// Its SSRC.
    pub ssrc: u32,
    /// `rid` of a layer of simulcast.
    pub rid: Option<String>,
    /// Address and port from which it comes.
    pub from: Option<String>,
    /// Address and port to which it goes.
    pub to: Option<String>,
    /// Its codec, such as `VP8`.
    pub codec: Option<String>,
    /// The library that encodes or decodes it, such as `libvpx`.
    pub implementation: Option<String>,
    /// Whether hardware encodes or decodes it.
    pub is_hardware: Option<bool>,
    /// When its first report was, in s since the first one of the dump.
    pub from_s: f64,
    /// Time between its first and its last report.
    pub duration_s: f64,
    /// Mean rate of IP packets.
    pub rate_kbps: f64,
    /// Width and height of the last frames.
    pub size: Option<(u32, u32)>,
    /// Median frames a second.
    pub frames_per_second: Option<f64>,
    /// Packets that the receiver should have got. Of what a browser sent: those between its first
    /// and its last report, without retransmissions. With SSRCs of their own, these are in the
    /// sender's count and not in the receiver's.
    pub expected: u64,
    /// Of these, packets that never came.
    pub lost: Option<u64>,
    /// Lost over expected packets.
    pub loss_ratio: Option<f64>,
    /// Mean interarrival jitter, at its receiver.
    pub jitter_ms: Option<f64>,
    /// Longest time without a packet in s, as far as reports tell.
    pub longest_gap_s: Option<f64>,
    /// Median round-trip time.
    pub rtt_ms: Option<f64>,
    /// Packets that the receiver asked for again.
    pub nacks: Option<u64>,
    /// Key frames that the receiver asked for.
    pub picture_losses: Option<u64>,
    /// Key frames.
    pub key_frames: Option<u64>,
    /// Median time in the jitter buffer.
    pub jitter_buffer_ms: Option<f64>,
    /// Share of the received audio that was concealed.
    pub concealed_ratio: Option<f64>,
    /// What its packets say, in captures and event logs.
    pub packets: Option<StreamFacts>,
}

/// How a connection began. `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionRow {
    /// The connection's name in the dump.
    pub connection: String,
    /// Its path at the end, such as `UDP, relay to host`.
    pub path: Option<String>,
    /// The network of this device, such as `wifi`.
    pub network: Option<String>,
    /// The TURN server that it uses.
    pub relay: Option<String>,
    /// How long ICE took, in s.
    pub ice_s: Option<f64>,
    /// How long DTLS took after ICE, in s.
    pub dtls_s: Option<f64>,
    /// From its being connected to the first report with a decoded frame, in s.
    pub first_frame_s: Option<f64>,
}

/// The rows of all streams.
pub(crate) fn streams(call: &Call<'_>) -> Vec<StreamRow> {
    let mut rows = Vec::new();
    for (connection, sampled) in call.dump.connections.iter().zip(&call.connections) {
        for (stream, sampled) in connection.streams.iter().zip(sampled) {
            let row = row(connection, stream, sampled);
            rows.push(match facts(connection, stream) {
                Some(facts) => with_packets(row, facts),
                None => row,
            });
        }
    }
    rows
}

fn row(connection: &Connection, stream: &Stream, sampled: &SampledStream) -> StreamRow {
    let samples = &sampled.samples;
    let seconds: f64 = samples.iter().map(|it| it.end_s - it.start_s).sum();
    let bits: f64 = samples.iter().map(|it| it.rate_bps * (it.end_s - it.start_s)).sum();
    let expected: f64 = samples.iter().map(|it| it.expected).sum();
    let loss_ratio = losses::of(samples);
    let last = stream.reports.last().map(|it| &it.timed.report);
    let [local, remote] = ends(last);
    let (from, to) = match stream.direction {
        StreamDirection::Sent => (local, remote),
        StreamDirection::Received => (remote, local),
    };
    let own = last.map(Counters::of).unwrap_or_default();
    StreamRow {
        connection: connection.name.clone(),
        direction: stream.direction,
        kind: stream.kind,
        ssrc: stream.ssrc,
        rid: stream.rid.clone(),
        from,
        to,
        codec: own.codec,
        implementation: own.implementation,
        is_hardware: own.is_hardware,
        from_s: stream.reports.first().map_or(0.0, |it| it.timed.time.as_secs_f64()),
        duration_s: seconds,
        rate_kbps: if seconds > 0.0 { bits / seconds / 1e3 } else { 0.0 },
        size: samples.iter().rev().find_map(|it| it.size),
        frames_per_second: sampled.frame_rate,
        expected: expected.round() as u64,
        lost: loss_ratio.map(|loss| (loss * expected).round() as u64),
        loss_ratio,
        jitter_ms: jitter_ms(stream),
        longest_gap_s: longest_gap_s(samples),
        rtt_ms: median(samples, |it| it.rtt_ms),
        nacks: own.nacks,
        picture_losses: own.picture_losses,
        key_frames: own.key_frames,
        jitter_buffer_ms: sampled.jitter_buffer_ms,
        concealed_ratio: quality::heard(stream).and_then(|heard| heard.concealed_ratio()),
        packets: None,
    }
}

/// What was measured of the packets of a stream.
fn facts<'a>(connection: &'a Connection, stream: &Stream) -> Option<&'a StreamFacts> {
    let mut all = connection.packets.iter().flat_map(|log| &log.streams);
    all.find(|it| it.ssrc == stream.ssrc && it.direction == stream.direction)
}

/// Packets know more than the reports that are made of them.
fn with_packets(row: StreamRow, facts: &StreamFacts) -> StreamRow {
    let ends = facts.ends.map(|(from, to)| (from.to_string(), to.to_string())).unzip();
    // What was sent has the jitter of its receiver.
    let own_jitter_ms = match row.direction {
        StreamDirection::Received => facts.jitter_ms.map(|(mean, _)| mean),
        StreamDirection::Sent => None,
    };
    StreamRow {
        from: ends.0.or(row.from),
        to: ends.1.or(row.to),
        codec: facts.codec.clone().or(row.codec),
        jitter_ms: own_jitter_ms.or(row.jitter_ms),
        longest_gap_s: Some(facts.longest_gap.0 / 1e3),
        packets: Some(facts.clone()),
        ..row
    }
}

/// What the last report says of the whole stream.
#[derive(Default)]
struct Counters {
    codec: Option<String>,
    implementation: Option<String>,
    is_hardware: Option<bool>,
    nacks: Option<u64>,
    picture_losses: Option<u64>,
    key_frames: Option<u64>,
}

impl Counters {
    fn of(report: &StatsReport) -> Self {
        let codec = |mime_type: &Option<String>| {
            mime_type.as_deref().map(|it| it.rsplit('/').next().unwrap_or(it).to_owned())
        };
        if let Some(sent) = &report.outbound {
            return Self {
                codec: codec(&sent.mime_type),
                implementation: sent.encoder_implementation.clone(),
                is_hardware: sent.power_efficient_encoder,
                nacks: sent.nack_count,
                picture_losses: sent.pli_count,
                key_frames: sent.key_frames_encoded,
            };
        }
        let Some(received) = &report.inbound else { return Self::default() };
        Self {
            codec: codec(&received.mime_type),
            implementation: received.decoder_implementation.clone(),
            is_hardware: received.power_efficient_decoder,
            nacks: received.nack_count,
            picture_losses: received.pli_count,
            key_frames: received.key_frames_decoded,
        }
    }
}

/// The local and the remote end of the path.
fn ends(report: Option<&StatsReport>) -> [Option<String>; 2] {
    let Some(pair) = report.and_then(|it| it.pair.as_deref()) else { return [None, None] };
    [&pair.local, &pair.remote].map(place)
}

fn place(end: &Candidate) -> Option<String> {
    let address = end.address?;
    Some(std::net::SocketAddr::new(address, end.port).to_string())
}

/// Mean of the jitter that the receiver measured.
fn jitter_ms(stream: &Stream) -> Option<f64> {
    let mut jitters = Vec::new();
    for report in stream.reports.iter().map(|it| &it.timed.report) {
        let seconds = match stream.direction {
            StreamDirection::Sent => report.remote_inbound.as_ref().and_then(|it| it.jitter),
            StreamDirection::Received => report.inbound.as_deref().and_then(|it| it.jitter),
        };
        jitters.extend(seconds.filter(|it| it.is_finite()).map(|seconds| seconds * 1e3));
    }
    (!jitters.is_empty()).then(|| jitters.iter().sum::<f64>() / jitters.len() as f64)
}

/// Longest time in which reports have no packet, after the first one.
fn longest_gap_s(samples: &[Sample]) -> Option<f64> {
    let mut longest: Option<f64> = None;
    let mut silent_s = 0.0;
    for sample in samples.iter().filter(|it| it.packets_so_far > 0) {
        if sample.packets == 0 {
            silent_s += sample.end_s - sample.start_s;
            longest = Some(silent_s.max(longest.unwrap_or(0.0)));
        } else {
            silent_s = 0.0;
        }
    }
    longest
}

/// The rows of all connections, those without a stream too.
pub(crate) fn connections(dump: &Dump) -> Vec<ConnectionRow> {
    let mut names: Vec<&str> = Vec::new();
    let with_media = dump.connections.iter().map(|it| it.name.as_str());
    let with_events = dump.events.iter().map(|it| it.connection.as_str());
    for name in with_media.chain(with_events) {
        if !name.is_empty() && !names.contains(&name) && names.len() < 1_000 {
            names.push(name);
        }
    }
    names.into_iter().map(|name| begin(dump, name)).collect()
}

fn begin(dump: &Dump, name: &str) -> ConnectionRow {
    let connection = dump.connections.iter().find(|it| it.name == name);
    let path = connection.and_then(connectivity::last_path);
    let first = |wanted: ConnectionChange| {
        let mut own = dump.events.iter().filter(|it| it.connection == name);
        own.find(|it| it.change == wanted).map(|it| it.time_s)
    };
    let checking_s = first(ConnectionChange::Ice(ConnectionState::Connecting));
    let ice_s = first(ConnectionChange::Ice(ConnectionState::Connected));
    let whole_s = first(ConnectionChange::Whole(ConnectionState::Connected));
    let took = |from: Option<f64>, to: Option<f64>| Some(to? - from?).filter(|it| *it >= 0.0);
    let connected_s = whole_s.or(ice_s);
    let frame_s = connection.and_then(|it| first_frame_s(it, connected_s?));
    ConnectionRow {
        connection: name.into(),
        path: path.as_ref().map(UsedPath::words),
        network: path.as_ref().and_then(|it| Some(it.interface?.word().into())),
        relay: path.and_then(|it| it.relay),
        ice_s: took(checking_s, ice_s),
        dtls_s: took(ice_s, whole_s),
        first_frame_s: took(connected_s, frame_s),
    }
}

/// When the first report with a decoded frame was. `None` if a frame may have been decoded long
/// before the first report.
fn first_frame_s(connection: &Connection, connected_s: f64) -> Option<f64> {
    let mut first: Option<f64> = None;
    for stream in connection.streams.iter().filter(|it| it.kind == Kind::Video) {
        let mut has_none = false;
        for report in &stream.reports {
            let inbound = report.timed.report.inbound.as_deref();
            let Some(decoded) = inbound.and_then(|it| it.frames_decoded) else { continue };
            let at_s = report.timed.time.as_secs_f64();
            if decoded > 0 {
                let is_known = has_none || at_s - connected_s < SOON_S;
                first = first.into_iter().chain(is_known.then_some(at_s)).min_by(f64::total_cmp);
                break;
            }
            has_none = true;
        }
    }
    first
}

impl ConnectionRow {
    /// What a person wants to know of it, in a line; `None` if nothing is known.
    pub(crate) fn words(&self) -> Option<String> {
        let mut known = Vec::new();
        known.extend(self.path.clone());
        known.extend(self.network.as_ref().map(|it| format!("this device on {it}")));
        known.extend(self.relay.as_ref().map(|it| format!("relayed by {it}")));
        known.extend(self.ice_s.map(|it| format!("ICE took {it:.1} s")));
        known.extend(self.dtls_s.map(|it| format!("DTLS {it:.1} s")));
        known
            .extend(self.first_frame_s.map(|it| format!("first picture within {it:.1} s of that")));
        (!known.is_empty()).then(|| format!("{}: {}", self.connection, known.join(", ")))
    }
}
