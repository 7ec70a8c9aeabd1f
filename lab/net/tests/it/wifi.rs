//! Compares a cell with independent results: saturation throughput and aggregation.
//!
//! The references are runs of ns-3 3.37, and arithmetic. See docs/reference/wifi.md for the
//! references and the open questions.

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::wifi::{
    Aggregation, Arrivals, Band, Cell, CellConfig, DataRate, Mcs, NodeCounters, NodeId,
    RateControl, Station, StationLoad,
};

pub fn mcs(index: u8) -> RateControl {
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
