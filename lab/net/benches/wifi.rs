//! Cost of a Wi-Fi cell: time to simulate one second, and how many times faster than real time that
//! is.

use std::hint::black_box;
use std::time::Instant;

use criterion::{BatchSize, Criterion};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::wifi::{
    Aggregation, Arrivals, Band, Cell, CellConfig, DataRate, Mcs, RateControl, Station, StationLoad,
};

const PACKET: DataSize = DataSize::from_bytes(1_200);

/// A cell of stations with this load in both directions, at MCS 7.
fn cell(stations: usize, aggregation: Aggregation, arrivals: Arrivals) -> CellConfig {
    let rate = RateControl::Fixed(DataRate::long_guard(Mcs::new(7).expect("0 to 15")));
    let load = StationLoad::new(arrivals, PACKET);
    let station = |index| {
        let mut station = Station::new(format!("station-{index}"), rate.clone(), rate.clone());
        station.node.aggregation = aggregation;
        station.up.loads.push(load);
        if arrivals != Arrivals::Saturated {
            station.down.loads.push(load);
        }
        station
    };
    let mut config = CellConfig::new(Band::GHZ_2_4, (0..stations).map(station).collect());
    config.access_point.aggregation = aggregation;
    config
}

/// Runs a cell as its driver would: from event to event.
fn run(cell: &mut Cell<[u64; 8]>, until: Timestamp) {
    while let Some(next) = cell.next_event().filter(|&next| next <= until) {
        black_box(cell.poll(next));
    }
}

fn cells(criterion: &mut Criterion) {
    let call = Arrivals::Constant(Bitrate::from_kbps(1_500));
    let cases = [
        ("5 stations in a call", cell(5, Aggregation::NONE, call)),
        ("5 saturated stations", cell(5, Aggregation::NONE, Arrivals::Saturated)),
        ("50 saturated stations", cell(50, Aggregation::NONE, Arrivals::Saturated)),
        ("5 saturated, aggregating", cell(5, Aggregation::STANDARD, Arrivals::Saturated)),
    ];
    let mut group = criterion.benchmark_group("a second of a Wi-Fi cell");
    for (name, config) in &cases {
        group.bench_function(*name, |bencher| {
            bencher.iter_batched_ref(
                || Cell::new(config, Seed::new(1)),
                |cell| run(cell, Timestamp::from_secs(1)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
    let simulated = TimeDelta::from_secs(20);
    for (name, config) in &cases {
        let mut cell = Cell::new(config, Seed::new(1));
        let start = Instant::now();
        run(&mut cell, Timestamp::ZERO + simulated);
        let ratio = simulated.as_secs_f64() / start.elapsed().as_secs_f64();
        println!("{name}: {ratio:.0} times real time");
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    cells(&mut criterion);
    criterion.final_summary();
}
