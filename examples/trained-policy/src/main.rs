//! Runs the trained policy beside controllers of Weir in scenarios that it was not trained on, and prints a table.
//!
//!     cargo run -- 'rfc8867/5.*' runs && weir report runs

mod policy;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::{env, process};

use weir::ControllerFactory;
use weir::testing::check_controller;
use weir_lab::scenario::catalogue;
use weir_lab::{Controllers, simulate};

use policy::Policy;

/// Seeds of each run.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
const METRICS: [&str; 3] = ["utilization", "queuing_delay_ms.p95", "loss_ratio.mean"];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [ids @ .., out] = words.as_slice() else {
        eprintln!("usage: trained-policy SCENARIO... FOLDER");
        process::exit(2);
    };
    let policy = ControllerFactory::new("policy", |settings| Box::new(Policy::new(settings)));

    // What every controller must keep to, held against 64 drawn scripts.
    check_controller(&policy, 64, 1)?;
    println!("policy keeps to the contract of controllers\n");

    let controllers = Controllers::default().with(policy);
    println!(
        "| scenario | controller | utilization | queuing delay, 95th percentile, ms | loss, % |"
    );
    println!("|---|---|---|---|---|");
    for id in ids {
        for scenario in catalogue::find(id)? {
            for controller in controllers.choose("policy,gcc,nada,scream")? {
                let mut sums = [0.0; METRICS.len()];
                for seed in SEEDS {
                    let never = AtomicBool::new(false);
                    let folder = Some(Path::new(out));
                    let summary = simulate(&scenario, &controller, seed, folder, &never)?;
                    let summary = summary.expect("nobody stops the run");
                    for (sum, metric) in sums.iter_mut().zip(METRICS) {
                        *sum += summary.metric(None, metric).unwrap_or(f64::NAN);
                    }
                }
                let [used, delay, loss] = sums.map(|sum| sum / SEEDS.count() as f64);
                let (name, loss) = (controller.name(), loss * 100.0);
                println!("| {} | {name} | {used:.2} | {delay:.0} | {loss:.2} |", scenario.id);
            }
        }
    }
    println!("\nrecords in {out}; make a report with `weir report {out}`");
    Ok(())
}
