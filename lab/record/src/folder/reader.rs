//! Reads a record file by file and row by row, only as far as needed.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use weir::units::Timestamp;
use weir_net::cellular::{BearerEvent, BearerRow, BlockRecord};
use weir_net::wifi::{AirtimeRecord, NodeRow};
use weir_scenario::files;
use weir_scenario::{Access, Scenario};
use weir_sim::trace::{LayerDecision, ROW_INTERVAL, RateChange, Row, Trace};

use super::memory::Files;
use super::series::SeriesReader;
use super::table::{AnyLog, Log};
use super::{
    CALL, EVENTS, LOGS, RUN, Record, RecordError, RunFile, SCHEMA, SCHEMA_MIN, SERIES, airtime,
    bearers, blocks, damaged, decisions, events, io_error, lines, nodes, read_json,
};
use crate::calls::file::CallFile;
use crate::calls::{Calls, Exclusion};
use crate::run::{Engine, RunInfo};
use crate::subject::Subject;
use crate::summary::{Measurer, Summary};

/// Parsed scenarios of the records read so far. Runs of the same scenario share one.
#[derive(Debug, Default)]
pub struct Scenarios(Mutex<HashMap<String, Arc<Scenario>>>);

impl Scenarios {
    fn parse(&self, run: &RunFile, place: &Place) -> Result<Arc<Scenario>, RecordError> {
        let path = place.path(RUN);
        let key =
            serde_json::to_string(&(&run.scenario, &run.scenario_text, &run.variant, &run.traces));
        let key = key.expect("plain data serializes");
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scenario) = known().get(&key) {
            return Ok(Arc::clone(scenario));
        }
        let mut traces = BTreeMap::new();
        for (name, kept) in &run.traces {
            let text = kept.find(place.folder()).map_err(|what| damaged(&path, what))?;
            traces.insert(name.clone(), text);
        }
        let scenario = weir_scenario::parse_recorded(
            &run.scenario,
            &run.scenario_text,
            run.variant.as_deref(),
            traces,
        )
        .map_err(|error| RecordError::Scenario { path, error: Box::new(error) })?;
        let scenario = Arc::new(scenario);
        known().insert(key, Arc::clone(&scenario));
        Ok(scenario)
    }
}

/// Where the files of a record are.
#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    Memory(Files),
}

impl Place {
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Memory(_) => None,
        }
    }

    /// Name of a file in errors.
    fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join(name),
            Self::Memory(_) => name.into(),
        }
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Self::Folder(folder) => Ok(Box::new(files::open(&folder.join(name))?)),
            Self::Memory(files) => match files.get(name) {
                Some(bytes) => Ok(Box::new(bytes)),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }

    /// Whether there is such a file. A broken link counts, and reading it is an error.
    fn has(&self, name: &str) -> bool {
        match self {
            Self::Folder(folder) => folder.join(name).symlink_metadata().is_ok(),
            Self::Memory(files) => files.get(name).is_some(),
        }
    }

    fn read_json<T: for<'de> serde::Deserialize<'de>>(&self, name: &str) -> Result<T, RecordError> {
        match self {
            Self::Folder(folder) => read_json(&folder.join(name)),
            Self::Memory(files) => {
                let bytes = files.get(name).unwrap_or_default();
                serde_json::from_slice(bytes)
                    .map_err(|error| damaged(name.as_ref(), error.to_string()))
            }
        }
    }
}

/// An open record: everything but the rows was read.
#[derive(Clone, Debug)]
pub struct Reader {
    place: Place,
    /// Which run it is.
    pub info: RunInfo,
    /// The scenario, parsed from the text that the record carries.
    pub scenario: Arc<Scenario>,
    /// Names of the flows, in the scenario's order.
    pub flows: Vec<String>,
    /// Names of the nodes of the access network; none without one.
    pub nodes: Vec<String>,
    /// Content of `call.json`; `None` for a simulated run.
    pub call: Option<CallFile>,
}

