//! `weir research ablate`: what each rule and each constant of `sluice` is worth.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde_json::Value;
use weir_controllers::LabController;
use weir_research::ablation::Worth;
use weir_scenario::constants::{Change, changes, sluice_named};

use super::{name, scores};
use crate::args::Selection;
use crate::args::research::Ablate as Args;
use crate::interrupt::Interrupt;
use crate::layout::{Form, Table};
use crate::output;
use crate::select;

/// The name of the controller without a change, in the scores.
const OWN: &str = "sluice";

/// Makes the runs and prints what is lost.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let scenarios = select::scenarios(&args.scenarios)?;
    let chosen = if args.change.is_empty() {
        chosen(args.only.as_deref())?
    } else {
        args.change.iter().map(|list| own(list)).collect()
    };
    let mut controllers = vec![changed(OWN, &args.constants, &[])?];
    for change in &chosen {
        controllers.push(changed(&change.name, &args.constants, &change.settings)?);
    }
    let selection = Selection {
        scenarios: args.scenarios.clone(),
        controller: None,
        seeds: Some(args.seeds),
        seed: None,
        jobs: args.jobs,
        constants: args.constants.clone(),
    };
    let jobs = select::jobs(&scenarios, &controllers, select::seeds(&selection)?)?;
    let scores = scores(&scenarios, &jobs, args.jobs, &interrupt)?;
    ensure!(!scores.is_empty(), "no flow of these scenarios is under the controller");
    let mut found = Vec::new();
    for change in chosen {
        let worth = Worth::of(OWN, &change.name, &scores);
        found.push((change, worth));
    }
    if args.json {
        let all: Vec<Value> =
            found.iter().map(|(change, of)| of.to_json(&change.name, &change.settings)).collect();
        output::json(&serde_json::to_string_pretty(&all)?)?;
    } else {
        output::print(&table(&found).written(Form::of(args.markdown)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The controller with one change. The settings of the command line come first, so that a change is
/// relative to them.
fn changed(name: &str, first: &[String], change: &[String]) -> anyhow::Result<LabController> {
    sluice_named(name, &[first, change].concat()).context("--set")
}

/// The changes of a list such as `S-31,q_min`, `rules` or `constants`; all without a list.
fn chosen(only: Option<&str>) -> anyhow::Result<Vec<Change>> {
    let mut all = changes();
    let Some(only) = only else { return Ok(all) };
    let wanted: Vec<&str> = only.split(',').map(str::trim).collect();
    for word in &wanted {
        let is_known = all.iter().any(|change| is_of(change, word));
        ensure!(is_known, "--only '{word}': sluice has no such rule or constant");
    }
    all.retain(|change| wanted.iter().any(|word| is_of(change, word)));
    Ok(all)
}

/// The change of `--change`.
fn own(list: &str) -> Change {
    let settings = list.split(',').map(|setting| format!("sluice.{}", setting.trim()));
    Change { name: list.into(), of: list.into(), settings: settings.collect() }
}

/// Whether a word of `--only` means this change.
fn is_of(change: &Change, word: &str) -> bool {
    let is_rule = change.of.starts_with("S-");
    match word {
        "rules" => is_rule,
        "constants" => !is_rule,
        name => change.of.eq_ignore_ascii_case(name),
    }
}

/// One row for each change, the largest loss first.
fn table(found: &[(Change, Worth)]) -> Table<'static> {
    let mut order: Vec<&(Change, Worth)> = found.iter().collect();
    order.sort_by(|a, b| b.1.lost.total_cmp(&a.1.lost));
    let mut rows = Vec::new();
    for (change, worth) in order {
        let [lost, same, gained] = worth.contest.counts();
        let (most, at) = worth.worst().map_or((0.0, "-".into()), |bout| {
            (bout.better_by, format!("{}/{}", bout.family, name(&bout.scenario)))
        });
        let half = worth.confidence.map_or(String::new(), |half| format!(" ±{half:.4}"));
        rows.push(vec![
            change.name.clone(),
            worth.loss().word().into(),
            if most > 0.0 { at } else { "-".into() },
            format!("{:+.4}{half}", worth.lost),
            format!("{lost} / {same} / {gained}"),
            format!("{:.3}", most.max(0.0)),
            format!("{} of {}", worth.moved, worth.runs),
        ]);
    }
    let head = vec![
        "change",
        "verdict",
        "worst in",
        "regret added",
        "lost / same / gained",
        "most",
        "runs changed",
    ];
    Table { head, rows, left: 3, ..Table::default() }
}
