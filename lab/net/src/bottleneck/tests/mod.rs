mod impairments;

use super::*;
use crate::capacity::{CapacityTrace, Schedule};

const MTU: DataSize = DataSize::from_bytes(1250);

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A link with 1000 kbit/s, so that 1250 B take 10 ms, and a delay of 25 ms.
fn link(queue: QueueLimit) -> LinkConfig {
    let capacity = Capacity::Schedule(Schedule::constant(Bitrate::from_kbps(1000)).unwrap());
    LinkConfig { capacity, queue, ..LinkConfig::unlimited(TimeDelta::from_millis(25)) }
}

fn run(config: &LinkConfig, arrivals: &[i64]) -> (Vec<(i64, usize)>, Counters) {
    let mut link = Bottleneck::new(config, Seed::new(1), "up");
    let mut delivered = Vec::new();
    let mut drain = |link: &mut Bottleneck<usize>, until: Timestamp| {
        while let Some(next) = link.next_event().filter(|&next| next <= until) {
            while let Some(outcome) = link.poll(next) {
                let Outcome::Delivered(delivery) = outcome else { continue };
                assert!(delivery.due <= next);
                delivered.push((delivery.due.as_millis(), delivery.payload));
            }
        }
    };
    for (packet, &at) in arrivals.iter().enumerate() {
        drain(&mut link, ms(at));
        link.enqueue(ms(at), Header::new(MTU), packet);
    }
    drain(&mut link, Timestamp::from_secs(1_000));
    assert_eq!(link.next_event(), None);
    (delivered, link.counters())
}

#[test]
fn packets_leave_one_serialisation_apart_and_arrive_a_delay_later() {
    let (delivered, _) = run(&link(QueueLimit::Packets(10)), &[0, 0, 0, 50]);
    assert_eq!(delivered, [(35, 0), (45, 1), (55, 2), (85, 3)]);
}

#[test]
fn a_full_queue_drops_the_newcomer_and_does_not_count_the_one_in_service() {
    for limit in [
        QueueLimit::Packets(2),
        QueueLimit::Bytes(DataSize::from_bytes(2_500)),
        QueueLimit::Time(TimeDelta::from_millis(20)),
    ] {
        let (delivered, counters) = run(&link(limit), &[0, 0, 0, 0, 10]);
        assert_eq!(delivered, [(35, 0), (45, 1), (55, 2), (65, 4)], "{limit:?}");
        assert_eq!(counters.dropped_packets, 1);
    }
}

#[test]
fn a_queue_in_time_shrinks_with_the_capacity() {
    let steps = vec![(ms(0), Bitrate::from_kbps(1000)), (ms(1), Bitrate::from_kbps(100))];
    let capacity = Capacity::Schedule(Schedule::new(steps).unwrap());
    let config = LinkConfig { capacity, ..link(QueueLimit::Time(TimeDelta::from_millis(100))) };
    // At 100 kbit/s, 100 ms are one packet. At 0 ms two packets may still wait; at 2 ms none may.
    let (_, counters) = run(&config, &[0, 0, 0, 2]);
    assert_eq!(counters.dropped_packets, 1);
}

// [RFC2697 §3]
#[test]
fn a_policer_drops_before_the_queue_and_delays_nothing() {
    let policer = PolicerConfig::new(Bitrate::from_kbps(100), DataSize::from_bytes(2_500));
    for capacity in [Capacity::Unlimited, link(QueueLimit::Packets(10)).capacity] {
        let config = LinkConfig {
            capacity: capacity.clone(),
            policer: Some(policer),
            ..link(QueueLimit::Packets(10))
        };
        let transmission = if capacity == Capacity::Unlimited { 0 } else { 10 };
        // The bucket holds two packets, and 100 ms fill it with another one.
        let (delivered, counters) = run(&config, &[0, 50, 60, 160]);
        assert_eq!(
            delivered,
            [(0, 0), (50, 1), (160, 3)].map(|(at, n)| (at + 25 + transmission, n))
        );
        assert_eq!((counters.policed_packets, counters.dropped_packets), (1, 0));
        assert_eq!(config.rate(ms(0)), Some(policer.rate));
    }
}

/// 1000 kbit/s with an outage from 20 s to 24 s, as steps and as a trace. The last line of the
/// trace is at 60 s.
fn outages() -> [Capacity; 2] {
    let steps = [(0, 1_000), (20_000, 0), (24_000, 1_000)];
    let steps = steps.map(|(at, kbps)| (ms(at), Bitrate::from_kbps(kbps))).to_vec();
    let lines = (1..=5_000).map(|line| line * 12).filter(|at| !(20_000..24_000).contains(at));
    let lines: Vec<String> = lines.map(|at| at.to_string()).collect();
    [
        Capacity::Schedule(Schedule::new(steps).unwrap()),
        Capacity::Trace(CapacityTrace::parse(&lines.join("\n")).unwrap()),
    ]
}

