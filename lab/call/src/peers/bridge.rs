//! Carries media between browsers on other machines and the emulated hosts that represent them.
//!
//! ```text
//!   browser a - (real network) - socket a - host A = network model = host B - socket b - browser b
//! ```
//!
//! In the signalling, the other peer's candidates are replaced by the address of a socket here. A
//! peer's packets therefore arrive here, cross the network model between the two hosts, and leave
//! to the other peer from the socket that it knows. ICE and DTLS are not changed.
//!
//! Anybody can send to these sockets. Packets are accepted only from the address of the call's last
//! valid connectivity check. A check is valid if it contains the user name from both session
//! descriptions.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_capture::stun;
use weir_emu::Host;

use crate::error::CallError;
use crate::message::Peer;

/// How often a thread checks whether the bridge was dropped.
const TICK: Duration = Duration::from_millis(200);
/// Maximum size of a UDP payload.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Type of the attribute USERNAME [RFC8489 §14.3].
const USERNAME: u16 = 0x0006;

/// Carries the media of one call until it is dropped.
#[derive(Debug)]
pub(crate) struct Bridge {
    /// The addresses to which peer a and peer b send.
    pub(crate) addresses: [SocketAddr; 2],
    ends: [Arc<End>; 2],
    gone: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// One end: a socket towards the peer, and one on the host that represents it.
#[derive(Debug)]
struct End {
    outside: UdpSocket,
    inside: UdpSocket,
    peer: Mutex<Known>,
}

/// What the bridge knows about the peer at one end.
#[derive(Debug, Default)]
struct Known {
    /// Its ICE user fragment. Nothing is accepted before it is set.
    user: Option<String>,
    /// Source of its last connectivity check. Nothing is sent to the peer before the first check.
    address: Option<SocketAddr>,
}

impl Known {
    /// Whether a datagram from this address belongs to the peer.
    fn admits(&mut self, datagram: &[u8], from: SocketAddr) -> bool {
        if self.user.as_deref().is_some_and(|user| is_check_of(user, datagram)) {
            self.address = Some(from);
        }
        self.address == Some(from)
    }
}

impl Bridge {
    /// A bridge between peers that reach this machine at `address`, over two hosts.
    pub(crate) fn open(address: Ipv4Addr, hosts: [&Host; 2]) -> Result<Self, CallError> {
        let failed = CallError::system;
        let mut ends: Vec<Arc<End>> = Vec::new();
        for host in hosts {
            let outside = UdpSocket::bind((address, 0)).map_err(|error| match error.kind() {
                io::ErrorKind::AddrNotAvailable => CallError::NoAddress(address),
                _ => failed("listen for media")(error),
            })?;
            let bound = host.enter(|| UdpSocket::bind((host.address(), 0)))?;
            let inside = bound.map_err(failed("open a socket on an emulated host"))?;
            for socket in [&outside, &inside] {
                socket.set_read_timeout(Some(TICK)).map_err(failed("set up a socket"))?;
            }
            ends.push(Arc::new(End { outside, inside, peer: Mutex::default() }));
        }
        let ends = <[Arc<End>; 2]>::try_from(ends).expect("there are two hosts");
        for (from, to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
            let to = to.inside.local_addr();
            let connected = to.and_then(|address| from.inside.connect(address));
            connected.map_err(failed("connect two emulated hosts"))?;
        }
        let [a, b] = ends
            .each_ref()
            .map(|end| end.outside.local_addr().map_err(failed("ask a socket for its address")));
        let addresses = [a?, b?];
        let gone = Arc::new(AtomicBool::new(false));
        let mut bridge = Self { addresses, ends, gone, threads: Vec::new() };
        for end in bridge.ends.clone() {
            for pump in [End::forward_to_network, End::forward_to_peer] {
                let (end, gone) = (Arc::clone(&end), Arc::clone(&bridge.gone));
                let thread = thread::Builder::new()
                    .name("weir-bridge".into())
                    .spawn(move || while !gone.load(Ordering::Relaxed) && pump(&end).is_ok() {});
                bridge.threads.push(thread.map_err(failed("start a thread"))?);
            }
        }
        Ok(bridge)
    }

