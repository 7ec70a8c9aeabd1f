//! What a cell tells of itself: totals a node, and who held the channel when.

use std::collections::VecDeque;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::config::{AccessCategory, NodeId};
use super::phy::DataRate;
use crate::packet::{Delivery, DropCause, Dropped, Fate};

/// Totals of a node as a sender, since the start. Its own loads count as its driver's packets do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeCounters {
    /// Packets that came.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered: DataSize,
    /// Packets handed on by their receiver.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered: DataSize,
    /// Packets dropped because the queue was full.
    pub queue_full: u64,
    /// Packets dropped by the management of the queue.
    pub managed: u64,
    /// Packets given up after their last attempt.
    pub retry_limit: u64,
    /// Transmissions of MPDUs, those of frames that collided within the node included.
    pub attempts: u64,
    /// Transmissions of MPDUs of which the node did not get to know that they arrived.
    pub failures: u64,
    /// MPDUs that arrived again.
    pub duplicates: u64,
    /// Data frames sent.
    pub frames: u64,
    /// Times at which a more urgent category of the same node went first.
    pub virtual_collisions: u64,
    /// Time on the air with data and answers.
    pub airtime: TimeDelta,
}

/// A frame that was on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirtimeRecord {
    /// When it began.
    pub start: Timestamp,
    /// When it ended, with what the band adds.
    pub end: Timestamp,
    /// Who sent it.
    pub from: NodeId,
    /// For whom it was; `None` for an access point elsewhere.
    pub to: Option<NodeId>,
    /// What it was.
    pub kind: FrameKind,
    /// Of how many MPDUs its receiver could make something: of those of a data frame, or 1 or 0.
    pub decoded: usize,
}

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// An MPDU or an A-MPDU.
    Data {
        /// How it was sent.
        rate: DataRate,
        /// Its access category.
        category: AccessCategory,
        /// MPDUs in it.
        mpdus: usize,
        /// Its size with all headers.
        size: DataSize,
    },
    /// The answer to an MPDU.
    Ack,
    /// The answer to an A-MPDU.
    BlockAck,
}

/// Where a node's packets and what becomes of them are written down.
pub(super) struct Ledger<'a, T> {
    pub(super) fates: &'a mut VecDeque<Fate<T>>,
    pub(super) counters: &'a mut NodeCounters,
}

impl<T> Ledger<'_, T> {
    pub(super) fn offer(&mut self, size: DataSize) {
        self.counters.offered_packets += 1;
        self.counters.offered += size;
    }

    /// A packet of the driver's, or of a load, which has no payload.
    pub(super) fn deliver(&mut self, delivery: Delivery<Option<T>>) {
        let Delivery { due, queuing_delay, size, ecn, payload } = delivery;
        self.counters.delivered_packets += 1;
        self.counters.delivered += size;
        if let Some(payload) = payload {
            let delivery = Delivery { due, queuing_delay, size, ecn, payload };
            self.fates.push_back(Fate::Delivered(delivery));
        }
    }

    pub(super) fn drop(&mut self, dropped: Dropped<Option<T>>) {
        let Dropped { at, cause, size, payload } = dropped;
        match cause {
            DropCause::QueueFull => self.counters.queue_full += 1,
            DropCause::RetryLimit => self.counters.retry_limit += 1,
            DropCause::Managed | DropCause::RandomLoss => self.counters.managed += 1,
        }
        if let Some(payload) = payload {
            self.fates.push_back(Fate::Dropped(Dropped { at, cause, size, payload }));
        }
    }
}
