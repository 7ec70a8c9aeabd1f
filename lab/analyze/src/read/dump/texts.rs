//! A bound on each text of a JSON file. The parser keeps a text as a whole, so one without an end
//! would take all memory. Commas between whole values become blanks: programs that append to a file
//! write them.

use std::io::{self, BufRead, Read};

/// Maximum length of a text. The longest ones are series of a day's call, with one or two MB.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Passes JSON on, up to a text that is too long.
pub(super) struct Texts<R> {
    from: R,
    max: usize,
    /// Bytes of the text so far; `None` between texts.
    text: Option<usize>,
    /// Whether a backslash precedes.
    escaped: bool,
    /// Lists and objects around.
    depth: u32,
}

impl<R: BufRead> Texts<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, max: TEXT_BYTES_MAX, text: None, escaped: false, depth: 0 }
    }

    /// An error if a text is too long after these bytes.
    fn count(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        for byte in bytes {
            let Some(length) = &mut self.text else {
                match byte {
                    b'"' => self.text = Some(0),
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    b',' if self.depth == 0 => *byte = b' ',
                    _ => {}
                }
                continue;
            };
            *length += 1;
            if *length > self.max {
                let what = format!("a text is longer than {} MB", self.max >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.text = None,
                _ => {}
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Texts<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        self.count(&mut into[..length])?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(json: &str, max: usize) -> Result<String, String> {
        let mut texts = Texts { max, ..Texts::new(json.as_bytes()) };
        let mut text = String::new();
        texts.read_to_string(&mut text).map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn commas_between_values_are_blanks() {
        let json = "{\"a\":[1,2],\"b,\":3},\n[4,5],\"x,y\",";
        assert_eq!(passed(json, 9).unwrap(), "{\"a\":[1,2],\"b,\":3} \n[4,5] \"x,y\" ");
    }

    #[test]
    fn a_text_that_is_too_long_ends_the_file() {
        let json = r#"{"a\"":"four","b":[1,2,3,4,5,6,7,8,9,10],"\\":""}"#;
        assert_eq!(passed(json, 5).unwrap(), json);
        assert!(passed(json, 4).is_err());
        let error = passed(&format!("[\"{}", "x".repeat(3 << 20)), 2 << 20).unwrap_err();
        assert_eq!(error, "a text is longer than 2 MB");
    }
}
