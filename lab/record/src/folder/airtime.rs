//! `airtime.csv`: one row for each frame on the air of the Wi-Fi cell, sorted by the frame's end.

use std::io::{self, Write};

use weir::units::{DataSize, Timestamp};
use weir_net::wifi::{
    AccessCategory, AirtimeRecord, DataRate, FrameKind, GuardInterval, Mcs, NodeId,
};
use weir_scenario::Scenario;
use weir_sim::trace::Trace;

use super::table::{
    Cell, ColumnGroup, CsvColumn, Log, always, column, name_column, position, word_of,
};

/// The file.
pub(crate) const FILE: Log<Frame, AirtimeRecord> = Log {
    file: "airtime.csv",
    groups: GROUPS,
    items: frames,
    read: frames_mut,
    applies: Scenario::has_wifi,
    row: Frame::of,
    item: Frame::record,
};

fn frames(part: &Trace) -> &[AirtimeRecord] {
    &part.access.wifi.frames
}

fn frames_mut(trace: &mut Trace) -> &mut Vec<AirtimeRecord> {
    &mut trace.access.wifi.frames
}

pub(crate) const GROUPS: &[ColumnGroup<Frame>] = &[ColumnGroup { columns: COLUMNS, is_in: always }];

/// A row: an [`AirtimeRecord`] as flat columns.
#[derive(Default)]
pub(crate) struct Frame {
    start: Timestamp,
    end: Timestamp,
    from: usize,
    to: Option<usize>,
    kind: Kind,
    mcs: Option<u64>,
    guard: Option<GuardInterval>,
    category: Option<AccessCategory>,
    mpdus: Option<u64>,
    size: Option<DataSize>,
    decoded: u64,
}

/// What a frame is, by its word in the file.
#[derive(Clone, Copy, Default)]
enum Kind {
    #[default]
    Data,
    Ack,
    BlockAck,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
            Self::BlockAck => "block-ack",
        }
    }
}

impl Cell for Kind {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.word().as_bytes());
    }

    fn take(cell: &str) -> Result<Self, String> {
        word_of(cell, "frame", &[Self::Data, Self::Ack, Self::BlockAck], Self::word)
    }
}

impl Cell for GuardInterval {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self == Self::Short { b"short" } else { b"long" });
    }

    fn take(cell: &str) -> Result<Self, String> {
        Ok(if cell == "short" { Self::Short } else { Self::Long })
    }
}

impl Cell for AccessCategory {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(word(*self).as_bytes());
    }

    fn take(cell: &str) -> Result<Self, String> {
        word_of(cell, "category", &CATEGORIES, word)
    }
}

const COLUMNS: &[CsvColumn<Frame>] = &[
    column!("start_ns", "ns", start, "first moment on the air"),
    column!("end_ns", "ns", end, "last moment on the air, with the signal extension of the band"),
    name_column!("from", from, "node", "name of the node that sends"),
    CsvColumn::new(
        "to",
        "",
        "name of the node that receives; empty for an access point elsewhere",
        Frame::put_to,
        Frame::take_to,
    ),
    column!(
        "kind",
        "",
        kind,
        "`data`, `ack` or `block-ack`; the next five columns are empty for the latter two"
    ),
    column!("mcs", "", mcs, "modulation and coding scheme"),
    column!("guard", "", guard, "guard interval: `long` or `short`"),
    column!(
        "category",
        "",
        category,
        "access category: `background`, `best-effort`, `video` or `voice`"
    ),
    column!("mpdus", "packets", mpdus, "packets in the frame"),
    column!("bytes", "byte", size, "bytes in the frame, headers included"),
    column!(
        "decoded",
        "packets",
        decoded,
        "packets that the receiver could decode; 1 or 0 for an answer"
    ),
];

/// All access categories.
const CATEGORIES: [AccessCategory; 4] = [
    AccessCategory::Background,
    AccessCategory::BestEffort,
    AccessCategory::Video,
    AccessCategory::Voice,
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
                kind: Kind::Data,
                mcs: Some(rate.mcs.index() as u64),
                guard: Some(rate.guard),
                category: Some(category),
                mpdus: Some(mpdus as u64),
                size: Some(size),
                ..row
            },
            FrameKind::Ack => Self { kind: Kind::Ack, ..row },
            FrameKind::BlockAck => Self { kind: Kind::BlockAck, ..row },
        }
    }

    fn put_to(&self, nodes: &[String], out: &mut Vec<u8>) {
        if let Some(to) = self.to {
            out.extend_from_slice(nodes[to].as_bytes());
        }
    }

    fn take_to(&mut self, cell: &str, nodes: &[String]) -> Result<(), String> {
        self.to = if cell.is_empty() { None } else { Some(position(cell, "node", nodes)?) };
        Ok(())
    }

    fn record(self) -> Result<AirtimeRecord, String> {
        let kind = match self.kind {
            Kind::Data => self.data()?,
            Kind::Ack => FrameKind::Ack,
            Kind::BlockAck => FrameKind::BlockAck,
        };
        let ends = (NodeId(self.from), self.to.map(NodeId));
        Ok(AirtimeRecord::new(self.start..self.end, ends, kind, self.decoded as usize))
    }

    fn data(&self) -> Result<FrameKind, String> {
        let index = self.mcs.ok_or("mcs: an empty cell")?;
        let mcs = u8::try_from(index).ok().and_then(Mcs::new).ok_or(format!("no MCS {index}"))?;
        let guard = self.guard.unwrap_or(GuardInterval::Long);
        Ok(FrameKind::Data {
            rate: DataRate { mcs, guard },
            category: self.category.ok_or("category: an empty cell")?,
            mpdus: self.mpdus.ok_or("mpdus: an empty cell")? as usize,
            size: self.size.ok_or("bytes: an empty cell")?,
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
    match category {
        AccessCategory::Background => "background",
        AccessCategory::BestEffort => "best-effort",
        AccessCategory::Video => "video",
        AccessCategory::Voice => "voice",
    }
}
