//! `weir list`: the scenarios.

use std::process::ExitCode;

use serde_json::json;
use weir_lab::scenario::{Scenario, catalogue};

use crate::args::List;
use crate::output;
use crate::table;

/// Prints the catalogue.
pub fn list(args: &List) -> anyhow::Result<ExitCode> {
    let scenarios = catalogue::find("*")?;
    if args.json {
        let entries: Vec<_> = scenarios.iter().map(entry).collect();
        output::json(&serde_json::to_string_pretty(&entries)?)?;
    } else {
        let row = |scenario: &Scenario| {
            let seconds = format!("{:.0} s", scenario.duration.as_secs_f64());
            vec![scenario.id.clone(), seconds, scenario.title.clone()]
        };
        let rows: Vec<_> = scenarios.iter().map(row).collect();
        output::print(&table::aligned(&["scenario", "length", "title"], &rows, 3))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn entry(scenario: &Scenario) -> serde_json::Value {
    json!({
        "scenario": scenario.id,
        "title": scenario.title,
        "source": scenario.source,
        "description": scenario.description.trim(),
        "duration_s": scenario.duration.as_secs_f64(),
        "network": scenario.network_in_words(),
        "flows": scenario.flows.iter().map(|flow| &flow.name).collect::<Vec<_>>(),
        "sections": scenario.sections.iter().map(|section| &section.name).collect::<Vec<_>>(),
        "paper": scenario.paper.len(),
        "expect": scenario.expectations.len(),
    })
}
