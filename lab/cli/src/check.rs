//! `weir check`: judges the expectations of scenarios, as a gate.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use quick_junit::TestCaseStatus;
use weir_record::calls::Exclusion;
use weir_record::gate::{Certainty, Judgement, Outcome, RequirementVerdict, judge, verdicts};
use weir_record::run::Engine;
use weir_record::subject;
use weir_record::summary::{Bound, ExpectRow, Summary, needs_picture_model};
use weir_record::whole_file;
use weir_scenario::{Expectation, ExpectedFlow, Scenario};
use weir_sim::has_picture_model;

use crate::args::{ATTEMPTS, Check, CheckEngine};
use crate::interrupt::Interrupt;
use crate::junit::{Case, Who, flows, measured};
use crate::layout::{Form, Table};
use crate::run::{Simulated, simulate_scenarios};
use crate::{junit, output, real, select, table};

/// Exit code if nothing failed, and something was not judged.
const NOT_JUDGED: u8 = 3;

/// A scenario and controller of which this machine disturbed each run.
struct NotJudged {
    scenario: String,
    controller: String,
    runs: usize,
}

impl NotJudged {
    fn reason(&self) -> String {
        match self.runs {
            1 => "not judged: this machine disturbed the call".into(),
            runs => format!("not judged: this machine disturbed each of {runs} calls"),
        }
    }
}

