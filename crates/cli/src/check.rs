//! `weir check`: scenarios as a gate.

use std::process::ExitCode;

use anyhow::Context;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use weir_lab::gate::{Judgement, Outcome, Verdict, judge, verdicts};
use weir_lab::whole_file;

use crate::args::Check;
use crate::interrupt::Interrupt;
use crate::output;
use crate::run::simulate;
use crate::table;

/// Runs, prints what became of the expectations, and says by exit code whether the gate is open.
pub fn check(args: &Check) -> anyhow::Result<ExitCode> {
    let judgements = judge(&simulate(&args.selection, None, &Interrupt::listen()?)?);
    anyhow::ensure!(
        !judgements.is_empty(),
        "none of these scenarios expects anything of these controllers: add [[expect]] to them"
    );
    output::print(&matrix(&judgements))?;
    let shown = |judgement: &&Judgement| args.list || judgement.outcome != Outcome::Holds;
    let lines: Vec<Vec<String>> = judgements.iter().filter(shown).map(line).collect();
    if !lines.is_empty() {
        const HEAD: [&str; 7] =
            ["scenario", "controller", "verdict", "expectation", "measured", "limit", "seeds"];
        // One seed has nothing to count.
        let several = judgements.iter().any(|judgement| judgement.seeds.len() > 1);
        let head = &HEAD[..HEAD.len() - usize::from(!several)];
        output::print(&format!("\n{}", table::aligned(head, &lines, 4)))?;
    }
    let mut replays: Vec<String> =
        judgements.iter().filter(|one| !one.outcome.passes()).map(replay).collect();
    replays.dedup();
    for replay in replays {
        output::line(&output::escaped(&replay))?;
    }
    let requirements = requirements(&verdicts(&judgements));
    if !requirements.is_empty() {
        output::print(&format!("\nRequirements of RFC 8836\n{requirements}"))?;
    }
    if let Some(path) = &args.junit {
        whole_file::write(path, junit(&judgements)?.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let count = |outcome| judgements.iter().filter(|one| one.outcome == outcome).count();
    let doubt = match count(Outcome::InDoubt) {
        0 => String::new(),
        count => format!(" {count} in doubt,"),
    };
    output::line(&format!(
        "\n{} expectations: {} hold, {} failed,{} {} known misses, {} known misses that hold now",
        judgements.len(),
        count(Outcome::Holds),
        count(Outcome::Fails),
        doubt,
        count(Outcome::KnownMiss),
        count(Outcome::MissIsGone)
    ))?;
    let is_open = judgements.iter().all(|judgement| judgement.outcome.passes());
    Ok(if is_open { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names in the order in which they come first.
fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    names.for_each(|name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
    });
    seen
}

/// Scenarios by controllers.
fn matrix(judgements: &[Judgement]) -> String {
    let controllers = unique(judgements.iter().map(|judgement| judgement.controller.as_str()));
    let scenarios = unique(judgements.iter().map(|judgement| judgement.scenario.as_str()));
    let row = |&scenario: &&str| {
        let cell = |&controller: &&str| {
            let of =
                |one: &&Judgement| (&*one.scenario, &*one.controller) == (scenario, controller);
            cell(judgements.iter().filter(of))
        };
        std::iter::once(scenario.into()).chain(controllers.iter().map(cell)).collect()
    };
    let rows: Vec<Vec<String>> = scenarios.iter().map(row).collect();
    let head: Vec<&str> = std::iter::once("scenario").chain(controllers.iter().copied()).collect();
    table::aligned(&head, &rows, head.len())
}

/// `pass`, `2 FAIL`, `1 doubt`, `1 miss`, or a dash where nothing is expected.
fn cell<'a>(judgements: impl Iterator<Item = &'a Judgement>) -> String {
    let (mut failed, mut gone, mut doubtful, mut missed, mut held) = (0, 0, 0, 0, 0);
    for judgement in judgements {
        match judgement.outcome {
            Outcome::Fails => failed += 1,
            Outcome::MissIsGone => gone += 1,
            Outcome::InDoubt => doubtful += 1,
            Outcome::KnownMiss => missed += 1,
            Outcome::Holds => held += 1,
        }
    }
    let parts = [(failed, "FAIL"), (gone, "GONE"), (doubtful, "doubt"), (missed, "miss")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|part| part.0 > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    match (parts.is_empty(), held) {
        (false, _) => parts.join(", "),
        (true, 0) => "-".into(),
        (true, _) => "pass".into(),
    }
}

fn line(judgement: &Judgement) -> Vec<String> {
    let Judgement { scenario, controller, row, confidence, outcome, seeds, held } = judgement;
    let verdict = match outcome {
        Outcome::Holds => "holds",
        Outcome::Fails => "FAILS",
        Outcome::InDoubt => "in doubt",
        Outcome::KnownMiss => "known miss",
        Outcome::MissIsGone => "KNOWN MISS HOLDS",
    };
    let text = match (&row.known_miss, outcome) {
        (Some(why), Outcome::KnownMiss) => format!("{} ({why})", row.text),
        _ => row.text.clone(),
    };
    let measured = table::number(row.measured, 3);
    vec![
        scenario.clone(),
        controller.clone(),
        verdict.into(),
        text,
        confidence.map_or(measured.clone(), |half| format!("{measured} ± {half:.3}")),
        table::number(Some(row.limit), 3),
        format!("{held} of {} hold", seeds.len()),
    ]
}

/// Requirements by controllers; empty if none was tested.
fn requirements(verdicts: &[Verdict]) -> String {
    let controllers = unique(verdicts.iter().map(|verdict| verdict.controller.as_str()));
    let numbers = unique(verdicts.iter().map(|verdict| verdict.requirement));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for number in numbers {
        let of = verdicts.iter().filter(|verdict| verdict.requirement == number);
        let of: Vec<&Verdict> = of.collect();
        if of.iter().all(|verdict| verdict.met.is_none()) {
            continue;
        }
        let cells = of.iter().map(|verdict| match verdict.met {
            Some(true) => "met".into(),
            Some(false) => format!("not met, {} of {}", verdict.held, verdict.tested),
            None => "not tested".into(),
        });
        let name = format!("{number} {}", of[0].text);
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<&str> =
        std::iter::once("requirement").chain(controllers.iter().copied()).collect();
    table::aligned(&head, &rows, head.len())
}

fn junit(judgements: &[Judgement]) -> anyhow::Result<String> {
    let mut report = quick_junit::Report::new("weir check");
    let of_suite =
        |a: &Judgement, b: &Judgement| (&a.scenario, &a.controller) == (&b.scenario, &b.controller);
    for judgements in judgements.chunk_by(of_suite) {
        let Judgement { scenario, controller, .. } = &judgements[0];
        let mut suite = TestSuite::new(format!("{scenario} {controller}"));
        for judgement in judgements {
            let mut case = TestCase::new(judgement.row.text.clone(), status(judgement));
            if judgement.outcome == Outcome::InDoubt {
                case.set_system_out(doubt(judgement));
            }
            suite.add_test_case(case);
        }
        report.add_test_suite(suite);
    }
    Ok(report.to_string()?)
}

/// What a success that is none beyond doubt says of itself: the schema knows no outcome between.
fn doubt(judgement: &Judgement) -> String {
    let Judgement { row, confidence, held, seeds, .. } = judgement;
    let (measured, half) = (table::number(row.measured, 3), table::number(*confidence, 3));
    format!(
        "in doubt: {measured} ± {half} (95 %), limit {}; {held} of {} seeds hold",
        row.limit,
        seeds.len()
    )
}

fn status(judgement: &Judgement) -> TestCaseStatus {
    let row = &judgement.row;
    let measured = table::number(row.measured, 3);
    let mut status = match judgement.outcome {
        Outcome::Holds | Outcome::InDoubt => return TestCaseStatus::success(),
        Outcome::KnownMiss => TestCaseStatus::skipped(),
        Outcome::Fails | Outcome::MissIsGone => {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        }
    };
    let limit = row.limit;
    status.set_message(match (&row.known_miss, judgement.outcome) {
        (Some(_), Outcome::MissIsGone) => {
            format!("a known miss holds now: measured {measured}, limit {limit}")
        }
        (Some(why), _) => format!("known miss: {why}; measured {measured}, limit {limit}"),
        (None, _) => format!("measured {measured}, limit {limit}"),
    });
    status.set_description(replay(judgement));
    status
}

/// How to make the runs again that a judgement is about.
fn replay(judgement: &Judgement) -> String {
    let Judgement { scenario, controller, seeds, .. } = judgement;
    let seeds = match seeds.as_slice() {
        [seed] => format!("--seed {seed}"),
        several => format!("--seeds {}", several.len()),
    };
    format!("replay: weir run {scenario} --controller {controller} {seeds}")
}
