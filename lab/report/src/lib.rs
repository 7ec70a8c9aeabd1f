//! The report: one HTML file with everything that the page of `lab/web` shows, computed from
//! records alone.
//!
//! ```text
//! records -> runs, measured -> series, events, boxes, tables -> JSON inside the viewer's page
//! ```
//!
//! The page computes no measurements; it draws the values that are computed here. Records are
//! sorted first, so their order on the command line does not change a byte.
#![forbid(unsafe_code)]

mod airtime;
mod boxes;
mod call_format;
mod calls;
mod cellular;
mod definitions;
mod events;
mod format;
#[cfg(test)]
mod generated;
mod judged;
mod loads;
mod page;
mod quality;
mod read;
mod series;
mod server;
mod server_format;
mod signalling;
mod sim_real;
mod split;
mod sweep;
mod tables;
#[cfg(test)]
mod typed;
mod values;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use weir::units::TimeDelta;
use weir_controllers::LabAlgorithm;
use weir_metrics::{CapacityChange, Metrics};
use weir_record::calls::{Calls, Exclusion};
use weir_record::gate::Judgement;
use weir_record::memory::Files;
use weir_record::run::{Engine, RunInfo};
use weir_record::subject::Subject;
use weir_record::summary::{FlowSummary, Summary};
use weir_record::{Reader, RecordError};
use weir_scenario::oracle;
use weir_scenario::{Flow, PaperValue, Traffic};

use airtime::Frames;
use cellular::Bearers;
use format::{Boxes, Group, Histogram, Point, Scenario};
use read::Drawings;
use server::Lanes;
use signalling::Signalling;

pub use format::Report;
pub use page::ReportError;
pub use signalling::find;
pub use sweep::SweepReport;

/// Decimals of a value in a table.
const DECIMALS: i32 = 6;

/// A run and what the page needs of it.
struct Run {
    record: Reader,
    summary: Summary,
    /// Capacity changes of each flow, where simulated runs are compared with calls.
    changes: Vec<Vec<CapacityChange>>,
    frames: Frames,
    /// Bearers of a cellular cell, of one run for each scenario.
    bearers: Option<Bearers>,
    /// What a forwarding server sent, of the same run.
    lanes: Option<Lanes>,
}

impl Run {
    fn flow_index(&self, flow: &str) -> Option<usize> {
        self.record.flows.iter().position(|name| name == flow)
    }

    fn flow(&self, flow: &str) -> Option<&FlowSummary> {
        self.summary.flows.iter().find(|summary| summary.flow == flow)
    }

    fn seed(&self) -> String {
        self.record.info.seed.to_string()
    }
}

/// Ranges of the runs of a column, which are sorted by exclusion.
struct Parts {
    shown: Range<usize>,
    left_out: Range<usize>,
    counted: Range<usize>,
}

/// Why a run's values are left out. A call that was made elsewhere has no other run, so it is shown
/// up to where it broke off.
fn exclusion(record: &Reader) -> Option<Exclusion> {
    let is_elsewhere = matches!(record.info.subject, Subject::Analyzed { .. });
    match record.exclusion() {
        Some(Exclusion::Failed) if is_elsewhere => None,
        why => why,
    }
}

/// The ranges of runs with these exclusions, in rising order.
fn parts(exclusions: &[Option<Exclusion>]) -> Parts {
    let all = exclusions.len();
    let sound = exclusions.partition_point(|exclusion| exclusion.is_none());
    let counted = exclusions.partition_point(|exclusion| *exclusion != Some(Exclusion::Disturbed));
    let (shown, left_out) = match sound {
        0 => (counted..all, 0..counted),
        _ => (0..sound, sound..all),
    };
    Parts { shown, left_out, counted: if counted == 0 { 0..all } else { 0..counted } }
}

/// Whether two runs belong to one column.
fn is_of_column(a: &RunInfo, b: &RunInfo) -> bool {
    (a.engine, &a.subject) == (b.engine, &b.subject)
}

