//! Converts a run of calls to a record, in the same format as that of a simulated run.
//!
//! Capacity, queue, and sent, received and lost packets come from the emulator. It sees every IP
//! packet between the two hosts of a flow, including RTCP, STUN and DTLS (a few per cent). Target
//! bitrate (the browser's bandwidth estimate) and round-trip time come from getStats, every 500 ms.
//! They are repeated in each row of 50 ms of that interval.

use std::collections::BTreeSet;
use std::mem;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_emu::{
    DirectionRecord, Emulation, FlowRecord, HopRecord, Plan, SAMPLE_INTERVAL, TrafficTotals,
};
use weir_net::path::Carried;
use weir_record::Record;
use weir_record::calls::derive::{self, Interval};
use weir_record::calls::file::{
    self, ApplicationRun, AskedPicture, CallFile, CallRun, EmulationFacts, Kind, Lateness,
};
use weir_record::calls::interval_entry;
use weir_record::calls::quality::Quality;
use weir_record::calls::stats::{self, OutboundRtp};
use weir_record::run::RunInfo;
use weir_scenario::call::{content_name, degradation_name};
use weir_scenario::{Direction, Flow, Scenario, Traffic};
use weir_sim::trace::{RateChange, Row, Trace};

use crate::measure::outcome::{CallOutcome, PeerOutcome};
use crate::measure::quality::ReceivedFrames;
use crate::measure::sound::{self, HeardSpeech};
use crate::measure::targets;
use crate::measure::transfer;
use crate::measure::warning;
use crate::measure::witness::{self, CallEnds};
use crate::peers::app::AppOutcome;
use crate::plan::CallConfig;
use crate::run::usage::Usage;

/// Builds the record of a run. `seen` is what peers saw of it. `attempts` is the number of
/// attempts: disturbed runs are repeated.
pub fn record(
    scenario: &Scenario,
    info: RunInfo,
    config: &CallConfig,
    outcome: &CallOutcome,
    seen: &[ReceivedFrames],
    attempts: usize,
) -> Record {
    let mut trace = Trace::new(scenario.flows.iter().map(|flow| flow.name.clone()).collect());
    for (planned, (call, result)) in
        scenario.calls().iter().zip(config.calls.iter().zip(&outcome.calls))
    {
        let hosts = call.ends.map(|end| config.participants[end].host);
        for (flow, [near, far]) in [(planned.up, [0, 1]), (planned.down, [1, 0])] {
            let Some(index) = flow else { continue };
            let peer = &result.peers[near];
            let intervals = peer.intervals();
            let ends = [hosts[near], hosts[far]];
            let flow = &scenario.flows[index];
            let relay = relay_of(config, peer);
            let path = Path::of(flow, index, relay, &outcome.emulation, ends);
            let mut rows = path.rows(&intervals);
            if peer.targets.is_empty() {
                for change in derive::estimate_changes(&intervals) {
                    trace.events.push(estimate_change(index, change));
                }
            } else {
                targets::fill(&mut rows, &peer.targets);
                trace.events.extend(targets::rate_changes(
                    &peer.targets,
                    index,
                    flow.start..=flow.stop,
                ));
            }
            trace.rows.extend(rows);
        }
    }
    let speech = sound::heard_speech(config, outcome, seen);
    trace.rows.extend(sound::rows::all(scenario, outcome, &speech, end_of(config, outcome)));
    for load in &config.loads {
        let flow = &scenario.flows[load.flow];
        let path = Path::of(flow, load.flow, None, &outcome.emulation, load.hosts);
        let mut rows = path.rows(&[]);
        let counted = outcome.loads.iter().find(|counted| counted.flow == load.flow);
        let seen = outcome.emulation.flow(load.hosts[0], load.hosts[1]);
        if let (Traffic::Tcp(_), Some(counted), Some(seen)) = (&flow.traffic, counted, seen) {
            transfer::fill(&mut rows, &counted.report, seen);
        }
        trace.rows.extend(rows);
    }
    if let (Some(access), Some(log)) = (&scenario.access, &outcome.emulation.access) {
        (trace.nodes, trace.access) = (access.names(), log.clone());
    }
    trace.rows.sort_by_key(|row| (row.time, row.flow));
    trace.events.sort_by_key(|event| (event.time, event.flow));
    let call = Some(call_file(config, outcome, seen, attempts, speech));
    Record { info, scenario: scenario.clone(), trace, call }
}

/// When the run ended.
fn end_of(config: &CallConfig, outcome: &CallOutcome) -> Timestamp {
    Timestamp::ZERO + outcome.ended.unwrap_or(config.duration)
}

