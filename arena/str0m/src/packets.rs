//! Payloads of VP8 for str0m's RTP mode, in which the host makes them.

use std::time::Instant;

use arena_driver::encoder::PAYLOAD_BYTES;
use str0m::media::Pt;
use weir_str0m::Packet;

/// The descriptor has an extension: the picture's number, in 15 bits [RFC7741 §4.2].
const EXTENDED: u8 = 0x80;
const HAS_NUMBER: u8 = 0x80;
const LONG_NUMBER: u8 = 0x80;
/// The packet begins the picture.
const BEGINS: u8 = 0x10;

/// A picture that the encoder has just made.
pub struct Picture {
    pub payload_type: Pt,
    pub number: u64,
    pub timestamp: u32,
}

/// The packets of a picture.
pub fn of(frame: &[u8], picture: Picture) -> Vec<Packet> {
    let Picture { payload_type, number, timestamp } = picture;
    let captured = Instant::now();
    let parts: Vec<&[u8]> = frame.chunks(PAYLOAD_BYTES as usize).collect();
    let mut packets = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let begins = if index == 0 { BEGINS } else { 0 };
        let [high, low] = ((number % (1 << 15)) as u16).to_be_bytes();
        let mut payload = vec![EXTENDED | begins, HAS_NUMBER, LONG_NUMBER | high, low];
        payload.extend_from_slice(part);
        let marker = index + 1 == parts.len();
        let payload = payload.into();
        packets.push(Packet { payload, payload_type, timestamp, captured, marker });
    }
    packets
}
