//! Compares simulated cells with ns-3, Bianchi's model and a Monte-Carlo simulation of the same
//! cells.
//!
//! The ns-3 figures are of version 3.37 at 5 GHz: 20 MHz, long guard interval, constant rates, all
//! control frames at 24 Mbit/s, fixed receive power, packet sockets, 20 s.

use rayon::prelude::*;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::wifi::phy::{ACK, BLOCK_ACK, Band, DataRate, Mcs, a_mpdu_with, mpdu_size};
use weir_net::wifi::retry::{CongestionAware, RetryPolicy};
use weir_net::wifi::theory::{Saturated, Saturation};
use weir_net::wifi::{
    AccessCategory, Aggregation, Arrivals, Cell, CellConfig, Edca, Link, Neighbour, NodeConfig,
    NodeCounters, NodeId, RateControl, Station, StationLoad,
};

use super::{Check, Limit};

const NS_3: &str = "ns-3";
const NS_3_DOCUMENTATION: &str = "ns-3's documentation";
const BIANCHI: &str = "Bianchi";
const MONTE_CARLO: &str = "Monte Carlo";

const BAND: Band = Band::GHZ_5;
const THROUGHPUT_LIMIT: Limit = Limit { relative: 0.02, absolute: 0.0 };
const COLLISION_LIMIT: Limit = Limit { relative: 0.0, absolute: 0.015 };
/// Limit of loss in percent. It is wide, because the references are samples too.
const LOSS_LIMIT: Limit = Limit { relative: 0.15, absolute: 0.3 };

/// Size of an IP packet that fills an Ethernet frame.
const PACKET: DataSize = DataSize::from_bytes(1_500);

fn rate(mcs: u8) -> DataRate {
    DataRate::long_guard(Mcs::new(mcs).expect("there are 16"))
}

fn station(name: String, mcs: u8, aggregation: Aggregation) -> Station {
    let control = RateControl::Fixed(rate(mcs));
    let mut station = Station::new(name, control.clone(), control);
    station.node.aggregation = aggregation;
    station
}

/// Stations that always have a packet for the access point.
fn saturated(stations: u32, mcs: u8, aggregation: Aggregation) -> CellConfig {
    let mut all = Vec::new();
    for index in 1..=stations {
        let mut one = station(format!("station-{index}"), mcs, aggregation);
        one.up.loads.push(StationLoad::new(Arrivals::Saturated, PACKET));
        all.push(one);
    }
    CellConfig::new(BAND, all)
}

/// An access point that always has a packet for each station.
fn saturated_down(stations: u32, aggregation: Aggregation) -> CellConfig {
    let mut config = saturated(stations, 7, aggregation);
    config.access_point.aggregation = aggregation;
    for station in &mut config.stations {
        station.down.loads = std::mem::take(&mut station.up.loads);
    }
    config
}

/// Runs a cell for a time and returns the counters of its nodes, the access point first.
fn run(config: &CellConfig, secs: i64) -> Vec<NodeCounters> {
    let mut cell = Cell::<()>::new(config, Seed::new(1));
    let none = cell.poll(Timestamp::from_secs(secs));
    assert!(none.is_none(), "loads have no payload to give");
    (0..=config.stations.len()).map(|node| cell.counters(NodeId(node))).collect()
}

/// Throughput of all nodes together, in Mbit/s.
fn throughput(nodes: &[NodeCounters], secs: i64) -> f64 {
    let delivered: DataSize = nodes.iter().map(|node| node.delivered).sum();
    (delivered / TimeDelta::from_secs(secs)).as_mbps_f64()
}

fn collisions(nodes: &[NodeCounters]) -> f64 {
    let failures: u64 = nodes.iter().map(|node| node.failures).sum();
    let attempts: u64 = nodes.iter().map(|node| node.attempts).sum();
    failures as f64 / attempts as f64
}

fn mbps(quantity: String, source: &'static str, reference: f64, measured: f64) -> Check {
    Check { quantity, source, reference, measured, limit: THROUGHPUT_LIMIT, decimals: 2 }
}

/// Figures of ns-3: number of stations, throughput in Mbit/s, and share of failed attempts.
const SATURATION: [(u32, f64, f64); 5] = [
    (1, 31.38, 0.000),
    (2, 32.13, 0.111),
    (5, 31.15, 0.265),
    (10, 29.40, 0.379),
    (20, 27.12, 0.486),
];

