//! The temporary folder of calls and links: their sockets, and an edited scenario.
//!
//! It is made when the first of them starts. A server holds a lock (flock) on its folder. The
//! system releases the lock even if the server is killed. So the next server knows which folders
//! are no longer in use, and removes them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use tempfile::TempDir;

const PREFIX: &str = "weir-serve-";

/// A folder that exists once it was needed.
#[derive(Debug)]
pub struct Scratch {
    /// Where temporary folders are.
    place: PathBuf,
    made: Mutex<Option<(TempDir, File)>>,
}

impl Scratch {
    /// Makes no folder yet. Removes the folders of killed servers from `place`.
    pub fn new(place: &Path) -> Self {
        remove_unused(place);
        Self { place: place.into(), made: Mutex::new(None) }
    }

    /// The folder.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn folder(&self) -> anyhow::Result<PathBuf> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.is_none() {
            *made = Some(locked(&self.place).context("cannot make a temporary folder")?);
        }
        let folder = made.as_ref().map(|(folder, _)| folder.path().to_owned());
        folder.context("the folder was just made")
    }

    /// Removes the folder, if there is one. What cannot be removed is left to the next server.
    pub fn remove(&self) {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((folder, _lock)) = made {
            let _ = folder.close();
        }
    }
}

/// A new folder with its lock.
fn locked(place: &Path) -> std::io::Result<(TempDir, File)> {
    loop {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        let lock = File::open(folder.path())?;
        // A server that starts right now may take the folder for one that nobody uses.
        if lock.try_lock().is_ok() && folder.path().exists() {
            return Ok((folder, lock));
        }
    }
}

/// Removes the folders whose servers have ended. What is another user's cannot be opened, and
/// stays.
fn remove_unused(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours || !is_folder {
            continue;
        }
        let Ok(lock) = File::open(entry.path()) else { continue };
        if lock.try_lock().is_ok() {
            // It may be gone already: another server starts, too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(place: &Path) -> usize {
        std::fs::read_dir(place).unwrap().count()
    }

    #[test]
    fn a_folder_is_made_when_it_is_needed_and_removed_once() {
        let place = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(place.path());
        assert_eq!(names(place.path()), 0);
        let folder = scratch.folder().unwrap();
        assert_eq!((scratch.folder().unwrap(), names(place.path())), (folder, 1));
        scratch.remove();
        scratch.remove();
        assert_eq!(names(place.path()), 0);
    }

    #[test]
    fn folders_of_killed_servers_are_removed_and_those_in_use_stay() {
        let place = tempfile::tempdir().unwrap();
        let (left, other) = (place.path().join("weir-serve-left"), place.path().join("weir-other"));
        for folder in [&left, &other] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(left.join("live-1"), "").unwrap();
        let running = Scratch::new(place.path());
        assert!(!left.exists() && other.exists());
        let used = running.folder().unwrap();
        let _next = Scratch::new(place.path());
        assert!(used.exists());
    }
}
