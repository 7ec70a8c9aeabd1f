//! Opens a file and unpacks it: gzip, bzip2, xz, zstd, and the first file in a zip archive. Makes
//! plain text of text.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::DeflateDecoder;
use weir_scenario::files;
use weir_scenario::packed::{MAGIC, Packer, ZIP};

use crate::error::AnalyzeError;
use crate::read::format::{Format, other, told_by};
use crate::read::plain_text;

/// Packed files in each other. A capture that was compressed and then sent as a zip has two.
const DEEPEST: usize = 4;
/// Bytes that tell the format.
const PEEKED: u64 = 4_096;
/// Bytes of a file in an archive that tell the same, packed.
const JUDGED: u64 = 64 << 10;

/// Opens a regular file and tells its format. `-` is the standard input.
pub(crate) fn open(path: &Path) -> Result<(Format, Box<dyn BufRead>), AnalyzeError> {
    let failed = AnalyzeError::of_file(path);
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        if path.is_dir() {
            return Err(failed(io::Error::other("this is a folder: name the files in it")));
        }
        Box::new(files::open(path).map_err(&failed)?)
    };
    unpacked(path, file)
}

/// Unpacks what a file contains, and tells its format.
pub(crate) fn unpacked(
    path: &Path,
    mut file: Box<dyn Read>,
) -> Result<(Format, Box<dyn BufRead>), AnalyzeError> {
    let failed = AnalyzeError::of_file(path);
    for _ in 0..DEEPEST {
        let (first, rest) = peek(file, MAGIC as u64).map_err(&failed)?;
        let is_packed = is_packed(&first);
        let magic = first.clone();
        let whole = Cursor::new(first).chain(rest);
        if !is_packed {
            file = Box::new(whole);
            break;
        }
        file = unpack(&magic, BufReader::new(whole)).map_err(&failed)?;
    }
    let (first, rest) = peek(file, PEEKED).map_err(&failed)?;
    let text = plain_text::plain(first, rest);
    let (first, rest) = peek(text, PEEKED).map_err(&failed)?;
    let format = told(path, &first)?;
    Ok((format, Box::new(BufReader::new(Cursor::new(first).chain(rest)))))
}

/// The format of a file that begins so.
fn told(path: &Path, first: &[u8]) -> Result<Format, AnalyzeError> {
    if first.is_empty() {
        return Err(AnalyzeError::Blank(path.into()));
    }
    match (told_by(first), other(first)) {
        // JSON of another kind begins like a dump.
        (None | Some(Format::Internals), Some(what)) => {
            Err(AnalyzeError::Other { path: path.into(), what })
        }
        (Some(format), _) => Ok(format),
        (None, None) => Err(AnalyzeError::Unknown(path.into())),
    }
}

/// The content of a packed file that begins so.
fn unpack(magic: &[u8], whole: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
    match Packer::of(magic) {
        Some(packer) => packer.unpack(whole),
        None => first_of_zip(whole),
    }
}

/// The first file in a zip archive that may be a dump, by the headers that stand before each file.
/// If none may be, the first one, so that it is named.
fn first_of_zip(mut archive: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
    let mut first: Option<Vec<u8>> = None;
    loop {
        let member = match next_of_zip(&mut archive) {
            Ok(Some(member)) => member,
            other => {
                return match (first, other) {
                    (Some(first), _) => Ok(Box::new(Cursor::new(first))),
                    (None, Err(error)) => Err(error),
                    (None, _) => {
                        Err(io::Error::other("a zip archive without a file that can be read"))
                    }
                };
            }
        };
        let mut begin = Vec::new();
        archive
            .by_ref()
            .take(member.size.unwrap_or(u64::MAX).min(JUDGED))
            .read_to_end(&mut begin)?;
        let left = member.size.map_or(u64::MAX, |size| size - begin.len() as u64);
        let head = member.head(&begin);
        // Of a member without a length, the next one has no place.
        let may_be = told_by(&head).is_some() || is_packed(&head) || is_text(&head);
        if may_be || member.size.is_none() {
            let whole = Cursor::new(begin).chain(archive.take(left));
            if member.is_deflated {
                return Ok(Box::new(DeflateDecoder::new(whole)));
            }
            return Ok(Box::new(whole));
        }
        first.get_or_insert(head);
        io::copy(&mut archive.by_ref().take(left), &mut io::sink())?;
    }
}

/// A file in a zip archive.
struct Member {
    is_deflated: bool,
    /// `None` if it stands behind the file.
    size: Option<u64>,
}

