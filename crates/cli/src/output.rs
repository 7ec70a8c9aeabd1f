//! Results on stdout. Whoever reads them may stop early (`weir list | head`): that is no error.
//!
//! Names come from files of others: of folders, scenarios, flows. What a terminal would obey in them is
//! printed escaped.

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

/// Text for one line: control characters, and those that end a line or turn its direction, as Rust
/// writes them.
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

/// Whether a terminal would do something else than show it.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_the_rest_stays() {
        assert_eq!(escaped("a\u{1b}[31m\nb\r\u{9b}\u{202e}"), r"a\u{1b}[31m\nb\r\u{9b}\u{202e}");
        assert_eq!(escaped("±3 % of 'ü' \\ \u{1f600}"), "±3 % of 'ü' \\ \u{1f600}");
    }
}
