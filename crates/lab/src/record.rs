//! A run on disk: a folder with `run.json`, `series.csv`, `events.jsonl` and `summary.json`, `call.json`
//! where real programs ran, and `nodes.csv` and `airtime.csv` of a Wi-Fi cell. `docs/record-format.md`
//! describes each.
//!
//! A folder is written beside its place and renamed at the end, so no half-made record is ever seen.
//! A simulated run's record holds nothing of the machine: equal seeds give equal bytes anywhere.

pub mod airtime;
mod events;
mod nodes;
mod series;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir::units::{TimeDelta, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row, Trace};

use crate::calls::{Calls, Flaw};
use crate::run::{Engine, RunInfo};
use crate::scenario::{self, Scenario, ScenarioError};
use crate::summary::Summary;

/// Version of the record's shape.
pub const SCHEMA: u32 = 1;

/// The longest time of a command's run that a record tells of.
pub const LINK_DURATION_MAX: TimeDelta = TimeDelta::from_secs(50 * 3600);

const RUN: &str = "run.json";
const SERIES: &str = "series.csv";
const NODES: &str = "nodes.csv";
const AIRTIME: &str = "airtime.csv";
const EVENTS: &str = "events.jsonl";
const SUMMARY: &str = "summary.json";
const CALL: &str = "call.json";

/// A run with all that was noted of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Which run it is.
    pub info: RunInfo,
    /// The scenario, parsed from the text that the record carries.
    pub scenario: Scenario,
    /// Rows and rate changes.
    pub trace: Trace,
    /// What only a run of real programs has: machine, versions, lateness, candidate pair, warnings.
    pub call: Option<Value>,
}

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The folder is there already.
    #[error("{} exists already: choose another --out, or remove it", .0.display())]
    Exists(PathBuf),
    /// The file system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file of the record is not what it should be.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The scenario that the record carries does not parse.
    #[error("the scenario in {}: {error}", path.display())]
    Scenario {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<ScenarioError>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    schema: u32,
    weir: String,
    scenario: String,
    controller: String,
    engine: Engine,
    seed: String,
    command: String,
    flows: Vec<String>,
    scenario_text: String,
    /// The variant of the scenario's text that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    /// How long the command of `weir link` ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// Trace files that the scenario names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    traces: BTreeMap<String, String>,
}

impl RunFile {
    /// How long a command ran; `None` of another engine.
    fn linked_duration(&self) -> Result<Option<TimeDelta>, String> {
        let max = LINK_DURATION_MAX.as_millis();
        match (self.engine, self.duration_ms.map(i64::try_from)) {
            (Engine::Link, Some(Ok(ms))) if ms <= max => Ok(Some(TimeDelta::from_millis(ms))),
            (Engine::Link, Some(_)) => Err(format!("duration_ms must be at most {max}")),
            (Engine::Link, None) => Err("the run of a command has no duration_ms".into()),
            (Engine::Sim | Engine::Call, None) => Ok(None),
            (Engine::Sim | Engine::Call, Some(_)) => {
                Err("only a run of a command has duration_ms".into())
            }
        }
    }
}

impl Record {
    /// Measures the run.
    pub fn summary(&self) -> Summary {
        let calls = self.call.as_ref().map(Calls::of);
        Summary::of(&self.scenario, &self.info, &self.trace, calls)
    }

    /// Why the values of a real run do not count, if they do not.
    pub fn flaw(&self) -> Option<Flaw> {
        Flaw::of(self.call.as_ref()?)
    }

    /// Writes the record below `out`, which need not exist. Returns the record's folder.
    pub fn write(&self, out: &Path) -> Result<PathBuf, RecordError> {
        let folder = out.join(self.info.folder());
        if folder.exists() {
            return Err(RecordError::Exists(folder));
        }
        let parent = folder.parent().expect("a record's folder has two levels");
        fs::create_dir_all(parent).map_err(io_error(parent))?;
        let unfinished = Unfinished::new(&folder)?;
        let write = |name: &str, bytes: Vec<u8>| {
            let path = unfinished.path.join(name);
            fs::write(&path, bytes).map_err(io_error(&path))
        };
        write(RUN, pretty(&self.run_file()))?;
        write(SERIES, series::emit(&self.trace))?;
        write(EVENTS, events::emit(&self.trace))?;
        if self.scenario.cell.is_some() {
            write(NODES, nodes::emit(&self.trace))?;
            write(AIRTIME, airtime::emit(&self.trace))?;
        }
        write(SUMMARY, pretty(&self.summary()))?;
        if let Some(call) = &self.call {
            write(CALL, pretty(call))?;
        }
        unfinished.rename_to(&folder)?;
        Ok(folder)
    }

