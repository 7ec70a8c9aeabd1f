//! Timelines computed by hand, in microseconds, at 2.4 GHz and MCS 7: 234 us for 1500 bytes, SIFS
//! 10, ACK 34, BlockAck 38, AIFS of best effort 37, timeout 39. The contention window has one slot,
//! so no backoff is longer than AIFS, unless a test says otherwise.

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::*;
use crate::packet::{DropCause, Header, Outcome};
use crate::queue::CoDelConfig;
use crate::seed::Seed;

const AP: NodeId = NodeId::ACCESS_POINT;
const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);
const PACKET: Header = Header::new(DataSize::from_bytes(1_500));

fn at(us: i64) -> Timestamp {
    Timestamp::from_micros(us)
}

fn mcs_7() -> RateControl {
    RateControl::Fixed(DataRate::long_guard(Mcs::new(7).unwrap()))
}

fn without_backoff(mut node: NodeConfig) -> NodeConfig {
    for category in &mut node.edca.0 {
        (category.cw_min, category.cw_max) = (0, 0);
    }
    node
}

/// A cell with these stations, none of which backs off.
fn config(names: &[&str]) -> CellConfig {
    let station = |name: &&str| {
        let station = Station::new(*name, mcs_7(), mcs_7());
        Station { node: without_backoff(station.node), ..station }
    };
    let mut config = CellConfig::new(Band::GHZ_2_4, names.iter().map(station).collect());
    config.access_point = without_backoff(config.access_point);
    config
}

/// The same with a neighbour that sends one packet of this size at this time.
fn with_neighbour(mut config: CellConfig, size: u64, start_us: i64) -> CellConfig {
    let arrivals = Arrivals::Bursts { period: TimeDelta::from_secs(1_000), packets: 1 };
    let load = StationLoad {
        start: at(start_us),
        ..StationLoad::new(arrivals, DataSize::from_bytes(size))
    };
    let node = without_backoff(NodeConfig::new("neighbour"));
    config.neighbours.push(Neighbour { node, link: Link::new(mcs_7()).with_load(load) });
    config
}

/// A cell that records its frames and the outcomes of its packets.
struct Bench {
    cell: Cell<u32>,
    outcomes: Vec<Outcome<u32>>,
}

impl Bench {
    fn new(config: &CellConfig) -> Self {
        let mut cell = Cell::new(config, Seed::new(1));
        cell.record_airtime();
        Self { cell, outcomes: Vec::new() }
    }

    fn run_until(&mut self, us: i64) {
        while let Some(next) = self.cell.next_event().filter(|&next| next <= at(us)) {
            self.outcomes.extend(std::iter::from_fn(|| self.cell.poll(next)));
        }
    }

    fn enqueue(&mut self, us: i64, ends: (NodeId, NodeId), number: u32) {
        self.enqueue_as(us, ends, AccessCategory::BestEffort, number);
    }

    fn enqueue_as(
        &mut self,
        us: i64,
        ends: (NodeId, NodeId),
        category: AccessCategory,
        number: u32,
    ) {
        self.run_until(us - 1);
        self.cell.enqueue(at(us), ends, category, PACKET, number);
    }

    /// Frames in the order of their start: sender, start, end, number of MPDUs decoded.
    fn frames(&mut self) -> Vec<(usize, i64, i64, usize)> {
        self.run_until(1_000_000);
        let mut frames = self.cell.take_airtime();
        frames.sort_by_key(|frame| (frame.start, frame.from));
        let row = |frame: &AirtimeRecord| {
            (frame.from.0, frame.start.as_micros(), frame.end.as_micros(), frame.decoded)
        };
        frames.iter().map(row).collect()
    }

    /// Packet numbers and arrival times, in the order of arrival.
    fn delivered(&mut self) -> Vec<(u32, i64)> {
        self.run_until(1_000_000);
        let delivery = |outcome: &Outcome<u32>| match outcome {
            Outcome::Delivered(delivery) => Some((delivery.payload, delivery.due.as_micros())),
            Outcome::Dropped(_) => None,
        };
        self.outcomes.iter().filter_map(delivery).collect()
    }

