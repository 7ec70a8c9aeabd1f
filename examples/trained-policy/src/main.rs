//! Runs the trained policy beside controllers of Weir in scenarios that it was not trained on, and
//! prints a table. All media flows of a run have the same controller.
//!
//!     cargo run -- 'rfc8867/5.*' --out runs && weir report runs

mod policy;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::{env, process};

use weir::ControllerFactory;
use weir::testing::check_controller;
use weir_record::simulate;
use weir_scenario::Controllers;
use weir_scenario::catalogue;

use policy::Policy;

/// Seeds of each run.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
const CONTROLLERS: &str = "policy,gcc,nada,scream,sluice";
const METRICS: [&str; 3] = ["utilization", "queuing_delay_ms.p95", "loss_ratio.mean"];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let (ids, out) = match words.as_slice() {
        [ids @ .., option, out] if option == "--out" => (ids, Some(Path::new(out))),
        ids => (ids, None),
    };
    if ids.is_empty() || ids.iter().any(|id| id.starts_with('-')) {
        eprintln!("usage: trained-policy SCENARIO... [--out FOLDER]");
        process::exit(2);
    }
    let policy = ControllerFactory::new("policy", |settings| Box::new(Policy::new(settings)));

    // What every controller must keep to, held against 64 drawn scripts.
    check_controller(&policy, 64, 1)?;
    eprintln!("policy keeps to the contract of controllers");

    let controllers = Controllers::default().with(policy);
    println!("| scenario | controller | used | queuing delay, 95th percentile, ms | loss, % |");
    println!("|---|---|---|---|---|");
    for id in ids {
        for scenario in catalogue::find(id)? {
            for controller in controllers.choose(CONTROLLERS)? {
                let mut sums = [0.0; METRICS.len()];
                for seed in SEEDS {
                    let never = AtomicBool::new(false);
                    let summary = simulate(&scenario, &controller, seed, out, &never)?;
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
    Ok(())
}
