//! Runs a controller that Weir does not know in a scenario of Weir's catalogue, beside `gcc`.
//!
//!     cargo run -- lund/rmcat-ns3 runs && weir report runs

mod cautious;

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::{env, process};

use weir::ControllerFactory;
use weir::testing::check_controller;
use weir_record::simulate;
use weir_scenario::Controllers;
use weir_scenario::catalogue;

use cautious::Cautious;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [id, out] = words.as_slice() else {
        eprintln!("usage: own-controller SCENARIO FOLDER");
        process::exit(2);
    };
    let own = ControllerFactory::new("cautious", |settings| Box::new(Cautious::new(settings)));

    // What every controller must keep to, held against 64 drawn scripts.
    check_controller(&own, 64, 1)?;
    println!("cautious keeps to the contract of controllers");

    let controllers = Controllers::default().with(own);
    for scenario in catalogue::find(id)? {
        for controller in controllers.choose("gcc,cautious")? {
            let never = AtomicBool::new(false);
            let summary = simulate(&scenario, &controller, 1, Some(Path::new(out)), &never)?;
            let summary = summary.expect("nobody stops the run");
            let utilization = summary.metric(None, "utilization").unwrap_or(f64::NAN);
            println!("{} {}: utilization {utilization:.3}", scenario.id, controller.name());
        }
    }
    println!("records in {out}; make a report with `weir report {out}`");
    Ok(())
}
