//! Reads the records of a report one by one, and keeps of each what the page needs.
//!
//! ```text
//! every run.json -> sorted, each once -> which run draws what -> rows of each -> runs, mean curves
//! ```
//!
//! Memory does not grow with the length of the runs. For each run only its summary stays in memory.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rayon::prelude::*;
use weir::units::TimeDelta;
use weir_record::calls::Calls;
use weir_record::memory::Files;
use weir_record::run::Engine;
use weir_record::subject::Subject;
use weir_record::summary::Measurer;
use weir_record::{Reader, RecordError, Scenarios};

use super::airtime::Frames;
use super::cellular::Bearers;
use super::events::Thinner;
use super::series::{Average, Curve, Grid, Pen};
use super::server::Lanes;
use super::{Detail, Run, controllers, drawn_flows, exclusion, format, is_of_column, parts};

/// Number of runs that are read before their curves are added up.
const BATCH: usize = 64;

/// Everything that is drawn for one scenario, engine, controller and flow.
#[derive(Default)]
pub(super) struct Drawn {
    pub average: Average,
    pub grid: Option<Arc<Grid>>,
    /// Rate changes of the first run.
    pub events: Vec<format::RateChange>,
}

/// Drawings by scenario, engine, controller and flow.
pub(super) type Drawings = BTreeMap<(String, Engine, Subject, String), Drawn>;

/// A run to read, and what it draws.
struct Job {
    record: Reader,
    grid: Arc<Grid>,
    duration: TimeDelta,
    /// The flows with a curve.
    curves: Vec<usize>,
    /// The flows whose rate changes are shown.
    events: Vec<usize>,
    most_events: usize,
    /// Whether its responses to capacity changes are compared.
    changes: bool,
    /// Whether the bearers of its cellular cell are drawn, and what its forwarding server sent.
    details: bool,
}

/// Result of a job.
struct Done {
    run: Run,
    grid: Arc<Grid>,
    curves: Vec<(usize, Curve)>,
    events: Vec<(usize, Vec<format::RateChange>)>,
}

/// The runs of these folders, sorted by scenario, engine, controller, exclusion and seed; `None` if
/// `stop` was set.
pub(super) fn runs(
    folders: &[PathBuf],
    stop: &AtomicBool,
) -> Result<Option<(Vec<Run>, Drawings)>, RecordError> {
    let scenarios = Scenarios::default();
    let readers = folders.par_iter().map(|folder| Reader::open(folder, &scenarios));
    of_records(readers.collect::<Result<_, _>>()?, Detail::of, stop)
}

/// The same of records in memory, with every rate change.
pub(super) fn runs_in_memory(
    records: &[Files],
    stop: &AtomicBool,
) -> Result<Option<(Vec<Run>, Drawings)>, RecordError> {
    let scenarios = Scenarios::default();
    let readers = records.iter().map(|files| Reader::of_files(files, &scenarios));
    of_records(readers.collect::<Result<_, _>>()?, Detail::with_all_changes, stop)
}

/// `detail` says how much of each group is kept, by the number of groups.
fn of_records(
    records: Vec<Reader>,
    detail: fn(usize) -> Detail,
    stop: &AtomicBool,
) -> Result<Option<(Vec<Run>, Drawings)>, RecordError> {
    let records = sorted(records)?;
    let mut jobs = jobs(records, detail);
    let (mut runs, mut drawings) = (Vec::with_capacity(jobs.len()), Drawings::new());
    while !jobs.is_empty() {
        let rest = jobs.split_off(jobs.len().min(BATCH));
        let batch = std::mem::replace(&mut jobs, rest);
        let batch: Vec<_> =
            batch.into_par_iter().map(|job| job.run(stop)).collect::<Result<_, _>>()?;
        for done in batch {
            let Some(Done { run, grid, curves, events }) = done else { return Ok(None) };
            for (flow, curve) in curves {
                let drawn = drawings.entry(key(&run.record, flow)).or_default();
                drawn.average.add(&curve);
                drawn.grid = Some(Arc::clone(&grid));
            }
            for (flow, events) in events {
                drawings.entry(key(&run.record, flow)).or_default().events = events;
            }
            runs.push(run);
        }
    }
    Ok(Some((runs, drawings)))
}

fn key(record: &Reader, flow: usize) -> (String, Engine, Subject, String) {
    let info = &record.info;
    let flow = record.flows[flow].clone();
    (info.scenario.clone(), info.engine, info.subject.clone(), flow)
}

/// Sorts the records in the order of the report and removes duplicates.
fn sorted(mut records: Vec<Reader>) -> Result<Vec<Reader>, RecordError> {
    let controllers = controllers(records.iter().map(|record| &record.info));
    // Calls with the same seed differ, so their content decides their order, not the order of the
    // folders.
    let mut failure = None;
    records.sort_by(|a, b| order(a, b, &controllers, &mut failure));
    // The same record given twice is one run.
    records.dedup_by(|a, b| order(a, b, &controllers, &mut failure).is_eq());
    match failure {
        Some(error) => Err(error),
        None => Ok(records),
    }
}

/// Order of the report. Records that cannot be read are equal, and leave their `failure`.
fn order(
    a: &Reader,
    b: &Reader,
    controllers: &[String],
    failure: &mut Option<RecordError>,
) -> Ordering {
    let [a_key, b_key] = [a, b].map(|record| {
        let info = &record.info;
        let rank = controllers.iter().position(|name| *name == info.subject.to_string());
        (&info.scenario, info.engine, rank, record.exclusion(), info.seed)
    });
    a_key.cmp(&b_key).then_with(|| {
        compare(a, b).unwrap_or_else(|error| {
            *failure = Some(error);
            Ordering::Equal
        })
    })
}

