//! Programs that run on a host in the background.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, Command, ExitStatus};

use crate::error::Error;
use crate::sys;

/// A running program; dropping it kills it and its process group.
///
/// What leaves the group, as the helpers of browsers do, is killed with the
/// [`Emulator`](crate::Emulator) at the latest.
#[derive(Debug)]
pub struct Child {
    inner: process::Child,
}

impl Child {
    /// Starts a command of [`Host::command`](crate::Host::command) in a process group of its own, so
    /// that Ctrl-C at the terminal does not reach it before the caller has written its record.
    pub fn spawn(command: &mut Command) -> Result<Self, Error> {
        let spawned = command.process_group(0).spawn();
        Ok(Self { inner: spawned.map_err(Error::spawn(command.get_program()))? })
    }

    /// The process as the standard library has it: its pipes, `try_wait`.
    pub fn inner(&mut self) -> &mut process::Child {
        &mut self.inner
    }

    /// Waits until the program ends by itself.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.inner.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A reaped leader's number may belong to another group by now, unless members remain.
        if let Ok(None) = self.inner.try_wait() {
            sys::kill_group(self.inner.id());
            // It can only fail when there is nothing to wait for.
            let _ = self.inner.wait();
        }
    }
}
