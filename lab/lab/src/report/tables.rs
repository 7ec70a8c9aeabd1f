//! Tables: published values and findings compared with ours, and the sections of a run.
//!
//! A published value with an algorithm is compared with simulated runs of that algorithm. A value
//! of GCC is also compared with real calls, because browsers run GCC. A value without an algorithm
//! was measured with browsers or is true for all, so it is compared with every controller and every
//! browser. Means are over the seeds. Findings compare algorithms, so they use simulated runs only.

use std::iter;

use super::format::{Finding, PaperRow, SectionRow, VideoRow};
use super::{Column, Run, rounded};
use crate::calls::Calls;
use crate::metrics::{Metrics, VideoMetrics, mean};
use crate::run::{self, Engine};
use crate::scenario::{Condition, PaperValue, Scenario};

const DECIMALS: i32 = 6;
/// Prefix of the names of GCC's versions.
const GCC_FAMILY: &str = "gcc";
/// Largest relative difference from a published number without a spread at which a value still
/// agrees.
const UNSPREAD: f64 = 0.1;

fn simulated<'a, 'b>(columns: &'a [Column<'b>]) -> impl Iterator<Item = &'a Column<'b>> {
    columns.iter().filter(|column| column.engine == Engine::Sim)
}

/// One row for each published value and each controller that it applies to. A value without a run
/// keeps a row without a measured value.
pub(super) fn paper(scenario: &Scenario, columns: &[Column<'_>]) -> Vec<PaperRow> {
    let row =
        |value: &PaperValue, controller: Option<&str>, column: Option<&Column<'_>>| PaperRow {
            location: value.location.clone(),
            flow: value.flow.clone(),
            section: value.section.clone(),
            metric: value.metric.clone(),
            controller: controller.map(Into::into),
            published: value.published.clone(),
            measured: column.and_then(|column| mean_and_range(column, value)),
            note: value.note.clone(),
            since: match column.filter(|column| column.engine == Engine::Call) {
                Some(column)
                    if mean(column.beside(value))
                        .is_some_and(|it| is_outside(&value.published, it)) =>
                {
                    value.since.clone()
                }
                _ => String::new(),
            },
        };
    let rows = |value: &PaperValue| -> Vec<PaperRow> {
        match value.controller {
            Some(algorithm) => {
                let name = algorithm.name();
                // A browser's own congestion control is a version of GCC.
                let speaks_for = |real: &str| {
                    real == name || (name.starts_with(GCC_FAMILY) && !run::is_ours(real))
                };
                let column = simulated(columns).find(|column| column.controller == name);
                let calls = columns.iter().filter(|column| {
                    column.engine == Engine::Call && speaks_for(column.controller)
                });
                let beside = |call: &Column<'_>| row(value, Some(call.controller), Some(call));
                iter::once(row(value, Some(name), column)).chain(calls.map(beside)).collect()
            }
            None => {
                // Simulated runs have no calls.
                let has = |column: &&Column<'_>| {
                    column.engine == Engine::Call || !Calls::names(&value.metric)
                };
                let columns: Vec<&Column<'_>> = columns.iter().filter(has).collect();
                if columns.is_empty() {
                    return vec![row(value, None, None)];
                }
                columns
                    .into_iter()
                    .map(|column| row(value, Some(column.controller), Some(column)))
                    .collect()
            }
        }
    };
    scenario.paper.iter().flat_map(rows).collect()
}

/// `0.784 (0.779 to 0.790)`: the mean over the seeds and their range.
fn mean_and_range(column: &Column<'_>, value: &PaperValue) -> Option<String> {
    let values = column.beside(value);
    let low = significant(values.iter().copied().fold(f64::INFINITY, f64::min));
    let high = significant(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let mean = significant(mean(values)?);
    let disturbed = if column.is_disturbed() { ", disturbed by the machine" } else { "" };
    Some(if low == high {
        format!("{mean}{disturbed}")
    } else {
        format!("{mean} ({low} to {high}){disturbed}")
    })
}

/// Whether a value is outside the published spread, such as `1.95 ± 0.23`, or more than a tenth
/// away from a published number without a spread. False if the published value is not a number.
fn is_outside(published: &str, value: f64) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let (center, spread) = match published.split_once('±') {
        Some((center, spread)) => (number(center), number(spread)),
        None => (number(published), number(published).map(|it| it.abs() * UNSPREAD)),
    };
    center.zip(spread).is_some_and(|(center, spread)| (value - center).abs() > spread)
}

/// Three significant digits, without an exponent; zero is `0`.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

