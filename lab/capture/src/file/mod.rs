//! Files of captured packets, one packet after the other.
//!
//! pcap with its variants, pcapng, snoop, and what servers record of a single stream: rtpdump and
//! the recordings of Janus.

mod pcap;
mod pcapng;
mod recording;
mod snoop;

use std::io::{BufRead, Read};
use std::net::SocketAddr;

/// Longest captured packet, or block of packets, in bytes.
const LONGEST: u32 = 1 << 20;
/// The message about a file that was cut.
const ENDS: &str = "the capture ends within a packet";

/// A packet of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// In ns since 1970; `None` if the file does not say.
    pub time: Option<u64>,
    /// What was captured.
    pub body: Body<'a>,
    /// Bytes on the wire.
    pub length: u32,
    /// Whether the host that captured sent it, if the file says so.
    pub is_sent: Option<bool>,
}

/// What was captured of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A frame with the header of this link.
    Link(u32, &'a [u8]),
    /// The payload of a datagram that the end which recorded received.
    Received(SocketAddr, &'a [u8]),
}

/// Takes a packet. An error ends the reading.
pub type Take<'a> = dyn FnMut(&Frame<'_>) -> Result<(), String> + 'a;

/// Whether a file begins like one of these.
pub fn is_known(first: &[u8]) -> bool {
    kind(first).is_some()
}

#[derive(Clone, Copy)]
enum Kind {
    Pcap(pcap::Variant),
    Pcapng,
    Snoop,
    Rtpdump,
    Janus,
}

fn kind(first: &[u8]) -> Option<Kind> {
    if first.starts_with(&snoop::MAGIC) {
        return Some(Kind::Snoop);
    }
    if first.starts_with(recording::RTPDUMP) {
        return Some(Kind::Rtpdump);
    }
    if first.starts_with(recording::JANUS) {
        return Some(Kind::Janus);
    }
    let magic = *first.first_chunk()?;
    if magic == pcapng::SECTION {
        return Some(Kind::Pcapng);
    }
    pcap::Variant::of(magic).map(Kind::Pcap)
}

/// Reads all packets in the order of the file.
///
/// # Errors
/// If the file is none of these or damaged, in one line; packets before the damage were taken. And
/// those of `take`.
pub fn read(from: &mut dyn BufRead, take: &mut Take<'_>) -> Result<(), String> {
    // The longest magic has eight bytes.
    let mut first = Vec::new();
    Read::take(&mut *from, 8).read_to_end(&mut first).map_err(|error| error.to_string())?;
    let kind = kind(&first).ok_or("an empty capture, or none")?;
    let mut from = (&first[..]).chain(from);
    match kind {
        Kind::Pcap(variant) => pcap::read(variant, &mut from, take),
        Kind::Pcapng => pcapng::read(&mut from, take),
        Kind::Snoop => snoop::read(&mut from, take),
        Kind::Rtpdump => recording::rtpdump(&mut from, take),
        Kind::Janus => recording::janus(&mut from, take),
    }
}

/// Fills the buffer; false at the end of the file.
fn fill(from: &mut dyn BufRead, buffer: &mut [u8]) -> Result<bool, String> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]).map_err(|error| error.to_string())? {
            0 if filled == 0 => return Ok(false),
            0 => return Err(ENDS.into()),
            read => filled += read,
        }
    }
    Ok(true)
}

/// Reads so many bytes into the buffer, instead of what it had.
fn bytes(from: &mut dyn BufRead, length: u32, buffer: &mut Vec<u8>) -> Result<(), String> {
    if length > LONGEST {
        return Err(format!("a packet or block of {length} bytes"));
    }
    buffer.resize(length as usize, 0);
    from.read_exact(buffer).map_err(|_| ENDS.to_owned())
}

/// Passes over so many bytes.
fn skip(from: &mut dyn BufRead, length: u64) -> Result<(), String> {
    let passed = std::io::copy(&mut Read::take(from, length), &mut std::io::sink());
    match passed.map_err(|error| error.to_string())? {
        passed if passed == length => Ok(()),
        _ => Err(ENDS.into()),
    }
}

/// Numbers in the byte order of the machine that wrote the file.
#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    }

    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let two = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.is_big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) })
    }
}
