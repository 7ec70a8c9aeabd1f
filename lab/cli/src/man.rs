//! `weir man`: the manual pages, one for each command.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::args;

/// Writes the pages into a folder, which it creates.
pub fn man(args: &args::Man) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(args::Args::command(), folder))
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