/// Runs the scenarios and prints the results of their expectations. The exit code says whether all
/// pass.
pub fn check(args: &Check) -> anyhow::Result<ExitCode> {
    let runs = runs(args, &Interrupt::listen()?)?;
    let times = times(&runs);
    let summaries = runs.into_iter().map(|run| run.summary).collect();
    let (summaries, not_judged) = counting(summaries);
    let judgements = judge(&summaries, Certainty::OfMany);
    anyhow::ensure!(
        !judgements.is_empty() || !not_judged.is_empty(),
        "these scenarios have no expectations of these controllers: add [[expect]] to one of them, \
         or --engine call for those of calls and participants"
    );
    let form = Form::of(args.markdown);
    if !judgements.is_empty() {
        output::print(&matrix(&judgements, form))?;
    }
    for one in &not_judged {
        let controller = subject::short(&one.controller);
        let line = format!("{} {controller}: {}", one.scenario, one.reason());
        output::line(&output::escaped(&line))?;
    }
    // With Markdown the single expectations follow the matrix only with `--list`.
    let mut shown: Vec<&Judgement> = judgements.iter().collect();
    shown.retain(|one| args.list || (!args.markdown && one.outcome != Outcome::Holds));
    if !shown.is_empty() {
        output::print(&format!("\n{}", lines(&shown).written(form)))?;
    }
    let unmet = judgements.iter().filter(|one| !one.outcome.passes(args.strict));
    let mut replays: Vec<String> = unmet.map(replay).collect();
    replays.dedup();
    for command in &replays {
        output::line(&output::escaped(command))?;
    }
    let requirements = requirements(&verdicts(&judgements), form);
    if !requirements.is_empty() {
        let heading = "Requirements of RFC 8836: met, or how many of their expectations hold";
        let gap = if args.markdown { "\n" } else { "" };
        output::print(&format!("\n{heading}\n{gap}{requirements}"))?;
    }
    if let Some(path) = &args.junit {
        let text = junit_text(&judgements, &not_judged, &times, args.strict)?;
        whole_file::write(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let doubt = match count(&judgements, Outcome::InDoubt) {
        0 => String::new(),
        count if args.strict => format!(" {count} in doubt (--strict: failed),"),
        count => format!(" {count} in doubt,"),
    };
    let judged = judgements.len();
    let noun = if judged == 1 { "expectation" } else { "expectations" };
    output::line(&format!(
        "\n{judged} {noun}: {} hold, {} failed,{} {} known misses, {} known misses that hold now",
        count(&judgements, Outcome::Holds),
        count(&judgements, Outcome::Fails),
        doubt,
        count(&judgements, Outcome::KnownMiss),
        count(&judgements, Outcome::MissIsGone)
    ))?;
    Ok(match (replays.is_empty(), not_judged.is_empty()) {
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(NOT_JUDGED),
        (false, _) => ExitCode::FAILURE,
    })
}

/// The runs that this machine did not disturb, and what has no other ones.
fn counting(summaries: Vec<Summary>) -> (Vec<Summary>, Vec<NotJudged>) {
    let (disturbed, counting): (Vec<Summary>, Vec<Summary>) =
        summaries.into_iter().partition(|run| run.exclusion() == Some(Exclusion::Disturbed));
    let mut not_judged: Vec<NotJudged> = Vec::new();
    for Summary { scenario, controller, .. } in disturbed {
        if counting.iter().any(|run| (&run.scenario, &run.controller) == (&scenario, &controller)) {
            continue;
        }
        let known = not_judged
            .iter_mut()
            .find(|one| (&one.scenario, &one.controller) == (&scenario, &controller));
        match known {
            Some(one) => one.runs += 1,
            None => not_judged.push(NotJudged { scenario, controller, runs: 1 }),
        }
    }
    (counting, not_judged)
}

fn count<'a>(judgements: impl IntoIterator<Item = &'a Judgement>, outcome: Outcome) -> usize {
    judgements.into_iter().filter(|one| one.outcome == outcome).count()
}

/// Makes the runs that are judged.
fn runs(args: &Check, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    if args.engine == CheckEngine::Sim {
        for (is_given, option) in [
            (args.application.app.is_some(), "--app"),
            (args.out.is_some(), "--out"),
            (args.quality, "--quality"),
            (args.attempts != ATTEMPTS, "--attempts"),
        ] {
            anyhow::ensure!(!is_given, "{option} is for real calls: add --engine call");
        }
        let scenarios = select::scenarios(&args.selection.scenarios)?;
        scenarios.iter().try_for_each(has_picture_models)?;
        note_real_ones(&scenarios);
        return simulate_scenarios(&args.selection, &scenarios, None, interrupt);
    }
    real::checked(args, interrupt)
}

/// What a simulation cannot measure is an error now, and no failed expectation afterwards.
fn has_picture_models(scenario: &Scenario) -> anyhow::Result<()> {
    for Expectation { metric, flow: expected, .. } in &scenario.expectations {
        if !needs_picture_model(metric) {
            continue;
        }
        for flow in &scenario.flows {
            let Some(media) = flow.traffic.media() else { continue };
            let is_named = !matches!(expected, ExpectedFlow::Named(name) if *name != flow.name);
            anyhow::ensure!(
                !is_named || !media.watches.is_empty() || has_picture_model(media.source),
                "{} expects {metric} of {}, whose pictures have no model: write source = {{ kind = \
                 \"encoder\" }} in its [[flow]] and content = \"film\" or \"head\" in \
                 [call.video], or --engine call",
                scenario.id,
                flow.name
            );
            if *expected == ExpectedFlow::First {
                break;
            }
        }
    }
    Ok(())
}

/// Says how many expectations a simulation cannot judge.
fn note_real_ones(scenarios: &[Scenario]) {
    let expectations = scenarios.iter().flat_map(|scenario| &scenario.expectations);
    let count = expectations.filter(|one| one.flow.is_of_real_run()).count();
    if count > 0 {
        let are = if count == 1 { "expectation is" } else { "expectations are" };
        eprintln!(
            "weir: {count} {are} of calls or participants, which a simulation does not have: \
             --engine call makes calls, and with --app those of an application"
        );
    }
}

/// The distinct names, in the order of their first occurrence.
fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// Matrix of scenarios by controllers.
fn matrix(judgements: &[Judgement], form: Form) -> String {
    let controllers = unique(judgements.iter().map(|judgement| judgement.controller.as_str()));
    let scenarios = unique(judgements.iter().map(|judgement| judgement.scenario.as_str()));
    let mut rows = Vec::new();
    for scenario in scenarios {
        let mut row = vec![scenario.to_owned()];
        for controller in &controllers {
            let mut of: Vec<&Judgement> = judgements.iter().collect();
            of.retain(|one| one.scenario == scenario && one.controller == *controller);
            row.push(cell(&of));
        }
        rows.push(row);
    }
    let mut head = vec!["scenario"];
    head.extend(controllers.iter().map(|controller| subject::short(controller)));
    fitting(&head, rows, form)
}

/// A table of words. If it is too wide, the first column becomes lines above the other columns.
fn fitting(head: &[&str], rows: Vec<Vec<String>>, form: Form) -> String {
    let table = Table { head: head.to_vec(), left: head.len(), rows, ..Table::default() };
    Table { common: vec![0], ..table }.written(form)
}

/// `pass`, `2 FAIL`, `1 doubt`, `1 miss`, or a dash where nothing is expected.
fn cell(judgements: &[&Judgement]) -> String {
    let mut parts = Vec::new();
    for (outcome, word) in [
        (Outcome::Fails, "FAIL"),
        (Outcome::MissIsGone, "GONE"),
        (Outcome::InDoubt, "doubt"),
        (Outcome::KnownMiss, "miss"),
    ] {
        let number = count(judgements.iter().copied(), outcome);
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    match (parts.is_empty(), judgements.is_empty()) {
        (false, _) => parts.join(", "),
        (true, true) => "-".into(),
        (true, false) => "pass".into(),
    }
}

/// One line for each expectation.
fn lines(judgements: &[&Judgement]) -> Table<'static> {
    const HEAD: [&str; 8] =
        ["scenario", "controller", "verdict", "expectation", "flow", "measured", "limit", "seeds"];
    const EXPECTATION: usize = 3;
    const SEEDS: usize = 7;
    let rows = judgements.iter().map(|judgement| line(judgement)).collect();
    let mut table = Table {
        head: HEAD.to_vec(),
        rows,
        left: EXPECTATION + 2,
        common: vec![0, 1],
        spare: vec![SEEDS],
        words: Some(EXPECTATION),
    };
    // With one seed the column of seeds is not needed.
    if judgements.iter().all(|judgement| judgement.seeds.len() == 1) {
        table.head.truncate(SEEDS);
        for row in &mut table.rows {
            row.truncate(SEEDS);
        }
        table.spare.clear();
    }
    table
}

fn line(judgement: &Judgement) -> Vec<String> {
    let Judgement { scenario, controller, row, outcome, seeds, held, .. } = judgement;
    let text = match (&row.known_miss, outcome) {
        (Some(why), Outcome::KnownMiss) => format!("{} ({why})", row.text),
        _ => row.text.clone(),
    };
    vec![
        scenario.clone(),
        subject::short(controller).to_owned(),
        outcome.as_str().into(),
        text,
        flows(judgement),
        measured(judgement),
        limit(row),
        format!("{held} of {} hold", seeds.len()),
    ]
}

/// The limit, and on which side of it the value should be.
fn limit(row: &ExpectRow) -> String {
    let sign = match row.bound {
        Bound::Above => "≥",
        Bound::Below => "≤",
    };
    format!("{sign} {}", table::number(Some(row.limit), 3))
}

/// Requirements by controllers; empty if none was tested.
fn requirements(verdicts: &[RequirementVerdict], form: Form) -> String {
    let controllers = unique(verdicts.iter().map(|verdict| verdict.controller.as_str()));
    let numbers = unique(verdicts.iter().map(|verdict| verdict.requirement));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for number in numbers {
        let of = verdicts.iter().filter(|verdict| verdict.requirement == number);
        let of: Vec<&RequirementVerdict> = of.collect();
        if of.iter().all(|verdict| verdict.met.is_none()) {
            continue;
        }
        let cells = of.iter().map(|verdict| match verdict.met {
            Some(true) => "met".into(),
            Some(false) => format!("{} of {}", verdict.held, verdict.tested),
            None => "-".into(),
        });
        let name = format!("{number} {}", of[0].text);
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<&str> =
        std::iter::once("requirement").chain(controllers.iter().copied()).collect();
    fitting(&head, rows, form)
}

/// How long the runs of each scenario and controller took together.
fn times(runs: &[Simulated]) -> HashMap<(String, String), Duration> {
    let mut times = HashMap::new();
    for Simulated { summary, took } in runs {
        let key = (summary.scenario.clone(), summary.controller.clone());
        *times.entry(key).or_default() += *took;
    }
    times
}

/// A JUnit file with one suite for each scenario and controller, and one case for each expectation.
fn junit_text(
    judgements: &[Judgement],
    not_judged: &[NotJudged],
    times: &HashMap<(String, String), Duration>,
    strict: bool,
) -> anyhow::Result<String> {
    let mut suites = Vec::new();
    for judgements in
        judgements.chunk_by(|a, b| (&a.scenario, &a.controller) == (&b.scenario, &b.controller))
    {
        let Judgement { scenario, controller, .. } = &judgements[0];
        let time = times.get(&(scenario.clone(), controller.clone())).copied().unwrap_or_default();
        let mut cases = Vec::new();
        for judgement in judgements {
            cases.push(Case { judgement, cause: String::new(), replay: replay(judgement) });
        }
        suites.push(junit::suite(&Who::of_label(scenario, controller), &cases, time, strict));
    }
    for one in not_judged {
        let who = Who::of_label(&one.scenario, &one.controller);
        suites.push(junit::without_values(&who, TestCaseStatus::skipped(), &one.reason()));
    }
    junit::text("weir check", suites, times.values().sum())
}

/// The command that repeats the runs of a judgement.
fn replay(judgement: &Judgement) -> String {
    let Judgement { scenario, controller, seeds, engine, .. } = judgement;
    let seeds = match seeds.as_slice() {
        [seed] => format!("--seed {seed}"),
        several => format!("--seeds {}", several.len()),
    };
    let mut options = subject::options(controller);
    if !options.is_empty() {
        options.push(' ');
    }
    let command = if engine == Engine::Call.as_str() { "call" } else { "run" };
    format!("replay: weir {command} {scenario} {options}{seeds}")
}

#[cfg(test)]
mod tests {
    use weir_record::calls::{Calls, CallsMade};
    use weir_record::run::RunInfo;
    use weir_record::subject::Subject;
    use weir_sim::trace::Trace;

    use super::*;

    /// A call with this outcome.
    fn run(scenario: &str, disturbed: bool) -> Summary {
        let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"1s\"\n\
                    [network]\n[[flow]]\n";
        let info = RunInfo {
            scenario: scenario.into(),
            subject: Subject::controller("gcc"),
            engine: Engine::Call,
            seed: 1,
        };
        let count = CallsMade { made: 1, succeeded: 1, disturbed };
        let calls = Calls { count, ..Calls::default() };
        let trace = Trace::new(vec!["media-1".into()]);
        let scenario = weir_scenario::parse(scenario, text, None).unwrap();
        Summary::of(&scenario, &info, &trace, Some(calls))
    }

    #[test]
    fn a_disturbed_call_is_not_judged_and_says_so_if_there_is_no_other() {
        let runs = vec![run("a", true), run("b", true), run("b", false), run("a", true)];
        let (counting, not_judged) = counting(runs);
        assert_eq!(counting.len(), 1);
        assert_eq!(counting[0].scenario, "b");
        let [one] = &not_judged[..] else { panic!("{} are not judged", not_judged.len()) };
        assert_eq!((one.scenario.as_str(), one.runs), ("a", 2));
        let text = junit_text(&[], &not_judged, &HashMap::new(), false).unwrap();
        assert!(text.contains("<skipped") && text.contains("each of 2 calls"), "{text}");
    }
}
