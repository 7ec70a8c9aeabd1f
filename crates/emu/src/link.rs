//! A command inside the emulated network: what `weir link` runs.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Command, Stdio};

use crate::emulator::Emulator;
use crate::error::Error;
use crate::handle::Handle;
use crate::namespaces::Host;
use crate::process::Child;
use crate::record::Emulation;
use crate::sys;

/// The path of the far end's network namespace as host A sees it: the first process lives there.
const PEER_NETWORK: &str = "/proc/1/ns/net";

/// A command that has ended, and the run.
#[derive(Debug)]
pub struct Ended {
    /// The command's exit code; 128 and the signal's number if a signal ended it, as shells say it.
    pub exit_code: u8,
    /// What the link did meanwhile.
    pub emulation: Emulation,
}

/// A command that runs on host A, the first of two; dropping it kills everything on the hosts.
pub struct Running {
    child: process::Child,
    _forwarding: Option<sys::Forwarding>,
    _peer: Option<Child>,
    emulator: Emulator,
}

impl Running {
    /// Starts `command` on host A and, if given, `peer_command` on host B. The run starts with
    /// `command`.
    ///
    /// `command` has the caller's terminal, except for the input if `input` says so, and finds in its
    /// environment `WEIR_HOST` (its address), `WEIR_PEER` (the far end's) and `WEIR_PEER_NETNS`, for
    /// `nsenter --net=$WEIR_PEER_NETNS`. The output of `peer_command` goes to stderr. Signals that
    /// would end this process go to `command` instead.
    ///
    /// # Panics
    /// If a command has no first word.
    pub fn start(
        mut emulator: Emulator,
        command: &[OsString],
        peer_command: Option<&[OsString]>,
        input: Stdio,
    ) -> Result<Self, Error> {
        let peer = peer_command.map(|words| start_peer(emulator.host(1), words)).transpose()?;
        let mut near = words_on(emulator.host(0), command);
        near.stdin(input)
            .env("WEIR_HOST", emulator.host(0).address().to_string())
            .env("WEIR_PEER", emulator.host(1).address().to_string())
            .env("WEIR_PEER_NETNS", PEER_NETWORK);
        emulator.start();
        let child = near.spawn().map_err(Error::spawn(near.get_program()))?;
        let forwarding = sys::Forwarding::to(child.id());
        Ok(Self { child, _forwarding: forwarding, _peer: peer, emulator })
    }

    /// To change and to watch the network.
    pub fn handle(&self) -> Handle {
        self.emulator.handle()
    }

    /// Whether the command has ended.
    pub fn has_ended(&mut self) -> Result<bool, Error> {
        let status = self.child.try_wait().map_err(Error::system("wait for the command"))?;
        Ok(status.is_some())
    }

    /// Asks the command to end.
    pub fn terminate(&self) {
        sys::terminate(self.child.id());
    }

    /// Waits until the command ends. The run ends with it, and everything else on the hosts.
    pub fn wait(mut self) -> Result<Ended, Error> {
        let status = self.child.wait().map_err(Error::system("wait for the command"))?;
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        let exit_code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        Ok(Ended { exit_code, emulation: self.emulator.stop()? })
    }
}

fn words_on(host: &Host, words: &[OsString]) -> Command {
    let (program, arguments) = words.split_first().expect("a command has a first word");
    let mut command = host.command(program);
    command.args(arguments);
    command
}

fn start_peer(host: &Host, words: &[OsString]) -> Result<Child, Error> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let stderr = stderr.map_err(Error::system("copy a descriptor"))?;
    let mut command = words_on(host, words);
    let mut child = Child::spawn(command.stdin(Stdio::null()).stdout(stderr))?;
    child.wait_until_it_listens(host, None)?;
    Ok(child)
}