    /// Packet numbers, times and causes of drops.
    fn dropped(&mut self) -> Vec<(u32, i64, DropCause)> {
        self.run_until(1_000_000);
        let drop = |outcome: &Outcome<u32>| match outcome {
            Outcome::Dropped(dropped) => {
                Some((dropped.payload, dropped.at.as_micros(), dropped.cause))
            }
            Outcome::Delivered(_) => None,
        };
        self.outcomes.iter().filter_map(drop).collect()
    }
}

// [IEEE80211 §9.3.2.8]
#[test]
fn a_packet_is_answered_a_sifs_later_and_the_next_follows_after_aifs() {
    let mut bench = Bench::new(&config(&["a"]));
    bench.enqueue(1_000, (A, AP), 1);
    bench.enqueue(1_100, (A, AP), 2);
    let first = [(1, 1_000, 1_234, 1), (0, 1_244, 1_278, 1)];
    let second = [(1, 1_315, 1_549, 1), (0, 1_559, 1_593, 1)];
    assert_eq!(bench.frames(), [first, second].concat());
    assert_eq!(bench.delivered(), [(1, 1_234), (2, 1_549)]);
}

#[test]
fn queuing_delay_lasts_until_the_frame_that_brings_the_packet_begins() {
    let mut bench = Bench::new(&config(&["a"]));
    bench.enqueue(1_000, (A, AP), 1);
    bench.enqueue(1_100, (A, AP), 2);
    bench.run_until(10_000);
    let [Outcome::Delivered(_), Outcome::Delivered(second)] = &bench.outcomes[..] else { panic!() };
    assert_eq!(second.queuing_delay, TimeDelta::from_micros(1_315 - 1_100));
}

// [IEEE80211 §9.19.2.6]
#[test]
fn frames_that_begin_together_are_lost_and_given_up_after_seven_attempts() {
    let mut bench = Bench::new(&config(&["a", "b"]));
    bench.enqueue(1_000, (A, AP), 1);
    bench.enqueue(1_000, (B, AP), 2);
    // 234 us on the air, 39 us of timeout, 37 us of AIFS.
    let begins = (0..7).map(|attempt| 1_000 + 310 * attempt);
    let frames = begins.flat_map(|begin| [1, 2].map(|node| (node, begin, begin + 234, 0)));
    assert_eq!(bench.frames(), frames.collect::<Vec<_>>());
    let end = 1_000 + 6 * 310 + 234 + 39;
    let lost = |number| (number, end, DropCause::RetryLimit);
    assert_eq!(bench.dropped(), [lost(1), lost(2)]);
    let NodeCounters { attempts, failures, retry_limit, .. } = bench.cell.counters(A);
    assert_eq!((attempts, failures, retry_limit), (7, 7, 1));
}

// [IEEE80211 §9.3.7]
#[test]
fn a_node_that_is_to_send_within_a_slot_of_another_one_has_not_sensed_it() {
    for (before_us, is_sensed) in [(8, false), (9, true)] {
        // Only b hears the neighbour, until 1062, and plans to send at 1099.
        let mut config = with_neighbour(config(&["a", "b"]), 100, 1_000);
        let unheard = [(AP, C), (A, C), (B, C), (C, AP), (C, A)];
        config.powers.between.extend(unheard.map(|(a, b)| (a, b, f64::NEG_INFINITY)));
        let mut bench = Bench::new(&config);
        bench.enqueue(1_070, (B, AP), 2);
        bench.enqueue(1_099 - before_us, (A, AP), 1);
        let first_of_b = bench.frames().into_iter().find(|frame| frame.0 == 2).unwrap();
        assert_eq!(first_of_b.1 > 1_099, is_sensed, "{before_us}: {first_of_b:?}");
    }
}

#[test]
fn stations_that_do_not_hear_each_other_talk_over_each_other() {
    let mut hidden = config(&["a", "b"]);
    hidden.powers.hide(A, B);
    for (config, is_hidden) in [(config(&["a", "b"]), false), (hidden, true)] {
        let mut bench = Bench::new(&config);
        bench.enqueue(1_000, (A, AP), 1);
        bench.enqueue(1_100, (B, AP), 2);
        let frames = bench.frames();
        let first_of_b = frames.iter().find(|frame| frame.0 == 2).unwrap();
        assert_eq!(first_of_b.1, if is_hidden { 1_100 } else { 1_278 + 37 });
        assert_eq!(frames[0].3, usize::from(!is_hidden));
    }
}