    /// Accepts the peer whose checks contain this user fragment.
    pub(crate) fn introduce(&self, peer: Peer, user: String) {
        self.ends[peer.index()].known().user = Some(user);
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}

impl End {
    /// Forwards datagrams from the peer into the emulated network, until none arrives for a tick.
    fn forward_to_network(&self) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while let Some((length, from)) = receive(&self.outside, &mut buffer)? {
            if !self.known().admits(&buffer[..length], from) {
                continue;
            }
            // If the socket buffer is full, the datagram is lost, as in a network.
            let _ = self.inside.send(&buffer[..length]);
        }
        Ok(())
    }

    /// Forwards datagrams from the emulated network to the peer, until none arrives for a tick.
    fn forward_to_peer(&self) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while let Some((length, _)) = receive(&self.inside, &mut buffer)? {
            let address = self.known().address;
            if let Some(address) = address {
                let _ = self.outside.send_to(&buffer[..length], address);
            }
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.peer.lock().expect("no code panics while it holds what is known")
    }
}

/// The next datagram, or `None` after a tick without one.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        // Refused: an earlier datagram was sent before the other end had its socket.
        Err(error) => match error.kind() {
            WouldBlock | TimedOut | Interrupted | ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}

/// Whether a datagram is a connectivity check from the peer with this user fragment. The USERNAME
/// of a check has two parts: the remote peer's fragment and its own [RFC8445 §7.2.2].
fn is_check_of(user: &str, datagram: &[u8]) -> bool {
    // The first byte distinguishes STUN from other protocols on the same port [RFC7983 §7].
    if datagram.get(4..8) != Some(&stun::MAGIC_COOKIE) || datagram[0] >= 4 {
        return false;
    }
    let name = stun::attribute(datagram, USERNAME);
    let name = name.and_then(|(at, length)| datagram.get(at..at + length)).unwrap_or_default();
    let own = name.iter().position(|byte| *byte == b':').map(|colon| &name[colon + 1..]);
    own == Some(user.as_bytes())
}

/// The user fragment of a session description. All media share one path, so there is only one
/// fragment.
pub(crate) fn user_fragment(sdp: &str) -> Option<&str> {
    sdp.lines().find_map(|line| line.strip_prefix("a=ice-ufrag:"))
}

/// A session description without its candidates.
pub(crate) fn without_candidates(sdp: &str) -> String {
    let mut lines: Vec<&str> = sdp.split_inclusive('\n').collect();
    lines.retain(|line| {
        !line.starts_with("a=candidate:") && !line.starts_with("a=end-of-candidates")
    });
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check with this user name, after an attribute of three bytes with one byte of padding.
    fn check(name: &str) -> Vec<u8> {
        let mut check = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        check.extend([7; 12]);
        check.extend([0x80, 0x22, 0, 3, 1, 2, 3, 0]);
        check.extend([0, 6, 0, name.len() as u8]);
        check.extend(name.as_bytes());
        check
    }

    #[test]
    fn a_check_is_known_by_the_second_part_of_its_user_name() {
        assert!(is_check_of("near", &check("far:near")));
        assert!(!is_check_of("near", &check("near:far")));
        assert!(!is_check_of("near", &check("near")));
        let media = [&[0x80][..], &check("far:near")[1..]].concat();
        assert!(!is_check_of("near", &media));
    }

    #[test]
    fn a_truncated_check_is_not_accepted() {
        let whole = check("far:near");
        assert!((0..whole.len()).all(|length| !is_check_of("near", &whole[..length])));
    }

    #[test]
    fn only_an_introduced_peer_comes_in_and_only_from_its_checks_address() {
        let [home, stranger] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 9)));
        let mut known = Known::default();
        assert!(!known.admits(&check("far:near"), home));
        known.user = Some("near".into());
        assert!(!known.admits(b"media", home));
        assert!(known.admits(&check("far:near"), home) && known.admits(b"media", home));
        assert!(!known.admits(b"media", stranger) && !known.admits(&check("far:x"), stranger));
        // A peer may change its address.
        assert!(known.admits(&check("far:near"), stranger) && !known.admits(b"media", home));
    }

    #[test]
    fn a_description_tells_the_user_fragment() {
        assert_eq!(user_fragment("v=0\r\na=ice-ufrag:x+/9\r\na=mid:0\r\n"), Some("x+/9"));
        assert_eq!(user_fragment("v=0\r\n"), None);
    }

    #[test]
    fn a_description_loses_its_candidates_and_nothing_else() {
        let sdp = "v=0\r\na=mid:0\r\na=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\n\
                   a=end-of-candidates\r\na=setup:active\r\n";
        assert_eq!(without_candidates(sdp), "v=0\r\na=mid:0\r\na=setup:active\r\n");
    }
}
