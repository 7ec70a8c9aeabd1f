//! Simulates scenarios, several at a time, and hands the results to Python.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use arrow_schema::ArrowError;
use pyo3::prelude::*;
use rayon::prelude::*;
use weir_controllers::LabController;
use weir_net::Seed;
use weir_record::compare::{By, differences, found_in, nothing_of_both};
use weir_record::gate;
use weir_record::run::RunInfo;
use weir_record::summary::{Measurer, Summary};
use weir_record::{RecordError, Writer};
use weir_scenario::Controllers;
use weir_sim::Trace;

use crate::arrow::ArrowTable;
use crate::controller::{Fault, own_factory};
use crate::error;
use crate::scenario::Scenario;
use crate::tables::{self, MeasuredRun, Table};

/// How often a waiting call looks for Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

/// The results of some runs.
#[pyclass(frozen, module = "weir_rtc")]
pub struct Runs(pub Vec<MeasuredRun>);

#[pymethods]
impl Runs {
    /// The rows of each flow and 50 ms, as an Arrow table with the columns of `series.csv`.
    #[getter]
    fn series(&self) -> PyResult<ArrowTable> {
        shared(tables::series(&self.0))
    }

    /// Every change of a target bitrate, with its reason, as an Arrow table.
    #[getter]
    fn events(&self) -> PyResult<ArrowTable> {
        shared(tables::events(&self.0))
    }

    /// The metrics of each flow, and of each of its sections, as an Arrow table.
    #[getter]
    fn summaries(&self) -> PyResult<ArrowTable> {
        shared(tables::summaries(&self.0))
    }

    /// What the scenarios expect, and what came of it: tuples of scenario, controller, text,
    /// outcome and measured value.
    fn judgements(&self) -> Vec<(String, String, String, String, Option<f64>)> {
        let summaries: Vec<Summary> = self.0.iter().map(|run| run.summary.clone()).collect();
        let mut rows = Vec::new();
        for it in gate::judge(&summaries, gate::Certainty::OfMany) {
            let outcome = it.outcome.as_str().to_string();
            rows.push((it.scenario, it.controller, it.row.text, outcome, it.row.measured));
        }
        rows
    }

    /// The summary of each run as JSON, as `weir run --json` prints it.
    fn json(&self) -> PyResult<Vec<String>> {
        let mut texts = Vec::new();
        for run in &self.0 {
            texts.push(serde_json::to_string(&run.summary).map_err(error)?);
        }
        Ok(texts)
    }

    /// The folder of each run's record, below the folder of all.
    fn folders(&self) -> Vec<PathBuf> {
        self.0.iter().map(|run| run.info.folder()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<weir_rtc.Runs: {} runs>", self.0.len())
    }
}

/// A table whose memory Python shares.
fn shared(table: Result<Table, ArrowError>) -> PyResult<ArrowTable> {
    let table = table.map_err(error)?;
    Ok(ArrowTable::new(table.batches, table.schema))
}

/// A run that was asked for.
struct Planned<'a> {
    scenario: Arc<weir_scenario::Scenario>,
    controller: &'a LabController,
    seed: u64,
}

impl Planned<'_> {
    fn measure(
        &self,
        out: Option<&Path>,
        stop: &AtomicBool,
    ) -> Result<Option<MeasuredRun>, RecordError> {
        with_a_thread_state(|| measure(&self.scenario, self.controller, self.seed, out, stop))
    }
}

