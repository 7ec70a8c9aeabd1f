//! Converts a run of `weir link` to a record, in the same format as other records.
//!
//! The command's protocol and ports do not matter: a flow is all traffic in one direction between
//! the two hosts, as the emulator counts it.

use weir::units::{TimeDelta, Timestamp};
use weir_emu::{Emulation, Plan, SAMPLE_INTERVAL};
use weir_record::calls::file::{CallFile, Kind, LinkRun as LinkFacts};
use weir_record::run::RunInfo;
use weir_record::{LINK_DURATION_MAX, Record};
use weir_scenario::Scenario;
use weir_sim::trace::Trace;

use crate::measure::capture::Recorded;
use crate::measure::record::{self, Path};
use crate::measure::warning;
use crate::run::kernel_version;

/// A command that has ended, and the log of the network.
#[derive(Debug)]
pub struct LinkRun<'a> {
    /// The command and its arguments.
    pub command: &'a [String],
    /// The command at the other host, if any.
    pub peer: Option<&'a str>,
    /// The command's exit code.
    pub exit_code: u8,
    /// The emulated network.
    pub plan: &'a Plan,
    /// The emulator's log.
    pub emulation: &'a Emulation,
    /// The captures of both hosts; empty if there are none.
    pub captures: &'a [Recorded],
}

/// Builds the record of the run.
pub fn link_record(scenario: &Scenario, info: RunInfo, run: &LinkRun<'_>) -> Record {
    let duration = length(run.emulation);
    let scenario = scenario.clone().linked(duration.min(LINK_DURATION_MAX));
    let end = Timestamp::ZERO + scenario.duration;
    let mut trace = Trace::new(scenario.flows.iter().map(|flow| flow.name.clone()).collect());
    for (index, flow) in scenario.flows.iter().enumerate() {
        trace.rows.extend(Path::of_link(flow, index, run.emulation).rows(&[]));
    }
    trace.rows.sort_by_key(|row| (row.time, row.flow));
    if let (Some(access), Some(log)) = (&scenario.access, &run.emulation.access) {
        (trace.nodes, trace.access) = (access.names(), log.clone());
        trace.access.cut(end);
    }
    let mut warned = warning::of_emulation(run.emulation);
    warned.extend(warning::change_warnings(run.emulation));
    if duration > LINK_DURATION_MAX {
        let hours = LINK_DURATION_MAX.as_secs_f64() / 3600.0;
        warned.push(format!("the command ran for longer than the {hours} h that are recorded"));
    }
    Record { info, scenario, trace, call: Some(call_file(run, warned)) }
}

/// Time from the start to the last sample.
fn length(emulation: &Emulation) -> TimeDelta {
    let links = emulation.hops.iter().map(|hop| hop.up.samples.len());
    let flows = emulation.flows.iter().map(|flow| flow.samples.len());
    SAMPLE_INTERVAL * links.chain(flows).max().unwrap_or(0) as i64
}

fn call_file(run: &LinkRun<'_>, warnings: Vec<String>) -> CallFile {
    CallFile {
        kind: Kind::Link(LinkFacts {
            command: run.command.to_vec(),
            peer: run.peer.map(String::from),
            exit_code: run.exit_code,
        }),
        kernel: kernel_version(),
        engines: record::engines(run.plan, "the command"),
        warnings,
        missed_packets: run.captures.iter().map(|capture| capture.missed_packets).sum(),
        emulation: record::emulation_facts(run.emulation),
        ..CallFile::default()
    }
}

#[cfg(test)]
mod tests {
    use weir::units::DataSize;
    use weir_emu::{
        DirectionRecord, FlowRecord, FlowSample, HopRecord, HostPlan, Sample, TrafficTotals,
    };
    use weir_record::run::Engine;
    use weir_scenario::catalogue;

    use super::*;
    use weir_record::subject::Subject;

    /// Two packets upstream. The second one is lost, in the second interval.
    fn emulation() -> Emulation {
        let sample = |index: i64, lost_packets| FlowSample {
            time: Timestamp::ZERO + SAMPLE_INTERVAL * index,
            queued: DataSize::from_bytes(10),
            carried: None,
            traffic: TrafficTotals {
                offered_packets: 1,
                offered: DataSize::from_bytes(84),
                lost_packets,
                delivered_packets: 1 - lost_packets,
                delivered: DataSize::from_bytes(84 * (1 - lost_packets)),
                ..TrafficTotals::default()
            },
        };
        let samples = vec![sample(1, 0), sample(2, 1)];
        let up = FlowRecord { from: 0, to: 1, samples, total: TrafficTotals::default() };
        let moment = |FlowSample { time, queued, traffic, .. }| {
            let queuing_delay = TimeDelta::ZERO;
            Sample { time, capacity: None, mean_capacity: None, queued, queuing_delay, traffic }
        };
        let link = DirectionRecord {
            samples: up.samples.iter().copied().map(moment).collect(),
            ..DirectionRecord::default()
        };
        let hop = HopRecord { up: link.clone(), down: link };
        Emulation { hops: vec![hop], flows: vec![up], ..Emulation::default() }
    }

    #[test]
    fn a_link_flow_is_one_direction_and_has_rows_even_if_silent() {
        let scenario = &catalogue::find("demo/first-call").unwrap()[0];
        let (engine, subject) = (Engine::Link, Subject::of_label(Engine::Link, "true"));
        let info = RunInfo { scenario: scenario.id.clone(), subject, engine, seed: 1 };
        let emulation = emulation();
        let weir_net::Hop { up, down, .. } = &crate::network(scenario).hops[0];
        let plan = Plan::two_hosts(up, down);
        assert_eq!(plan.hosts, [HostPlan::at(0), HostPlan::at(1)]);
        let run = LinkRun {
            command: &["true".into()],
            peer: None,
            exit_code: 3,
            plan: &plan,
            emulation: &emulation,
            captures: &[],
        };
        let record = link_record(scenario, info, &run);
        let rows = record.trace.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| {
                let name = record.trace.flows[row.flow].as_str();
                let (sent, received) = (row.sent.as_bytes(), row.received.as_bytes());
                (row.time.as_millis(), name, sent, received, row.lost_packets)
            })
            .collect();
        assert_eq!(
            rows,
            [
                (50, "link-up", 84, 84, 0),
                (50, "link-down", 0, 0, 0),
                (100, "link-up", 84, 0, 1),
                (100, "link-down", 0, 0, 0),
            ]
        );
        assert_eq!(record.scenario.duration, TimeDelta::from_millis(100));
        let Kind::Link(link) = record.call.unwrap().kind else { panic!("a command") };
        assert_eq!(link.exit_code, 3);
    }
}
