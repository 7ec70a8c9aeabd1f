use weir::units::Bitrate;
use weir_net::cellular::{
    BearerChange, BearerConfig, BearerRef, Carrier, CellularConfig, Directions, FILTERED,
    Guarantee, PacketFilter, PortRange, Scheduler, Signal, Subnet, Terminal,
};
use weir_net::path::{AccessPlan, Attachment, Hop};
use weir_net::wifi::{
    AccessCategory, Arrivals, Association, Band, Cell, CellConfig, DataRate, Errors, FrameKind,
    Mcs, NodeId, RateControl, Station, StationLoad,
};
use weir_net::{Capacity, Delivery, LossModel, QueueLimit, Schedule};

use super::*;
use crate::plan::{HostPlan, OwnNetwork};

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const HOSTS: [Ipv4Addr; 3] = [A, B, C];

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A link of 1000 kbit/s with a delay of 10 ms.
fn link() -> LinkConfig {
    let capacity = Schedule::constant(Bitrate::from_kbps(1_000)).unwrap();
    LinkConfig::unlimited(TimeDelta::from_millis(10)).with_capacity(Capacity::Schedule(capacity))
}

fn network(hops: usize, hosts: &[HostPlan]) -> Network {
    let plan = Plan {
        access: None,
        hops: vec![Hop::new(link(), link()); hops],
        hosts: hosts.to_vec(),
        local_traffic: false,
        nats: Vec::new(),
        own: Vec::new(),
    };
    Network::new(&plan, &HOSTS[..hosts.len()], Seed::new(1))
}

fn two_hosts() -> Network {
    network(1, &[HostPlan::at(0), HostPlan::at(1)])
}

/// An IPv4 packet of 125 bytes: 1 ms at 1000 kbit/s.
fn packet(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0; 125];
    packet[0] = 0x45;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet
}

/// Hosts and times in ms of all arrivals.
fn arrivals(network: &mut Network) -> Vec<(usize, f64)> {
    let next = |network: &mut Network| network.poll(ms(60_000));
    std::iter::from_fn(|| next(network))
        .map(|arrival| (arrival.host, (arrival.due - Timestamp::ZERO).as_millis_f64()))
        .collect()
}

#[test]
fn only_packets_from_the_host_to_another_pass() {
    let mut network = two_hosts();
    let mut ipv6 = packet(A, B);
    ipv6[0] = 0x60;
    for foreign in [packet(B, A), packet(A, A), packet(A, C), ipv6, packet(A, B)[..19].to_vec()] {
        network.enqueue(ms(0), 0, &foreign);
    }
    assert_eq!(arrivals(&mut network), []);
    assert_eq!(network.into_record().foreign_packets, 5);
}

#[test]
fn a_packet_crosses_the_hops_between_its_hosts_in_its_direction() {
    let at = HostPlan::at;
    // Each hop takes 1 ms for serialization and 10 ms for propagation.
    for (nodes, from, to, links, expected) in [
        ([0, 2, 1], 0, 1, vec![0, 2], 22.0),
        ([0, 2, 1], 1, 0, vec![3, 1], 22.0),
        ([0, 2, 1], 2, 1, vec![2], 11.0),
        ([0, 2, 1], 2, 0, vec![1], 11.0),
        ([2, 0, 1], 0, 1, vec![3, 1], 22.0),
    ] {
        let mut network = network(2, &nodes.map(at));
        network.enqueue(ms(0), from, &packet(HOSTS[from], HOSTS[to]));
        assert_eq!(arrivals(&mut network), [(to, expected)]);
        let crossed = |link: &usize| {
            let direction = Direction::BOTH[link % 2];
            network.router.hop(link / 2, direction).counters().delivered_packets == 1
        };
        assert_eq!((0..4).filter(crossed).collect::<Vec<_>>().len(), links.len());
        assert!(links.iter().all(crossed), "{nodes:?} {from} {to}");
    }
}