#[test]
fn stations_whose_places_are_too_far_apart_do_not_hear_each_other() {
    // With 20 dBm and 30 dB per decade, the power falls to the carrier-sense threshold at 116 m.
    for (metres, is_hidden) in [(57.0, false), (59.0, true)] {
        let mut config = config(&["a", "b"]);
        config.powers.placement = Some(Placement {
            places: vec![(0.0, 0.0), (-metres, 0.0), (metres, 0.0)],
            sent_dbm: 20.0,
            propagation: propagation::Propagation::INDOOR,
        });
        let mut bench = Bench::new(&config);
        bench.enqueue(1_000, (A, AP), 1);
        bench.enqueue(1_100, (B, AP), 2);
        let frames = bench.frames();
        let first_of_b = frames.iter().find(|frame| frame.0 == 2).unwrap();
        assert_eq!(first_of_b.1 == 1_100, is_hidden, "{metres} m: {first_of_b:?}");
    }
}

#[test]
fn shadowing_is_of_the_seed_and_the_same_both_ways() {
    let mut powers = config(&["a", "b"]).powers;
    powers.placement = Some(Placement {
        places: vec![(0.0, 0.0), (5.0, 0.0), (0.0, 5.0)],
        sent_dbm: 20.0,
        propagation: propagation::Propagation {
            shadowing_db: 5.0,
            ..propagation::Propagation::INDOOR
        },
    });
    let [one, again, other] = [1, 1, 2].map(|seed| powers.matrix(3, Seed::new(seed)));
    assert_eq!(one, again);
    assert_ne!(one[0][1], other[0][1]);
    assert_ne!(one[0][1], one[0][2]);
    assert_eq!(one[0][1], one[1][0]);
}

#[test]
fn a_frame_that_is_10_db_stronger_survives_the_other_one() {
    for (power_dbm, decoded) in [(-39.9, 1), (-40.1, 0)] {
        let mut config = config(&["a", "b"]);
        config.powers.between.push((A, AP, power_dbm));
        let mut bench = Bench::new(&config);
        bench.enqueue(1_000, (A, AP), 1);
        bench.enqueue(1_000, (B, AP), 2);
        let frames = bench.frames();
        assert_eq!((frames[0].3, frames[1].3), (decoded, 0));
    }
}

#[test]
fn a_node_that_sends_receives_nothing_however_strong() {
    let mut config = config(&["a"]);
    config.powers.between.extend([(A, AP, -10.0), (AP, A, -10.0)]);
    let mut bench = Bench::new(&config);
    bench.enqueue(1_000, (A, AP), 1);
    bench.enqueue(1_000, (AP, A), 2);
    let frames = bench.frames();
    assert_eq!(frames[..2], [(0, 1_000, 1_234, 0), (1, 1_000, 1_234, 0)]);
}

// [IEEE80211 §9.3.2.3.7]
#[test]
fn after_a_frame_that_it_could_not_decode_a_station_waits_for_eifs() {
    let mut config = config(&["a", "b", "c"]);
    config.powers.hide(A, B);
    let mut bench = Bench::new(&config);
    bench.enqueue(1_000, (A, AP), 1);
    bench.enqueue(1_020, (B, AP), 2);
    bench.enqueue(1_100, (C, AP), 3);
    // c followed the frame of a until 1234. EIFS makes it wait 314 us longer than AIFS. a and b
    // send again before that and collide. The next frame that c cannot decode replaces its wait.
    let frames = bench.frames();
    let first_of_c = frames.iter().find(|frame| frame.0 == 3).unwrap();
    let before: Vec<_> = frames.iter().take_while(|frame| frame.0 != 3).collect();
    let last_of_a = before.iter().rfind(|frame| frame.0 == 1).unwrap();
    assert_eq!(first_of_c.1, last_of_a.2 + 314 + 37);
}

