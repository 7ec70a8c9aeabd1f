//! pcap, with times in µs or ns, in both byte orders, and with the longer packet headers that some
//! systems gave it.

use std::io::BufRead;

use super::{Body, Frame, Order, Take, bytes, fill};

/// Type of a packet in the longer header that this host sent.
const OUTGOING: u8 = 4;

/// A variant, by the first four bytes.
#[derive(Clone, Copy)]
pub(super) struct Variant {
    order: Order,
    /// Nanoseconds of a unit of the lower part of a time.
    unit_ns: u64,
    /// Bytes of the packet header behind the usual ones.
    more: usize,
}

impl Variant {
    pub fn of(magic: [u8; 4]) -> Option<Self> {
        let variant = |magic: u32| match magic {
            0xA1B2_C3D4 => Some((1_000, 0)),
            0xA1B2_3C4D => Some((1, 0)),
            // Interface, protocol and direction behind the length.
            0xA1B2_CD34 => Some((1_000, 8)),
            _ => None,
        };
        let [little, big] = [u32::from_le_bytes(magic), u32::from_be_bytes(magic)];
        let little = variant(little).map(|it| (it, false));
        let ((unit_ns, more), is_big) = little.or(variant(big).map(|it| (it, true)))?;
        Some(Self { order: Order { is_big }, unit_ns, more })
    }
}

/// Reads what follows. The first eight bytes come again.
pub(super) fn read(
    variant: Variant,
    from: &mut dyn BufRead,
    take: &mut Take<'_>,
) -> Result<(), String> {
    const HEADER: usize = 16;
    let Variant { order, unit_ns, more } = variant;
    let mut heading = [0; 24];
    if !fill(from, &mut heading)? {
        return Err(super::ENDS.into());
    }
    let major = order.u16(&heading, 4).unwrap_or_default();
    if major != 2 {
        return Err(format!("pcap of version {major}, and only 2 is known here"));
    }
    let link = order.u32(&heading, 20).unwrap_or_default() & 0xFFFF;
    let mut header = [0; HEADER + 8];
    let mut data = Vec::new();
    while fill(from, &mut header[..HEADER + more])? {
        let field = |at| order.u32(&header, at).unwrap_or_default();
        bytes(from, field(8), &mut data)?;
        let time = u64::from(field(0)) * 1_000_000_000 + u64::from(field(4)) * unit_ns;
        let is_sent = if more > 0 { Some(header[HEADER + 6] == OUTGOING) } else { None };
        take(&Frame {
            time: Some(time),
            body: Body::Link(link, &data),
            length: field(12),
            // Zero is what a converter writes that does not know.
            is_sent: is_sent.filter(|is_sent| *is_sent),
        })?;
    }
    Ok(())
}