#[test]
fn hosts_of_one_side_share_the_queue() {
    let mut network = network(1, &[HostPlan::at(0), HostPlan::at(1), HostPlan::at(0)]);
    network.enqueue(ms(0), 0, &packet(A, B));
    network.enqueue(ms(0), 2, &packet(C, B));
    assert_eq!(arrivals(&mut network), [(1, 11.0), (1, 12.0)]);
}

#[test]
fn an_access_delay_counts_each_way_and_takes_no_capacity() {
    let far = HostPlan { access_delay: TimeDelta::from_millis(40), ..HostPlan::at(0) };
    let mut network = network(1, &[far, HostPlan::at(1), HostPlan::at(0)]);
    network.enqueue(ms(0), 0, &packet(A, B));
    network.enqueue(ms(0), 1, &packet(B, A));
    network.enqueue(ms(0), 2, &packet(C, B));
    assert_eq!(arrivals(&mut network), [(1, 11.0), (1, 51.0), (0, 51.0)]);
}

#[test]
fn hosts_with_networks_of_their_own_are_a_star() {
    let own = OwnNetwork { access: None, hops: vec![Hop::new(link(), link())] };
    let at = |own| HostPlan { own, ..HostPlan::at(0) };
    let plan = Plan {
        access: None,
        hops: Vec::new(),
        own: vec![own.clone(), own],
        hosts: vec![at(Some(0)), at(Some(1)), at(None)],
        local_traffic: true,
        nats: Vec::new(),
    };
    assert!(plan.is_sound());
    let mut network = Network::new(&plan, &HOSTS, Seed::new(1));
    network.enqueue(ms(0), 0, &packet(A, B));
    network.enqueue(ms(0), 0, &packet(A, C));
    network.enqueue(ms(0), 1, &packet(B, C));
    // A's two packets share its way up, 1 ms each and 10 ms of delay. The first crosses B's way
    // down, too.
    assert_eq!(arrivals(&mut network), [(2, 11.0), (2, 12.0), (1, 22.0)]);
    let outside = Plan { hosts: vec![at(Some(2))], ..plan };
    assert!(!outside.is_sound());
}

#[test]
fn hosts_at_one_node_meet_only_where_the_plan_says_so() {
    let hosts = [HostPlan::at(0), HostPlan::at(0)];
    let mut apart = network(1, &hosts);
    apart.enqueue(ms(5), 0, &packet(A, B));
    assert_eq!(arrivals(&mut apart), []);
    let plan = Plan {
        access: None,
        hops: Vec::new(),
        own: Vec::new(),
        hosts: hosts.to_vec(),
        local_traffic: true,
        nats: Vec::new(),
    };
    let mut together = Network::new(&plan, &HOSTS[..2], Seed::new(1));
    together.enqueue(ms(5), 0, &packet(A, B));
    assert_eq!(arrivals(&mut together), [(1, 5.0)]);
}

#[test]
fn a_packet_from_another_hop_waits_behind_those_that_came_before_it() {
    // Host C is between the hops. Its packet enters the second hop at 10 ms and occupies it until
    // 11 ms. The packet of A gets there at 11 ms, after 1 ms of serialization on the first hop.
    let mut network = network(2, &[HostPlan::at(0), HostPlan::at(2), HostPlan::at(1)]);
    network.enqueue(ms(0), 0, &packet(A, B));
    assert!(network.poll(ms(10)).is_none());
    network.enqueue(ms(10), 2, &packet(C, B));
    network.enqueue(ms(10), 2, &packet(C, B));
    assert_eq!(arrivals(&mut network), [(1, 21.0), (1, 22.0), (1, 23.0)]);
    let record = network.into_record();
    let flow = |from| record.flows.iter().find(|flow| flow.from == from).unwrap().total;
    assert_eq!(flow(0).waited, TimeDelta::from_millis(1));
    assert_eq!(flow(2).waited, TimeDelta::from_millis(1));
}

