//! A process namespace of its own for programs that need no emulated network.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::Arc;

use crate::namespaces::{Init, on_thread};
use crate::sys;

/// Encloses programs on the network of this machine: all their processes end when it is dropped or
/// when this process ends, for any reason.
///
/// Without the rights for a namespace, only the program itself ends with this process. Its process
/// group is killed by [`output`](crate::output).
#[derive(Debug)]
pub struct Enclosure {
    init: Option<Init>,
}

impl Enclosure {
    /// A namespace without programs.
    #[must_use]
    pub fn new() -> Self {
        Self { init: on_thread(Init::new).ok() }
    }

    /// Creates a command that will run inside. The thread that spawns it must live as long as the
    /// program.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        match &self.init {
            Some(init) => {
                sys::run_inside(&mut command, None, Arc::clone(init.process()), || Ok(()))
            }
            None => sys::end_with_parent(&mut command),
        }
        command
    }
}

impl Default for Enclosure {
    fn default() -> Self {
        Self::new()
    }
}
