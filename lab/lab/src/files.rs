//! Reads files of unknown origin. Only regular files are opened, and texts have a size limit: a
//! pipe may block for ever, and a device may never end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file, following links.
pub fn open(path: &Path) -> io::Result<File> {
    let refused = || {
        let why = "is no regular file: only such files are read";
        io::Error::new(io::ErrorKind::InvalidInput, why)
    };
    // Check before opening, because opening a device may have an effect. Check again afterwards,
    // because the file may have been replaced. Without `O_NONBLOCK`, opening a pipe would wait for
    // its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    let file = open_at_once(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

/// Opens a file without waiting for anybody.
#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Elsewhere pipes have no place in the file system.
#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// The text of a regular file that is not larger than `max` bytes.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let why = format!("is larger than {} MB", max / 1_000_000);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not text"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_links_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["file", "link"] {
            assert_eq!(read_text(&at(name), 4).unwrap(), "text", "{name}");
        }
        for name in ["zero", "socket", "pipe", "."] {
            let error = read_text(&at(name), 4).unwrap_err().to_string();
            assert!(error.starts_with("is no regular file"), "{name}: {error}");
        }
        assert_eq!(read_text(&at("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read_text(&path, 1_000_000).unwrap_err().to_string();
        assert_eq!(error, "is larger than 1 MB");
    }
}
