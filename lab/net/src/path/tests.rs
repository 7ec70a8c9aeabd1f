use std::collections::VecDeque;
use std::fmt;

use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::*;
use crate::cellular::{BearerChange, BearerRef};
use crate::loss::LossModel;
use crate::packet::{Delivery, DropCause, Dropped, FlowKey, Header, Outcome};
use crate::wifi::{AccessCategory, Association, Band, Cell, CellConfig, DataRate, Mcs, NodeId};
use crate::wifi::{RateControl, Station};
use crate::{Bottleneck, Seed};

const SIZE: DataSize = DataSize::from_bytes(125);
const SEED: Seed = Seed::new(1);

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A packet of 125 bytes with a number and its ECN bits.
#[derive(Clone, Debug, PartialEq)]
struct Numbered(u32, Ecn);

impl Routable for Numbered {
    fn header(&self, route: RouteId) -> Header {
        Header::new(SIZE).with_ecn(self.1).with_flow(FlowKey(route.0 as u64))
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.1 = ecn;
    }
}

fn packet(number: u32) -> Numbered {
    Numbered(number, Ecn::Ect0)
}

/// A link with this delay and 1000 kbit/s, which sends a packet in 1 ms.
fn link(delay_ms: i64) -> LinkConfig {
    let capacity = Schedule::constant(Bitrate::from_kbps(1_000)).unwrap();
    let delay = TimeDelta::from_millis(delay_ms);
    LinkConfig { capacity: Capacity::Schedule(capacity), ..LinkConfig::unlimited(delay) }
}

fn hop(up_ms: i64, down_ms: i64) -> Hop {
    Hop { up: link(up_ms), down: link(down_ms) }
}

/// A third kind of network: a ferry that crosses at every full 100 ms, marks its packets, and
/// carries one packet at most. Packets of class 1 are dropped.
#[derive(Debug)]
struct Ferry<T> {
    shore: VecDeque<(Timestamp, Header, T)>,
    refused: VecDeque<Outcome<T>>,
    crosses_every: TimeDelta,
}

impl<T> Ferry<T> {
    fn new() -> Self {
        let crosses_every = TimeDelta::from_millis(100);
        Self { shore: VecDeque::new(), refused: VecDeque::new(), crosses_every }
    }

    /// The first crossing after a time.
    fn crossing_after(&self, time: Timestamp) -> Timestamp {
        let crossings = (time - Timestamp::ZERO).as_nanos() / self.crosses_every.as_nanos();
        Timestamp::ZERO + self.crosses_every * (crossings + 1)
    }
}

impl<T: fmt::Debug + Send> Network<T> for Ferry<T> {
    type Crossing = Crossing;

    fn enqueue(&mut self, now: Timestamp, crossing: Crossing, header: Header, payload: T) {
        if crossing.attachment.class == 1 {
            let (cause, size) = (DropCause::QueueFull, header.size);
            self.refused.push_back(Outcome::Dropped(Dropped { at: now, cause, size, payload }));
            return;
        }
        self.shore.push_back((now, header, payload));
    }

    fn next_event(&self) -> Option<Timestamp> {
        let refused = self.refused.front().map(|_| Timestamp::ZERO);
        refused.or_else(|| Some(self.crossing_after(self.shore.front()?.0)))
    }

    fn poll(&mut self, now: Timestamp) -> Option<Outcome<T>> {
        if let Some(outcome) = self.refused.pop_front() {
            return Some(outcome);
        }
        let due = self.next_event().filter(|due| *due <= now)?;
        let (since, Header { size, .. }, payload) = self.shore.pop_front()?;
        for (waits_since, ..) in &mut self.shore {
            *waits_since = due;
        }
        let queuing_delay = due - since;
        Some(Outcome::Delivered(Delivery { due, queuing_delay, size, ecn: Ecn::Ce, payload }))
    }

    fn queued(&mut self, _now: Timestamp, _crossing: Crossing) -> DataSize {
        self.shore.iter().map(|waiting| waiting.1.size).sum()
    }
}

impl<T: fmt::Debug + Send> AccessNetwork<T> for Ferry<T> {
    /// After any change it crosses each 10 ms.
    fn change(&mut self, _now: Timestamp, _change: &AccessChange) -> bool {
        self.crosses_every = TimeDelta::from_millis(10);
        true
    }
}

