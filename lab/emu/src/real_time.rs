//! The network model at the wall clock, before and after the start of the run.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use weir::units::Timestamp;
use weir_net::Seed;
use weir_net::path::{AccessChange, AccessPlan, Hop};

use crate::handle::{Change, Status};
use crate::nat::{NatRecord, Nats, Route};
use crate::network::{Arrival, Network, NetworkRecord};
use crate::plan::{OwnNetwork, Plan};

/// The model before the start and from the start on.
#[derive(Debug)]
pub(crate) struct RealTime {
    /// Takes packets until the start; what is on it then still arrives.
    before: Clocked,
    /// Waits for the start: the model begins anew then, so that its chances do not depend on what
    /// was sent before.
    next: Option<Network>,
    /// Takes packets from the start on, with time zero at the start.
    run: Option<Clocked>,
    /// Between the hosts and either model.
    nats: Nats,
}

/// A network with the moment of its time zero.
#[derive(Debug)]
struct Clocked {
    network: Network,
    zero: Instant,
}

impl Clocked {
    fn at(&self, now: Instant) -> Timestamp {
        let nanos = now.saturating_duration_since(self.zero).as_nanos();
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    fn instant(&self, time: Timestamp) -> Instant {
        self.zero + Duration::from_nanos(time.as_nanos().max(0).cast_unsigned())
    }

    fn next_event(&self) -> Instant {
        self.instant(self.network.next_event())
    }

    fn poll(&mut self, now: Instant) -> Option<(Instant, usize, Vec<u8>)> {
        let Arrival { due, host, packet } = self.network.poll(self.at(now))?;
        Some((self.instant(due), host, packet))
    }
}

impl RealTime {
    pub(crate) fn new(plan: &Plan, hosts: &[Ipv4Addr], seed: Seed, now: Instant) -> Self {
        let before = Network::new(&plan_before_run(plan), hosts, seed);
        Self {
            before: Clocked { network: before, zero: now },
            next: Some(Network::new(plan, hosts, seed)),
            run: None,
            nats: Nats::new(&plan.nats, hosts, seed, now),
        }
    }

    /// Time zero of the scenario.
    pub(crate) fn start(&mut self, zero: Instant) {
        let network = self.next.take().expect("the run starts once");
        self.run = Some(Clocked { network, zero });
        self.nats.start(zero);
    }

    /// A packet that a host sent. Poll what is due before. NATs change it.
    pub(crate) fn enqueue(&mut self, now: Instant, from: usize, packet: &mut [u8]) {
        let route = self.nats.send(now, from, packet);
        let to = self.run.as_mut().unwrap_or(&mut self.before);
        match route {
            Route::Open => to.network.enqueue(to.at(now), from, packet),
            Route::To(host) => to.network.enqueue_to(to.at(now), from, host, packet),
            Route::Nowhere => {}
        }
    }

    /// Changes the network from now on. Poll what is due before.
    pub(crate) fn set(&mut self, now: Instant, change: Change) {
        if let Some(next) = &mut self.next {
            next.set(Timestamp::ZERO, change);
        }
        let to = self.run.as_mut().unwrap_or(&mut self.before);
        to.network.set(to.at(now), change);
    }

    /// Changes the access network from now on. Poll what is due before.
    pub(crate) fn set_access(&mut self, now: Instant, change: &AccessChange) {
        if let Some(next) = &mut self.next {
            next.set_access(Timestamp::ZERO, change);
        }
        let to = self.run.as_mut().unwrap_or(&mut self.before);
        to.network.set_access(to.at(now), change);
    }

    /// How the network does.
    pub(crate) fn status(&self) -> Status {
        self.run.as_ref().unwrap_or(&self.before).network.status()
    }

    /// A packet that has reached its host by now: when, which host, and what. Call until `None`.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(Instant, usize, Vec<u8>)> {
        while let Some((due, host, mut packet)) = self.poll_models(now) {
            if self.nats.receive(due, host, &mut packet) {
                return Some((due, host, packet));
            }
        }
        None
    }

    fn poll_models(&mut self, now: Instant) -> Option<(Instant, usize, Vec<u8>)> {
        let before = if self.before_goes_on() { self.before.poll(now) } else { None };
        before.or_else(|| self.run.as_mut()?.poll(now))
    }

    /// When to call [`RealTime::poll`] next.
    pub(crate) fn next_event(&self) -> Instant {
        let before = if self.before_goes_on() { Some(self.before.next_event()) } else { None };
        let run = self.run.as_ref().map(Clocked::next_event);
        before.into_iter().chain(run).min().expect("one of the two goes on")
    }

    /// Whether the model from before the start still has something to do. After the start it only
    /// delivers the packets that are on their way, because the loads of its access network never
    /// end.
    fn before_goes_on(&self) -> bool {
        self.run.is_none() || self.before.network.is_crossed()
    }

    /// What has happened since the start, and what the NATs did.
    pub(crate) fn into_record(self) -> (NetworkRecord, Vec<NatRecord>) {
        let nats = self.nats.into_records();
        let Some(Clocked { mut network, .. }) = self.run else {
            return (NetworkRecord::default(), nats);
        };
        network.finish();
        (network.into_record(), nats)
    }
}