/// The rows of an application's run: of the scenario's first media flow in each direction, between
/// the first participant and the host with which it exchanged most. The intervals are those of the
/// participant's first sent and first received video.
pub fn app_rows(
    scenario: &Scenario,
    outcome: &AppOutcome,
    sent: &[Interval],
    received: &[Interval],
) -> Vec<Row> {
    let emulation = &outcome.emulation;
    let far = busiest_host(outcome);
    let (mut has_up, mut has_down) = (false, false);
    let mut rows = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        let is_media = flow.traffic.media().is_some();
        let (leg, intervals) = match flow.direction {
            Direction::Up if is_media && !mem::replace(&mut has_up, true) => {
                (emulation.flow(0, far), sent)
            }
            Direction::Down if is_media && !mem::replace(&mut has_down, true) => {
                (emulation.flow(far, 0), received)
            }
            _ => (None, &[][..]),
        };
        let links = links_of(flow, emulation);
        let path = Path { flow: index, start: flow.start, stop: flow.stop, legs: vec![leg], links };
        rows.extend(path.rows(intervals));
    }
    rows
}

/// The host with which the first participant exchanged most; the last one of several.
fn busiest_host(outcome: &AppOutcome) -> usize {
    let (mut busiest, mut most) = (0, 0);
    for host in 1..outcome.network.hosts.len() {
        let mut bytes = 0;
        for ends in [(0, host), (host, 0)] {
            if let Some(flow) = outcome.emulation.flow(ends.0, ends.1) {
                bytes += flow.total.delivered.as_bytes();
            }
        }
        if bytes >= most {
            (busiest, most) = (host, bytes);
        }
    }
    busiest
}

fn one_way(hop: &HopRecord, direction: Direction) -> &DirectionRecord {
    match direction {
        Direction::Up => &hop.up,
        Direction::Down => &hop.down,
    }
}

/// The links that a flow crosses, in its direction.
fn links_of<'a>(flow: &Flow, emulation: &'a Emulation) -> Vec<&'a DirectionRecord> {
    let mut links = Vec::new();
    for hop in emulation.hops.get(flow.hops.clone()).unwrap_or_default() {
        links.push(one_way(hop, flow.direction));
    }
    links
}

/// What is known of an application's run without its dumps.
pub fn app_facts(outcome: &AppOutcome) -> CallFile {
    let mut warnings = warning::of_app(outcome);
    let (mut participants, mut calls, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    for (index, one) in outcome.participants.iter().enumerate() {
        if let Some(failure) = &one.failure {
            warnings.push(format!("{} failed: {failure}", one.name));
        }
        participants.push(participant_entry(&one.name, &one.version, one.usage));
        calls.push(file::CallEntry {
            call: index + 1,
            participants: vec![one.name.clone()],
            failure: one.failure.clone(),
        });
        hosts.push((index, one.name.as_str()));
    }
    warnings.extend_from_slice(&outcome.notes);
    let quality = qualities(&outcome.frames);
    CallFile {
        kind: Kind::Application(ApplicationRun { quality, ..ApplicationRun::default() }),
        kernel: outcome.kernel.clone(),
        engines: engines(&outcome.network, "browsers, codecs, the application and its server"),
        warnings,
        participants,
        calls,
        missed_packets: outcome.missed_packets,
        emulation: EmulationFacts {
            disturbed: !outcome.disturbances().is_empty(),
            nats: nat_facts(&outcome.emulation, &hosts),
            ..emulation_facts(&outcome.emulation)
        },
        ..CallFile::default()
    }
}

fn participant_entry(name: &str, program: &str, usage: Option<Usage>) -> file::Participant {
    file::Participant {
        name: name.into(),
        program: program.into(),
        cpu_cores: usage.map(|usage| usage.cpu_cores),
        memory_bytes: usage.map(|usage| usage.memory_bytes),
    }
}

fn qualities(seen: &[ReceivedFrames]) -> Vec<Quality> {
    let mut qualities = Vec::new();
    for received in seen {
        qualities.push(received.quality.clone());
    }
    qualities
}

/// Reasons given in the record not to trust it, one line each.
pub fn warnings(record: &Record) -> &[String] {
    record.call.as_ref().map_or(&[], |call| &call.warnings)
}

/// The host of the relay that a peer's media crosses, by its last pair.
fn relay_of(config: &CallConfig, peer: &PeerOutcome) -> Option<usize> {
    if let Some(relay) = config.relay {
        return Some(relay.host);
    }
    let pair = peer.pair.as_ref()?;
    let is_relayed = [&pair.local, &pair.remote].iter().any(|end| end.candidate_type == "relay");
    if is_relayed { Some(config.ice.as_ref()?.host) } else { None }
}

/// The emulator's view of a flow: the pairs of hosts between which its packets travel, and the
/// links.
pub(crate) struct Path<'a> {
    flow: usize,
    start: Timestamp,
    stop: Timestamp,
    /// From the sender, over the relay if there is one, to the receiver; `None` for a leg without
    /// packets.
    legs: Vec<Option<&'a FlowRecord>>,
    /// The links in its direction, in order.
    links: Vec<&'a DirectionRecord>,
}

