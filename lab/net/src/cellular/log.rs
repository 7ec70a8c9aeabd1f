//! Log of a cell during a run: one row per bearer, direction and interval; the blocks of a chosen
//! time range; and what became of bearers.

use std::fmt::Debug;
use std::ops::Range;

use weir::units::{DataSize, Timestamp};

use super::bearer;
use super::cell::Cell;
use super::directions::Directions;
use super::event::BearerEvent;
use super::terminal;
use crate::path::Direction;

pub use super::block::BlockRecord;

/// A direction of a bearer over one interval. The values of the radio link belong to its terminal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BearerRow {
    /// End of the interval.
    pub time: Timestamp,
    /// Number of the terminal among the nodes.
    pub node: usize,
    /// Name of the bearer.
    pub bearer: String,
    /// Direction.
    pub direction: Direction,
    /// SINR over the whole carrier at the end of the interval, without fading, in decibels.
    pub sinr_db: f64,
    /// Mean MCS of the blocks sent for the first time; `None` if there were none.
    pub mcs: Option<f64>,
    /// Blocks sent for the first time, and how many of them could not be decoded.
    pub blocks: u64,
    /// Blocks of [`blocks`](Self::blocks) that could not be decoded at first.
    pub failures: u64,
    /// Further transmissions of blocks.
    pub retransmissions: u64,
    /// Blocks given up after their last transmission.
    pub abandoned: u64,
    /// Resource blocks times TTIs that the bearer had, retransmissions included.
    pub prbs: f64,
    /// Bytes that RLC had to send again.
    pub rlc_repeated: DataSize,
    /// IP bytes enqueued.
    pub offered: DataSize,
    /// IP bytes delivered.
    pub delivered: DataSize,
    /// Packets dropped by the queue.
    pub dropped_packets: u64,
    /// Packets lost on the air.
    pub lost_packets: u64,
    /// Bytes in the queue at the end of the interval.
    pub queue: DataSize,
}

impl Default for BearerRow {
    fn default() -> Self {
        Self {
            time: Timestamp::ZERO,
            node: 0,
            bearer: String::new(),
            direction: Direction::Up,
            sinr_db: 0.0,
            mcs: None,
            blocks: 0,
            failures: 0,
            retransmissions: 0,
            abandoned: 0,
            prbs: 0.0,
            rlc_repeated: DataSize::ZERO,
            offered: DataSize::ZERO,
            delivered: DataSize::ZERO,
            dropped_packets: 0,
            lost_packets: 0,
            queue: DataSize::ZERO,
        }
    }
}

/// Rows, blocks and events logged so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellularNotes {
    /// One row per bearer, direction and interval, ordered by time, terminal, bearer, and up before
    /// down.
    pub rows: Vec<BearerRow>,
    /// Blocks that began in the chosen time range, in the order in which they were sent.
    pub blocks: Vec<BlockRecord>,
    /// What became of bearers, ordered by time.
    pub events: Vec<BearerEvent>,
}

impl CellularNotes {
    /// Moves the notes of `later`, which must follow in time, to the end of these.
    pub fn append(&mut self, later: &mut Self) {
        self.rows.append(&mut later.rows);
        self.blocks.append(&mut later.blocks);
        self.events.append(&mut later.events);
    }

    /// Removes the rows after `end`.
    pub fn cut(&mut self, end: Timestamp) {
        self.rows.retain(|row| row.time <= end);
    }

    /// Removes all notes.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.blocks.clear();
        self.events.clear();
    }
}

/// Logs what a cell does.
#[derive(Debug)]
pub(super) struct CellularLog {
    pub(super) notes: CellularNotes,
    noted: Range<Timestamp>,
    /// Totals at the last rows: of each terminal, and of each of its bearers.
    before: Vec<(Directions<terminal::Totals>, Vec<Directions<bearer::Totals>>)>,
}

impl CellularLog {
    /// A log for a cell that has not started. Every block that begins within `noted` is recorded;
    /// the range may be empty.
    pub(super) fn new<T: Debug + Send + 'static>(
        cell: &mut Cell<T>,
        noted: Range<Timestamp>,
    ) -> Self {
        if !noted.is_empty() {
            cell.record_blocks();
        }
        let before = vec![(Directions::default(), Vec::new()); cell.terminals.len()];
        Self { notes: CellularNotes::default(), noted, before }
    }

    /// Records what has happened since the last call. Poll all events that are due before calling
    /// it.
    pub(super) fn write<T: Debug + Send + 'static>(&mut self, now: Timestamp, cell: &mut Cell<T>) {
        let blocks = cell.take_blocks().into_iter();
        self.notes.blocks.extend(blocks.filter(|block| self.noted.contains(&block.start)));
        self.notes.events.append(&mut cell.events);
        for (index, (radio_before, bearers_before)) in self.before.iter_mut().enumerate() {
            bearers_before.resize(cell.terminals[index].bearers.len(), Directions::default());
            for (number, bearer_before) in bearers_before.iter_mut().enumerate() {
                for direction in [Direction::Up, Direction::Down] {
                    let radio = *radio_before.of(direction);
                    let before = bearer_before.of_mut(direction);
                    let row = row(now, cell, (index, number, direction), (&radio, before));
                    *before = *cell.terminals[index].bearers[number].totals.of(direction);
                    self.notes.rows.push(row);
                }
            }
            *radio_before = cell.terminals[index].totals;
        }
    }
}

fn row<T: Debug + Send + 'static>(
    now: Timestamp,
    cell: &Cell<T>,
    (index, number, direction): (usize, usize, Direction),
    (radio_before, before): (&terminal::Totals, &bearer::Totals),
) -> BearerRow {
    let terminal = &cell.terminals[index];
    let bearer = &terminal.bearers[number];
    let (radio, after) = (terminal.totals.of(direction), bearer.totals.of(direction));
    let blocks = radio.blocks - radio_before.blocks;
    let mean = |sum: u64| sum as f64 / blocks as f64;
    BearerRow {
        time: now,
        node: index + 1,
        bearer: bearer.config.name.clone(),
        direction,
        sinr_db: hundredths(cell.sinr_db(now, index, direction)),
        mcs: if blocks > 0 { Some(hundredths(mean(radio.mcs - radio_before.mcs))) } else { None },
        blocks,
        failures: radio.failures - radio_before.failures,
        retransmissions: radio.retransmissions - radio_before.retransmissions,
        abandoned: radio.abandoned - radio_before.abandoned,
        prbs: hundredths(after.blocks - before.blocks),
        rlc_repeated: after.repeated.saturating_sub(before.repeated),
        offered: after.offered.saturating_sub(before.offered),
        delivered: after.delivered.saturating_sub(before.delivered),
        dropped_packets: after.dropped_packets - before.dropped_packets,
        lost_packets: after.lost_packets - before.lost_packets,
        queue: bearer.channels.of(direction).bytes(),
    }
}

/// Rounded to hundredths, as records have it.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
