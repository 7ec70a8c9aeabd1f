//! A run on disk: a folder with `run.json`, `series.csv`, `events.jsonl` and `summary.json`,
//! `call.json` where real programs ran; `nodes.csv` and `airtime.csv` of a Wi-Fi cell;
//! `bearers.csv`, `bearer-events.csv` and `blocks.csv` of a cellular cell; `decisions.csv` of a
//! simulated forwarding server.
//! The module of each file describes it.
//!
//! Runs that use a large trace file share it: it is in `traces` above them, named by its hash.
//!
//! A folder is written under a hidden name and moved to its place at the end, so nobody sees an
//! incomplete record. Rows are written and read one by one, so that a run of any length takes
//! little memory. The record of a simulated run contains nothing about the machine: equal seeds
//! give equal bytes everywhere.

pub mod airtime;
pub(crate) mod bearers;
pub mod blocks;
pub(crate) mod decisions;
mod events;
mod finished;
mod lines;
pub mod memory;
pub(crate) mod nodes;
mod reader;
pub(crate) mod series;
pub(crate) mod table;
mod traces;
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir::units::TimeDelta;
use weir_scenario::files;
use weir_scenario::{Scenario, ScenarioError};
use weir_sim::trace::Trace;

use crate::calls::file::CallFile;
use crate::calls::{Calls, Exclusion};
use crate::run::{Engine, RunInfo};
use crate::subject::Subject;
use crate::summary::Summary;
use traces::TraceText;

pub use reader::{Reader, Scenarios};
pub use series::{NumberColumn, number_columns};
pub use writer::{Writer, clean};

/// Version of the record's format.
pub const SCHEMA: u32 = 2;
/// The oldest version that this program reads. It has no subject but its label, `controller`.
const SCHEMA_MIN: u32 = 1;

/// Longest run of a command that a record can contain.
pub const LINK_DURATION_MAX: TimeDelta = TimeDelta::from_secs(50 * 3600);
/// Version of this program, which is written into records.
const WEIR: &str = env!("CARGO_PKG_VERSION");

const RUN: &str = "run.json";
const SERIES: &str = "series.csv";
const EVENTS: &str = "events.jsonl";
const SUMMARY: &str = "summary.json";
const CALL: &str = "call.json";

/// Files that exist only for certain networks or topologies. A new one needs a module next to
/// `nodes` and an entry here.
const LOGS: &[&dyn table::AnyLog] = &[
    &nodes::FILE,
    &airtime::FILE,
    &bearers::FILE,
    &bearers::EVENTS,
    &blocks::FILE,
    &decisions::FILE,
];

/// Size limit of a JSON file in bytes: more than a scenario with its traces needs, or a call of
/// several hours.
const JSON_MAX: u64 = 1 << 28;

/// A run with everything that was recorded of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Which run it is.
    pub info: RunInfo,
    /// The scenario, parsed from the text that the record carries.
    pub scenario: Scenario,
    /// Rows and rate changes.
    pub trace: Trace,
    /// Content of `call.json`, only for runs of real programs: machine, versions, lateness,
    /// candidate pairs, warnings.
    pub call: Option<CallFile>,
}

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The folder is there already.
    #[error("{} exists already: choose another --out, or remove it", .0.display())]
    Exists(PathBuf),
    /// The folder holds the record of another run.
    #[error("{} is the record of another run: {why}; choose another --out, or remove \
        it", folder.display())]
    Another {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        why: String,
    },
    /// The file system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// Error of the system.
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
    /// Label of the subject, for other programs.
    controller: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<Subject>,
    engine: Engine,
    seed: String,
    command: String,
    flows: Vec<String>,
    scenario_text: String,
    /// The variant of the scenario's text that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    /// How long the command of `weir link` ran, or a call that its user ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// Trace files that the scenario names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    traces: BTreeMap<String, TraceText>,
}

impl Record {
    /// Measures the run.
    pub fn summary(&self) -> Summary {
        let (sections, recoveries) = (self.scenario.section_spans(), self.scenario.recoveries());
        let calls = self.call.as_ref().map(|call| Calls::of(call, &sections, &recoveries));
        Summary::of(&self.scenario, &self.info, &self.trace, calls)
    }

    /// Why the values of a real run do not count; `None` if they do, or if the run is simulated.
    pub fn exclusion(&self) -> Option<Exclusion> {
        self.call.as_ref()?.calls_made().exclusion()
    }

    /// Writes the record below `out`, which need not exist. Returns the record's folder.
    pub fn write(&self, out: &Path) -> Result<PathBuf, RecordError> {
        let mut writer = Writer::create(out, &self.info, &self.scenario)?;
        writer.add(&self.trace)?;
        writer.finish(&self.summary(), self.call.as_ref())
    }

    /// Reads a record's folder.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        Reader::open(folder, &Scenarios::default())?.record()
    }
}

impl RunFile {
    fn of(info: &RunInfo, scenario: &Scenario, traces: BTreeMap<String, TraceText>) -> Self {
        Self {
            schema: SCHEMA,
            weir: WEIR.into(),
            scenario: info.scenario.clone(),
            controller: info.subject.to_string(),
            subject: Some(info.subject.clone()),
            engine: info.engine,
            seed: info.seed.to_string(),
            command: info.command(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            scenario_text: scenario.text.clone(),
            variant: scenario.variant.clone(),
            duration_ms: (info.engine == Engine::Link || scenario.ended_early)
                .then(|| scenario.duration.as_millis().unsigned_abs()),
            traces,
        }
    }

    /// How long a command ran, or a call that was ended early; `None` for other runs.
    fn own_duration(&self) -> Result<Option<TimeDelta>, String> {
        let max = LINK_DURATION_MAX.as_millis();
        match (self.engine, self.duration_ms.map(i64::try_from)) {
            (Engine::Link | Engine::Call, Some(Ok(ms))) if ms <= max => {
                Ok(Some(TimeDelta::from_millis(ms)))
            }
            (Engine::Link | Engine::Call, Some(_)) => {
                Err(format!("duration_ms must be at most {max}"))
            }
            (Engine::Link, None) => Err("the run of a command has no duration_ms".into()),
            (Engine::Sim | Engine::Call, None) => Ok(None),
            (Engine::Sim, Some(_)) => Err("a simulated run has no duration_ms".into()),
        }
    }
}

/// The record folders in and below `folder`, sorted by path. Links below it are not followed,
/// because following a link that leads upwards would never end.
pub fn find(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    find_with(folder, &|folder| folder.join(RUN).is_file())
}

/// The folders in and below `folder` that `is_it` takes. Nothing below such a one is looked at.
pub fn find_with(
    folder: &Path,
    is_it: &dyn Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, RecordError> {
    if is_it(folder) {
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
        found.extend(find_with(entry, is_it)?);
    }
    Ok(found)
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RecordError + use<> {
    let path = path.to_path_buf();
    move |error| RecordError::Io { path, error }
}

fn damaged(path: &Path, what: String) -> RecordError {
    RecordError::Damaged { path: path.into(), what }
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, RecordError> {
    let text = files::read_text(path, JSON_MAX).map_err(io_error(path))?;
    serde_json::from_str(&text).map_err(|error| damaged(path, error.to_string()))
}

fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("plain data serializes");
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests;
