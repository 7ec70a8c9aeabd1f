//! Reads files of unknown origin. Only regular files are opened, and texts have a size limit: a
//! pipe may block for ever, and a device may never end.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::packed::{Packer, ZIP};

/// Bytes that are unpacked at once.
const UNPACKED: usize = 1 << 16;

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
    text(open(path)?, max)
}

/// The same of a file that may be [packed](Packer). Where there is no such file, the one with the
/// ending of a packer after its name is read. The limit is that of the unpacked text.
pub fn read_packed_text(path: &Path, max: u64) -> io::Result<String> {
    text(open_packed(path)?, max)
}

/// Opens such a file and unpacks it as it is read.
pub fn open_packed(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(open(path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => open_ending(path).ok_or(error),
        _ => Err(error),
    })?);
    let first = file.fill_buf()?;
    if first.starts_with(ZIP) {
        let why = "is a zip archive, which may hold several files; unpack it";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let Some(packer) = Packer::of(first) else { return Ok(Box::new(file)) };
    let unpacked = packer.unpack(file)?;
    Ok(Box::new(BufReader::with_capacity(UNPACKED, unpacked)))
}

/// The file whose name has the ending of a packer after this one.
fn open_ending(path: &Path) -> Option<File> {
    Packer::ALL.iter().find_map(|(_, ending)| {
        let mut name = path.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        open(Path::new(&name)).ok()
    })
}

fn text(file: impl Read, max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let why = format!("is larger than {} MB", max / 1_000_000);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let is_wide = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
    let text = if is_wide { of_utf16(&bytes) } else { String::from_utf8(bytes).ok() };
    let why = "is no text in UTF-8; save it as such";
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// The text of UTF-16 after a byte order mark, as programs for office save it.
fn of_utf16(bytes: &[u8]) -> Option<String> {
    let (mark, bytes) = bytes.split_at_checked(2)?;
    let is_big = mark == [0xFE, 0xFF];
    let mut units = Vec::with_capacity(bytes.len() / 2);
    for pair in bytes.chunks(2) {
        let pair = pair.try_into().ok()?;
        units.push(if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) });
    }
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use flate2::Compression;
    use flate2::write::GzEncoder;

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
    fn a_packed_file_reads_as_the_file_in_it_by_either_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, texts) in [("a.gz", &["text"][..]), ("two.gz", &["te", "xt"])] {
            let mut all = Vec::new();
            for part in texts {
                let mut packed = GzEncoder::new(&mut all, Compression::best());
                packed.write_all(part.as_bytes()).unwrap();
                packed.finish().unwrap();
            }
            fs::write(at(name), all).unwrap();
        }
        fs::write(at("plain"), "text").unwrap();
        for name in ["a", "a.gz", "two", "two.gz", "plain"] {
            assert_eq!(read_packed_text(&at(name), 4).unwrap(), "text", "{name}");
        }
        let error = read_packed_text(&at("none"), 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        // The limit holds for what is unpacked.
        let error = read_packed_text(&at("a"), 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let whole = fs::read(at("a.gz")).unwrap();
        for length in 2..whole.len() {
            fs::write(at("cut.gz"), &whole[..length]).unwrap();
            assert!(read_packed_text(&at("cut"), 4).is_err(), "{length}");
        }
        fs::write(at("b.zip"), [ZIP, &[0; 40]].concat()).unwrap();
        let error = read_packed_text(&at("b.zip"), 4).unwrap_err().to_string();
        assert!(error.starts_with("is a zip archive"), "{error}");
    }

    #[test]
    fn a_text_in_utf_16_with_its_mark_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wide");
        for (mark, big) in [([0xFF, 0xFE], false), ([0xFE, 0xFF], true)] {
            let mut bytes = mark.to_vec();
            for unit in "0 8 µs\n".encode_utf16() {
                bytes.extend(if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
            }
            fs::write(&path, &bytes).unwrap();
            assert_eq!(read_text(&path, 100).unwrap(), "0 8 µs\n");
            fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
            assert!(read_text(&path, 100).is_err());
        }
        fs::write(&path, b"\xB5s").unwrap();
        let error = read_text(&path, 100).unwrap_err().to_string();
        assert_eq!(error, "is no text in UTF-8; save it as such");
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
