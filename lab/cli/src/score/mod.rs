//! `weir research score`: compare what controllers reach with what is possible, and with each
//! other.

pub mod ablate;

use std::process::ExitCode;

use anyhow::Context;
use rayon::prelude::*;
use serde_json::{Value, json};
use weir_record::shell::CommandLine;
use weir_research::contest::{Bout, Contest, FamilyResult, Outcome, mean_and_worst_tenth};
use weir_research::results::{WORST_WEIGHT, good_ratio, of, to_json};
use weir_research::score::{Score, oracle_with_queue, score};
use weir_scenario::Scenario;
use weir_scenario::oracle::{Possible, possible};

use crate::args::research::{Score as Args, ScoreTable};
use crate::interrupt::{Interrupt, Interrupted};
use crate::layout::{Form, Table};
use crate::output;
use crate::select::{self, Job};

/// Standing queues of the oracle in JSON, ms.
const HOLDS_MS: [f64; 7] = [0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0];

/// All tables, in the order in which they are printed.
const TABLES: [ScoreTable; 4] =
    [ScoreTable::Regret, ScoreTable::Contest, ScoreTable::Families, ScoreTable::Worst];

/// Makes the runs, scores them and prints the tables.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list_constants {
        for (name, value) in weir_scenario::constants::constants() {
            output::line(&format!("{name} {value}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let interrupt = Interrupt::listen()?;
    let selection = &args.selection;
    let scenarios = select::scenarios(&selection.scenarios)?;
    let controllers = select::controllers(selection)?;
    let jobs = select::jobs(&scenarios, &controllers, select::seeds(selection)?)?;
    let scores = scores(&scenarios, &jobs, selection.jobs, &interrupt)?;
    anyhow::ensure!(!scores.is_empty(), "no flow of these scenarios is under the controller");
    let names: Vec<&str> = controllers.iter().map(|controller| controller.name()).collect();
    let (own, rivals) = match &args.own {
        Some(own) => {
            let own = names.iter().position(|name| name == own).with_context(|| {
                format!("--own '{own}' is not one of the controllers: {}", names.join(" "))
            })?;
            (names[own], names.iter().copied().filter(|name| *name != names[own]).collect())
        }
        None => (names[0], names[1..].to_vec()),
    };
    let contests: Vec<Contest> =
        rivals.iter().map(|rival| Contest::between(own, rival, &scores)).collect();
    if args.json {
        let mut whole = to_json(&names, &scores, &contests);
        whole["oracle"] = frontier(&scenarios);
        let text = serde_json::to_string_pretty(&whole)?;
        output::json(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut parts = Vec::new();
    for kind in TABLES {
        let is_wanted = args.table.is_none_or(|wanted| wanted == kind);
        if !is_wanted || (kind != ScoreTable::Regret && contests.is_empty()) {
            continue;
        }
        let (title, table) = match kind {
            ScoreTable::Regret => ("Mean regret and its terms:".into(), regrets(&names, &scores)),
            ScoreTable::Contest => (
                format!("{own} against each other controller, number of scenarios:"),
                verdicts(own, &contests),
            ),
            ScoreTable::Families => (
                format!(
                    "{own} against each other controller by family: scenarios won / tied / lost, \
                     mean improvement of the regret with its 95 % interval, verdict:"
                ),
                families(&contests),
            ),
            ScoreTable::Worst => (
                format!("The scenarios in which {own} is farthest behind the best other one:"),
                worst(own, &contests, args.worst),
            ),
        };
        let gap = if args.markdown { "\n" } else { "" };
        parts.push(format!("{title}\n{gap}{}", table.written(Form::of(args.markdown))));
    }
    output::print(&parts.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The scores of all jobs, in their order. The oracle of a scenario is computed once, unless it
/// depends on the seed.
fn scores(
    scenarios: &[Scenario],
    jobs: &[Job<'_>],
    threads: Option<usize>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Score>> {
    let pool = select::threads(threads, jobs.len())?;
    pool.install(|| parallel_scores(scenarios, jobs, interrupt))
        .map_err(|error| Interrupted::or_why(error, "cannot score".into()))
}

/// The scores, computed on all threads of the pool that calls this.
fn parallel_scores(
    scenarios: &[Scenario],
    jobs: &[Job<'_>],
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Score>> {
    let mut needed: Vec<(&str, u64)> =
        jobs.iter().map(|job| oracle_key(job.scenario, job.info.seed)).collect();
    needed.sort_unstable();
    needed.dedup();
    let oracles = needed.par_iter().map(|(id, seed)| {
        interrupt.check()?;
        let scenario = scenarios.iter().find(|scenario| scenario.id == *id);
        Ok(possible(scenario.context("a job has a scenario")?, *seed))
    });
    let oracles: Vec<Vec<Option<Possible>>> = oracles.collect::<anyhow::Result<_>>()?;
    let scores = jobs.par_iter().map(|Job { scenario, controller, info }| {
        interrupt.check()?;
        let key = oracle_key(scenario, info.seed);
        let index = needed.binary_search(&key).expect("each job's oracle was computed");
        let found = score(scenario, controller, info.seed, &oracles[index], &interrupt.flag());
        interrupt.check()?;
        Ok(found)
    });
    let scores: Vec<Option<Score>> = scores.collect::<anyhow::Result<_>>()?;
    Ok(scores.into_iter().flatten().collect())
}

/// A wired path is the same for every seed.
fn oracle_key(scenario: &Scenario, seed: u64) -> (&str, u64) {
    (&scenario.id, if scenario.access.is_some() { seed } else { 0 })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) =
        values.fold((0.0, 0.0_f64), |(sum, count), value| (sum + value, count + 1.0));
    sum / count.max(1.0)
}

/// Mean regret of each controller, the worst tenth, and the terms.
fn regrets(names: &[&str], scores: &[Score]) -> Table<'static> {
    let is_seen = scores.iter().any(|score| score.good_ratio.is_some());
    let mut rows = Vec::new();
    for name in names {
        let own = of(scores, name);
        let (all, worst) = mean_and_worst_tenth(&own).unwrap_or_default();
        let reached = mean(own.iter().map(|score| reached(score)));
        let mut numbers = vec![all, worst, all + WORST_WEIGHT * worst, reached];
        for term in 0..5 {
            numbers.push(mean(own.iter().map(|score| score.terms[term])));
        }
        let mut row = vec![(*name).to_owned()];
        row.extend(numbers.iter().map(|value| format!("{value:.3}")));
        if is_seen {
            let percent = good_ratio(&own).map(|good| format!("{:.0}", 100.0 * good));
            row.push(percent.unwrap_or_else(|| "-".into()));
        }
        rows.push(row);
    }
    let mut head = vec![
        "controller",
        "regret",
        "worst tenth",
        "objective",
        "reached / possible",
        "rate",
        "delay",
        "loss",
        "fairness",
        "response",
    ];
    if is_seen {
        head.push("good %");
    }
    Table { head, rows, left: 1, ..Table::default() }
}

fn reached(score: &Score) -> f64 {
    if score.possible_mbps > 0.0 { score.rate_mbps / score.possible_mbps } else { 1.0 }
}

/// One row for each family, one column for each rival: numbers of scenarios won, tied and lost, and
/// whether the family is won.
fn families(contests: &[Contest]) -> Table<'_> {
    let mut head = vec!["family, won / tied / lost"];
    head.extend(contests.iter().map(|contest| contest.rival.as_str()));
    let mut rows = Vec::new();
    for family in &contests[0].families {
        let name = &family.family;
        let mut row = vec![name.clone()];
        for contest in contests {
            row.push(match contest.families.iter().find(|family| family.family == *name) {
                Some(found) => family_cell(found),
                None => "-".into(),
            });
        }
        rows.push(row);
    }
    Table { left: head.len(), head, rows, ..Table::default() }
}

fn family_cell(family: &FamilyResult) -> String {
    let [won, tied, lost] = family.counts;
    let (counts, by) = (format!("{won} / {tied} / {lost}"), family.better_by);
    match family.confidence {
        Some(half) => format!("{counts}, {by:+.3} ±{half:.3}, {}", family.outcome.word()),
        None => format!("{counts} {by:+.3}"),
    }
}

/// One row for each rival.
fn verdicts(own: &str, contests: &[Contest]) -> Table<'static> {
    let mut rows = Vec::new();
    for contest in contests {
        let [won, tied, lost] = contest.counts();
        rows.push(vec![
            format!("{own} against {}", contest.rival),
            families_with(contest, Outcome::Win),
            families_with(contest, Outcome::Loss),
            if contest.is_won() { "beats it" } else { "no claim" }.into(),
            won.to_string(),
            tied.to_string(),
            lost.to_string(),
        ]);
    }
    let head = vec!["", "families won", "families lost", "verdict", "won", "tied", "lost"];
    Table { head, rows, left: 4, ..Table::default() }
}

/// Names of the families with an outcome, or a dash.
fn families_with(contest: &Contest, wanted: Outcome) -> String {
    let with = contest.families.iter().filter(|family| family.outcome == wanted);
    let names: Vec<&str> = with.map(|family| family.family.as_str()).collect();
    if names.is_empty() { "-".into() } else { names.join(", ") }
}

/// The scenarios in which the own controller is farthest behind its best rival, with the command
/// that repeats the worst seed.
fn worst(own: &str, contests: &[Contest], count: usize) -> Table<'static> {
    let mut bouts: Vec<(&Bout, &str)> = Vec::new();
    for contest in contests {
        for bout in &contest.bouts {
            match bouts.iter_mut().find(|(known, _)| known.scenario == bout.scenario) {
                Some(known) if known.0.better_by > bout.better_by => {
                    *known = (bout, &contest.rival);
                }
                Some(_) => {}
                None => bouts.push((bout, &contest.rival)),
            }
        }
    }
    bouts.sort_by(|a, b| a.0.better_by.total_cmp(&b.0.better_by));
    let mut rows = Vec::new();
    for (bout, rival) in bouts.into_iter().take(count) {
        rows.push(vec![
            format!("{}/{}", bout.family, name(&bout.scenario)),
            rival.to_owned(),
            CommandLine::new("weir research score")
                .name(&bout.scenario)
                .option("--controller", &format!("{own},{rival}"))
                .option("--seed", &bout.worst_seed.to_string())
                .to_string(),
            format!("{:.3}", bout.own),
            format!("{:.3}", bout.rival),
        ]);
    }
    let head = vec!["scenario", "best rival", "replay", "regret", "its regret"];
    Table { head, rows, left: 3, ..Table::default() }
}

fn name(id: &str) -> &str {
    let name = id.rsplit_once('/').map_or(id, |(_, name)| name);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// What the oracle reaches on each wired scenario with standing queues of several lengths.
fn frontier(scenarios: &[Scenario]) -> Value {
    let mut all = Vec::new();
    for hold_ms in HOLDS_MS {
        for scenario in scenarios {
            if let Some((utilization, delay_ms)) = oracle_with_queue(scenario, hold_ms / 1e3) {
                all.push(json!({
                    "scenario": scenario.id, "hold_ms": hold_ms, "utilization": utilization,
                    "delay_ms": delay_ms,
                }));
            }
        }
    }
    Value::Array(all)
}
