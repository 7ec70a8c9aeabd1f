//! Properties of every queue for random input. Each packet is delivered or dropped exactly once and
//! in order. Only ECN-capable packets are marked. Equal seeds give equal results.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{
    Aqm, Bottleneck, Capacity, CapacityTrace, CoDelConfig, DropCause, DualPi2Config, FlowKey,
    Header, Jitter, LinkConfig, Outcome, PieConfig, QueueLimit, RedConfig, Schedule, Seed,
};

const CODEPOINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
const LARGEST: DataSize = DataSize::from_bytes(1_500);

/// A packet, and the time since the one before.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    after: TimeDelta,
    size: DataSize,
    flow: u8,
}

/// The flow determines the ECN codepoint, so that packets of one flow stay in one queue.
fn ecn(flow: u8) -> Ecn {
    CODEPOINTS[usize::from(flow) % CODEPOINTS.len()]
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let after = prop_oneof![8 => 0..2_000_i64, 2 => 0..30_000_i64, 1 => 0..3_000_000_i64];
    let arrival = (after, 40..=1_500_u64, 0..12_u8).prop_map(|(after, size, flow)| Arrival {
        after: TimeDelta::from_micros(after),
        size: DataSize::from_bytes(size),
        flow,
    });
    prop::collection::vec(arrival, 1..600)
}

fn aqms() -> impl Strategy<Value = Aqm> {
    (any::<bool>(), 0..6).prop_map(|(ecn, kind)| {
        let codel = CoDelConfig::default().with_ecn(ecn);
        match kind {
            0 => Aqm::DropTail,
            1 => Aqm::CoDel(codel),
            2 => Aqm::FqCoDel(codel),
            3 => Aqm::Pie(PieConfig::default().with_ecn(ecn)),
            4 => Aqm::Red(RedConfig::default().with_ecn(ecn)),
            _ => Aqm::DualPi2(DualPi2Config::default()),
        }
    })
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0..200_usize).prop_map(QueueLimit::Packets),
        (0..200_000_u64).prop_map(|bytes| QueueLimit::Bytes(DataSize::from_bytes(bytes))),
        (0..1_000_i64).prop_map(|ms| QueueLimit::Time(TimeDelta::from_millis(ms))),
    ]
}

/// A constant rate with outages at random times.
fn capacities() -> impl Strategy<Value = Capacity> {
    (200..20_000_u64, prop::collection::btree_set(1..3_000_i64, 0..3)).prop_map(|(kbps, times)| {
        let times = std::iter::once(0).chain(times.into_iter().flat_map(|ms| [ms, ms + 4_000]));
        let times: BTreeSet<i64> = times.collect();
        let count = times.len();
        let rate = |index| {
            let is_outage = index % 2 == 1 && index + 1 < count;
            if is_outage { Bitrate::ZERO } else { Bitrate::from_kbps(kbps) }
        };
        let steps = times.into_iter().enumerate();
        let steps = steps.map(|(index, ms)| (Timestamp::from_millis(ms), rate(index)));
        Capacity::Schedule(Schedule::new(steps.collect()).expect("steps rise from zero"))
    })
}

/// Random delivery opportunities within one second, with gaps.
fn traces() -> impl Strategy<Value = Capacity> {
    prop::collection::vec(1..1_000_u32, 1..300).prop_map(|mut ms| {
        ms.sort_unstable();
        let lines: Vec<String> = ms.iter().map(u32::to_string).collect();
        Capacity::Trace(
            CapacityTrace::parse(&lines.join("\n")).expect("times rise from above zero"),
        )
    })
}

fn links() -> impl Strategy<Value = LinkConfig> {
    (aqms(), limits(), capacities()).prop_map(|(aqm, queue, capacity)| {
        let delay = TimeDelta::from_millis(20);
        LinkConfig::unlimited(delay).with_capacity(capacity).with_queue(queue).with_aqm(aqm)
    })
}

