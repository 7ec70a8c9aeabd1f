//! `weir completions`: scripts with which a shell completes this command line.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args;
use crate::output;

/// Prints the script for a shell.
pub fn completions(args: &args::Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::Args::command(), "weir", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
