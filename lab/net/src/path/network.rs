//! The interface of every network, and the directions of packets through it.

use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use crate::bottleneck::Bottleneck;
use crate::packet::{Header, Outcome};

/// Time between two calls of [`AccessNetwork::note`](crate::path::AccessNetwork::note).
pub const NOTE_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// A direction along the row of hops, or across the access network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a terminal into the network, or from host A's side to host B's.
    Up,
    /// The opposite direction.
    Down,
}

impl Direction {
    /// Both directions.
    pub const BOTH: &'static [Self] = &[Self::Up, Self::Down];

    /// Its name in records and random streams: `up` or `down`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// A network that packets cross. They enter at a time `now` and leave at a later time.
///
/// The driver polls all due events before it enqueues at the same time. It asks for the next event
/// after every call that may have changed it.
pub trait Network<T>: Debug + Send {
    /// Data that the network needs about a packet's direction and ends, besides its header.
    type Crossing: Copy;

    /// Puts a packet into the network.
    fn enqueue(&mut self, now: Timestamp, crossing: Self::Crossing, header: Header, payload: T);

    /// The earliest time at which [`Network::poll`] may return something; `None` if nothing is
    /// pending. It may be too early: poll, and ask again.
    fn next_event(&self) -> Option<Timestamp>;

    /// The next packet that has left the network by `now`, delivered or dropped. Call it until
    /// `None`.
    fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>>;

    /// The same, but if none has left by `now`, the network goes on alone: to the first packet that
    /// leaves before `horizon`, which is returned with its time. Nothing may happen outside before
    /// then.
    fn poll_ahead(
        &mut self,
        now: Timestamp,
        _horizon: Timestamp,
    ) -> Option<(Timestamp, Outcome<T>)> {
        self.poll(now).map(|outcome| (now, outcome))
    }

    /// Bytes in the queue that a packet with this crossing would enter.
    fn queued(&mut self, now: Timestamp, crossing: Self::Crossing) -> DataSize;
}

impl<T: Clone + Debug + Send + 'static> Network<T> for Bottleneck<T> {
    type Crossing = ();

    fn enqueue(&mut self, now: Timestamp, (): (), header: Header, payload: T) {
        Self::enqueue(self, now, header, payload);
    }

    fn next_event(&self) -> Option<Timestamp> {
        Self::next_event(self)
    }

    fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>> {
        Self::poll(self, now)
    }

    fn queued(&mut self, now: Timestamp, (): ()) -> DataSize {
        Self::queued(self, now)
    }
}

/// Where an end is attached to an access network, and how its packets are treated there. Each kind
/// of network defines what the two numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attachment {
    /// Number of the terminal among the nodes of the network.
    pub terminal: usize,
    /// Class of its packets in both directions, for example the access category of a station or the
    /// bearer of a terminal.
    pub class: usize,
}

/// A packet's direction through an access network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The terminal that it comes from or goes to.
    pub attachment: Attachment,
    /// [`Direction::Up`] if the packet comes from the terminal, [`Direction::Down`] if it goes
    /// there.
    pub direction: Direction,
}
