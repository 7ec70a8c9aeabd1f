//! `weir check`: scenarios as a gate.

use std::process::ExitCode;

use anyhow::Context;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use weir_lab::summary::{ExpectRow, Summary};

use crate::args::Check;
use crate::output;
use crate::run::simulate;
use crate::table;

/// Runs, prints each expectation, and says by exit code whether all hold.
pub fn check(args: &Check) -> anyhow::Result<ExitCode> {
    let summaries = simulate(&args.selection, None)?;
    let rows = |summary: &Summary| summary.expect.iter().map(|row| line(summary, row)).collect();
    let lines: Vec<Vec<String>> = summaries.iter().flat_map::<Vec<_>, _>(rows).collect();
    anyhow::ensure!(
        !lines.is_empty(),
        "none of these scenarios expects anything of these controllers: add [[expect]] to them"
    );
    const HEAD: [&str; 7] =
        ["scenario", "controller", "seed", "verdict", "expectation", "measured", "limit"];
    output::print(&table::aligned(&HEAD, &lines, 5))?;
    if let Some(path) = &args.junit {
        std::fs::write(path, junit(&summaries)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let failed = summaries.iter().flat_map(|run| &run.expect).filter(|row| !row.pass).count();
    output::line(&format!("\n{} expectations, {failed} failed", lines.len()))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(summary: &Summary, row: &ExpectRow) -> Vec<String> {
    let verdict = if row.pass { "holds" } else { "FAILS" };
    vec![
        summary.scenario.clone(),
        summary.controller.clone(),
        summary.seed.clone(),
        verdict.into(),
        row.text.clone(),
        table::number(row.measured, 3),
        table::number(Some(row.limit), 3),
    ]
}

fn junit(summaries: &[Summary]) -> anyhow::Result<String> {
    let mut report = quick_junit::Report::new("weir check");
    for summary in summaries {
        let Summary { scenario, controller, seed, .. } = summary;
        let mut suite = TestSuite::new(format!("{scenario} {controller} seed {seed}"));
        for row in &summary.expect {
            let status = if row.pass {
                TestCaseStatus::success()
            } else {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let measured = table::number(row.measured, 3);
                status.set_message(format!("measured {measured}, limit {}", row.limit));
                status.set_description(format!(
                    "replay: weir run {scenario} --controller {controller} --seed {seed}"
                ));
                status
            };
            suite.add_test_case(TestCase::new(row.text.clone(), status));
        }
        report.add_test_suite(suite);
    }
    Ok(report.to_string()?)
}
