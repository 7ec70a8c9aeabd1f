//! The interface of every network, and the additional interface of an access network.

use std::any::Any;
use std::fmt::{Debug, Display};
use std::net::Ipv4Addr;
use std::ops::Range;

use weir::units::{DataSize, TimeDelta, Timestamp};

use crate::bottleneck::Bottleneck;
use crate::packet::{Header, Outcome};
use crate::seed::Seed;

/// Time between two calls of [`AccessNetwork::note`].
pub const NOTE_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// A direction along the row of hops, or across the access network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a terminal into the network, or from host A's side to host B's.
    Up,
    /// The opposite direction.
    Down,
}

impl Way {
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

/// A network with terminals, placed before any node of the row.
pub trait AccessNetwork<T>: Network<T, Crossing = Crossing> {
    /// Logs the network's activity since the last call. The router's driver calls it at the end of
    /// each [`NOTE_INTERVAL`], after it has polled all due events.
    fn note(&mut self, _now: Timestamp) {}

    /// The log so far, of the type listed in `access.rs` for this kind. The caller empties it.
    fn notes(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// The source and destination of real packets, in the order of the numbers that stand for them
    /// in a [`FlowKey`](crate::FlowKey). Without this call no packet has addresses.
    fn set_addresses(&mut self, _pairs: Vec<(Ipv4Addr, Ipv4Addr)>) {}

    /// Changes the network during a run, from now on. Returns whether the network supports this
    /// change.
    fn change(&mut self, _now: Timestamp, _change: &dyn AccessChange) -> bool {
        false
    }
}

/// A change made by the user during a run. Each kind of network defines its own types and
/// recognises them by downcasting. The text of the change appears in the record of the run.
pub trait AccessChange: Any + Debug + Display + Send + Sync {}

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
    /// [`Way::Up`] if the packet comes from the terminal, [`Way::Down`] if it goes there.
    pub way: Way,
}

/// The configuration of a kind of access network.
pub trait AccessKind: Clone + Debug + PartialEq {
    /// Name of the network in messages, for example `Wi-Fi cell`.
    const TITLE: &'static str;
    /// Name of a terminal in messages, for example `station`.
    const TERMINAL: &'static str;

    /// Builds the network in its idle state. It logs every detail within `noted`, which may be
    /// empty.
    fn build<T: Clone + Debug + Send + 'static>(
        &self,
        noted: &Range<Timestamp>,
        seed: Seed,
    ) -> Box<dyn AccessNetwork<T>>;

    /// Names of its nodes, in the order of their numbers.
    fn names(&self) -> Vec<String>;

    /// Numbers of the nodes to which hosts and flows can be attached.
    fn terminals(&self) -> Range<usize>;

    /// The default attachment of a host: the first terminal, in its usual class.
    fn default_attachment(&self) -> Attachment;

    /// The same network as it is before a run: it does not change, and the loads that begin with
    /// the run last forever. Programs that connect before a run need it.
    #[must_use]
    fn before_run(&self) -> Self;
}
