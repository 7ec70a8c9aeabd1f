//! Results as text tables.

use weir_metrics::mean;
use weir_record::calls::{Exclusion, counting};
use weir_record::compare::groups;
use weir_record::spread::Spread;
use weir_record::subject;
use weir_record::summary::Summary;

use crate::layout::Table;

/// A table of aligned columns: the first `left` to the left, numbers to the right.
pub fn aligned(head: &[&str], rows: &[Vec<String>], left: usize) -> String {
    Table { head: head.to_vec(), rows: rows.to_vec(), left, ..Table::default() }.text(None)
}

/// A number with `decimals` decimals, or a dash.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.decimals$}"))
}

/// The mean with `decimals` decimals. With several values, half the width of its 95 % confidence
/// interval follows. A dash without any value.
pub fn with_spread(values: &[f64], decimals: usize) -> String {
    let spread = Spread::of(values).map(|spread| format!(" ±{:.decimals$}", spread.confidence));
    format!("{}{}", number(mean(values.to_vec()), decimals), spread.unwrap_or_default())
}

/// Columns of numbers: name, path of the metric, factor and decimals.
const MEASURED: [(&str, &str, f64, usize); 18] = [
    ("utilization", "utilization", 1.0, 3),
    ("rate Mbit/s", "rate_mbps.mean", 1.0, 3),
    ("queue p95 ms", "queuing_delay_ms.p95", 1.0, 1),
    ("RTT mean ms", "rtt_ms.mean", 1.0, 1),
    ("loss %", "loss_ratio.mean", 100.0, 2),
    ("freezes", "freeze_count", 1.0, 1),
    ("frozen s", "freeze_duration_s", 1.0, 2),
    ("switches/min", "layer_switches_per_min", 1.0, 1),
    ("below best %", "below_best_ratio", 100.0, 1),
    ("switch frozen s", "switch_freeze_s", 1.0, 2),
    ("padding %", "padding_share", 100.0, 2),
    ("good %", "good_ratio", 100.0, 0),
    ("to screen p95 ms", "shown_delay_ms.p95", 1.0, 0),
    ("stalled %", "stalled_ratio", 100.0, 1),
    ("VMAF (sim: modelled)", "vmaf.mean", 1.0, 1),
    ("mouth to ear ms", "mouth_to_ear_ms.mean", 1.0, 0),
    ("concealed %", "concealed_ratio", 100.0, 1),
    ("R", "speech_rating", 1.0, 0),
];
const KEYS: [&str; 5] = ["scenario", "controller", "engine", "flow", "seeds"];
/// Columns from here on need a flow that shows video, or one with `quality`. They are left out if
/// no flow has a value.
const OPTIONAL_FROM: usize = 5;
/// Columns that are left out first if the width is too small: the other columns show most of their
/// information.
const SPARE: [&str; 5] = ["utilization", "RTT mean ms", "frozen s", "loss %", "freezes"];

/// One line for each scenario, controller and flow: means over the seeds, with their 95 %
/// confidence intervals.
pub fn results(summaries: &[Summary]) -> Table<'static> {
    let mut columns = Vec::new();
    for (index, column) in MEASURED.iter().enumerate() {
        if index < OPTIONAL_FROM || has_value(summaries, column.1) {
            columns.push(column);
        }
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for group in groups(summaries) {
        let first = group[0];
        let [mut sound, mut failed, mut disturbed] = [0; 3];
        for run in &group {
            match run.exclusion() {
                None => sound += 1,
                Some(Exclusion::Failed) => failed += 1,
                Some(Exclusion::Disturbed) => disturbed += 1,
            }
        }
        let runs = seeds(sound, failed, disturbed);
        let group = counting(group, |run| run.exclusion());
        for flow in &first.flows {
            let controller = subject::short(&first.controller).to_owned();
            let keys = [&first.scenario, &controller, &first.engine, &flow.flow, &runs];
            let mut row: Vec<String> = keys.into_iter().cloned().collect();
            for (_, path, factor, decimals) in &columns {
                let values = group.iter().filter_map(|run| run.metric(Some(&flow.flow), path));
                let values: Vec<f64> = values.map(|value| value * factor).collect();
                row.push(with_spread(&values, *decimals));
            }
            rows.push(row);
        }
    }
    let head: Vec<&str> = KEYS.into_iter().chain(columns.iter().map(|column| column.0)).collect();
    Table {
        left: KEYS.len() - 1,
        common: positions(&head, &["scenario", "engine", "seeds"]),
        spare: positions(&head, &SPARE),
        words: None,
        rows,
        head,
    }
}

/// Whether a flow has a value at this path.
fn has_value(summaries: &[Summary], path: &str) -> bool {
    for summary in summaries {
        if summary.flows.iter().any(|flow| summary.metric(Some(&flow.flow), path).is_some()) {
            return true;
        }
    }
    false
}

/// Numbers of the columns with these names, in the order of the names.
fn positions(head: &[&str], names: &[&str]) -> Vec<usize> {
    names.iter().filter_map(|name| head.iter().position(|column| column == name)).collect()
}

/// The number of runs in a mean, and the numbers of runs left out because a call failed or the
/// machine disturbed them.
fn seeds(sound: usize, failed: usize, disturbed: usize) -> String {
    let shown = match (sound, disturbed) {
        (0, 1..) => format!("{disturbed}, disturbed"),
        _ => sound.to_string(),
    };
    let left_out = [(failed, "failed"), (if sound > 0 { disturbed } else { 0 }, "disturbed")];
    let left_out: Vec<String> = left_out
        .iter()
        .filter(|(runs, _)| *runs > 0)
        .map(|(runs, why)| format!("{runs} {why}"))
        .collect();
    match left_out.as_slice() {
        [] => shown,
        runs => format!("{shown} ({} left out)", runs.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_runs_count_and_how_many_do_not() {
        assert_eq!(seeds(3, 0, 0), "3");
        assert_eq!(seeds(3, 1, 2), "3 (1 failed, 2 disturbed left out)");
        assert_eq!(seeds(0, 0, 2), "2, disturbed");
        assert_eq!(seeds(0, 1, 2), "2, disturbed (1 failed left out)");
        assert_eq!(seeds(0, 1, 0), "0 (1 failed left out)");
    }
}
