//! Text as editors and shells save it: a byte order mark, UTF-16, blank lines before it.
//!
//! What follows is UTF-8 that begins with its first word. Other files pass unchanged.

use std::io::{self, Cursor, Read};

use weir_capture::file::is_known;

use crate::read::format::is_old_event_log;

/// Byte order marks.
const UTF8: [u8; 3] = [0xEF, 0xBB, 0xBF];
const UTF16_LITTLE: [u8; 2] = [0xFF, 0xFE];
const UTF16_BIG: [u8; 2] = [0xFE, 0xFF];
/// Bytes that are converted at once.
const CHUNK: usize = 8_192;

/// The text of a file that begins with these bytes.
pub(crate) fn plain(first: Vec<u8>, rest: impl Read + 'static) -> Box<dyn Read> {
    // The old event log begins with a line feed.
    if is_known(&first) || is_old_event_log(&first) {
        return Box::new(Cursor::new(first).chain(rest));
    }
    let is_ascii = |byte: Option<&u8>| byte.is_some_and(|it| it.is_ascii_graphic());
    let is_zero = |byte: Option<&u8>| byte == Some(&0);
    let little = first.starts_with(&UTF16_LITTLE);
    let big = first.starts_with(&UTF16_BIG);
    // Without a mark, every other byte of JSON is 0.
    let looks_little =
        [0, 2].iter().all(|at| is_ascii(first.get(*at)) && is_zero(first.get(at + 1)));
    let looks_big = [0, 2].iter().all(|at| is_zero(first.get(*at)) && is_ascii(first.get(at + 1)));
    let skipped = if little || big { 2 } else { 0 };
    if little || big || looks_little || looks_big {
        let mut begin = Cursor::new(first);
        begin.set_position(skipped);
        let from = Utf16::new(begin.chain(rest), big || looks_big);
        return Box::new(Trimmed { from, is_begun: false });
    }
    let skipped = if first.starts_with(&UTF8) { UTF8.len() as u64 } else { 0 };
    let mut from = Cursor::new(first);
    from.set_position(skipped);
    Box::new(Trimmed { from: from.chain(rest), is_begun: false })
}

/// A file without the blanks at its begin.
struct Trimmed<R> {
    from: R,
    is_begun: bool,
}

impl<R: Read> Read for Trimmed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.from.read(into)?;
            if self.is_begun || length == 0 {
                return Ok(length);
            }
            let blank = into[..length].iter().take_while(|it| it.is_ascii_whitespace()).count();
            if blank < length {
                self.is_begun = true;
                into.copy_within(blank..length, 0);
                return Ok(length - blank);
            }
        }
    }
}

/// UTF-16 as UTF-8. What is no character becomes the replacement character.
struct Utf16<R> {
    from: R,
    is_big: bool,
    /// Half of a unit, and the first unit of a pair.
    half: Option<u8>,
    high: Option<u16>,
    /// Converted text, and how much of it was passed on.
    text: Vec<u8>,
    passed: usize,
}

impl<R: Read> Utf16<R> {
    fn new(from: R, is_big: bool) -> Self {
        Self { from, is_big, half: None, high: None, text: Vec::new(), passed: 0 }
    }

    /// Converts the next bytes; false at the end.
    fn convert(&mut self) -> io::Result<bool> {
        let mut bytes = [0; CHUNK];
        let length = self.from.read(&mut bytes)?;
        self.text.clear();
        self.passed = 0;
        for byte in &bytes[..length] {
            let Some(first) = self.half.take() else {
                self.half = Some(*byte);
                continue;
            };
            let pair = [first, *byte];
            let unit =
                if self.is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
            self.take(unit);
        }
        Ok(length > 0)
    }

    fn take(&mut self, unit: u16) {
        let is_high = (0xD800..0xDC00).contains(&unit);
        if is_high && self.high.is_none() {
            self.high = Some(unit);
            return;
        }
        let units: Vec<u16> = self.high.take().into_iter().chain([unit]).collect();
        for found in char::decode_utf16(units) {
            let letter = found.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.passed == self.text.len() {
            if !self.convert()? {
                return Ok(0);
            }
        }
        let length = into.len().min(self.text.len() - self.passed);
        into[..length].copy_from_slice(&self.text[self.passed..self.passed + length]);
        self.passed += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], peeked: usize) -> String {
        let (first, rest) = bytes.split_at(peeked.min(bytes.len()));
        let mut text = String::new();
        plain(first.to_vec(), Cursor::new(rest.to_vec())).read_to_string(&mut text).unwrap();
        text
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn text_of_any_editor_begins_with_its_first_word() {
        let text = "{\"a\":\"\u{E9}\u{1F600}\"}";
        for peeked in [4, 5, 9, 100] {
            assert_eq!(read(format!("\u{FEFF}\r\n {text}").as_bytes(), peeked), text);
            assert_eq!(read(format!("\n{text}").as_bytes(), peeked), text);
            for mark in ["", "\u{FEFF}", "\u{FEFF}\n"] {
                let written = format!("{mark}{text}");
                assert_eq!(read(&utf16(&written, u16::to_le_bytes), peeked), text);
                assert_eq!(read(&utf16(&written, u16::to_be_bytes), peeked), text);
            }
        }
    }

    #[test]
    fn a_file_of_blanks_is_empty_and_half_a_letter_is_none() {
        assert_eq!(read(b" \r\n\t", 4), "");
        assert_eq!(read(b"\xFF\xFE{\0\x3D", 4), "{");
        assert_eq!(read(b"\xFF\xFE{\0\0\xDC", 4), "{\u{FFFD}");
    }
}
