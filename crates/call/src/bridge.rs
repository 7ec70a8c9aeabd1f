//! The way of media between browsers on other machines and the emulated hosts that stand for them.
//!
//! ```text
//!   browser a - (real network) - socket a - host A = network model = host B - socket b - browser b
//! ```
//!
//! The signalling tells each peer the address of its own socket here in place of the other's
//! candidates, so its packets come here, cross the model between the two hosts, and leave to the
//! other peer from the socket that it knows. Neither ICE nor DTLS is touched.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_emu::Host;

use crate::error::CallError;

/// How often a thread looks whether the bridge has gone.
const TICK: Duration = Duration::from_millis(200);
/// No UDP datagram is longer.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Bytes 4 to 7 of every STUN message [RFC8489 §5].
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// Carries the media of one call; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Bridge {
    /// Where peer a, peer b sends to.
    pub(crate) addresses: [SocketAddr; 2],
    gone: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// One end: a socket towards the peer and one on the host that stands for it.
#[derive(Debug)]
struct End {
    outside: UdpSocket,
    inside: UdpSocket,
    /// Where the peer's last connectivity check came from; nothing goes to it before the first.
    peer: Mutex<Option<SocketAddr>>,
}

impl Bridge {
    /// Between peers that reach this machine at `address`, over two hosts.
    pub(crate) fn open(address: Ipv4Addr, hosts: [&Host; 2]) -> Result<Self, CallError> {
        let failed = CallError::system;
        let mut ends = Vec::new();
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
            ends.push(End { outside, inside, peer: Mutex::new(None) });
        }
        let connect = |from: &End, to: &End| from.inside.connect(to.inside.local_addr()?);
        let both = connect(&ends[0], &ends[1]).and_then(|()| connect(&ends[1], &ends[0]));
        both.map_err(failed("connect two emulated hosts"))?;
        let address = |end: &End| end.outside.local_addr();
        let addresses = address(&ends[0]).and_then(|a| Ok([a, address(&ends[1])?]));
        let addresses = addresses.map_err(failed("ask a socket for its address"))?;
        let gone = Arc::new(AtomicBool::new(false));
        let mut bridge = Self { addresses, gone, threads: Vec::new() };
        for end in ends {
            let end = Arc::new(end);
            for pump in [End::take_in, End::let_out] {
                let (end, gone) = (Arc::clone(&end), Arc::clone(&bridge.gone));
                let run = move || while !gone.load(Ordering::Relaxed) && pump(&end).is_ok() {};
                let thread = thread::Builder::new().name("weir-bridge".into()).spawn(run);
                bridge.threads.push(thread.map_err(failed("start a thread"))?);
            }
        }
        Ok(bridge)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic of the thread was printed there.
            let _ = thread.join();
        }
    }
}

impl End {
    /// From the peer into the emulated network, until nothing has come for a tick.
    fn take_in(&self) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while let Some((length, from)) = receive(&self.outside, &mut buffer)? {
            if is_stun(&buffer[..length]) {
                *self.peer.lock().expect("no code panics while it holds the address") = Some(from);
            }
            // A full socket drops, as a network does.
            let _ = self.inside.send(&buffer[..length]);
        }
        Ok(())
    }

    /// From the emulated network to the peer, until nothing has come for a tick.
    fn let_out(&self) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while let Some((length, _)) = receive(&self.inside, &mut buffer)? {
            let peer = *self.peer.lock().expect("no code panics while it holds the address");
            if let Some(peer) = peer {
                let _ = self.outside.send_to(&buffer[..length], peer);
            }
        }
        Ok(())
    }
}

/// The next datagram, or `None` after a tick without one.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        // Refused: what was sent before found nobody, as before the other end is there.
        Err(error) => match error.kind() {
            WouldBlock | TimedOut | Interrupted | ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}

fn is_stun(datagram: &[u8]) -> bool {
    datagram.get(4..8) == Some(&MAGIC_COOKIE) && datagram[0] < 4
}

/// `candidate:` of an address, in the form that every browser reads [RFC8839 §5.1].
pub(crate) fn candidate_at(address: SocketAddr) -> String {
    let IpAddr::V4(ip) = address.ip() else { return String::new() };
    format!("candidate:1 1 udp 2130706431 {ip} {} typ host", address.port())
}

/// A session description without the candidates that it holds.
pub(crate) fn without_candidates(sdp: &str) -> String {
    let is_candidate =
        |line: &&str| line.starts_with("a=candidate:") || line.starts_with("a=end-of-candidates");
    sdp.split_inclusive('\n').filter(|line| !is_candidate(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connectivity_check_says_where_a_peer_is() {
        let mut check = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        check.extend([7; 12]);
        assert!(is_stun(&check));
        check[0] = 0x80;
        assert!(!is_stun(&check));
        assert!(!is_stun(&[0, 1, 0, 0, 0x21]));
    }

    #[test]
    fn a_description_loses_its_candidates_and_nothing_else() {
        let sdp = "v=0\r\na=mid:0\r\na=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\n\
                   a=end-of-candidates\r\na=setup:active\r\n";
        assert_eq!(without_candidates(sdp), "v=0\r\na=mid:0\r\na=setup:active\r\n");
    }

    #[test]
    fn a_candidate_is_the_address_in_the_words_of_ice() {
        let address = SocketAddr::from(([192, 0, 2, 7], 4000));
        let expected = "candidate:1 1 udp 2130706431 192.0.2.7 4000 typ host";
        assert_eq!(candidate_at(address), expected);
    }
}