/// All runs of one controller under one engine, by seed.
struct Column<'a> {
    /// Label of the subject.
    controller: &'a str,
    subject: &'a Subject,
    engine: Engine,
    /// The runs without an exclusion. If there are none, the disturbed ones.
    runs: &'a [Run],
    /// The other runs.
    left_out: &'a [Run],
    /// The runs that tables of calls count, failed calls among them. Disturbed runs count only if
    /// there are no others.
    counted: &'a [Run],
}

impl<'a> Column<'a> {
    /// `runs` are not empty, of one controller and engine, and sorted by exclusion: none, a failed
    /// call, disturbed.
    fn of(runs: &'a [Run]) -> Self {
        let info = &runs[0].record.info;
        let exclusions: Vec<Option<Exclusion>> =
            runs.iter().map(|run| exclusion(&run.record)).collect();
        let Parts { shown, left_out, counted } = parts(&exclusions);
        Self {
            controller: &runs[0].summary.controller,
            subject: &info.subject,
            engine: info.engine,
            runs: &runs[shown],
            left_out: &runs[left_out],
            counted: &runs[counted],
        }
    }

    /// Whether the machine disturbed all runs whose values are shown.
    fn is_disturbed(&self) -> bool {
        self.runs.first().is_some_and(|run| run.record.exclusion() == Some(Exclusion::Disturbed))
    }

    /// Mean over the runs that have the value.
    fn mean(&self, value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        weir_metrics::mean(self.runs.iter().filter_map(value).collect())
    }

    /// The same for tables.
    fn rounded_mean(&self, value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        rounded_if(self.mean(value), DECIMALS)
    }

    fn of_flow(&self, flow: &str, value: fn(&Metrics) -> Option<f64>) -> Option<f64> {
        self.of_section(flow, None, value)
    }

    /// Over the whole time if `section` is `None`.
    fn of_section(
        &self,
        flow: &str,
        section: Option<usize>,
        value: fn(&Metrics) -> Option<f64>,
    ) -> Option<f64> {
        self.rounded_mean(|run| {
            let summary = run.flow(flow)?;
            match section {
                None => value(&summary.metrics),
                Some(section) => value(&summary.sections.get(section)?.metrics),
            }
        })
    }

    fn has_flow(&self, flow: &str) -> bool {
        self.runs.iter().any(|run| run.flow_index(flow).is_some())
    }

    /// The value of each counted run that is compared with a published value.
    fn beside(&self, value: &PaperValue) -> Vec<f64> {
        let runs = if Calls::names(&value.metric) { self.counted } else { self.runs };
        runs.iter().filter_map(|run| run.summary.beside(value)).collect()
    }
}