#[test]
fn a_sample_holds_what_happened_since_the_one_before() {
    let mut network = two_hosts();
    // Each packet takes 1 ms. At 50 ms the last ones are still in the queue or in transit.
    for _ in 0..60 {
        network.enqueue(ms(0), 0, &packet(A, B));
    }
    for now in 0..=120 {
        while network.poll(ms(now)).is_some() {}
    }
    let record = network.into_record();
    let samples = &record.hops[0].up.samples;
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[0].time, ms(50));
    let traffic = [samples[0].traffic, samples[1].traffic];
    assert_eq!(traffic.map(|traffic| traffic.offered_packets), [60, 0]);
    // Packets serialized by 39 ms have arrived by 49 ms. The one that arrives at 50 ms counts after
    // the sample.
    assert_eq!(traffic.map(|traffic| traffic.delivered_packets), [39, 21]);
    assert_eq!(traffic[1].delivered, DataSize::from_bytes(21 * 125));
    assert_eq!(samples[0].queued, DataSize::from_bytes(9 * 125));
    assert_eq!(samples[0].queuing_delay, TimeDelta::from_millis(9));
    assert_eq!(samples[0].capacity, Some(Bitrate::from_kbps(1_000)));
    let flow = &record.flows[0].samples;
    assert_eq!(flow.iter().map(|s| s.traffic).collect::<Vec<_>>(), traffic);
    assert_eq!(flow[0].queued, samples[0].queued);
}

#[test]
fn the_end_of_a_run_cuts_the_last_interval_short_and_it_counts() {
    let mut network = two_hosts();
    network.enqueue(ms(0), 0, &packet(A, B));
    // The packet arrives at 11 ms, and the run ends before the first sample.
    assert!(network.poll(ms(20)).is_some());
    network.finish();
    let samples = &network.into_record().flows[0].samples;
    let seen: Vec<_> = samples.iter().map(|s| (s.time, s.traffic.delivered_packets)).collect();
    assert_eq!(seen, [(ms(50), 1)]);
}

#[test]
fn the_flows_of_a_link_add_up_to_it() {
    let lossy = link().with_loss(LossModel::Random(0.2)).with_queue(QueueLimit::Packets(5));
    let plan = Plan {
        access: None,
        hops: vec![Hop::new(lossy, link())],
        hosts: vec![HostPlan::at(0), HostPlan::at(1), HostPlan::at(0)],
        local_traffic: false,
        nats: Vec::new(),
        own: Vec::new(),
    };
    let mut network = Network::new(&plan, &HOSTS, Seed::new(1));
    for now in 0..100 {
        while network.poll(ms(now)).is_some() {}
        network.enqueue(ms(now), 0, &packet(A, B));
        network.enqueue(ms(now), 2, &packet(C, B));
    }
    let arrived = arrivals(&mut network).len() as u64;
    let record = network.into_record();
    let link = TrafficTotals::of(&record.hops[0].up.counters);
    let [a, c] = [0, 1].map(|flow| record.flows[flow].total);
    assert!(arrived > 0 && a.lost_packets > 0 && c.dropped_packets > 0);
    assert_eq!(link.since(&a), c);
}

#[test]
fn a_flow_that_begins_late_has_its_samples_from_the_start() {
    let mut network = two_hosts();
    assert!(network.poll(ms(120)).is_none());
    network.enqueue(ms(120), 0, &packet(A, B));
    assert_eq!(arrivals(&mut network), [(1, 131.0)]);
    let flows = network.into_record().flows;
    assert_eq!(flows.len(), 1);
    let first: Vec<_> =
        flows[0].samples[..4].iter().map(|s| (s.time, s.traffic.delivered_packets)).collect();
    assert_eq!(first, [(ms(50), 0), (ms(100), 0), (ms(150), 1), (ms(200), 0)]);
}

#[test]
fn a_change_holds_for_its_ways_of_its_hop_and_is_recorded() {
    let mut network = network(2, &[HostPlan::at(0), HostPlan::at(2)]);
    let delay = Property::Delay(TimeDelta::from_millis(100));
    let change = Change { hop: 1, direction: Some(Direction::Down), property: delay };
    network.set(ms(0), change);
    network.enqueue(ms(0), 0, &packet(A, B));
    network.enqueue(ms(0), 1, &packet(B, A));
    assert_eq!(arrivals(&mut network), [(1, 22.0), (0, 112.0)]);
    assert_eq!(network.into_record().changes, [(ms(0), change)]);
}

