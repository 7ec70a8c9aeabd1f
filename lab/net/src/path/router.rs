//! The router: it owns all links and the access network, and moves packets along their routes.

use std::fmt::Debug;

use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::network::{Attachment, Crossing, Direction};
use super::{Hop, link_name};
use crate::access::{AccessLog, AccessNetwork, AccessPlan};
use crate::bottleneck::{Bottleneck, LinkConfig};
use crate::packet::{Delivery, Dropped, Header, Outcome};
use crate::seed::Seed;

/// A packet that a router can carry.
pub trait Routable: Clone + Debug + Send + 'static {
    /// The header that a network on this route sees.
    fn header(&self, route: RouteId) -> Header;

    /// Sets the ECN bits that the packet has after a leg.
    fn set_ecn(&mut self, ecn: Ecn);
}

/// Number of a route: routes are numbered from 0 in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub usize);

/// Number of a part with its own next event: the links come first, then the access networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part(pub usize);

/// One leg of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// The link with this number.
    Link(usize),
    /// The access network with this number.
    Access(usize, Crossing),
}

/// All legs from one end to another, in the order in which a packet crosses them.
pub type Route = Vec<Leg>;

/// Where an end is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Its node in the row of hops.
    pub node: usize,
    /// The end's own links; `None` if it has none.
    pub own: Option<OwnLinks>,
    /// The terminal of the access network, if the end is one.
    pub attachment: Option<Attachment>,
    /// Number of that access network: 0 for the one that all share, others for those of single
    /// ends.
    pub access: usize,
}

/// Numbers of the links between an end and its node: one or more pairs, each with both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnLinks {
    /// The first link from the end to its node. The link back has the next number.
    pub first: usize,
    /// Number of pairs.
    pub pairs: usize,
}

impl Placement {
    /// An end at this node, without links of its own, which is not a terminal.
    pub const fn new(node: usize) -> Self {
        Self { node, own: None, attachment: None, access: 0 }
    }

    weir::with! {
        with_own: own: Option<OwnLinks>,
        with_attachment: attachment: Option<Attachment>,
        with_access: access: usize,
    }

    /// Whether packets between the two ends cross neither a hop nor the access network. Both ends
    /// are then at one node; if they are terminals, they are the same terminal.
    pub fn is_beside(&self, other: &Self) -> bool {
        let [own, theirs] =
            [self, other].map(|site| site.attachment.map(|it| (site.access, it.terminal)));
        self.node == other.node && own == theirs
    }

    /// The legs to another end: the access network, the hops between the two nodes, and the access
    /// network again. Legs that the two ends do not need are left out.
    pub fn route_to(&self, other: &Self) -> Route {
        let [up, down] =
            [(self, Direction::Up), (other, Direction::Down)].map(|(site, direction)| {
                let crossing = site.attachment.map(|attachment| Crossing { attachment, direction });
                crossing.map(|crossing| Leg::Access(site.access, crossing))
            });
        let ups = (self.node..other.node).map(|hop| Leg::Link(hop_link(hop, Direction::Up)));
        let downs =
            (other.node..self.node).rev().map(|hop| Leg::Link(hop_link(hop, Direction::Down)));
        let hops = ups.chain(downs);
        up.into_iter().chain(self.out()).chain(hops).chain(other.into()).chain(down).collect()
    }

    /// The legs to an end [beside](Self::is_beside) this one, over a link that all such ends share.
    pub fn route_beside(&self, other: &Self, link: usize) -> Route {
        self.out().chain([Leg::Link(link)]).chain(other.into()).collect()
    }

    /// The legs from the end to its node.
    fn out(&self) -> impl Iterator<Item = Leg> {
        self.own.into_iter().flat_map(|OwnLinks { first, pairs }| {
            (0..pairs).map(move |pair| Leg::Link(first + 2 * pair))
        })
    }