impl Report {
    /// Measures the records of these folders, and shows the signalling of those that have it.
    /// `command` is the command that writes this report. Returns `None` if `stop` was set.
    pub fn of(
        folders: &[PathBuf],
        command: &str,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, RecordError> {
        let mut records = folders.to_vec();
        records.retain(|folder| signalling::is_run(folder) || !signalling::is_there(folder));
        let read = read::runs(&records, stop)?;
        let signalling = signalling::of(folders)?;
        Ok(read.map(|(runs, drawings)| Self::of_runs(&runs, &drawings, command).with(signalling)))
    }

    /// Adds the signalling of calls. A report of nothing else is named after it.
    fn with(mut self, signalling: Vec<Signalling>) -> Self {
        if let ([only], []) = (&signalling[..], &self.scenarios[..]) {
            self.title = format!("Weir report: {}", only.title);
        }
        Self { signalling, ..self }
    }

    /// The same of records in memory. It contains every rate change.
    pub fn of_files(
        records: &[Files],
        command: &str,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, RecordError> {
        let read = read::runs_in_memory(records, stop)?;
        Ok(read.map(|(runs, drawings)| Self::of_runs(&runs, &drawings, command)))
    }

    fn of_runs(runs: &[Run], drawings: &Drawings, command: &str) -> Self {
        let chosen: Vec<Chosen<'_>> = runs
            .chunk_by(|a, b| a.summary.scenario == b.summary.scenario)
            .map(Chosen::of)
            .collect();
        let judgements = judged::judge(runs);
        let scenarios: Vec<Scenario> =
            chosen.iter().map(|chosen| scenario(chosen, &judgements, drawings)).collect();
        let title = match scenarios.as_slice() {
            [only] => format!("Weir report: {}", only.id),
            _ => "Weir report".into(),
        };
        Self {
            schema: 1,
            title,
            command: command.into(),
            generator: format!("weir {}", env!("CARGO_PKG_VERSION")),
            definitions: definitions::of(
                runs.iter().map(|run| &*run.record.scenario),
                scenarios.iter().any(|scenario| !scenario.sim_real.is_empty()),
                scenarios.iter().any(|scenario| scenario.calls.is_some()),
            ),
            controllers: controllers(runs.iter().map(|run| &run.record.info)),
            verdicts: judged::verdicts(&judgements),
            then_and_now: chosen
                .iter()
                .flat_map(|it| judged::then_and_now(it.shown, &it.columns, &it.flows))
                .collect(),
            participants: chosen
                .iter()
                .flat_map(|it| calls::participants(it.id, &it.columns))
                .collect(),
            errors: chosen
                .iter()
                .flat_map(|it| sim_real::errors(it.id, &it.columns, &it.flows))
                .collect(),
            scenarios,
            signalling: Vec::new(),
            runs: runs.len(),
        }
    }
}

/// Names of the controllers: algorithms in the order of [`LabAlgorithm::named`], then the user's
/// own controllers and browsers by name.
fn controllers<'a>(runs: impl Iterator<Item = &'a RunInfo>) -> Vec<String> {
    let mut names: Vec<String> = runs.map(|run| run.subject.to_string()).collect();
    names.sort_by_key(|name| {
        let rank = LabAlgorithm::named().position(|algorithm| algorithm.name() == name);
        (rank.unwrap_or(usize::MAX), name.clone())
    });
    names.dedup();
    names
}

/// The runs of one scenario, and the flows of it that are shown.
struct Chosen<'a> {
    id: &'a str,
    shown: &'a weir_scenario::Scenario,
    /// Sorted by engine and controller.
    columns: Vec<Column<'a>>,
    flows: Vec<&'a str>,
}

impl<'a> Chosen<'a> {
    /// `runs` must not be empty. They are of one scenario, and sorted by engine, controller,
    /// exclusion and seed.
    fn of(runs: &'a [Run]) -> Self {
        let columns = runs.chunk_by(|a, b| is_of_column(&a.record.info, &b.record.info));
        Self {
            id: &runs[0].record.info.scenario,
            shown: &runs[0].record.scenario,
            columns: columns.map(Column::of).collect(),
            flows: drawn_flows(runs.iter().map(|run| &run.record)),
        }
    }
}

/// Names of the flows that are drawn. The first run's scenario decides which flows are drawn.
fn drawn_flows<'a>(records: impl Iterator<Item = &'a Reader> + Clone) -> Vec<&'a str> {
    let Some(first) = records.clone().next() else { return Vec::new() };
    let mut flows: Vec<&str> = Vec::new();
    for flow in records.flat_map(|record| &record.flows) {
        let described = first.scenario.flows.iter().find(|candidate| candidate.name == *flow);
        if described.is_none_or(is_drawn) && !flows.contains(&flow.as_str()) {
            flows.push(flow);
        }
    }
    flows
}

/// Whether a flow gets a curve. Audio, loads at a given rate and short transfers do not: their
/// dozens of curves would say nothing about a controller.
fn is_drawn(flow: &Flow) -> bool {
    match &flow.traffic {
        Traffic::Media(_) | Traffic::Quic(_) | Traffic::Link => true,
        Traffic::Tcp(tcp) => tcp.short.is_none(),
        _ => false,
    }
}