#[test]
fn the_status_is_of_the_last_second() {
    let mut network = two_hosts();
    for now in 0..3_000 {
        // One packet a millisecond fills the link. From 2 s on, half of the packets are lost.
        while network.poll(ms(now)).is_some() {}
        if now == 2_000 {
            let property = Property::Loss(LossModel::Random(0.5));
            network.set(ms(now), Change { hop: 0, direction: Some(Direction::Up), property });
        }
        network.enqueue(ms(now), 0, &packet(A, B));
    }
    while network.poll(ms(3_000)).is_some() {}
    let status = network.status();
    let [up, down] = status.hops[0];
    assert_eq!(status.time, ms(3_000));
    assert_eq!((up.capacity, down.rate), (Some(Bitrate::from_kbps(1_000)), Bitrate::ZERO));
    assert!((0.45..0.55).contains(&up.loss_ratio), "{up:?}");
    assert!((450.0..560.0).contains(&up.rate.as_kbps_f64()), "{up:?}");
    assert_eq!(status.round_trip(), TimeDelta::from_millis(20));
}

/// A cell with two stations at MCS 7, connected to a hop of 10 ms. A and B are the stations; C is
/// behind the hop.
fn cell_network(near: Vec<StationLoad>) -> Network {
    let mut config = cell();
    config.stations[0].up.loads = near;
    network_behind(config)
}

/// A cell with two stations.
fn cell() -> CellConfig {
    let rate = RateControl::Fixed(DataRate::long_guard(Mcs::new(7).unwrap()));
    let station = |name| Station::new(name, rate.clone(), rate.clone());
    CellConfig::new(Band::GHZ_2_4, vec![station("near"), station("far")])
}

fn network_behind(config: CellConfig) -> Network {
    let at = |index| {
        let category = AccessCategory::BestEffort;
        let own = Association { station: NodeId::station(index), category };
        HostPlan { attachment: Some(own.into()), ..HostPlan::at(0) }
    };
    let delay = LinkConfig::unlimited(TimeDelta::from_millis(10));
    let plan = Plan {
        access: Some(AccessPlan::new(config).with_noted(ms(0)..ms(50))),
        hops: vec![Hop::new(delay.clone(), delay)],
        hosts: vec![at(0), at(1), HostPlan::at(1)],
        local_traffic: false,
        nats: Vec::new(),
        own: Vec::new(),
    };
    Network::new(&plan, &HOSTS, Seed::new(1))
}

#[test]
fn a_packet_of_a_station_takes_what_the_cell_alone_takes_and_then_the_hop() {
    let mut alone = Cell::new(&cell(), Seed::new(1));
    let header = ip::header(&packet(A, C), 0);
    let direction = (NodeId::station(0), NodeId::ACCESS_POINT);
    alone.enqueue(ms(5), direction, AccessCategory::BestEffort, header, ());
    let Some(Outcome::Delivered(Delivery { due, .. })) = alone.poll(ms(100)) else { panic!() };
    assert!(due > ms(5) && due < ms(6), "{due:?}");

    let mut network = cell_network(Vec::new());
    network.enqueue(ms(5), 0, &packet(A, C));
    let arrival = network.poll(ms(100)).unwrap();
    assert_eq!((arrival.host, arrival.due), (2, due + TimeDelta::from_millis(10)));
    assert!(!network.is_crossed());
}

#[test]
fn a_flow_tells_what_waits_at_the_station_that_it_comes_from() {
    let mut network = cell_network(Vec::new());
    assert!(network.poll(ms(499)).is_none());
    for _ in 0..100 {
        network.enqueue(ms(499), 0, &packet(A, C));
    }
    arrivals(&mut network);
    let record = network.into_record();
    let queued = record.flows[0].samples[9].queued;
    let rows = record.access.unwrap().wifi.rows;
    let row = rows.iter().find(|row| row.node == 1 && row.time == ms(500)).unwrap();
    assert!(queued > DataSize::ZERO && queued < DataSize::from_bytes(100 * 125), "{queued:?}");
    assert_eq!(queued, row.queue);
}

