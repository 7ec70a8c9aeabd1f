//! Compares losses beside a hidden terminal with runs of ns-3 3.37 and with a slot-based
//! Monte-Carlo simulation: ten minutes of a cell for each value, so these tests are apart.
//!
//! See docs/reference/wifi.md for the references and the open questions.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::wifi::{
    Arrivals, Band, Cell, CellConfig, CongestionAware, Link, Neighbour, NodeConfig, NodeCounters,
    NodeId, RetryPolicy, Station, StationLoad,
};

use crate::wifi::mcs;

/// MPDUs of the hidden terminal's cell: 1224 bytes.
const PACKET: DataSize = DataSize::from_bytes(1_224 - 38);

/// A station with Poisson arrivals, at a bitrate that counts MPDUs, and a neighbour that it does
/// not hear. The neighbour sends `packets` packets every 33 ms.
fn hidden(arrival: Bitrate, packets: u32, retry: RetryPolicy) -> CellConfig {
    let mut station = Station::new("station", mcs(7), mcs(7));
    station.node.retry = retry;
    let arrival = arrival * (PACKET.as_bytes() as f64 / 1_224.0);
    station.up.loads.push(StationLoad::new(Arrivals::Poisson(arrival), PACKET));
    let mut neighbour = Neighbour::new(NodeConfig::new("neighbour"), Link::new(mcs(7)));
    let period = TimeDelta::from_millis(33);
    neighbour.link.loads.push(StationLoad::new(Arrivals::Bursts { period, packets }, PACKET));
    let mut config = CellConfig::new(Band::GHZ_2_4, vec![station]);
    config.neighbours.push(neighbour);
    config.powers.hide(NodeId(1), NodeId(2));
    // The neighbour does not hear the access point's answers either, so it does not defer to them.
    config.powers.between.push((NodeId(0), NodeId(2), f64::NEG_INFINITY));
    config
}

/// Percentage of packets given up, and attempts per packet.
fn hidden_loss(config: &CellConfig) -> (f64, f64) {
    let mut cell = Cell::<()>::new(config, Seed::new(1));
    assert!(cell.poll(Timestamp::from_secs(600)).is_none());
    let NodeCounters { offered_packets, retry_limit, attempts, .. } = cell.counters(NodeId(1));
    let packets = offered_packets as f64;
    (100.0 * retry_limit as f64 / packets, attempts as f64 / packets)
}

/// Arrival rates, in kbit/s.
const ARRIVALS: [u64; 3] = [500, 1_000, 4_000];

/// Asserts that the losses at these rates are within 15 % or 0.3 percentage points of the
/// reference.
fn assert_losses(packets: u32, retry: RetryPolicy, reference: [f64; 3]) {
    for (kbps, reference) in ARRIVALS.into_iter().zip(reference) {
        let loss = hidden_loss(&hidden(Bitrate::from_kbps(kbps), packets, retry));
        let tolerance = f64::max(0.15 * reference, 0.3);
        assert!((loss.0 - reference).abs() < tolerance, "{kbps} kbit/s: {loss:?}");
    }
}

fn extended(extension: u32, reset_window: bool) -> RetryPolicy {
    // Congestion never ends the extension, so the losses show the effect of the attempts alone.
    let policy = CongestionAware::new(extension)
        .with_level_threshold(f64::INFINITY)
        .with_queue_threshold(DataSize::MAX)
        .with_reset_window(reset_window);
    RetryPolicy::CongestionAware(policy)
}

#[test]
fn hidden_bursts_take_as_much_as_in_ns_3_and_in_a_monte_carlo_simulation() {
    assert_losses(32, RetryPolicy::Limit(7), [3.62, 3.37, 2.13]);
    assert_losses(43, RetryPolicy::Limit(7), [10.23, 8.82, 4.74]);
}

#[test]
fn with_a_reset_of_the_window_each_further_attempt_takes_a_share_away() {
    assert_losses(32, extended(3, true), [2.01, 1.88, 1.28]);
    assert_losses(32, extended(5, true), [0.56, 0.56, 0.42]);
    assert_losses(32, extended(7, true), [0.01, 0.00, 0.01]);
    assert_losses(43, extended(3, true), [7.0, 6.2, 3.6]);
    assert_losses(43, extended(5, true), [3.6, 3.4, 2.1]);
    assert_losses(43, extended(7, true), [0.19, 0.16, 0.14]);
}

#[test]
fn without_a_reset_three_further_attempts_take_all_of_it_away() {
    assert_losses(32, extended(3, false), [0.01, 0.00, 0.01]);
    assert_losses(43, extended(3, false), [0.10, 0.08, 0.09]);
}
