//! Writes files atomically: a file is complete, or it does not exist.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::unfinished::{self, HIDDEN, UnfinishedFile};

/// Writes a temporary file in the same folder and renames it at the end, so an existing file is
/// replaced only by a complete one. Other targets, such as a pipe or `/dev/stdout`, are written to
/// directly.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |out| out.write_all(bytes))
}

/// Like [`write()`], for content that is produced in pieces.
pub fn write_with<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    // Keep a link: replace the file that it leads to.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    if place.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is not a file's name").into());
    }
    let folder = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // A folder that is missing is told plainly: errors of temporary files have their random names.
    fs::metadata(folder)?;
    unfinished::clean(folder, HIDDEN);
    let mut unfinished = UnfinishedFile::new(folder)?;
    let mut out = BufWriter::new(unfinished.file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    Ok(unfinished.rename_to(&place)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page");
        write(&path, b"old and long").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("page");
        fs::create_dir(&taken).unwrap();
        assert!(write(&taken, b"new").is_err());
        assert!(write(Path::new("/"), b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_leads_to_the_file_that_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [page, link] = ["page", "link"].map(|name| folder.path().join(name));
        fs::write(&page, "old").unwrap();
        std::os::unix::fs::symlink(&page, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&page).unwrap(), b"new");
    }

    #[test]
    fn a_pipe_is_written_to_and_not_replaced() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        write(Path::new(&path), b"through").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }
}