#[test]
fn stations_reach_each_other_over_the_air_twice() {
    let mut network = cell_network(Vec::new());
    network.enqueue(ms(0), 0, &packet(A, B));
    assert_eq!(arrivals(&mut network).len(), 1);
    let record = network.into_record().access.unwrap().wifi;
    let delivered = |node| -> u64 {
        let rows = record.rows.iter().filter(|row| row.node == node);
        rows.map(|row| row.delivered_packets).sum()
    };
    assert_eq!([0, 1, 2].map(delivered), [1, 1, 0]);
    let data = record.frames.iter().filter(|it| matches!(it.kind, FrameKind::Data { .. }));
    assert_eq!(data.count(), 2);
}

#[test]
fn what_a_simulated_load_sends_delays_the_packets_of_hosts() {
    let waited = |loads: Vec<StationLoad>| {
        let mut network = cell_network(loads);
        for now in (0..400).step_by(4) {
            while network.poll(ms(now)).is_some() {}
            network.enqueue(ms(now), 1, &packet(B, C));
        }
        while network.poll(ms(1_000)).is_some() {}
        let total = network.into_record().flows[0].total;
        assert_eq!(total.delivered_packets, 100);
        total.waited
    };
    let saturated = StationLoad::new(Arrivals::Saturated, DataSize::from_bytes(1_500));
    let (idle, loaded) = (waited(Vec::new()), waited(vec![saturated]));
    // Each frame of the load occupies the channel for about 0.4 ms.
    assert!(loaded > idle + TimeDelta::from_millis(10), "{idle:?} {loaded:?}");
}

#[test]
fn a_packet_that_is_given_up_on_the_air_counts_as_lost() {
    let mut config = cell();
    config.stations[0].up.errors = Errors::Ratio(1.0);
    let mut network = network_behind(config);
    network.enqueue(ms(0), 0, &packet(A, C));
    assert_eq!(arrivals(&mut network), []);
    let total = network.into_record().flows[0].total;
    assert_eq!((total.lost_packets, total.dropped_packets), (1, 0));
}

#[test]
fn a_change_that_the_access_network_does_not_know_is_not_recorded() {
    let bearer = BearerRef { terminal: 0, bearer: "video".into() };
    let change = AccessChange::from(BearerChange::Remove(bearer));
    for mut network in [cell_network(Vec::new()), two_hosts()] {
        network.set_access(ms(0), &change);
        assert!(network.into_record().access_changes.is_empty());
    }
}

/// An IPv4 packet with the header of UDP, with these ports.
fn datagram((from, source): (Ipv4Addr, u16), (to, destination): (Ipv4Addr, u16)) -> Vec<u8> {
    let mut packet = packet(from, to);
    packet[9] = 17;
    packet[20..22].copy_from_slice(&source.to_be_bytes());
    packet[22..24].copy_from_slice(&destination.to_be_bytes());
    packet
}