/// How much of each group a report keeps. With more groups it keeps less of each, so the file for
/// hundreds of runs has only a few megabytes.
#[derive(Clone, Copy)]
struct Detail {
    /// Maximum number of points of a curve.
    points: usize,
    /// Maximum number of rate changes.
    changes: usize,
}

impl Detail {
    /// Upper limit for a group. A screen has no columns for more points.
    const MOST: Self = Self { points: 1_200, changes: 400 };
    /// Lower limit for a group. Fewer points would hide a step of a few seconds.
    const LEAST: Self = Self { points: 200, changes: 20 };
    /// Limit for all groups together.
    const TOTAL: Self = Self { points: 120_000, changes: 20_000 };

    fn of(groups: usize) -> Self {
        let Self { points, changes } = Self::TOTAL;
        let groups = groups.max(1);
        Self {
            points: (points / groups).clamp(Self::LEAST.points, Self::MOST.points),
            changes: (changes / groups).clamp(Self::LEAST.changes, Self::MOST.changes),
        }
    }

    fn with_all_changes(groups: usize) -> Self {
        Self { changes: usize::MAX, ..Self::of(groups) }
    }
}

fn scenario(chosen: &Chosen<'_>, judgements: &[Judgement], drawings: &Drawings) -> Scenario {
    let Chosen { id, shown, columns, flows } = chosen;
    let mut groups = Vec::new();
    for flow in flows {
        groups.extend(columns.iter().filter_map(|column| group(column, flow, shown, drawings)));
    }
    Scenario {
        id: (*id).into(),
        title: shown.title.clone(),
        source: shown.source.clone(),
        description: shown.description.clone(),
        duration_s: longest(columns).as_secs_f64(),
        network: shown.network_in_words(),
        groups,
        paper: tables::paper(shown, columns),
        findings: tables::findings(shown, columns),
        sections: tables::sections(shown, columns, flows),
        expectations: judged::expectations(judgements, id),
        fairness: judged::fairness(columns),
        video: tables::video(columns, flows),
        split: split::of(shown, columns),
        loads: loads::of(shown, columns),
        sim_real: sim_real::compare(shown, columns, flows),
        calls: calls::of(columns),
        airtime: airtime::of(columns),
        cellular: cellular::of(columns),
        server: server::of(columns),
    }
}