/// Throughput and collisions of saturated stations without aggregation.
pub fn saturation(is_quick: bool) -> Vec<Check> {
    let secs = if is_quick { 20 } else { 100 };
    let checks = SATURATION.par_iter().flat_map(|&(stations, ns_3_mbps, ns_3_failed)| {
        let nodes = run(&saturated(stations, 7, Aggregation::NONE), secs);
        let model = bianchi(stations, 1);
        let (measured, failed) = (throughput(&nodes, secs), collisions(&nodes));
        let rate = format!("{stations} saturated, Mbit/s");
        let share = format!("{stations} saturated, failed attempts");
        vec![
            mbps(rate.clone(), NS_3, ns_3_mbps, measured),
            mbps(rate, BIANCHI, model.throughput.as_mbps_f64(), measured),
            failures(share.clone(), NS_3, ns_3_failed, failed),
            failures(share, BIANCHI, model.collision, failed),
        ]
    });
    checks.collect()
}

fn failures(quantity: String, source: &'static str, reference: f64, measured: f64) -> Check {
    Check { quantity, source, reference, measured, limit: COLLISION_LIMIT, decimals: 3 }
}

/// Bianchi's closed form for frames of MCS 7 with `packets` packets of 1500 bytes. After a
/// collision the other stations resume once the channel is idle for AIFS. EIFS does not apply,
/// because they could not tell a frame from noise.
fn bianchi(stations: u32, packets: u64) -> Saturation {
    let edca = Edca::STATION;
    let edca = edca.of(AccessCategory::BestEffort);
    let (aifs, rate) = (BAND.aifs(edca.aifsn), rate(7));
    let mpdu = mpdu_size(PACKET);
    let (content, answer) = match packets {
        1 => (mpdu, ACK),
        _ => ((0..packets).fold(DataSize::ZERO, |size, _| a_mpdu_with(size, mpdu)), BLOCK_ACK),
    };
    let data = rate.duration(content, &BAND);
    let answer = rate.mcs.control_rate().duration(answer, &BAND);
    let model = Saturated {
        stations,
        cw_min: edca.cw_min,
        cw_max: edca.cw_max,
        attempts: 7,
        payload: DataSize::from_bytes(packets * PACKET.as_bytes()),
        slot: BAND.slot,
        success: data + BAND.sifs + answer + aifs,
        collision: data + aifs,
    };
    model.solve()
}

/// Goodput of UDP in Mbit/s, one station, A-MPDUs of up to 65 535 bytes, MCS 0 to 7.
const AGGREGATED: [f64; 8] = [5.81, 11.83, 17.79, 23.80, 35.73, 47.62, 53.61, 59.55];
/// Share of a packet of 1500 bytes that counts as goodput of UDP.
const UDP_SHARE: f64 = 1_472.0 / 1_500.0;
/// Throughput of ns-3 in Mbit/s, for one station at MCS 7 to the access point, and for the access
/// point to five stations. For several sending stations ns-3 has less, because it requests a
/// missing BlockAck with a frame of its own.
const AGGREGATED_NS_3: f64 = 60.88;
/// Numbers of stations that lose a whole A-MPDU in a collision and send it again.
const AGGREGATED_STATIONS: [u32; 4] = [1, 2, 5, 10];
/// Packets of 1500 bytes that MCS 7 carries in 5.484 ms.
const AGGREGATED_PACKETS: u64 = 28;

