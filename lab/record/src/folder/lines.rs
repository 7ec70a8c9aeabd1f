//! Reads a file of a record line by line, so that memory does not grow with its length.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::{RecordError, damaged, io_error};

/// Longest line in bytes: more than any line of a record needs.
const LONGEST: u64 = 1 << 20;

/// Passes each line to `take`. An error contains the path and the number of the line.
pub(super) fn each(
    file: impl Read,
    path: &Path,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), RecordError> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read =
            (&mut file).take(LONGEST).read_until(b'\n', &mut line).map_err(io_error(path))?;
        if read == 0 {
            break;
        }
        let text = if read as u64 == LONGEST { Err("is too long".into()) } else { text(&line) };
        let taken = text.and_then(&mut take);
        taken.map_err(|what| damaged(path, format!("line {number}: {what}")))?;
    }
    Ok(())
}

/// Passes each line to `take`, except the first, which must equal `header`.
pub(super) fn each_below(
    file: impl Read,
    path: &Path,
    header: &str,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), RecordError> {
    let wrong = || format!("the first line must be {header}");
    let mut is_first = true;
    each(file, path, |line| {
        if std::mem::take(&mut is_first) {
            return if line == header { Ok(()) } else { Err(wrong()) };
        }
        take(line)
    })?;
    if is_first { Err(damaged(path, wrong())) } else { Ok(()) }
}

/// The line as text, without its end-of-line characters.
fn text(line: &[u8]) -> Result<&str, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    str::from_utf8(line).map_err(|_| "is not text".into())
}
