//! What takes the place of the commands that this build of the program lacks: those that emulate a
//! network, where there is no Linux, and those whose feature was left out.

use anyhow::anyhow;

/// Says why the command is not there, and how to get it.
fn refused(command: &str) -> anyhow::Error {
    if cfg!(target_os = "linux") {
        return anyhow!(
            "this program was built without `weir {command}`; `make build` builds the whole program"
        );
    }
    // The emulator's hosts are network namespaces, which only Linux has.
    anyhow!(
        "`weir {command}` needs Linux, because its hosts are network namespaces; `weir run` \
         simulates everywhere"
    )
}

#[cfg(not(calls))]
pub mod real {
    use std::process::ExitCode;

    pub fn call<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("call"))
    }

    pub fn checked<Args, Interrupt, Run>(_: &Args, _: &Interrupt) -> anyhow::Result<Vec<Run>> {
        Err(super::refused("check --engine call"))
    }
}

#[cfg(not(calls))]
pub mod arena {
    use std::process::ExitCode;

    pub fn arena<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("arena"))
    }
}

#[cfg(not(calls))]
pub mod link {
    use std::process::ExitCode;

    pub fn link<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("link"))
    }
}

/// It is made of the parts of `weir call`.
#[cfg(not(calls))]
pub mod serve {
    use std::process::ExitCode;

    pub fn serve<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("serve"))
    }
}

#[cfg(not(calls))]
pub mod tcp {
    pub fn validate<Args>(_: &Args) -> anyhow::Result<bool> {
        Err(super::refused("validate tcp"))
    }
}

#[cfg(not(calls))]
pub mod playout {
    pub fn validate<Args>(_: &Args) -> anyhow::Result<bool> {
        Err(super::refused("validate playout"))
    }
}

#[cfg(not(calls))]
pub mod emulator {
    use std::process::ExitCode;

    pub fn validate<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("validate emulator"))
    }
}

#[cfg(not(feature = "analyze"))]
pub mod analyze {
    use std::process::ExitCode;

    pub fn analyze<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("analyze"))
    }
}

/// An end of a capture, in a build without `weir analyze`, which refuses it.
#[cfg(not(feature = "analyze"))]
pub type LocalEnd = String;

/// A server, as `weir serve`, of the rules of `weir analyze`.
#[cfg(not(all(calls, feature = "analyze")))]
pub mod collect {
    use std::process::ExitCode;

    pub fn collect<Args>(_: &Args) -> anyhow::Result<ExitCode> {
        Err(super::refused("collect"))
    }
}

/// An application's dumps are read by the parts of `weir analyze`.
#[cfg(all(calls, not(feature = "analyze")))]
pub mod app {
    pub fn runs<Args, Interrupt, Run>(_: &Args, _: &Interrupt) -> anyhow::Result<Vec<Run>> {
        Err(super::refused("call --app"))
    }

    pub fn subject<Args, Subject>(_: &Args) -> anyhow::Result<Subject> {
        Err(super::refused("arena --role sfu"))
    }
}

/// Stands in for the IMS of `weir ims` in a build without it.
#[cfg(all(calls, not(ims)))]
pub mod ims {
    use std::convert::Infallible;
    use std::path::Path;

    use weir_call::{Ims, SipMessage};

    pub struct Wic(Infallible);

    impl Wic {
        pub fn of_running(_: &str) -> anyhow::Result<Self> {
            Err(super::refused("call --ims"))
        }
    }

    pub fn plan(wic: &Wic) -> Ims {
        match wic.0 {}
    }

    pub fn write(wic: &Wic, _: &Path, _: &[[Vec<SipMessage>; 2]]) -> anyhow::Result<()> {
        match wic.0 {}
    }
}

#[cfg(not(ims))]
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