/// Throughput with aggregation.
pub fn aggregation(is_quick: bool) -> Vec<Check> {
    let secs = if is_quick { 20 } else { 100 };
    let all = Aggregation::STANDARD;
    let rates = AGGREGATED.par_iter().enumerate().map(|(mcs, &reference)| {
        let mcs = mcs as u8;
        let measured = throughput(&run(&saturated(1, mcs, all), secs), secs) * UDP_SHARE;
        let quantity = format!("A-MPDU, MCS {mcs}, UDP Mbit/s");
        mbps(quantity, NS_3_DOCUMENTATION, reference, measured)
    });
    let mut checks: Vec<Check> = rates.collect();
    let one = run(&saturated(1, 7, all), secs);
    let down = run(&saturated_down(5, all), secs);
    for (what, nodes) in [("1 saturated", one), ("access point to 5", down)] {
        let quantity = format!("A-MPDU, {what}, Mbit/s");
        checks.push(mbps(quantity, NS_3, AGGREGATED_NS_3, throughput(&nodes, secs)));
    }
    checks.par_extend(AGGREGATED_STATIONS.par_iter().map(|&stations| {
        let measured = throughput(&run(&saturated(stations, 7, all), secs), secs);
        let model = bianchi(stations, AGGREGATED_PACKETS).throughput.as_mbps_f64();
        mbps(format!("A-MPDU, {stations} saturated, Mbit/s"), BIANCHI, model, measured)
    }));
    checks
}

/// Packet size of a hidden terminal that sends a burst every 33 ms. Its MPDUs have 1224 bytes.
const HIDDEN_PACKET: DataSize = DataSize::from_bytes(1_186);
/// Share of the IP packet in its MPDU. The references count MPDUs, the model counts IP packets.
const MPDU_SHARE: f64 = 1_186.0 / 1_224.0;
const HIDDEN_PERIOD: TimeDelta = TimeDelta::from_millis(33);
/// Arrivals at the station, as Mbit/s of MPDUs.
const ARRIVALS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 3.0, 4.0];

/// Loss in percent for each of `ARRIVALS`, next to bursts of `frames` frames.
struct Losses {
    frames: u32,
    retry: RetryPolicy,
    source: &'static str,
    percent: [f64; 6],
}

/// The retry extension, always active regardless of congestion, as in the Monte-Carlo simulation.
const fn extended(extension: u32, reset_window: bool) -> RetryPolicy {
    let mut policy = CongestionAware::new(extension);
    policy.level_threshold = f64::INFINITY;
    policy.queue_threshold = DataSize::MAX;
    policy.reset_window = reset_window;
    RetryPolicy::CongestionAware(policy)
}

/// Measured with ns-3 for 60 s, or by a Monte-Carlo simulation of the station alone for 300 s.
const LOSSES: [Losses; 10] = {
    const fn row(
        frames: u32,
        retry: RetryPolicy,
        source: &'static str,
        percent: [f64; 6],
    ) -> Losses {
        Losses { frames, retry, source, percent }
    }
    let plain = RetryPolicy::Limit(7);
    [
        row(32, plain, NS_3, [4.36, 3.34, 3.70, 2.89, 2.41, 2.19]),
        row(32, plain, MONTE_CARLO, [4.02, 3.62, 3.37, 2.71, 2.39, 2.13]),
        row(43, plain, NS_3, [10.2, 10.3, 8.93, 6.85, 5.66, 4.58]),
        row(43, plain, MONTE_CARLO, [10.65, 10.23, 8.82, 7.03, 5.76, 4.74]),
        row(32, extended(3, true), MONTE_CARLO, [2.09, 2.01, 1.88, 1.56, 1.45, 1.28]),
        row(32, extended(5, true), MONTE_CARLO, [0.48, 0.56, 0.56, 0.52, 0.44, 0.42]),
        row(43, extended(3, true), MONTE_CARLO, [7.1, 7.0, 6.2, 5.1, 4.2, 3.6]),
        row(43, extended(5, true), MONTE_CARLO, [3.7, 3.6, 3.4, 2.9, 2.4, 2.1]),
        row(32, extended(3, false), MONTE_CARLO, [0.0, 0.005, 0.0, 0.01, 0.01, 0.01]),
        row(43, extended(3, false), MONTE_CARLO, [0.08, 0.10, 0.08, 0.10, 0.10, 0.09]),
    ]
};
/// Columns for `--quick`: the middle of each row.
const QUICK_ARRIVALS: std::ops::Range<usize> = 2..4;

fn describe(retry: RetryPolicy) -> String {
    match retry {
        RetryPolicy::Limit(limit) => format!("{limit} attempts"),
        RetryPolicy::CongestionAware(CongestionAware {
            limit, extension, reset_window, ..
        }) => {
            let reset = if reset_window { "with" } else { "without" };
            format!("{limit} + {extension} attempts {reset} reset")
        }
    }
}

