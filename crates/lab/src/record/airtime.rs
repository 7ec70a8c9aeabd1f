//! `airtime.csv`: a row a frame on the air of the Wi-Fi cell, by the order of their ends.

use std::io::{self, Write};

use weir::units::{DataSize, Timestamp};
use weir_net::wifi::{
    AccessCategory, AirtimeRecord, DataRate, FrameKind, GuardInterval, Mcs, NodeId,
};

use super::series::Cells;

pub(super) const HEADER: &str =
    "start_ns,end_ns,from,to,kind,mcs,guard,category,mpdus,bytes,decoded";
const COLUMNS: usize = 11;

/// The words of the access categories.
const CATEGORIES: [(AccessCategory, &str); AccessCategory::COUNT] = [
    (AccessCategory::Background, "background"),
    (AccessCategory::BestEffort, "best-effort"),
    (AccessCategory::Video, "video"),
    (AccessCategory::Voice, "voice"),
];

/// Writes the first line.
pub fn write_header(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")
}

/// Writes the next frames, behind the first line.
pub fn write(out: &mut impl Write, nodes: &[String], frames: &[AirtimeRecord]) -> io::Result<()> {
    for frame in frames {
        let (start, end) = (frame.start.as_nanos(), frame.end.as_nanos());
        // An access point elsewhere has no name.
        let to = frame.to.map_or("", |to| &nodes[to.0]);
        write!(out, "{start},{end},{},{to},", nodes[frame.from.0])?;
        match frame.kind {
            FrameKind::Data { rate, category, mpdus, size } => {
                let guard = if rate.guard == GuardInterval::Short { "short" } else { "long" };
                let (mcs, bytes) = (rate.mcs.index(), size.as_bytes());
                write!(out, "data,{mcs},{guard},{},{mpdus},{bytes}", word(category))?;
            }
            FrameKind::Ack => write!(out, "ack,,,,,")?,
            FrameKind::BlockAck => write!(out, "block-ack,,,,,")?,
        }
        writeln!(out, ",{}", frame.decoded)?;
    }
    Ok(())
}

/// The word for an access category.
pub(crate) fn word(category: AccessCategory) -> &'static str {
    let found = CATEGORIES.iter().find(|known| known.0 == category);
    found.expect("all categories are listed").1
}

pub(super) fn parse_row(line: &str, nodes: &[String]) -> Result<AirtimeRecord, String> {
    let cells = Cells::of(line, COLUMNS)?;
    let time = |column| {
        let nanos = cells.number(column)?;
        i64::try_from(nanos).map(Timestamp::from_nanos).map_err(|_| format!("{nanos} is too large"))
    };
    let to = match cells.text(3) {
        "" => None,
        _ => Some(NodeId(cells.position(3, "node", nodes)?)),
    };
    Ok(AirtimeRecord {
        start: time(0)?,
        end: time(1)?,
        from: NodeId(cells.position(2, "node", nodes)?),
        to,
        kind: match cells.text(4) {
            "data" => data(&cells)?,
            "ack" => FrameKind::Ack,
            "block-ack" => FrameKind::BlockAck,
            kind => return Err(format!("no frame is a '{kind}'")),
        },
        decoded: cells.number(10)? as usize,
    })
}

fn data(cells: &Cells<'_>) -> Result<FrameKind, String> {
    let index = cells.number(5)?;
    let mcs = u8::try_from(index).ok().and_then(Mcs::new).ok_or(format!("no MCS {index}"))?;
    let guard = match cells.text(6) {
        "short" => GuardInterval::Short,
        _ => GuardInterval::Long,
    };
    let name = cells.text(7);
    let category = CATEGORIES.iter().find(|known| known.1 == name);
    Ok(FrameKind::Data {
        rate: DataRate { mcs, guard },
        category: category.ok_or(format!("no category '{name}'"))?.0,
        mpdus: cells.number(8)? as usize,
        size: DataSize::from_bytes(cells.number(9)?),
    })
}
