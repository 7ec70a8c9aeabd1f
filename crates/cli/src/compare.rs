//! `weir compare`: what differs between two sets of runs, and how far simulated runs are from real calls.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use weir_lab::calls::counting;
use weir_lab::metrics::mean;
use weir_lab::record::{self, Record};
use weir_lab::summary::Summary;

use crate::args::Compare;
use crate::output;
use crate::sim_real;
use crate::table;

const METRICS: [&str; 7] = [
    "utilization",
    "rate_mbps.mean",
    "queuing_delay_ms.mean",
    "queuing_delay_ms.p95",
    "rtt_ms.mean",
    "loss_ratio.mean",
    "responsiveness_s",
];

struct Difference {
    scenario: String,
    controller: String,
    engine: String,
    flow: String,
    metric: &'static str,
    before: f64,
    after: f64,
}

/// Prints the metrics of flows that both sets have, averaged over each set's seeds; and where one has
/// real calls of a scenario and the other simulated runs, the error of each section.
pub fn compare(args: &Compare) -> anyhow::Result<ExitCode> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let lines = sim_real::lines(&before, &after);
    let differences = differences(&summaries(&before), &summaries(&after));
    anyhow::ensure!(
        !differences.is_empty() || !lines.is_empty(),
        "no scenario stands in both {} and {}, under one controller and engine or real and simulated",
        args.before.display(),
        args.after.display()
    );
    if args.json {
        let changes = differences.iter().map(to_json);
        let rows: Vec<_> = changes.chain(lines.iter().map(sim_real::Line::to_json)).collect();
        output::json(&serde_json::to_string_pretty(&rows)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !differences.is_empty() {
        const HEAD: [&str; 8] =
            ["scenario", "controller", "engine", "flow", "metric", "before", "after", "change"];
        let rows: Vec<_> = differences.iter().map(to_cells).collect();
        output::print(&table::aligned(&HEAD, &rows, 5))?;
    }
    if !lines.is_empty() {
        output::print(&sim_real::table(&lines))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All records below a folder.
fn read(folder: &Path) -> anyhow::Result<Vec<Record>> {
    let folders = record::find(folder)?;
    anyhow::ensure!(!folders.is_empty(), "{} holds no record of a run", folder.display());
    folders.iter().map(|folder| Ok(Record::read(folder)?)).collect()
}

fn summaries(records: &[Record]) -> Vec<Summary> {
    records.iter().map(Record::summary).collect()
}

fn differences<'a>(before: &'a [Summary], after: &'a [Summary]) -> Vec<Difference> {
    let mut differences: Vec<Difference> = Vec::new();
    for summary in before {
        let key = (&summary.scenario, &summary.controller, &summary.engine);
        let done = |d: &Difference| (&d.scenario, &d.controller, &d.engine) == key;
        if differences.iter().any(done) {
            continue;
        }
        let of_run = |set: &'a [Summary]| {
            let same = |run: &&Summary| (&run.scenario, &run.controller, &run.engine) == key;
            counting(set.iter().filter(same).collect(), |run| run.flaw())
        };
        let sets = [of_run(before), of_run(after)];
        for flow in &summary.flows {
            for metric in METRICS {
                let over_seeds = |set: &[&Summary]| {
                    mean(
                        set.iter().filter_map(|run| run.metric(Some(&flow.flow), metric)).collect(),
                    )
                };
                let [before, after] = sets.each_ref().map(|set| over_seeds(set));
                let (Some(before), Some(after)) = (before, after) else {
                    continue;
                };
                differences.push(Difference {
                    scenario: summary.scenario.clone(),
                    controller: summary.controller.clone(),
                    engine: summary.engine.clone(),
                    flow: flow.flow.clone(),
                    metric,
                    before,
                    after,
                });
            }
        }
    }
    differences
}

fn to_json(difference: &Difference) -> serde_json::Value {
    json!({
        "scenario": difference.scenario,
        "controller": difference.controller,
        "engine": difference.engine,
        "flow": difference.flow,
        "metric": difference.metric,
        "before": difference.before,
        "after": difference.after,
        "change": difference.after - difference.before,
    })
}

fn to_cells(difference: &Difference) -> Vec<String> {
    vec![
        difference.scenario.clone(),
        difference.controller.clone(),
        difference.engine.clone(),
        difference.flow.clone(),
        difference.metric.into(),
        table::number(Some(difference.before), 4),
        table::number(Some(difference.after), 4),
        format!("{:+.4}", difference.after - difference.before),
    ]
}
