//! Packet capture on a host's interface.
//!
//! The kernel passes each packet to the tap at the same points as to any packet sniffer: outgoing
//! packets before the interface takes them, incoming packets after the interface has passed them to
//! the host. The emulator does not know about taps, so they are independent evidence of its
//! behaviour.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::error::Error;
use crate::namespaces::{Host, INTERFACE};
use crate::sys;

pub use crate::sys::packet::Tapped;

/// Maximum wait of [`Tap::receive`], and so the time until a reader notices that it should stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Captures the packets of one host's interface from its creation on.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    dropped_packets: u64,
}

impl Host {
    /// Starts to capture the host's packets.
    pub fn tap(&self) -> Result<Tap, Error> {
        let socket = self
            .enter(|| sys::packet::open_packet_socket(INTERFACE, PATIENCE))?
            .map_err(Error::system("look at a host's packets"))?;
        Ok(Tap { socket, dropped_packets: 0 })
    }

    /// The name of its interface on the emulated path.
    pub fn interface(&self) -> &'static str {
        INTERFACE.to_str().expect("the name is ASCII")
    }
}

impl Tap {
    /// Receives the next packet. Its first bytes are written to the buffer. `None` if no packet
    /// comes for a short time.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<Tapped>, Error> {
        sys::packet::receive_packet(self.socket.as_fd(), buffer)
            .map_err(Error::system("read a host's packets"))
    }

    /// Number of packets lost so far because they were not read in time.
    pub fn dropped_packets(&mut self) -> Result<u64, Error> {
        let dropped = sys::packet::dropped_packets(self.socket.as_fd());
        self.dropped_packets += dropped.map_err(Error::system("count a host's packets"))?;
        Ok(self.dropped_packets)
    }
}
