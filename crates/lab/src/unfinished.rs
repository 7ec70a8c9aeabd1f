//! What is being written lies beside its place under a hidden name, and is renamed at the end.
//!
//! Its writer holds a lock on it (flock), which the system lets go however the writer ends. So whoever gets
//! the lock has proof that nobody writes any more, and may remove it. Names are drawn at random: process
//! ids are the same in every container.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir, TempPath};

/// How the hidden names begin.
const PREFIX: &str = ".weir-unfinished-";
/// Whoever cleans may take a name away in the moment before it is locked; it will not do so again and
/// again.
const TRIES: usize = 16;

/// A folder that vanishes unless it is renamed to its final name.
#[derive(Debug)]
pub(crate) struct UnfinishedFolder {
    folder: TempDir,
    _lock: Option<File>,
}

impl UnfinishedFolder {
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        locked(|| {
            let folder = Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            let lock = File::open(folder.path())?;
            let path = folder.path().to_path_buf();
            Ok((path, lock, folder))
        })
        .map(|(folder, _lock)| Self { folder, _lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn rename_to(self, place: &Path) -> io::Result<()> {
        fs::rename(self.folder.path(), place)?;
        // It has another name now, under which it stays.
        let _ = self.folder.keep();
        Ok(())
    }
}

/// A file that vanishes unless it is renamed to its final name.
#[derive(Debug)]
pub(crate) struct UnfinishedFile {
    path: TempPath,
    file: File,
}

impl UnfinishedFile {
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        // As any other new file: the user's mask decides.
        let permissions = Permissions::from_mode(0o666);
        let ((file, path), _) = locked(|| {
            let made = Builder::new()
                .prefix(PREFIX)
                .permissions(permissions.clone())
                .tempfile_in(parent)?;
            let (file, path) = made.into_parts();
            let lock = file.try_clone()?;
            Ok((path.to_path_buf(), lock, (file, path)))
        })?;
        Ok(Self { path, file })
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    pub(crate) fn rename_to(self, place: &Path) -> io::Result<()> {
        Ok(self.path.persist(place)?)
    }
}

/// Makes something and locks it, before whoever cleans thinks that it is dead.
fn locked<T>(make: impl Fn() -> io::Result<(PathBuf, File, T)>) -> io::Result<(T, Option<File>)> {
    for _ in 0..TRIES {
        let (path, lock, made) = make()?;
        match lock.try_lock() {
            Ok(()) if is_still(&path, &lock) => return Ok((made, Some(lock))),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // A file system without locks: then nobody cleans there either.
            Err(TryLockError::Error(_)) => return Ok((made, None)),
        }
    }
    Err(io::Error::other("what is begun here is taken away at once"))
}

/// Whether a path still leads to an open file.
fn is_still(path: &Path, file: &File) -> bool {
    let same = || Ok::<_, io::Error>(fs::symlink_metadata(path)?.ino() == file.metadata()?.ino());
    same().unwrap_or(false)
}

/// Removes what is dead in a folder: what no living program holds a lock on. What cannot be removed stays.
pub(crate) fn clean(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            // Somebody else may clean here too.
            let _ = remove_if_dead(&entry.path());
        }
    }
}

fn remove_if_dead(path: &Path) -> io::Result<()> {
    // Never another's file behind a link, and no pipe to wait for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.try_lock() {
        Ok(()) if is_still(path, &file) => {}
        Ok(()) | Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if file.metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_somebody_writes_stays_and_what_is_dead_goes() {
        let place = tempfile::tempdir().unwrap();
        let folder = UnfinishedFolder::new(place.path()).unwrap();
        let mut file = UnfinishedFile::new(place.path()).unwrap();
        fs::write(folder.path().join("run.json"), "{}").unwrap();
        // As a killed program leaves them.
        let dead = place.path().join(format!("{PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("run.json"), "{").unwrap();
        fs::write(place.path().join(format!("{PREFIX}page")), "<").unwrap();
        fs::write(place.path().join(".mine"), "").unwrap();
        assert_eq!(names(place.path()).len(), 5);
        clean(place.path());
        assert_eq!(names(place.path()).len(), 3);
        use std::io::Write;
        file.file().write_all(b"page").unwrap();
        let [record, page] = ["record", "page"].map(|name| place.path().join(name));
        folder.rename_to(&record).unwrap();
        file.rename_to(&page).unwrap();
        clean(place.path());
        assert!(record.join("run.json").is_file());
        assert_eq!(fs::read(&page).unwrap(), b"page");
        assert_eq!(names(place.path()).len(), 3);
    }

    #[test]
    fn a_link_under_a_hidden_name_leads_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let mine = place.path().join("mine");
        fs::create_dir(&mine).unwrap();
        std::os::unix::fs::symlink(&mine, place.path().join(format!("{PREFIX}link"))).unwrap();
        clean(place.path());
        assert!(mine.is_dir());
    }

    #[test]
    fn what_is_not_finished_vanishes_with_its_writer() {
        let place = tempfile::tempdir().unwrap();
        let folder = UnfinishedFolder::new(place.path()).unwrap();
        fs::write(folder.path().join("run.json"), "{}").unwrap();
        drop((folder, UnfinishedFile::new(place.path()).unwrap()));
        assert!(names(place.path()).is_empty());
    }
}