/// A station that sends at random times, next to a hidden terminal.
fn beside_hidden(frames: u32, mbps: f64, retry: RetryPolicy) -> CellConfig {
    let mut station = station("station".into(), 7, Aggregation::NONE);
    station.node.retry = retry;
    let arrivals = Arrivals::Poisson(Bitrate::from_bps_f64(mbps * 1e6 * MPDU_SHARE));
    station.up.loads.push(StationLoad::new(arrivals, HIDDEN_PACKET));
    let bursts = Arrivals::Bursts { period: HIDDEN_PERIOD, packets: frames };
    let link =
        Link::new(RateControl::Fixed(rate(7))).with_load(StationLoad::new(bursts, HIDDEN_PACKET));
    let mut config = CellConfig::new(BAND, vec![station]);
    config.neighbours.push(Neighbour::new(NodeConfig::new("hidden"), link));
    config.powers.hide(NodeId::station(0), NodeId::station(1));
    config
}

/// Loss next to a hidden terminal, with and without the extension.
pub fn hidden_terminal(is_quick: bool) -> Vec<Check> {
    let (secs, arrivals) = if is_quick { (300, QUICK_ARRIVALS) } else { (600, 0..ARRIVALS.len()) };
    let rows: Vec<(&Losses, usize)> =
        LOSSES.iter().flat_map(|row| arrivals.clone().map(move |index| (row, index))).collect();
    let checks = rows.par_iter().map(|&(losses, index)| {
        let Losses { frames, retry, source, percent } = losses;
        let mbps = ARRIVALS[index];
        let station = run(&beside_hidden(*frames, mbps, *retry), secs)[1];
        Check {
            quantity: format!("bursts of {frames}, {}, {mbps} Mbit/s, loss %", describe(*retry)),
            source,
            reference: percent[index],
            measured: 100.0 * station.retry_limit as f64 / station.offered_packets as f64,
            limit: LOSS_LIMIT,
            decimals: 2,
        }
    });
    checks.collect()
}

/// The capacity that a station estimates next to bursts of 32 frames, in Mbit/s of MPDUs, from the
/// same simulation.
const CAPACITIES: [f64; 6] = [3.93, 4.23, 4.90, 6.20, 7.51, 8.68];
/// Wide, because the value depends on the exact definition of the transmit delay.
const CAPACITY_LIMIT: Limit = Limit { relative: 0.1, absolute: 0.0 };

/// The capacity that the station estimates. Theorem 1 predicts 30 % more, because it ignores the
/// backoff that continues after a burst and the packets that are given up.
pub fn capacity(is_quick: bool) -> Vec<Check> {
    let (secs, arrivals) = if is_quick { (300, QUICK_ARRIVALS) } else { (600, 0..ARRIVALS.len()) };
    let checks = arrivals.into_par_iter().map(|index| {
        let mbps = ARRIVALS[index];
        let config = beside_hidden(32, mbps, RetryPolicy::Limit(7));
        Check {
            quantity: format!("bursts of 32, capacity estimated, {mbps} Mbit/s, Mbit/s"),
            source: MONTE_CARLO,
            reference: CAPACITIES[index],
            measured: estimated_capacity(&config, secs),
            limit: CAPACITY_LIMIT,
            decimals: 2,
        }
    });
    checks.collect()
}

/// Combines the estimates of all seconds: delivered bits over the transmit delay that the estimates
/// imply.
fn estimated_capacity(config: &CellConfig, secs: i64) -> f64 {
    let mut cell = Cell::<()>::new(config, Seed::new(1));
    let station = NodeId::station(0);
    let (mut delivered, mut delay, mut before) = (0.0, 0.0, DataSize::ZERO);
    for now in (1..=secs).map(Timestamp::from_secs) {
        let none = cell.poll(now);
        assert!(none.is_none(), "loads have no payload to give");
        let total = cell.counters(station).delivered;
        let bits = total.saturating_sub(std::mem::replace(&mut before, total)).as_bits() as f64;
        let seen = cell.congestion(now, station, AccessCategory::BestEffort);
        let capacity = seen.capacity.unwrap_or(Bitrate::ZERO);
        if capacity > Bitrate::ZERO {
            delivered += bits;
            delay += bits / capacity.as_bps_f64();
        }
    }
    delivered / delay / MPDU_SHARE / 1e6
}
