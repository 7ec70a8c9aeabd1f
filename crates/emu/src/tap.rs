//! What a host's interface sends and receives, seen from beside it.
//!
//! The kernel shows each packet to the tap where it shows it to any sniffer: on the way out before the
//! interface takes it, on the way in when the interface has given it to the host. The emulator knows
//! nothing of taps, so that what they see bears witness of it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::error::Error;
use crate::namespaces::{Host, INTERFACE};
use crate::offload::{LARGEST_FRAME, split};
use crate::sys;

pub use crate::sys::packet::Tapped;

/// How long [`Tap::receive`] waits: how soon a reader sees that it should stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sees the packets of one host's interface from its making on.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    dropped_packets: u64,
    /// Room for the largest frame.
    frame: Vec<u8>,
    scratch: Vec<u8>,
    /// Packets of the last super-packet that [`Tap::receive`] has yet to return, with their beginnings.
    waiting: VecDeque<(Tapped, Vec<u8>)>,
}

impl Host {
    /// Starts to look at the host's packets.
    pub fn tap(&self) -> Result<Tap, Error> {
        let socket = self
            .enter(|| sys::packet::open_packet_socket(INTERFACE, PATIENCE))?
            .map_err(Error::system("look at a host's packets"))?;
        let (scratch, waiting) = (Vec::new(), VecDeque::new());
        Ok(Tap { socket, dropped_packets: 0, frame: vec![0; LARGEST_FRAME], scratch, waiting })
    }

    /// The name of its interface on the emulated path.
    pub fn interface(&self) -> &'static str {
        INTERFACE.to_str().expect("the name is ASCII")
    }
}

impl Tap {
    /// The next packet, whose beginning goes into the buffer; `None` if none comes for a short time.
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
        let each = |packet: &[u8]| {
            let tapped = Tapped { length: packet.len(), ..seen };
            waiting.push_back((tapped, packet[..packet.len().min(kept)].to_vec()));
        };
        // The emulator drops a malformed frame too.
        let _ = split(&mut self.frame[..length], &mut self.scratch, each);
        Ok(())
    }

    /// Packets that it missed so far because nobody read them in time.
    pub fn dropped_packets(&mut self) -> Result<u64, Error> {
        let dropped = sys::packet::dropped_packets(self.socket.as_fd());
        self.dropped_packets += dropped.map_err(Error::system("count a host's packets"))?;
        Ok(self.dropped_packets)
    }
}
