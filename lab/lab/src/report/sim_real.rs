//! Compares each flow of the real calls with its simulation.

use weir::units::Bitrate;
use weir_net::{Capacity, LinkConfig};

use super::format::{ErrorRow, SimReal, SimRealRow};
use super::{Column, Run, rounded};
use crate::metrics::{CapacityChange, Metrics, mean};
use crate::run::{Engine, is_ours};
use crate::scenario::{Direction, Scenario};

const DECIMALS: i32 = 6;

// Notes on metrics that are measured differently in simulated and real runs.
const RATE_NOTE: &str = "Real: all IP packets that the emulator carried, including RTCP, STUN and \
                         DTLS (a few per cent).";
const RTT_NOTE: &str = "Simulated: time from sending a packet to the feedback on it, including the \
                        wait for that feedback. Real: the value of getStats, from RTCP or STUN, \
                        which does not include such a wait.";

/// A metric that is compared: name, unit, value, and a note on the comparison.
struct Metric {
    name: &'static str,
    unit: &'static str,
    value: fn(&Metrics) -> Option<f64>,
    note: &'static str,
}

const METRICS: [Metric; 5] = [
    Metric {
        name: "Received rate, mean",
        unit: "Mbit/s",
        value: |metrics| Some(metrics.rate_mbps?.mean),
        note: RATE_NOTE,
    },
    Metric {
        name: "Utilization",
        unit: "%",
        value: |metrics| Some(metrics.utilization? * 100.0),
        note: RATE_NOTE,
    },
    Metric {
        name: "Queuing delay, 95th percentile",
        unit: "ms",
        value: |metrics| Some(metrics.queuing_delay_ms?.p95),
        note: "",
    },
    Metric {
        name: "Round-trip time, mean",
        unit: "ms",
        value: |metrics| Some(metrics.rtt_ms?.mean),
        note: RTT_NOTE,
    },
    Metric {
        name: "Loss",
        unit: "%",
        value: |metrics| Some(metrics.loss_ratio?.mean * 100.0),
        note: RATE_NOTE,
    },
];

/// What a browser's congestion control is, by names of ours, the best model first. Chromium and
/// Firefox have libwebrtc's GCC.
const BROWSER_MODELS: &[&str] = &["gcc", "gcc-draft", "gcc-2013"];
/// The same of Chromium with its own SCReAM v2.
const SCREAM_MODELS: &[&str] = &["scream-v2", "scream"];

/// Whether a simulated controller beside a real one means something: a controller of ours beside
/// itself, and a browser beside the best model of it that was simulated.
fn is_pair(simulated: &str, real: &str, columns: &[Column<'_>]) -> bool {
    if is_ours(real) {
        return simulated == real;
    }
    let was_simulated =
        |name: &&&str| columns.iter().any(|it| it.engine == Engine::Sim && it.controller == **name);
    let models = if real.contains("scream") { SCREAM_MODELS } else { BROWSER_MODELS };
    models.iter().find(was_simulated).is_some_and(|best| *best == simulated)
}

/// Compares each real controller with its simulation, for each flow. Empty without both engines.
pub(super) fn compare(scenario: &Scenario, columns: &[Column<'_>], flows: &[&str]) -> Vec<SimReal> {
    let of = |engine: Engine, flow: &str| -> Vec<&Column<'_>> {
        let has_flow = |column: &&Column<'_>| {
            column.engine == engine && column.runs.iter().any(|run| run.flow(flow).is_some())
        };
        columns.iter().filter(has_flow).collect()
    };
    let mut pairs = Vec::new();
    for flow in flows {
        for sim in of(Engine::Sim, flow) {
            let reals = of(Engine::Call, flow).into_iter();
            for real in reals.filter(|real| is_pair(sim.controller, real.controller, columns)) {
                let mut rows: Vec<SimRealRow> =
                    METRICS.iter().map(|metric| metric_row(metric, flow, sim, real)).collect();
                rows.extend(change_rows(scenario, flow, sim, real));
                pairs.push(SimReal {
                    flow: (*flow).into(),
                    sim_controller: sim.controller.into(),
                    real_controller: real.controller.into(),
                    rows,
                });
            }
        }
    }
    pairs
}