/// When c sends its packet, which comes at 1100. a and b are hidden from each other. Each sends one
/// frame, a at 1000 and b `gap_us` later, and gives it up.
fn begin_of_c(mut config: CellConfig, gap_us: i64) -> i64 {
    config.powers.hide(A, B);
    for station in &mut config.stations[..2] {
        station.node.retry = RetryPolicy::Limit(1);
    }
    let mut bench = Bench::new(&config);
    bench.enqueue(1_000, (A, AP), 1);
    bench.enqueue(1_000 + gap_us, (B, AP), 2);
    bench.enqueue(1_100, (C, AP), 3);
    bench.frames().iter().find(|frame| frame.0 == 3).unwrap().1
}

// [IEEE80211 §9.3.2.3.7]
#[test]
fn a_good_frame_ends_eifs() {
    let three = config(&["a", "b", "c"]);
    assert_eq!(begin_of_c(three.clone(), 20), 1_234 + 314 + 37);
    // The neighbour's frame lasts 62 us. Only c hears it.
    let mut four = with_neighbour(three, 100, 1_280);
    let neighbour = NodeId(4);
    for node in [AP, A, B] {
        four.powers.hide(node, neighbour);
    }
    assert_eq!(begin_of_c(four, 20), 1_342 + 37);
}

// [IEEE80211 §9.3.2.3.7]
#[test]
fn a_receiver_that_could_not_decode_waits_for_eifs_too() {
    let mut config = config(&["a"]);
    config.stations[0].up.errors = Errors::Ratio(1.0);
    config.stations[0].node.retry = RetryPolicy::Limit(1);
    let mut bench = Bench::new(&config);
    bench.enqueue(1_000, (A, AP), 1);
    bench.enqueue(1_100, (AP, A), 2);
    let first_of_ap = bench.frames().into_iter().find(|frame| frame.0 == 0).unwrap();
    assert_eq!(first_of_ap.1, 1_234 + 314 + 37);
}

#[test]
fn a_bystander_follows_a_frame_that_is_10_db_stronger_and_needs_no_eifs() {
    for weaker in [A, B] {
        for (power_dbm, begin) in [(-60.1, 1_254 + 37), (-59.9, 1_234 + 314 + 37)] {
            let mut config = config(&["a", "b", "c"]);
            config.powers.between.push((weaker, C, power_dbm));
            assert_eq!(begin_of_c(config, 20), begin, "{weaker:?} {power_dbm}");
        }
    }
}

#[test]
fn of_preambles_within_4_us_none_is_noticed_and_no_eifs_follows() {
    assert_eq!(begin_of_c(config(&["a", "b", "c"]), 3), 1_237 + 37);
    assert_eq!(begin_of_c(config(&["a", "b", "c"]), 4), 1_234 + 314 + 37);
}

#[test]
fn a_receiver_that_answers_a_stronger_frame_missed_the_end_of_another() {
    let mut config = config(&["a", "b"]);
    config.stations[0].node.aggregation = Aggregation::STANDARD;
    config.powers.hide(A, B);
    config.powers.between.push((B, AP, -20.0));
    let mut bench = Bench::new(&config);
    for number in 1..=4 {
        bench.enqueue(1_000, (A, AP), number);
    }
    bench.enqueue(1_561, (B, AP), 5);
    // The ACK of b's frame begins before a's frame ends. Two packets of that frame came before b
    // sent.
    let (of_a, of_b) = ((1, 1_000, 1_806, 2), (2, 1_561, 1_795, 1));
    let frames = bench.frames();
    assert_eq!(frames[..3], [of_a, of_b, (0, 1_805, 1_839, 1)]);
    // No BlockAck follows, so a sends again.
    assert_eq!(frames[3].0, 1);
}

