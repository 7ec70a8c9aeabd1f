//! Folders for what a run writes while it lives. Who is killed leaves them behind; the next one removes
//! them.
//!
//! The living process holds flock(2) on its folder, and the kernel lets go of it when the process ends,
//! however it ends. So whoever gets the lock has a dead folder. Process ids would not tell: in containers
//! that share a folder everybody may be process 1.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::{Builder, TempDir};

/// New names until one is not taken for dead between its making and its locking.
const TRIES: u32 = 100;

/// A folder that is removed when it is dropped, or by the next process if this one is killed.
#[derive(Debug)]
pub(crate) struct Scratch {
    // Removed while the lock is held: nobody else begins to remove it too.
    folder: TempDir,
    _lock: Option<File>,
}

impl Scratch {
    /// Makes a folder whose name begins with `prefix`, and removes the dead ones of that prefix.
    pub(crate) fn new_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_dead(parent, prefix);
        // The number of the process is for people; what follows it is random.
        let name = format!("{prefix}{}-", std::process::id());
        for _ in 0..TRIES {
            let mut builder = Builder::new();
            let folder = builder.prefix(&name).permissions(private()).tempdir_in(parent)?;
            match lock(folder.path()) {
                Lock::Taken(file) => return Ok(Self { folder, _lock: Some(file) }),
                // Nobody can take it for dead, nor can anybody remove it later.
                Lock::Impossible => return Ok(Self { folder, _lock: None }),
                Lock::Lost => {}
            }
        }
        Err(io::Error::other(format!("others remove new folders in {}", parent.display())))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes it.
    pub(crate) fn close(self) -> io::Result<()> {
        self.folder.close()
    }
}

fn private() -> fs::Permissions {
    fs::Permissions::from_mode(0o700)
}

/// Removes folders that no living process holds. One that cannot be removed waits for the next time.
pub(crate) fn remove_dead(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(prefix);
        // A link is not followed: it may lead to a folder that was never a scratch one.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_named
            && is_folder
            && let Lock::Taken(_file) = lock(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

enum Lock {
    /// The folder is the holder's until the file is closed.
    Taken(File),
    /// Somebody else has the lock, or the folder is gone.
    Lost,
    /// This file system has no locks, or this user may not open the folder.
    Impossible,
}

fn lock(folder: &Path) -> Lock {
    let file = match File::open(folder) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Lock::Lost,
        Err(_) => return Lock::Impossible,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Lock::Lost,
        Err(TryLockError::Error(_)) => return Lock::Impossible,
    }
    // Between the opening and the locking somebody may have removed it.
    let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let opened = file.metadata().map(identity);
    match (opened, fs::symlink_metadata(folder).map(identity)) {
        (Ok(opened), Ok(there)) if opened == there => Lock::Taken(file),
        _ => Lock::Lost,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const PREFIX: &str = "weir-test-";

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_dead_folder_is_removed_and_a_living_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::new_in(parent.path(), PREFIX).unwrap();
        let dead = parent.path().join("weir-test-dead");
        fs::create_dir_all(dead.join("profile/cache")).unwrap();
        fs::write(dead.join("profile/lock"), "x").unwrap();
        let next = Scratch::new_in(parent.path(), PREFIX).unwrap();
        assert!(living.path().is_dir() && next.path().is_dir() && !dead.exists());
        living.close().unwrap();
        drop(next);
        assert_eq!(names(parent.path()), [""; 0]);
    }

    #[test]
    fn what_is_not_a_scratch_folder_stays() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("weir-other")).unwrap();
        fs::write(parent.path().join("weir-test-file"), "x").unwrap();
        let link = parent.path().join("weir-test-link");
        std::os::unix::fs::symlink(elsewhere.path(), link).unwrap();
        remove_dead(parent.path(), PREFIX);
        assert_eq!(names(parent.path()).len(), 3);
        assert!(elsewhere.path().is_dir());
        remove_dead(Path::new("/no/such"), PREFIX);
    }

    #[test]
    fn folders_that_are_made_at_once_do_not_remove_each_other() {
        let parent = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let scratch = Scratch::new_in(parent.path(), PREFIX).unwrap();
                        fs::write(scratch.path().join("file"), "x").unwrap();
                        assert!(scratch.path().join("file").is_file());
                        scratch.close().unwrap();
                    }
                });
            }
        });
        assert_eq!(names(parent.path()), [""; 0]);
    }
}