/// Findings with what was measured and whether it agrees.
pub(super) fn findings(scenario: &Scenario, columns: &[Column<'_>]) -> Vec<Finding> {
    scenario.findings.iter().map(|finding| judge(finding, columns)).collect()
}

fn judge(finding: &crate::scenario::Finding, columns: &[Column<'_>]) -> Finding {
    let name = finding.controller.name();
    let value = |column: &Column<'_>| column.mean(|run| run.summary.metric(None, &finding.metric));
    let ours = simulated(columns).find(|column| column.controller == name).and_then(value);
    let rivals: Vec<(&str, f64)> = simulated(columns)
        .filter(|column| column.controller != name)
        .filter_map(|column| Some((column.controller, value(column)?)))
        .collect();
    let against_rivals = matches!(finding.condition, Condition::Highest | Condition::Lowest);
    let holds = ours.and_then(|ours| match finding.condition {
        Condition::Below(limit) => Some(ours <= limit),
        Condition::Above(limit) => Some(ours >= limit),
        Condition::Highest | Condition::Lowest if rivals.is_empty() => None,
        Condition::Highest => Some(rivals.iter().all(|rival| rival.1 <= ours)),
        Condition::Lowest => Some(rivals.iter().all(|rival| rival.1 >= ours)),
    });
    let mut measured = match ours {
        Some(ours) => format!("{} of {name} is {}", finding.metric, significant(ours)),
        None => format!("{} of {name} was not measured", finding.metric),
    };
    if !against_rivals {
        measured += &format!(" (holds if {})", finding.condition);
    } else if rivals.is_empty() {
        measured += "; no other controller has a value";
    } else {
        let each: Vec<String> =
            rivals.iter().map(|(name, value)| format!("{name} {}", significant(*value))).collect();
        measured += &format!("; {}", each.join(", "));
    }
    Finding {
        text: finding.text.clone(),
        location: finding.location.clone(),
        measured,
        holds,
        why: finding.why.clone(),
    }
}

/// One row for each section, flow and column: means over the seeds.
pub(super) fn sections(
    scenario: &Scenario,
    columns: &[Column<'_>],
    flows: &[&str],
) -> Vec<SectionRow> {
    let mut rows = Vec::new();
    for (index, section) in scenario.sections.iter().enumerate() {
        for flow in flows {
            let name = match flows {
                [_] => section.name.clone(),
                _ => format!("{}, {flow}", section.name),
            };
            let has_flow =
                |column: &&Column<'_>| column.runs.iter().any(|run| run.flow_index(flow).is_some());
            rows.extend(columns.iter().filter(has_flow).map(|column| {
                let mean = |value: fn(&Metrics) -> Option<f64>| {
                    let of_run = |run: &Run| value(&run.flow(flow)?.sections.get(index)?.metrics);
                    column.mean(of_run).map(|mean| rounded(mean, DECIMALS))
                };
                SectionRow {
                    controller: column.controller.into(),
                    engine: column.engine,
                    name: name.clone(),
                    from_s: section.from.as_secs_f64(),
                    to_s: section.to.as_secs_f64(),
                    utilization: mean(|metrics| metrics.utilization),
                    rate_mbps: mean(|metrics| Some(metrics.rate_mbps?.mean)),
                    p95_queuing_delay_ms: mean(|metrics| Some(metrics.queuing_delay_ms?.p95)),
                    rtt_ms: mean(|metrics| Some(metrics.rtt_ms?.mean)),
                    loss_percent: mean(|metrics| Some(metrics.loss_ratio?.mean * 100.0)),
                }
            }));
        }
    }
    rows
}

/// One row for each column and flow with shown video: means over the seeds.
pub(super) fn video(columns: &[Column<'_>], flows: &[&str]) -> Vec<VideoRow> {
    let row = |flow: &str, column: &Column<'_>| {
        let mean = |value: fn(&VideoMetrics) -> Option<f64>| {
            let mean = column.mean(|run| value(&run.flow(flow)?.metrics.video));
            mean.map(|mean| rounded(mean, DECIMALS))
        };
        let frame_rate = mean(|video| video.frame_rate);
        frame_rate.is_some().then(|| VideoRow {
            controller: column.controller.into(),
            engine: column.engine,
            flow: flow.into(),
            frame_rate,
            freezes: mean(|video| Some(video.freeze_count? as f64)),
            frozen_s: mean(|video| video.freeze_duration_s),
            p95_frame_delay_ms: mean(|video| Some(video.frame_delay_ms?.p95)),
            residual_loss_percent: mean(|video| Some(video.residual_loss_ratio? * 100.0)),
            rtx_percent: mean(|video| Some(video.rtx_share? * 100.0)),
            fec_percent: mean(|video| Some(video.fec_share? * 100.0)),
        })
    };
    let of_flow = |flow: &&str| -> Vec<VideoRow> {
        columns.iter().filter_map(|column| row(flow, column)).collect()
    };
    flows.iter().flat_map(of_flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_outside_a_published_spread_or_a_tenth_from_a_number_without_one() {
        for (published, value, outside) in [
            ("1.950 ± 0.234", 2.18, false),
            ("1.950 ± 0.234", 2.19, true),
            ("1.950 ± 0.234", 1.71, true),
            ("11", 10.0, false),
            ("11", 1.45, true),
            ("0", 0.01, true),
            ("below 25", 400.0, false),
        ] {
            assert_eq!(is_outside(published, value), outside, "{published}, {value}");
        }
    }

    #[test]
    fn three_digits_are_significant() {
        for (value, text) in [
            (0.0, "0"),
            (0.78449, "0.784"),
            (0.001234, "0.00123"),
            (12.345, "12.3"),
            (1003.7, "1004"),
            (-0.5, "-0.500"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
