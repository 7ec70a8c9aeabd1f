//! Cost of a cellular cell: time to simulate one second, and how many times faster than real time
//! that is.

use std::hint::black_box;
use std::time::Instant;

use criterion::{BatchSize, Criterion};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_net::cellular::fading::{Fading, Profile};
use weir_net::cellular::{
    Carrier, Cell, CellularConfig, Directions, Load, Signal, SignalChange, Terminal,
};
use weir_net::load::Arrivals;
use weir_net::path::Direction;

const PACKET: DataSize = DataSize::from_bytes(1_200);

/// A cell of terminals with this load in both directions.
fn cell(terminals: usize, prbs: u16, arrivals: Arrivals, fading: Option<Fading>) -> CellularConfig {
    let terminal = |index| {
        let signal = Signal::new(SignalChange::Constant(20.0), fading);
        let mut terminal = Terminal::new(format!("terminal-{index}"), Directions::both(signal));
        let load = |direction: &Direction| Load::new(*direction, 0, arrivals, PACKET);
        terminal.loads = Direction::BOTH.iter().map(load).collect();
        terminal
    };
    CellularConfig::new(Carrier::lte(prbs), (0..terminals).map(terminal).collect())
}

/// Runs a cell as its driver would: from event to event.
fn run(cell: &mut Cell<[u64; 8]>, until: Timestamp) {
    while let Some(next) = cell.next_event().filter(|&next| next <= until) {
        black_box(cell.poll(next));
    }
}

fn cells(criterion: &mut Criterion) {
    let call = Arrivals::Constant(Bitrate::from_kbps(1_500));
    let small = Arrivals::Constant(Bitrate::from_kbps(300));
    let walking = Fading::new(Profile::Epa, 3.0);
    let cases = [
        ("5 terminals in a call", cell(5, 50, call, None)),
        ("5 terminals in a call, walking", cell(5, 50, call, Some(walking))),
        ("5 saturated terminals", cell(5, 50, Arrivals::Saturated, None)),
        ("50 terminals in a call", cell(50, 50, small, None)),
        ("50 saturated terminals", cell(50, 100, Arrivals::Saturated, None)),
    ];
    let mut group = criterion.benchmark_group("a second of a cellular cell");
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
