//! A command inside the emulated network, as `weir link` runs it.

use std::ffi::{OsString, c_int};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::emulator::Emulator;
use crate::error::Error;
use crate::handle::Handle;
use crate::namespaces::Host;
use crate::process::Child;
use crate::record::Emulation;
use crate::sys::{self, signals::Signals};

/// Path of host B's network namespace, seen from host A. The first process of the process namespace
/// runs there.
const PEER_NETWORK: &str = "/proc/1/ns/net";

/// Maximum time for a command to end after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// A command that runs on host A, the first of two. Dropping it kills all processes on the hosts.
#[derive(Debug)]
pub struct Running<'a> {
    /// The process outside of the hosts that represents the command.
    stand_in: process::Child,
    /// Descriptor of this process, to wait for its end.
    ended: OwnedFd,
    signals: Option<&'a Signals>,
    ending: Option<Ending>,
    _peer: Option<Child>,
    emulator: Emulator,
}

/// The command was asked to end.
#[derive(Clone, Copy, Debug)]
struct Ending {
    /// The signal that was sent.
    signal: c_int,
    /// End of the wait for the command.
    give_up: Instant,
}

impl<'a> Running<'a> {
    /// Starts `command` on host A and, if given, `peer_command` on host B. The run starts with
    /// `command`.
    ///
    /// `command` uses the caller's terminal; its standard input is `input`. Its environment
    /// contains `WEIR_HOST` (its address), `WEIR_PEER` (the address of host B) and
    /// `WEIR_PEER_NETNS`, for `nsenter --net=$WEIR_PEER_NETNS`. The output of `peer_command` goes
    /// to stderr. A signal received by `signals` ends the command as [`Running::end`] does.
    ///
    /// # Panics
    /// If a command is empty.
    pub fn start(
        mut emulator: Emulator,
        command: &[OsString],
        peer_command: Option<&[OsString]>,
        input: Stdio,
        signals: Option<&'a Signals>,
    ) -> Result<Self, Error> {
        let peer = peer_command.map(|words| start_peer(emulator.host(1), words)).transpose()?;
        let mut near = command_on(emulator.host(0), command);
        near.stdin(input)
            .env("WEIR_HOST", emulator.host(0).address().to_string())
            .env("WEIR_PEER", emulator.host(1).address().to_string())
            .env("WEIR_PEER_NETNS", PEER_NETWORK);
        emulator.start();
        let stand_in = near.spawn().map_err(Error::spawn(near.get_program()))?;
        let ended = sys::open_process(stand_in.id().cast_signed());
        let ended = ended.map_err(Error::system("open a child process"))?;
        Ok(Self { stand_in, ended, signals, ending: None, _peer: peer, emulator })
    }

    /// Returns a handle to change and watch the network.
    pub fn handle(&self) -> Handle {
        self.emulator.handle()
    }

    /// Sends the signal to every process of the command, including those that left its process
    /// group. If the command still runs after three seconds, it counts as ended by the signal.
    pub fn end(&mut self, signal: i32) {
        sys::signals::signal_network(self.emulator.host(0).network(), self.stand_in.id(), signal);
        let give_up = Instant::now() + GRACE;
        self.ending.get_or_insert(Ending { signal, give_up });
    }

    /// Waits for the end of the command, at most for `patience`. Returns its exit code if it has
    /// ended. If a signal ended it, the code is 128 plus the number of the signal, as in shells.
    pub fn poll(&mut self, patience: Duration) -> Result<Option<u8>, Error> {
        let waiting = Error::system("wait for the command");
        let left = self.ending.map(|it| it.give_up.saturating_duration_since(Instant::now()));
        let signals = self.signals.map(AsFd::as_fd);
        let mut poll = sys::Poll::new([self.ended.as_fd()].into_iter().chain(signals));
        let waited = poll.wait(left.map_or(patience, |left| left.min(patience)));
        if let Some(status) = waited.and_then(|()| self.stand_in.try_wait()).map_err(waiting)? {
            return Ok(Some(exit_code(status)));
        }
        if let Some(signal) = self.signals.and_then(Signals::take) {
            self.end(signal);
        }
        let overdue = self.ending.filter(|it| Instant::now() >= it.give_up);
        Ok(overdue.map(|it| code_of_signal(it.signal)))
    }

    /// Waits until the command ends. Returns its exit code as [`Running::poll`] does.
    pub fn wait(&mut self) -> Result<u8, Error> {
        loop {
            if let Some(code) = self.poll(Duration::MAX)? {
                return Ok(code);
            }
        }
    }

    /// Ends the run and all processes on the hosts.
    pub fn stop(mut self) -> Result<Emulation, Error> {
        let emulation = self.emulator.stop()?;
        // It ends by itself after the command was killed.
        self.stand_in.wait().map_err(Error::system("wait for the command"))?;
        Ok(emulation)
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.or(status.signal().map(code_of_signal)).unwrap_or(u8::MAX)
}

fn code_of_signal(signal: c_int) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

fn command_on(host: &Host, words: &[OsString]) -> Command {
    let (program, arguments) = words.split_first().expect("a command has a first word");
    let mut command = host.command(program);
    command.args(arguments);
    command
}

fn start_peer(host: &Host, words: &[OsString]) -> Result<Child, Error> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let stderr = stderr.map_err(Error::system("copy a descriptor"))?;
    let mut command = command_on(host, words);
    let mut child = Child::spawn(command.stdin(Stdio::null()).stdout(stderr))?;
    child.wait_until_it_listens(host, None)?;
    Ok(child)
}
