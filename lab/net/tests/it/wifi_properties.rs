//! Properties of a cell for random input and random settings. Each packet is delivered or dropped
//! exactly once and in order. No node sends two frames at a time. Equal seeds give equal results.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::wifi::{
    AccessCategory, Aggregation, AirtimeRecord, Arrivals, Band, Bursts, Cell, CellConfig,
    CongestionAware, DataRate, Edca, EdcaParameters, Errors, Fading, GuardInterval, Link, Mcs,
    Neighbour, NodeConfig, NodeCounters, NodeId, NodeQueue, Noise, RateControl, RateSet,
    RetryPolicy, Station, StationLoad, WaitLimit,
};
use weir_net::{CoDelConfig, Header, Outcome, Seed};

/// When loads stop. Packets that they have queued are still sent after that.
const STOP: Timestamp = Timestamp::from_millis(20);

/// A packet, and the time since the one before.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    after: TimeDelta,
    station: usize,
    is_up: bool,
    category: AccessCategory,
    size: DataSize,
}

fn micros(range: std::ops::Range<i64>) -> impl Strategy<Value = TimeDelta> {
    range.prop_map(TimeDelta::from_micros)
}

fn bytes(range: std::ops::Range<u64>) -> impl Strategy<Value = DataSize> {
    range.prop_map(DataSize::from_bytes)
}

fn category() -> impl Strategy<Value = AccessCategory> {
    prop::sample::select(AccessCategory::ALL)
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let after = prop_oneof![4 => micros(0..1), 8 => micros(0..500), 1 => micros(0..20_000)];
    let arrival = (after, 0..4_usize, any::<bool>(), category(), bytes(0..2_305)).prop_map(
        |(after, station, is_up, category, size)| Arrival { after, station, is_up, category, size },
    );
    prop::collection::vec(arrival, 1..200)
}

fn parameters() -> impl Strategy<Value = EdcaParameters> {
    (1..8_u32, 0..20_u32, 0..64_u32, micros(0..4_000)).prop_map(|(aifsn, cw_min, more, txop)| {
        EdcaParameters { aifsn, cw_min, cw_max: cw_min + more, txop }
    })
}

fn edca() -> impl Strategy<Value = Edca> {
    [parameters(), parameters(), parameters(), parameters()].prop_map(|each| {
        let categories = AccessCategory::ALL.iter().zip(each);
        categories.fold(Edca::STATION, |edca, (category, own)| edca.with(*category, own))
    })
}

fn rate() -> impl Strategy<Value = RateControl> {
    let guard = prop::sample::select(&[GuardInterval::Long, GuardInterval::Short]);
    (0..18_u8, guard).prop_map(|(index, guard)| match Mcs::new(index) {
        Some(mcs) => RateControl::Fixed(DataRate { mcs, guard }),
        None if index == 16 => RateControl::Ideal(RateSet::new(2, guard)),
        None => RateControl::Minstrel(RateSet::new(1, guard)),
    })
}

fn errors() -> impl Strategy<Value = Errors> {
    let bursts = (micros(100..5_000), micros(100..5_000), 0.0..=1.0, 0.0..=1.0).prop_map(
        |(good, bad, error_good, error_bad)| {
            Errors::Bursts(Bursts { good, bad, error_good, error_bad })
        },
    );
    let noise =
        (0.0..20.0, any::<bool>(), micros(0..5_000)).prop_map(|(figure_db, fades, coherence)| {
            let fading = fades.then_some(Fading::new(1.0, coherence));
            Errors::Noise(Noise::new(figure_db).with_fading(fading))
        });
    prop_oneof![Just(Errors::NONE), (0.0..=1.0).prop_map(Errors::Ratio), bursts, noise]
}

fn load() -> impl Strategy<Value = StationLoad> {
    let rate = (100..20_000_u64).prop_map(Bitrate::from_kbps);
    let bursts = (micros(500..30_000), 0..20_u32);
    let arrivals = prop_oneof![
        Just(Arrivals::Saturated),
        rate.clone().prop_map(Arrivals::Constant),
        rate.prop_map(Arrivals::Poisson),
        bursts.prop_map(|(period, packets)| Arrivals::Bursts { period, packets }),
    ];
    (arrivals, category(), bytes(40..1_501)).prop_map(|(arrivals, category, size)| {
        StationLoad::new(arrivals, size).with_category(category).with_stop(STOP)
    })
}

fn link() -> impl Strategy<Value = Link> {
    (rate(), errors(), prop::collection::vec(load(), 0..2))
        .prop_map(|(rate, errors, loads)| Link::new(rate).with_errors(errors).with_loads(loads))
}

fn queue() -> impl Strategy<Value = NodeQueue> {
    let limit = prop_oneof![
        (0..100_usize).prop_map(WaitLimit::Packets),
        bytes(0..100_000).prop_map(WaitLimit::Bytes),
    ];
    (limit, any::<bool>()).prop_map(|(limit, is_fair)| match is_fair {
        true => NodeQueue::FairCoDel { limit, codel: CoDelConfig::default() },
        false => NodeQueue::Fifo { limit },
    })
}

fn retry() -> impl Strategy<Value = RetryPolicy> {
    prop_oneof![
        (0..9_u32).prop_map(RetryPolicy::Limit),
        (0..5_u32).prop_map(|more| RetryPolicy::CongestionAware(CongestionAware::new(more))),
    ]
}

