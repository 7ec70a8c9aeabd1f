//! What takes the place of the crate `weir-testbed`, where there is no Linux.

use std::process::ExitCode;

use anyhow::anyhow;

/// Hosts are network namespaces, which only Linux has.
pub fn refused(command: &str) -> anyhow::Error {
    anyhow!(
        "`weir {command}` needs Linux, because its hosts are network namespaces; `weir run` simulates everywhere"
    )
}

/// Anything: it is refused.
#[derive(clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<String>,
}

pub fn run(_: &Args) -> anyhow::Result<ExitCode> {
    Err(refused("ims"))
}
