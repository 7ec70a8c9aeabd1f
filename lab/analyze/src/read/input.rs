//! Opens a file and unpacks it: gzip, bzip2, xz, zstd, and the first file in a zip archive. Makes
//! plain text of text.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::{DeflateDecoder, MultiGzDecoder};
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use weir_scenario::files;

use crate::error::AnalyzeError;
use crate::read::format::{Format, other, told_by};
use crate::read::plain_text;

// How packed files begin.
const GZIP: &[u8] = &[0x1F, 0x8B];
const BZIP2: &[u8] = b"BZh";
const XZ: &[u8] = b"\xFD7zXZ\0";
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
const ZIP: &[u8] = b"PK\x03\x04";
/// The longest of these.
const MAGIC: u64 = 6;
/// Packed files in each other. A capture that was compressed and then sent as a zip has two.
const DEEPEST: usize = 4;
/// Bytes that tell the format.
const PEEKED: u64 = 4_096;

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
        let (first, rest) = peek(file, MAGIC).map_err(&failed)?;
        let is_packed = [GZIP, BZIP2, XZ, ZSTD, ZIP].iter().any(|magic| first.starts_with(magic));
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
    let unpacked: Box<dyn Read> = if magic.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(whole))
    } else if magic.starts_with(BZIP2) {
        Box::new(MultiBzDecoder::new(whole))
    } else if magic.starts_with(XZ) {
        Box::new(XzReader::new(whole, true))
    } else if magic.starts_with(ZSTD) {
        Box::new(StreamingDecoder::new(whole).map_err(io::Error::other)?)
    } else {
        first_of_zip(whole)?
    };
    Ok(unpacked)
}

/// The first file in a zip archive, of the headers that stand before each file.
fn first_of_zip(mut archive: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
    const HEADER: usize = 30;
    const ENCRYPTED: u16 = 1;
    const STORED: u16 = 0;
    const DEFLATED: u16 = 8;
    let none = || io::Error::other("a zip archive without a file that can be read");
    loop {
        let mut header = [0; HEADER];
        archive.read_exact(&mut header)?;
        if !header.starts_with(ZIP) {
            return Err(none());
        }
        let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let size = u32::from_le_bytes([header[18], header[19], header[20], header[21]]);
        let mut name = vec![0; word(26).into()];
        archive.read_exact(&mut name)?;
        io::copy(&mut archive.by_ref().take(word(28).into()), &mut io::sink())?;
        // Folders, and what macOS adds.
        if name.ends_with(b"/") || name.starts_with(b"__MACOSX/") {
            io::copy(&mut archive.by_ref().take(size.into()), &mut io::sink())?;
            continue;
        }
        if word(6) & ENCRYPTED != 0 {
            return Err(io::Error::other("the zip archive is encrypted: unpack it first"));
        }
        return match word(8) {
            STORED => Ok(Box::new(archive.take(size.into()))),
            DEFLATED => Ok(Box::new(DeflateDecoder::new(archive))),
            _ => Err(none()),
        };
    }
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
        assert!(read(member("a", 8, 1, &packed)).unwrap_err().to_string().contains("encrypted"));
        assert!(read(member("a", 99, 0, &packed)).is_err());
        for end in 0..folder.len() {
            assert!(read(folder[..end].to_vec()).is_err());
        }
    }

    #[test]
    fn each_packer_is_told_by_its_first_bytes() {
        // `{}` and a line feed, by the tools of these names.
        let bzip2 = [
            0x42, 0x5A, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x57, 0xC8, 0xDE, 0x96,
            0x00, 0x00, 0x00, 0xC0, 0x80, 0x00, 0x10, 0x00, 0x0A, 0x20, 0x00, 0x21, 0x98, 0x19,
            0x84, 0x61, 0x77, 0x24, 0x53, 0x85, 0x09, 0x05, 0x7C, 0x8D, 0xE9, 0x60,
        ];
        let xz = [
            0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00, 0x00, 0x04, 0xE6, 0xD6, 0xB4, 0x46, 0x02, 0x00,
            0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2F, 0xE5, 0xA3, 0x01, 0x00, 0x02, 0x7B,
            0x7D, 0x0A, 0x00, 0x00, 0x63, 0xA1, 0x8A, 0xE0, 0xB5, 0x03, 0x69, 0x3A, 0x00, 0x01,
            0x1B, 0x03, 0x0B, 0x2F, 0xB9, 0x10, 0x1F, 0xB6, 0xF3, 0x7D, 0x01, 0x00, 0x00, 0x00,
            0x00, 0x04, 0x59, 0x5A,
        ];
        let zstd = [
            0x28, 0xB5, 0x2F, 0xFD, 0x24, 0x03, 0x19, 0x00, 0x00, 0x7B, 0x7D, 0x0A, 0xBA, 0xD3,
            0x11, 0x9C,
        ];
        for packed in [&bzip2[..], &xz, &zstd] {
            assert_eq!(read(packed.to_vec()).unwrap(), b"{}\n");
            for end in MAGIC as usize..packed.len() {
                let _ = read(packed[..end].to_vec());
            }
        }
    }
}