    fn run_file(&self) -> RunFile {
        RunFile {
            schema: SCHEMA,
            weir: env!("CARGO_PKG_VERSION").into(),
            scenario: self.info.scenario.clone(),
            controller: self.info.controller.clone(),
            engine: self.info.engine,
            seed: self.info.seed.to_string(),
            command: self.info.command(),
            flows: self.trace.flows.clone(),
            scenario_text: self.scenario.text.clone(),
            variant: self.scenario.variant.clone(),
            duration_ms: (self.info.engine == Engine::Link)
                .then(|| self.scenario.duration.as_millis().unsigned_abs()),
            traces: self.scenario.traces.clone(),
        }
    }

    /// Reads a record's folder.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(RUN);
        let damaged = |what: String| RecordError::Damaged { path: path.clone(), what };
        let run: RunFile =
            serde_json::from_str(&read_text(&path)?).map_err(|e| damaged(e.to_string()))?;
        if run.schema != SCHEMA {
            let what = format!("record version {}, this weir reads version {SCHEMA}", run.schema);
            return Err(damaged(what));
        }
        let seed = run.seed.parse().map_err(|_| damaged(format!("seed '{}'", run.seed)))?;
        let scenario = scenario::parse_recorded(
            &run.scenario,
            &run.scenario_text,
            run.variant.as_deref(),
            &run.traces,
        )
        .map_err(|e| RecordError::Scenario { path: path.clone(), error: Box::new(e) })?;
        let scenario = match run.linked_duration().map_err(damaged)? {
            Some(duration) => scenario.linked(duration),
            None => scenario,
        };
        if !scenario.flows.iter().map(|flow| &flow.name).eq(&run.flows) {
            return Err(damaged("its flows are not those of its scenario".into()));
        }
        let mut trace = Trace { flows: run.flows, ..Trace::default() };
        let series_path = folder.join(SERIES);
        trace.rows = series::parse(&read_text(&series_path)?, &trace.flows)
            .and_then(|rows| within(rows, Timestamp::ZERO + scenario.duration + ROW_INTERVAL))
            .map_err(|what| RecordError::Damaged { path: series_path, what })?;
        let events_path = folder.join(EVENTS);
        trace.events = events::parse(&read_text(&events_path)?, &trace.flows)
            .map_err(|what| RecordError::Damaged { path: events_path, what })?;
        if let Some(cell) = &scenario.cell {
            trace.nodes = cell.names().map(String::from).collect();
            let path = folder.join(NODES);
            trace.node_rows = nodes::parse(&read_text(&path)?, &trace.nodes)
                .map_err(|what| RecordError::Damaged { path, what })?;
            let path = folder.join(AIRTIME);
            trace.frames = airtime::parse(&read_text(&path)?, &trace.nodes)
                .map_err(|what| RecordError::Damaged { path, what })?;
        }
        let call_path = folder.join(CALL);
        let call = if call_path.exists() { Some(read_json(&call_path)?) } else { None };
        let info = RunInfo {
            scenario: run.scenario,
            controller: run.controller,
            engine: run.engine,
            seed,
        };
        Ok(Self { info, scenario, trace, call })
    }
}

/// The record folders below a folder, itself included, by path. Links below it are not followed: one
/// that leads upwards would have no end.
pub fn find(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    if folder.join(RUN).is_file() {
        return Ok(vec![folder.to_path_buf()]);
    }
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(io_error(folder))?;
    entries.sort();
    let hidden =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let is_folder = |path: &Path| path.is_dir() && !path.is_symlink();
    for entry in entries.iter().filter(|entry| is_folder(entry) && !hidden(entry)) {
        found.extend(find(entry)?);
    }
    Ok(found)
}

/// The rows, if none lies behind the end of the run: what a reader keeps a row of time would have no end.
fn within(rows: Vec<Row>, end: Timestamp) -> Result<Vec<Row>, String> {
    match rows.last().filter(|last| last.time > end) {
        Some(last) => Err(format!("a row at {} ms, after the end", last.time.as_millis())),
        None => Ok(rows),
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RecordError + use<> {
    let path = path.to_path_buf();
    move |error| RecordError::Io { path, error }
}

fn read_text(path: &Path) -> Result<String, RecordError> {
    let bytes = fs::read(path).map_err(io_error(path))?;
    let not_text = |_| RecordError::Damaged { path: path.into(), what: "is not text".into() };
    String::from_utf8(bytes).map_err(not_text)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, RecordError> {
    let text = read_text(path)?;
    let damaged =
        |e: serde_json::Error| RecordError::Damaged { path: path.into(), what: e.to_string() };
    serde_json::from_str(&text).map_err(damaged)
}

fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("plain data serializes");
    bytes.push(b'\n');
    bytes
}

/// A folder that vanishes unless it is renamed to its final name.
struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    fn new(folder: &Path) -> Result<Self, RecordError> {
        let name = folder.file_name().expect("a record's folder has a name").to_string_lossy();
        let path = folder.with_file_name(format!(".{name}.{}", std::process::id()));
        fs::create_dir(&path).map_err(io_error(&path))?;
        Ok(Self { path })
    }

    fn rename_to(self, folder: &Path) -> Result<(), RecordError> {
        fs::rename(&self.path, folder).map_err(io_error(folder))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is nothing here any more, and then this fails as it should.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests;
