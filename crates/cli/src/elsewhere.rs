//! What takes the place of the commands that emulate a network, where there is no Linux.

use anyhow::anyhow;

/// The emulator's hosts are network namespaces, which only Linux has.
fn refused(command: &str) -> anyhow::Error {
    anyhow!(
        "`weir {command}` needs Linux, because its hosts are network namespaces; `weir run` simulates everywhere"
    )
}

pub mod real {
    use std::process::ExitCode;

    pub fn call<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("call"))
    }

    pub fn checked<Args, Interrupt, Run>(_: &Args, _: &Interrupt) -> anyhow::Result<Vec<Run>> {
        Err(super::refused("check --engine call"))
    }
}

pub mod link {
    use std::process::ExitCode;

    pub fn link<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("link"))
    }
}

/// It is made of the parts of `weir call`.
pub mod serve {
    use std::process::ExitCode;

    pub fn serve<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("serve"))
    }
}

pub mod tcp {
    pub fn validate<Args>(_: &Args) -> anyhow::Result<bool> {
        Err(super::refused("validate tcp"))
    }
}

pub mod emulator {
    use std::process::ExitCode;

    pub fn validate<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("validate emulator"))
    }
}

pub mod weir_testbed {
    use std::process::ExitCode;

    /// Anything: it is refused.
    #[derive(clap::Args)]
    pub struct Args {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _words: Vec<String>,
    }

    pub fn run(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("ims"))
    }
}
