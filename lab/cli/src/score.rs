//! `weir research score`: compare what controllers reach with what is possible, and with each
//! other.

mod vary;

use std::process::ExitCode;

use anyhow::Context;
use rayon::prelude::*;
use serde_json::{Value, json};
use weir_lab::protocol::contest::{Bout, Contest, Outcome, mean_and_worst_tenth};
use weir_lab::protocol::oracle::{Possible, possible};
use weir_lab::protocol::results::{WORST_WEIGHT, of, to_json};
use weir_lab::protocol::score::{Score, oracle_with_queue, score};
use weir_lab::scenario::Scenario;

use crate::args::research::{Score as Args, ScoreTable};
use crate::interrupt::{Interrupt, Interrupted};
use crate::layout::{Form, Table};
use crate::output;
use crate::select::{self, Job};

/// Standing queues of the oracle in JSON, ms.
const HOLDS_MS: [f64; 7] = [0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0];

/// Makes the runs, scores them and prints the tables.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list_constants {
        for (name, value) in weir_lab::constants::constants() {
            output::line(&format!("{name} {value}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let interrupt = Interrupt::listen()?;
    let selection = &args.selection;
    let scenarios = select::scenarios(&selection.scenarios)?;
    if let Some(percent) = args.vary {
        let table = vary::table(args, percent, &scenarios, &interrupt)?;
        output::print(&table.written(Form::of(args.markdown)))?;
        return Ok(ExitCode::SUCCESS);
    }
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
    let form = Form::of(args.markdown);
    let wants = |table: ScoreTable| {
        args.table.is_none_or(|wanted| wanted == table)
            && (table == ScoreTable::Regret || !contests.is_empty())
    };
    let titled = |title: &str, table: Table<'_>| {
        let gap = if args.markdown { "\n" } else { "" };
        format!("{title}\n{gap}{}", table.written(form))
    };
    let mut parts = Vec::new();
    if wants(ScoreTable::Regret) {
        parts.push(titled("Mean regret and its terms:", regrets(&names, &scores)));
    }
    if wants(ScoreTable::Contest) {
        let title = format!("{own} against each other controller, number of scenarios:");
        parts.push(titled(&title, verdicts(own, &contests)));
    }
    if wants(ScoreTable::Families) {
        let title = format!(
            "{own} against each other controller by family: scenarios won / tied / lost, mean \
             improvement of the regret with its 95 % interval, verdict:"
        );
        parts.push(titled(&title, families(&contests)));
    }
    if wants(ScoreTable::Worst) {
        let title = format!("The scenarios in which {own} is farthest behind the best other one:");
        parts.push(titled(&title, worst(own, &contests, args.worst)));
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
    anyhow::ensure!(threads != Some(0), "--jobs 0 runs nothing: write 1 or more");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, |threads| threads.min(jobs.len())))
        .build()
        .context("cannot start the worker threads")?;
    pool.install(|| {
        let mut needed: Vec<(&str, u64)> =
            jobs.iter().map(|job| oracle_key(job.scenario, job.info.seed)).collect();
        needed.sort_unstable();
        needed.dedup();
        let oracle = |key: &(&str, u64)| -> anyhow::Result<Vec<Option<Possible>>> {
            interrupt.check()?;
            let scenario = scenarios.iter().find(|scenario| scenario.id == key.0);
            Ok(possible(scenario.context("a job has a scenario")?, key.1))
        };
        let oracles: Vec<_> = needed.par_iter().map(oracle).collect::<anyhow::Result<_>>()?;
        let one = |job: &Job<'_>| -> anyhow::Result<Option<Score>> {
            interrupt.check()?;
            let key = oracle_key(job.scenario, job.info.seed);
            let index = needed.binary_search(&key).expect("each job's oracle was computed");
            let flag = interrupt.flag();
            let found = score(job.scenario, &job.controller, job.info.seed, &oracles[index], &flag);
            interrupt.check()?;
            Ok(found)
        };
        let scores: Vec<Option<Score>> = jobs.par_iter().map(one).collect::<anyhow::Result<_>>()?;
        Ok(scores.into_iter().flatten().collect())
    })
    .map_err(|error: anyhow::Error| match error.is::<Interrupted>() {
        true => error,
        false => error.context("cannot score"),
    })
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
    let row = |name: &&str| {
        let of = of(scores, name);
        let (all, worst) = mean_and_worst_tenth(&of).unwrap_or_default();
        let term = |index: usize| mean(of.iter().map(|score| score.terms[index]));
        let reached = mean(of.iter().map(|score| reached(score)));
        let numbers = [
            all,
            worst,
            all + WORST_WEIGHT * worst,
            reached,
            term(0),
            term(1),
            term(2),
            term(3),
            term(4),
        ];
        let cells = numbers.iter().map(|value| format!("{value:.3}"));
        std::iter::once((*name).to_owned()).chain(cells).collect()
    };
    let head = vec![
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
    Table { head, rows: names.iter().map(row).collect(), left: 1, ..Table::default() }
}