fn behind_ferry(hops: &[Hop]) -> Router<Numbered> {
    Router::with_access(hops, Some(Box::new(Ferry::new())), SEED)
}

fn aboard(node: usize, class: usize) -> Placement {
    Placement { node, attachment: Some(Attachment { terminal: 1, class }), own: None, access: 0 }
}

fn at(node: usize) -> Placement {
    Placement::new(node)
}

/// Runs a router until it is empty. Returns the time in ms and a text for each arrival and each
/// loss.
fn happenings(router: &mut Router<Numbered>) -> Vec<(i64, String)> {
    let mut happenings = Vec::new();
    while let Some((now, part)) = router.next() {
        while let Some(outcome) = router.poll(now, part) {
            let what = match router.go_on(outcome) {
                NextHop::Entered(_) => continue,
                NextHop::Arrived(InFlight { route, payload, .. }) => {
                    format!("{} at the end of {}", payload.0, route.0)
                }
                NextHop::Dropped(dropped) => {
                    format!("{} lost: {:?}", dropped.payload.payload.0, dropped.cause)
                }
            };
            happenings.push((now.as_millis(), what));
        }
    }
    happenings
}

fn words(happenings: &[(i64, String)]) -> Vec<(i64, &str)> {
    happenings.iter().map(|(at, what)| (*at, what.as_str())).collect()
}

#[test]
fn a_route_leads_over_access_network_own_link_and_the_hops_between() {
    let crossing = |terminal, class, direction| {
        Leg::Access(0, Crossing { attachment: Attachment { terminal, class }, direction })
    };
    let (up, down) = (crossing(1, 0, Direction::Up), crossing(1, 0, Direction::Down));
    let near = Placement { own: Some(OwnLinks { first: 8, pairs: 1 }), ..aboard(0, 0) };
    let link = Leg::Link;
    assert_eq!(near.route_to(&at(2)), [up, link(8), link(0), link(2)]);
    assert_eq!(at(2).route_to(&near), [link(3), link(1), link(9), down]);
    assert_eq!(at(1).route_to(&at(2)), [link(2)]);
    let other = Placement { attachment: Some(Attachment { terminal: 2, class: 3 }), ..at(0) };
    assert_eq!(near.route_to(&other), [up, link(8), crossing(2, 3, Direction::Down)]);
    let same = Placement { attachment: Some(Attachment { terminal: 1, class: 3 }), ..at(0) };
    assert!(near.is_beside(&same) && !near.is_beside(&other) && !near.is_beside(&at(0)));
    assert_eq!(near.route_beside(&same, 7), [link(8), link(7)]);
}

#[test]
fn ends_with_access_networks_of_their_own_are_a_star() {
    let mut router = behind_ferry(&[]);
    let cell = cell();
    let [a, b] = ["a", "b"].map(|name| Placement {
        own: router.add_own_hops(&[hop(10, 20), hop(30, 40)], name),
        access: router.add_access(&cell, name),
        ..aboard(0, 0)
    });
    let attachment = a.attachment.unwrap();
    let crossing = |access, direction| Leg::Access(access, Crossing { attachment, direction });
    let (up, down) = (crossing(1, Direction::Up), crossing(2, Direction::Down));
    let link = Leg::Link;
    assert_eq!(a.route_to(&b), [up, link(0), link(2), link(7), link(5), down]);
    // Not even the same terminal of two cells is beside itself.
    assert!(!a.is_beside(&b) && !a.is_beside(&aboard(0, 0)));
    assert_eq!((router.access_part(), router.parts()), (Some(Part(8)), 11));
    assert_eq!(router.all_access().count(), 3);
    let wired = Placement { attachment: None, ..a };
    assert!(wired.is_beside(&at(0)));
    let route = router.add_route(wired.route_beside(&at(0), 7));
    assert_eq!(router.route(route), [link(0), link(2), link(7)]);
    // Without a shared network the first of the others has number 0 and is nobody else's.
    let mut alone: Router<Numbered> = Router::new(&[], None, SEED);
    assert_eq!(alone.add_access(&cell, "a"), 0);
    assert!(alone.access().is_none() && alone.access_part().is_none());
    assert_ne!(SEED.of_part("a"), SEED.of_part("b"));
}

