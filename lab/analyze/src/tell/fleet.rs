//! One call of many: the rows that a collection of calls has of it.
//!
//! The names are those of the columns in docs/reference/fleet-schema.md.

use weir_record::calls::stats::Kind;

use crate::found::played_audio::PlayedAudio;
use crate::found::{Found, RuleName};
use crate::judge::call::Call;
use crate::judge::cause::{Cause, Causes};
use crate::judge::network::DirectionEstimate;
use crate::judge::quality;
use crate::measure::good_time::GoodTime;
use crate::measure::samples::losses;
use crate::measure::samples::{Sample, SampledStream};
use crate::measure::seconds::{FleetSecond, seconds};
use crate::read::dump::{Dump, Stream, StreamDirection};
use crate::tell::answer;
use crate::tell::verdict;

/// What is kept of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetCall {
    /// Format of its dump.
    pub format: String,
    /// Name and major version of the browser.
    pub browser: Option<String>,
    /// Length that the dump covers.
    pub duration_s: f64,
    /// What `weir analyze` says first.
    pub verdict: String,
    /// The cause with the most seconds, weighted by what they do to the call; `None` if nothing
    /// limited it.
    pub main_cause: Option<Cause>,
    /// Seconds in which any cause held.
    pub bad_s: f64,
    /// Seconds in which each cause held, in the order of [`Cause::ALL`].
    pub cause_s: [f64; Cause::ALL.len()],
    /// Whether a connection failed, or was never there.
    pub failed: bool,
    /// Whether media went through a TURN relay or over TCP.
    pub relay_or_tcp: bool,
    /// Connections with media.
    pub connections: u64,
    /// Good time of received videos.
    pub good_time: GoodTime,
    /// Freezes of received videos.
    pub freezes: u64,
    /// Their seconds.
    pub frozen_s: f64,
    /// Share of the received audio that was concealed.
    pub concealed_ratio: Option<f64>,
    /// Smallest round-trip time.
    pub base_rtt_ms: Option<f64>,
    /// Smallest capacity up that was tested.
    pub uplink_capacity_kbps: Option<f64>,
    /// Smallest capacity down that was tested.
    pub downlink_capacity_kbps: Option<f64>,
    /// Its streams.
    pub streams: Vec<FleetStream>,
    /// Its findings, the largest effect first.
    pub findings: Vec<FleetFinding>,
}

/// What is kept of a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetStream {
    /// Such as `1 video sent 2`: numbers of the connection and the stream.
    pub name: String,
    /// Direction.
    pub direction: StreamDirection,
    /// Video or audio.
    pub kind: Kind,
    /// Time between its first and last report.
    pub duration_s: f64,
    /// Mean rate of IP packets.
    pub rate_kbps: f64,
    /// Median target of the encoder.
    pub target_kbps: Option<f64>,
    /// Median round-trip time.
    pub rtt_ms: Option<f64>,
    /// Share of lost packets.
    pub loss_ratio: Option<f64>,
    /// Median frame rate.
    pub frames_per_second: Option<f64>,
    /// Height of the last frames.
    pub height_px: Option<u64>,
    /// Median time in the jitter buffer.
    pub jitter_buffer_ms: Option<f64>,
    /// Share of the received audio that was concealed.
    pub concealed_ratio: Option<f64>,
    /// The same second by second.
    pub seconds: Vec<FleetSecond>,
}

/// What is kept of a finding.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetFinding {
    /// The stream or connection.
    pub stream: String,
    /// The part that is responsible.
    pub part: String,
    /// The rule that found it.
    pub rule: String,
    /// The cause that it names; `None` of effects.
    pub cause: Option<Cause>,
    /// Begin, since the first report.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// The sentence for people.
    pub says: String,
    /// Median rate of the samples that it rests on.
    pub rate_kbps: Option<f64>,
    /// Median round-trip time of these samples.
    pub rtt_ms: Option<f64>,
    /// Share of lost packets.
    pub loss_ratio: Option<f64>,
}

