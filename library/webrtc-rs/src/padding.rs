//! Packets that carry nothing.
//!
//! `rtp::Packet` writes at most four bytes of padding, so a header extension is what fills them. On
//! the stream of repeats a packet without a payload stands for nothing, and receivers skip it.

use bytes::Bytes;
use rtc_rtp::header::Header;
use rtc_rtp::packet::Packet;

/// An id that no description of a session has: browsers number from 1.
const FILLER_ID: u8 = 200;
/// Most bytes of a header extension.
const FILLER: [u8; 255] = [0; 255];

/// A packet of padding on this stream. Its number is given when it leaves.
pub(crate) fn packet(ssrc: u32, payload_type: u8, timestamp: u32) -> Packet {
    let mut header = Header { version: 2, ssrc, payload_type, timestamp, ..Header::default() };
    // The first extension decides on the form with two bytes, which all ids and lengths fit.
    let filled = header.set_extension(FILLER_ID, Bytes::from_static(&FILLER));
    debug_assert!(filled.is_ok());
    Packet { header, payload: Bytes::new() }
}