#[test]
fn a_path_over_an_access_network_and_two_hops_takes_what_each_takes() {
    let mut router = behind_ferry(&[hop(10, 20), hop(30, 40)]);
    let own = router.add_own_links(TimeDelta::from_millis(5), "out", "in");
    let near = Placement { own, ..aboard(0, 0) };
    let routes = [near.route_to(&at(2)), at(2).route_to(&near)];
    let [there, back] = routes.map(|route| router.add_route(route));
    router.enter(ms(50), there, packet(1));
    router.enter(ms(50), back, packet(2));
    // Up: the ferry at 100 ms, 5 ms, then for each hop 1 ms of transmission and its delay. Down: 41
    // + 21 + 5 ms, which ends at 117 ms, and the ferry at 200 ms.
    let seen = happenings(&mut router);
    assert_eq!(words(&seen), [(147, "1 at the end of 0"), (200, "2 at the end of 1")]);
}

#[test]
fn at_the_same_time_links_go_in_order_and_the_access_network_after_them() {
    // All three have an event at 100 ms: the ferry, and both hops after 1 + 49 ms.
    let mut router = behind_ferry(&[hop(49, 0), hop(49, 0)]);
    let over = |router: &mut Router<Numbered>, from: Placement, to| {
        let route = router.add_route(from.route_to(&to));
        move |router: &mut Router<Numbered>, now, number| {
            assert!(matches!(router.enter(now, route, packet(number)), NextHop::Entered(_)));
        }
    };
    let ferry = over(&mut router, aboard(0, 0), at(0));
    let second = over(&mut router, at(1), at(2));
    let first = over(&mut router, at(0), at(1));
    ferry(&mut router, ms(50), 1);
    second(&mut router, ms(50), 2);
    first(&mut router, ms(50), 3);
    assert_eq!(router.next(), Some((ms(100), Part(0))));
    assert_eq!(router.access_part(), Some(Part(4)));
    let seen = happenings(&mut router);
    let order =
        [(100, "3 at the end of 2"), (100, "2 at the end of 1"), (100, "1 at the end of 0")];
    assert_eq!(words(&seen), order);
}

#[test]
fn a_packet_that_is_lost_on_the_way_leaves_nothing_behind() {
    let mut lossy = hop(10, 10);
    lossy.up.loss = LossModel::Random(1.0);
    let mut router = behind_ferry(&[hop(10, 10), lossy]);
    let over_both = router.add_route(aboard(0, 0).route_to(&at(2)));
    let refused = router.add_route(aboard(0, 1).route_to(&at(2)));
    router.enter(ms(0), refused, packet(1));
    router.enter(ms(0), over_both, packet(2));
    assert_eq!(router.queued(ms(0), over_both), SIZE);
    let seen = happenings(&mut router);
    assert_eq!(words(&seen), [(0, "1 lost: QueueFull"), (111, "2 lost: RandomLoss")]);
    assert_eq!(router.next(), None);
    assert_eq!(router.queued(ms(200), over_both), DataSize::ZERO);
    assert_eq!(router.hop(1, Direction::Up).counters().delivered_packets, 0);
}

#[test]
fn a_packet_carries_its_waiting_time_and_its_marks_along() {
    let mut router = behind_ferry(&[hop(10, 10)]);
    let route = router.add_route(aboard(0, 0).route_to(&at(1)));
    router.enter(ms(40), route, packet(1));
    let outcome = router.poll(ms(100), Part(2)).unwrap();
    assert!(matches!(router.go_on(outcome), NextHop::Entered(Part(0))));
    let outcome = router.poll(ms(111), Part(0)).unwrap();
    let NextHop::Arrived(packet) = router.go_on(outcome) else { panic!("it is at the end") };
    assert_eq!(packet.waited, TimeDelta::from_millis(60));
    assert_eq!(packet.payload, Numbered(1, Ecn::Ce));
}

#[test]
fn a_route_without_legs_ends_where_it_begins() {
    let mut router: Router<Numbered> = Router::new(&[], None, SEED);
    let route = router.add_route(Vec::new());
    assert!(matches!(router.enter(ms(1), route, packet(1)), NextHop::Arrived(_)));
    assert_eq!((router.next(), router.parts(), router.capacity(ms(1), route)), (None, 0, None));
}

