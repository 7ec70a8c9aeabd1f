//! What every kind of network does, and what an access network does beside it.

use std::any::Any;
use std::fmt::{Debug, Display};
use std::ops::Range;

use weir::units::{DataSize, TimeDelta, Timestamp};

use crate::bottleneck::Bottleneck;
use crate::packet::{Fate, Header};
use crate::seed::Seed;

/// Time between two calls of [`AccessNetwork::note`].
pub const NOTE_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// A direction along the row of hops, or through the access network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a terminal into the network, and from host A's side to host B's.
    Up,
    /// The other way.
    Down,
}

impl Way {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];
}

/// A network that packets cross: packets go in with `now`, and come out with a time.
///
/// A driver polls what is due before it enqueues at the same time, and asks for the next event after every
/// call that may have changed it.
pub trait Network<T>: Debug + Send {
    /// What the network has to know of a packet's way, beside its header.
    type Crossing: Copy;

    /// A packet enters.
    fn enqueue(&mut self, now: Timestamp, crossing: Self::Crossing, header: Header, payload: T);

    /// A time before which [`Network::poll`] gives nothing; `None` while nothing will happen. It may be
    /// early: poll, and ask again.
    fn next_event(&self) -> Option<Timestamp>;

    /// The next packet that has left the network by `now`, delivered or dropped. Call until `None`.
    fn poll(&mut self, now: Timestamp) -> Option<Fate<T>>;

    /// Bytes that wait where a packet with this crossing enters.
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

    fn poll(&mut self, now: Timestamp) -> Option<Fate<T>> {
        Self::poll(self, now)
    }

    fn queued(&mut self, now: Timestamp, (): ()) -> DataSize {
        Self::queued(self, now)
    }
}

/// A network with terminals, before the first node of the row or any other one.
pub trait AccessNetwork<T>: Network<T, Crossing = Crossing> {
    /// Notes what the network did since the last call, at the end of each [`NOTE_INTERVAL`]. Poll what is due
    /// before.
    fn note(&mut self, _now: Timestamp) {}

    /// What was noted so far, of the type that the list of kinds names for it. The caller empties it.
    fn notes(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// Changes the network by hand from now on. Returns whether it knows this change.
    fn change(&mut self, _now: Timestamp, _change: &dyn AccessChange) -> bool {
        false
    }
}

/// A change by hand, of a type that the kind of network defines and recognises by downcasting. Its text
/// stands in the record of the run.
pub trait AccessChange: Any + Debug + Display + Send + Sync {}

/// Where something outside is attached to an access network, and how its packets are treated there. The
/// kind of network defines what the two numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attachment {
    /// The number of the terminal among the nodes of the network.
    pub terminal: usize,
    /// The class of its packets, both ways: the access category of a station, or the bearer of a
    /// terminal.
    pub class: usize,
}

/// A packet's way through an access network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The terminal that it comes from, or goes to.
    pub attachment: Attachment,
    /// Whether it comes from there ([`Way::Up`]) or goes there.
    pub way: Way,
}

/// The configuration of a kind of access network.
pub trait AccessKind: Clone + Debug + PartialEq {
    /// What the network is called in a message: `Wi-Fi cell`.
    const TITLE: &'static str;
    /// What one of its terminals is called: `station`.
    const TERMINAL: &'static str;

    /// The network, idle. It notes every detail of the time `noted`, which may be empty.
    fn build<T: Clone + Debug + Send + 'static>(
        &self,
        noted: &Range<Timestamp>,
        seed: Seed,
    ) -> Box<dyn AccessNetwork<T>>;

    /// The names of its nodes, by number.
    fn names(&self) -> Vec<String>;

    /// The numbers of the nodes that hosts and flows can be attached to.
    fn terminals(&self) -> Range<usize>;

    /// What a host is attached as where nobody says more: the first terminal, in its usual class.
    fn default_attachment(&self) -> Attachment;

    /// The same network as it is before a run: nothing changes, and the loads that begin with the run go
    /// on for ever. Programs that connect before a run need it.
    #[must_use]
    fn standing(&self) -> Self;
}