/// Simulates every scenario under every controller with every seed, in that order of nesting.
#[pyfunction]
#[pyo3(signature = (scenarios, controllers, seeds, jobs, out))]
pub fn run(
    py: Python<'_>,
    scenarios: Vec<PyRef<'_, Scenario>>,
    controllers: Vec<Bound<'_, PyAny>>,
    seeds: Vec<u64>,
    jobs: usize,
    out: Option<PathBuf>,
) -> PyResult<Runs> {
    let fault = Fault::default();
    let mut factories: Vec<LabController> = Vec::new();
    for controller in &controllers {
        match controller.extract::<String>() {
            Ok(names) => factories.extend(Controllers::default().choose(&names).map_err(error)?),
            Err(_) => factories.push(own_factory(controller, &fault)?.into()),
        }
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = factories.iter().find(|factory| !names.insert(factory.name())) {
        return Err(error(format!("two controllers are called {}", twice.name())));
    }
    let mut planned = Vec::new();
    for scenario in &scenarios {
        for factory in scenario.0.controllers_to_run(&factories) {
            for &seed in &seeds {
                let scenario = Arc::clone(&scenario.0);
                planned.push(Planned { scenario, controller: factory, seed });
            }
        }
    }
    // More threads than runs would only cost.
    let jobs = if jobs == 0 { 0 } else { jobs.min(planned.len().max(1)) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(error)?;
    let stop = fault.stop();
    let measured =
        watched(py, &stop, || pool.install(|| measure_all(&planned, out.as_deref(), &stop)))?;
    fault.raise()?;
    let measured = measured.map_err(error)?.into_iter().collect::<Option<Vec<_>>>();
    Ok(Runs(measured.unwrap_or_default()))
}

/// The runs in their order, several at a time. Those after `stop` was set are `None`.
fn measure_all(
    planned: &[Planned<'_>],
    out: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Vec<Option<MeasuredRun>>, RecordError> {
    planned.par_iter().map(|run| run.measure(out, stop)).collect()
}

/// Does the work without the interpreter's lock, in a thread that the interpreter knows meanwhile.
///
/// Otherwise each call of a controller in Python makes a state for the thread and ends it again,
/// which maps and unmaps memory each time and takes more time than the call itself.
pub fn with_a_thread_state<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| py.detach(work))
}

/// Does the work without the interpreter's lock. Ctrl-C sets `stop`, and becomes the error.
pub fn watched<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (send, done) = mpsc::channel();
            // The receiver waits for as long as there is a sender.
            scope.spawn(move || drop(send.send(work())));
            let mut interrupted = Ok(());
            loop {
                match done.recv_timeout(SIGNAL_INTERVAL) {
                    Ok(result) => return interrupted.map(|()| result),
                    Err(RecvTimeoutError::Timeout) if interrupted.is_ok() => {
                        interrupted = Python::attach(|py| py.check_signals());
                        stop.store(
                            stop.load(Ordering::Relaxed) || interrupted.is_err(),
                            Ordering::Relaxed,
                        );
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(error("a run ended early")),
                }
            }
        })
    })
}