/// Collects the outcomes of all packets until a time, event by event.
fn drain(link: &mut Bottleneck<usize>, until: Timestamp, outcomes: &mut Vec<Outcome<usize>>) {
    while let Some(next) = link.next_event().filter(|&next| next <= until) {
        outcomes.extend(std::iter::from_fn(|| link.poll(next)));
    }
}

/// The outcomes of all packets, numbered from 0, and the link afterwards.
fn run(config: &LinkConfig, arrivals: &[Arrival]) -> (Vec<Outcome<usize>>, Bottleneck<usize>) {
    let mut link = Bottleneck::new(config, Seed::new(1), "up");
    let mut outcomes = Vec::new();
    let mut now = Timestamp::ZERO;
    for (number, arrival) in arrivals.iter().enumerate() {
        now += arrival.after;
        drain(&mut link, now, &mut outcomes);
        let flow = FlowKey(arrival.flow.into());
        link.enqueue(
            now,
            Header::new(arrival.size).with_ecn(ecn(arrival.flow)).with_flow(flow),
            number,
        );
        if let QueueLimit::Bytes(limit) = config.queue {
            assert!(link.queued(now) <= limit, "{} > {limit}", link.queued(now));
        }
    }
    drain(&mut link, Timestamp::MAX, &mut outcomes);
    assert_eq!(link.queued(Timestamp::MAX), DataSize::ZERO);
    (outcomes, link)
}

#[test]
fn what_waits_is_what_came_and_was_neither_sent_nor_dropped() {
    let (codel, pie) = (CoDelConfig::default(), PieConfig::default());
    let (red, dualpi2) = (RedConfig::default(), DualPi2Config::default());
    for aqm in [
        Aqm::DropTail,
        Aqm::CoDel(codel),
        Aqm::FqCoDel(codel),
        Aqm::Pie(pie),
        Aqm::Red(red),
        Aqm::DualPi2(dualpi2),
    ] {
        let schedule = Schedule::constant(Bitrate::from_kbps(1_200)).expect("above zero");
        let capacity = Capacity::Schedule(schedule);
        let queue = QueueLimit::Packets(10);
        let link = LinkConfig::unlimited(TimeDelta::ZERO)
            .with_capacity(capacity)
            .with_aqm(aqm)
            .with_queue(queue);
        // 40 packets that take 10 ms each, all at once, and again when the first ones have left.
        let mut link = Bottleneck::new(&link, Seed::new(1), "up");
        let mut outcomes = Vec::new();
        for start in [Timestamp::ZERO, Timestamp::from_secs(1)] {
            drain(&mut link, start, &mut outcomes);
            let before = link.counters().dropped_packets;
            let header = Header::new(LARGEST);
            (0..40).for_each(|number| link.enqueue(start, header, number));
            let waiting = 39 - (link.counters().dropped_packets - before);
            assert!((5..=10).contains(&waiting), "{aqm:?}: {waiting}");
            assert_eq!(link.queued(start), DataSize::from_bytes(1_500 * waiting), "{aqm:?}");
        }
    }
}

