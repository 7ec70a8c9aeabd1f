//! Access to the fields of RTP packets that congestion control reads and writes.

use weir::feedback::{Ecn, RtpNumber};
use weir_wire::ccfb;
use weir_wire::rtp::{ExtensionId, View};

/// Whether a datagram on a port that carries both RTP and RTCP is RTCP [RFC5761 §4].
///
/// [RFC5761 §4]: https://www.rfc-editor.org/rfc/rfc5761#section-4
pub fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [_, 192..=223, ..])
}

/// Overwrites the header extension element with this id. Returns `false` if the packet has no such
/// element of the same length.
pub fn write_element(packet: &mut [u8], id: ExtensionId, data: &[u8]) -> bool {
    let Some(at) = element_start(packet, id, data.len()) else { return false };
    packet[at..at + data.len()].copy_from_slice(data);
    true
}

/// Offset of the data of the element with this id and length.
fn element_start(packet: &[u8], id: ExtensionId, length: usize) -> Option<usize> {
    let view = View::parse_header(packet).ok()?;
    let data = view.element(id).filter(|data| data.len() == length)?;
    // `data` is a slice of `packet`, so the difference of their addresses is the offset.
    Some(data.as_ptr() as usize - packet.as_ptr() as usize)
}

/// Converts a time to units of the RTP clock, modulo 2^32 as the RTP clock counts. The product
/// needs more than 64 bits if the host counts its time from 1970.
pub(crate) fn rtp_units(time_us: i64, clock_rate: u32) -> u32 {
    const MICROS_PER_SECOND: i128 = 1_000_000;
    (i128::from(time_us) * i128::from(clock_rate)).div_euclid(MICROS_PER_SECOND) as u32
}

pub(crate) fn rtp_number(view: &View<'_>) -> RtpNumber {
    RtpNumber { ssrc: view.ssrc(), sequence_number: view.sequence_number() }
}

pub(crate) const fn ecn_from_wire(ecn: ccfb::Ecn) -> Ecn {
    match ecn {
        ccfb::Ecn::NotEct => Ecn::NotEct,
        ccfb::Ecn::Ect1 => Ecn::Ect1,
        ccfb::Ecn::Ect0 => Ecn::Ect0,
        ccfb::Ecn::Ce => Ecn::Ce,
    }
}

pub(crate) const fn ecn_to_wire(ecn: Ecn) -> ccfb::Ecn {
    match ecn {
        Ecn::NotEct => ccfb::Ecn::NotEct,
        Ecn::Ect1 => ccfb::Ecn::Ect1,
        Ecn::Ect0 => ccfb::Ecn::Ect0,
        Ecn::Ce => ccfb::Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rtp_clock_wraps_and_goes_on_whatever_the_origin_of_time() {
        let in_2026_us = 1_795_000_000_000_000;
        let units = rtp_units(in_2026_us, 90_000);
        assert_eq!(rtp_units(in_2026_us + 1_000_000, 90_000).wrapping_sub(units), 90_000);
        assert_eq!(rtp_units(-1_000_000, 90_000), 90_000_u32.wrapping_neg());
    }
}
