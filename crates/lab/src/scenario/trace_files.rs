//! Where the trace files that a scenario names are read from, and which were.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use crate::files;

/// More than a trace of a day at 50 Mbit/s has, a packet a line.
const TRACE_MAX: u64 = 1 << 28;

/// A place to read trace files from. It notes what was read, so that a record can carry it.
pub(super) struct TraceFiles<'a> {
    place: Place<'a>,
    read: RefCell<BTreeMap<String, String>>,
}

enum Place<'a> {
    /// There is no file beside the scenario: it is part of the program.
    None,
    /// Beside the scenario's file.
    Beside(&'a Path),
    /// In a record, by the name that the scenario uses.
    Recorded(&'a BTreeMap<String, String>),
}

impl<'a> TraceFiles<'a> {
    pub(super) fn beside(folder: Option<&'a Path>) -> Self {
        Self { place: folder.map_or(Place::None, Place::Beside), read: RefCell::default() }
    }

    pub(super) fn recorded(files: &'a BTreeMap<String, String>) -> Self {
        Self { place: Place::Recorded(files), read: RefCell::default() }
    }

    /// Whether the scenario is that of a run which was made already.
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

    /// What was read, by name.
    pub(super) fn into_read(self) -> BTreeMap<String, String> {
        self.read.into_inner()
    }
}