#[test]
fn a_packet_whose_answer_is_lost_is_sent_again_and_handed_on_once() {
    let mut config = with_neighbour(config(&["a"]), 100, 1_240);
    // The neighbour is near the station, and far from the access point.
    config.powers.hide(AP, B);
    config.powers.between.push((A, B, f64::NEG_INFINITY));
    let mut bench = Bench::new(&config);
    bench.enqueue(1_000, (A, AP), 1);
    assert_eq!(bench.delivered(), [(1, 1_234)]);
    let NodeCounters { attempts, failures, duplicates, delivered_packets, .. } =
        bench.cell.counters(A);
    assert_eq!((attempts, failures, duplicates, delivered_packets), (2, 1, 1, 1));
}

#[test]
fn a_packet_that_arrived_is_not_lost_though_its_last_answer_is() {
    let mut config = with_neighbour(config(&["a"]), 100, 1_240);
    config.powers.hide(AP, B);
    config.powers.between.push((A, B, f64::NEG_INFINITY));
    config.stations[0].node.retry = RetryPolicy::Limit(1);
    let mut bench = Bench::new(&config);
    bench.enqueue(1_000, (A, AP), 1);
    assert_eq!(bench.delivered(), [(1, 1_234)]);
    let NodeCounters { failures, retry_limit, .. } = bench.cell.counters(A);
    assert_eq!((failures, retry_limit), (1, 0));
}

fn aggregating() -> CellConfig {
    let mut config = config(&["a"]);
    config.stations[0].node.aggregation = Aggregation::STANDARD;
    config
}

// [IEEE80211 §9.12]
#[test]
fn packets_that_wait_go_into_one_frame_that_a_block_ack_answers() {
    let mut bench = Bench::new(&aggregating());
    for number in 1..=4 {
        bench.enqueue(1_000, (A, AP), number);
    }
    // 4 x 1538 bytes with delimiters and padding are 6174 bytes, or 191 symbols.
    let data = (1, 1_000, 1_000 + 36 + 4 * 191 + 6, 4);
    assert_eq!(bench.frames(), [data, (0, 1_816, 1_816 + 38, 1)]);
    assert_eq!(bench.delivered(), [1, 2, 3, 4].map(|number| (number, 1_806)));
}

#[test]
fn a_frame_carries_no_more_bytes_than_its_node_allows() {
    let mut config = aggregating();
    // With 1538 bytes each, delimiters and padding, two packets fit and three do not.
    config.stations[0].node.aggregation.bytes = DataSize::from_bytes(4_000);
    let mut bench = Bench::new(&config);
    for number in 1..=4 {
        bench.enqueue(1_000, (A, AP), number);
    }
    let decoded: Vec<usize> =
        bench.frames().iter().filter(|frame| frame.0 == 1).map(|frame| frame.3).collect();
    assert_eq!(decoded, [2, 2]);
}

#[test]
fn a_packet_that_fails_goes_down_the_rates_to_the_lowest() {
    let mut config = config(&["a"]);
    let rates = RateSet { streams: 1, guard: GuardInterval::Long };
    config.stations[0].up.rate = RateControl::Minstrel(rates);
    // Once the rate control knows the rates, a neighbour that the station does not hear sends for
    // 40 ms.
    config = with_neighbour(config, 2_000, 500_000);
    config.neighbours[0].link.loads[0].arrivals =
        Arrivals::Bursts { period: TimeDelta::from_secs(1_000), packets: 100 };
    config.powers.hide(A, B);
    config.powers.between.push((AP, B, f64::NEG_INFINITY));
    let mut bench = Bench::new(&config);
    for number in 0..100 {
        bench.enqueue(1_000 + 4_000 * i64::from(number), (A, AP), number);
    }
    bench.enqueue(500_050, (A, AP), 100);
    let lengths: Vec<i64> =
        bench.frames().iter().filter(|frame| frame.0 == 1).map(|frame| frame.2 - frame.1).collect();
    // MCS 7 at first, and MCS 0 at the end.
    assert_eq!((lengths.len(), lengths[100], lengths[106]), (107, 234, 1_942), "{lengths:?}");
}

