//! Results as text tables.

use weir_lab::calls::{Flaw, counting};
use weir_lab::metrics::mean;
use weir_lab::spread::Spread;
use weir_lab::summary::{FlowSummary, Summary};

use crate::output;

/// Columns aligned by width: the first to the left, numbers to the right.
pub fn aligned(head: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let escaped = |row: &Vec<String>| row.iter().map(|cell| output::escaped(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(escaped).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let text = padded.collect::<Vec<String>>().join("  ");
        format!("{}\n", text.trim_end())
    };
    let head: Vec<String> = head.iter().map(|cell| cell.to_string()).collect();
    std::iter::once(line(&head)).chain(rows.iter().map(|row| line(row))).collect()
}

/// A number with so many decimals, or a dash.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.decimals$}"))
}

/// The mean with so many decimals, and half the width of its 95 % confidence interval where there are
/// several values; a dash without any.
pub fn with_spread(values: &[f64], decimals: usize) -> String {
    let spread = Spread::of(values).map(|spread| format!(" ±{:.decimals$}", spread.confidence));
    format!("{}{}", number(mean(values.to_vec()), decimals), spread.unwrap_or_default())
}

/// One line a scenario, controller and flow, averaged over the seeds.
pub fn results(summaries: &[Summary]) -> String {
    const HEAD: [&str; 10] = [
        "scenario",
        "controller",
        "engine",
        "flow",
        "seeds",
        "utilization",
        "rate Mbit/s",
        "queue p95 ms",
        "RTT mean ms",
        "loss %",
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut seen = Vec::new();
    for summary in summaries {
        let key = (&summary.scenario, &summary.controller, &summary.engine);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let same = |other: &&Summary| (&other.scenario, &other.controller, &other.engine) == key;
        let group: Vec<&Summary> = summaries.iter().filter(same).collect();
        let with = |flaw: Option<Flaw>| group.iter().filter(|run| run.flaw() == flaw).count();
        let seeds = seeds(with(None), with(Some(Flaw::Failed)), with(Some(Flaw::Bent)));
        let group = counting(group, |run| run.flaw());
        for flow in &summary.flows {
            let over_seeds = |path: &str| {
                mean(group.iter().filter_map(|run| run.metric(Some(&flow.flow), path)).collect())
            };
            rows.push(line(summary, flow, seeds.clone(), over_seeds));
        }
    }
    aligned(&HEAD, &rows, 4)
}

/// How many runs a mean is of, and how many do not count because a call failed or the machine bent them.
fn seeds(sound: usize, failed: usize, bent: usize) -> String {
    let shown = match (sound, bent) {
        (0, 1..) => format!("{bent}, bent"),
        _ => sound.to_string(),
    };
    let left_out = [(failed, "failed"), (if sound > 0 { bent } else { 0 }, "bent")];
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

fn line(
    summary: &Summary,
    flow: &FlowSummary,
    seeds: String,
    over_seeds: impl Fn(&str) -> Option<f64>,
) -> Vec<String> {
    vec![
        summary.scenario.clone(),
        summary.controller.clone(),
        summary.engine.clone(),
        flow.flow.clone(),
        seeds,
        number(over_seeds("utilization"), 3),
        number(over_seeds("rate_mbps.mean"), 3),
        number(over_seeds("queuing_delay_ms.p95"), 1),
        number(over_seeds("rtt_ms.mean"), 1),
        number(over_seeds("loss_ratio.mean").map(|ratio| ratio * 100.0), 2),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_runs_count_and_how_many_do_not() {
        assert_eq!(seeds(3, 0, 0), "3");
        assert_eq!(seeds(3, 1, 2), "3 (1 failed, 2 bent left out)");
        assert_eq!(seeds(0, 0, 2), "2, bent");
        assert_eq!(seeds(0, 1, 2), "2, bent (1 failed left out)");
        assert_eq!(seeds(0, 1, 0), "0 (1 failed left out)");
    }
}
