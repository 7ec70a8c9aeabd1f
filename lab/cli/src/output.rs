//! Results on stdout. It is not an error if the reader stops early (`weir list
//!
//! head`).
//!
//! Names of folders, scenarios and flows may come from other people's files. Characters in them
//! that control a terminal are printed escaped.

use std::io::{ErrorKind, Write, stdout};

use anyhow::Context;

/// Writes text of several lines.
pub fn print(text: &str) -> anyhow::Result<()> {
    let lines: Vec<String> = text.split('\n').map(escaped).collect();
    write(&lines.join("\n"))
}

/// Writes a line.
pub fn line(text: &str) -> anyhow::Result<()> {
    print(&format!("{text}\n"))
}

/// Writes JSON, which has escapes of its own.
pub fn json(text: &str) -> anyhow::Result<()> {
    write(&format!("{text}\n"))
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Text for one line. Control characters, and those that end a line or change its direction, are
/// escaped as in Rust.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a terminal would act on the character instead of showing it.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_other_text_stays() {
        assert_eq!(escaped("a\u{1b}[31m\nb\r\u{9b}\u{202e}"), r"a\u{1b}[31m\nb\r\u{9b}\u{202e}");
        assert_eq!(escaped("±3 % of 'ü' \\ \u{1f600}"), "±3 % of 'ü' \\ \u{1f600}");
    }
}
