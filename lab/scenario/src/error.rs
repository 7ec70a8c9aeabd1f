//! Errors in scenario files, as one line of text.

use std::fmt;
use std::ops::Range;

/// Maximum number of characters that an error quotes from a file.
const SHOWN: usize = 40;

/// An error in a scenario file and how to correct it, as one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    file: String,
    line: usize,
    message: String,
}

impl ScenarioError {
    /// An error at a span of `text`. `id` and `message` may contain any characters.
    pub(super) fn new(id: &str, text: &str, span: Range<usize>, message: &str) -> Self {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Self { file: printable(id), line, message: printable(message) }
    }

    /// Number of the wrong line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}
impl std::error::Error for ScenarioError {}

/// The text with spaces instead of all characters that could break or colour a line.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_line_break(c) { ' ' } else { c }).collect()
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// The beginning of a text in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("'{shown}'")
}

/// Bytes of a name from which on it may be the begin of a longer one.
const BEGIN: usize = 5;

/// The candidates that a misspelt name probably means, the nearest first.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    // Longer names may contain more slips. The truncation limits the time spent on huge names.
    let name: String = name.chars().take(SHOWN).collect();
    let allowed = 2.max(name.chars().count() / 3);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for candidate in names {
        let distance = strsim::osa_distance(&name, candidate);
        // A name may be known by its begin.
        let begins = name.len() >= BEGIN && candidate.starts_with(&name);
        if distance <= allowed || begins {
            near.push((distance, candidate));
        }
    }
    near.sort();
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_counted_from_1_and_the_text_stays_in_one_line() {
        let error = ScenarioError::new("a\nb", "x\ny\nz", 4..5, "one\r\ntwo\u{2028}");
        assert_eq!(error.to_string(), "a b:3: one  two ");
        assert_eq!(ScenarioError::new("a", "x", 900..901, "").line(), 1);
    }

    #[test]
    fn a_slip_finds_its_name_and_a_strange_word_finds_none() {
        assert_eq!(nearest("capacty", ["capacity", "queue"]), ["capacity"]);
        assert_eq!(nearest("dealy", ["delay", "queue"]), ["delay"]);
        assert_eq!(nearest("concealed", ["concealed_ratio", "queue"]), ["concealed_ratio"]);
        assert!(nearest("con", ["concealed_ratio"]).is_empty());
        assert!(nearest("frobnicate", ["delay", "queue"]).is_empty());
    }
}
