//! The matrix of the arena: a row for each stack and scenario.

use weir_record::summary::Summary;

use super::verdict::Verdict;
use super::{Cell, Run, returned};
use crate::layout::Table;
use crate::table::with_spread;

/// What the columns are.
pub const LEGEND: &str = "Runs that count; share of the link that was used; 95th percentile of the \
    queuing delay; lost packets; seconds from the last rise of the link until half of it was used \
    for a second; what the call received beside the flows that share its link, as a multiple of an \
    equal part; what the receiver decoded; expectations that hold, and the colour: red if one is \
    missed, amber if the limit is within the ±, else green. ± is the 95 % confidence interval of \
    the mean of several runs.";
/// Columns of a cell with numbers of calls.
const MEASURED: usize = 7;

/// Columns of what the receiver sees, if a run has it: name, path of the metric, factor, decimals.
const SEEN: [(&str, &str, f64, usize); 4] = [
    ("to screen p95 ms", "shown_delay_ms.p95", 1.0, 0),
    ("stalled %", "stalled_ratio", 100.0, 1),
    ("VMAF", "vmaf.mean", 1.0, 1),
    ("good %", "good_ratio", 100.0, 0),
];

/// The cells in the order of the stacks, with their verdicts.
pub fn matrix(cells: &[Cell<'_>], verdicts: &[Verdict]) -> Table<'static> {
    let mut runs = cells.iter().flat_map(|cell| &cell.runs);
    let seen = if runs.any(|run| is_seen(&run.summary)) { &SEEN[..] } else { &[] };
    let mut rows = Vec::new();
    for (cell, verdict) in cells.iter().zip(verdicts) {
        let mut row = vec![cell.competitor.name().to_owned(), cell.scenario.id.clone()];
        row.extend(values(&cell.runs, seen));
        row.push(verdict.in_words());
        rows.push(row);
    }
    let mut head = vec![
        "stack",
        "scenario",
        "runs",
        "utilization",
        "queue p95 ms",
        "loss %",
        "back s",
        "fair part",
        "pictures/s",
        "frozen s",
    ];
    head.extend(seen.iter().map(|column| column.0));
    head.push("expectations");
    Table { head, rows, left: 2, ..Table::default() }
}

/// Means over the runs of a cell that count.
fn values(runs: &[Run], seen: &[(&str, &str, f64, usize)]) -> Vec<String> {
    let (mut sound, mut returns, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs {
        if run.summary.exclusion().is_none() {
            sound.push(run.summary.clone());
            returns.push(run.returned);
            parts.extend(run.fair_part);
        }
    }
    if sound.is_empty() {
        let mut row = vec!["0".to_owned()];
        row.extend(vec!["-".to_owned(); MEASURED + seen.len()]);
        return row;
    }
    let mut row = vec![
        sound.len().to_string(),
        of_flow(&sound, "utilization", 1.0, 2),
        of_flow(&sound, "queuing_delay_ms.p95", 1.0, 0),
        of_flow(&sound, "loss_ratio.mean", 100.0, 1),
        returned::in_words(&returns),
        with_spread(&parts, 2),
        of_calls(&sound, "calls.b.frame_rate", 1),
        of_calls(&sound, "calls.b.frozen_s", 1),
    ];
    for (_, path, factor, decimals) in seen {
        row.push(of_flow(&sound, path, *factor, *decimals));
    }
    row
}

/// Whether something is known of what the receiver saw.
fn is_seen(summary: &Summary) -> bool {
    SEEN.iter().any(|column| summary.metric(None, column.1).is_some())
}

/// Mean and spread of a metric of the first flow, which is the call's, times `factor`.
fn of_flow(summaries: &[Summary], path: &str, factor: f64, decimals: usize) -> String {
    let values = summaries.iter().filter_map(|summary| Some(summary.metric(None, path)? * factor));
    with_spread(&values.collect::<Vec<f64>>(), decimals)
}

/// Mean and spread of a metric of the calls.
fn of_calls(summaries: &[Summary], path: &str, decimals: usize) -> String {
    let calls = summaries.iter().filter_map(|summary| summary.calls.as_ref());
    with_spread(&calls.filter_map(|calls| calls.at(path)).collect::<Vec<f64>>(), decimals)
}
