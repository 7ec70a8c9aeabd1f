//! The part of the pcapng file format [PCAPNG §3.1] that a capture of one interface needs.
//!
//! ```text
//! +------------+--------------+---------------------------+--------------+
//! | block type | block length | body, to a whole 4 bytes  | block length |
//! +------------+--------------+---------------------------+--------------+
//! section header, interface description, then a block a packet; statistics of the interface last
//! ```
//!
//! A file may end after any block, so a capture that was interrupted can still be read. Numbers are
//! little-endian, timestamps count nanoseconds, and packets begin with their IP header.

use std::io::{self, Read, Write};
use std::time::Duration;

// Block types [PCAPNG §4.1, §4.2, §4.3, §4.6].
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Identifies the byte order of a section.
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const VERSION: [u16; 2] = [1, 0];
const UNKNOWN_SECTION_LENGTH: u64 = u64::MAX;
/// `LINKTYPE_RAW`: a packet begins with its IP header.
const LINK_TYPE_RAW: u16 = 101;

// Options [PCAPNG §3.5, §4.1, §4.2, §4.3, §4.6].
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;

/// Timestamp resolution: units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Direction of a packet, in the lowest bits of its flags.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Bytes of a block besides its body: type, length, and length again.
const FRAME: usize = 12;
/// Maximum length of a block that this module writes. A longer one is a sign of damage.
const LONGEST_BLOCK: usize = 1 << 17;

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Time since 1970.
    pub time: Duration,
    /// True if the host sent the packet, false if it received it.
    pub is_sent: bool,
    /// Size on the wire, including the IP header.
    pub length: u32,
    /// The captured first bytes.
    pub data: &'a [u8],
}

/// Writes a capture of one interface.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the file header. The comment names the run.
    pub fn new(out: W, interface: &str, comment: &str) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::new() };
        writer.put_u32(BYTE_ORDER_MAGIC);
        for part in &VERSION {
            writer.put_u16(*part);
        }
        writer.put(&UNKNOWN_SECTION_LENGTH.to_le_bytes());
        writer.option(OPTION_COMMENT, comment.as_bytes());
        let application = concat!("weir ", env!("CARGO_PKG_VERSION"));
        writer.option(SECTION_APPLICATION, application.as_bytes());
        writer.end_block(SECTION_HEADER)?;
        writer.put_u16(LINK_TYPE_RAW);
        writer.put_u16(0);
        // No fixed capture length: each packet is truncated after its headers.
        writer.put_u32(0);
        writer.option(INTERFACE_NAME, interface.as_bytes());
        writer.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
        writer.end_block(INTERFACE_DESCRIPTION)?;
        Ok(writer)
    }

    /// Writes a packet.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.put_interface_and_time(packet.time);
        let captured = u32::try_from(packet.data.len()).expect("an IP packet is at most 64 KiB");
        self.put_u32(captured);
        self.put_u32(packet.length);
        self.put(packet.data);
        self.pad();
        let direction = if packet.is_sent { OUTBOUND } else { INBOUND };
        self.option(PACKET_FLAGS, &direction.to_le_bytes());
        self.end_block(ENHANCED_PACKET)
    }

    /// Writes the end of the file with the numbers of received and of missed packets.
    pub fn finish(mut self, time: Duration, received: u64, dropped: u64) -> io::Result<()> {
        self.put_interface_and_time(time);
        self.option(STATISTICS_RECEIVED, &received.to_le_bytes());
        self.option(STATISTICS_DROPPED, &dropped.to_le_bytes());
        self.end_block(INTERFACE_STATISTICS)?;
        self.flush()
    }

    /// Writes all buffered packets to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the index of the only interface and the timestamp, upper half first.
    fn put_interface_and_time(&mut self, time: Duration) {
        let ticks = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.put_u32(0);
        self.put_u32((ticks >> 32) as u32);
        self.put_u32(ticks as u32);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.put_u16(code);
        self.put_u16(value.len() as u16);
        self.put(value);
        self.pad();
    }

    /// Ends the options and writes the block with its frame. All blocks of this module have
    /// options.
    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        self.put_u16(OPTION_END);
        self.put_u16(0);
        let length = u32::try_from(self.block.len() + FRAME).expect("our blocks are short");
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.block.clear();
        Ok(())
    }
}

