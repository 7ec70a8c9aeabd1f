//! The capture files of Solaris' snoop [RFC1761].

use std::io::BufRead;

use super::{Body, Frame, Order, Take, bytes, fill, skip};

pub(super) const MAGIC: [u8; 8] = *b"snoop\0\0\0";

/// Data links [RFC1761 §2], as link types of pcap.
const LINKS: [(u32, u32); 3] = [(4, 1), (2, 6), (8, 10)];

/// The records. The first eight bytes come again.
pub(super) fn read(from: &mut dyn BufRead, take: &mut Take<'_>) -> Result<(), String> {
    const HEADER: u32 = 24;
    let order = Order { is_big: true };
    let mut heading = [0; 16];
    fill(from, &mut heading)?;
    let version = order.u32(&heading, 8).unwrap_or_default();
    if version != 2 {
        return Err(format!("snoop of version {version}, and only 2 is known here"));
    }
    let link = order.u32(&heading, 12).unwrap_or_default();
    let known = LINKS.iter().find(|(theirs, _)| *theirs == link);
    let (_, link) = *known.ok_or_else(|| format!("a snoop file of data link {link}"))?;
    let mut header = [0; HEADER as usize];
    let mut data = Vec::new();
    while fill(from, &mut header)? {
        let field = |at| order.u32(&header, at).unwrap_or_default();
        let padding = field(8).checked_sub(HEADER).and_then(|left| left.checked_sub(field(4)));
        let padding = padding.ok_or("a record of snoop that contradicts itself")?;
        bytes(from, field(4), &mut data)?;
        skip(from, padding.into())?;
        let time = u64::from(field(16)) * 1_000_000_000 + u64::from(field(20)) * 1_000;
        take(&Frame {
            time: Some(time),
            body: Body::Link(link, &data),
            length: field(0),
            is_sent: None,
        })?;
    }
    Ok(())
}