    /// The legs from its node to the end.
    fn into(&self) -> impl Iterator<Item = Leg> {
        self.own.into_iter().flat_map(|OwnLinks { first, pairs }| {
            (0..pairs).rev().map(move |pair| Leg::Link(first + 2 * pair + 1))
        })
    }
}

/// Number of the link that is one direction of a hop.
const fn hop_link(hop: usize, direction: Direction) -> usize {
    2 * hop + direction as usize
}

/// A packet in transit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InFlight<T> {
    /// Its route.
    pub route: RouteId,
    /// Number of legs that it has crossed.
    passed: usize,
    /// Sum of its queuing delays so far.
    pub waited: TimeDelta,
    /// The packet.
    pub payload: T,
}

/// What a link could carry in an interval, and what it carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Carried {
    /// The mean capacity over the interval.
    pub mean_capacity: Bitrate,
    /// Bits of the packets of one route that it carried. Of a packet that was in transmission at an
    /// end of the interval, the part within it counts.
    pub bits: u64,
}

impl Carried {
    /// These bits of so much.
    pub const fn new(mean_capacity: Bitrate, bits: u64) -> Self {
        Self { mean_capacity, bits }
    }

    /// The bits.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The one of the narrower link.
    #[must_use]
    pub fn narrower(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.mean_capacity <= self.mean_capacity => other,
            _ => self,
        }
    }
}

/// Result of moving a packet with [`Router::enter`] or [`Router::go_on`].
#[derive(Debug)]
pub enum NextHop<T> {
    /// It entered this part, whose next event may have changed.
    Entered(Part),
    /// It has reached the end of its route.
    Arrived(InFlight<T>),
    /// It was dropped.
    Dropped(Dropped<InFlight<T>>),
}

/// Hops, other links, access networks, the routes over them, and the packets in transit.
#[derive(Debug)]
pub struct Router<T> {
    seed: Seed,
    hops: usize,
    /// The links up and down of each hop, then all other links.
    links: Vec<Bottleneck<InFlight<T>>>,
    /// The access network that all share, if there is one, then those of single ends.
    access: Vec<Box<dyn AccessNetwork<InFlight<T>>>>,
    /// Whether the first access network is the one that all share.
    is_shared: bool,
    routes: Vec<Route>,
}

impl<T: Routable> Router<T> {
    /// A router with a row of hops, an access network if given, and no routes yet.
    pub fn new(hops: &[Hop], access: Option<&AccessPlan>, seed: Seed) -> Self {
        let access = access.map(|plan| plan.config.build(&plan.noted, seed));
        Self::with_access(hops, access, seed)
    }

    /// The same with an access network that the caller has built.
    pub fn with_access(
        hops: &[Hop],
        access: Option<Box<dyn AccessNetwork<InFlight<T>>>>,
        seed: Seed,
    ) -> Self {
        let mut links = Vec::with_capacity(2 * hops.len());
        for (index, hop) in hops.iter().enumerate() {
            for (direction, config) in [(Direction::Up, &hop.up), (Direction::Down, &hop.down)] {
                links.push(Bottleneck::new(config, seed, &link_name(index, direction)));
            }
        }
        let (is_shared, access) = (access.is_some(), access.into_iter().collect());
        Self { seed, hops: hops.len(), links, access, is_shared, routes: Vec::new() }
    }

    /// Adds a link beside the hops and returns its number. Its random streams are derived from
    /// `name`.
    pub fn add_link(&mut self, config: &LinkConfig, name: &str) -> usize {
        self.links.push(Bottleneck::new(config, self.seed, name));
        self.links.len() - 1
    }

    /// Adds an end's own links if its delay is above zero. They have unlimited capacity. `out` and
    /// `into` are the names of the link from the end to its node and of the link back.
    pub fn add_own_links(&mut self, delay: TimeDelta, out: &str, into: &str) -> Option<OwnLinks> {
        let config = LinkConfig::unlimited(delay);
        if delay <= TimeDelta::ZERO {
            return None;
        }
        let first = self.add_link(&config, out);
        self.add_link(&config, into);
        Some(OwnLinks { first, pairs: 1 })
    }