/// Reads the packets of a capture that [`Writer`] wrote. The file may be truncated.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    body: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Checks the file header.
    pub fn new(from: R) -> io::Result<Self> {
        let mut reader = Self { from, body: Vec::new() };
        if reader.next_block()? != Some(SECTION_HEADER)
            || word(&reader.body, 0) != Some(BYTE_ORDER_MAGIC)
        {
            return Err(damaged("this is not a capture"));
        }
        if reader.next_block()? != Some(INTERFACE_DESCRIPTION) {
            return Err(damaged("a capture without its interface"));
        }
        Ok(reader)
    }

    /// The next packet; `None` at the end.
    pub fn packet(&mut self) -> io::Result<Option<Packet<'_>>> {
        loop {
            match self.next_block()? {
                None => return Ok(None),
                Some(ENHANCED_PACKET) => break,
                Some(_) => {}
            }
        }
        let packet = parse_packet(&self.body);
        packet.map(Some).ok_or_else(|| damaged("a packet that is not whole"))
    }

    /// Reads a block into `body` and returns its type. A truncated block at the end is ignored.
    fn next_block(&mut self) -> io::Result<Option<u32>> {
        let mut head = [0; 8];
        if !self.fill(&mut head)? {
            return Ok(None);
        }
        let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if !(FRAME..=LONGEST_BLOCK).contains(&length) || !length.is_multiple_of(4) {
            return Err(damaged("a block of an impossible length"));
        }
        let mut rest = std::mem::take(&mut self.body);
        rest.resize(length - head.len(), 0);
        let is_whole = self.fill(&mut rest)?;
        rest.truncate(length - FRAME);
        self.body = rest;
        Ok(is_whole.then_some(kind))
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        match self.from.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn parse_packet(body: &[u8]) -> Option<Packet<'_>> {
    let ticks = u64::from(word(body, 4)?) << 32 | u64::from(word(body, 8)?);
    let captured = word(body, 12)? as usize;
    let data = body.get(20..)?.get(..captured)?;
    let options = body.get(20 + captured.next_multiple_of(4)..)?;
    let is_flags = word(options, 0)? == u32::from(PACKET_FLAGS) | 4 << 16;
    let direction = word(options, 4).filter(|_| is_flags)? & 0b11;
    Some(Packet {
        time: Duration::from_nanos(ticks),
        is_sent: direction == OUTBOUND,
        length: word(body, 16)?,
        data,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Packet<'static> = Packet {
        time: Duration::new(1_700_000_000, 123_456_789),
        is_sent: true,
        length: 1_240,
        data: &[0x45, 1, 2, 3, 4],
    };
    const SECOND: Packet<'static> = Packet {
        time: Duration::new(1_700_000_000, 133_000_000),
        is_sent: false,
        length: 4,
        data: &[0x45, 9, 8, 7],
    };

    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, "weir0", "seed 1, host a").unwrap();
        writer.packet(&FIRST).unwrap();
        writer.packet(&SECOND).unwrap();
        writer.finish(SECOND.time, 2, 0).unwrap();
        bytes
    }

    /// Number of packets read from these bytes, and `false` if reading ended with an error.
    fn packets(bytes: &[u8]) -> (usize, bool) {
        let Ok(mut reader) = Reader::new(bytes) else { return (0, false) };
        let mut count = 0;
        loop {
            match reader.packet() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return (count, true),
                Err(_) => return (count, false),
            }
        }
    }

    #[test]
    fn a_file_gives_back_its_packets() {
        let bytes = file();
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        assert_eq!(reader.packet().unwrap(), Some(FIRST));
        assert_eq!(reader.packet().unwrap(), Some(SECOND));
        assert_eq!(reader.packet().unwrap(), None);
    }

    // [PCAPNG §4.3]
    #[test]
    fn a_packet_is_written_as_the_format_says() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, "weir0", "").unwrap();
        let head = writer.out.len();
        writer.packet(&FIRST).unwrap();
        let ticks = 1_700_000_000_123_456_789_u64;
        let mut expected = vec![6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0];
        expected.extend(((ticks >> 32) as u32).to_le_bytes());
        expected.extend((ticks as u32).to_le_bytes());
        expected.extend([5, 0, 0, 0, 0xD8, 4, 0, 0, 0x45, 1, 2, 3, 4, 0, 0, 0]);
        expected.extend([2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0]);
        assert_eq!(bytes[head..], expected);
    }

    #[test]
    fn a_file_that_was_cut_short_gives_the_packets_before_the_cut() {
        let bytes = file();
        let counts: Vec<usize> = (0..bytes.len()).map(|end| packets(&bytes[..end]).0).collect();
        assert!(counts.is_sorted());
        assert_eq!((counts[0], counts[bytes.len() - 1]), (0, 2));
        // After the first complete block, truncation is not an error.
        let from = counts.iter().position(|count| *count == 1).unwrap();
        assert!((from..bytes.len()).all(|end| packets(&bytes[..end]).1));
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let bytes = file();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                assert!(packets(&damaged).0 <= 2);
            }
        }
        assert_eq!(packets(&[0xFF; 64]), (0, false));
        assert_eq!(packets(b"time_ms,flow\n"), (0, false));
    }
}
