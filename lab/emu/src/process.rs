//! Background programs on a host.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::namespaces::Host;
use crate::sys;

/// Maximum wait for a program to listen. After that its peers start anyway, because not every
/// program listens on a port.
const LISTEN_PATIENCE: Duration = Duration::from_secs(2);
/// Interval of checks of a host's ports.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A running program; dropping it kills it and its process group.
///
/// Processes that leave the group, such as the helpers of browsers, are killed at the latest when
/// the [`Emulator`](crate::Emulator) is dropped.
#[derive(Debug)]
pub struct Child {
    inner: process::Child,
}

impl Child {
    /// Starts a command of [`Host::command`](crate::Host::command) in a new process group, so that
    /// Ctrl-C at the terminal does not reach it before the caller has written its record.
    pub fn spawn(command: &mut Command) -> Result<Self, Error> {
        let spawned = command.process_group(0).spawn();
        Ok(Self { inner: spawned.map_err(Error::spawn(command.get_program()))? })
    }

    /// The process of the standard library, for its pipes and `try_wait`.
    pub fn inner(&mut self) -> &mut process::Child {
        &mut self.inner
    }

    /// Waits until any program on `host` listens on `port` (on any port with `None`), until this
    /// program ends, or until a timeout.
    pub fn wait_until_it_listens(&mut self, host: &Host, port: Option<u16>) -> Result<(), Error> {
        let give_up = Instant::now() + LISTEN_PATIENCE;
        while Instant::now() < give_up && !host.enter(|| listens(port))? {
            if matches!(self.inner.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Waits until the program ends.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.inner.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Once the leader is reaped, its number may be reused for another process group.
        if let Ok(None) = self.inner.try_wait() {
            sys::kill_group(self.inner.id());
            // This fails only if there is no process to wait for.
            let _ = self.inner.wait();
        }
    }
}

/// Whether a socket in the calling thread's network namespace listens.
fn listens(port: Option<u16>) -> bool {
    for (name, state) in [("tcp", Some("0A")), ("tcp6", Some("0A")), ("udp", None), ("udp6", None)]
    {
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        if has_socket(&table.unwrap_or_default(), port, state) {
            return true;
        }
    }
    false
}

/// Whether a socket table of the kernel contains a row with this port (end of the second column)
/// and this state (fourth column).
fn has_socket(table: &str, port: Option<u16>, state: Option<&str>) -> bool {
    let port = port.map(|port| format!(":{port:04X}"));
    for row in table.lines().skip(1) {
        let mut columns = row.split_whitespace();
        let address = columns.nth(1).unwrap_or_default();
        let Some(found) = columns.nth(1) else { continue };
        if address.ends_with(port.as_deref().unwrap_or("")) && state.unwrap_or(found) == found {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
         0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000\n";

    #[test]
    fn a_listening_socket_is_told_from_others() {
        assert!(has_socket(TABLE, None, Some("0A")));
        assert!(!has_socket(&TABLE.replace(" 0A ", " 01 "), None, Some("0A")));
        assert!(has_socket(&TABLE.replace(" 0A ", " 07 "), None, None));
        assert!(!has_socket(TABLE.lines().next().unwrap(), None, None));
    }

    #[test]
    fn a_listening_socket_is_told_by_its_port() {
        assert!(has_socket(TABLE, Some(0x0CEA), Some("0A")));
        assert!(!has_socket(TABLE, Some(0xCEA0), Some("0A")));
    }
}
