//! `weir trace`: what a trace file holds, how much capacities vary, and conversions.

mod convert;
mod file;
mod plot;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use rayon::prelude::*;
use serde_json::{Value, json};
use weir_scenario::Scenario;
use weir_scenario::catalogue::{self, CatalogueError};
use weir_scenario::trace::TraceEnd;
use weir_scenario::variation::{Measured, Variation, in_cell, of_capacity, on_links};

use crate::args::{Direction, TraceArgs as Args, TraceUse};
use crate::layout::{Form, Table};
use crate::output;
use crate::select;
use file::TraceFile;

/// A capacity with the place where it was found.
struct Found {
    source: String,
    measured: Measured,
}

/// Describes a trace, converts it, or prints how the capacities vary that the command line names.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (keys, paths): (Vec<&String>, Vec<&String>) =
        args.paths.iter().partition(|word| file::is_key(word));
    let traces: Vec<&String> = paths.iter().copied().filter(|path| is_trace(path)).collect();
    match (traces.as_slice(), paths.len()) {
        ([path], 1) => {
            let trace = TraceFile::read(path, &keys, args)?;
            match args.to {
                Some(to) => output::print(&convert::to(&trace, to)?)?,
                None if args.json || args.markdown => return table_of(&paths, &keys, args),
                None => output::print(&trace.described()?)?,
            }
            Ok(ExitCode::SUCCESS)
        }
        _ if args.to.is_some() => bail!("--to takes one trace file"),
        _ => table_of(&paths, &keys, args),
    }
}

/// A file that is no scenario is a trace.
fn is_trace(path: &str) -> bool {
    let file = Path::new(path);
    file.extension().is_none_or(|end| end != "toml") && file.is_file() || is_netem(file)
}

/// A model of netem-trace in TOML.
fn is_netem(file: &Path) -> bool {
    let head = std::fs::read_to_string(file).unwrap_or_default();
    let first = head.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let name = line.trim_start_matches('[').split([']', '.', '=', ' ']).next();
        name.is_some_and(|name| name.ends_with("Config"))
    })
}

fn table_of(paths: &[&String], keys: &[&String], args: &Args) -> anyhow::Result<ExitCode> {
    ensure!(args.r#as == TraceUse::Capacity, "--as takes one trace file");
    let mut found = Vec::new();
    for path in paths {
        match is_trace(path) {
            true => found.push(of_file(path, keys, args)?),
            false => found.extend(of_scenarios(path, args)?),
        }
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

fn of_file(path: &str, keys: &[&String], args: &Args) -> anyhow::Result<Found> {
    let trace = TraceFile::read(path, keys, args)?;
    let capacity =
        trace.reading.trace.capacity(TraceEnd::Repeat).with_context(|| path.to_owned())?;
    let variation = of_capacity(&capacity);
    let variation = variation.with_context(|| format!("{path}: shorter than 50 ms"))?;
    let name = match args.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    Ok(Found { source: path.into(), measured: Measured { name: name.into(), variation } })
}

fn of_scenarios(name: &str, args: &Args) -> anyhow::Result<Vec<Found>> {
    let scenarios = match catalogue::find(name) {
        Err(CatalogueError::Unknown { name, hint }) => {
            bail!("there is no trace file and no scenario {name}; {hint}")
        }
        scenarios => scenarios?,
    };
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
