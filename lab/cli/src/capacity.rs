//! `weir research capacity`: how much recorded, written and simulated capacities vary.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use rayon::prelude::*;
use serde_json::{Value, json};
use weir_lab::files;
use weir_lab::scenario::{Scenario, catalogue, trace::Want};
use weir_lab::variation::{Measured, Variation, in_cell, of_recording, on_links};

use crate::args::research::{Capacity as Args, Way};
use crate::layout::{Form, Table};
use crate::output;
use crate::select;

/// Largest trace file, in bytes: that of a scenario.
const TRACE_MAX: u64 = 1 << 28;

/// A capacity with the place where it was found.
struct Found {
    source: String,
    measured: Measured,
}

/// Prints the statistics of every capacity that the command line names.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut found = Vec::new();
    for path in &args.paths {
        found.extend(of_path(path, args)?);
    }
    ensure!(
        !found.is_empty(),
        "none of these scenarios has a limited link, or a media flow in a cell"
    );
    if args.json {
        let all: Vec<Value> = found.iter().map(as_json).collect();
        output::json(&serde_json::to_string_pretty(&all)?)?;
    } else {
        output::print(&table(&found).written(Form::of(args.markdown)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that is no scenario is a trace.
fn of_path(path: &str, args: &Args) -> anyhow::Result<Vec<Found>> {
    let file = Path::new(path);
    if file.extension().is_some_and(|end| end == "toml") || !file.is_file() {
        return of_scenarios(path, args);
    }
    let text = files::read_text(file, TRACE_MAX).with_context(|| format!("cannot read {path}"))?;
    let (name, want) = match args.direction {
        Way::Up => ("up", Want::Up),
        Way::Down => ("down", Want::Down),
    };
    let variation = of_recording(&text, want).with_context(|| path.to_owned())?;
    Ok(vec![Found { source: path.into(), measured: Measured { name: name.into(), variation } }])
}

fn of_scenarios(name: &str, args: &Args) -> anyhow::Result<Vec<Found>> {
    let scenarios = catalogue::find(name)?;
    let pool = select::threads(args.jobs, scenarios.len())?;
    let each: Vec<Vec<Measured>> =
        pool.install(|| scenarios.par_iter().map(|one| of_scenario(one, args.seed)).collect());
    let mut found = Vec::new();
    for (scenario, all) in scenarios.iter().zip(each) {
        for measured in all {
            found.push(Found { source: scenario.id.clone(), measured });
        }
    }
    Ok(found)
}

fn of_scenario(scenario: &Scenario, seed: u64) -> Vec<Measured> {
    let mut all = in_cell(scenario, seed);
    all.extend(on_links(scenario));
    all
}

fn as_json(found: &Found) -> Value {
    let mut value = json!(found.measured.variation);
    value["source"] = json!(found.source);
    value["name"] = json!(found.measured.name);
    value
}

fn table(found: &[Found]) -> Table<'static> {
    let head = vec![
        "source",
        "capacity",
        "s",
        "Mbit/s",
        "cv 50 ms",
        "cv 200 ms",
        "cv 1 s",
        "away, %",
        "outages/min",
        "median, s",
        "longest, s",
    ];
    let rows = found.iter().map(row).collect();
    Table { head, rows, left: 2, ..Table::default() }
}

fn row(found: &Found) -> Vec<String> {
    let Variation {
        length_s,
        mean_mbps,
        cv_50ms,
        cv_200ms,
        cv_1s,
        outage_share,
        outages_per_min,
        outage_median_s,
        outage_longest_s,
        ..
    } = &found.measured.variation;
    let mut row = vec![found.source.clone(), found.measured.name.clone()];
    row.push(format!("{length_s:.0}"));
    row.push(format!("{mean_mbps:.2}"));
    row.extend([cv_50ms, cv_200ms, cv_1s].map(|value| shown(*value)));
    row.push(format!("{:.1}", outage_share * 100.0));
    row.push(format!("{outages_per_min:.1}"));
    row.extend([outage_median_s, outage_longest_s].map(|value| shown(*value)));
    row
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}