impl Member {
    /// Its first bytes, of those that the archive has of it.
    fn head(&self, begin: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        // What follows is missing, so an error comes at the end.
        let _ = match self.is_deflated {
            true => DeflateDecoder::new(begin).take(PEEKED).read_to_end(&mut head),
            false => begin.take(PEEKED).read_to_end(&mut head),
        };
        head
    }
}

/// The next member that can be read; `None` behind the last one.
fn next_of_zip(archive: &mut impl BufRead) -> io::Result<Option<Member>> {
    const HEADER: usize = 30;
    const ENCRYPTED: u16 = 1;
    const SIZE_BEHIND: u16 = 8;
    const STORED: u16 = 0;
    const DEFLATED: u16 = 8;
    loop {
        let mut header = [0; HEADER];
        archive.read_exact(&mut header)?;
        if !header.starts_with(ZIP) {
            return Ok(None);
        }
        let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let size = u32::from_le_bytes([header[18], header[19], header[20], header[21]]);
        let mut name = vec![0; word(26).into()];
        archive.read_exact(&mut name)?;
        io::copy(&mut archive.by_ref().take(word(28).into()), &mut io::sink())?;
        let is_behind = word(6) & SIZE_BEHIND != 0 && size == 0;
        // Folders, and what macOS adds.
        let is_passed = name.ends_with(b"/") || name.starts_with(b"__MACOSX/");
        if word(6) & ENCRYPTED != 0 && !is_passed {
            return Err(io::Error::other("the zip archive is encrypted: unpack it first"));
        }
        if !is_passed && [STORED, DEFLATED].contains(&word(8)) {
            let size = Some(u64::from(size)).filter(|_| !is_behind);
            return Ok(Some(Member { is_deflated: word(8) == DEFLATED, size }));
        }
        io::copy(&mut archive.by_ref().take(size.into()), &mut io::sink())?;
    }
}

/// Whether a file is packed in one of the known ways.
fn is_packed(first: &[u8]) -> bool {
    Packer::of(first).is_some() || first.starts_with(ZIP)
}

/// Whether a file is text in which a dump may stand: JSON or the lines of one, behind a byte order
/// mark or blanks.
fn is_text(first: &[u8]) -> bool {
    let mut text = Vec::new();
    let all = plain_text::plain(first.to_vec(), io::empty()).take(PEEKED).read_to_end(&mut text);
    all.is_ok() && told_by(&text).is_some()
}

/// The first bytes, and what follows them.
fn peek<R: Read>(mut from: R, length: u64) -> io::Result<(Vec<u8>, R)> {
    let mut first = Vec::new();
    from.by_ref().take(length).read_to_end(&mut first)?;
    Ok((first, from))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// What a file unpacks to.
    fn read(packed: Vec<u8>) -> io::Result<Vec<u8>> {
        let magic = packed.clone();
        let mut found = Vec::new();
        unpack(&magic, Cursor::new(packed))?.read_to_end(&mut found)?;
        Ok(found)
    }

    fn member(name: &str, method: u8, flags: u8, data: &[u8]) -> Vec<u8> {
        let mut file = [ZIP, &[20, 0, flags, 0, method, 0]].concat();
        file.extend([0; 8]);
        file.extend([data.len() as u32; 2].map(u32::to_le_bytes).concat());
        file.extend([name.len() as u8, 0, 3, 0]);
        file.extend(name.as_bytes());
        file.extend(b"xyz");
        file.extend(data);
        file
    }

    #[test]
    fn the_first_file_of_a_zip_is_read_behind_folders() {
        let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), Default::default());
        packer.write_all(b"{}").unwrap();
        let packed = packer.finish().unwrap();
        let folder = member("a/", 0, 0, b"");
        for (method, data) in [(0, &b"{}"[..]), (8, &packed[..])] {
            let archive = [&folder[..], &member("a/b.json", method, 0, data), b"PK\x01\x02"];
            assert_eq!(read(archive.concat()).unwrap(), b"{}");
        }
        // Other files stand before it.
        let note = member("readme.txt", 0, 0, b"This is what the browser saved.");
        let archive = [&note[..], &member("a/b.json", 8, 0, &packed), b"PK\x01\x02"];
        assert_eq!(read(archive.concat()).unwrap(), b"{}");
        let central = [b"PK\x01\x02".to_vec(), vec![0; 30]].concat();
        assert!(read([&note[..], &central].concat()).unwrap().starts_with(b"This is"));
        assert!(read(member("a", 8, 1, &packed)).unwrap_err().to_string().contains("encrypted"));
        assert!(read(member("a", 99, 0, &packed)).is_err());
        for end in 0..folder.len() {
            assert!(read(folder[..end].to_vec()).is_err());
        }
    }
}
