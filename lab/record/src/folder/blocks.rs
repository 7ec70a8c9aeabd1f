//! `blocks.csv`: one row for each transmission of a block on the air of the cellular cell, in the
//! order in which they were sent.

use std::io::{self, Write};
use std::ops::Range;

use weir::units::Timestamp;
use weir_net::cellular::BlockRecord;
use weir_net::path::Direction;

use super::bearers::direction;
use super::table::{ColumnGroup, CsvColumn, Log, column, node_column, put_number};

/// The file.
pub(crate) const FILE: Log<Block, BlockRecord> = Log {
    file: "blocks.csv",
    groups: GROUPS,
    items: |part| &part.access.cellular.blocks,
    read: |trace| &mut trace.access.cellular.blocks,
    applies: |scenario| scenario.access.as_ref().is_some_and(weir_scenario::Access::is_cellular),
    row: Block::of,
    item: Block::record,
};

pub(crate) const GROUPS: &[ColumnGroup<Block>] =
    &[ColumnGroup { columns: COLUMNS, is_in: |_| true }];

/// Limit of the number of ranges of a row; no carrier has more groups.
const RANGES_MAX: usize = 64;

/// A row: a [`BlockRecord`] with numbers as wide as the cells.
#[derive(Default)]
pub(crate) struct Block {
    start: Timestamp,
    is_down: bool,
    node: usize,
    prbs: Vec<Range<u16>>,
    mcs: u64,
    bytes: u64,
    attempt: u64,
    decoded: u64,
}

const COLUMNS: &[CsvColumn<Block>] = &[
    column!("start_ns", "ns", start, "start of its TTI"),
    CsvColumn {
        name: "direction",
        unit: "",
        meaning: "`up` or `down`",
        in_call: "",
        put: |row, _, out| out.extend_from_slice(row.direction().word().as_bytes()),
        take: |row, cell, _| {
            row.is_down = direction(cell)? == Direction::Down;
            Ok(())
        },
    },
    node_column!("terminal", node, "terminal", "name of the terminal"),
    CsvColumn {
        name: "prbs",
        unit: "",
        meaning: "its resource blocks, such as `0-5 9-11`",
        in_call: "",
        put: |row, _, out| put_ranges(out, &row.prbs),
        take: |row, cell, _| {
            row.prbs = ranges(cell)?;
            Ok(())
        },
    },
    column!("mcs", "", mcs, "modulation and coding scheme"),
    column!("bytes", "byte", bytes, "size of the block"),
    column!("attempt", "", attempt, "1 for the first transmission, 2 for the first by HARQ"),
    column!("decoded", "", decoded, "1 if the receiver could decode it, otherwise 0"),
];

impl Block {
    fn of(record: &BlockRecord) -> Self {
        Self {
            start: record.start,
            is_down: record.direction == Direction::Down,
            node: record.node,
            prbs: record.prbs.clone(),
            mcs: record.mcs.into(),
            bytes: record.bytes.into(),
            attempt: record.attempt.into(),
            decoded: record.is_decoded.into(),
        }
    }

    fn direction(&self) -> Direction {
        if self.is_down { Direction::Down } else { Direction::Up }
    }

    fn record(self) -> Result<BlockRecord, String> {
        let large = |name: &str| format!("{name}: too large");
        Ok(BlockRecord {
            start: self.start,
            direction: self.direction(),
            node: self.node,
            mcs: self.mcs.try_into().map_err(|_| large("mcs"))?,
            bytes: self.bytes.try_into().map_err(|_| large("bytes"))?,
            attempt: self.attempt.try_into().map_err(|_| large("attempt"))?,
            is_decoded: self.decoded == 1,
            prbs: self.prbs,
        })
    }
}

/// Writes the first line.
pub fn write_header(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", FILE.header())
}

/// Writes the next blocks, a line each.
pub fn write(out: &mut impl Write, nodes: &[String], blocks: &[BlockRecord]) -> io::Result<()> {
    FILE.write_items(out, nodes, blocks)
}

/// The ranges as text: first and last resource block of each.
pub(crate) fn put_ranges(out: &mut Vec<u8>, ranges: &[Range<u16>]) {
    for (index, range) in ranges.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        put_number(out, range.start.into());
        out.push(b'-');
        put_number(out, range.end.saturating_sub(1).into());
    }
}

fn ranges(cell: &str) -> Result<Vec<Range<u16>>, String> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-')?;
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        (first <= last).then_some(first..last.checked_add(1)?)
    };
    let mut parts = cell.split_whitespace();
    let found: Option<Vec<_>> = parts.by_ref().take(RANGES_MAX).map(range).collect();
    match found {
        Some(found) if parts.next().is_none() => Ok(found),
        _ => Err(format!("'{cell}' is not a list of resource blocks such as 0-5 9-11")),
    }
}
