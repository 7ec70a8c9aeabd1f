//! Flows through a Wi-Fi cell.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::path::AccessPlan;
use weir_net::wifi::{
    AccessCategory, Association, Band, CellConfig, DataRate, Mcs, NODE_INTERVAL, NodeId,
    RateControl, Station,
};
use weir_net::{Hop, LinkConfig, Schedule, Seed};
use weir_sim::trace::{Row, Trace};
use weir_sim::{Config, Congestion, Cubic, Direction, FlowConfig, FlowKind, Tcp, Udp, run};

const SECS: i64 = 10;

/// Two stations at MCS 7, connected to a path with a one-way delay of 10 ms.
fn config(flows: Vec<FlowConfig>) -> Config {
    let rate = RateControl::Fixed(DataRate::long_guard(Mcs::new(7).unwrap()));
    let station = |name| Station::new(name, rate.clone(), rate.clone());
    let link = LinkConfig::unlimited(TimeDelta::from_millis(10));
    let hops = vec![Hop::new(link.clone(), link)];
    let cell = CellConfig::new(Band::GHZ_2_4, vec![station("near"), station("far")]);
    let config = Config::wired(TimeDelta::from_secs(SECS), hops, flows);
    config.with_access(Some(AccessPlan::new(cell)))
}

fn flow(name: &str, direction: Direction, station: Option<usize>, traffic: FlowKind) -> FlowConfig {
    let associate = |index| {
        let category = AccessCategory::BestEffort;
        Association { station: NodeId::station(index), category }.into()
    };
    FlowConfig::new(name, TimeDelta::from_secs(SECS), traffic)
        .with_direction(direction)
        .with_attachment(station.map(associate))
}

fn tcp() -> FlowKind {
    FlowKind::Tcp(Tcp::new(Congestion::Cubic(Cubic::Rfc9438)))
}

fn udp(kbps: u64) -> FlowKind {
    let rate = Schedule::constant(Bitrate::from_kbps(kbps)).unwrap();
    FlowKind::Udp(Udp::new(rate, DataSize::from_bytes(1_500)))
}

fn rows(trace: &Trace, flow: usize) -> impl Iterator<Item = &Row> {
    trace.rows.iter().filter(move |row| row.flow == flow)
}

fn mbps(trace: &Trace, flow: usize) -> f64 {
    let received: DataSize = rows(trace, flow).map(|row| row.received).sum();
    (received / TimeDelta::from_secs(SECS)).as_mbps_f64()
}

#[test]
fn packets_cross_the_cell_and_the_path_behind_it_both_ways() {
    for direction in [Direction::Up, Direction::Down] {
        let trace = run(&config(vec![flow("udp-1", direction, Some(0), udp(1_000))]), Seed::new(1));
        let rate = mbps(&trace, 0);
        assert!((0.98..=1.0).contains(&rate), "{direction:?}: {rate}");
        let sender = if direction == Direction::Up { "near" } else { "ap" };
        let node = trace.nodes.iter().position(|node| node == sender).unwrap();
        let own = trace.access.wifi.rows.iter().filter(|row| row.node == node);
        let delivered: u64 = own.map(|row| row.delivered_packets).sum();
        let received: u64 = rows(&trace, 0).map(|row| row.received.as_bytes() / 1_500).sum();
        // The last one or two packets may still be on the path behind the cell.
        assert!(delivered.abs_diff(received) <= 2, "{delivered} and {received}");
    }
}

#[test]
fn a_flow_that_is_at_no_station_does_not_cross_the_cell() {
    let trace = run(&config(vec![flow("udp-1", Direction::Up, None, udp(1_000))]), Seed::new(1));
    assert!(mbps(&trace, 0) > 0.98);
    assert!(trace.access.wifi.rows.iter().all(|row| row.attempts == 0));
}

#[test]
fn tcp_at_a_station_leaves_its_host_with_a_short_queue_and_fills_the_air() {
    let trace = run(&config(vec![flow("tcp-1", Direction::Up, Some(0), tcp())]), Seed::new(1));
    assert!(mbps(&trace, 0) > 20.0, "{}", mbps(&trace, 0));
    let longest = rows(&trace, 0).map(|row| row.queue).max().unwrap();
    // The limit counts payload: 128 KiB plus one segment, in packets of 1500 bytes.
    let most = DataSize::from_bytes(((128 << 10) / 1_448 + 2) * 1_500);
    assert!(longest <= most, "{longest:?}");
    assert!(longest > DataSize::from_bytes(100_000), "{longest:?}");
}

#[test]
fn tcp_from_behind_the_access_point_fills_its_queue() {
    let trace = run(&config(vec![flow("tcp-1", Direction::Down, Some(0), tcp())]), Seed::new(1));
    let longest = rows(&trace, 0).map(|row| row.queue).max().unwrap();
    // Limited by the queue of 1000 packets or by the receive window.
    assert!(longest > DataSize::from_bytes(400_000), "{longest:?}");
}

#[test]
fn equal_seeds_give_equal_traces_and_another_seed_another() {
    let noted = Timestamp::from_secs(5)..Timestamp::from_millis(5_050);
    let mut config = config(vec![
        flow("tcp-1", Direction::Up, Some(0), tcp()),
        flow("udp-1", Direction::Up, Some(1), udp(1_000)),
    ]);
    config.access.as_mut().unwrap().noted = noted.clone();
    let first = run(&config, Seed::new(1));
    assert_eq!(first, run(&config, Seed::new(1)));
    assert_ne!(first, run(&config, Seed::new(2)));
    let notes = &first.access.wifi;
    assert!(!notes.frames.is_empty());
    assert!(notes.frames.iter().all(|frame| noted.contains(&frame.start)));
    let rows = SECS * 1_000 / NODE_INTERVAL.as_millis() * 3;
    assert_eq!(notes.rows.len() as i64, rows);
}
