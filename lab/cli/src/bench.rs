//! `weir research bench`: how fast the simulator and the controllers are on this machine.

use std::convert::Infallible;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use weir_controllers::LabAlgorithm;
use weir_net::Seed;
use weir_scenario::{Scenario, catalogue};

use crate::args::research::Bench;
use crate::output;
use crate::table;

const SCENARIO: &str = "lund/rmcat-ns3";
/// Simulated seconds per CPU second of ns-3 3.37 with a point-to-point link, measured once on a
/// machine of two cores like CI's.
const NS3_POINT_TO_POINT: f64 = 459.0;
/// Goal for the simulator, in simulated seconds per CPU second.
const GOAL: f64 = 10_000.0;
/// Wi-Fi and cellular cells, and the goal for each, as a multiple of real time. Five calls should
/// be fast to explore; fifty stations that always send must keep up with the wall clock.
const CELLS: [(&str, f64); 6] = [
    ("demo/wifi-5", 500.0),
    ("demo/wifi-50", 1.0),
    ("demo/lte-5", 500.0),
    ("demo/lte-5/walking", 500.0),
    ("demo/lte-5/driving", 500.0),
    ("demo/lte-50", 50.0),
];
/// Number of flows on one link whose cost per packet is compared with that of a single flow, and
/// the goal for the ratio.
const FLOWS: usize = 100;
const FLOWS_GOAL: f64 = 1.2;
/// Number of runs for measuring the scaling over cores.
const BATCH: u64 = 60;

/// Prints speeds as ratios.
pub fn bench(args: &Bench) -> anyhow::Result<ExitCode> {
    let repeat = args.repeat;
    anyhow::ensure!(
        (1..=1_000).contains(&repeat),
        "--repeat {repeat} is no number of measurements: write one from 1 to 1000"
    );
    let scenario = &catalogue::find(SCENARIO)?[0];
    let simulated = scenario.duration.as_secs_f64();
    output::line(&format!("{SCENARIO}, one flow, one core, full packet path, TWCC as bytes"))?;
    let mut rows = Vec::new();
    for algorithm in LabAlgorithm::all() {
        let config = scenario.sim_config(algorithm);
        let seconds = median(args.repeat, || {
            black_box(weir_sim::run(&config, Seed::new(1)));
        });
        let speed = simulated / seconds.as_secs_f64();
        rows.push(vec![
            algorithm.name().into(),
            format!("{:.1}", seconds.as_secs_f64() * 1e3),
            format!("{speed:.0}"),
            format!("{:.2}", speed / GOAL),
            format!("{:.1}", speed / NS3_POINT_TO_POINT),
        ]);
    }
    let head = ["controller", "ms a run", "x real time", "of 10,000", "of ns-3's 459"];
    output::print(&table::aligned(&head, &rows, 1))?;
    flows(args.repeat)?;
    cells(args.repeat)?;
    scaling(args.repeat, scenario)?;
    Ok(ExitCode::SUCCESS)
}

/// Compares the cost per packet of many flows on one link with that of a single flow. The link has
/// 2 Mbit/s for each flow.
fn flows(repeat: usize) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let (one, many) = (on_one_link(1)?, on_one_link(FLOWS)?);
    for algorithm in LabAlgorithm::all() {
        let alone = time_a_packet(repeat, &one.sim_config(algorithm));
        let among_others = time_a_packet(repeat, &many.sim_config(algorithm));
        let times = among_others / alone;
        rows.push(vec![
            algorithm.name().into(),
            format!("{alone:.0}"),
            format!("{among_others:.0}"),
            format!("{times:.2}"),
            format!("{:.2}", FLOWS_GOAL / times),
        ]);
    }
    output::line(&format!("\n{FLOWS} flows on one link, one core"))?;
    let many = format!("of {FLOWS} flows");
    let head = ["controller", "ns a packet of 1 flow", &many, "times", "of the goal"];
    output::print(&table::aligned(&head, &rows, 1))?;
    Ok(())
}

fn on_one_link(flows: usize) -> anyhow::Result<Scenario> {
    let text = format!(
        r#"
title = "Flows on one link"
source = "this program"
description = "Flows that start together."
duration = "20s"

[network.up]
capacity = "{}Mbps"
queue = "300ms"
delay = "20ms"

[network.down]
delay = "20ms"

[media]
max_bitrate = "2500kbps"

[[flow]]
source = {{ kind = "filler", fps = 30 }}
count = {flows}
"#,
        2 * flows
    );
    Ok(weir_scenario::parse("flows on one link", &text, None)?)
}

/// Nanoseconds per packet, without the cost of storing rows.
fn time_a_packet(repeat: usize, config: &weir_sim::Config) -> f64 {
    let mut packets = 0;
    let time = median(repeat, || packets = packets_of(config));
    time.as_nanos() as f64 / packets as f64
}

/// Simulates once, and counts the packets that all flows sent.
fn packets_of(config: &weir_sim::Config) -> u64 {
    let mut packets = 0;
    let count = |part: &mut weir_sim::Trace| -> Result<(), Infallible> {
        for row in &part.rows {
            packets += row.sent_packets;
        }
        Ok(())
    };
    let Ok(_) = weir_sim::run_in_parts(config, Seed::new(1), &AtomicBool::new(false), count);
    packets
}

/// Measures whole simulations of Wi-Fi cells on one core, including the calls and their
/// controllers.
fn cells(repeat: usize) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for (id, goal) in CELLS {
        let scenario = &catalogue::find(id)?[0];
        let config = scenario.sim_config(LabAlgorithm::Gcc);
        let time = median(repeat, || {
            black_box(weir_sim::run(&config, Seed::new(1)));
        });
        let speed = scenario.duration.as_secs_f64() / time.as_secs_f64();
        rows.push(vec![
            id.into(),
            format!("{:.1}", time.as_secs_f64() * 1e3),
            format!("{speed:.0}"),
            format!("{goal:.0}"),
            format!("{:.2}", speed / goal),
        ]);
    }
    output::line("\ncells under gcc, one core")?;
    let head = ["scenario", "ms a run", "x real time", "goal", "of the goal"];
    output::print(&table::aligned(&head, &rows, 1))?;
    Ok(())
}

/// Measures the same batch of runs on one core and on all cores.
fn scaling(repeat: usize, scenario: &Scenario) -> anyhow::Result<()> {
    let config = scenario.sim_config(LabAlgorithm::GccDraft);
    let cores = std::thread::available_parallelism()?.get();
    let (one, all) = (time_a_batch(repeat, &config, 1)?, time_a_batch(repeat, &config, cores)?);
    let ratio = one.as_secs_f64() / all.as_secs_f64();
    output::line(&format!("\n{BATCH} runs with --jobs 1: {:.0} ms", one.as_secs_f64() * 1e3))?;
    output::line(&format!("{BATCH} runs with --jobs {cores}: {:.0} ms", all.as_secs_f64() * 1e3))?;
    output::line(&format!("ratio {ratio:.2} on {cores} cores"))?;
    Ok(())
}

fn time_a_batch(
    repeat: usize,
    config: &weir_sim::Config,
    threads: usize,
) -> anyhow::Result<Duration> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    Ok(median(repeat, || {
        pool.install(|| {
            (1..=BATCH).into_par_iter().for_each(|seed| {
                black_box(weir_sim::run(config, Seed::new(seed)));
            });
        });
    }))
}

/// Median time of a piece of work, after one run to warm up.
fn median(repeat: usize, mut work: impl FnMut()) -> Duration {
    work();
    let mut times = Vec::new();
    for _ in 0..repeat {
        let start = Instant::now();
        work();
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}
