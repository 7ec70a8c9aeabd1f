//! One call of many: the rows that a collection of calls has of it.
//!
//! The names are those of the columns in docs/reference/fleet-schema.md.

use std::fmt;

use weir_record::calls::stats::Kind;

use crate::found::heard::Heard;
use crate::found::{Found, Part, RuleName};
use crate::judge::call::Call;
use crate::judge::network::{DirectionEstimate, NetworkEstimate};
use crate::judge::quality;
use crate::measure::good_time::GoodTime;
use crate::measure::samples::losses;
use crate::measure::samples::{Sample, SampledStream};
use crate::measure::seconds::{FleetSecond, seconds};
use crate::read::dump::{Dump, Stream, StreamDirection};
use crate::tell::answer::{self, Judged};
use crate::tell::verdict;

/// What made a part of a call bad. Effects (freezes, concealment) are no causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The connection failed, was never there, or was interrupted.
    Connection,
    /// The path from this browser was full.
    UplinkCapacity,
    /// The path to this browser was full.
    DownlinkCapacity,
    /// The path from this browser lost packets, and nothing waited.
    UplinkLoss,
    /// The path to this browser lost packets, and nothing waited.
    DownlinkLoss,
    /// A radio cell paused: others had the air, or the signal faded.
    AirTime,
    /// Round trips are long even if nothing waits.
    Delay,
    /// The congestion controller held the rate down: any of its rules.
    Controller,
    /// The encoder kept a picture that was too large.
    Encoder,
    /// The sender's processor was too slow.
    Processor,
    /// The application gave little to send.
    Application,
    /// Who sends what this end receives, or a server between, chose a smaller picture.
    FarEnd,
    /// The video froze or audio was concealed, and no rule says why.
    Unexplained,
}

