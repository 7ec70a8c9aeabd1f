//! Compares a cell with independent results: saturation throughput, aggregation, and loss beside a
//! hidden terminal.
//!
//! The references are runs of ns-3 3.37, a slot-based Monte-Carlo simulation of the hidden
//! terminal, and arithmetic. See docs/reference/wifi.md for the references and the open questions.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::wifi::{
    Aggregation, Arrivals, Band, Cell, CellConfig, CongestionAware, DataRate, Link, Mcs, Neighbour,
    NodeConfig, NodeCounters, NodeId, RateControl, RetryPolicy, Station, StationLoad,
};

fn mcs(index: u8) -> RateControl {
    RateControl::Fixed(DataRate::long_guard(Mcs::new(index).expect("0 to 15")))
}

/// Stations that always have packets of 1500 bytes for the access point.
fn saturated(count: usize, rate: &RateControl, aggregation: Aggregation, band: Band) -> CellConfig {
    let load = StationLoad::new(Arrivals::Saturated, DataSize::from_bytes(1_500));
    let station = |index| {
        let mut station = Station::new(format!("station-{index}"), rate.clone(), rate.clone());
        station.node.aggregation = aggregation;
        station.up.loads.push(load);
        station
    };
    CellConfig::new(band, (0..count).map(station).collect())
}

/// Throughput of all stations together in Mbit/s, and the share of attempts that failed.
fn throughput(config: &CellConfig, seconds: i64, seed: u64) -> (f64, f64) {
    let mut cell = Cell::<()>::new(config, Seed::new(seed));
    assert!(cell.poll(Timestamp::from_secs(seconds)).is_none());
    let stations = (0..config.stations.len()).map(|index| cell.counters(NodeId::station(index)));
    let (mut delivered, mut attempts, mut failures) = (DataSize::ZERO, 0, 0);
    for NodeCounters { delivered: own, attempts: tried, failures: failed, .. } in stations {
        delivered += own;
        (attempts, failures) = (attempts + tried, failures + failed);
    }
    let rate = delivered / TimeDelta::from_secs(seconds);
    (rate.as_mbps_f64(), failures as f64 / attempts as f64)
}

#[test]
fn a_station_alone_delivers_31_37_mbps_at_mcs_7() {
    for band in [Band::GHZ_2_4, Band::GHZ_5] {
        let (rate, failed) = throughput(&saturated(1, &mcs(7), Aggregation::NONE, band), 400, 1);
        // 234 us of data, 10 + 34 us of answer, 37 us of AIFS, and a mean backoff of 67.5 us. The
        // sum is the same at 5 GHz.
        assert!((rate - 1_500.0 * 8.0 / 382.5).abs() < 0.01, "{rate}");
        assert_eq!(failed, 0.0);
    }
}

#[test]
fn throughput_and_collisions_of_2_to_20_stations_are_those_of_ns_3() {
    // Stations, Mbit/s, and share of attempts that failed, at 5 GHz.
    let reference = [(2, 32.05, 0.110), (5, 31.02, 0.267), (10, 29.31, 0.379), (20, 27.09, 0.486)];
    for (count, rate, failed) in reference {
        let config = saturated(count, &mcs(7), Aggregation::NONE, Band::GHZ_5);
        let ours = throughput(&config, 40, 1);
        assert!((ours.0 / rate - 1.0).abs() < 0.02, "{count} stations: {ours:?}");
        assert!((ours.1 - failed).abs() < 0.015, "{count} stations: {ours:?}");
    }
}

#[test]
fn aggregation_of_64_kb_delivers_what_ns_3_documents() {
    // Mbit/s of UDP payload, with 1472 bytes per packet, for MCS 0 to 7.
    let reference = [5.81, 11.83, 17.79, 23.80, 35.73, 47.62, 53.61, 59.55];
    for (index, rate) in (0..).zip(reference) {
        let config = saturated(1, &mcs(index), Aggregation::STANDARD, Band::GHZ_5);
        let ours = throughput(&config, 20, 1).0 * 1_472.0 / 1_500.0;
        assert!((ours / rate - 1.0).abs() < 0.02, "MCS {index}: {ours}");
    }
}

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
fn with_a_reset_of_the_window_each_further_attempt_takes_a_share_of_the_loss_away() {
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
