//! What a run writes down of a cell: a row a node and interval, and the frames of some of its time.

use std::fmt::Debug;
use std::ops::Range;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::cell::Cell;
use super::config::{AccessCategory, NodeId};
use super::record::{AirtimeRecord, NodeCounters};
use crate::path::NOTE_INTERVAL;

/// Time between two rows of a node.
pub const NODE_INTERVAL: TimeDelta = TimeDelta::from_millis(500);

const _: () = assert!(NODE_INTERVAL.as_nanos() % NOTE_INTERVAL.as_nanos() == 0);

/// A node of a cell, as a sender, over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeRow {
    /// End of the interval.
    pub time: Timestamp,
    /// Number of the node.
    pub node: usize,
    /// IP bytes that came to be sent.
    pub offered: DataSize,
    /// IP bytes that its receivers handed on.
    pub delivered: DataSize,
    /// Packets that its receivers handed on.
    pub delivered_packets: u64,
    /// Packets that its queue dropped.
    pub dropped_packets: u64,
    /// Packets given up after their last attempt.
    pub lost_packets: u64,
    /// Transmissions of packets.
    pub attempts: u64,
    /// Of these, how many failed as far as the node knows.
    pub failures: u64,
    /// Time on the air with its data and the answers to it.
    pub airtime: TimeDelta,
    /// Bytes in its queues at the end of the interval.
    pub queue: DataSize,
    /// The excess delivery rate that the node measures in best effort; `None` where it sends nothing.
    pub excess: Option<Bitrate>,
    /// The capacity that it measures: bits delivered over the time that their transmission took.
    pub capacity: Option<Bitrate>,
}

/// What was noted of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellNotes {
    /// A row a node and [`NODE_INTERVAL`], by time, then by node.
    pub rows: Vec<NodeRow>,
    /// The frames that began in the time that was to be noted, by their ends.
    pub frames: Vec<AirtimeRecord>,
}

impl CellNotes {
    /// Moves what others hold, which follow in time, behind what these hold.
    pub fn append(&mut self, later: &mut Self) {
        self.rows.append(&mut later.rows);
        self.frames.append(&mut later.frames);
    }

    /// Forgets the rows of a time after this one.
    pub fn cut(&mut self, end: Timestamp) {
        self.rows.retain(|row| row.time <= end);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.frames.clear();
    }
}

/// Writes down what a cell does.
#[derive(Clone, Debug)]
pub struct CellLog {
    /// What was written down so far.
    pub notes: CellNotes,
    noted: Range<Timestamp>,
    /// The nodes' totals at the last rows.
    before: Vec<NodeCounters>,
}

impl CellLog {
    /// Of a cell that has not begun; `noted` is the time of which every frame is written down, and may
    /// be empty.
    pub fn new<T: Debug + Send + 'static>(cell: &mut Cell<T>, noted: Range<Timestamp>) -> Self {
        if !noted.is_empty() {
            cell.record_airtime();
        }
        let before = vec![NodeCounters::default(); cell.node_count()];
        Self { notes: CellNotes::default(), noted, before }
    }

    /// Writes down what has happened since the last call: frames at any time, rows where an interval
    /// ends. Poll what is due before.
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
                // As a record holds it, so that a run measures the same before and after it was
                // written.
                airtime: TimeDelta::from_micros((after.airtime - before.airtime).as_micros()),
                queue: cell.queued(id),
                excess: measured.capacity.map(|_| measured.excess),
                capacity: measured.capacity,
            });
            *before = after;
        }
    }
}
