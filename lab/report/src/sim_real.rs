//! Compares each flow of the real calls with its simulation.

use weir::units::Bitrate;
use weir_metrics::{CapacityChange, Metrics, mean};
use weir_net::Capacity;
use weir_record::run::Engine;
use weir_record::subject::{BrowserControl, Subject};
use weir_scenario::Scenario;

use super::format::{ErrorRow, SimReal, SimRealRow};
use super::{Column, DECIMALS, Run, rounded, rounded_if, values};

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
        value: values::rate_mbps,
        note: RATE_NOTE,
    },
    Metric { name: "Utilization", unit: "%", value: values::utilization_percent, note: RATE_NOTE },
    Metric {
        name: "Queuing delay, 95th percentile",
        unit: "ms",
        value: values::p95_queuing_delay_ms,
        note: "",
    },
    Metric { name: "Round-trip time, mean", unit: "ms", value: values::rtt_ms, note: RTT_NOTE },
    Metric { name: "Loss", unit: "%", value: values::loss_percent, note: RATE_NOTE },
];

/// What a browser's congestion control is, by names of ours, the best model first. Chromium and
/// Firefox have libwebrtc's GCC.
const BROWSER_MODELS: &[&str] = &["gcc", "gcc-draft", "gcc-2013"];
/// The same of Chromium with its own SCReAM v2.
const SCREAM_MODELS: &[&str] = &["scream-v2", "scream"];

/// Whether a simulated controller beside a real one means something: a controller of ours beside
/// itself, and a browser beside the best model of it that was simulated.
fn is_pair(simulated: &Subject, real: &Subject, columns: &[Column<'_>]) -> bool {
    let models = match real {
        Subject::Controller { .. } | Subject::NoController => return simulated == real,
        Subject::Browser { control: BrowserControl::ScreamV2, .. } => SCREAM_MODELS,
        Subject::Browser { .. }
        | Subject::Application { .. }
        | Subject::Stack { .. }
        | Subject::Command { .. }
        | Subject::Analyzed { .. } => BROWSER_MODELS,
    };
    for model in models {
        if columns.iter().any(|it| it.engine == Engine::Sim && it.subject.is_controller(model)) {
            return simulated.is_controller(model);
        }
    }
    false
}

/// Simulated and real columns that are compared with each other.
fn compared_pairs<'a, 'b>(columns: &'a [Column<'b>]) -> Vec<(&'a Column<'b>, &'a Column<'b>)> {
    let mut pairs = Vec::new();
    for sim in columns.iter().filter(|column| column.engine == Engine::Sim) {
        for real in columns.iter().filter(|column| column.engine == Engine::Call) {
            if is_pair(sim.subject, real.subject, columns) {
                pairs.push((sim, real));
            }
        }
    }
    pairs
}

