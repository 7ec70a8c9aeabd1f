//! What takes the place of the commands that emulate a network, where there is no Linux.

pub mod call {
    use std::process::ExitCode;

    pub fn call(_: &crate::args::Call) -> anyhow::Result<ExitCode> {
        Err(crate::weir_testbed::refused("call"))
    }
}

pub mod link {
    use std::process::ExitCode;

    pub fn link(_: &crate::args::Link) -> anyhow::Result<ExitCode> {
        Err(crate::weir_testbed::refused("link"))
    }
}

pub mod tcp {
    pub fn validate(_: &crate::args::Validate) -> anyhow::Result<bool> {
        Err(crate::weir_testbed::refused("validate tcp"))
    }
}

pub mod emulator {
    use std::process::ExitCode;

    pub fn validate(_: &crate::args::Validate) -> anyhow::Result<ExitCode> {
        Err(crate::weir_testbed::refused("validate emulator"))
    }
}
