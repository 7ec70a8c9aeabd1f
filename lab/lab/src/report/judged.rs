//! Expectations, verdicts, fairness, and what has changed since 2013.

use weir_controllers::LabAlgorithm;

use super::format::{Expectation, ExpectationOutcome, FairnessRow, Measured, ThenAndNow, Verdict};
use super::{Column, Run, rounded};
use crate::gate::{self, Judgement, Outcome};
use crate::run::Engine;
use crate::summary::{Bound, ExpectRow, Summary};

const DECIMALS: i32 = 6;

/// Judges every expectation of every run, as `weir check` does. A real run with an exclusion is not
/// judged: its values describe the machine, or a failed call is missing from them.
pub(super) fn judge(runs: &[Run]) -> Vec<Judgement> {
    let trusted = runs.iter().filter(|run| run.record.exclusion().is_none());
    let summaries: Vec<Summary> = trusted.map(|run| run.summary.clone()).collect();
    gate::judge(&summaries)
}

pub(super) fn expectations(judgements: &[Judgement], scenario: &str) -> Vec<Expectation> {
    let of = judgements.iter().filter(|judgement| judgement.scenario == scenario);
    of.map(|judgement| Expectation {
        controller: judgement.controller.clone(),
        text: judgement.row.text.clone(),
        measured: judgement.row.measured.map(|value| rounded(value, DECIMALS)),
        confidence: judgement.confidence.map(|value| rounded(value, DECIMALS)),
        limit: limit(&judgement.row),
        outcome: match judgement.outcome {
            Outcome::Holds => ExpectationOutcome::Holds,
            Outcome::Fails => ExpectationOutcome::Fails,
            Outcome::InDoubt => ExpectationOutcome::InDoubt,
            Outcome::KnownMiss => ExpectationOutcome::KnownMiss,
            Outcome::MissIsGone => ExpectationOutcome::MissIsGone,
        },
        why: judgement.row.known_miss.clone().unwrap_or_default(),
    })
    .collect()
}

fn limit(row: &ExpectRow) -> String {
    match row.bound {
        Bound::Above => format!("at least {}", row.limit),
        Bound::Below => format!("at most {}", row.limit),
    }
}

/// Verdicts on all requirements; empty if no expectation of the report tests any.
pub(super) fn verdicts(judgements: &[Judgement]) -> Vec<Verdict> {
    let verdicts = gate::verdicts(judgements);
    if verdicts.iter().all(|verdict| verdict.met.is_none()) {
        return Vec::new();
    }
    let by = |judgement: &Judgement| {
        let row = &judgement.row;
        let value = row.measured.map_or("not measured".into(), |value| format!("{value:.3}"));
        format!("{}: {}: {value}, {}", judgement.scenario, row.text, limit(row))
    };
    let figure = |judgement: &Judgement| {
        let value = judgement.row.measured?;
        let decimals = match value.abs() {
            size if size >= 10.0 => 0,
            size if size >= 1.0 => 2,
            _ => 3,
        };
        Some(format!("{value:.decimals$}, {}", limit(&judgement.row)))
    };
    let verdict = |verdict: gate::Verdict| Verdict {
        requirement: verdict.requirement.into(),
        text: verdict.text.into(),
        met: verdict.met,
        held: verdict.held,
        tested: verdict.tested,
        by: verdict.by.as_ref().map(by).unwrap_or_default(),
        figure: verdict.by.as_ref().and_then(figure).unwrap_or_default(),
        controller: verdict.controller,
    };
    verdicts.into_iter().map(verdict).collect()
}

/// One row for each controller whose media flows share a path.
pub(super) fn fairness(columns: &[Column<'_>]) -> Vec<FairnessRow> {
    let row = |column: &Column<'_>| {
        let mean = |path: &str| {
            let value = |run: &Run| run.summary.shared.at(path);
            column.mean(value).map(|value| rounded(value, DECIMALS))
        };
        Some(FairnessRow {
            controller: column.controller.into(),
            engine: column.engine,
            jain: Some(mean("fairness.jain")?),
            ratio_1s: mean("fairness.ratio_1s.min"),
            ratio_5s: mean("fairness.ratio_5s.min"),
            ratio_20s: mean("fairness.ratio_20s.min"),
            within_5s: mean("fairness.ratio_5s.within"),
        })
    };
    columns.iter().filter_map(row).collect()
}

/// Rows for the flows of scenarios of bari, if they ran under both of Google's algorithms.
pub(super) fn then_and_now(
    scenario: &str,
    columns: &[Column<'_>],
    flows: &[&str],
) -> Vec<ThenAndNow> {
    let find = |algorithm: LabAlgorithm| {
        let wanted = |column: &&Column<'_>| {
            column.engine == Engine::Sim && column.controller == algorithm.name()
        };
        columns.iter().find(wanted)
    };
    let pair = find(LabAlgorithm::Gcc2013).zip(find(LabAlgorithm::Gcc));
    let Some((then, now)) = pair.filter(|_| scenario.starts_with("bari/")) else {
        return Vec::new();
    };
    let row = |flow: &&str| ThenAndNow {
        scenario: scenario.into(),
        flow: (*flow).into(),
        then: measured(then, flow),
        now: measured(now, flow),
    };
    flows.iter().map(row).collect()
}

fn measured(column: &Column<'_>, flow: &str) -> Measured {
    let mean = |path: &str| column.mean(|run| run.summary.metric(Some(flow), path));
    let rounded = |value: Option<f64>| value.map(|value| rounded(value, DECIMALS));
    Measured {
        utilization: rounded(mean("utilization")),
        rate_mbps: rounded(mean("rate_mbps.mean")),
        p95_queuing_delay_ms: rounded(mean("queuing_delay_ms.p95")),
        loss_percent: rounded(mean("loss_ratio.mean").map(|ratio| ratio * 100.0)),
    }
}
