//! Tables: published values and findings compared with ours, and the sections of a run.
//!
//! A published value with an algorithm is compared with simulated runs of that algorithm. A value
//! of GCC is also compared with real calls, because browsers run GCC. A value without an algorithm
//! was measured with browsers or is true for all, so it is compared with every controller and every
//! browser. Means are over the seeds. Findings compare algorithms, so they use simulated runs only.

use weir_metrics::{QualityMetrics, VideoMetrics, mean};
use weir_record::calls::Calls;
use weir_record::run::Engine;
use weir_record::subject::Subject;
use weir_scenario::{Condition, PaperValue, Scenario};

use super::format::{Finding, PaperRow, SectionRow, VideoRow};
use super::{Column, values};

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
    let mut rows = Vec::new();
    for value in &scenario.paper {
        if let Some(algorithm) = value.controller {
            let name = algorithm.name();
            let column = simulated(columns).find(|column| column.controller == name);
            rows.push(paper_row(value, Some(name), column));
            for call in columns.iter().filter(|column| column.engine == Engine::Call) {
                // A browser's own congestion control is a version of GCC.
                let is_browser = name.starts_with(GCC_FAMILY)
                    && !matches!(call.subject, Subject::Controller { .. });
                if call.subject.is_controller(name) || is_browser {
                    rows.push(paper_row(value, Some(call.controller), Some(call)));
                }
            }
            continue;
        }
        let before = rows.len();
        for column in columns {
            // Simulated runs have no calls.
            if column.engine == Engine::Call || !Calls::names(&value.metric) {
                rows.push(paper_row(value, Some(column.controller), Some(column)));
            }
        }
        if rows.len() == before {
            rows.push(paper_row(value, None, None));
        }
    }
    rows
}

fn paper_row(
    value: &PaperValue,
    controller: Option<&str>,
    column: Option<&Column<'_>>,
) -> PaperRow {
    let called = column.filter(|column| column.engine == Engine::Call);
    let mean_of_calls = called.and_then(|column| mean(column.beside(value)));
    let has_changed = mean_of_calls.is_some_and(|mean| is_outside(&value.published, mean));
    PaperRow {
        location: value.location.clone(),
        flow: value.flow.clone(),
        section: value.section.clone(),
        metric: value.metric.clone(),
        controller: controller.map(Into::into),
        published: value.published.clone(),
        measured: column.and_then(|column| mean_and_range(column, value)),
        note: value.note.clone(),
        since: if has_changed { value.since.clone() } else { String::new() },
    }
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
    let (center, spread) = match published.split_once('±') {
        Some((center, spread)) => (center, Some(spread)),
        None => (published, None),
    };
    let Ok(center) = center.trim().parse::<f64>() else { return false };
    let spread = spread.map_or(Ok(center.abs() * UNSPREAD), |spread| spread.trim().parse());
    spread.is_ok_and(|spread| (value - center).abs() > spread)
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

fn judge(finding: &weir_scenario::Finding, columns: &[Column<'_>]) -> Finding {
    let name = finding.controller.name();
    let (mut ours, mut rivals) = (None, Vec::new());
    for column in simulated(columns) {
        let value = column.mean(|run| run.summary.metric(None, &finding.metric));
        if column.controller == name {
            ours = value;
        } else if let Some(value) = value {
            rivals.push((column.controller, value));
        }
    }
    let against_rivals = matches!(finding.condition, Condition::Highest | Condition::Lowest);
    let holds = match (finding.condition, ours) {
        (_, None) => None,
        (Condition::Below(limit), Some(ours)) => Some(ours <= limit),
        (Condition::Above(limit), Some(ours)) => Some(ours >= limit),
        _ if rivals.is_empty() => None,
        (Condition::Highest, Some(ours)) => Some(rivals.iter().all(|rival| rival.1 <= ours)),
        (Condition::Lowest, Some(ours)) => Some(rivals.iter().all(|rival| rival.1 >= ours)),
    };
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
            let part = Some(index);
            for column in columns.iter().filter(|column| column.has_flow(flow)) {
                rows.push(SectionRow {
                    controller: column.controller.into(),
                    engine: column.engine,
                    name: name.clone(),
                    from_s: section.from.as_secs_f64(),
                    to_s: section.to.as_secs_f64(),
                    utilization: column.of_section(flow, part, values::utilization),
                    rate_mbps: column.of_section(flow, part, values::rate_mbps),
                    p95_queuing_delay_ms: column.of_section(
                        flow,
                        part,
                        values::p95_queuing_delay_ms,
                    ),
                    rtt_ms: column.of_section(flow, part, values::rtt_ms),
                    loss_percent: column.of_section(flow, part, values::loss_percent),
                });
            }
        }
    }
    rows
}

/// One row for each column and flow with shown video: means over the seeds.
pub(super) fn video(columns: &[Column<'_>], flows: &[&str]) -> Vec<VideoRow> {
    let mut rows = Vec::new();
    for flow in flows {
        rows.extend(columns.iter().filter_map(|column| video_row(column, flow)));
    }
    rows
}

/// `None` if no video was shown.
fn video_row(column: &Column<'_>, flow: &str) -> Option<VideoRow> {
    let frame_rate = video_mean(column, flow, |video| video.frame_rate)?;
    Some(VideoRow {
        controller: column.controller.into(),
        engine: column.engine,
        flow: flow.into(),
        frame_rate: Some(frame_rate),
        freezes: video_mean(column, flow, |video| Some(video.freeze_count? as f64)),
        frozen_s: video_mean(column, flow, |video| video.freeze_duration_s),
        p95_frame_delay_ms: video_mean(column, flow, |video| Some(video.frame_delay_ms?.p95)),
        residual_loss_percent: video_mean(column, flow, |video| {
            Some(video.residual_loss_ratio? * 100.0)
        }),
        rtx_percent: video_mean(column, flow, |video| Some(video.rtx_share? * 100.0)),
        fec_percent: video_mean(column, flow, |video| Some(video.fec_share? * 100.0)),
        good_percent: seen_mean(column, flow, |seen| Some(seen.good_ratio? * 100.0)),
        vmaf: seen_mean(column, flow, |seen| Some(seen.vmaf?.mean)),
    })
}

fn video_mean(
    column: &Column<'_>,
    flow: &str,
    value: fn(&VideoMetrics) -> Option<f64>,
) -> Option<f64> {
    column.rounded_mean(|run| value(&run.flow(flow)?.metrics.video))
}

fn seen_mean(
    column: &Column<'_>,
    flow: &str,
    value: fn(&QualityMetrics) -> Option<f64>,
) -> Option<f64> {
    column.rounded_mean(|run| value(&run.flow(flow)?.metrics.quality))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_outside_a_published_spread_or_a_tenth_from_a_number() {
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
