//! Controllers over a model of a QUIC stack, in virtual time.

use weir::controller::{EcnMode, Settings};
use weir::{Algorithm, Bitrate, DataSize, RateLimits, TimeDelta};
use weir_quic::testing::{End, LinkConfig, NetworkConfig, Outcome, Rival, SourceConfig, run};

use crate::model::{Model, Receiver};

const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

/// moq's case: 5 Mbit/s, a round-trip time of 100 ms, a queue of 500 ms.
fn moq() -> NetworkConfig {
    NetworkConfig::constant(kbps(5_000), MS(100), MS(500))
}

/// The same with a way back that a download fills.
fn full_way_back() -> NetworkConfig {
    NetworkConfig {
        down: LinkConfig::constant(kbps(5_000), MS(500)),
        rival: Some(Rival { beside: End::Subscriber, from: MS(0) }),
        ..moq()
    }
}

fn outcome(network: NetworkConfig, source: SourceConfig, receiver: Receiver) -> Outcome {
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).unwrap();
    let mut host = Model::new(Algorithm::Sluice, limits, receiver);
    run(&mut host, network, source, MS(35_000), MS(10_000))
}

fn adaptive() -> SourceConfig {
    SourceConfig::adaptive(kbps(500), kbps(10_000))
}

fn fixed() -> SourceConfig {
    SourceConfig::Fixed(kbps(10_000))
}

const WITH_TIMES: Receiver = Receiver { clock: Some(TimeDelta::from_secs(7)), ..Receiver::USUAL };
const WITHOUT_DELAY: Receiver = Receiver { tells_delay: false, ..Receiver::USUAL };

#[test]
fn a_source_that_does_not_follow_fills_the_link_and_no_queue() {
    for receiver in [Receiver::USUAL, WITHOUT_DELAY, WITH_TIMES] {
        let outcome = outcome(moq(), fixed(), receiver);
        assert!(outcome.utilization > 0.97, "{outcome}");
        assert!(outcome.wait(0.95) < MS(30), "{outcome}");
    }
}

#[test]
fn an_encoder_that_follows_has_all_its_frames_on_time() {
    let outcome = outcome(moq(), adaptive(), WITHOUT_DELAY);
    // moq's encoder takes 0.9 of what it may, and does not climb at once.
    assert!(outcome.utilization > 0.82, "{outcome}");
    assert!(outcome.wait(0.95) < MS(60), "{outcome}");
    assert!(outcome.whole > 0.99 && outcome.frame_delay(0.95) < MS(150), "{outcome}");
}

#[test]
fn one_ack_for_ten_packets_is_enough() {
    let receiver = Receiver { ack_every: 10, ..WITHOUT_DELAY };
    let bulk = outcome(moq(), fixed(), receiver);
    assert!(bulk.utilization > 0.95 && bulk.wait(0.95) < MS(30), "{bulk}");
    let followed = outcome(moq(), adaptive(), receiver);
    assert!(followed.utilization > 0.82, "{followed}");
}

#[test]
fn a_full_way_back_takes_no_more_than_two_fifths() {
    let with_times = outcome(full_way_back(), adaptive(), WITH_TIMES);
    assert!(with_times.utilization > 0.82, "{with_times}");
    for receiver in [Receiver::USUAL, WITHOUT_DELAY] {
        let outcome = outcome(full_way_back(), adaptive(), receiver);
        assert!(outcome.utilization > 0.6, "{outcome}");
        assert!(outcome.wait(0.95) < MS(60), "{outcome}");
    }
}

#[test]
fn beside_a_flow_that_fills_the_queue_a_part_is_left() {
    let network =
        NetworkConfig { rival: Some(Rival { beside: End::Publisher, from: MS(0) }), ..moq() };
    let outcome = outcome(network, adaptive(), WITHOUT_DELAY);
    assert!(outcome.utilization > 0.25, "{outcome}");
}

#[test]
fn the_own_queue_after_a_fall_of_the_capacity_is_not_anothers() {
    let mut network = moq();
    network.up.capacity = vec![(MS(0), kbps(5_000)), (MS(15_000), kbps(1_000))];
    for source in [fixed(), adaptive()] {
        let outcome = outcome(network.clone(), source, WITHOUT_DELAY);
        assert!(outcome.wait(0.9) < MS(60), "{outcome}");
        assert!(outcome.utilization > 0.75, "{outcome}");
    }
}

#[test]
fn marks_above_a_wait_keep_the_queue_near_it() {
    let mut network = moq();
    network.up.marks_above = Some(MS(5));
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).unwrap();
    let settings = Settings::new(limits).with_ecn(EcnMode::L4s);
    let mut host = Model::new(Algorithm::Sluice, settings, WITH_TIMES);
    let outcome = run(&mut host, network, fixed(), MS(30_000), MS(10_000));
    assert!(outcome.utilization > 0.8 && outcome.wait(0.95) < MS(15), "{outcome}");
}

#[test]
fn equal_seeds_give_equal_results() {
    let mut network = moq();
    network.up.loss = 0.02;
    let one = outcome(network.clone(), adaptive(), Receiver::USUAL);
    assert_eq!(one, outcome(network, adaptive(), Receiver::USUAL));
}

/// The controller over a link of this capacity and round-trip time, with a source of twice that.
fn over(capacity: Bitrate, rtt: TimeDelta) -> Outcome {
    let limits = RateLimits::new(capacity * 0.05, capacity * 0.25, capacity * 4.0).unwrap();
    let mut host = Model::new(Algorithm::Sluice, limits, Receiver::USUAL);
    let network = NetworkConfig::constant(capacity, rtt, MS(500));
    let source = SourceConfig::Fixed(capacity * 2.0);
    run(&mut host, network, source, MS(10_000) + rtt * 20, MS(5_000) + rtt * 10)
}

#[test]
fn any_rate_and_any_round_trip_time_do() {
    for capacity in [100, 1_000, 10_000].map(kbps) {
        for rtt in [1, 20, 100, 300].map(MS) {
            let outcome = over(capacity, rtt);
            assert!(outcome.utilization > 0.9, "{capacity}, {rtt}: {outcome}");
            assert_eq!(outcome.lost, 0.0, "{capacity}, {rtt}: {outcome}");
            // A packet of 1,200 bytes takes 98 ms at 100 kbit/s.
            let packet = DataSize::from_bytes(1_228) / capacity;
            let most = (packet * 3 + rtt * 0.8).max(MS(15));
            assert!(outcome.wait(0.9) < most, "{capacity}, {rtt}: {outcome}");
        }
        let far = over(capacity, MS(1_000));
        assert!(far.utilization > 0.7, "{capacity}: {far}");
    }
}