/// The network from before the run. It does not change over time, so hosts can connect even if the
/// run begins with an outage.
fn plan_before_run(plan: &Plan) -> Plan {
    Plan {
        access: plan.access.as_ref().map(AccessPlan::before_run),
        hops: plan.hops.iter().map(Hop::before_run).collect(),
        own: plan.own.iter().map(OwnNetwork::before_run).collect(),
        ..plan.clone()
    }
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, TimeDelta};
    use weir_net::{Capacity, LinkConfig, Schedule};

    use super::*;
    use weir_net::path::Direction;

    use crate::handle::Property;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// 1000 kbit/s until 100 ms, then 100 kbit/s; 10 ms delay.
    fn real_time(now: Instant) -> RealTime {
        let step = |ms, kbps| (Timestamp::from_millis(ms), Bitrate::from_kbps(kbps));
        real_time_of(vec![step(0, 1_000), step(100, 100)], now)
    }

    fn real_time_of(steps: Vec<(Timestamp, Bitrate)>, now: Instant) -> RealTime {
        let schedule = Schedule::new(steps).unwrap();
        let capacity = Capacity::Schedule(schedule);
        let link = LinkConfig::unlimited(TimeDelta::from_millis(10)).with_capacity(capacity);
        RealTime::new(&Plan::two_hosts(&link, &link), &[A, B], Seed::new(1), now)
    }

    /// Sends an IPv4 packet of 125 bytes from A to B: 1 ms at 1000 kbit/s.
    fn send(network: &mut RealTime, now: Instant) {
        let mut packet = vec![0; 125];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&A.octets());
        packet[16..20].copy_from_slice(&B.octets());
        network.enqueue(now, 0, &mut packet);
    }

    /// When the only packet on its way arrives.
    fn arrival(network: &mut RealTime) -> Instant {
        let until = network.before.zero + ms(60_000);
        let (due, host, _) = network.poll(until).unwrap();
        assert!(host == 1 && network.poll(until).is_none());
        due
    }

    #[test]
    fn the_capacity_stands_at_its_first_value_until_the_start() {
        let zero = Instant::now();
        let mut network = real_time(zero);
        send(&mut network, zero + ms(5_000));
        assert_eq!(arrival(&mut network), zero + ms(5_011));
    }

    #[test]
    fn a_run_that_begins_in_an_outage_lets_hosts_connect_before_it() {
        let zero = Instant::now();
        let step = |ms, kbps| (Timestamp::from_millis(ms), Bitrate::from_kbps(kbps));
        let mut network = real_time_of(vec![step(0, 0), step(100, 1_000)], zero);
        send(&mut network, zero + ms(5_000));
        assert_eq!(arrival(&mut network), zero + ms(5_011));
        network.start(zero + ms(6_000));
        send(&mut network, zero + ms(6_020));
        assert_eq!(arrival(&mut network), zero + ms(6_111));
    }

    #[test]
    fn an_outage_by_hand_lasts_until_the_capacity_is_set_again() {
        let zero = Instant::now();
        let mut network = real_time(zero);
        network.start(zero);
        let set = |network: &mut RealTime, at, kbps| {
            let property = Property::Capacity(Bitrate::from_kbps(kbps));
            network.set(zero + ms(at), Change { hop: 0, direction: None, property });
        };
        set(&mut network, 10, 0);
        send(&mut network, zero + ms(20));
        assert!(network.poll(zero + ms(3_000)).is_none());
        assert_eq!(network.status().hops[0][0].capacity, Some(Bitrate::ZERO));
        set(&mut network, 3_000, 500);
        assert_eq!(arrival(&mut network), zero + ms(3_012));
    }

    #[test]
    fn the_schedule_counts_from_the_start() {
        let zero = Instant::now();
        let mut network = real_time(zero);
        network.start(zero + ms(5_000));
        send(&mut network, zero + ms(5_200));
        assert_eq!(arrival(&mut network), zero + ms(5_220));
    }

    #[test]
    fn what_was_sent_before_the_start_arrives_after_it_uncounted() {
        let zero = Instant::now();
        let mut network = real_time(zero);
        send(&mut network, zero + ms(45));
        network.start(zero + ms(50));
        assert_eq!(arrival(&mut network), zero + ms(56));
        assert!(network.into_record().0.flows.is_empty());
    }

    #[test]
    fn the_loads_of_a_cell_before_the_start_end_with_its_last_packet() {
        use weir_net::wifi::{Arrivals, Band, CellConfig, DataRate, Mcs};
        use weir_net::wifi::{RateControl, Station, StationLoad};
        let zero = Instant::now();
        let rate = RateControl::Fixed(DataRate::long_guard(Mcs::new(7).unwrap()));
        let mut station = Station::new("sta", rate.clone(), rate);
        let load = |start| {
            let start = Timestamp::from_millis(start);
            let size = weir::units::DataSize::from_bytes(1_500);
            StationLoad::new(Arrivals::Saturated, size).with_start(start)
        };
        station.up.loads = vec![load(0), load(900)];
        let config = CellConfig::new(Band::GHZ_2_4, vec![station]);
        let link = LinkConfig::unlimited(TimeDelta::from_millis(10));
        let access = Some(AccessPlan::new(config));
        let plan = Plan { access, ..Plan::two_hosts(&link, &link) };
        let mut network = RealTime::new(&plan, &[A, B], Seed::new(1), zero);
        send(&mut network, zero + ms(45));
        network.start(zero + ms(50));
        assert!(network.before_goes_on());
        assert_eq!(network.poll(zero + ms(60)).map(|it| it.0), Some(zero + ms(55)));
        assert!(!network.before_goes_on());
    }

    #[test]
    fn a_change_before_the_start_holds_before_and_after_it() {
        let zero = Instant::now();
        let mut network = real_time(zero);
        let property = Property::Capacity(Bitrate::from_kbps(500));
        network.set(zero + ms(10), Change { hop: 0, direction: Some(Direction::Up), property });
        send(&mut network, zero + ms(20));
        assert_eq!(arrival(&mut network), zero + ms(32));
        network.start(zero + ms(100));
        // The schedule's own step at 100 ms is gone.
        send(&mut network, zero + ms(250));
        assert_eq!(arrival(&mut network), zero + ms(262));
    }
}
