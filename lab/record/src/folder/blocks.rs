//! `blocks.csv`: one row for each transmission of a block on the air of the cellular cell, in the
//! order in which they were sent.

use std::io::{self, Write};
use std::ops::Range;

use weir::units::Timestamp;
use weir_net::cellular::BlockRecord;
use weir_net::path::Direction;
use weir_scenario::Scenario;
use weir_sim::trace::Trace;

use super::table::{Cell, ColumnGroup, CsvColumn, Log, always, column, name_column, put_number};

/// The file.
pub(crate) const FILE: Log<Block, BlockRecord> = Log {
    file: "blocks.csv",
    groups: GROUPS,
    items: blocks,
    read: blocks_mut,
    applies: Scenario::has_cellular,
    row: Block::of,
    item: Block::record,
};

fn blocks(part: &Trace) -> &[BlockRecord] {
    &part.access.cellular.blocks
}

fn blocks_mut(trace: &mut Trace) -> &mut Vec<BlockRecord> {
    &mut trace.access.cellular.blocks
}

pub(crate) const GROUPS: &[ColumnGroup<Block>] = &[ColumnGroup { columns: COLUMNS, is_in: always }];

/// Limit of the number of ranges of a row; no carrier has more groups.
const RANGES_MAX: usize = 64;

/// A row: a [`BlockRecord`] with numbers as wide as the cells.
#[derive(Default)]
pub(crate) struct Block {
    start: Timestamp,
    direction: Option<Direction>,
    node: usize,
    prbs: Vec<Range<u16>>,
    mcs: u64,
    bytes: u64,
    attempt: u64,
    decoded: u64,
}

const COLUMNS: &[CsvColumn<Block>] = &[
    column!("start_ns", "ns", start, "start of its TTI"),
    column!("direction", "", direction, "`up` or `down`"),
    name_column!("terminal", node, "terminal", "name of the terminal"),
    column!("prbs", "", prbs, "its resource blocks, such as `0-5 9-11`"),
    column!("mcs", "", mcs, "modulation and coding scheme"),
    column!("bytes", "byte", bytes, "size of the block"),
    column!("attempt", "", attempt, "1 for the first transmission, 2 for the first by HARQ"),
    column!("decoded", "", decoded, "1 if the receiver could decode it, otherwise 0"),
];

impl Block {
    fn of(record: &BlockRecord) -> Self {
        Self {
            start: record.start,
            direction: Some(record.direction),
            node: record.node,
            prbs: record.prbs.clone(),
            mcs: record.mcs.into(),
            bytes: record.bytes.into(),
            attempt: record.attempt.into(),
            decoded: record.is_decoded.into(),
        }
    }

    fn record(self) -> Result<BlockRecord, String> {
        let large = |name: &str| format!("{name}: too large");
        Ok(BlockRecord {
            start: self.start,
            direction: self.direction.ok_or("direction: an empty cell")?,
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
impl Cell for Vec<Range<u16>> {
    fn put(&self, out: &mut Vec<u8>) {
        for (index, range) in self.iter().enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            put_number(out, range.start.into());
            out.push(b'-');
            put_number(out, range.end.saturating_sub(1).into());
        }
    }

    fn take(cell: &str) -> Result<Self, String> {
        let mut found = Self::new();
        for text in cell.split_whitespace() {
            let Some(range) = range(text).filter(|_| found.len() < RANGES_MAX) else {
                let what = "is not a list of resource blocks such as 0-5 9-11";
                return Err(format!("'{cell}' {what}"));
            };
            found.push(range);
        }
        Ok(found)
    }
}

fn range(text: &str) -> Option<Range<u16>> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
    (first <= last).then_some(first..last.checked_add(1)?)
}