impl<'a> Path<'a> {
    fn of(
        flow: &Flow,
        index: usize,
        relay: Option<usize>,
        emulation: &'a Emulation,
        [from, to]: [usize; 2],
    ) -> Self {
        let pairs = match relay {
            Some(relay) => vec![(from, relay), (relay, to)],
            None => vec![(from, to)],
        };
        let mut legs = Vec::new();
        for (from, to) in pairs {
            legs.push(emulation.flow(from, to));
        }
        let links = links_of(flow, emulation);
        Self { flow: index, start: flow.start, stop: flow.stop, legs, links }
    }

    /// Between the two hosts of `weir link`, over all hops.
    pub(crate) fn of_link(flow: &Flow, index: usize, emulation: &'a Emulation) -> Self {
        let leg = match flow.direction {
            Direction::Up => emulation.flow(0, 1),
            Direction::Down => emulation.flow(1, 0),
        };
        let mut links = Vec::new();
        for hop in &emulation.hops {
            links.push(one_way(hop, flow.direction));
        }
        Self { flow: index, start: flow.start, stop: flow.stop, legs: vec![leg], links }
    }

    /// One row per sample while the flow is active.
    pub(crate) fn rows(&self, intervals: &[Interval]) -> Vec<Row> {
        let of_legs = self.legs.iter().flatten().map(|leg| leg.samples.len());
        let of_links = self.links.iter().map(|link| link.samples.len());
        let samples = of_legs.chain(of_links).max().unwrap_or(0);
        let mut after = 0;
        let mut rows = Vec::new();
        for index in 0..samples {
            let time = Timestamp::ZERO + SAMPLE_INTERVAL * (index as i64 + 1);
            while intervals.get(after).is_some_and(|interval| interval.end < time) {
                after += 1;
            }
            let interval = intervals.get(after).filter(|interval| interval.start < time);
            // An estimate is valid from the time of its report on.
            let estimate = intervals[..after].last().and_then(|last| last.estimated_bitrate);
            if self.start < time && time <= self.stop {
                rows.push(self.row(index, time, interval, estimate));
            }
        }
        rows
    }

    fn row(
        &self,
        index: usize,
        time: Timestamp,
        interval: Option<&Interval>,
        estimate: Option<Bitrate>,
    ) -> Row {
        let sent = interval.and_then(|interval| interval.sent.as_ref());
        let stun = interval.and_then(|interval| interval.stun_rtt);
        let mut passed = Vec::new();
        let (mut queued, mut lost, mut wait) = (DataSize::ZERO, 0, None);
        let mut carried: Option<Carried> = None;
        for leg in &self.legs {
            let sample = leg.and_then(|leg| leg.samples.get(index));
            let traffic = sample.map_or_else(TrafficTotals::default, |sample| sample.traffic);
            queued += sample.map_or(DataSize::ZERO, |sample| sample.queued);
            let of_leg = sample.and_then(|sample| sample.carried);
            if let Some(of_leg) = of_leg {
                carried = Some(of_leg.narrower(carried));
            }
            lost += traffic.lost_packets + traffic.dropped_packets;
            if let Some(mean) = traffic.mean_wait() {
                wait = Some(wait.map_or(mean, |wait| wait + mean));
            }
            passed.push(traffic);
        }
        let (first, last) = (passed[0], passed[passed.len() - 1]);
        let at = self.links.iter().filter_map(|link| link.samples.get(index));
        let capacity = at.clone().filter_map(|sample| sample.capacity).min();
        let mean_capacity = at.filter_map(|sample| sample.mean_capacity).min();
        Row::new(time, self.flow)
            // The encoder's target is `target_bps` in call.json.
            .with_target(sent.and(estimate))
            // Packets that reached the network. The emulator does not see the sender's queue.
            .with_sent(first.offered)
            .with_received(last.delivered)
            .with_link(capacity, mean_capacity, carried.map(Carried::bits))
            .with_sent_packets(first.offered_packets)
            .with_lost_packets(lost)
            .with_rtt(sent.and_then(|sent| sent.rtt).or(stun).map(whole_micros))
            .with_queuing_delay(wait.map(whole_micros))
            .with_queue(queued)
    }
}

