//! Expectations, verdicts, fairness, and what has changed since 2013.

use weir_controllers::LabAlgorithm;
use weir_record::gate::{self, Certainty, Judgement, Outcome};
use weir_record::run::Engine;
use weir_record::summary::{Bound, ExpectRow, Summary};
use weir_scenario::Scenario;

use super::format::{
    Expectation, ExpectationOutcome, FairnessRow, FlowMeans, RequirementRow, ThenAndNow,
};
use super::{Column, DECIMALS, Run, rounded, rounded_if};

/// Judges every expectation of every run, as `weir check` does. A real run with an exclusion is not
/// judged: its values describe the machine, or a failed call is missing from them.
pub(super) fn judge(runs: &[Run]) -> Vec<Judgement> {
    let trusted = runs.iter().filter(|run| run.record.exclusion().is_none());
    let summaries: Vec<Summary> = trusted.map(|run| run.summary.clone()).collect();
    gate::judge(&summaries, Certainty::OfMany)
}

pub(super) fn expectations(judgements: &[Judgement], scenario: &str) -> Vec<Expectation> {
    let mut rows = Vec::new();
    for Judgement { scenario: of, controller, row, confidence, outcome, .. } in judgements {
        if of != scenario {
            continue;
        }
        rows.push(Expectation {
            controller: controller.clone(),
            text: row.text.clone(),
            measured: rounded_if(row.measured, DECIMALS),
            confidence: rounded_if(*confidence, DECIMALS),
            limit: limit(row),
            outcome: match outcome {
                Outcome::Holds => ExpectationOutcome::Holds,
                Outcome::Fails => ExpectationOutcome::Fails,
                Outcome::InDoubt => ExpectationOutcome::InDoubt,
                Outcome::KnownMiss => ExpectationOutcome::KnownMiss,
                Outcome::MissIsGone => ExpectationOutcome::MissIsGone,
            },
            why: row.known_miss.clone().unwrap_or_default(),
        });
    }
    rows
}

fn limit(row: &ExpectRow) -> String {
    match row.bound {
        Bound::Above => format!("at least {}", row.limit),
        Bound::Below => format!("at most {}", row.limit),
    }
}

/// Verdicts on all requirements; empty if no expectation of the report tests any.
pub(super) fn verdicts(judgements: &[Judgement]) -> Vec<RequirementRow> {
    let verdicts = gate::verdicts(judgements);
    if verdicts.iter().all(|verdict| verdict.met.is_none()) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for verdict in verdicts {
        rows.push(RequirementRow {
            requirement: verdict.requirement.into(),
            text: verdict.text.into(),
            met: verdict.met,
            held: verdict.held,
            tested: verdict.tested,
            by: verdict.by.as_ref().map(decided_by).unwrap_or_default(),
            figure: verdict.by.as_ref().and_then(figure).unwrap_or_default(),
            controller: verdict.controller,
        });
    }
    rows
}

fn decided_by(judgement: &Judgement) -> String {
    let row = &judgement.row;
    let value = row.measured.map_or("not measured".into(), |value| format!("{value:.3}"));
    format!("{}: {}: {value}, {}", judgement.scenario, row.text, limit(row))
}

fn figure(judgement: &Judgement) -> Option<String> {
    let value = judgement.row.measured?;
    let decimals = match value.abs() {
        size if size >= 10.0 => 0,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    Some(format!("{value:.decimals$}, {}", limit(&judgement.row)))
}

/// One row for each controller whose media flows share a path.
pub(super) fn fairness(columns: &[Column<'_>]) -> Vec<FairnessRow> {
    let mut rows = Vec::new();
    for column in columns {
        let [jain, ratio_1s, ratio_5s, ratio_20s, within_5s] = [
            "fairness.jain",
            "fairness.ratio_1s.min",
            "fairness.ratio_5s.min",
            "fairness.ratio_20s.min",
            "fairness.ratio_5s.within",
        ]
        .map(|path| column.rounded_mean(|run| run.summary.shared.at(path)));
        if jain.is_some() {
            let (controller, engine) = (column.controller.into(), column.engine);
            rows.push(FairnessRow {
                controller,
                engine,
                jain,
                ratio_1s,
                ratio_5s,
                ratio_20s,
                within_5s,
            });
        }
    }
    rows
}

/// Rows for the flows of a scenario with published values of the GCC of 2013, if it ran under that
/// algorithm and under today's.
pub(super) fn then_and_now(
    scenario: &Scenario,
    columns: &[Column<'_>],
    flows: &[&str],
) -> Vec<ThenAndNow> {
    let mut both = [None; 2];
    for (found, algorithm) in both.iter_mut().zip([LabAlgorithm::Gcc2013, LabAlgorithm::Gcc]) {
        *found = columns
            .iter()
            .find(|column| column.engine == Engine::Sim && column.controller == algorithm.name());
    }
    let [then, now] = both;
    let mut rows = Vec::new();
    if let (Some(then), Some(now), true) =
        (then, now, scenario.has_published(LabAlgorithm::Gcc2013))
    {
        for flow in flows {
            let (then, now) = (measured(then, flow), measured(now, flow));
            let (scenario, flow) = (scenario.id.clone(), (*flow).into());
            rows.push(ThenAndNow { scenario, flow, then, now });
        }
    }
    rows
}

fn measured(column: &Column<'_>, flow: &str) -> FlowMeans {
    let [utilization, rate_mbps, p95_queuing_delay_ms, loss_ratio] =
        ["utilization", "rate_mbps.mean", "queuing_delay_ms.p95", "loss_ratio.mean"]
            .map(|path| column.mean(|run| run.summary.metric(Some(flow), path)));
    FlowMeans {
        utilization: rounded_if(utilization, DECIMALS),
        rate_mbps: rounded_if(rate_mbps, DECIMALS),
        p95_queuing_delay_ms: rounded_if(p95_queuing_delay_ms, DECIMALS),
        loss_percent: loss_ratio.map(|ratio| rounded(ratio * 100.0, DECIMALS)),
    }
}
