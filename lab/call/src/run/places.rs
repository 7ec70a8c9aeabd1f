//! The places of a listener's clients. Each holder has a few, so none can hold all of them.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Context;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::yield_now;

/// Places of one named holder. One more closes the oldest: a client that comes back is there
/// before its old connection is known to be dead.
const NAMED_MAX: usize = 4;
/// Places for what anyone may ask. One more closes the oldest.
const PUBLIC_MAX: usize = 32;
/// A closed connection keeps its memory until its task sees it. So many times the places of a
/// holder are there at most.
const CLOSING: usize = 2;

/// Who a connection is counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Anyone, with a request that is answered at once. Takes no place of the others.
    Public,
    /// The peers of a session, which trust each other. They wait for a free place.
    Session,
    /// A client of this name, with a few places.
    Named(String),
}

/// The places of all clients.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    max: usize,
    held: HashMap<Holder, VecDeque<Held>>,
}

/// A place that was given away.
#[derive(Debug)]
struct Held {
    /// Closes the connection when it is dropped.
    close: Option<oneshot::Sender<()>>,
    connection: Weak<()>,
}

/// A connection's place. It becomes free when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    /// Ends when the place is lost. Nobody takes the place of a session's peer.
    closed: Option<oneshot::Receiver<()>>,
    is_lost: bool,
    _connection: Arc<()>,
}

impl Places {
    pub fn new(max: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(max)), max, held: HashMap::new() }
    }

    /// A place for this holder. `None` if there is none.
    pub async fn take(&mut self, holder: Holder) -> Option<Place> {
        let own_max = match holder {
            Holder::Session => {
                let permit = Arc::clone(&self.free).acquire_owned().await;
                let permit = permit.expect("the semaphore is never closed");
                return Some(Place::new(Some(permit), None, Arc::new(())));
            }
            Holder::Public => PUBLIC_MAX,
            Holder::Named(_) => NAMED_MAX,
        };
        self.forget_the_gone();
        if self.held.get(&holder).is_some_and(|held| held.len() >= own_max) {
            // Those who can be answered at once are, and those that were closed see it. Else many
            // who come together would leave no place, even for the one that came last.
            yield_now().await;
        }
        let held = self.held.entry(holder.clone()).or_default();
        held.retain(Held::is_open);
        let open = held.iter().filter(|it| it.close.is_some()).count();
        if open >= own_max
            && let Some(oldest) = held.iter_mut().find(|it| it.close.is_some())
        {
            oldest.close = None;
        }
        if held.len() >= CLOSING * own_max {
            return None;
        }
        let permit = match holder {
            Holder::Public => None,
            _ => Some(Arc::clone(&self.free).try_acquire_owned().ok()?),
        };
        let (close, closed) = oneshot::channel();
        let connection = Arc::new(());
        held.push_back(Held { close: Some(close), connection: Arc::downgrade(&connection) });
        Some(Place::new(permit, Some(closed), connection))
    }

    /// Holders without a connection are forgotten now and then, so that names take no memory.
    fn forget_the_gone(&mut self) {
        if self.held.len() > 2 * self.max {
            self.held.retain(|_, held| held.iter().any(Held::is_open));
        }
    }
}

impl Held {
    fn is_open(&self) -> bool {
        self.connection.strong_count() > 0
    }
}

impl Place {
    fn new(
        permit: Option<OwnedSemaphorePermit>,
        closed: Option<oneshot::Receiver<()>>,
        connection: Arc<()>,
    ) -> Self {
        Self { _permit: permit, closed, is_lost: false, _connection: connection }
    }

    /// Whether the place was given to another connection. If not, the task wakes up when it is.
    pub fn is_lost(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(closed) = &mut self.closed
            && !self.is_lost
        {
            self.is_lost = Pin::new(closed).poll(context).is_ready();
        }
        self.is_lost
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Poll, Waker};

    use super::*;

    /// Takes a place without waiting for longer than one turn of the others.
    fn take(places: &mut Places, holder: &Holder) -> Option<Place> {
        let mut taking = Box::pin(places.take(holder.clone()));
        for _ in 0..2 {
            let polled = taking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(place) = polled {
                return place;
            }
        }
        None
    }

    fn is_lost(place: &mut Place) -> bool {
        place.is_lost(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn one_holder_has_a_few_places_and_its_newest_connection_counts() {
        let mut places = Places::new(100);
        let anna = Holder::Named("anna".into());
        let mut held = Vec::new();
        for _ in 0..=NAMED_MAX {
            held.push(take(&mut places, &anna).unwrap());
        }
        let lost: Vec<bool> = held.iter_mut().map(is_lost).collect();
        assert_eq!(lost, [true, false, false, false, false]);
        // Connections that do not go although they are closed take no more places.
        while let Some(place) = take(&mut places, &anna) {
            held.push(place);
            assert!(held.len() <= CLOSING * NAMED_MAX);
        }
        assert!(take(&mut places, &Holder::Named("bert".into())).is_some());
        held.clear();
        assert!(take(&mut places, &anna).is_some());
    }

    #[test]
    fn public_requests_have_places_when_all_others_are_held() {
        let mut places = Places::new(2);
        let mut held = Vec::new();
        for name in ["a", "b"] {
            held.push(take(&mut places, &Holder::Named(name.into())).unwrap());
        }
        assert!(take(&mut places, &Holder::Named("c".into())).is_none());
        assert!(take(&mut places, &Holder::Session).is_none());
        for _ in 0..3 * PUBLIC_MAX {
            let place = take(&mut places, &Holder::Public);
            // The server closes the connections that have lost their place.
            held.retain_mut(|it| !is_lost(it));
            held.push(place.unwrap());
        }
        held.clear();
        assert!(take(&mut places, &Holder::Named("c".into())).is_some());
    }

    #[test]
    fn connections_end_before_one_of_their_holder_is_closed_or_refused() {
        let mut places = Places::new(2);
        let mut held = Vec::new();
        for _ in 0..PUBLIC_MAX {
            held.push(take(&mut places, &Holder::Public).unwrap());
        }
        for _ in 0..3 * PUBLIC_MAX {
            let mut taking = Box::pin(places.take(Holder::Public));
            let mut context = Context::from_waker(Waker::noop());
            assert!(taking.as_mut().poll(&mut context).is_pending());
            // Its turn: the oldest has its answer.
            drop(held.remove(0));
            let Poll::Ready(place) = taking.as_mut().poll(&mut context) else { panic!("waits") };
            held.push(place.unwrap());
            assert!(!held.iter_mut().any(is_lost));
        }
    }

    #[test]
    fn names_of_holders_that_are_gone_take_no_memory() {
        let mut places = Places::new(2);
        for number in 0..100 {
            drop(take(&mut places, &Holder::Named(number.to_string())).unwrap());
        }
        assert!(places.held.len() <= 6, "{} names", places.held.len());
    }
}
