//! H.264 in RTP (RFC 6184): a NAL unit in a packet of its own, or in fragments of type FU-A.

use weir_over_udp::{EXTENSIONS, SENDER};
use weir_wire::rtp::{AbsSendTime, PayloadType, RtpHeader};

/// Largest RTP payload, in bytes.
const PAYLOAD_MAX: usize = 1_160;
/// Type of a fragment (RFC 6184, section 5.8).
const FU_A: u8 = 28;
/// Bits of a NAL unit's first byte: forbidden bit and importance; type.
const IMPORTANCE: u8 = 0b1110_0000;
const NAL_TYPE: u8 = 0b0001_1111;
/// Bits of a fragment's second byte.
const FU_START: u8 = 0b1000_0000;
const FU_END: u8 = 0b0100_0000;

/// Makes RTP packets of frames.
#[derive(Default)]
pub struct Packetizer {
    sequence_number: u16,
}

impl Packetizer {
    /// The packets of a frame. `timestamp` is in RTP units of 1/90,000 s.
    pub fn packets<'a>(
        &mut self,
        timestamp: u32,
        nal_units: impl Iterator<Item = &'a [u8]>,
    ) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        for unit in nal_units {
            self.add(timestamp, without_start_code(unit), &mut packets);
        }
        if let Some(last) = packets.pop() {
            packets.push(with_marker(last));
        }
        packets
    }

    fn add(&mut self, timestamp: u32, unit: &[u8], packets: &mut Vec<Vec<u8>>) {
        let Some((&first, body)) = unit.split_first() else { return };
        if unit.len() <= PAYLOAD_MAX {
            packets.push(self.packet(timestamp, &[], unit));
            return;
        }
        let count = body.len().div_ceil(PAYLOAD_MAX - 2);
        for (index, fragment) in body.chunks(PAYLOAD_MAX - 2).enumerate() {
            let start = if index == 0 { FU_START } else { 0 };
            let end = if index + 1 == count { FU_END } else { 0 };
            let head = [first & IMPORTANCE | FU_A, start | end | first & NAL_TYPE];
            packets.push(self.packet(timestamp, &head, fragment));
        }
    }

    fn packet(&mut self, timestamp: u32, head: &[u8], body: &[u8]) -> Vec<u8> {
        let payload_type = const { PayloadType::new(96).unwrap() };
        // The sender fills in the extensions when the packet leaves.
        let header = RtpHeader::new(SENDER, payload_type, self.sequence_number, timestamp)
            .with_transport_sequence_number(EXTENSIONS.transport_sequence_number.map(|id| (id, 0)))
            .with_abs_send_time(
                EXTENSIONS.abs_send_time.map(|id| (id, AbsSendTime::from_ticks(0))),
            );
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let mut packet = vec![0; header.size()];
        header.emit(&mut packet);
        packet.extend_from_slice(head);
        packet.extend_from_slice(body);
        packet
    }
}

/// The encoder separates NAL units by the bytes 0 0 1 or 0 0 0 1. RTP carries the units alone.
fn without_start_code(unit: &[u8]) -> &[u8] {
    let zeros = unit.iter().take_while(|&&byte| byte == 0).count();
    &unit[(zeros + 1).min(unit.len())..]
}

/// Marks the last packet of a frame (RFC 3550, section 5.1).
fn with_marker(mut packet: Vec<u8>) -> Vec<u8> {
    packet[1] |= 0b1000_0000;
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtp::View;

    fn payloads(unit: &[u8]) -> Vec<(bool, Vec<u8>)> {
        let packets = Packetizer::default().packets(7, [unit].into_iter());
        let view = |packet: &Vec<u8>| {
            let view = View::parse(packet).unwrap();
            (view.marker(), view.payload().to_vec())
        };
        packets.iter().map(view).collect()
    }

    #[test]
    fn a_small_unit_is_one_packet_without_the_start_code() {
        assert_eq!(payloads(&[0, 0, 0, 1, 0x65, 9, 8]), [(true, vec![0x65, 9, 8])]);
    }

    #[test]
    fn the_fragments_of_a_large_unit_make_up_the_unit() {
        let mut unit = vec![0, 0, 1, 0x65];
        unit.extend((0..3_000).map(|byte| byte as u8));
        let payloads = payloads(&unit);
        let heads: Vec<_> = payloads.iter().map(|(_, payload)| (payload[0], payload[1])).collect();
        assert_eq!(heads, [(0x7c, 0x85), (0x7c, 0x05), (0x7c, 0x45)]);
        let body: Vec<u8> =
            payloads.iter().flat_map(|(_, payload)| payload[2..].to_vec()).collect();
        assert_eq!(body, unit[4..]);
        assert_eq!(payloads.iter().filter(|payload| payload.0).count(), 1);
        assert!(payloads[2].0, "only the last packet ends the frame");
    }
}
