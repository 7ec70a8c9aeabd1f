//! What servers and tools record of a single stream: rtpdump (of rtptools) and Janus' recordings.

use std::io::{BufRead, Read};
use std::net::{Ipv4Addr, SocketAddr};

use super::{Body, ENDS, Frame, Order, Take, bytes, fill};

pub(super) const RTPDUMP: &[u8] = b"#!rtppla";
pub(super) const JANUS: &[u8] = b"MJR00002";
/// Longest first line, or heading.
const HEADING_MAX: u64 = 64 << 10;
const BIG: Order = Order { is_big: true };

/// Where these streams came from, which neither says.
const UNKNOWN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A line with an address, a heading with the time of the begin, and packets with their ms since
/// then. A packet of RTCP has the length 0 in its own field.
pub(super) fn rtpdump(from: &mut dyn BufRead, take: &mut Take<'_>) -> Result<(), String> {
    const HEADER: u16 = 8;
    let mut line = Vec::new();
    Read::take(&mut *from, HEADING_MAX)
        .read_until(b'\n', &mut line)
        .map_err(|error| error.to_string())?;
    let mut heading = [0; 16];
    fill(from, &mut heading)?;
    let field = |at| u64::from(BIG.u32(&heading, at).unwrap_or_default());
    let begin = field(0) * 1_000_000_000 + field(4) * 1_000;
    let mut header = [0; HEADER as usize];
    let mut data = Vec::new();
    while fill(from, &mut header)? {
        let length = BIG.u16(&header, 0).unwrap_or_default().checked_sub(HEADER);
        let length = length.ok_or("a packet of rtpdump that is too short")?;
        bytes(from, length.into(), &mut data)?;
        let on_the_wire = match BIG.u16(&header, 2).unwrap_or_default() {
            0 => length,
            wire => wire.max(length),
        };
        let after = u64::from(BIG.u32(&header, 4).unwrap_or_default()) * 1_000_000;
        take(&Frame {
            time: Some(begin + after),
            body: Body::Received(UNKNOWN, &data),
            length: on_the_wire.into(),
            is_sent: Some(false),
        })?;
    }
    Ok(())
}

/// A heading in JSON, and packets with their ms since the begin.
pub(super) fn janus(from: &mut dyn BufRead, take: &mut Take<'_>) -> Result<(), String> {
    const FRAME: &[u8] = b"MEET";
    let mut heading = [0; 10];
    fill(from, &mut heading)?;
    let mut data = Vec::new();
    bytes(from, BIG.u16(&heading, 8).unwrap_or_default().into(), &mut data)?;
    let begin = first_frame_us(&data).unwrap_or_default() * 1_000;
    let mut header = [0; 10];
    while fill(from, &mut header)? {
        if !header.starts_with(FRAME) {
            return Err("a recording of Janus that is damaged".into());
        }
        let after = u64::from(BIG.u32(&header, 4).unwrap_or_default()) * 1_000_000;
        let length = BIG.u16(&header, 8).ok_or(ENDS)?;
        bytes(from, length.into(), &mut data)?;
        take(&Frame {
            time: Some(begin + after),
            body: Body::Received(UNKNOWN, &data),
            length: length.into(),
            is_sent: Some(false),
        })?;
    }
    Ok(())
}

/// The member `u` of the heading: when the first frame was written, in µs since 1970.
fn first_frame_us(heading: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(heading).ok()?;
    let (_, value) = text.split_once("\"u\":")?;
    let digits = value.trim_start().split(|it: char| !it.is_ascii_digit()).next()?;
    // Beyond the year 2200 it is no time.
    digits.parse().ok().filter(|us| *us < 7_300_000_000_000_000)
}
