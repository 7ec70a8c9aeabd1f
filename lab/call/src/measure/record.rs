//! Converts a run of calls to a record, in the same format as that of a simulated run.
//!
//! Capacity, queue, and sent, received and lost packets come from the emulator. It sees every IP
//! packet between the two hosts of a flow, including RTCP, STUN and DTLS (a few per cent). Target
//! bitrate (the browser's bandwidth estimate) and round-trip time come from getStats, every 500 ms.
//! They are repeated in each row of 50 ms of that interval.

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_emu::{DirectionRecord, Emulation, FlowRecord, Plan, SAMPLE_INTERVAL, TrafficTotals};
use weir_record::Record;
use weir_record::calls::derive::{self, Interval};
use weir_record::calls::file::{
    self, ApplicationRun, AskedPicture, CallFile, CallRun, EmulationFacts, Kind, Lateness,
};
use weir_record::calls::interval_entry;
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
                let changes = derive::estimate_changes(&intervals).into_iter();
                trace.events.extend(changes.map(|change| estimate_change(index, change)));
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
    let far = (1..outcome.network.hosts.len()).max_by_key(|&host| {
        let both = [emulation.flow(0, host), emulation.flow(host, 0)].into_iter().flatten();
        both.map(|flow| flow.total.delivered.as_bytes()).sum::<u64>()
    });
    let far = far.unwrap_or(0);
    let [up, down] = [Direction::Up, Direction::Down].map(|wanted| {
        let mut flows = scenario.flows.iter();
        flows.position(|flow| flow.traffic.media().is_some() && flow.direction == wanted)
    });
    let mut rows = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        let (leg, intervals) = match Some(index) {
            it if it == up => (emulation.flow(0, far), sent),
            it if it == down => (emulation.flow(far, 0), received),
            _ => (None, &[][..]),
        };
        let links = emulation.hops.get(flow.hops.clone()).unwrap_or_default().iter();
        let links = links.map(|hop| match flow.direction {
            Direction::Up => &hop.up,
            Direction::Down => &hop.down,
        });
        let (start, stop) = (flow.start, flow.stop);
        let path = Path { flow: index, start, stop, legs: vec![leg], links: links.collect() };
        rows.extend(path.rows(intervals));
    }
    rows
}

/// What is known of an application's run without its dumps.
pub fn app_facts(outcome: &AppOutcome) -> CallFile {
    let failed = outcome
        .participants
        .iter()
        .filter_map(|one| Some(format!("{} failed: {}", one.name, one.failure.as_ref()?)));
    let warnings = warning::of_app(outcome).into_iter().chain(failed);
    let participants = outcome.participants.iter();
    let quality = outcome.frames.iter().map(|received| received.quality.clone()).collect();
    CallFile {
        kind: Kind::Application(ApplicationRun { quality, ..ApplicationRun::default() }),
        kernel: outcome.kernel.clone(),
        engines: engines(&outcome.network, "browsers, codecs, the application and its server"),
        warnings: warnings.chain(outcome.notes.iter().cloned()).collect(),
        participants: participants
            .clone()
            .map(|one| file::Participant {
                name: one.name.clone(),
                program: one.version.clone(),
                cpu_cores: one.usage.map(|usage| usage.cpu_cores),
                memory_bytes: one.usage.map(|usage| usage.memory_bytes),
            })
            .collect(),
        calls: participants
            .enumerate()
            .map(|(index, one)| file::CallEntry {
                call: index + 1,
                participants: vec![one.name.clone()],
                failure: one.failure.clone(),
            })
            .collect(),
        missed_packets: outcome.missed_packets,
        emulation: EmulationFacts {
            disturbed: !outcome.disturbances().is_empty(),
            nats: nat_facts(&outcome.emulation, |host| {
                outcome.participants.get(host).map(|one| one.name.clone())
            }),
            ..emulation_facts(&outcome.emulation)
        },
        ..CallFile::default()
    }
}

/// Reasons given in the record not to trust it, one line each.
pub fn warnings(record: &Record) -> &[String] {
    record.call.as_ref().map_or(&[], |call| &call.warnings)
}