// [IEEE80211 §9.21.7]
#[test]
fn a_packet_goes_when_fewer_than_64_before_it_began_with_an_undone_one() {
    // Interference from 1042 to 1096, only at the access point: within the first MPDU, after the
    // preamble.
    let mut config = with_neighbour(aggregating(), 40, 1_042);
    config.powers.hide(A, B);
    config.powers.between.push((AP, B, f64::NEG_INFINITY));
    let mut bench = Bench::new(&config);
    bench.run_until(999);
    for number in 0..70 {
        let header = Header::new(DataSize::from_bytes(500));
        bench.cell.enqueue(at(1_000), (A, AP), AccessCategory::BestEffort, header, number);
    }
    let decoded: Vec<usize> =
        bench.frames().iter().filter(|frame| frame.0 == 1).map(|frame| frame.3).collect();
    assert_eq!(decoded, [63, 1, 6]);
}

#[test]
fn of_a_frame_that_is_hit_in_its_middle_the_rest_waits_for_what_was_hit() {
    // Interference from 1300 to 1362, only at the access point: within the second MPDU, which lasts
    // from 1227 to 1418.
    let mut config = with_neighbour(aggregating(), 100, 1_300);
    config.powers.hide(A, B);
    config.powers.between.push((AP, B, f64::NEG_INFINITY));
    let mut bench = Bench::new(&config);
    for number in 1..=4 {
        bench.enqueue(1_000, (A, AP), number);
    }
    // The second packet is sent again alone: BlockAck until 1854, AIFS, 234 us.
    assert_eq!(bench.delivered(), [(1, 1_806), (2, 2_125), (3, 2_125), (4, 2_125)]);
    let NodeCounters { attempts, failures, frames, duplicates, .. } = bench.cell.counters(A);
    assert_eq!((attempts, failures, frames, duplicates), (5, 1, 2, 0));
}

// [IEEE80211 §9.19.2.4]
#[test]
fn of_two_ready_categories_the_more_urgent_goes_and_the_other_backs_off() {
    let mut config = config(&["a"]);
    config.stations[0].node.edca.0[AccessCategory::BestEffort.index()].cw_max = 1;
    let mut bench = Bench::new(&config);
    bench.enqueue_as(1_000, (A, AP), AccessCategory::BestEffort, 1);
    bench.enqueue_as(1_000, (A, AP), AccessCategory::Voice, 2);
    let delivered = bench.delivered();
    assert_eq!(delivered[0], (2, 1_234));
    // Then AIFS and a backoff of 0 or 1 slot.
    assert!([1_278 + 37 + 234, 1_278 + 37 + 9 + 234].contains(&delivered[1].1));
    let NodeCounters { virtual_collisions, attempts, failures, .. } = bench.cell.counters(A);
    assert_eq!((virtual_collisions, attempts, failures), (1, 3, 1));
}

// [IEEE80211 §9.19.2.4]
#[test]
fn an_opportunity_holds_frames_a_sifs_apart_while_they_end_in_time() {
    let mut config = config(&["a"]);
    config.stations[0].node.edca.0[AccessCategory::Video.index()].txop =
        TimeDelta::from_micros(700);
    let mut bench = Bench::new(&config);
    for number in 1..=3 {
        bench.enqueue_as(1_000, (A, AP), AccessCategory::Video, number);
    }
    // Two exchanges of 278 us with a SIFS between them fit. A third would end at 1854, so it must
    // wait for the AIFS of video, 28 us.
    let begins: Vec<i64> =
        bench.frames().iter().filter(|frame| frame.0 == 1).map(|frame| frame.1).collect();
    assert_eq!(begins, [1_000, 1_288, 1_566 + 28]);
}

// [IEEE80211 §9.19.2.2]
#[test]
fn the_first_frame_goes_anyhow_and_others_if_their_answer_is_in_time() {
    // The first exchange takes 278 us. The data of a second one would end after 522 us, its answer
    // after 566.
    for txop_us in [100, 550] {
        let mut config = config(&["a"]);
        config.stations[0].node.edca.0[AccessCategory::Video.index()].txop =
            TimeDelta::from_micros(txop_us);
        let mut bench = Bench::new(&config);
        bench.enqueue_as(1_000, (A, AP), AccessCategory::Video, 1);
        bench.enqueue_as(1_000, (A, AP), AccessCategory::Video, 2);
        let begins: Vec<i64> =
            bench.frames().iter().filter(|frame| frame.0 == 1).map(|frame| frame.1).collect();
        assert_eq!(begins, [1_000, 1_278 + 28], "{txop_us}");
    }
}