/// One run, measured, with its record below `out`. `None` if `stop` was set.
pub fn measure(
    scenario: &weir_scenario::Scenario,
    factory: &LabController,
    seed: u64,
    out: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Option<MeasuredRun>, RecordError> {
    let info = RunInfo::simulated(scenario, factory, seed);
    let names: Vec<String> = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    let mut measurer = Measurer::new(scenario, &info, &names);
    let mut writer = out.map(|out| Writer::create(out, &info, scenario)).transpose()?;
    let mut trace = Trace::new(names);
    let config = scenario.sim_config(factory);
    let is_whole = weir_sim::run_in_parts(&config, Seed::new(seed), stop, |part| {
        measurer.add(part);
        if let Some(writer) = &mut writer {
            writer.add(part)?;
        }
        trace.append(part);
        Ok(())
    })?;
    if !is_whole {
        return Ok(None);
    }
    let summary = measurer.finish(None);
    if let Some(writer) = writer {
        writer.finish(&summary, None)?;
    }
    Ok(Some(MeasuredRun { info, trace, summary }))
}

/// Writes the report of these folders of records, as `weir report` does.
#[pyfunction]
pub fn report(py: Python<'_>, folders: Vec<PathBuf>, file: PathBuf) -> PyResult<()> {
    let stop = AtomicBool::new(false);
    watched(py, &stop, || write_report(&folders, &file, &stop))?.map_err(error)
}

/// Writes the report, unless `stop` was set. An error is one line.
fn write_report(folders: &[PathBuf], file: &Path, stop: &AtomicBool) -> Result<(), String> {
    let mut records = Vec::new();
    for folder in folders {
        let found = weir_report::find(folder).map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Err(format!("{} contains no record of a run", folder.display()));
        }
        records.extend(found);
    }
    let report = weir_report::Report::of(&records, "weir_rtc.report(...)", stop);
    match report.map_err(|error| error.to_string())? {
        Some(report) => report.write_html(file).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Writes the report of a sweep from the data that the package has computed.
#[pyfunction]
pub fn sweep_report(py: Python<'_>, json: &str, file: PathBuf) -> PyResult<()> {
    py.detach(|| {
        let report = weir_report::SweepReport::of_json(json).map_err(|error| error.to_string())?;
        report.write_html(&file).map_err(|error| error.to_string())
    })
    .map_err(error)
}

/// Runs as their records have them, in this order of their folders.
#[pyfunction]
pub fn read_runs(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<Runs> {
    Ok(Runs(py.detach(|| of_records(&folders)).map_err(error)?))
}

fn of_records(folders: &[PathBuf]) -> Result<Vec<MeasuredRun>, RecordError> {
    let mut measured = Vec::new();
    for folder in folders {
        let record = weir_record::Record::read(folder)?;
        let summary = record.summary();
        measured.push(MeasuredRun { info: record.info, trace: record.trace, summary });
    }
    Ok(measured)
}

/// One side of a comparison.
#[derive(FromPyObject)]
pub enum Side<'py> {
    /// Runs that are here.
    Runs(PyRef<'py, Runs>),
    /// A folder of records.
    Folder(PathBuf),
}

impl Side<'_> {
    fn summaries(&self) -> PyResult<Vec<Summary>> {
        match self {
            Self::Runs(runs) => Ok(runs.0.iter().map(|run| run.summary.clone()).collect()),
            Self::Folder(folder) => {
                let found = weir_record::find(folder).map_err(error)?;
                if found.is_empty() {
                    return Err(error(format!("{} contains no record of a run", folder.display())));
                }
                let mut summaries = Vec::new();
                for path in &found {
                    summaries.push(weir_record::Record::read(path).map_err(error)?.summary());
                }
                Ok(summaries)
            }
        }
    }
}

/// The controllers of the runs, each once, in their order.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands the value over")]
pub fn controllers_of(side: Side<'_>) -> PyResult<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for run in side.summaries()? {
        if !names.contains(&run.controller) {
            names.push(run.controller);
        }
    }
    Ok(names)
}

/// The rows of `weir compare --json`, one JSON text for each metric that both sides have. With
/// `controllers`, the runs of the first on one side and those of the second on the other.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands the values over")]
pub fn compare(
    before: Side<'_>,
    after: Side<'_>,
    controllers: Option<(String, String)>,
) -> PyResult<Vec<String>> {
    let (mut before, mut after) = (before.summaries()?, after.summaries()?);
    let mut by = By::Controller;
    if let Some((first, second)) = &controllers {
        let found = found_in(&[&before, &after]);
        before.retain(|run| run.controller == *first);
        after.retain(|run| run.controller == *second);
        by = By::Pair;
        if differences(&before, &after, by).is_empty() {
            return Err(error(nothing_of_both(first, second, &found)));
        }
    }
    let rows = differences(&before, &after, by);
    if rows.is_empty() {
        return Err(error(format!(
            "nothing to compare: no scenario has runs of the same controller and engine on both \
             sides; before: {}; after: {}",
            found_in(&[&before]),
            found_in(&[&after])
        )));
    }
    Ok(rows.iter().map(|row| row.to_json().to_string()).collect())
}
