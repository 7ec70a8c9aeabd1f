//! The matrix of the arena: a row for each stack and scenario.

use weir_lab::gate::{self, Outcome};
use weir_lab::summary::Summary;

use super::returned;
use super::{Cell, Run};
use crate::layout::Table;
use crate::table::with_spread;

/// What the columns are.
pub const LEGEND: &str = "Runs that count; share of the link that was used; 95th percentile of the \
    queuing delay; lost packets; seconds from the last rise of the link until half of it was used \
    for a second; what the receiver decoded; expectations that hold. \
    ± is the 95 % confidence interval of the mean of several runs.";
/// Columns of a cell with numbers of calls.
const MEASURED: usize = 6;

/// The cells in the order of the stacks.
pub fn matrix(cells: &[Cell<'_>]) -> Table<'static> {
    let mut rows = Vec::new();
    for cell in cells {
        let mut row = vec![cell.competitor.name().to_owned(), cell.scenario.id.clone()];
        row.extend(values(&cell.runs));
        rows.push(row);
    }
    let head = vec![
        "stack",
        "scenario",
        "runs",
        "utilization",
        "queue p95 ms",
        "loss %",
        "back s",
        "pictures/s",
        "frozen s",
        "expectations",
    ];
    Table { head, rows, left: 2, ..Table::default() }
}

/// Means over the runs of a cell that count.
fn values(runs: &[Run]) -> Vec<String> {
    let (mut sound, mut returns) = (Vec::new(), Vec::new());
    for run in runs {
        if run.summary.exclusion().is_none() {
            sound.push(run.summary.clone());
            returns.push(run.returned);
        }
    }
    if sound.is_empty() {
        let why = if runs.is_empty() { "-" } else { "failed or disturbed" };
        let mut row = vec!["0".to_owned()];
        row.extend(vec!["-".to_owned(); MEASURED]);
        row.push(why.into());
        return row;
    }
    vec![
        sound.len().to_string(),
        of_flow(&sound, "utilization", 1.0, 2),
        of_flow(&sound, "queuing_delay_ms.p95", 1.0, 0),
        of_flow(&sound, "loss_ratio.mean", 100.0, 1),
        returned::in_words(&returns),
        of_calls(&sound, "calls.b.frame_rate", 1),
        of_calls(&sound, "calls.b.frozen_s", 1),
        held(&sound),
    ]
}

/// How many of the expectations hold.
pub fn held(summaries: &[Summary]) -> String {
    let judgements = gate::judge(summaries);
    let failed = judgements.iter().filter(|one| one.outcome == Outcome::Fails).count();
    match (judgements.len(), failed) {
        (0, _) => "-".into(),
        (all, 0) => format!("{all} of {all} hold"),
        (all, failed) => format!("{} of {all} hold", all - failed),
    }
}

/// Mean and spread of a metric of the first flow, which is the call's, times `factor`.
fn of_flow(summaries: &[Summary], path: &str, factor: f64, decimals: usize) -> String {
    let flows = summaries.iter().filter_map(|summary| summary.flows.first());
    let values = flows.filter_map(|flow| Some(flow.metrics.at(path)? * factor));
    with_spread(&values.collect::<Vec<f64>>(), decimals)
}

/// Mean and spread of a metric of the calls.
fn of_calls(summaries: &[Summary], path: &str, decimals: usize) -> String {
    let calls = summaries.iter().filter_map(|summary| summary.calls.as_ref());
    with_spread(&calls.filter_map(|calls| calls.at(path)).collect::<Vec<f64>>(), decimals)
}
