//! Files and folders that are written under a temporary name. At the end they are renamed or
//! removed.
//!
//! The writer holds a lock (flock), which the system releases however the writer ends. Whoever gets
//! the lock therefore knows that nobody writes any more, and may remove the file. Names are random,
//! because process ids repeat in every container.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir, TempPath};

/// Prefix of temporary files and folders in places that people look at.
pub const HIDDEN: &str = ".weir-unfinished-";
/// Attempts to create and lock a file. A cleaner may remove it before it is locked, but hardly this
/// often.
const TRIES: usize = 100;

/// A folder that is removed unless it is renamed to its final name. It is removed when dropped, or
/// by [`clean`] if its program was killed.
#[derive(Debug)]
pub struct UnfinishedFolder {
    // Fields are dropped in this order: the folder is removed while the lock is held.
    folder: TempDir,
    _lock: Option<File>,
}

impl UnfinishedFolder {
    /// A hidden folder that will be renamed.
    pub fn new(parent: &Path) -> io::Result<Self> {
        Self::build(parent, Builder::new().prefix(HIDDEN))
    }

    /// A folder that only this user can access, whose name begins with `prefix`.
    pub fn private(parent: &Path, prefix: &str) -> io::Result<Self> {
        Self::build(parent, with_mode(Builder::new().prefix(prefix), 0o700))
    }

    fn build(parent: &Path, builder: &Builder<'_, '_>) -> io::Result<Self> {
        locked(|| {
            let folder = builder.tempdir_in(parent)?;
            let path = folder.path().to_path_buf();
            match File::open(&path) {
                Ok(lock) => Ok(Some((path, lock, folder))),
                // A cleaner has removed it already.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
        .map(|(folder, _lock)| Self { folder, _lock })
    }

    /// Its current path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder.
    pub fn close(self) -> io::Result<()> {
        self.folder.close()
    }

    /// Renames it to its final name, so that it stays.
    pub fn rename_to(self, place: &Path) -> io::Result<()> {
        fs::rename(self.folder.path(), place)?;
        // The folder is in its final place, so `TempDir` must not remove it.
        let _ = self.folder.keep();
        Ok(())
    }
}

/// A file that vanishes unless it is renamed to its final name.
#[derive(Debug)]
pub struct UnfinishedFile {
    path: TempPath,
    file: File,
}

impl UnfinishedFile {
    /// A hidden file.
    pub fn new(parent: &Path) -> io::Result<Self> {
        // Permissions of an ordinary new file; the umask restricts them.
        let ((file, path), _) = locked(|| {
            let made = with_mode(Builder::new().prefix(HIDDEN), 0o666).tempfile_in(parent)?;
            let (file, path) = made.into_parts();
            let lock = file.try_clone()?;
            Ok(Some((path.to_path_buf(), lock, (file, path))))
        })?;
        Ok(Self { path, file })
    }

    /// The open file, for writing.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Renames it to its final name, so that it stays.
    pub fn rename_to(self, place: &Path) -> io::Result<()> {
        Ok(self.path.persist(place)?)
    }
}

/// Creates something and locks it. Tries again if a cleaner removed it before it was locked.
fn locked<T>(
    make: impl Fn() -> io::Result<Option<(PathBuf, File, T)>>,
) -> io::Result<(T, Option<File>)> {
    for _ in 0..TRIES {
        let Some((path, lock, made)) = make()? else { continue };
        match lock.try_lock() {
            Ok(()) if is_still(&path, &lock) => return Ok((made, Some(lock))),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // The file system has no locks, so cleaners remove nothing there.
            Err(TryLockError::Error(_)) => return Ok((made, None)),
        }
    }
    Err(io::Error::other("what is begun here is taken away at once"))
}

/// Whether `path` still leads to the open `file`.
fn is_still(path: &Path, file: &File) -> bool {
    let there = fs::symlink_metadata(path);
    matches!((there, file.metadata()), (Ok(there), Ok(opened)) if is_same(&there, &opened))
}

#[cfg(unix)]
fn is_same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Elsewhere an open file cannot be replaced, so a path that is still there leads to it.
#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

/// With the permissions that `mode` says, restricted by the umask. Only Unix has them.
fn with_mode<'a, 'b, 'c>(
    builder: &'a mut Builder<'b, 'c>,
    #[cfg_attr(not(unix), expect(unused_variables))] mode: u32,
) -> &'a mut Builder<'b, 'c> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    builder
}

/// Opens what an unfinished file may be. Does not follow a link to a file elsewhere, and does not
/// wait for the writer of a pipe.
#[cfg(unix)]
fn open_itself(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open_itself(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Removes abandoned files and folders in `folder` whose names begin with `prefix`: those that no
/// running program has locked. Entries that cannot be removed stay.
pub fn clean(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            // Another cleaner may have removed it.
            let _ = remove_if_dead(&entry.path());
        }
    }
}

fn remove_if_dead(path: &Path) -> io::Result<()> {
    let file = open_itself(path)?;
    match file.try_lock() {
        Ok(()) if is_still(path, &file) => {}
        Ok(()) | Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if file.metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
        // Left behind by a killed program.
        let dead = place.path().join(format!("{HIDDEN}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("run.json"), "{").unwrap();
        fs::write(place.path().join(format!("{HIDDEN}page")), "<").unwrap();
        fs::write(place.path().join(".mine"), "").unwrap();
        assert_eq!(names(place.path()).len(), 5);
        clean(place.path(), HIDDEN);
        assert_eq!(names(place.path()).len(), 3);
        use std::io::Write;
        file.file().write_all(b"page").unwrap();
        let [record, page] = ["record", "page"].map(|name| place.path().join(name));
        folder.rename_to(&record).unwrap();
        file.rename_to(&page).unwrap();
        clean(place.path(), HIDDEN);
        assert!(record.join("run.json").is_file());
        assert_eq!(fs::read(&page).unwrap(), b"page");
        assert_eq!(names(place.path()).len(), 3);
    }

    #[test]
    fn a_link_under_a_hidden_name_leads_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let mine = place.path().join("mine");
        fs::create_dir(&mine).unwrap();
        std::os::unix::fs::symlink(&mine, place.path().join(format!("{HIDDEN}link"))).unwrap();
        clean(place.path(), HIDDEN);
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

    #[test]
    fn a_private_folder_is_its_users_alone_and_only_dead_ones_of_its_name_go() {
        let place = tempfile::tempdir().unwrap();
        let living = UnfinishedFolder::private(place.path(), "run-1-").unwrap();
        let mode = fs::metadata(living.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        for dead in ["run-dead", "other"] {
            fs::create_dir_all(place.path().join(dead).join("profile/cache")).unwrap();
        }
        clean(place.path(), "run-");
        clean(Path::new("/no/such"), "run-");
        assert_eq!(names(place.path()).len(), 2);
        assert!(living.path().is_dir() && place.path().join("other").is_dir());
        living.close().unwrap();
        assert_eq!(names(place.path()).len(), 1);
    }

    #[test]
    fn folders_that_are_made_at_once_do_not_remove_each_other() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        clean(place.path(), "run-");
                        let folder = UnfinishedFolder::private(place.path(), "run-").unwrap();
                        fs::write(folder.path().join("file"), "x").unwrap();
                        assert!(folder.path().join("file").is_file());
                        folder.close().unwrap();
                    }
                });
            }
        });
        assert!(names(place.path()).is_empty());
    }
}