impl Reader {
    /// Reads everything in a record but its rows.
    pub fn open(folder: &Path, scenarios: &Scenarios) -> Result<Self, RecordError> {
        Self::at(Place::Folder(folder.into()), scenarios)
    }

    /// The same of a record in memory.
    pub fn of_files(files: &Files, scenarios: &Scenarios) -> Result<Self, RecordError> {
        Self::at(Place::Memory(files.clone()), scenarios)
    }

    fn at(place: Place, scenarios: &Scenarios) -> Result<Self, RecordError> {
        let path = place.path(RUN);
        let run: RunFile = place.read_json(RUN)?;
        if !(SCHEMA_MIN..=SCHEMA).contains(&run.schema) {
            let what = format!(
                "record version {}, this weir reads versions {SCHEMA_MIN} to {SCHEMA}",
                run.schema
            );
            return Err(damaged(&path, what));
        }
        let seed = run.seed.parse().map_err(|_| damaged(&path, format!("seed '{}'", run.seed)))?;
        let whole = scenarios.parse(&run, &place)?;
        let scenario = match run.own_duration().map_err(|what| damaged(&path, what))? {
            Some(ran) if run.engine == Engine::Link => {
                Arc::new(Scenario::clone(&*whole).linked(ran))
            }
            Some(ran) if ran <= whole.duration => Arc::new(Scenario::clone(&*whole).ended_at(ran)),
            Some(_) => {
                let what = "duration_ms is longer than the scenario";
                return Err(damaged(&path, what.into()));
            }
            None => whole,
        };
        if !scenario.flows.iter().map(|flow| &flow.name).eq(&run.flows) {
            return Err(damaged(&path, "its flows are not those of its scenario".into()));
        }
        let call = if place.has(CALL) { Some(place.read_json(CALL)?) } else { None };
        let nodes = scenario.access.as_ref().map_or_else(Vec::new, Access::names);
        let info = RunInfo {
            scenario: run.scenario,
            subject: run.subject.unwrap_or_else(|| Subject::of_label(run.engine, &run.controller)),
            engine: run.engine,
            seed,
        };
        Ok(Self { place, info, scenario, flows: run.flows, nodes, call })
    }

    /// Why the values of a real run do not count; `None` if they do, or if the run is simulated.
    pub fn exclusion(&self) -> Option<Exclusion> {
        self.call.as_ref()?.calls_made().exclusion()
    }