impl Cause {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 13] = [
        Self::Connection,
        Self::UplinkCapacity,
        Self::DownlinkCapacity,
        Self::UplinkLoss,
        Self::DownlinkLoss,
        Self::AirTime,
        Self::Delay,
        Self::Controller,
        Self::Encoder,
        Self::Processor,
        Self::Application,
        Self::FarEnd,
        Self::Unexplained,
    ];

    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::UplinkCapacity => "uplink_capacity",
            Self::DownlinkCapacity => "downlink_capacity",
            Self::UplinkLoss => "uplink_loss",
            Self::DownlinkLoss => "downlink_loss",
            Self::AirTime => "air_time",
            Self::Delay => "delay",
            Self::Controller => "controller",
            Self::Encoder => "encoder",
            Self::Processor => "processor",
            Self::Application => "application",
            Self::FarEnd => "far_end",
            Self::Unexplained => "unexplained",
        }
    }

    /// How much a second of it matters to those in the call, as in the order of findings.
    fn weight(self) -> f64 {
        match self {
            Self::Connection => 10.0,
            Self::UplinkCapacity | Self::DownlinkCapacity | Self::AirTime => 4.0,
            Self::Encoder | Self::Processor => 4.0,
            Self::UplinkLoss | Self::DownlinkLoss | Self::Delay => 3.0,
            Self::Controller | Self::Application | Self::FarEnd => 2.0,
            Self::Unexplained => 1.0,
        }
    }

    /// The cause that a finding names; `None` of effects, of what does no harm, and of what people
    /// may have wanted, such as a microphone that is muted.
    pub(crate) fn of(found: &Found) -> Option<Self> {
        let is_sent = found.subject.is_sent();
        match found.rule() {
            RuleName::ConnectionFailed
            | RuleName::NeverConnected
            | RuleName::Interruption
            | RuleName::Stall => Some(Self::Connection),
            RuleName::Capacity if is_sent => Some(Self::UplinkCapacity),
            RuleName::Capacity => Some(Self::DownlinkCapacity),
            RuleName::Bandwidth => Some(Self::UplinkCapacity),
            RuleName::Loss if is_sent => Some(Self::UplinkLoss),
            RuleName::Loss => Some(Self::DownlinkLoss),
            RuleName::AirTime => Some(Self::AirTime),
            RuleName::Delay => Some(Self::Delay),
            RuleName::Underestimate
            | RuleName::LossRule
            | RuleName::Recovery
            | RuleName::StartUp => Some(Self::Controller),
            RuleName::PictureSize | RuleName::NotEncoded => Some(Self::Encoder),
            RuleName::Processor | RuleName::Decoder => Some(Self::Processor),
            RuleName::Source => Some(Self::Application),
            RuleName::SmallPicture | RuleName::FarLoss | RuleName::FewFrames => Some(Self::FarEnd),
            RuleName::Restart
            | RuleName::Refused
            | RuleName::ServerError
            | RuleName::NoTurnServer
            | RuleName::Path
            | RuleName::PathChange
            | RuleName::Hole
            | RuleName::LateBegin
            | RuleName::NotSent
            | RuleName::SilentSource
            | RuleName::NothingReceived
            | RuleName::StreamEnds
            | RuleName::OneWay
            | RuleName::SilentSound
            | RuleName::NotDecoded
            | RuleName::Late
            | RuleName::Freeze
            | RuleName::Concealment => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
    let Judged { found, good_time } = answer::judge(&call);
    let network = call.network();
    let duration_s = duration_s(&dump, network);
    let (main_cause, bad_s, cause_s) = causes(&found, duration_s);
    let findings = found.iter().map(kept_finding).collect();
    let freezes = quality::freezes(&dump);
    let mut heard = Heard::default();
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
        duration_s,
        verdict: verdict::verdict(&call, &found, &good_time),
        main_cause,
        bad_s,
        cause_s,
        failed: found.iter().any(|it| it.rule().is_end()),
        relay_or_tcp: found.iter().any(|it| it.rule() == RuleName::Path),
        connections: dump.connections.len() as u64,
        good_time,
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

fn duration_s(dump: &Dump, network: &NetworkEstimate) -> f64 {
    let last = dump.events.iter().map(|event| event.time_s).fold(0.0, f64::max);
    if network.duration_s > 0.0 { network.duration_s } else { last }
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

fn kept_stream(stream: &Stream, sampled: &SampledStream, heard: Option<Heard>) -> FleetStream {
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

/// The cause with the largest effect, the seconds in which any held, and those of each.
fn causes(findings: &[Found], duration_s: f64) -> (Option<Cause>, f64, [f64; Cause::ALL.len()]) {
    let mut all = Vec::new();
    let mut cause_s = [0.0; Cause::ALL.len()];
    for (cause, seconds) in Cause::ALL.into_iter().zip(&mut cause_s) {
        let mut own = Vec::new();
        for found in findings.iter().filter(|it| Cause::of(it) == Some(cause)) {
            // A connection that is gone is bad until the call ends.
            let is_end = found.rule().is_end();
            let to_s = if is_end { duration_s.max(found.to_s) } else { found.to_s };
            own.push((found.from_s, to_s.min(duration_s)));
        }
        all.extend(own.iter().copied());
        *seconds = union_s(own);
    }
    let mut main_cause = None;
    let mut largest = 0.0;
    for (cause, seconds) in Cause::ALL.into_iter().zip(cause_s) {
        if seconds * cause.weight() > largest {
            (main_cause, largest) = (Some(cause), seconds * cause.weight());
        }
    }
    if findings.iter().any(|it| it.rule().is_end()) {
        main_cause = Some(Cause::Connection);
    }
    let effects = findings.iter().filter(|it| matches!(it.part(), Part::Video | Part::Audio));
    let suffered: Vec<(f64, f64)> =
        effects.map(|it| (it.from_s, it.to_s.min(duration_s))).collect();
    if main_cause.is_none() && !suffered.is_empty() {
        main_cause = Some(Cause::Unexplained);
        cause_s[Cause::ALL.len() - 1] = union_s(suffered.clone());
        all.extend(suffered);
    }
    (main_cause, union_s(all), cause_s)
}

/// Seconds that at least one of the spans covers.
pub(crate) fn union_s(mut spans: Vec<(f64, f64)>) -> f64 {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut covered_s, mut until_s) = (0.0, f64::NEG_INFINITY);
    for (from_s, to_s) in spans {
        covered_s += (to_s - from_s.max(until_s)).max(0.0);
        until_s = until_s.max(to_s);
    }
    covered_s
}

fn least_capacity_kbps(estimate: &DirectionEstimate) -> Option<f64> {
    estimate.tested.iter().map(|it| it.bps / 1e3).min_by(f64::total_cmp)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_that_two_findings_share_count_once() {
        assert_eq!(union_s(vec![(5.0, 8.0), (0.0, 2.0), (7.0, 9.0), (7.5, 8.5)]), 6.0);
        assert_eq!(union_s(Vec::new()), 0.0);
    }

    #[test]
    fn every_cause_has_its_own_column() {
        let names: std::collections::BTreeSet<&str> = Cause::ALL.map(Cause::name).into();
        assert_eq!(names.len(), Cause::ALL.len());
    }
}
