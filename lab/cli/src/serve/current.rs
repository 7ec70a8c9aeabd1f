//! The current run, shared by its threads and the pages, and what all of them name.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::job::Job;

/// The current run, or the last one; `None` before the first.
pub type Shared = Arc<Mutex<Option<Job>>>;

/// A command that a link may run.
#[derive(Clone, Debug)]
pub struct LinkCommand {
    pub name: String,
    /// What runs on host B, if anything.
    pub peer: Option<String>,
    pub words: Vec<String>,
}

/// Locks the current run. A thread that panicked has left it usable.
pub fn lock(shared: &Shared) -> MutexGuard<'_, Option<Job>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the job, unless another one has taken its place.
pub fn update(shared: &Shared, number: u64, change: impl FnOnce(&mut Job)) {
    if let Some(job) = lock(shared).as_mut().filter(|job| job.number == number) {
        change(job);
    }
}

/// The path of a record below the folder of records.
pub fn name_below(out: &Path, folder: &Path) -> String {
    folder.strip_prefix(out).unwrap_or(folder).display().to_string()
}

/// The names of the records in a folder below `out`.
pub fn names_in(out: &Path, folder: &Path) -> Vec<String> {
    let found = weir_record::find(folder).unwrap_or_default();
    found.iter().map(|folder| name_below(out, folder)).collect()
}
