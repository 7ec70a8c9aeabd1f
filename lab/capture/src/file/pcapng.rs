//! pcapng [PCAPNG].

use std::io::BufRead;

use super::{Body, Frame, LONGEST, Order, Take, bytes, fill, skip};

// Blocks [PCAPNG §4]; the old packet block is in its appendix.
pub(super) const SECTION: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;
/// Options of an interface: the resolution of its times, and what is added to them in s.
const RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;
/// Option of a packet: its direction, in the lowest bits.
const FLAGS: u16 = 2;

struct Interface {
    link: u32,
    /// Longest part of a packet that was kept; 0 for all.
    snap_length: u32,
    /// Units of time in a second.
    units: u64,
    offset_s: i64,
}

/// The blocks. The first eight bytes come again.
pub(super) fn read(from: &mut dyn BufRead, take: &mut Take<'_>) -> Result<(), String> {
    let mut order = Order { is_big: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut header = [0; 8];
    let mut body = Vec::new();
    while fill(from, &mut header)? {
        let is_section = header[..4] == SECTION;
        let mut start = 0;
        if is_section {
            let mut magic = [0; 4];
            from.read_exact(&mut magic).map_err(|_| super::ENDS.to_owned())?;
            order.is_big = u32::from_be_bytes(magic) == BYTE_ORDER;
            if order.u32(&magic, 0) != Some(BYTE_ORDER) {
                return Err("a section of pcapng without its byte order".into());
            }
            interfaces.clear();
            start = 4;
        }
        let kind = order.u32(&header, 0).unwrap_or_default();
        let length = order.u32(&header, 4).unwrap_or_default();
        let left = length.checked_sub(8 + start).filter(|it| *it >= 4);
        let left = left.ok_or("a block of pcapng that is too short")?;
        let is_used = is_section || [INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET].contains(&kind);
        if !is_used && left > LONGEST {
            skip(from, left.into())?;
            continue;
        }
        bytes(from, left, &mut body)?;
        let body = &body[..body.len() - 4];
        match kind {
            _ if is_section && order.u16(body, 0) != Some(1) => {
                return Err("a pcapng of a version that is not known here".into());
            }
            INTERFACE => interfaces.push(interface(order, body)),
            // The old block has the interface in 16 bits, and the count of lost packets behind it.
            PACKET => packet(order, body, order.u32(body, 0), &interfaces, take)?,
            OLD_PACKET => {
                packet(order, body, order.u16(body, 0).map(u32::from), &interfaces, take)?
            }
            SIMPLE_PACKET => simple_packet(order, body, &interfaces, take)?,
            _ => {}
        }
    }
    Ok(())
}

fn interface(order: Order, body: &[u8]) -> Interface {
    let options = body.get(8..).unwrap_or_default();
    let units = match option(order, options, RESOLUTION).and_then(|value| value.first()) {
        Some(power) if power & 0x80 != 0 => 1_u64.checked_shl(u32::from(power & 0x7F)),
        Some(power) => 10_u64.checked_pow(u32::from(*power)),
        None => Some(1_000_000),
    };
    let offset = option(order, options, TIME_OFFSET).and_then(|value| value.first_chunk::<8>());
    let offset = offset.map_or(0, |eight| match order.is_big {
        true => i64::from_be_bytes(*eight),
        false => i64::from_le_bytes(*eight),
    });
    Interface {
        link: u32::from(order.u16(body, 0).unwrap_or_default()),
        snap_length: order.u32(body, 4).unwrap_or_default(),
        units: units.unwrap_or(1_000_000),
        offset_s: offset,
    }
}

fn packet(
    order: Order,
    body: &[u8],
    interface: Option<u32>,
    interfaces: &[Interface],
    take: &mut Take<'_>,
) -> Result<(), String> {
    let broken = "a packet of pcapng that is not whole";
    let field = |at| order.u32(body, at).ok_or(broken);
    let interface = interfaces
        .get(interface.ok_or(broken)? as usize)
        .ok_or("a packet of an interface that is not described")?;
    let ticks = u64::from(field(4)?) << 32 | u64::from(field(8)?);
    let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(interface.units)
        + i128::from(interface.offset_s) * 1_000_000_000;
    let captured = field(12)? as usize;
    let data = body.get(20..).and_then(|rest| rest.get(..captured)).ok_or(broken)?;
    let options = body.get(20 + captured.next_multiple_of(4)..).unwrap_or_default();
    let flags = option(order, options, FLAGS).and_then(|value| order.u32(value, 0));
    let is_sent = match flags.map(|flags| flags & 0b11) {
        Some(1) => Some(false),
        Some(2) => Some(true),
        _ => None,
    };
    take(&Frame {
        time: Some(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)),
        body: Body::Link(interface.link, data),
        length: field(16)?,
        is_sent,
    })
}

/// A packet of the first interface, without a time [PCAPNG §4.4].
fn simple_packet(
    order: Order,
    body: &[u8],
    interfaces: &[Interface],
    take: &mut Take<'_>,
) -> Result<(), String> {
    let interface = interfaces.first().ok_or("a packet of an interface that is not described")?;
    let length = order.u32(body, 0).ok_or("a packet of pcapng that is not whole")?;
    let kept = if interface.snap_length == 0 { length } else { interface.snap_length.min(length) };
    let data = body.get(4..).unwrap_or_default();
    let data = &data[..data.len().min(kept as usize)];
    take(&Frame { time: None, body: Body::Link(interface.link, data), length, is_sent: None })
}

/// The value of an option.
fn option(order: Order, mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (code, length) = (order.u16(options, 0)?, usize::from(order.u16(options, 2)?));
        let value = options.get(4..4 + length)?;
        if code == wanted {
            return Some(value);
        }
        options = options.get(4 + length.next_multiple_of(4)..).filter(|_| code != 0)?;
    }
}