fn reached(score: &Score) -> f64 {
    if score.possible_mbps > 0.0 { score.rate_mbps / score.possible_mbps } else { 1.0 }
}

fn won_tied_lost([won, tied, lost]: [usize; 3]) -> String {
    format!("{won} / {tied} / {lost}")
}

/// One row for each family, one column for each rival: scenarios won, tied and lost, and whether
/// the family is.
fn families(contests: &[Contest]) -> Table<'_> {
    let head: Vec<&str> = std::iter::once("family, won / tied / lost")
        .chain(contests.iter().map(|contest| contest.rival.as_str()))
        .collect();
    let names = contests[0].families.iter().map(|family| family.family.as_str());
    let row = |name: &str| {
        let cell = |contest: &Contest| {
            let found = contest.families.iter().find(|family| family.family == name);
            found.map_or("-".into(), |found| {
                let Some(half) = found.confidence else {
                    return format!("{} {:+.3}", won_tied_lost(found.counts), found.better_by);
                };
                let (counts, by) = (won_tied_lost(found.counts), found.better_by);
                format!("{counts}, {by:+.3} ±{half:.3}, {}", found.outcome.word())
            })
        };
        std::iter::once(name.to_owned()).chain(contests.iter().map(cell)).collect()
    };
    let columns = head.len();
    Table { head, rows: names.map(row).collect(), left: columns, ..Table::default() }
}

/// One row for each rival.
fn verdicts(own: &str, contests: &[Contest]) -> Table<'static> {
    let row = |contest: &Contest| {
        let [won, tied, lost] = contest.counts();
        let with = |wanted: Outcome| {
            let of = contest.families.iter().filter(|family| family.outcome == wanted);
            of.map(|family| family.family.as_str()).collect::<Vec<_>>().join(", ")
        };
        let shown = |text: String| if text.is_empty() { "-".into() } else { text };
        vec![
            format!("{own} against {}", contest.rival),
            shown(with(Outcome::Win)),
            shown(with(Outcome::Loss)),
            if contest.is_won() { "beats it" } else { "no claim" }.into(),
            won.to_string(),
            tied.to_string(),
            lost.to_string(),
        ]
    };
    let head = vec!["", "families won", "families lost", "verdict", "won", "tied", "lost"];
    Table { head, rows: contests.iter().map(row).collect(), left: 4, ..Table::default() }
}

/// The scenarios in which the own controller is worst beside its best rival, with the command that
/// repeats the worst seed.
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
    let row = |(bout, rival): &(&Bout, &str)| {
        vec![
            format!("{}/{}", bout.family, name(&bout.scenario)),
            (*rival).to_owned(),
            format!(
                "weir research score {} --controller {own},{rival} --seed {}",
                bout.scenario, bout.worst_seed
            ),
            format!("{:.3}", bout.own),
            format!("{:.3}", bout.rival),
        ]
    };
    let head = vec!["scenario", "best rival", "replay", "regret", "its regret"];
    Table { head, rows: bouts.iter().take(count).map(row).collect(), left: 3, ..Table::default() }
}

fn name(id: &str) -> &str {
    let name = id.rsplit_once('/').map_or(id, |(_, name)| name);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// What the oracle reaches on each wired scenario with standing queues of several lengths.
fn frontier(scenarios: &[Scenario]) -> Value {
    let with = |hold_ms: f64| {
        let of = |scenario: &Scenario| {
            let (utilization, delay_ms) = oracle_with_queue(scenario, hold_ms / 1e3)?;
            Some(json!({
                "scenario": scenario.id, "hold_ms": hold_ms, "utilization": utilization,
                "delay_ms": delay_ms,
            }))
        };
        scenarios.iter().filter_map(of).collect::<Vec<Value>>()
    };
    HOLDS_MS.into_iter().flat_map(with).collect()
}