#[test]
fn a_queue_in_time_keeps_its_room_in_an_outage() {
    // One packet of 1250 B every 50 ms: 200 kbit/s.
    let sent: Vec<i64> = (0..600).map(|n| n * 50 + 25).collect();
    for capacity in outages() {
        // A limit of 400 ms is 40 packets at 1000 kbit/s, and 37 at the trace's mean rate of 933
        // kbit/s.
        let room = if matches!(capacity, Capacity::Trace(_)) { 37 } else { 40 };
        let queue = QueueLimit::Time(TimeDelta::from_millis(400));
        let (delivered, counters) = run(&LinkConfig { capacity, ..link(queue) }, &sent);
        // 80 packets come during the outage. One is in transmission, and the queue is filled to its
        // limit.
        assert_eq!(counters.dropped_packets, 80 - 1 - room);
        let first = delivered.iter().map(|it| it.0).find(|&at| at > 20_100).unwrap();
        assert!((24_025..24_040).contains(&first), "{first}");
    }
}

#[test]
fn in_an_outage_the_queuing_delay_says_how_full_the_queue_is() {
    for capacity in outages() {
        let queue = QueueLimit::Time(TimeDelta::from_millis(400));
        let mut link = Bottleneck::new(&LinkConfig { capacity, ..link(queue) }, Seed::new(1), "up");
        for packet in 0..21 {
            link.enqueue(ms(20_500), Header::new(MTU), packet);
        }
        assert_eq!(link.capacity(ms(21_000)), Some(Bitrate::ZERO));
        let delay = link.queuing_delay(ms(21_000)).as_millis();
        assert!((200..=215).contains(&delay), "{delay}");
    }
}

#[test]
fn a_capacity_that_ends_keeps_what_waits_and_drops_the_rest() {
    let steps = vec![(ms(0), Bitrate::from_kbps(1000)), (ms(1_000), Bitrate::ZERO)];
    let capacity = Capacity::Schedule(Schedule::new(steps).unwrap());
    for jitter in
        [Jitter::None, Jitter::Uniform { amount: TimeDelta::from_millis(1), reorder: true }]
    {
        let queue = QueueLimit::Time(TimeDelta::from_millis(20));
        let config = LinkConfig { capacity: capacity.clone(), jitter, ..link(queue) };
        // The third packet is in transmission when the outage begins. Two wait behind it, and two
        // do not fit.
        let (delivered, counters) = run(&config, &[0, 500, 995, 1_100, 1_200, 1_300, 9_000]);
        assert_eq!(delivered.len(), 2, "{delivered:?}");
        assert_eq!(counters.dropped_packets, 2);
    }
}

#[test]
fn queuing_delay_is_the_time_that_a_packet_waited() {
    let mut link = Bottleneck::new(&link(QueueLimit::Packets(10)), Seed::new(1), "up");
    for packet in 0..3 {
        link.enqueue(ms(0), Header::new(MTU), packet);
    }
    assert_eq!(link.queued(ms(0)), DataSize::from_bytes(2_500));
    assert_eq!(link.queuing_delay(ms(0)), TimeDelta::from_millis(20));
    let outcomes = std::iter::from_fn(|| link.poll(ms(100)));
    let delays: Vec<i64> = outcomes
        .filter_map(|outcome| match outcome {
            Outcome::Delivered(delivery) => Some(delivery.queuing_delay.as_millis()),
            Outcome::Dropped(_) => None,
        })
        .collect();
    assert_eq!(delays, [0, 10, 20]);
}

#[test]
fn an_unlimited_link_only_delays() {
    let config = LinkConfig::unlimited(TimeDelta::from_millis(25));
    let (delivered, counters) = run(&config, &[0, 0, 1]);
    assert_eq!(delivered, [(25, 0), (25, 1), (26, 2)]);
    assert_eq!(counters.delivered, DataSize::from_bytes(3_750));
}