proptest! {
    #[test]
    fn every_packet_has_one_fate_and_it_is_counted(link in links(), arrivals in arrivals()) {
        let (outcomes, link) = run(&link, &arrivals);
        let counters = link.counters();
        let mut numbers: Vec<usize> = outcomes.iter().map(|outcome| match outcome {
            Outcome::Delivered(delivery) => delivery.payload,
            Outcome::Dropped(dropped) => dropped.payload,
        }).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..arrivals.len()).collect::<Vec<_>>());
        let dropped = |cause| {
            let is_dropped = |it: &&Outcome<_>| {
                matches!(it, Outcome::Dropped(dropped) if dropped.cause == cause)
            };
            outcomes.iter().filter(is_dropped).count()
        };
        prop_assert_eq!(counters.dropped_packets, dropped(DropCause::QueueFull) as u64);
        prop_assert_eq!(counters.managed_packets, dropped(DropCause::Managed) as u64);
        prop_assert_eq!(
            counters.offered_packets,
            counters.delivered_packets + counters.dropped_packets + counters.managed_packets
        );
    }

    #[test]
    fn packets_of_a_flow_arrive_in_order_and_no_faster_than_the_link(
        link in links(),
        arrivals in arrivals(),
    ) {
        let (outcomes, bottleneck) = run(&link, &arrivals);
        let rate = bottleneck.capacity(Timestamp::ZERO).expect("limited");
        let mut last = BTreeMap::new();
        let mut free = Timestamp::ZERO;
        for outcome in outcomes {
            let Outcome::Delivered(delivery) = outcome else { continue };
            let before = last.insert(arrivals[delivery.payload].flow, delivery.payload);
            prop_assert!(before.is_none_or(|before| before < delivery.payload));
            prop_assert!(delivery.due >= free + delivery.size / rate);
            free = delivery.due;
        }
    }

    // With any capacity, keeping the order delays no packet by more than the largest draw.
    #[test]
    fn jitter_in_order_moves_no_packet_by_more_than_its_amount(
        capacity in prop_oneof![capacities(), traces()],
        queue in limits(),
        arrivals in arrivals(),
    ) {
        let amount = TimeDelta::from_millis(15);
        let jitter = Jitter::Uniform { amount, reorder: false };
        let delay = TimeDelta::from_millis(20);
        let plain = LinkConfig::unlimited(delay).with_capacity(capacity).with_queue(queue);
        let jittered = plain.clone().with_jitter(jitter);
        let due = |config| -> Vec<(usize, Timestamp)> {
            let outcomes = run(config, &arrivals).0.into_iter();
            outcomes.filter_map(|outcome| match outcome {
                Outcome::Delivered(delivery) => Some((delivery.payload, delivery.due)),
                Outcome::Dropped(_) => None,
            }).collect()
        };
        let (plain, jittered) = (due(&plain), due(&jittered));
        prop_assert_eq!(plain.len(), jittered.len());
        for ((number, on_time), (same, moved)) in plain.into_iter().zip(jittered) {
            prop_assert_eq!(number, same);
            prop_assert!((moved - on_time).abs() <= amount, "{} {}", on_time, moved);
        }
    }

    #[test]
    fn only_packets_that_can_be_marked_are_and_each_mark_is_counted(
        link in links(),
        arrivals in arrivals(),
    ) {
        let (outcomes, bottleneck) = run(&link, &arrivals);
        let mut marked = 0;
        for outcome in outcomes {
            let Outcome::Delivered(delivery) = outcome else { continue };
            let before = ecn(arrivals[delivery.payload].flow);
            if delivery.ecn != before {
                prop_assert_eq!(delivery.ecn, Ecn::Ce);
                prop_assert_ne!(before, Ecn::NotEct);
                marked += 1;
            }
        }
        // PIE and RED mark packets that they enqueue, so a marked packet is not dropped afterwards.
        prop_assert_eq!(bottleneck.counters().marked_packets, marked);
    }

    #[test]
    fn equal_seeds_give_equal_fates(link in links(), arrivals in arrivals()) {
        prop_assert_eq!(run(&link, &arrivals).0, run(&link, &arrivals).0);
    }

    // Each packet leaves before the next one comes, so nothing waits and nothing is dropped or
    // marked.
    #[test]
    fn a_link_that_is_never_busy_drops_and_marks_nothing(aqm in aqms(), gap_ms in 7..100_i64) {
        let schedule = Schedule::constant(Bitrate::from_kbps(2_000)).expect("above zero");
        let capacity = Capacity::Schedule(schedule);
        let link = LinkConfig::unlimited(TimeDelta::ZERO).with_capacity(capacity).with_aqm(aqm);
        let arrival = |number| Arrival {
            after: TimeDelta::from_millis(gap_ms),
            size: LARGEST,
            flow: number,
        };
        let arrivals: Vec<Arrival> = (0..200).map(arrival).collect();
        let (_, bottleneck) = run(&link, &arrivals);
        let counters = bottleneck.counters();
        prop_assert_eq!((counters.delivered_packets, counters.marked_packets), (200, 0));
    }
}
