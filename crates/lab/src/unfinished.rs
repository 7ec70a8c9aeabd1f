//! What is being written lies under a name of its own, and is renamed at the end or vanishes.
//!
//! Its writer holds a lock on it (flock), which the system lets go however the writer ends. So whoever gets
//! the lock has proof that nobody writes any more, and may remove it. Names are drawn at random: process
//! ids are the same in every container.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::{Builder, TempDir, TempPath};

/// How the names of files and folders begin that lie beside what people look at.
pub const HIDDEN: &str = ".weir-unfinished-";
/// Whoever cleans may take a name away in the moment before it is locked; it will not do so again and
/// again.
const TRIES: usize = 100;

/// A folder that vanishes unless it is renamed to its final name: with its owner, or if that was killed,
/// when somebody cleans.
#[derive(Debug)]
pub struct UnfinishedFolder {
    // Removed while the lock is held: nobody else begins to remove it too.
    folder: TempDir,
    _lock: Option<File>,
}

impl UnfinishedFolder {
    /// A hidden folder that will be renamed.
    pub fn new(parent: &Path) -> io::Result<Self> {
        Self::build(parent, Builder::new().prefix(HIDDEN))
    }

    /// A folder of this user's alone whose name begins with `prefix`.
    pub fn private(parent: &Path, prefix: &str) -> io::Result<Self> {
        let of_the_user = Permissions::from_mode(0o700);
        Self::build(parent, Builder::new().prefix(prefix).permissions(of_the_user))
    }

    fn build(parent: &Path, builder: &Builder<'_, '_>) -> io::Result<Self> {
        locked(|| {
            let folder = builder.tempdir_in(parent)?;
            let path = folder.path().to_path_buf();
            match File::open(&path) {
                Ok(lock) => Ok(Some((path, lock, folder))),
                // Taken away already.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
        .map(|(folder, _lock)| Self { folder, _lock })
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes it.
    pub fn close(self) -> io::Result<()> {
        self.folder.close()
    }

    /// Gives it its final name, under which it stays.
    pub fn rename_to(self, place: &Path) -> io::Result<()> {
        fs::rename(self.folder.path(), place)?;
        // It has another name now, under which it stays.
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
        // As any other new file: the user's mask decides.
        let permissions = Permissions::from_mode(0o666);
        let ((file, path), _) = locked(|| {
            let made = Builder::new()
                .prefix(HIDDEN)
                .permissions(permissions.clone())
                .tempfile_in(parent)?;
            let (file, path) = made.into_parts();
            let lock = file.try_clone()?;
            Ok(Some((path.to_path_buf(), lock, (file, path))))
        })?;
        Ok(Self { path, file })
    }

    /// To write into.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its final name, under which it stays.
    pub fn rename_to(self, place: &Path) -> io::Result<()> {
        Ok(self.path.persist(place)?)
    }
}

/// Makes something and locks it, before whoever cleans thinks that it is dead.
fn locked<T>(
    make: impl Fn() -> io::Result<Option<(PathBuf, File, T)>>,
) -> io::Result<(T, Option<File>)> {
    for _ in 0..TRIES {
        let Some((path, lock, made)) = make()? else { continue };
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
    let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let there = fs::symlink_metadata(path).map(identity);
    let opened = file.metadata().map(identity);
    matches!((there, opened), (Ok(there), Ok(opened)) if there == opened)
}

/// Removes what is dead of the files and folders in a folder whose names begin with `prefix`: what no
/// living program holds a lock on. What cannot be removed stays.
pub fn clean(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            // Somebody else may clean here too.
            let _ = remove_if_dead(&entry.path());
        }
    }
}

fn remove_if_dead(path: &Path) -> io::Result<()> {
    // Never another's file behind a link, and no pipe to wait for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
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