#[test]
fn netem_jitter_reorders_and_the_same_jitter_held_in_order_does_not() {
    let arrivals: Vec<i64> = (0..1_000).map(|n| n * 10).collect();
    let jittered = |reorder| {
        let jitter = Jitter::Uniform { amount: TimeDelta::from_millis(20), reorder };
        run(&LinkConfig { jitter, ..link(QueueLimit::Packets(10)) }, &arrivals).0
    };
    let falls = |delivered: &[(i64, usize)]| {
        assert_eq!(delivered.len(), 1_000);
        assert!(delivered.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        delivered.windows(2).filter(|pair| pair[0].1 > pair[1].1).count()
    };
    assert!(falls(&jittered(true)) > 100);
    assert_eq!(falls(&jittered(false)), 0);
}

/// Jitter of 10 ms as in netem, without reordering.
const IN_ORDER: Jitter = Jitter::Uniform { amount: TimeDelta::from_millis(10), reorder: false };

#[test]
fn jitter_in_order_does_not_prolong_an_outage() {
    let sent: Vec<i64> = (0..600).map(|n| n * 50 + 25).collect();
    for capacity in outages() {
        let config = LinkConfig { capacity, ..link(QueueLimit::Packets(100)) };
        let (plain, _) = run(&config, &sent);
        let (jittered, _) = run(&LinkConfig { jitter: IN_ORDER, ..config }, &sent);
        assert_eq!(jittered.len(), 600);
        for (plain, jittered) in plain.iter().zip(&jittered) {
            assert_eq!(plain.1, jittered.1);
            // One more millisecond is allowed because both times are rounded.
            assert!((plain.0 - jittered.0).abs() <= 11, "{plain:?} {jittered:?}");
        }
    }
}

#[test]
fn spacing_in_order_is_the_transmission_time_at_the_rate_of_the_last_bit() {
    // Jitter that keeps the order and adds nothing.
    let jitter = Jitter::Uniform { amount: TimeDelta::ZERO, reorder: false };
    let spaced = |capacity: Capacity, sizes: &[u64]| -> Vec<i64> {
        let config = LinkConfig { capacity, jitter, ..link(QueueLimit::Packets(10)) };
        let mut link = Bottleneck::new(&config, Seed::new(1), "up");
        // The first packet is 3 s late, so all others are due before it.
        link.order.hold(ms(3_000), TimeDelta::ZERO);
        for (packet, &bytes) in sizes.iter().enumerate() {
            link.enqueue(ms(0), Header::new(DataSize::from_bytes(bytes)), packet);
        }
        arrivals(&mut link).iter().map(|it| it.0 - 3_000).collect()
    };
    let steps = |from, to| {
        let steps = vec![(ms(0), Bitrate::from_kbps(from)), (ms(15), Bitrate::from_kbps(to))];
        Capacity::Schedule(Schedule::new(steps).unwrap())
    };
    // 10 ms at the first rate, then one that spans the step, then one at the second.
    assert_eq!(spaced(steps(1_000, 100), &[1_250; 3]), [10, 10 + 55, 10 + 55 + 100]);
    assert_eq!(spaced(steps(1_000, 2_000), &[1_250; 3]), [10, 10 + 5, 10 + 5 + 5]);
    // The gap is a packet's own transmission time, not that of the packet before.
    assert_eq!(spaced(steps(1_000, 1_000), &[1_250, 125, 1_250]), [10, 11, 21]);
    // 60 kbit/s in the first second. Packets that leave in one opportunity arrive together. A
    // packet that waited half a second for the next opportunity is spaced by the rate, not by that
    // wait.
    let trace = || Capacity::Trace(CapacityTrace::parse("1\n1\n500\n").unwrap());
    assert_eq!(spaced(trace(), &[748; 4]), [1, 1, 1, 1]);
    assert_eq!(spaced(trace(), &[1_500, 1_500, 300]), [1, 1, 1 + 40]);
}

#[test]
fn loss_and_jitter_follow_their_steps() {
    let jitter = Jitter::Uniform { amount: TimeDelta::from_millis(20), reorder: true };
    let changes = Changes {
        jitter: vec![(ms(2_000), jitter), (ms(4_000), Jitter::None)],
        loss: vec![(ms(5_000), LossModel::Random(0.5)), (ms(6_000), LossModel::None)],
    };
    let config = LinkConfig { changes, ..link(QueueLimit::Packets(10)) };
    let arrivals: Vec<i64> = (0..800).map(|n| n * 10).collect();
    let (delivered, counters) = run(&config, &arrivals);
    // A packet that takes 10 ms ends its transmission 10 ms after its arrival.
    let late = |from, to| {
        let these = delivered.iter().filter(|it| (from..to).contains(&(it.1 as i64 * 10 + 10)));
        these.map(|it| (it.0 - it.1 as i64 * 10 - 35).abs()).max().unwrap()
    };
    assert_eq!((late(0, 2_000), late(4_000, 8_000)), (0, 0));
    assert!((15..=20).contains(&late(2_000, 4_000)));
    let lost = |from, to| 100 - delivered.iter().filter(|it| (from..to).contains(&it.1)).count();
    assert!((30..70).contains(&lost(500, 600)), "{}", lost(500, 600));
    assert_eq!(counters.lost_packets, lost(500, 600) as u64);
}

#[test]
fn jitter_in_order_that_ends_lets_nothing_overtake() {
    let jitter = Jitter::HalfNormal { sd: TimeDelta::from_millis(200), reorder: false };
    let changes = Changes { jitter: vec![(ms(3_000), Jitter::None)], ..Changes::default() };
    let config = LinkConfig { jitter, changes, ..link(QueueLimit::Packets(10)) };
    let (delivered, _) = run(&config, &(0..300).map(|n| n * 20).collect::<Vec<i64>>());
    assert!(delivered.windows(2).all(|pair| pair[0].1 < pair[1].1));
    // By then the packets delayed behind the last late one have arrived.
    assert!(delivered[280..].iter().all(|it| it.0 == it.1 as i64 * 20 + 35));
}

#[test]
fn jitter_beyond_the_delay_never_delivers_before_the_packet_was_sent() {
    let jitter = Jitter::Uniform { amount: TimeDelta::from_millis(500), reorder: true };
    let (delivered, _) = run(&LinkConfig { jitter, ..link(QueueLimit::Packets(10)) }, &[0; 5]);
    assert!(delivered.iter().all(|&(at, packet)| at >= 10 * (packet as i64 + 1)));
}

#[test]
fn every_packet_is_delivered_lost_or_dropped_and_duplicates_are_extra() {
    let config =
        LinkConfig { loss: LossModel::Random(0.1), duplicate: 0.1, ..link(QueueLimit::Packets(3)) };
    let arrivals: Vec<i64> = (0..5_000).map(|n| n * 9).collect();
    let (delivered, counters) = run(&config, &arrivals);
    assert!(counters.lost_packets > 400 && counters.duplicated_packets > 300);
    assert_eq!(
        counters.offered_packets + counters.duplicated_packets,
        counters.delivered_packets + counters.lost_packets + counters.dropped_packets
    );
    assert_eq!(delivered.len() as u64, counters.delivered_packets);
}

#[test]
fn a_trace_delivers_at_its_opportunities() {
    let capacity = Capacity::Trace(CapacityTrace::parse("5\n10\n30\n").unwrap());
    let config = LinkConfig { capacity, ..link(QueueLimit::Packets(10)) };
    let (delivered, _) = run(&config, &[0, 0, 0]);
    // 1250 B fit into the first opportunity. Its last 250 B carry the start of the second packet,
    // and so on.
    assert_eq!(delivered, [(30, 0), (35, 1), (55, 2)]);
}

#[test]
fn a_delay_step_moves_later_packets_and_a_shorter_one_lets_them_overtake() {
    let step = |at, delay| (ms(at), TimeDelta::from_millis(delay));
    let steps = vec![step(0, 25), step(100, 325), step(200, 25)];
    let config =
        LinkConfig { delay: crate::Delay::new(steps).unwrap(), ..link(QueueLimit::Packets(10)) };
    let (delivered, _) = run(&config, &[0, 120, 220]);
    assert_eq!(delivered, [(35, 0), (255, 2), (455, 1)]);
}

/// When the packets on a link arrive.
fn arrivals(link: &mut Bottleneck<usize>) -> Vec<(i64, usize)> {
    let outcomes = std::iter::from_fn(|| link.poll(Timestamp::from_secs(1_000)));
    outcomes
        .filter_map(|outcome| match outcome {
            Outcome::Delivered(delivery) => Some((delivery.due.as_millis(), delivery.payload)),
            Outcome::Dropped(_) => None,
        })
        .collect()
}

#[test]
fn a_change_of_the_capacity_holds_from_the_next_packet_on() {
    let mut link = Bottleneck::new(&link(QueueLimit::Packets(10)), Seed::new(1), "up");
    for packet in 0..2 {
        link.enqueue(ms(0), Header::new(MTU), packet);
    }
    link.set_capacity(ms(5), Bitrate::from_kbps(100));
    assert_eq!(link.capacity(ms(5)), Some(Bitrate::from_kbps(100)));
    // The first transmission ends at 10 ms; the second takes 100 ms.
    assert_eq!(arrivals(&mut link), [(35, 0), (135, 1)]);
}

#[test]
fn an_outage_by_hand_ends_by_hand() {
    let queue = QueueLimit::Time(TimeDelta::from_millis(20));
    let mut link = Bottleneck::new(&link(queue), Seed::new(1), "up");
    link.set_capacity(ms(0), Bitrate::ZERO);
    for packet in 0..4 {
        link.enqueue(ms(10), Header::new(MTU), packet);
    }
    assert_eq!(link.queued(ms(10)), DataSize::from_bytes(2_500));
    assert!(matches!(link.poll(ms(10)), Some(Outcome::Dropped(_))));
    assert_eq!((link.poll(ms(5_000)).is_none(), link.next_event()), (true, None));
    link.set_capacity(ms(5_000), Bitrate::from_kbps(100));
    assert_eq!(arrivals(&mut link), [(5_125, 0), (5_225, 1), (5_325, 2)]);
}

#[test]
fn an_unlimited_link_can_be_given_a_capacity() {
    let mut link = Bottleneck::new(&LinkConfig::unlimited(TimeDelta::ZERO), Seed::new(1), "up");
    link.enqueue(ms(0), Header::new(MTU), 0);
    link.set_capacity(ms(1), Bitrate::from_kbps(1000));
    link.enqueue(ms(1), Header::new(MTU), 1);
    assert_eq!(arrivals(&mut link), [(0, 0), (11, 1)]);
}

#[test]
fn a_packet_overtakes_those_that_left_before_the_delay_fell() {
    let mut link = Bottleneck::new(&link(QueueLimit::Packets(10)), Seed::new(1), "up");
    for packet in 0..3 {
        link.enqueue(ms(0), Header::new(MTU), packet);
    }
    link.set_delay(ms(15), TimeDelta::from_millis(2));
    assert_eq!(link.next_event(), Some(ms(22)));
    assert_eq!(arrivals(&mut link), [(32, 2), (35, 0), (45, 1)]);
}

#[test]
fn loss_and_jitter_change_for_the_packets_that_come_after() {
    let mut link = Bottleneck::new(&link(QueueLimit::Packets(10)), Seed::new(1), "up");
    link.enqueue(ms(0), Header::new(MTU), 0);
    link.set_loss(LossModel::Random(1.0));
    link.enqueue(ms(0), Header::new(MTU), 1);
    link.set_loss(LossModel::None);
    let amount = TimeDelta::from_millis(10);
    link.set_jitter(ms(50), Jitter::Uniform { amount, reorder: true });
    link.enqueue(ms(50), Header::new(MTU), 2);
    let arrivals = arrivals(&mut link);
    assert_eq!((arrivals[0], arrivals.len()), ((35, 0), 2));
    assert!(arrivals[1].0 != 85 && (75..=95).contains(&arrivals[1].0), "{arrivals:?}");
}

#[test]
fn a_share_of_the_packets_skips_the_delay_and_overtakes() {
    let config = LinkConfig { reorder: 0.1, ..link(QueueLimit::Packets(10)) };
    let (delivered, _) = run(&config, &(0..5_000).map(|n| n * 12).collect::<Vec<i64>>());
    let early = delivered.iter().filter(|it| it.0 == it.1 as i64 * 12 + 10).count();
    let others = delivered.iter().filter(|it| it.0 == it.1 as i64 * 12 + 35).count();
    assert_eq!(early + others, 5_000);
    assert!((400..600).contains(&early), "{early}");
    let late = LinkConfig { reorder: 1.0, ..link(QueueLimit::Packets(10)) };
    assert_eq!(run(&late, &[0, 100]).0, [(10, 0), (110, 1)]);
}

#[test]
fn a_delay_in_order_lets_nothing_overtake() {
    let step = |at, delay| (ms(at), TimeDelta::from_millis(delay));
    let steps = vec![step(0, 25), step(100, 325), step(200, 25)];
    let delay = crate::Delay::new(steps).unwrap().in_order();
    let config = LinkConfig { delay, ..link(QueueLimit::Packets(10)) };
    // The packet at 220 ms waits for the one at 120 ms, and takes 10 ms more.
    assert_eq!(run(&config, &[0, 120, 220]).0, [(35, 0), (455, 1), (465, 2)]);
}

#[test]
fn a_token_bucket_passes_a_burst_at_once_and_then_its_rate() {
    // 1250 bytes take 10 ms.
    let burst = Some(DataSize::from_bytes(3_750));
    let config = LinkConfig { burst, ..link(QueueLimit::Packets(20)) };
    // It starts full, and after a pause three packets find their tokens.
    let (delivered, _) = run(&config, &[0, 1_000, 1_000, 1_000, 1_000, 1_000, 1_025]);
    let left: Vec<i64> = delivered.iter().map(|it| it.0 - 25).collect();
    assert_eq!(left, [0, 1_000, 1_000, 1_000, 1_010, 1_020, 1_030]);
}
