//! A command inside the emulated network: what `weir link` runs.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::emulator::Emulator;
use crate::error::Error;
use crate::namespaces::Host;
use crate::process::Child;
use crate::record::Emulation;
use crate::sys;

/// How long the far end may take until it listens; then the command starts all the same, for not
/// every far end listens on a port.
const PEER_PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at the far end's ports.
const PEER_LOOK_INTERVAL: Duration = Duration::from_millis(10);
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

/// Runs `command` on host A, the first of two, and, if given, `peer_command` on host B. The scenario starts with
/// `command` and ends with it; everything else on the hosts is killed then.
///
/// `command` has the caller's terminal and finds in its environment `WEIR_HOST` (its address),
/// `WEIR_PEER` (the far end's) and `WEIR_PEER_NETNS`, for `nsenter --net=$WEIR_PEER_NETNS`. The output
/// of `peer_command` goes to stderr. Signals that would end this process go to `command` instead.
///
/// # Panics
/// If a command has no first word.
pub fn run_command(
    mut emulator: Emulator,
    command: &[OsString],
    peer_command: Option<&[OsString]>,
) -> Result<Ended, Error> {
    let _peer = peer_command.map(|words| start_peer(emulator.host(1), words)).transpose()?;
    let mut near = words_on(emulator.host(0), command);
    near.env("WEIR_HOST", emulator.host(0).address().to_string())
        .env("WEIR_PEER", emulator.host(1).address().to_string())
        .env("WEIR_PEER_NETNS", PEER_NETWORK);
    emulator.start();
    let mut child = near.spawn().map_err(Error::spawn(near.get_program()))?;
    let forwarding = sys::Forwarding::to(child.id());
    let status = child.wait().map_err(Error::system("wait for the command"))?;
    drop(forwarding);
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    let exit_code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
    Ok(Ended { exit_code, emulation: emulator.stop()? })
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
    wait_until_it_listens(host, &mut child)?;
    Ok(child)
}

/// Waits until some program of the host listens on a port, `child` ends, or patience does.
pub(crate) fn wait_until_it_listens(host: &Host, child: &mut Child) -> Result<(), Error> {
    let give_up = Instant::now() + PEER_PATIENCE;
    while Instant::now() < give_up && !host.enter(listens)? {
        if matches!(child.inner().try_wait(), Ok(Some(_))) {
            break;
        }
        std::thread::sleep(PEER_LOOK_INTERVAL);
    }
    Ok(())
}

/// Whether a socket in the calling thread's network namespace waits for a peer.
fn listens() -> bool {
    let table = |name: &str| {
        std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
    };
    ["tcp", "tcp6"].iter().any(|name| has_socket(&table(name), Some("0A")))
        || ["udp", "udp6"].iter().any(|name| has_socket(&table(name), None))
}

/// Whether a socket table of the kernel has a row, in the given state: its fourth column.
fn has_socket(table: &str, state: Option<&str>) -> bool {
    let mut states = table.lines().skip(1).filter_map(|row| row.split_whitespace().nth(3));
    states.any(|found| state.is_none_or(|state| state == found))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
         0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000\n";

    #[test]
    fn a_listening_socket_is_told_from_others() {
        assert!(has_socket(TABLE, Some("0A")));
        assert!(!has_socket(&TABLE.replace(" 0A ", " 01 "), Some("0A")));
        assert!(has_socket(&TABLE.replace(" 0A ", " 07 "), None));
        assert!(!has_socket(TABLE.lines().next().unwrap(), None));
    }
}