/// The host of the relay that a peer's media crosses, by its last pair.
fn relay_of(config: &CallConfig, peer: &PeerOutcome) -> Option<usize> {
    let ends = peer.pair.iter().flat_map(|pair| [&pair.local, &pair.remote]);
    let is_relayed = ends.into_iter().any(|end| end.candidate_type == "relay");
    let server = config.ice.as_ref().filter(|_| is_relayed).map(|ice| ice.host);
    config.relay.map(|relay| relay.host).or(server)
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
        let legs = pairs.into_iter().map(|(from, to)| emulation.flow(from, to));
        let crossed = emulation.hops.get(flow.hops.clone()).unwrap_or_default();
        let links = crossed.iter().map(|hop| match flow.direction {
            Direction::Up => &hop.up,
            Direction::Down => &hop.down,
        });
        let (start, stop) = (flow.start, flow.stop);
        Self { flow: index, start, stop, legs: legs.collect(), links: links.collect() }
    }

    /// Between the two hosts of `weir link`, over all hops.
    pub(crate) fn of_link(flow: &Flow, index: usize, emulation: &'a Emulation) -> Self {
        let hops = emulation.hops.iter();
        let (leg, links) = match flow.direction {
            Direction::Up => (emulation.flow(0, 1), hops.map(|hop| &hop.up).collect()),
            Direction::Down => (emulation.flow(1, 0), hops.map(|hop| &hop.down).collect()),
        };
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
        let samples = self.legs.iter().map(|leg| leg.as_ref()?.samples.get(index));
        let passed: Vec<TrafficTotals> = samples
            .clone()
            .map(|sample| sample.map_or_else(TrafficTotals::default, |sample| sample.traffic))
            .collect();
        let queued = samples.flatten().map(|sample| sample.queued).sum();
        let (first, last) = (passed[0], passed[passed.len() - 1]);
        let waits = passed.iter().filter_map(TrafficTotals::mean_wait);
        let at = self.links.iter().filter_map(|link| link.samples.get(index));
        let capacity = at.clone().filter_map(|sample| sample.capacity).min();
        let mean_capacity = at.filter_map(|sample| sample.mean_capacity).min();
        let lost = passed.iter().map(|leg| leg.lost_packets + leg.dropped_packets).sum();
        Row::new(time, self.flow)
            .with_capacity(capacity)
            .with_mean_capacity(mean_capacity.filter(|mean| Some(*mean) != capacity))
            // The encoder's target is `target_bps` in call.json.
            .with_target(sent.and(estimate))
            // Packets that reached the network. The emulator does not see the sender's queue.
            .with_sent(first.offered)
            .with_received(last.delivered)
            .with_sent_packets(first.offered_packets)
            .with_lost_packets(lost)
            .with_rtt(sent.and_then(|sent| sent.rtt).or(stun).map(whole_micros))
            .with_queuing_delay(waits.reduce(|sum, wait| sum + wait).map(whole_micros))
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
    let mut versions: Vec<&str> =
        outcome.participants.iter().map(|player| player.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let participants = config.participants.iter().zip(&outcome.participants);
    let calls = config.calls.iter().zip(&outcome.calls);
    let name = |participant: usize| config.participants[participant].name.clone();
    CallFile {
        kind: Kind::Call(CallRun {
            browser: versions.join(", "),
            relay: outcome.relay.clone(),
            attempts,
            picture: Some(asked_picture(config)),
            captures: captures(config, outcome),
            quality: seen.iter().map(|received| received.quality.clone()).collect(),
            speech: speech.into_iter().map(|heard| heard.speech).collect(),
        }),
        kernel: outcome.kernel.clone(),
        engines: engines(&config.network, real_parts(config)),
        warnings: warning::of_calls(config, outcome),
        participants: participants
            .map(|(participant, player)| file::Participant {
                name: participant.name.clone(),
                program: player.version.clone(),
                cpu_cores: player.usage.map(|usage| usage.cpu_cores),
                memory_bytes: player.usage.map(|usage| usage.memory_bytes),
            })
            .collect(),
        calls: calls
            .clone()
            .map(|(call, result)| file::CallEntry {
                call: call.number,
                participants: call.ends.map(name).into(),
                failure: result.failure.clone(),
            })
            .collect(),
        missed_packets: outcome.missed_packets,
        peers: calls
            .flat_map(|(call, result)| {
                let ends = call.ends.into_iter().zip(&result.peers);
                ends.map(|(end, peer)| peer_entry(call.number, name(end), peer))
            })
            .collect(),
        emulation: EmulationFacts {
            disturbed: !warning::disturbances_of(config, outcome).is_empty(),
            nats: nat_facts(&outcome.emulation, |host| {
                let mut those = config.participants.iter();
                those.find(|one| one.host == host).map(|one| one.name.clone())
            }),
            ..emulation_facts(&outcome.emulation)
        },
    }
}

/// What the NATs did, with the names of those behind them.
fn nat_facts(emulation: &Emulation, name: impl Fn(usize) -> Option<String>) -> Vec<file::NatFacts> {
    let mut facts = Vec::new();
    for nat in &emulation.nats {
        facts.push(file::NatFacts {
            participants: nat.hosts.iter().filter_map(|host| name(*host)).collect(),
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
    let changes = emulation.changes_in_words().into_iter();
    EmulationFacts {
        disturbed: !emulation.disturbances().is_empty(),
        lateness_us: lateness(emulation),
        released_first: *real_time,
        cpu_busy_ratio: cpu.map(|cpu| cpu.busy),
        cpu_nice_ratio: cpu.map(|cpu| cpu.nice),
        cpu_stolen_ratio: cpu.map(|cpu| cpu.stolen),
        changes: changes
            .map(|(time, change)| file::NetworkChange { time_s: time.as_secs_f64(), change })
            .collect(),
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
    (choice != T::default()).then(|| name(choice).into())
}

/// The histogram of the release lateness; `None` if no packet was released.
fn lateness(emulation: &Emulation) -> Option<Lateness> {
    let buckets: Vec<(u64, u64)> = emulation.lateness.buckets_us().collect();
    let [p50, p99] =
        [0.5, 0.99].map(|share| Some(emulation.lateness.quantile(share)?.as_micros() as u64));
    Some(Lateness {
        edges: std::iter::once(0).chain(buckets.iter().map(|bucket| bucket.0)).collect(),
        counts: buckets.iter().map(|bucket| bucket.1).collect(),
        p50: p50?,
        p99: p99?,
        max: emulation.lateness.max().as_micros() as u64,
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
mod tests {
    use weir::units::DataSize;
    use weir_record::calls::derive::Sent;

    use weir_emu::Sample;

    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn an_estimate_is_in_the_rows_after_its_report_and_a_rate_in_those_before() {
        let sample = |index: i64| Sample {
            time: ms(50 * (index + 1)),
            capacity: None,
            mean_capacity: None,
            queued: DataSize::ZERO,
            queuing_delay: TimeDelta::ZERO,
            traffic: TrafficTotals::default(),
        };
        let link = DirectionRecord { samples: (0..6).map(sample).collect(), ..Default::default() };
        let interval = |from, to, kbps, rtt| Interval {
            start: ms(from),
            end: ms(to),
            sent: Some(Sent { rtt: Some(TimeDelta::from_millis(rtt)), ..Sent::default() }),
            estimated_bitrate: Some(Bitrate::from_kbps(kbps)),
            ..Interval::default()
        };
        let (start, stop) = (ms(0), ms(300));
        let path = Path { flow: 0, start, stop, legs: vec![None], links: vec![&link] };
        let rows = path.rows(&[interval(-10, 100, 300, 20), interval(100, 205, 900, 30)]);
        let rtts: Vec<_> = rows.iter().map(|row| row.rtt.map(TimeDelta::as_millis)).collect();
        assert_eq!(rtts, [Some(20), Some(20), Some(30), Some(30), None, None]);
        let targets: Vec<_> = rows.iter().map(|row| row.target).collect();
        let first = Some(Bitrate::from_kbps(300));
        assert_eq!(targets, [None, None, first, first, None, None]);
    }
}
