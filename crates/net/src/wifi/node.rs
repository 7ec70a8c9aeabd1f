//! A node, as a sender, and the exchange that it is in.

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
    /// To each of its receivers.
    pub(super) links: Vec<LinkState>,
    /// Loads that keep a queue of it from running dry.
    pub(super) saturating: Vec<usize>,
    pub(super) exchange: Option<Exchange>,
    pub(super) action: Action,
    pub(super) counters: NodeCounters,
    /// Where its backoffs come from.
    pub(super) chance: Stream,
}

/// One access category of a node.
#[derive(Debug)]
pub(super) struct Category<T> {
    pub(super) contention: Contention,
    pub(super) queue: SendQueue<T>,
}

/// A data frame and what follows it, from the sender's side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) category: AccessCategory,
    pub(super) receiver: usize,
    pub(super) rate: DataRate,
    pub(super) content: Content,
    /// Until when the channel may be held.
    pub(super) txop_end: Timestamp,
}

/// What a node has to do some time after a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Action {
    #[default]
    None,
    /// Answers the frame of this node.
    Respond { to: usize },
    /// Gives up waiting for an answer.
    TimeOut,
    /// Has the answer of an access point elsewhere.
    AnsweredElsewhere,
    /// Sends the next frame of its transmission opportunity.
    Continue,
}

impl<T> Node<T> {
    /// Whether it is in an exchange, or is going to answer in one.
    pub(super) fn is_engaged(&self) -> bool {
        self.exchange.is_some() || self.action != Action::None
    }
}
