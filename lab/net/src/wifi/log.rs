//! Log of a cell during a run: one row per node and interval, and the frames of a chosen time
//! range.

use std::fmt::Debug;
use std::ops::Range;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::cell::Cell;
use super::config::{AccessCategory, NodeId};
use super::record::{AirtimeRecord, NodeCounters};
use crate::path::NOTE_INTERVAL;

/// Time between two rows of a node. A multiple of the interval at which the network is noted.
pub const NODE_INTERVAL: TimeDelta = TimeDelta::from_millis(500);

const _: () = assert!(NODE_INTERVAL.as_nanos() % NOTE_INTERVAL.as_nanos() == 0);

/// A node of a cell, as a sender, over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeRow {
    /// End of the interval.
    pub time: Timestamp,
    /// Number of the node.
    pub node: usize,
    /// IP bytes enqueued at the node.
    pub offered: DataSize,
    /// IP bytes that its receivers delivered.
    pub delivered: DataSize,
    /// Packets that its receivers delivered.
    pub delivered_packets: u64,
    /// Packets that its queue dropped.
    pub dropped_packets: u64,
    /// Packets dropped after their last attempt.
    pub lost_packets: u64,
    /// Transmissions of packets.
    pub attempts: u64,
    /// Transmissions that were not acknowledged.
    pub failures: u64,
    /// Time on the air, with data frames and with answers to others.
    pub airtime: TimeDelta,
    /// Bytes in its queues at the end of the interval.
    pub queue: DataSize,
    /// The excess delivery rate that the node measures in best effort; `None` if no packet was
    /// sent.
    pub excess: Option<Bitrate>,
    /// The measured capacity: bits delivered divided by the time that their transmission took;
    /// `None` if no packet was sent.
    pub capacity: Option<Bitrate>,
}

/// Rows and frames logged so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellNotes {
    /// One row per node and [`NODE_INTERVAL`], ordered by time, then by node.
    pub rows: Vec<NodeRow>,
    /// Frames that began in the chosen time range, in the order of their ends.
    pub frames: Vec<AirtimeRecord>,
}

impl CellNotes {
    /// Moves the notes of `later`, which must follow in time, to the end of these.
    pub fn append(&mut self, later: &mut Self) {
        self.rows.append(&mut later.rows);
        self.frames.append(&mut later.frames);
    }

    /// Removes the rows after `end`.
    pub fn cut(&mut self, end: Timestamp) {
        self.rows.retain(|row| row.time <= end);
    }

    /// Removes all notes.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.frames.clear();
    }
}

/// Logs what a cell does.
#[derive(Clone, Debug)]
pub struct CellLog {
    /// The notes so far.
    pub notes: CellNotes,
    noted: Range<Timestamp>,
    /// The nodes' totals at the last row.
    before: Vec<NodeCounters>,
}

impl CellLog {
    /// A log for a cell that has not started. Every frame that begins within `noted` is recorded;
    /// the range may be empty.
    pub fn new<T: Debug + Send + 'static>(cell: &mut Cell<T>, noted: Range<Timestamp>) -> Self {
        if !noted.is_empty() {
            cell.record_airtime();
        }
        let before = vec![NodeCounters::default(); cell.node_count()];
        Self { notes: CellNotes::default(), noted, before }
    }

    /// Records the frames since the last call, and a row per node where an interval ends. Poll all
    /// events that are due before calling it.
    pub fn write<T: Debug + Send + 'static>(&mut self, now: Timestamp, cell: &mut Cell<T>) {
        let frames = cell.take_airtime().into_iter();
        self.notes.frames.extend(frames.filter(|frame| self.noted.contains(&frame.start)));
        if (now - Timestamp::ZERO).as_nanos() % NODE_INTERVAL.as_nanos() != 0 {
            return;
        }
        for (node, before) in self.before.iter_mut().enumerate() {
            let id = NodeId(node);
            let after = cell.counters(id);
            let measured = cell.congestion(now, id, AccessCategory::BestEffort);
            self.notes.rows.push(NodeRow {
                time: now,
                node,
                offered: after.offered.saturating_sub(before.offered),
                delivered: after.delivered.saturating_sub(before.delivered),
                delivered_packets: after.delivered_packets - before.delivered_packets,
                dropped_packets: after.queue_full + after.managed
                    - before.queue_full
                    - before.managed,
                lost_packets: after.retry_limit - before.retry_limit,
                attempts: after.attempts - before.attempts,
                failures: after.failures - before.failures,
                // In whole microseconds, as in a record file. So a run yields the same numbers
                // before and after it is written.
                airtime: TimeDelta::from_micros((after.airtime - before.airtime).as_micros()),
                queue: cell.queued(id),
                excess: measured.capacity.map(|_| measured.excess),
                capacity: measured.capacity,
            });
            *before = after;
        }
    }
}
