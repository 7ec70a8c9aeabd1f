//! Results on stdout. Whoever reads them may stop early (`weir list | head`): that is no error.

use std::io::{ErrorKind, Write, stdout};

use anyhow::Context;

/// Writes text as it is.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Writes a line.
pub fn line(text: &str) -> anyhow::Result<()> {
    print(&format!("{text}\n"))
}