/// Compares two records by the bytes of what was measured, and by their scenarios. Records of two
/// versions of this program may be equal.
fn compare(a: &Reader, b: &Reader) -> Result<Ordering, RecordError> {
    let order = a.scenario.text.cmp(&b.scenario.text);
    if order.is_ne() {
        return Ok(order);
    }
    for name in a.measured_files() {
        let order = match (a.open_file(name)?, b.open_file(name)?) {
            (Some(one), Some(other)) => {
                compare_files(BufReader::new(one), BufReader::new(other))
                    .map_err(|error| RecordError::Io { path: a.path(name), error })?
            }
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

fn compare_files(mut a: BufReader<impl Read>, mut b: BufReader<impl Read>) -> io::Result<Ordering> {
    loop {
        let (one, other) = (a.fill_buf()?, b.fill_buf()?);
        let length = one.len().min(other.len());
        if length == 0 {
            return Ok(one.len().cmp(&other.len()));
        }
        let order = one[..length].cmp(&other[..length]);
        if order.is_ne() {
            return Ok(order);
        }
        a.consume(length);
        b.consume(length);
    }
}

/// Decides what is drawn from each record.
fn jobs(records: Vec<Reader>, detail: fn(usize) -> Detail) -> Vec<Job> {
    let mut groups = 0;
    for of_scenario in records.chunk_by(is_of_scenario) {
        let columns = of_scenario.chunk_by(|a, b| is_of_column(&a.info, &b.info));
        groups += columns.count() * drawn_flows(of_scenario.iter()).len();
    }
    let detail = detail(groups);
    let mut jobs = Vec::with_capacity(records.len());
    for of_scenario in records.chunk_by(is_of_scenario) {
        let drawn = drawn_flows(of_scenario.iter());
        let engine = of_scenario[0].info.engine;
        let changes = of_scenario.iter().any(|record| record.info.engine != engine);
        let simulated = of_scenario.iter().position(|record| record.info.engine == Engine::Sim);
        let with_details = simulated.unwrap_or(0);
        let mut number = 0;
        for of_column in of_scenario.chunk_by(|a, b| is_of_column(&a.info, &b.info)) {
            let exclusions: Vec<_> = of_column.iter().map(exclusion).collect();
            let shown = parts(&exclusions).shown;
            let durations = of_column[shown.clone()].iter().map(|it| it.scenario.duration);
            let duration = durations.max().unwrap_or_default();
            let grid = Arc::new(Grid::over(duration, detail.points));
            let mut with_events: Vec<&str> = Vec::new();
            for (index, record) in of_column.iter().enumerate() {
                let (mut curves, mut events) = (Vec::new(), Vec::new());
                for (flow, name) in record.flows.iter().enumerate() {
                    if !shown.contains(&index) || !drawn.contains(&name.as_str()) {
                        continue;
                    }
                    curves.push(flow);
                    if !with_events.contains(&name.as_str()) {
                        events.push(flow);
                        with_events.push(name);
                    }
                }
                jobs.push(Job {
                    record: record.clone(),
                    grid: Arc::clone(&grid),
                    duration,
                    curves,
                    events,
                    most_events: detail.changes,
                    changes,
                    details: number == with_details,
                });
                number += 1;
            }
        }
    }
    jobs
}

fn is_of_scenario(a: &Reader, b: &Reader) -> bool {
    a.info.scenario == b.info.scenario
}

impl Job {
    /// `None` if `stop` was set.
    fn run(self, stop: &AtomicBool) -> Result<Option<Done>, RecordError> {
        if stop.load(Relaxed) {
            return Ok(None);
        }
        let Self { record, grid, duration, curves, events, most_events, changes, details } = self;
        let mut measurer = Measurer::new(&record.scenario, &record.info, &record.flows);
        let mut pens: Vec<Option<Pen<'_>>> = record.flows.iter().map(|_| None).collect();
        for flow in &curves {
            pens[*flow] = Some(Pen::new(&grid));
        }
        record.rows(|row| {
            let row = measurer.add_row(row);
            if let Some(pen) = &mut pens[row.flow] {
                pen.push(&row);
            }
        })?;
        record.node_rows(|row| measurer.add_node_row(row))?;
        record.bearer_rows(|row| measurer.add_bearer_row(row))?;
        let bearers = if details { Bearers::read(&record)? } else { None };
        let lanes = if details { Lanes::read(&record)? } else { None };
        let mut frames = Frames::default();
        record.frames(|frame| frames.push(frame))?;
        let mut thinners: Vec<(usize, Thinner)> =
            events.iter().map(|flow| (*flow, Thinner::new(duration, most_events))).collect();
        if !thinners.is_empty() {
            record.events(|change| {
                for (flow, thinner) in &mut thinners {
                    if *flow == change.flow {
                        return thinner.push(change);
                    }
                }
            })?;
        }
        let sections = record.scenario.section_spans();
        let recoveries = record.scenario.recoveries();
        let calls = record.call.as_ref().map(|call| Calls::of(call, &sections, &recoveries));
        let (summary, mut steps) = measurer.finish_with_changes(calls);
        if !changes {
            steps.clear();
        }
        let curves = pens.into_iter().enumerate();
        let curves = curves.filter_map(|(flow, pen)| Some((flow, pen?.finish()))).collect();
        let events = thinners.into_iter().map(|(flow, it)| (flow, it.finish())).collect();
        let run = Run { record, summary, changes: steps, frames, bearers, lanes };
        Ok(Some(Done { run, grid, curves, events }))
    }
}
