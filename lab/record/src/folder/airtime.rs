//! `airtime.csv`: one row for each frame on the air of the Wi-Fi cell, sorted by the frame's end.

use std::io::{self, Write};

use weir::units::{DataSize, Timestamp};
use weir_net::wifi::{
    AccessCategory, AirtimeRecord, DataRate, FrameKind, GuardInterval, Mcs, NodeId,
};
use weir_scenario::Scenario;

use super::table::{ColumnGroup, CsvColumn, Log, column, node_column, position};

/// The file.
pub(crate) const FILE: Log<Frame, AirtimeRecord> = Log {
    file: "airtime.csv",
    groups: GROUPS,
    items: |part| &part.access.wifi.frames,
    read: |trace| &mut trace.access.wifi.frames,
    applies: Scenario::has_wifi,
    row: Frame::of,
    item: Frame::record,
};

pub(crate) const GROUPS: &[ColumnGroup<Frame>] =
    &[ColumnGroup { columns: COLUMNS, is_in: |_| true }];

/// A row: an [`AirtimeRecord`] as flat columns.
#[derive(Default)]
pub(crate) struct Frame {
    start: Timestamp,
    end: Timestamp,
    from: usize,
    to: Option<usize>,
    kind: &'static str,
    mcs: Option<u64>,
    guard: &'static str,
    category: Option<AccessCategory>,
    mpdus: Option<u64>,
    size: Option<DataSize>,
    decoded: u64,
}

const DATA: &str = "data";
const ACK: &str = "ack";
const BLOCK_ACK: &str = "block-ack";
const SHORT: &str = "short";
const LONG: &str = "long";

const COLUMNS: &[CsvColumn<Frame>] = &[
    column!("start_ns", "ns", start, "first moment on the air"),
    column!("end_ns", "ns", end, "last moment on the air, with the signal extension of the band"),
    node_column!("from", from, "node", "name of the node that sends"),
    CsvColumn {
        name: "to",
        unit: "",
        meaning: "name of the node that receives; empty for an access point elsewhere",
        in_call: "",
        put: |row, nodes, out| {
            out.extend_from_slice(row.to.map_or("", |to| nodes[to].as_str()).as_bytes());
        },
        take: |row, cell, nodes| {
            row.to = (!cell.is_empty()).then(|| position(cell, "node", nodes)).transpose()?;
            Ok(())
        },
    },
    CsvColumn {
        name: "kind",
        unit: "",
        meaning: "`data`, `ack` or `block-ack`; the next five columns are empty for the latter two",
        in_call: "",
        put: |row, _, out| out.extend_from_slice(row.kind.as_bytes()),
        take: |row, cell, _| {
            let kinds = [DATA, ACK, BLOCK_ACK];
            row.kind = known(cell, &kinds).ok_or_else(|| format!("no frame is a '{cell}'"))?;
            Ok(())
        },
    },
    column!("mcs", "", mcs, "modulation and coding scheme"),
    CsvColumn {
        name: "guard",
        unit: "",
        meaning: "guard interval: `long` or `short`",
        in_call: "",
        put: |row, _, out| out.extend_from_slice(row.guard.as_bytes()),
        take: |row, cell, _| {
            row.guard = known(cell, &[SHORT]).unwrap_or(LONG);
            Ok(())
        },
    },
    CsvColumn {
        name: "category",
        unit: "",
        meaning: "access category: `background`, `best-effort`, `video` or `voice`",
        in_call: "",
        put: |row, _, out| out.extend_from_slice(row.category.map_or("", word).as_bytes()),
        take: |row, cell, _| {
            row.category = CATEGORIES.iter().find(|(_, word)| *word == cell).map(|found| found.0);
            match row.category {
                None if !cell.is_empty() => Err(format!("no category '{cell}'")),
                _ => Ok(()),
            }
        },
    },
    column!("mpdus", "packets", mpdus, "packets in the frame"),
    column!("bytes", "byte", size, "bytes in the frame, headers included"),
    column!(
        "decoded",
        "packets",
        decoded,
        "packets that the receiver could decode; 1 or 0 for an answer"
    ),
];

/// Names of the access categories.
const CATEGORIES: &[(AccessCategory, &str)] = &[
    (AccessCategory::Background, "background"),
    (AccessCategory::BestEffort, "best-effort"),
    (AccessCategory::Video, "video"),
    (AccessCategory::Voice, "voice"),
];

impl Frame {
    fn of(record: &AirtimeRecord) -> Self {
        let row = Self {
            start: record.start,
            end: record.end,
            from: record.from.0,
            to: record.to.map(|to| to.0),
            decoded: record.decoded as u64,
            ..Self::default()
        };
        match record.kind {
            FrameKind::Data { rate, category, mpdus, size } => Self {
                kind: DATA,
                mcs: Some(rate.mcs.index() as u64),
                guard: if rate.guard == GuardInterval::Short { SHORT } else { LONG },
                category: Some(category),
                mpdus: Some(mpdus as u64),
                size: Some(size),
                ..row
            },
            FrameKind::Ack => Self { kind: ACK, ..row },
            FrameKind::BlockAck => Self { kind: BLOCK_ACK, ..row },
        }
    }

    fn record(self) -> Result<AirtimeRecord, String> {
        let kind = match self.kind {
            DATA => self.data()?,
            ACK => FrameKind::Ack,
            _ => FrameKind::BlockAck,
        };
        let ends = (NodeId(self.from), self.to.map(NodeId));
        Ok(AirtimeRecord::new(self.start..self.end, ends, kind, self.decoded as usize))
    }

    fn data(&self) -> Result<FrameKind, String> {
        let missing = |name: &str| format!("{name}: an empty cell");
        let index = self.mcs.ok_or_else(|| missing("mcs"))?;
        let mcs = u8::try_from(index).ok().and_then(Mcs::new).ok_or(format!("no MCS {index}"))?;
        let guard = if self.guard == SHORT { GuardInterval::Short } else { GuardInterval::Long };
        Ok(FrameKind::Data {
            rate: DataRate { mcs, guard },
            category: self.category.ok_or_else(|| missing("category"))?,
            mpdus: self.mpdus.ok_or_else(|| missing("mpdus"))? as usize,
            size: self.size.ok_or_else(|| missing("bytes"))?,
        })
    }
}

/// Writes the first line.
pub fn write_header(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", FILE.header())
}

/// Writes the next frames, a line each.
pub fn write(out: &mut impl Write, nodes: &[String], frames: &[AirtimeRecord]) -> io::Result<()> {
    FILE.write_items(out, nodes, frames)
}

/// Name of an access category.
pub fn word(category: AccessCategory) -> &'static str {
    let found = CATEGORIES.iter().find(|known| known.0 == category);
    found.expect("all categories are listed").1
}

/// The word that equals the cell; `None` if there is none.
fn known(cell: &str, words: &[&'static str]) -> Option<&'static str> {
    words.iter().copied().find(|word| *word == cell)
}
