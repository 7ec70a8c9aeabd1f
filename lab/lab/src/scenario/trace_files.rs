//! Reads the trace files that a scenario refers to, and remembers which were read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use crate::files;

/// Size limit in bytes: about two hours at 50 Mbit/s with one packet per line.
const TRACE_MAX: u64 = 1 << 28;

/// A place from which trace files are read. It remembers their contents, so that a record can
/// include them.
pub(super) struct TraceFiles<'a> {
    place: Place<'a>,
    read: RefCell<BTreeMap<String, String>>,
}

enum Place<'a> {
    /// No place: the scenario is built into the program.
    None,
    /// The folder of the scenario's file.
    Beside(&'a Path),
    /// A record, which stores them by the names that the scenario uses.
    Recorded(&'a BTreeMap<String, String>),
}

impl<'a> TraceFiles<'a> {
    pub(super) fn beside(folder: Option<&'a Path>) -> Self {
        Self { place: folder.map_or(Place::None, Place::Beside), read: RefCell::default() }
    }

    pub(super) fn recorded(files: &'a BTreeMap<String, String>) -> Self {
        Self { place: Place::Recorded(files), read: RefCell::default() }
    }

    /// Whether the scenario comes from the record of an earlier run.
    pub(super) fn are_recorded(&self) -> bool {
        matches!(self.place, Place::Recorded(_))
    }

    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        let text = match self.place {
            Place::None => {
                Err("a trace file needs a scenario file beside it; pass its path".into())
            }
            Place::Recorded(files) => {
                files.get(name).cloned().ok_or_else(|| "the record does not hold it".into())
            }
            Place::Beside(folder) => {
                files::read_text(&folder.join(name), TRACE_MAX).map_err(|error| {
                    match error.kind() {
                        ErrorKind::NotFound => "there is no such file beside the scenario".into(),
                        _ => error.to_string(),
                    }
                })
            }
        }?;
        self.read.borrow_mut().insert(name.into(), text.clone());
        Ok(text)
    }

    /// The contents of the files read, by name.
    pub(super) fn into_read(self) -> BTreeMap<String, String> {
        self.read.into_inner()
    }
}
