//! Packet capture on a host's interface, and of the datagrams of a network namespace.
//!
//! The kernel passes each packet to the tap at the same points as to any packet sniffer: outgoing
//! packets before the interface takes them, incoming packets after the interface has passed them to
//! the host. The emulator does not know about taps, so they are independent evidence of its
//! behaviour.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::error::Error;
use crate::namespaces::Host;
use crate::offload::{LARGEST_FRAME, split};
use crate::sys;

pub use crate::sys::packet::Tapped;

/// Maximum wait of [`Tap::receive`] and [`DatagramTap::receive`], and so the time until a reader
/// notices that it should stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Captures the packets of one host's interface from its creation on.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    dropped_packets: u64,
    /// Room for the largest frame.
    frame: Vec<u8>,
    scratch: Vec<u8>,
    /// Packets of the last super-packet that [`Tap::receive`] has yet to return, with their
    /// beginnings.
    waiting: VecDeque<(Tapped, Vec<u8>)>,
}

impl Host {
    /// Starts to capture the host's packets.
    pub fn tap(&self) -> Result<Tap, Error> {
        let socket = self
            .enter(|| sys::packet::open_packet_socket(self.interface_name(), PATIENCE))?
            .map_err(Error::system("look at a host's packets"))?;
        let (scratch, waiting) = (Vec::new(), VecDeque::new());
        Ok(Tap { socket, dropped_packets: 0, frame: vec![0; LARGEST_FRAME], scratch, waiting })
    }

    /// The name of its interface on the emulated path.
    pub fn interface(&self) -> &'static str {
        self.interface_name().to_str().expect("the name is ASCII")
    }
}

impl Tap {
    /// Receives the next packet. Its first bytes are written to the buffer. `None` if no packet
    /// comes for a short time.
    /// The packets of a super-packet come one by one, with the same time.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<Tapped>, Error> {
        if self.waiting.is_empty() {
            self.receive_frame(buffer.len())?;
        }
        let Some((tapped, beginning)) = self.waiting.pop_front() else { return Ok(None) };
        buffer[..beginning.len()].copy_from_slice(&beginning);
        Ok(Some(tapped))
    }

    /// Waits a short time for a frame, and keeps the beginnings of its packets.
    fn receive_frame(&mut self, kept: usize) -> Result<(), Error> {
        let received = sys::packet::receive_packet(self.socket.as_fd(), &mut self.frame);
        let received = received.map_err(Error::system("read a host's packets"))?;
        let Some(seen) = received else { return Ok(()) };
        let length = seen.length.min(self.frame.len());
        let waiting = &mut self.waiting;
        let each = |packet: &mut [u8]| {
            let tapped = Tapped { length: packet.len(), ..seen };
            waiting.push_back((tapped, packet[..packet.len().min(kept)].to_vec()));
        };
        // The emulator drops a malformed frame too.
        let _ = split(&mut self.frame[..length], &mut self.scratch, each);
        Ok(())
    }

    /// Number of packets lost so far because they were not read in time.
    pub fn dropped_packets(&mut self) -> Result<u64, Error> {
        let dropped = sys::packet::dropped_packets(self.socket.as_fd());
        self.dropped_packets += dropped.map_err(Error::system("count a host's packets"))?;
        Ok(self.dropped_packets)
    }
}

/// Captures the UDP datagrams that are delivered in a network namespace, each once, from its
/// creation on. Datagrams that leave the namespace or only pass through it are not delivered there.
#[derive(Debug)]
pub struct DatagramTap {
    socket: OwnedFd,
}

impl DatagramTap {
    /// Starts to capture the datagrams of the calling thread's network namespace.
    ///
    /// # Errors
    /// If this user may not, or the kernel refuses.
    pub fn open() -> Result<Self, Error> {
        let socket = sys::packet::open_datagram_socket(PATIENCE);
        Ok(Self { socket: socket.map_err(Error::system("look at datagrams"))? })
    }

    /// Receives the next datagram: the kernel's time of its arrival since 1970, and the length of
    /// its IP packet, which is written to the buffer as far as it fits. `None` if none comes for a
    /// short time.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<(Duration, usize)>, Error> {
        let received = sys::packet::receive_stamped(self.socket.as_fd(), buffer, None);
        received.map_err(Error::system("read datagrams"))
    }
}