// [IEEE80211 §9.19.2.3]
#[test]
fn the_backoff_of_a_category_stands_while_another_one_of_its_node_sends() {
    // The station hears the neighbour until 1062. The best-effort packet comes before that and
    // backs off.
    let mut config = with_neighbour(config(&["a"]), 100, 1_000);
    let best_effort = &mut config.stations[0].node.edca.0[AccessCategory::BestEffort.index()];
    (best_effort.cw_min, best_effort.cw_max) = (63, 63);
    let begins = |voice: Option<i64>| {
        let mut bench = Bench::new(&config);
        bench.enqueue(1_010, (A, AP), 1);
        if let Some(us) = voice {
            bench.enqueue_as(us, (A, AP), AccessCategory::Voice, 2);
        }
        let of_a = bench.frames().into_iter().filter(|frame| frame.0 == 1);
        of_a.map(|frame| frame.1).collect::<Vec<i64>>()
    };
    let backoff = (begins(None)[0] - (1_062 + 37)) / 9;
    assert!(backoff > 3, "seed 1 draws a backoff that the voice can break into: {backoff}");
    // Three slot boundaries have passed. The exchange of the voice packet takes 278 us.
    let voice = 1_062 + 37 + 2 * 9 + 1;
    assert_eq!(begins(Some(voice)), [voice, voice + 278 + 37 + (backoff - 3) * 9]);
}

#[test]
fn a_packet_that_finds_no_room_is_dropped_and_a_node_says_if_it_has_room() {
    let mut config = config(&["a"]);
    config.stations[0].node.queue = NodeQueue::Fifo { limit: WaitLimit::Packets(2) };
    let mut bench = Bench::new(&config);
    let has_room = |bench: &Bench| {
        bench.cell.has_room((A, AP), AccessCategory::BestEffort, DataSize::from_bytes(1_500))
    };
    bench.enqueue(1_000, (A, AP), 1);
    assert!(has_room(&bench));
    bench.enqueue(1_000, (A, AP), 2);
    assert!(!has_room(&bench));
    bench.enqueue(1_000, (A, AP), 3);
    assert_eq!(bench.dropped(), [(3, 1_000, DropCause::QueueFull)]);
    assert!(has_room(&bench));
}

/// Sends a hundred packets to one station, then one to the other. Returns when the last one
/// arrives.
fn arrival_behind_a_hundred(queue: NodeQueue) -> i64 {
    let mut config = config(&["a", "b"]);
    config.access_point.queue = queue;
    let mut bench = Bench::new(&config);
    for number in 0..100 {
        bench.enqueue(1_000, (AP, A), number);
    }
    bench.enqueue(1_000, (AP, B), 100);
    let delivered = bench.delivered();
    delivered.iter().find(|&&(number, _)| number == 100).unwrap().1
}

#[test]
fn in_a_fifo_a_packet_waits_for_other_stations_in_fair_queues_for_a_turn() {
    let limit = WaitLimit::Packets(1_000);
    assert_eq!(arrival_behind_a_hundred(NodeQueue::Fifo { limit }), 1_000 + 100 * 315 + 234);
    let fair = NodeQueue::FairCoDel { limit, codel: CoDelConfig::default() };
    // A turn of 256 us lasts two frames of 234 us, because the second one starts within it.
    assert_eq!(arrival_behind_a_hundred(fair), 1_000 + 2 * 315 + 234);
}

#[test]
fn a_packet_for_a_station_out_of_reach_is_given_up() {
    let mut config = config(&["a"]);
    config.powers.hide(AP, A);
    let mut bench = Bench::new(&config);
    bench.enqueue(1_000, (AP, A), 1);
    assert_eq!(bench.dropped().len(), 1);
    assert_eq!(bench.cell.next_event(), None);
}

#[test]
#[should_panic(expected = "two nodes of the cell are named a")]
fn nodes_of_one_name_would_have_the_same_chances() {
    Cell::<u32>::new(&config(&["a", "a"]), Seed::new(1));
}
