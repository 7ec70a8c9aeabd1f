//! What a host's interface sends and receives, seen from beside it.
//!
//! The kernel shows each packet to the tap where it shows it to any sniffer: on the way out before the
//! interface takes it, on the way in when the interface has given it to the host. The emulator knows
//! nothing of taps, so that what they see bears witness of it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::error::Error;
use crate::namespaces::{Host, INTERFACE};
use crate::sys;

pub use crate::sys::packet::Tapped;

/// How long [`Tap::receive`] waits: how soon a reader sees that it should stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sees the packets of one host's interface from its making on.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    dropped_packets: u64,
}

impl Host {
    /// Starts to look at the host's packets.
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
    /// The next packet, whose beginning goes into the buffer; `None` if none comes for a short time.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<Tapped>, Error> {
        sys::packet::receive_packet(self.socket.as_fd(), buffer)
            .map_err(Error::system("read a host's packets"))
    }

    /// Packets that it missed so far because nobody read them in time.
    pub fn dropped_packets(&mut self) -> Result<u64, Error> {
        let dropped = sys::packet::dropped_packets(self.socket.as_fd());
        self.dropped_packets += dropped.map_err(Error::system("count a host's packets"))?;
        Ok(self.dropped_packets)
    }
}
