//! Writes a record while its run is in progress.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use weir_sim::trace::Trace;

use super::series::SeriesFile;
use super::table::AnyLog;
use super::{
    CALL, EVENTS, LOGS, RUN, RecordError, RunFile, SERIES, SUMMARY, events, io_error, pretty,
};
use crate::calls::file::CallFile;
use crate::run::RunInfo;
use crate::scenario::Scenario;
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
        let begin = || {
            let at = |name: &str| unfinished.path().join(name);
            let file = |name: &str| File::create_new(at(name)).map(BufWriter::new);
            fs::write(at(RUN), pretty(&RunFile::of(info, scenario)))?;
            let series = SeriesFile::create(at(SERIES))?;
            let events = file(EVENTS)?;
            let own = LOGS.iter().filter(|log| log.applies(scenario));
            let logs = own.map(|log| {
                let mut out = file(log.file())?;
                writeln!(out, "{}", log.header())?;
                Ok((*log, out))
            });
            Ok((series, events, logs.collect::<io::Result<Vec<_>>>()?))
        };
        let (series, events, logs) = begin().map_err(io_error(&folder))?;
        Ok(Self { folder, unfinished, series, events, logs })
    }

    /// Writes the next part of the run.
    pub fn add(&mut self, part: &Trace) -> Result<(), RecordError> {
        let mut write = || {
            self.series.write(&part.flows, &part.rows)?;
            events::write(&mut self.events, &part.flows, &part.events)?;
            self.logs.iter_mut().try_for_each(|(log, out)| log.write(out, part))
        };
        write().map_err(io_error(&self.folder))
    }

    /// Moves the record to its final place and returns its folder.
    pub fn finish(
        self,
        summary: &Summary,
        call: Option<&CallFile>,
    ) -> Result<PathBuf, RecordError> {
        let Self { folder, unfinished, series, mut events, mut logs } = self;
        let end = || -> io::Result<()> {
            let at = |name: &str| unfinished.path().join(name);
            series.finish()?;
            events.flush()?;
            logs.iter_mut().try_for_each(|(_, out)| out.flush())?;
            fs::write(at(SUMMARY), pretty(summary))?;
            if let Some(call) = call {
                fs::write(at(CALL), pretty(call))?;
            }
            fs::create_dir_all(folder.parent().expect("a record's folder has two levels"))?;
            unfinished.rename_to(&folder)
        };
        end().map_err(io_error(&folder))?;
        Ok(folder)
    }
}

/// Removes what killed runs left in a folder of records: hidden folders that no running program
/// writes.
pub fn clean(out: &Path) {
    unfinished::clean(out, HIDDEN);
}
