//! Writes a record while its run is in progress.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use weir_scenario::Scenario;
use weir_sim::trace::Trace;

use super::series::SeriesFile;
use super::table::AnyLog;
use super::traces;
use super::{
    CALL, EVENTS, LOGS, RUN, RecordError, RunFile, SERIES, SUMMARY, events, io_error, pretty,
};
use crate::calls::file::CallFile;
use crate::run::RunInfo;
use crate::summary::Summary;
use crate::unfinished::{self, HIDDEN, UnfinishedFolder};

/// An unfinished record. If it is dropped before [`Writer::finish`], nothing of it remains.
pub struct Writer {
    /// Final place of the record.
    folder: PathBuf,
    unfinished: UnfinishedFolder,
    series: SeriesFile,
    events: BufWriter<File>,
    /// Files that exist only for this kind of network.
    logs: Vec<(&'static dyn AnyLog, BufWriter<File>)>,
}

impl Writer {
    /// Begins a record below `out`, which need not exist.
    pub fn create(out: &Path, info: &RunInfo, scenario: &Scenario) -> Result<Self, RecordError> {
        let folder = out.join(info.folder());
        if folder.exists() {
            return Err(RecordError::Exists(folder));
        }
        fs::create_dir_all(out).map_err(io_error(out))?;
        let unfinished = UnfinishedFolder::new(out).map_err(io_error(out))?;
        let error = io_error(&folder);
        traces::share(out, &scenario.traces).map_err(io_error(out))?;
        Self::begin(folder.clone(), unfinished, info, scenario).map_err(error)
    }

    fn begin(
        folder: PathBuf,
        unfinished: UnfinishedFolder,
        info: &RunInfo,
        scenario: &Scenario,
    ) -> io::Result<Self> {
        let inside = unfinished.path();
        let traces = traces::in_folder(&scenario.traces);
        fs::write(inside.join(RUN), pretty(&RunFile::of(info, scenario, traces)))?;
        let series = SeriesFile::create(inside.join(SERIES))?;
        let events = new_file(&inside.join(EVENTS))?;
        let mut logs = Vec::new();
        for log in LOGS.iter().filter(|log| log.applies(scenario)) {
            let mut out = new_file(&inside.join(log.file()))?;
            writeln!(out, "{}", log.header())?;
            logs.push((*log, out));
        }
        Ok(Self { folder, unfinished, series, events, logs })
    }

    /// Writes the next part of the run.
    pub fn add(&mut self, part: &Trace) -> Result<(), RecordError> {
        let error = io_error(&self.folder);
        self.write(part).map_err(error)
    }

    fn write(&mut self, part: &Trace) -> io::Result<()> {
        self.series.write(&part.flows, &part.rows)?;
        events::write(&mut self.events, &part.flows, &part.events)?;
        for (log, out) in &mut self.logs {
            log.write(out, part)?;
        }
        Ok(())
    }

    /// Moves the record to its final place and returns its folder.
    pub fn finish(
        self,
        summary: &Summary,
        call: Option<&CallFile>,
    ) -> Result<PathBuf, RecordError> {
        let folder = self.folder.clone();
        self.end(summary, call).map_err(io_error(&folder))?;
        Ok(folder)
    }

    fn end(mut self, summary: &Summary, call: Option<&CallFile>) -> io::Result<()> {
        self.series.finish()?;
        self.events.flush()?;
        for (_, out) in &mut self.logs {
            out.flush()?;
        }
        let inside = self.unfinished.path();
        fs::write(inside.join(SUMMARY), pretty(summary))?;
        if let Some(call) = call {
            fs::write(inside.join(CALL), pretty(call))?;
        }
        fs::create_dir_all(self.folder.parent().expect("a record's folder has two levels"))?;
        self.unfinished.rename_to(&self.folder)
    }
}

fn new_file(path: &Path) -> io::Result<BufWriter<File>> {
    File::create_new(path).map(BufWriter::new)
}

/// Removes what killed runs left in a folder of records: hidden folders that no running program
/// writes.
pub fn clean(out: &Path) {
    unfinished::clean(out, HIDDEN);
}
