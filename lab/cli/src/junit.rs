//! JUnit files of judged expectations, as readers of CI results know them.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use weir_record::gate::{Judgement, Outcome};
use weir_record::subject;
use weir_record::summary::Bound;

use crate::table;

/// An expectation as it is written.
pub struct Case<'a> {
    /// The judgement.
    pub judgement: &'a Judgement,
    /// Why it is missed, in words; empty if nothing is known.
    pub cause: String,
    /// The command that repeats its runs.
    pub replay: String,
}

/// What a suite is about. Its names are those of earlier runs, whatever came of them.
pub struct Who {
    suite: String,
    class: String,
}

impl Who {
    /// A controller under a scenario, by its label.
    pub fn of_label(scenario: &str, controller: &str) -> Self {
        let short = match subject::is_application(controller) {
            true => "app",
            false => subject::short(controller),
        };
        let suite = format!("{scenario} {controller}");
        Self { suite, class: class_name(scenario, short) }
    }

    /// A row of the arena under a scenario, by its name and role.
    #[cfg(calls)]
    pub fn of_row(scenario: &str, name: &str, role: &str) -> Self {
        let suite = format!("{scenario} {name} {role}");
        Self { suite, class: class_name(scenario, &format!("{name}-{role}")) }
    }
}

/// A suite of expectations. `time` is that of its runs, divided equally between its cases.
pub fn suite(who: &Who, cases: &[Case<'_>], time: Duration, strict: bool) -> TestSuite {
    let mut suite = TestSuite::new(who.suite.as_str());
    suite.set_time(time);
    for one in cases {
        let mut case = TestCase::new(one.judgement.row.text.clone(), status(one, strict));
        case.set_classname(who.class.as_str());
        case.set_time(time / cases.len() as u32);
        case.set_system_out(in_words(one.judgement));
        suite.add_test_case(case);
    }
    suite
}

/// A suite for runs that have no values, with the reason.
pub fn without_values(who: &Who, mut status: TestCaseStatus, why: &str) -> TestSuite {
    status.set_message(why);
    let mut case = TestCase::new("the call has values that count", status);
    case.set_classname(who.class.as_str());
    let mut suite = TestSuite::new(who.suite.as_str());
    suite.add_test_case(case);
    suite
}

/// The text of a file with these suites.
pub fn text(command: &str, suites: Vec<TestSuite>, time: Duration) -> anyhow::Result<String> {
    let mut report = Report::new(command);
    report.set_time(time);
    report.add_test_suites(suites);
    Ok(report.to_string()?)
}

/// A class name such as `rfc8867.5_1.gcc`. Readers of JUnit files show the parts between dots as
/// folders.
fn class_name(scenario: &str, controller: &str) -> String {
    let scenario = scenario.replace('.', "_").replace('/', ".");
    format!("{}.{controller}", scenario.trim_start_matches(['.', '_']))
}

/// The deciding flows, or `all` if the metric is of all flows together.
pub fn flows(judgement: &Judgement) -> String {
    if judgement.flows.is_empty() { "all".into() } else { judgement.flows.join(", ") }
}

/// The value; with several seeds also its confidence interval.
pub fn measured(judgement: &Judgement) -> String {
    let interval = judgement.confidence.map(|half| format!(" ± {half:.3}"));
    table::number(judgement.row.measured, 3) + &interval.unwrap_or_default()
}

/// The measured value in words, its flow, and whether there is doubt.
pub fn in_words(judgement: &Judgement) -> String {
    let Judgement { row, confidence, outcome, held, seeds, .. } = judgement;
    let doubt = if *outcome == Outcome::InDoubt { "in doubt: " } else { "" };
    let interval = confidence.map_or("", |_| " (95 %)");
    let bound = match row.bound {
        Bound::Above => "at least",
        Bound::Below => "at most",
    };
    format!(
        "{doubt}measured {}{interval}, limit {bound} {}; flow {}; holds with {held} of {} seeds",
        measured(judgement),
        row.limit,
        flows(judgement),
        seeds.len()
    )
}

fn status(case: &Case<'_>, strict: bool) -> TestCaseStatus {
    let Case { judgement, cause, replay } = case;
    let mut status = match judgement.outcome {
        Outcome::KnownMiss => TestCaseStatus::skipped(),
        outcome if outcome.passes(strict) => return TestCaseStatus::success(),
        _ => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    let words = in_words(judgement);
    status.set_message(match (&judgement.row.known_miss, judgement.outcome) {
        (Some(_), Outcome::MissIsGone) => format!("a known miss holds now: {words}"),
        (Some(why), _) => format!("known miss: {why}; {words}"),
        (None, _) if cause.is_empty() => words,
        (None, _) => format!("{words}; {cause}"),
    });
    status.set_description(replay.as_str());
    status
}