    /// Adds the row of hops between an end and its node. Their random streams are derived from
    /// `name`.
    pub fn add_own_hops(&mut self, hops: &[Hop], name: &str) -> Option<OwnLinks> {
        let first = self.links.len();
        for (index, hop) in hops.iter().enumerate() {
            for (direction, config) in [(Direction::Up, &hop.up), (Direction::Down, &hop.down)] {
                self.add_link(config, &format!("{name}/{}", link_name(index, direction)));
            }
        }
        (!hops.is_empty()).then_some(OwnLinks { first, pairs: hops.len() })
    }

    /// Adds an access network of a single end and returns its number. Its random streams are
    /// derived from `name`.
    pub fn add_access(&mut self, plan: &AccessPlan, name: &str) -> usize {
        self.access.push(plan.config.build(&plan.noted, self.seed.of_part(name)));
        self.access.len() - 1
    }

    /// Adds a route and returns its number.
    pub fn add_route(&mut self, route: Route) -> RouteId {
        self.routes.push(route);
        RouteId(self.routes.len() - 1)
    }

    /// The legs of a route.
    pub fn route(&self, route: RouteId) -> &[Leg] {
        &self.routes[route.0]
    }

    /// Number of hops.
    pub fn hops(&self) -> usize {
        self.hops
    }

    /// One direction of a hop.
    pub fn hop(&self, hop: usize, direction: Direction) -> &Bottleneck<InFlight<T>> {
        assert!(hop < self.hops, "there are {} hops", self.hops);
        &self.links[hop_link(hop, direction)]
    }

    /// Mutable access to one direction of a hop.
    pub fn hop_mut(&mut self, hop: usize, direction: Direction) -> &mut Bottleneck<InFlight<T>> {
        assert!(hop < self.hops, "there are {} hops", self.hops);
        &mut self.links[hop_link(hop, direction)]
    }

    /// The access network that all share.
    pub fn access(&mut self) -> Option<&mut dyn AccessNetwork<InFlight<T>>> {
        match self.access.first_mut() {
            Some(access) if self.is_shared => Some(&mut **access),
            _ => None,
        }
    }

    /// All access networks, with those of single ends.
    pub fn all_access(&mut self) -> impl Iterator<Item = &mut dyn AccessNetwork<InFlight<T>>> {
        self.access.iter_mut().map(|access| &mut **access as _)
    }

    /// Moves the access network's log so far to the end of `log`.
    pub fn move_log(&mut self, log: &mut AccessLog) {
        if let Some(access) = self.access() {
            access.move_notes(log);
        }
    }

    /// Number of parts. Parts are numbered from 0.
    pub fn parts(&self) -> usize {
        self.links.len() + self.access.len()
    }

    /// The part that is the access network that all share.
    pub fn access_part(&self) -> Option<Part> {
        self.is_shared.then_some(Part(self.links.len()))
    }

    /// Starts a packet on its route. On a route without legs it arrives at once.
    #[inline]
    pub fn enter(&mut self, now: Timestamp, route: RouteId, payload: T) -> NextHop<T> {
        self.forward(now, InFlight { route, passed: 0, waited: TimeDelta::ZERO, payload })
    }

    #[inline]
    fn forward(&mut self, now: Timestamp, packet: InFlight<T>) -> NextHop<T> {
        match self.routes[packet.route.0].get(packet.passed) {
            None => NextHop::Arrived(packet),
            Some(&Leg::Link(link)) => {
                let header = packet.payload.header(packet.route).with_account(packet.route.0);
                self.links[link].enqueue(now, header, packet);
                NextHop::Entered(Part(link))
            }
            Some(&Leg::Access(access, crossing)) => {
                let header = packet.payload.header(packet.route);
                self.access[access].enqueue(now, crossing, header, packet);
                NextHop::Entered(Part(self.links.len() + access))
            }
        }
    }

