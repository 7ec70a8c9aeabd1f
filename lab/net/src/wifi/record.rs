//! Records of a cell: totals of each node, and which node held the channel when.

use std::collections::VecDeque;
use std::ops::Range;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::config::{AccessCategory, NodeId};
use super::phy::DataRate;
use crate::packet::{Delivery, DropCause, Dropped, Outcome};

/// Totals of a node as a sender, since the start. They include packets of its own loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeCounters {
    /// Packets enqueued.
    pub offered_packets: u64,
    /// Bytes enqueued.
    pub offered: DataSize,
    /// Packets that the receiver delivered.
    pub delivered_packets: u64,
    /// Bytes that the receiver delivered.
    pub delivered: DataSize,
    /// Packets dropped because the queue was full.
    pub queue_full: u64,
    /// Packets dropped by the queue management.
    pub managed: u64,
    /// Packets dropped after their last attempt.
    pub retry_limit: u64,
    /// Transmissions of MPDUs. Collisions between categories of the same node count as well.
    pub attempts: u64,
    /// Transmissions of MPDUs that were not acknowledged.
    pub failures: u64,
    /// MPDUs that the receiver had already received before.
    pub duplicates: u64,
    /// Data frames sent.
    pub frames: u64,
    /// Collisions within the node, in which a more urgent category sent instead.
    pub virtual_collisions: u64,
    /// Time on the air, with data frames and with answers to others.
    pub airtime: TimeDelta,
}

/// A frame that was on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AirtimeRecord {
    /// When it started.
    pub start: Timestamp,
    /// When it ended, including the signal extension of the band.
    pub end: Timestamp,
    /// Who sent it.
    pub from: NodeId,
    /// The receiver; `None` for an access point outside the cell.
    pub to: Option<NodeId>,
    /// Kind of the frame.
    pub kind: FrameKind,
    /// How many MPDUs of a data frame the receiver decoded. For an answer, 1 if it was decoded,
    /// else 0.
    pub decoded: usize,
}

impl AirtimeRecord {
    /// A frame that lasted for this time, from its sender to its receiver.
    pub const fn new(
        time: Range<Timestamp>,
        (from, to): (NodeId, Option<NodeId>),
        kind: FrameKind,
        decoded: usize,
    ) -> Self {
        Self { start: time.start, end: time.end, from, to, kind, decoded }
    }
}

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// An MPDU or an A-MPDU.
    Data {
        /// The rate at which it was sent.
        rate: DataRate,
        /// Its access category.
        category: AccessCategory,
        /// Number of MPDUs in it.
        mpdus: usize,
        /// Its size with all headers.
        size: DataSize,
    },
    /// The answer to an MPDU.
    Ack,
    /// The answer to an A-MPDU.
    BlockAck,
}

/// Collects the outcomes of a node's packets and counts them.
pub(super) struct Ledger<'a, T> {
    pub(super) outcomes: &'a mut VecDeque<Outcome<T>>,
    pub(super) counters: &'a mut NodeCounters,
}

impl<T> Ledger<'_, T> {
    pub(super) fn offer(&mut self, size: DataSize) {
        self.counters.offered_packets += 1;
        self.counters.offered += size;
    }

    /// Counts a delivered packet. Packets of loads have no payload, and their outcome is not
    /// reported.
    pub(super) fn deliver(&mut self, delivery: Delivery<Option<T>>) {
        let Delivery { due, queuing_delay, size, ecn, payload } = delivery;
        self.counters.delivered_packets += 1;
        self.counters.delivered += size;
        if let Some(payload) = payload {
            let delivery = Delivery { due, queuing_delay, size, ecn, payload };
            self.outcomes.push_back(Outcome::Delivered(delivery));
        }
    }

    pub(super) fn drop(&mut self, dropped: Dropped<Option<T>>) {
        let Dropped { at, cause, size, payload } = dropped;
        match cause {
            DropCause::QueueFull => self.counters.queue_full += 1,
            DropCause::RetryLimit => self.counters.retry_limit += 1,
            DropCause::Managed | DropCause::Policed | DropCause::RandomLoss => {
                self.counters.managed += 1;
            }
        }
        if let Some(payload) = payload {
            self.outcomes.push_back(Outcome::Dropped(Dropped { at, cause, size, payload }));
        }
    }
}