/// Analyzes a dump for a collection. Names, addresses and SSRCs are dropped first.
pub fn fleet_call(mut dump: Dump) -> FleetCall {
    dump.forget_names();
    let call = Call::of(&dump);
    let judgement = answer::judge(&call);
    let network = call.network();
    let causes = Causes::of(&judgement, network.duration_s);
    let found = &judgement.found;
    let findings = found.iter().map(kept_finding).collect();
    let freezes = quality::freezes(&dump);
    let mut heard = PlayedAudio::default();
    let mut streams = Vec::new();
    let mut base_rtt_ms: Option<f64> = None;
    for (connection, own) in dump.connections.iter().zip(&call.connections) {
        for (sampled, stream) in own.iter().zip(&connection.streams) {
            let own = quality::heard(stream);
            own.iter().for_each(|own| heard.add(own));
            let known = sampled.base_rtt_ms.into_iter().chain(base_rtt_ms);
            base_rtt_ms = known.min_by(f64::total_cmp);
            streams.push(kept_stream(stream, sampled, own));
        }
    }
    FleetCall {
        format: dump.format.to_string(),
        browser: dump.program.clone(),
        duration_s: network.duration_s,
        verdict: verdict::verdict(&call, &judgement),
        main_cause: causes.main,
        bad_s: causes.bad_s,
        cause_s: causes.seconds,
        failed: found.iter().any(|it| it.rule().is_end()),
        relay_or_tcp: found.iter().any(|it| it.rule() == RuleName::Path),
        connections: dump.connections.len() as u64,
        good_time: judgement.good_time,
        freezes: freezes.count,
        frozen_s: freezes.seconds,
        concealed_ratio: heard.concealed_ratio(),
        base_rtt_ms,
        uplink_capacity_kbps: least_capacity_kbps(&network.up),
        downlink_capacity_kbps: least_capacity_kbps(&network.down),
        streams,
        findings,
    }
}

fn kept_finding(found: &Found) -> FleetFinding {
    let mut losses: Vec<f64> = found.samples.iter().filter_map(|it| it.loss_ratio).collect();
    let mut rtts: Vec<f64> = found.samples.iter().filter_map(|it| it.rtt_ms).collect();
    let mut rates: Vec<f64> = found.samples.iter().map(|it| it.rate_kbps).collect();
    FleetFinding {
        stream: found.subject.to_string(),
        part: found.part().to_string(),
        rule: found.rule().name().into(),
        cause: Cause::of(found),
        from_s: found.from_s,
        to_s: found.to_s,
        says: found.says(),
        rate_kbps: median(&mut rates),
        rtt_ms: median(&mut rtts),
        loss_ratio: median(&mut losses),
    }
}

fn kept_stream(
    stream: &Stream,
    sampled: &SampledStream,
    heard: Option<PlayedAudio>,
) -> FleetStream {
    let samples = &sampled.samples;
    let mut targets: Vec<f64> = samples.iter().filter_map(|it| it.target_bps).collect();
    let mut rtts: Vec<f64> = samples.iter().filter_map(|it| it.rtt_ms).collect();
    let (mut bits, mut duration_s) = (0.0, 0.0);
    for Sample { start_s, end_s, rate_bps, .. } in samples {
        bits += rate_bps * (end_s - start_s);
        duration_s += end_s - start_s;
    }
    FleetStream {
        name: sampled.id.to_string(),
        direction: stream.direction,
        kind: stream.kind,
        duration_s,
        rate_kbps: if duration_s > 0.0 { bits / duration_s / 1e3 } else { 0.0 },
        target_kbps: median(&mut targets).map(|bps| bps / 1e3),
        rtt_ms: median(&mut rtts),
        loss_ratio: losses::of(samples),
        frames_per_second: sampled.frame_rate,
        height_px: samples.iter().rev().find_map(|it| it.size).map(|(_, height)| height.into()),
        jitter_buffer_ms: sampled.jitter_buffer_ms,
        concealed_ratio: heard.and_then(|it| it.concealed_ratio()),
        seconds: seconds(samples),
    }
}

fn least_capacity_kbps(estimate: &DirectionEstimate) -> Option<f64> {
    estimate.tested.iter().map(|it| it.bps / 1e3).min_by(f64::total_cmp)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