fn whole_micros(time: TimeDelta) -> TimeDelta {
    TimeDelta::from_micros(time.as_micros())
}

fn estimate_change(flow: usize, change: derive::EstimateChange) -> RateChange {
    RateChange::new(change.time, flow, change.from, change.to)
        .with_reason("not reported by getStats".into())
        .with_state("browser".into())
}

/// The part of a record that only runs of calls have.
fn call_file(
    config: &CallConfig,
    outcome: &CallOutcome,
    seen: &[ReceivedFrames],
    attempts: usize,
    speech: Vec<HeardSpeech>,
) -> CallFile {
    let (mut versions, mut participants, mut hosts) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (participant, player) in config.participants.iter().zip(&outcome.participants) {
        versions.insert(player.version.as_str());
        participants.push(participant_entry(&participant.name, &player.version, player.usage));
        hosts.push((participant.host, participant.name.as_str()));
    }
    let (mut calls, mut peers) = (Vec::new(), Vec::new());
    for (call, result) in config.calls.iter().zip(&outcome.calls) {
        let names = call.ends.map(|end| config.participants[end].name.clone());
        for (name, peer) in names.iter().zip(&result.peers) {
            peers.push(peer_entry(call.number, name.clone(), peer));
        }
        calls.push(file::CallEntry {
            call: call.number,
            participants: names.into(),
            failure: result.failure.clone(),
        });
    }
    let versions: Vec<&str> = versions.into_iter().collect();
    CallFile {
        kind: Kind::Call(CallRun {
            browser: versions.join(", "),
            relay: outcome.relay.clone(),
            attempts,
            picture: Some(asked_picture(config)),
            captures: captures(config, outcome),
            quality: qualities(seen),
            speech: speech.into_iter().map(|heard| heard.speech).collect(),
        }),
        kernel: outcome.kernel.clone(),
        engines: engines(&config.network, real_parts(config)),
        warnings: warning::of_calls(config, outcome),
        participants,
        calls,
        missed_packets: outcome.missed_packets,
        peers,
        emulation: EmulationFacts {
            disturbed: !warning::disturbances_of(config, outcome).is_empty(),
            nats: nat_facts(&outcome.emulation, &hosts),
            ..emulation_facts(&outcome.emulation)
        },
    }
}

/// What the NATs did, with the names of those behind them. `hosts` are the participants' hosts and
/// names.
fn nat_facts(emulation: &Emulation, hosts: &[(usize, &str)]) -> Vec<file::NatFacts> {
    let mut facts = Vec::new();
    for nat in &emulation.nats {
        let mut participants = Vec::new();
        for host in &nat.hosts {
            let named = hosts.iter().find(|(own, _)| own == host);
            participants.extend(named.map(|(_, name)| (*name).to_owned()));
        }
        facts.push(file::NatFacts {
            participants,
            addresses: nat.addresses.iter().map(ToString::to_string).collect(),
            mappings: nat.counters.mappings,
            blocked_packets: nat.counters.blocked_packets,
            unmapped_packets: nat.counters.unmapped_packets,
            filtered_packets: nat.counters.filtered_packets,
            hairpin_packets: nat.counters.hairpin_packets,
            unroutable_packets: nat.unroutable_packets,
            untranslated_packets: nat.counters.untranslated_packets,
        });
    }
    facts
}

fn asked_picture(config: &CallConfig) -> AskedPicture {
    let picture = &config.picture;
    AskedPicture {
        width: picture.width,
        height: picture.height,
        fps: picture.fps,
        codec: picture.codec.name().into(),
        content: said(picture.content, content_name),
        degradation: said(picture.degradation, degradation_name),
        layers: Some(picture.layers).filter(|layers| *layers > 1),
    }
}

/// The calls whose two ends were captured.
fn captures(config: &CallConfig, outcome: &CallOutcome) -> Vec<file::Capture> {
    let mut captures = Vec::new();
    for (call, result) in config.calls.iter().zip(&outcome.calls) {
        if let Some(ends) = CallEnds::of(config, call, result, outcome) {
            captures.push(witness::emit(call.number, &ends));
        }
    }
    captures
}

