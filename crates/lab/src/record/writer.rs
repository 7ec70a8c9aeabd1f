//! Writes a record while its run goes on.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_sim::trace::Trace;

use super::series::SeriesFile;
use super::{
    AIRTIME, CALL, EVENTS, NODES, RUN, RecordError, RunFile, SERIES, SUMMARY, airtime, events,
    io_error, nodes, pretty,
};
use crate::run::RunInfo;
use crate::scenario::Scenario;
use crate::summary::Summary;
use crate::unfinished::{self, HIDDEN, UnfinishedFolder};

/// A record that is not finished. Dropped before that, it leaves nothing.
pub struct Writer {
    /// Where it will be.
    folder: PathBuf,
    unfinished: UnfinishedFolder,
    series: SeriesFile,
    events: BufWriter<File>,
    cell: Option<CellFiles>,
}

struct CellFiles {
    nodes: BufWriter<File>,
    airtime: BufWriter<File>,
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
            let mut cell = None;
            if scenario.access.is_some() {
                let (mut nodes, mut airtime) = (file(NODES)?, file(AIRTIME)?);
                writeln!(nodes, "{}", nodes::HEADER)?;
                airtime::write_header(&mut airtime)?;
                cell = Some(CellFiles { nodes, airtime });
            }
            Ok((series, events, cell))
        };
        let (series, events, cell) = begin().map_err(io_error(&folder))?;
        Ok(Self { folder, unfinished, series, events, cell })
    }

    /// Writes the next part of the run.
    pub fn add(&mut self, part: &Trace) -> Result<(), RecordError> {
        let mut write = || {
            self.series.write(&part.flows, &part.rows)?;
            events::write(&mut self.events, &part.flows, &part.events)?;
            if let Some(cell) = &mut self.cell {
                nodes::write(&mut cell.nodes, &part.nodes, &part.access.wifi.rows)?;
                airtime::write(&mut cell.airtime, &part.nodes, &part.access.wifi.frames)?;
            }
            Ok(())
        };
        write().map_err(io_error(&self.folder))
    }

    /// Puts the record into its place. Returns its folder.
    pub fn finish(self, summary: &Summary, call: Option<&Value>) -> Result<PathBuf, RecordError> {
        let Self { folder, unfinished, series, mut events, cell } = self;
        let end = || -> io::Result<()> {
            let at = |name: &str| unfinished.path().join(name);
            series.finish()?;
            events.flush()?;
            if let Some(CellFiles { mut nodes, mut airtime }) = cell {
                nodes.flush()?;
                airtime.flush()?;
            }
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

/// Removes what killed runs left in a folder for records: hidden folders that nobody writes any more.
pub fn clean(out: &Path) {
    unfinished::clean(out, HIDDEN);
}
