//! Reads lines of outside programs and of people, which may be of any length.

use std::io::{self, BufRead, Read};

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, with its end unless it is the last one.
    Whole,
    /// The beginning of a line that is too long. The rest was passed over.
    TooLong,
    /// Nothing follows.
    End,
}

/// Reads the next line into `line`, at most `max` bytes of it.
pub fn read(from: &mut impl BufRead, line: &mut Vec<u8>, max: usize) -> io::Result<Line> {
    line.clear();
    from.take(max as u64).read_until(b'\n', line)?;
    if line.is_empty() {
        return Ok(Line::End);
    }
    if line.len() < max || line.ends_with(b"\n") {
        return Ok(Line::Whole);
    }
    // A last line of exactly this length is whole.
    if from.fill_buf()?.is_empty() {
        return Ok(Line::Whole);
    }
    from.skip_until(b'\n')?;
    Ok(Line::TooLong)
}

/// The lines as texts without their ends, until the end or an error. What is beyond `max` bytes is
/// cut off.
pub fn cut(from: impl BufRead, max: usize) -> impl Iterator<Item = String> {
    Cut { from, max, line: Vec::new() }
}

struct Cut<R> {
    from: R,
    max: usize,
    line: Vec<u8>,
}

impl<R: BufRead> Iterator for Cut<R> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        match read(&mut self.from, &mut self.line, self.max) {
            Ok(Line::Whole | Line::TooLong) => {
                let text = String::from_utf8_lossy(&self.line);
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            Ok(Line::End) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_whole() {
        let mut from = BufReader::with_capacity(2, &b"four\nlonger\n\nfive!"[..]);
        let mut line = Vec::new();
        for (kind, text) in [
            (Line::Whole, &b"four\n"[..]),
            (Line::TooLong, b"longe"),
            (Line::Whole, b"\n"),
            (Line::Whole, b"five!"),
            (Line::End, b""),
        ] {
            assert_eq!(read(&mut from, &mut line, 5).unwrap(), kind);
            assert_eq!(line, text);
        }
    }

    #[test]
    fn texts_of_lines_are_cut_and_need_not_be_utf8() {
        let found: Vec<String> = cut(&b"one\r\nlonger\n\xff\n\nx"[..], 4).collect();
        assert_eq!(found, ["one", "long", "\u{fffd}", "", "x"]);
    }
}
