//! Runs programs to their end.

use std::process::Command;

use anyhow::{Context, bail};
use weir_emu::Limits;

/// Runs a command that must succeed, and returns what it writes.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = weir_emu::output(command, Limits::SHORT)
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}", error.trim());
    }
    Ok(text)
}