/// Compares each real controller with its simulation, for each flow. Empty without both engines.
pub(super) fn compare(scenario: &Scenario, columns: &[Column<'_>], flows: &[&str]) -> Vec<SimReal> {
    let mut compared = Vec::new();
    for flow in flows {
        for (sim, real) in compared_pairs(columns) {
            if !sim.has_flow(flow) || !real.has_flow(flow) {
                continue;
            }
            let mut rows: Vec<SimRealRow> =
                METRICS.iter().map(|metric| metric_row(metric, flow, sim, real)).collect();
            rows.extend(change_rows(scenario, flow, sim, real));
            compared.push(SimReal {
                flow: (*flow).into(),
                sim_controller: sim.controller.into(),
                real_controller: real.controller.into(),
                rows,
            });
        }
    }
    compared
}

/// One row for each media flow, simulated controller and real one: the overview that a reader needs
/// first.
pub(super) fn errors(id: &str, columns: &[Column<'_>], flows: &[&str]) -> Vec<ErrorRow> {
    let mut rows = Vec::new();
    for flow in flows {
        let first = columns.iter().flat_map(|column| column.runs).find_map(|run| run.flow(flow));
        if first.is_none_or(|summary| summary.kind != "media") {
            continue;
        }
        for (sim, real) in compared_pairs(columns) {
            rows.extend(error_row(id, flow, sim, real));
        }
    }
    rows
}

/// `None` if one of the two has no rate.
fn error_row(id: &str, flow: &str, sim: &Column<'_>, real: &Column<'_>) -> Option<ErrorRow> {
    let [sim_mbps, real_mbps] = [sim, real].map(|column| column.of_flow(flow, values::rate_mbps));
    let (sim_mbps, real_mbps) = (sim_mbps?, real_mbps?);
    let [sim_p95_ms, real_p95_ms] =
        [sim, real].map(|column| column.of_flow(flow, values::p95_queuing_delay_ms));
    Some(ErrorRow {
        scenario: id.into(),
        flow: flow.into(),
        sim_controller: sim.controller.into(),
        real_controller: real.controller.into(),
        real_mbps,
        sim_mbps,
        error_percent: (real_mbps > 0.0)
            .then(|| rounded(100.0 * (sim_mbps - real_mbps) / real_mbps, DECIMALS)),
        real_p95_ms,
        sim_p95_ms,
        error_ms: sim_p95_ms.zip(real_p95_ms).map(|(sim, real)| rounded(sim - real, DECIMALS)),
        is_disturbed: real.is_disturbed(),
    })
}

fn metric_row(metric: &Metric, flow: &str, sim: &Column<'_>, real: &Column<'_>) -> SimRealRow {
    let [simulated, real] =
        [sim, real].map(|column| column.mean(|run| (metric.value)(&run.flow(flow)?.metrics)));
    row(metric.name, metric.unit, simulated, real, metric.note.into())
}

fn row(
    metric: &str,
    unit: &str,
    simulated: Option<f64>,
    real: Option<f64>,
    note: String,
) -> SimRealRow {
    SimRealRow {
        metric: metric.into(),
        unit: unit.into(),
        simulated: rounded_if(simulated, DECIMALS),
        real: rounded_if(real, DECIMALS),
        error: simulated.zip(real).map(|(sim, real)| rounded(sim - real, DECIMALS)),
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
    let mut rows = Vec::new();
    let planned = scenario.flows.iter().find(|candidate| candidate.name == flow);
    let (Some(planned), Some(hop)) = (planned, scenario.only_hop()) else { return rows };
    let Capacity::Schedule(schedule) = &hop.link(planned.direction).capacity else { return rows };
    let Some(first) = sim.runs.first().filter(|_| schedule.recording().is_none()) else {
        return rows;
    };
    for (index, change) in changes(first, flow).iter().enumerate() {
        if change.capacity <= Bitrate::ZERO {
            continue;
        }
        let simulated = times_to_90_percent(sim, flow, index, change.capacity);
        let real = times_to_90_percent(real, flow, index, change.capacity);
        let name = format!(
            "Time to 90 % of {} Mbit/s from {} s",
            change.capacity.as_mbps_f64(),
            rounded(change.time.as_secs_f64(), 3)
        );
        let notes = [not_reached("simulated", &simulated), not_reached("real", &real)];
        let note = notes.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let [simulated, real] =
            [simulated, real].map(|times| mean(times.into_iter().flatten().collect()));
        rows.push(row(&name, "s", simulated, real, note));
    }
    rows
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
    let of_runs = column.runs.iter().filter_map(|run| changes(run, flow).get(index));
    of_runs.filter(|change| change.capacity == capacity).map(|change| change.reached_s).collect()
}

fn not_reached(engine: &str, times: &[Option<f64>]) -> Option<String> {
    let missed = times.iter().filter(|time| time.is_none()).count();
    let runs = times.len();
    let noun = if runs == 1 { "run" } else { "runs" };
    (missed > 0).then(|| format!("Not reached in {missed} of {runs} {engine} {noun}."))
}
