//! A stack over a bottleneck in virtual time: no sockets, and nothing waits.

use std::sync::Arc;

use weir::{Algorithm, Bitrate, RateLimits, TimeDelta};
use weir_quic::testing::{End, LinkConfig, NetworkConfig, Outcome, Rival, SourceConfig, run};

use crate::pair::Pair;
use crate::shim::proto::congestion::{ControllerFactory, CubicConfig};
use crate::shim::{self, RealTime};

const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
const SEED: u8 = 7;

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

fn real_time(algorithm: Algorithm) -> Arc<RealTime> {
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).unwrap();
    Arc::new(RealTime::new(algorithm, limits))
}

fn pair(factory: Arc<dyn ControllerFactory + Send + Sync>) -> Pair {
    let mut transport = shim::transport();
    transport.congestion_controller_factory(factory);
    Pair::new(transport, SEED)
}

/// moq's case: 5 Mbit/s, a round-trip time of 100 ms, a queue of 500 ms.
fn moq() -> NetworkConfig {
    NetworkConfig::constant(kbps(5_000), MS(100), MS(500))
}

fn outcome(algorithm: Algorithm, network: NetworkConfig, source: SourceConfig) -> Outcome {
    run(&mut pair(real_time(algorithm)), network, source, MS(20_000), MS(8_000))
}

fn fixed() -> SourceConfig {
    SourceConfig::Fixed(kbps(10_000))
}

fn adaptive() -> SourceConfig {
    SourceConfig::adaptive(kbps(1_000), kbps(10_000))
}

#[test]
fn a_source_that_does_not_follow_fills_the_link_and_no_queue() {
    let outcome = outcome(Algorithm::Sluice, moq(), fixed());
    assert!(outcome.utilization > 0.97, "{outcome}");
    assert!(outcome.wait(0.95) < MS(30), "{outcome}");
    assert_eq!(outcome.lost, 0.0, "{outcome}");
}

#[test]
fn an_encoder_that_follows_has_all_its_frames_on_time() {
    let outcome = outcome(Algorithm::Sluice, moq(), adaptive());
    assert!(outcome.utilization > 0.8, "{outcome}");
    assert!(outcome.wait(0.95) < MS(60), "{outcome}");
    assert!(outcome.whole > 0.99 && outcome.frame_delay(0.95) < MS(150), "{outcome}");
}

#[test]
fn packets_that_are_lost_at_random_take_little() {
    let mut network = moq();
    network.up.loss = 0.02;
    let outcome = outcome(Algorithm::Sluice, network, fixed());
    assert!(outcome.utilization > 0.85, "{outcome}");
}

#[test]
fn a_full_way_back_leaves_more_than_half() {
    let network = NetworkConfig {
        down: LinkConfig::constant(kbps(5_000), MS(500)),
        rival: Some(Rival { beside: End::Subscriber, from: MS(0) }),
        ..moq()
    };
    let outcome = outcome(Algorithm::Sluice, network, adaptive());
    let (utilization, whole) = shim::FULL_WAY_BACK;
    assert!(outcome.utilization > utilization, "{outcome}");
    assert!(outcome.whole > whole, "{outcome}");
}

#[test]
fn every_controller_drives_a_connection() {
    for algorithm in Algorithm::all() {
        let outcome = outcome(algorithm, moq(), adaptive());
        assert!(outcome.utilization > 0.05, "{algorithm}: {outcome}");
        assert!(outcome.wait(0.95) < MS(500), "{algorithm}: {outcome}");
    }
}

#[test]
fn the_stacks_own_controller_fills_the_queue_of_the_same_network() {
    // What the others are compared with: the harness is fit for it.
    let mut pair = pair(Arc::new(CubicConfig::default()));
    let outcome = run(&mut pair, moq(), fixed(), MS(20_000), MS(8_000));
    assert!(outcome.utilization > 0.95 && outcome.wait(0.5) > MS(200), "{outcome}");
}

#[test]
fn equal_seeds_give_equal_results() {
    let mut network = moq();
    network.up.loss = 0.02;
    let one = outcome(Algorithm::Sluice, network.clone(), adaptive());
    assert_eq!(one, outcome(Algorithm::Sluice, network, adaptive()));
}

#[test]
fn an_application_finds_the_control_of_its_connection() {
    let mut pair = pair(real_time(Algorithm::Sluice));
    run(&mut pair, moq(), fixed(), MS(5_000), MS(0));
    let state = shim::state(pair.connection().unwrap()).unwrap();
    let control = shim::control(state.clone_box()).unwrap();
    assert!(control.media_bitrate() > kbps(2_000), "{control:?}");
    control.set_limits(RateLimits::new(kbps(100), kbps(300), kbps(1_000)).unwrap());
    assert_eq!(control.target().bitrate, kbps(1_000));
    assert_eq!(shim::host::rate_of(state), Some(control.media_bitrate()));
    // A controller of the stack has none.
    let cubic = Arc::new(CubicConfig::default()).build(std::time::Instant::now(), 1_200);
    assert!(shim::control(cubic).is_none());
}
