//! Opens a file and unpacks gzip.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::AnalyzeError;
use crate::format::{Format, told_by};

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1F, 0x8B];
/// Bytes that tell the format.
const PEEKED: u64 = 4_096;

/// Opens a file and tells its format. `-` is the standard input.
pub(crate) fn open(path: &Path) -> Result<(Format, Box<dyn BufRead>), AnalyzeError> {
    let failed = AnalyzeError::of_file(path);
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(&failed)?;
        if file.metadata().map_err(&failed)?.is_dir() {
            return Err(failed(io::Error::other("this is a folder: name the files in it")));
        }
        Box::new(file)
    };
    unpacked(path, file)
}

/// Unpacks what a file contains, and tells its format.
pub(crate) fn unpacked(
    path: &Path,
    file: Box<dyn Read>,
) -> Result<(Format, Box<dyn BufRead>), AnalyzeError> {
    let failed = AnalyzeError::of_file(path);
    let (first, rest) = peek(file, GZIP.len() as u64).map_err(&failed)?;
    let is_packed = first == GZIP;
    let whole = Cursor::new(first).chain(rest);
    let whole: Box<dyn Read> = if is_packed {
        Box::new(MultiGzDecoder::new(BufReader::new(whole)))
    } else {
        Box::new(whole)
    };
    let (first, rest) = peek(whole, PEEKED).map_err(&failed)?;
    let format = told_by(&first).ok_or_else(|| AnalyzeError::Unknown(path.into()))?;
    Ok((format, Box::new(BufReader::new(Cursor::new(first).chain(rest)))))
}

/// The first bytes, and what follows them.
fn peek<R: Read>(mut from: R, length: u64) -> io::Result<(Vec<u8>, R)> {
    let mut first = Vec::new();
    from.by_ref().take(length).read_to_end(&mut first)?;
    Ok((first, from))
}