/// Duration of the longest run. Runs of a command differ in length.
fn longest(columns: &[Column<'_>]) -> TimeDelta {
    let runs = columns.iter().flat_map(|column| column.runs);
    runs.map(|run| run.record.scenario.duration).max().unwrap_or(TimeDelta::ZERO)
}

/// One flow of a column; `None` if none of its runs has the flow.
fn group(
    column: &Column<'_>,
    flow: &str,
    shown: &weir_scenario::Scenario,
    drawings: &Drawings,
) -> Option<Group> {
    let runs: Vec<&Run> = column.runs.iter().filter(|run| run.flow_index(flow).is_some()).collect();
    let info = &runs.first()?.record.info;
    let key = (info.scenario.clone(), info.engine, info.subject.clone(), flow.into());
    let drawn = drawings.get(&key)?;
    let points: Vec<Point> = runs.iter().filter_map(|run| point(run, flow)).collect();
    let (scenario, index) = (&runs[0].record.scenario, runs[0].flow_index(flow)?);
    // A cell would have to be simulated, and a report computes nothing but what records say.
    let is_wired = scenario.access.is_none() && index < scenario.flows.len();
    let possible = if is_wired { oracle::on_wire(scenario, index, 0.0) } else { None };
    Some(Group {
        controller: column.controller.into(),
        engine: column.engine,
        flow: flow.into(),
        seeds: runs.iter().map(|run| run.seed()).collect(),
        command: command(&runs),
        series: drawn.average.series(drawn.grid.as_ref()?, possible.as_ref()),
        events: drawn.events.clone(),
        boxes: Boxes {
            utilization: boxes::of(&points, |point| point.utilization),
            rtt_ms: boxes::of(&points, |point| point.rtt_ms),
            responsiveness_s: boxes::of(&points, |point| point.responsiveness_s),
            loss_percent: boxes::of(&points, |point| point.loss_percent),
        },
        points,
        warnings: warnings(&runs, column.left_out, shown),
        lateness_us: worst_lateness(&runs),
    })
}

fn point(run: &Run, flow: &str) -> Option<Point> {
    let metrics = &run.flow(flow)?.metrics;
    Some(Point {
        seed: run.seed(),
        throughput_mbps: metrics.rate_mbps.map(|rate| rate.mean),
        utilization: metrics.utilization,
        p95_queuing_delay_ms: metrics.queuing_delay_ms.map(|delay| delay.p95),
        loss_percent: metrics.loss_ratio.map(|loss| loss.mean * 100.0),
        rtt_ms: metrics.rtt_ms.map(|rtt| rtt.mean),
        responsiveness_s: metrics.responsiveness_s,
        good_percent: run.summary.metric(Some(flow), "good_ratio").map(|good| good * 100.0),
    })
}

/// The command that repeats these runs: a single one for seeds 1 to N, else one for each seed.
fn command(runs: &[&Run]) -> String {
    let seeds = runs.iter().map(|run| run.record.info.seed);
    let first = &runs[0].record.info;
    // `weir link` makes one run at a time.
    let has_seeds = first.engine != Engine::Link;
    if has_seeds && runs.len() > 1 && seeds.eq(1..=runs.len() as u64) {
        return first.command_with("--seeds", &runs.len().to_string());
    }
    let mut commands: Vec<String> = runs.iter().map(|run| run.record.info.command()).collect();
    commands.dedup();
    commands.join(" && ")
}

/// Warnings in the records, and a warning for runs with another scenario text than the one shown.
fn warnings(runs: &[&Run], left_out: &[Run], shown: &weir_scenario::Scenario) -> Vec<String> {
    let mut warnings: Vec<String> = left_out.iter().map(left_out_in_words).collect();
    for run in runs {
        let differs = (run.record.scenario.text != shown.text)
            .then_some("this run's scenario file differs from the one that the report describes");
        for text in differs.into_iter().chain(noted(run)) {
            warnings.push(match runs.len() {
                1 => text.into(),
                _ => format!("seed {}: {text}", run.seed()),
            });
        }
    }
    warnings
}

/// Warnings in the record of a real run.
fn noted(run: &Run) -> impl Iterator<Item = &str> {
    let noted = run.record.call.as_ref().map(|call| call.warnings.iter());
    noted.into_iter().flatten().map(String::as_str)
}

fn left_out_in_words(run: &Run) -> String {
    let why = noted(run).collect::<Vec<_>>().join("; ");
    format!("seed {} is left out of all values: {why}", run.seed())
}

/// Histogram of the run with the largest 99th percentile of release lateness.
fn worst_lateness(runs: &[&Run]) -> Option<Histogram> {
    let calls = runs.iter().filter_map(|run| run.record.call.as_ref());
    let late = calls.filter_map(|call| call.emulation.lateness_us.as_ref());
    let whole = late.filter(|it| it.edges.len() == it.counts.len() + 1);
    whole.map(Histogram::of).max_by(|a, b| a.p99.total_cmp(&b.p99))
}

/// Rounds to a number of decimals, so that a file of curves stays small.
fn rounded_if(value: Option<f64>, decimals: i32) -> Option<f64> {
    Some(rounded(value?, decimals))
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
impl Report {
    /// Writes the records to disk and reports on them.
    pub(crate) fn of_records(records: &[weir_record::Record], command: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let write = |(index, record): (usize, &weir_record::Record)| {
            record.write(&place.path().join(index.to_string())).unwrap()
        };
        let folders: Vec<PathBuf> = records.iter().enumerate().map(write).collect();
        Self::of(&folders, command, &AtomicBool::new(false)).unwrap().unwrap()
    }
}

#[cfg(test)]
mod tests;