    /// The earliest time at which [`Router::poll`] may return something for a part; `None` if
    /// nothing is pending there. It may be too early: poll, and ask again.
    #[inline]
    pub fn next_event(&self, part: Part) -> Option<Timestamp> {
        match self.links.get(part.0) {
            Some(link) => link.next_event(),
            None => self.access.get(part.0 - self.links.len())?.next_event(),
        }
    }

    /// The earliest next event and its part. At equal times links come first, in the order of their
    /// numbers, then the access networks.
    pub fn next(&self) -> Option<(Timestamp, Part)> {
        let parts = (0..self.parts()).map(Part);
        parts.filter_map(|part| Some((self.next_event(part)?, part))).min()
    }

    /// The next packet that has left a part by `now` or was dropped there. Call it until it returns
    /// `None`, and pass each result to [`Router::go_on`].
    #[inline]
    pub fn poll(&mut self, now: Timestamp, part: Part) -> Option<Outcome<InFlight<T>>> {
        match self.links.get_mut(part.0) {
            Some(link) => link.poll(now),
            None => self.access.get_mut(part.0 - self.links.len())?.poll(now),
        }
    }

    /// The same of a part that nothing outside it disturbs before `horizon`, with the time of the
    /// packet: an access network goes on to the first packet that leaves it.
    #[inline]
    pub fn poll_ahead(
        &mut self,
        now: Timestamp,
        part: Part,
        horizon: Timestamp,
    ) -> Option<(Timestamp, Outcome<InFlight<T>>)> {
        match self.links.get_mut(part.0) {
            Some(link) => link.poll(now).map(|outcome| (now, outcome)),
            None => self.access.get_mut(part.0 - self.links.len())?.poll_ahead(now, horizon),
        }
    }

    /// Moves a packet that has left a part to the next leg, or returns it at the end of its route.
    #[inline]
    pub fn go_on(&mut self, outcome: Outcome<InFlight<T>>) -> NextHop<T> {
        match outcome {
            Outcome::Delivered(Delivery {
                due, queuing_delay, ecn, payload: mut packet, ..
            }) => {
                packet.passed += 1;
                packet.waited += queuing_delay;
                packet.payload.set_ecn(ecn);
                self.forward(due, packet)
            }
            Outcome::Dropped(dropped) => NextHop::Dropped(dropped),
        }
    }

    /// Bytes in the queues along a route: in its links, and where it enters the access network.
    pub fn queued(&mut self, now: Timestamp, route: RouteId) -> DataSize {
        let Self { links, access, routes, .. } = self;
        let on_legs = routes[route.0].iter().map(|leg| match *leg {
            Leg::Link(link) => links[link].queued(now),
            Leg::Access(number, crossing) => access[number].queued(now, crossing),
        });
        on_legs.sum()
    }

    /// The smallest link capacity on a route at a time; zero in an outage, `None` if all links are
    /// unlimited. An access network has no fixed capacity, so it does not count.
    pub fn capacity(&self, at: Timestamp, route: RouteId) -> Option<Bitrate> {
        let of_links = self.routes[route.0].iter().filter_map(|leg| match *leg {
            Leg::Link(link) => self.links[link].capacity(at),
            Leg::Access(..) => None,
        });
        of_links.min()
    }

    /// What the narrowest link of a route could carry between two times, and what it carried of
    /// this route's packets; `None` if all links are unlimited. Intervals follow each other: the
    /// first call for a route counts from the beginning, each other one from the `to` before.
    pub fn take_carried(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        route: RouteId,
    ) -> Option<Carried> {
        let mut narrowest: Option<Carried> = None;
        for leg in &self.routes[route.0] {
            let Leg::Link(link) = *leg else { continue };
            let link = &mut self.links[link];
            // Also of the other links, so that all count from `to` on.
            let bits = link.take_carried(to, route.0);
            let Some(mean_capacity) = link.mean_capacity(from, to) else { continue };
            narrowest = Some(Carried { mean_capacity, bits }.narrower(narrowest));
        }
        narrowest
    }
}