#[test]
fn a_change_by_hand_reaches_the_access_network_that_knows_it() {
    let mut router = behind_ferry(&[]);
    let route = router.add_route(aboard(0, 0).route_to(&at(0)));
    router.enter(ms(0), route, packet(1));
    let bearer = BearerRef { terminal: 0, bearer: "video".into() };
    let often = AccessChange::from(BearerChange::Remove(bearer));
    assert!(router.access().unwrap().change(ms(5), &often));
    assert_eq!(words(&happenings(&mut router)), [(10, "1 at the end of 0")]);
    let mut wifi: Router<Numbered> = Router::new(&[], Some(&cell()), SEED);
    assert!(!wifi.access().unwrap().change(ms(0), &often));
}

#[test]
fn each_link_draws_from_the_streams_of_its_name() {
    let mut lossy = hop(0, 0);
    lossy.up.loss = LossModel::Random(0.5);
    lossy.down.loss = LossModel::Random(0.5);
    let mut router: Router<Numbered> = Router::new(&[lossy.clone(), lossy.clone()], None, SEED);
    let own = router.add_link(&lossy.up, "host-1/out");
    let routes = [0, 1, 2, 3, own].map(|link| router.add_route(vec![Leg::Link(link)]));
    for (route, name) in
        routes.into_iter().zip(["up", "down", "hop-2/up", "hop-2/down", "host-1/out"])
    {
        let mut alone = Bottleneck::new(&lossy.up, SEED, name);
        for number in 0..64 {
            router.enter(ms(0), route, packet(number));
            alone.enqueue(ms(0), Header::new(SIZE), packet(number));
        }
        let Leg::Link(link) = router.route(route)[0] else { panic!("it is a link") };
        let lost: Vec<u32> = std::iter::from_fn(|| router.poll(ms(0), Part(link)))
            .filter_map(|outcome| match outcome {
                Outcome::Dropped(dropped) => Some(dropped.payload.payload.0),
                Outcome::Delivered(_) => None,
            })
            .collect();
        let expected: Vec<u32> = std::iter::from_fn(|| alone.poll(ms(0)))
            .filter_map(|outcome| match outcome {
                Outcome::Dropped(dropped) => Some(dropped.payload.0),
                Outcome::Delivered(_) => None,
            })
            .collect();
        assert!(expected.len() > 16, "{name}: {expected:?}");
        assert_eq!(lost, expected, "{name}");
    }
}

fn cell() -> AccessPlan {
    let rate = RateControl::Fixed(DataRate::long_guard(Mcs::new(7).unwrap()));
    let station = |name| Station::new(name, rate.clone(), rate.clone());
    let config = CellConfig::new(Band::GHZ_2_4, vec![station("near"), station("far")]);
    AccessPlan { noted: ms(0)..ms(50), ..AccessPlan::new(config) }
}

#[test]
fn a_station_reaches_its_access_point_as_in_the_cell_alone() {
    let plan = cell();
    let AccessConfig::Wifi(config) = &plan.config else { panic!("it is a Wi-Fi cell") };
    let own = Association { station: NodeId::station(1), category: AccessCategory::Video };
    let mut alone = Cell::new(config, SEED);
    let direction = (own.station, NodeId::ACCESS_POINT);
    alone.enqueue(ms(5), direction, own.category, Header::new(SIZE), ());
    let Some(Outcome::Delivered(Delivery { due, .. })) = alone.poll(ms(100)) else { panic!() };

    let mut router: Router<Numbered> = Router::new(&[hop(9, 9)], Some(&plan), SEED);
    let far = Placement { attachment: Some(own.into()), ..at(0) };
    let route = router.add_route(far.route_to(&at(1)));
    router.enter(ms(5), route, packet(1));
    let air = router.access_part().unwrap();
    let mut outcome = std::iter::from_fn(|| {
        let now = router.next_event(air)?;
        Some((now, router.poll(now, air)))
    });
    let (_, outcome) = outcome.find(|(_, outcome)| outcome.is_some()).unwrap();
    assert!(matches!(router.go_on(outcome.unwrap()), NextHop::Entered(Part(0))));
    let arrived = happenings(&mut router);
    assert_eq!(arrived[0].0, (due + TimeDelta::from_millis(10)).as_millis());

    let mut log = AccessLog::default();
    let access = router.access().unwrap();
    access.note(ms(500));
    router.move_log(&mut log);
    assert_eq!((log.wifi.rows.len(), log.wifi.frames.len()), (3, 2));
    assert_eq!(plan.config.names(), ["ap", "near", "far"]);
    assert_eq!(plan.config.terminals(), 1..3);
}