/// One row for each media flow, simulated controller and real one: the overview that a reader needs
/// first.
pub(super) fn errors(id: &str, columns: &[Column<'_>], flows: &[&str]) -> Vec<ErrorRow> {
    let of = |engine| columns.iter().filter(move |column| column.engine == engine);
    let row = |flow: &str, sim: &Column<'_>, real: &Column<'_>| {
        let mean = |column: &Column<'_>, value: fn(&Metrics) -> Option<f64>| {
            let of_run = |run: &Run| value(&run.flow(flow)?.metrics);
            column.mean(of_run).map(|mean| rounded(mean, DECIMALS))
        };
        let rate = |metrics: &Metrics| Some(metrics.rate_mbps?.mean);
        let delay = |metrics: &Metrics| Some(metrics.queuing_delay_ms?.p95);
        let (sim_rate, real_rate) = (mean(sim, rate)?, mean(real, rate)?);
        let (sim_delay, real_delay) = (mean(sim, delay), mean(real, delay));
        let error_ms = real_delay.zip(sim_delay).map(|(real, sim)| rounded(sim - real, DECIMALS));
        Some(ErrorRow {
            scenario: id.into(),
            flow: flow.into(),
            sim_controller: sim.controller.into(),
            real_controller: real.controller.into(),
            real_mbps: real_rate,
            sim_mbps: sim_rate,
            error_percent: (real_rate > 0.0)
                .then(|| rounded(100.0 * (sim_rate - real_rate) / real_rate, DECIMALS)),
            real_p95_ms: real_delay,
            sim_p95_ms: sim_delay,
            error_ms,
            is_disturbed: real.is_disturbed(),
        })
    };
    let is_media = |flow: &&&str| {
        let summary = columns.iter().flat_map(|column| column.runs).find_map(|run| run.flow(flow));
        summary.is_some_and(|summary| summary.kind == "media")
    };
    let of_flow = |flow: &&str| -> Vec<ErrorRow> {
        let pairs = of(Engine::Sim).flat_map(|sim| of(Engine::Call).map(move |real| (sim, real)));
        let pairs = pairs.filter(|(sim, real)| is_pair(sim.controller, real.controller, columns));
        pairs.filter_map(|(sim, real)| row(flow, sim, real)).collect()
    };
    flows.iter().filter(is_media).flat_map(of_flow).collect()
}

fn metric_row(metric: &Metric, flow: &str, sim: &Column<'_>, real: &Column<'_>) -> SimRealRow {
    let mean = |column: &Column<'_>| column.mean(|run| (metric.value)(&run.flow(flow)?.metrics));
    row(metric.name, metric.unit, mean(sim), mean(real), metric.note.into())
}

fn row(
    metric: &str,
    unit: &str,
    simulated: Option<f64>,
    real: Option<f64>,
    note: String,
) -> SimRealRow {
    let round = |value: f64| rounded(value, DECIMALS);
    SimRealRow {
        metric: metric.into(),
        unit: unit.into(),
        simulated: simulated.map(round),
        real: real.map(round),
        error: simulated.zip(real).map(|(simulated, real)| round(simulated - real)),
        note,
    }
}

/// One row for each capacity change that the scenario schedules, without outages. A recorded trace
/// has no rows: it changes every second, and no controller could reach each new capacity.
fn change_rows(
    scenario: &Scenario,
    flow: &str,
    sim: &Column<'_>,
    real: &Column<'_>,
) -> Vec<SimRealRow> {
    let wanted = scenario.flows.iter().find(|candidate| candidate.name == flow);
    let link = wanted.zip(scenario.only_hop()).map(|(flow, hop)| match flow.direction {
        Direction::Up => &hop.up,
        Direction::Down => &hop.down,
    });
    let planned = |link: &LinkConfig| match &link.capacity {
        Capacity::Schedule(schedule) => schedule.recording().is_none(),
        Capacity::Unlimited | Capacity::Trace(_) => false,
    };
    if !link.is_some_and(planned) {
        return Vec::new();
    }
    let changes = sim.runs.first().map_or(&[][..], |run| changes(run, flow));
    changes
        .iter()
        .enumerate()
        .filter(|(_, change)| change.capacity > Bitrate::ZERO)
        .map(|(index, change)| {
            let simulated = times_to_90_percent(sim, flow, index, change.capacity);
            let real = times_to_90_percent(real, flow, index, change.capacity);
            let name = format!(
                "Time to 90 % of {} Mbit/s from {} s",
                change.capacity.as_mbps_f64(),
                rounded(change.time.as_secs_f64(), 3)
            );
            let notes =
                [("simulated", simulated.as_slice()), ("real", real.as_slice())].map(not_reached);
            let note = notes.into_iter().flatten().collect::<Vec<_>>().join(" ");
            let mean = |times: &[Option<f64>]| mean(times.iter().copied().flatten().collect());
            row(&name, "s", mean(&simulated), mean(&real), note)
        })
        .collect()
}

fn changes<'a>(run: &'a Run, flow: &str) -> &'a [CapacityChange] {
    run.flow_index(flow).and_then(|index| run.changes.get(index)).map_or(&[], Vec::as_slice)
}

/// One entry for each run that had the change; `None` if the rate did not reach 90 % of the
/// capacity.
fn times_to_90_percent(
    column: &Column<'_>,
    flow: &str,
    index: usize,
    capacity: Bitrate,
) -> Vec<Option<f64>> {
    let time = |run: &Run| {
        let change = changes(run, flow).get(index)?;
        (change.capacity == capacity).then_some(change.reached_s)
    };
    column.runs.iter().filter_map(time).collect()
}

fn not_reached((engine, times): (&str, &[Option<f64>])) -> Option<String> {
    let missed = times.iter().filter(|time| time.is_none()).count();
    let runs = times.len();
    let noun = if runs == 1 { "run" } else { "runs" };
    (missed > 0).then(|| format!("Not reached in {missed} of {runs} {engine} {noun}."))
}