#[test]
fn bearers_of_a_cell_are_added_changed_and_removed_by_calls() {
    let rate = |kbps| Directions::both(Bitrate::from_kbps(kbps));
    let guarantee = |kbps| Guarantee { rate: rate(kbps), limit: rate(kbps) };
    let mut config = CellularConfig::new(
        Carrier::lte(25),
        vec![Terminal::new("phone", Directions::both(Signal::constant(20.0)))],
    );
    config.scheduler = Scheduler::QualityOfService;
    let phone = Some(Attachment { terminal: 1, class: FILTERED });
    let delay = LinkConfig::unlimited(TimeDelta::from_millis(10));
    let plan = Plan {
        access: Some(AccessPlan::new(config)),
        hops: vec![Hop::new(delay.clone(), delay)],
        hosts: vec![HostPlan { attachment: phone, ..HostPlan::at(0) }, HostPlan::at(1)],
        local_traffic: false,
        nats: Vec::new(),
        own: Vec::new(),
    };
    let mut network = Network::new(&plan, &HOSTS[..2], Seed::new(1));
    let mut video = BearerConfig::default();
    video.name = "video".into();
    // The other end's address and port, so that host and number of a packet decide.
    video.filters = vec![PacketFilter::Packets {
        protocol: 17,
        ports: PortRange { first: 5_000, last: 5_010 },
        remote: Subnet { address: B, prefix: 32 },
        remote_ports: PortRange { first: 9, last: 9 },
    }];
    video.guarantee = Some(guarantee(1_000));
    let own = || BearerRef { terminal: 0, bearer: "video".into() };
    // Four packets each way in each phase: two of the port of the filter, two of another.
    let phase = |network: &mut Network, from: i64| {
        for (number, port) in [(0, 5_005), (1, 5_005), (2, 6_000), (3, 6_000)] {
            while network.poll(ms(from + number)).is_some() {}
            network.enqueue(ms(from + number), 0, &datagram((A, port), (B, 9)));
            network.enqueue(ms(from + number), 1, &datagram((B, 9), (A, port)));
        }
        while network.poll(ms(from + 900)).is_some() {}
    };
    phase(&mut network, 0);
    network.set_access(ms(1_000), &BearerChange::Add { terminal: 0, bearer: video }.into());
    phase(&mut network, 1_000);
    let change = BearerChange::Guarantee { bearer: own(), guarantee: Some(guarantee(2_000)) };
    network.set_access(ms(2_000), &change.into());
    network.set_access(ms(2_000), &BearerChange::Remove(own()).into());
    phase(&mut network, 2_000);
    network.set_access(ms(3_000), &BearerChange::Remove(own()).into());
    while network.poll(ms(3_100)).is_some() {}
    let record = network.into_record();
    assert_eq!(record.access_changes.len(), 4);
    let cellular = record.access.unwrap().cellular;
    let kinds: Vec<String> = cellular.events.iter().map(|it| it.kind.to_string()).collect();
    assert_eq!(kinds, ["added", "changed", "removed", "unknown"]);
    let delivered = |bearer: &str, direction: Direction| {
        let rows =
            cellular.rows.iter().filter(|row| row.bearer == bearer && row.direction == direction);
        rows.map(|row| row.delivered.as_bytes() / 125).sum::<u64>()
    };
    for direction in [Direction::Up, Direction::Down] {
        assert_eq!(
            (delivered("video", direction), delivered("default", direction)),
            (2, 10),
            "{direction:?}"
        );
    }
}

#[test]
fn other_networks_are_behind_the_border_alone() {
    let elsewhere = Ipv4Addr::new(192, 0, 2, 7);
    let border = HostPlan { is_border: true, ..HostPlan::at(1) };
    let mut network = network(1, &[HostPlan::at(0), border]);
    // 1 ms on the link, and 10 ms of delay.
    network.enqueue(ms(0), 0, &packet(A, elsewhere));
    network.enqueue(ms(0), 1, &packet(elsewhere, A));
    assert_eq!(arrivals(&mut network), [(1, 11.0), (0, 11.0)]);
    // No host but the border sends as another, and neither names of groups nor hosts that are not
    // there pass.
    for (from, packet) in [
        (0, packet(elsewhere, B)),
        (1, packet(A, A)),
        (0, packet(A, Ipv4Addr::new(224, 0, 0, 251))),
        (0, packet(A, Ipv4Addr::new(10, 45, 0, 77))),
        (1, packet(B, elsewhere)),
    ] {
        network.enqueue(ms(100), from, &packet);
    }
    assert_eq!(arrivals(&mut network), []);
    assert_eq!(network.into_record().foreign_packets, 5);
    // Without a border there are no other networks.
    let mut alone = two_hosts();
    alone.enqueue(ms(0), 0, &packet(A, elsewhere));
    assert_eq!(alone.into_record().foreign_packets, 1);
}