/// The real programs of a run, in words.
fn real_parts(config: &CallConfig) -> &'static str {
    if config.stack.is_some() {
        return "a stack of the arena, browsers, codecs";
    }
    match config.calls.iter().any(|call| call.pipeline.is_some()) {
        true => "pipelines with Weir's controllers, browsers, codecs",
        false => "browsers, codecs",
    }
}

/// Facts from the emulator, for any kind of run.
pub(crate) fn emulation_facts(emulation: &Emulation) -> EmulationFacts {
    let Emulation { real_time, cpu, foreign_packets, refused_packets, .. } = emulation;
    let mut changes = Vec::new();
    for (time, change) in emulation.changes_in_words() {
        changes.push(file::NetworkChange { time_s: time.as_secs_f64(), change });
    }
    EmulationFacts {
        disturbed: !emulation.disturbances().is_empty(),
        lateness_us: lateness(emulation),
        released_first: *real_time,
        cpu_busy_ratio: cpu.map(|cpu| cpu.busy),
        cpu_nice_ratio: cpu.map(|cpu| cpu.nice),
        cpu_stolen_ratio: cpu.map(|cpu| cpu.stolen),
        changes,
        foreign_packets: *foreign_packets,
        refused_packets: *refused_packets,
        nats: Vec::new(),
    }
}

/// Describes what was real and what was simulated, with the nodes of an access network by name.
/// `real` are the programs.
pub(crate) fn engines(network: &Plan, real: &str) -> String {
    let programs = format!("real: {real}, kernel; simulated: the network between the hosts");
    let Some(access) = &network.access else { return programs };
    let (mut with_hosts, mut simulated) = (Vec::new(), Vec::new());
    for (node, name) in access.config.names().into_iter().enumerate() {
        let mut attachments = network.hosts.iter().filter_map(|host| host.attachment);
        match attachments.any(|own| own.terminal == node) {
            true => with_hosts.push(name),
            false => simulated.push(name),
        }
    }
    format!(
        "{programs}, its {} included; nodes with real hosts: {}; simulated nodes: {}",
        access.config.title(),
        with_hosts.join(", "),
        simulated.join(", ")
    )
}

/// The name of a choice; `None` for the default, which a record does not mention.
fn said<T: Default + PartialEq>(choice: T, name: fn(T) -> &'static str) -> Option<String> {
    if choice != T::default() { Some(name(choice).into()) } else { None }
}

/// The histogram of the release lateness; `None` if no packet was released.
fn lateness(emulation: &Emulation) -> Option<Lateness> {
    let lateness = &emulation.lateness;
    let (mut edges, mut counts) = (vec![0], Vec::new());
    for (edge, count) in lateness.buckets_us() {
        edges.push(edge);
        counts.push(count);
    }
    Some(Lateness {
        edges,
        counts,
        p50: lateness.quantile(0.5)?.as_micros() as u64,
        p99: lateness.quantile(0.99)?.as_micros() as u64,
        max: lateness.max().as_micros() as u64,
    })
}

fn peer_entry(call: usize, participant: String, peer: &PeerOutcome) -> file::Peer {
    file::Peer {
        call,
        participant,
        layer: None,
        setup_ms: peer.setup.map(|setup| file::Setup {
            camera: setup.camera,
            joined: setup.joined,
            start: setup.start,
            described: Some(setup.described),
            ice: setup.ice,
            connected: setup.connected,
        }),
        first_frame_ms: peer.first_frame_ms,
        candidate_pair: peer.pair.as_ref().map(|pair| file::CandidatePair {
            local: candidate(&pair.local),
            remote: candidate(&pair.remote),
        }),
        transport: peer.last(|report| report.transport.as_ref()).map(|it| file::Transport {
            srtp_cipher: it.srtp_cipher.clone(),
            dtls_cipher: it.dtls_cipher.clone(),
            selected_candidate_pair_changes: it.selected_candidate_pair_changes,
        }),
        camera: peer.last(|report| report.media_source.as_ref()).map(|it| file::Camera {
            width: it.width,
            height: it.height,
            frames_per_second: it.frames_per_second,
        }),
        encoder: peer.last_sent().map(OutboundRtp::encoder),
        limitation_s: peer.last_sent().and_then(OutboundRtp::limitation),
        intervals: peer.intervals().iter().map(interval_entry).collect(),
    }
}

fn candidate(candidate: &stats::Candidate) -> file::Candidate {
    file::Candidate {
        address: candidate.address.map(|address| address.to_string()),
        port: candidate.port,
        protocol: candidate.protocol.clone(),
        candidate_type: candidate.candidate_type.clone(),
        relay_protocol: candidate.relay_protocol.clone(),
    }
}

#[cfg(test)]
mod tests;
