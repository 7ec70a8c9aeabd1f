//! A node as a sender, and its current frame exchange.

use weir::units::{TimeDelta, Timestamp};

use super::config::{AccessCategory, Aggregation};
use super::contention::Contention;
use super::link::LinkState;
use super::phy::DataRate;
use super::record::NodeCounters;
use super::send_queue::{Content, SendQueue};
use crate::seed::Stream;

/// A node of the cell.
#[derive(Debug)]
pub(super) struct Node<T> {
    pub(super) name: String,
    pub(super) aggregation: Aggregation,
    /// `TXOP limit` of each access category.
    pub(super) txops: [TimeDelta; AccessCategory::COUNT],
    pub(super) categories: [Category<T>; AccessCategory::COUNT],
    /// Links to its receivers, by index of the receiver.
    pub(super) links: Vec<LinkState>,
    /// Indices of the saturating loads, which keep this node's queues filled.
    pub(super) saturating: Vec<usize>,
    pub(super) exchange: Option<Exchange>,
    pub(super) action: Action,
    pub(super) counters: NodeCounters,
    /// Random stream of its backoffs.
    pub(super) chance: Stream,
}

/// One access category of a node.
#[derive(Debug)]
pub(super) struct Category<T> {
    pub(super) contention: Contention,
    pub(super) queue: SendQueue<T>,
}

/// A data frame and its answer, from the sender's side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) category: AccessCategory,
    pub(super) receiver: usize,
    pub(super) rate: DataRate,
    pub(super) content: Content,
    /// End of the transmission opportunity.
    pub(super) txop_end: Timestamp,
}

/// The action that a node takes at a planned time after a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Action {
    #[default]
    None,
    /// Sends the answer to the frame of node `to`.
    Respond { to: usize },
    /// Gives up waiting for an answer.
    TimeOut,
    /// Treats its frame as acknowledged: the access point outside the cell has answered.
    AnsweredElsewhere,
    /// Sends the next frame of its transmission opportunity.
    Continue,
}

impl<T> Node<T> {
    /// Whether the node is in an exchange or is about to answer a frame.
    pub(super) fn is_engaged(&self) -> bool {
        self.exchange.is_some() || self.action != Action::None
    }
}