    /// The files of the record from which everything is measured.
    pub fn files(&self) -> impl Iterator<Item = &'static str> {
        let logs = LOGS.iter().map(|log| log.file());
        [RUN, SERIES, EVENTS, CALL].into_iter().chain(logs)
    }

    /// Names of the files with what was measured, which a record may have: all but `run.json`,
    /// which says which run it is and by which version of this program.
    pub fn measured_files(&self) -> impl Iterator<Item = &'static str> {
        self.files().filter(|name| *name != RUN)
    }

    /// Opens a file of the record; `None` if there is no such file.
    pub fn open_file(&self, name: &str) -> Result<Option<Box<dyn Read + '_>>, RecordError> {
        match self.place.open(name) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(&self.path(name))(error)),
        }
    }

    /// Name of a file in errors.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    /// Opens a file that the record must have. With its name for errors.
    fn must_open(&self, name: &str) -> Result<(Box<dyn Read + '_>, PathBuf), RecordError> {
        let path = self.path(name);
        let file = self.place.open(name).map_err(io_error(&path))?;
        Ok((file, path))
    }

    /// Passes the rows to `take`, by time.
    pub fn rows(&self, mut take: impl FnMut(&Row)) -> Result<(), RecordError> {
        let (file, path) = self.must_open(SERIES)?;
        let end = Timestamp::ZERO + self.scenario.duration + ROW_INTERVAL;
        let mut reader = SeriesReader::new(&self.flows, end);
        lines::each(file, &path, |line| {
            if let Some(row) = reader.read(line)? {
                take(&row);
            }
            Ok(())
        })?;
        reader.finish().map_err(|what| damaged(&path, what))
    }

    /// Passes the rate changes to `take`.
    pub fn events(&self, mut take: impl FnMut(RateChange)) -> Result<(), RecordError> {
        let (file, path) = self.must_open(EVENTS)?;
        lines::each(file, &path, |line| {
            take(events::parse_line(line, &self.flows)?);
            Ok(())
        })
    }

    /// Passes the rows of the nodes to `take`, by time; none without a Wi-Fi cell.
    pub fn node_rows(&self, mut take: impl FnMut(&NodeRow)) -> Result<(), RecordError> {
        self.log(&nodes::FILE, |row| take(&row))
    }

    /// Passes the frames on the air to `take`, by their ends; none without a Wi-Fi cell.
    pub fn frames(&self, take: impl FnMut(AirtimeRecord)) -> Result<(), RecordError> {
        self.log(&airtime::FILE, take)
    }

    /// Passes the rows of the bearers to `take`, by time; none without a cellular cell.
    pub fn bearer_rows(&self, mut take: impl FnMut(&BearerRow)) -> Result<(), RecordError> {
        self.log(&bearers::FILE, |row| take(&row))
    }

    /// Passes what became of bearers to `take`, by time; none without a cellular cell.
    pub fn bearer_events(&self, take: impl FnMut(BearerEvent)) -> Result<(), RecordError> {
        self.log(&bearers::EVENTS, take)
    }

    /// Passes the blocks on the air to `take`, by their starts; none without a cellular cell.
    pub fn blocks(&self, take: impl FnMut(BlockRecord)) -> Result<(), RecordError> {
        self.log(&blocks::FILE, take)
    }

    /// Passes the decisions of a forwarding server to `take`, by time; none without a server.
    pub fn decisions(&self, take: impl FnMut(LayerDecision)) -> Result<(), RecordError> {
        self.log(&decisions::FILE, take)
    }

    /// Passes the items of a file to `take`; none if runs of the scenario have no such file.
    fn log<R: Default, T>(
        &self,
        log: &Log<R, T>,
        mut take: impl FnMut(T),
    ) -> Result<(), RecordError> {
        self.log_lines(log, |line| {
            take(log.parse(line, &self.nodes)?);
            Ok(())
        })
    }

    fn log_lines(
        &self,
        log: &dyn AnyLog,
        take: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), RecordError> {
        if !log.applies(&self.scenario) {
            return Ok(());
        }
        let (file, path) = self.must_open(log.file())?;
        lines::each_below(file, &path, &log.header(), take)
    }

    /// Measures the run.
    pub fn summary(&self) -> Result<Summary, RecordError> {
        let mut measurer = Measurer::new(&self.scenario, &self.info, &self.flows);
        self.rows(|row| {
            measurer.add_row(row);
        })?;
        self.node_rows(|row| measurer.add_node_row(row))?;
        self.bearer_rows(|row| measurer.add_bearer_row(row))?;
        let (sections, recoveries) = (self.scenario.section_spans(), self.scenario.recoveries());
        let calls = self.call.as_ref().map(|call| Calls::of(call, &sections, &recoveries));
        Ok(measurer.finish(calls))
    }

    /// Reads the whole record.
    pub fn record(self) -> Result<Record, RecordError> {
        let mut trace = Trace::new(self.flows.clone()).with_nodes(self.nodes.clone());
        self.rows(|row| trace.rows.push(*row))?;
        self.events(|change| trace.events.push(change))?;
        for log in LOGS {
            self.log_lines(*log, |line| log.read_line(line, &self.nodes, &mut trace))?;
        }
        let Self { info, scenario, call, .. } = self;
        Ok(Record { info, scenario: Arc::unwrap_or_clone(scenario), trace, call })
    }
}