/// A random node without its name, which is set later.
fn node() -> impl Strategy<Value = NodeConfig> {
    let aggregation =
        (0..70_usize, bytes(0..70_000), micros(0..7_000)).prop_map(|(mpdus, bytes, duration)| {
            Aggregation::NONE.with_mpdus(mpdus).with_bytes(bytes).with_duration(duration)
        });
    (edca(), aggregation, queue(), retry()).prop_map(|(edca, aggregation, queue, retry)| {
        let node = NodeConfig::new("").with_edca(edca).with_aggregation(aggregation);
        node.with_queue(queue).with_retry(retry)
    })
}

fn named(node: NodeConfig, kind: &str, index: usize) -> NodeConfig {
    node.with_name(format!("{kind}-{index}"))
}

fn cells() -> impl Strategy<Value = CellConfig> {
    let stations = prop::collection::vec((node(), link(), link()), 1..5);
    let neighbours = prop::collection::vec((node(), link()), 0..2);
    let power = prop_oneof![Just(f64::NEG_INFINITY), -95.0..-30.0];
    let powers = prop::collection::vec((0..6_usize, 0..6_usize, power), 0..12);
    let band = prop::sample::select(&[Band::GHZ_2_4, Band::GHZ_5]);
    (band, node(), stations, neighbours, powers).prop_map(
        |(band, access_point, stations, neighbours, powers)| {
            let stations = stations.into_iter().enumerate().map(|(index, (node, up, down))| {
                Station::from_parts(named(node, "station", index), up, down)
            });
            let mut config = CellConfig::new(band, stations.collect());
            config.access_point = named(access_point, "access-point", 0);
            config.neighbours = neighbours
                .into_iter()
                .enumerate()
                .map(|(index, (node, link))| Neighbour::new(named(node, "neighbour", index), link))
                .collect();
            let nodes = 1 + config.stations.len() + config.neighbours.len();
            let known = powers.into_iter().filter(|&(a, b, _)| a != b && a.max(b) < nodes);
            config.powers.between = known.map(|(a, b, dbm)| (NodeId(a), NodeId(b), dbm)).collect();
            config
        },
    )
}

/// All results of a run.
#[derive(Debug, PartialEq)]
struct Ran {
    outcomes: Vec<Outcome<usize>>,
    frames: Vec<AirtimeRecord>,
    counters: Vec<NodeCounters>,
}

/// Collects the outcomes of all packets until a time, event by event.
fn drain(cell: &mut Cell<usize>, until: Timestamp, outcomes: &mut Vec<Outcome<usize>>) {
    let mut last = Timestamp::ZERO;
    while let Some(next) = cell.next_event().filter(|&next| next <= until) {
        assert!(next >= last, "the next event is at {next} after one at {last}");
        last = next;
        outcomes.extend(std::iter::from_fn(|| cell.poll(next)));
    }
}

/// Sends packets numbered from 0, until nothing is left to do.
fn run(config: &CellConfig, arrivals: &[Arrival]) -> Ran {
    let mut cell = Cell::new(config, Seed::new(1));
    cell.record_airtime();
    let mut outcomes = Vec::new();
    let mut now = Timestamp::ZERO;
    for (number, arrival) in arrivals.iter().enumerate() {
        now += arrival.after;
        drain(&mut cell, now, &mut outcomes);
        let ends = ends(arrival, config.stations.len());
        cell.enqueue(now, ends, arrival.category, Header::new(arrival.size), number);
    }
    drain(&mut cell, Timestamp::MAX, &mut outcomes);
    let nodes = (0..cell.node_count()).map(NodeId);
    assert!(nodes.clone().all(|node| cell.queued(node) == DataSize::ZERO));
    let counters = nodes.map(|node| cell.counters(node)).collect();
    Ran { outcomes, frames: cell.take_airtime(), counters }
}

fn ends(arrival: &Arrival, stations: usize) -> (NodeId, NodeId) {
    let station = NodeId::station(arrival.station % stations);
    if arrival.is_up { (station, NodeId::ACCESS_POINT) } else { (NodeId::ACCESS_POINT, station) }
}

proptest! {
    #[test]
    fn every_packet_has_one_fate_and_it_is_counted(cell in cells(), arrivals in arrivals()) {
        let Ran { outcomes, counters, .. } = run(&cell, &arrivals);
        let mut numbers: Vec<usize> = outcomes.iter().map(|outcome| match outcome {
            Outcome::Delivered(delivery) => delivery.payload,
            Outcome::Dropped(dropped) => dropped.payload,
        }).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..arrivals.len()).collect::<Vec<_>>());
        for node in counters {
            let dropped = node.queue_full + node.managed + node.retry_limit;
            prop_assert_eq!(node.offered_packets, node.delivered_packets + dropped);
            prop_assert!(node.failures <= node.attempts);
        }
    }

    #[test]
    fn packets_of_a_category_between_two_nodes_stay_in_order(
        cell in cells(),
        arrivals in arrivals(),
    ) {
        let mut last = BTreeMap::new();
        for outcome in run(&cell, &arrivals).outcomes {
            let Outcome::Delivered(delivery) = outcome else { continue };
            let arrival = &arrivals[delivery.payload];
            let flow = (ends(arrival, cell.stations.len()), arrival.category);
            let before = last.insert(flow, delivery.payload);
            prop_assert!(before.is_none_or(|before| before < delivery.payload));
        }
    }

    #[test]
    fn a_node_sends_one_frame_at_a_time_and_the_same_ones_for_the_same_seed(
        cell in cells(),
        arrivals in arrivals(),
    ) {
        let outcome = run(&cell, &arrivals);
        let mut free = vec![Timestamp::ZERO; outcome.counters.len()];
        for frame in &outcome.frames {
            prop_assert!(frame.start >= free[frame.from.0] && frame.end > frame.start);
            free[frame.from.0] = frame.end;
        }
        prop_assert_eq!(&run(&cell, &arrivals), &outcome);
    }
}
