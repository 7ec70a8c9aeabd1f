//! Reads the trace files that a scenario refers to, and remembers which were read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;

use crate::files;

/// Size limit in bytes: about two hours at 50 Mbit/s with one packet per line.
const TRACE_MAX: u64 = 1 << 28;

/// A place from which trace files are read. It remembers their contents, so that a record can
/// include them.
pub(super) struct TraceFiles<'a> {
    place: Place<'a>,
    read: RefCell<BTreeMap<String, Rc<String>>>,
}

enum Place<'a> {
    /// No place: the scenario is built into the program.
    None,
    /// The folder of the scenario's file.
    Beside(&'a Path),
    /// A record, which stores them by the names that the scenario uses.
    Recorded(RefCell<BTreeMap<String, String>>),
}

impl<'a> TraceFiles<'a> {
    pub(super) fn beside(folder: Option<&'a Path>) -> Self {
        Self { place: folder.map_or(Place::None, Place::Beside), read: RefCell::default() }
    }

    pub(super) fn recorded(files: BTreeMap<String, String>) -> Self {
        Self { place: Place::Recorded(RefCell::new(files)), read: RefCell::default() }
    }

    /// Whether the scenario comes from the record of an earlier run.
    pub(super) fn are_recorded(&self) -> bool {
        matches!(self.place, Place::Recorded(_))
    }

    /// The text of a file. Large ones are read once and not copied.
    pub(super) fn read(&self, name: &str) -> Result<Rc<String>, String> {
        if let Some(text) = self.read.borrow().get(name) {
            return Ok(Rc::clone(text));
        }
        let text = match &self.place {
            Place::None => {
                Err("a trace file needs a scenario file beside it; pass its path".into())
            }
            Place::Recorded(files) => {
                files.borrow_mut().remove(name).ok_or_else(|| "the record does not hold it".into())
            }
            Place::Beside(folder) => files::read_packed_text(&folder.join(name), TRACE_MAX)
                .map_err(|error| match error.kind() {
                    ErrorKind::NotFound => "there is no such file beside the scenario".into(),
                    _ => error.to_string(),
                }),
        };
        let text = Rc::new(text?);
        self.read.borrow_mut().insert(name.into(), Rc::clone(&text));
        Ok(text)
    }

    /// The contents of the files read, by name.
    pub(super) fn into_read(self) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for (name, text) in self.read.into_inner() {
            texts.insert(name, Rc::unwrap_or_clone(text));
        }
        texts
    }
}
