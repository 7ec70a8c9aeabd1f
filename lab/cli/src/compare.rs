//! `weir compare`: differences between two sets of runs, whether they are more than chance, and the
//! errors of simulated runs against real calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use weir_record::compare::{
    By, ComparisonResult, Difference, differences, found_in, nothing_of_both,
};
use weir_record::summary::Summary;
use weir_record::{Reader, Scenarios};
use weir_scenario::{Change, Scenario, changes};

use crate::args::{Compare, CompareBy, Match};
use crate::layout::{self, Table, wrapped};
use crate::output;
use crate::sim_real::{self, Sections};
use crate::table;

/// Significant digits of a value, and its maximum number of decimals.
const DIGITS: i32 = 4;
const DECIMALS: i32 = 4;
const LEGEND: &str = "± is the 95 % confidence interval of the mean. p is the probability of such \
    a difference by chance, from the signed-rank test if both folders have the same seeds and at \
    least six, otherwise from the rank-sum test. ~: the difference may be chance (p > 0.05). =: \
    no value differs. ?: too few seeds for a test (4 in each folder are enough). always: nothing \
    in the scenario is random, so every seed gives the same values.";

/// The same for two controllers.
const LEGEND_OF_TWO: &str = "± is the 95 % confidence interval of the mean. p is the probability \
    of such a difference by chance, from the signed-rank test, seed by seed, if both controllers \
    have the same seeds and at least six, otherwise from the rank-sum test. ~: the difference may \
    be chance (p > 0.05). =: no value differs. ?: too few seeds for a test (4 of each are \
    enough). always: nothing in the scenario is random, so every seed gives the same values.";

/// The runs below a folder, without their rows: each record is read, measured and dropped.
struct Set {
    summaries: Vec<Summary>,
    sections: Vec<Sections>,
    /// The scenario of each id, from the first record with that id.
    scenarios: BTreeMap<String, Arc<Scenario>>,
}

/// Prints the metrics of flows that both sets have, over each set's seeds. If one set has real
/// calls of a scenario and the other has simulated runs, it also prints the error of each section.
pub fn compare(args: &Compare) -> anyhow::Result<ExitCode> {
    if args.by == CompareBy::Controller {
        return two_controllers(args);
    }
    let [before, after] = &args.inputs[..] else {
        anyhow::bail!("write two folders of records: weir compare BEFORE AFTER");
    };
    let (old_folder, new_folder) = (before, after);
    // Runs of one scenario share it, and so its traces.
    let parsed = Scenarios::default();
    let before = Set::read(old_folder, args.r#match, &parsed)?;
    let after = Set::read(new_folder, args.r#match, &parsed)?;
    let lines = sim_real::lines(&before.sections, &after.sections);
    let differences = differences(&before.summaries, &after.summaries, By::Controller);
    if differences.is_empty() && lines.is_empty() {
        let own = [&before, &after].iter().all(|set| set.scenarios.keys().any(|id| is_own(id)));
        let hint = if own && args.r#match == Match::Id {
            "; --match name compares your own files by their names"
        } else {
            ""
        };
        anyhow::bail!(
            "nothing to compare in {} and {}: no scenario has runs in both, either of the same \
             controller and engine, or real in one and simulated in the other{hint}",
            old_folder.display(),
            new_folder.display()
        );
    }
    let changed = changed(&before, &after);
    if args.json {
        let rows = differences.iter().map(Difference::to_json);
        let rows = rows.chain(lines.iter().map(sim_real::Line::to_json));
        let rows: Vec<Value> = rows.chain(changed.iter().map(change_to_json)).collect();
        output::json(&serde_json::to_string_pretty(&rows)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = layout::width();
    if !changed.is_empty() {
        let lines: String = changed.iter().map(change_in_words).collect();
        output::print(&format!("The scenario has changed:\n{lines}\n"))?;
    }
    if !differences.is_empty() {
        output::print(&in_table(&differences, ["before", "after"]).text(width))?;
        let legend = wrapped(LEGEND, width.unwrap_or(100)).join("\n");
        output::print(&format!("\n{legend}\n"))?;
    }
    if !lines.is_empty() {
        output::print(&sim_real::table(&lines, width))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the runs of two controllers below the folders: those of the same scenario and engine.
fn two_controllers(args: &Compare) -> anyhow::Result<ExitCode> {
    let usage = "write two controllers and a folder: weir compare --by controller gcc,sluice DIR";
    let Some((names, folders)) = args.inputs.split_first() else { anyhow::bail!(usage) };
    let names = names.to_string_lossy();
    let Some((first, second)) = names.split_once(',') else {
        anyhow::bail!("'{names}' is not two controllers: {usage}");
    };
    let (first, second) = (first.trim(), second.trim());
    anyhow::ensure!(
        !first.is_empty() && !second.is_empty() && !second.contains(','),
        "'{names}' is not two controllers: {usage}"
    );
    anyhow::ensure!(first != second, "{first} is compared with itself: {usage}");
    anyhow::ensure!(!folders.is_empty(), "no folder of records is named: {usage}");
    let (mut before, mut after, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for folder in folders {
        for run in Set::read(folder, args.r#match, &Scenarios::default())?.summaries {
            if run.controller == first {
                before.push(run.clone());
            } else if run.controller == second {
                after.push(run.clone());
            }
            all.push(run);
        }
    }
    let differences = differences(&before, &after, By::Pair);
    if differences.is_empty() {
        let folders: Vec<String> = folders.iter().map(|it| it.display().to_string()).collect();
        let line = nothing_of_both(first, second, &found_in(&[&all]));
        anyhow::bail!("{}: {line}", folders.join(", "));
    }
    if args.json {
        let rows: Vec<Value> = differences.iter().map(Difference::to_json).collect();
        output::json(&serde_json::to_string_pretty(&rows)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = layout::width();
    output::print(&in_table(&differences, [first, second]).text(width))?;
    let legend = wrapped(LEGEND_OF_TWO, width.unwrap_or(100)).join("\n");
    output::print(&format!("\n{legend}\n"))?;
    Ok(ExitCode::SUCCESS)
}

impl Set {
    fn read(folder: &Path, by: Match, parsed: &Scenarios) -> anyhow::Result<Self> {
        let folders = weir_record::find(folder)?;
        anyhow::ensure!(!folders.is_empty(), "{} contains no record of a run", folder.display());
        let mut set =
            Self { summaries: Vec::new(), sections: Vec::new(), scenarios: BTreeMap::new() };
        let mut mixed = BTreeSet::new();
        for path in &folders {
            let reader = Reader::open(path, parsed)?;
            let scenario = Arc::clone(&reader.scenario);
            let mut record = reader.record()?;
            if by == Match::Name {
                record.info.scenario = file_name(&record.info.scenario).into();
            }
            set.summaries.push(record.summary());
            set.sections.push(Sections::of(&record));
            let id = record.info.scenario;
            let Some(known) = set.scenarios.get(&id) else {
                set.scenarios.insert(id, scenario);
                continue;
            };
            anyhow::ensure!(
                known.id == scenario.id,
                "{} contains runs of {} and of {}, which have the same file name: leave out \
                 --match name, or compare folders with the runs of one of them",
                folder.display(),
                known.id,
                scenario.id
            );
            if !Arc::ptr_eq(known, &scenario) && *known != scenario {
                mixed.insert(id);
            }
        }
        for id in mixed {
            eprintln!(
                "weir: {} contains runs of different versions of {id}; changes are shown for the \
                 version of the first run",
                folder.display()
            );
        }
        Ok(set)
    }
}

/// Whether an id is the path of a file outside the catalogue.
fn is_own(id: &str) -> bool {
    id.ends_with(".toml") || id.contains(".toml/")
}

/// For a user's file its name, followed by the variant; for a scenario of the catalogue its id.
fn file_name(id: &str) -> &str {
    let end = match id.find(".toml/") {
        Some(start) => start + ".toml".len(),
        None if is_own(id) => id.len(),
        None => return id,
    };
    &id[id[..end].rfind('/').map_or(0, |slash| slash + 1)..]
}

/// Changes in the scenarios that both sets have.
fn changed(before: &Set, after: &Set) -> Vec<(String, Change)> {
    let mut changed = Vec::new();
    for (id, old) in &before.scenarios {
        if let Some(new) = after.scenarios.get(id).filter(|new| !Arc::ptr_eq(old, new)) {
            changed.extend(changes(old, new).into_iter().map(|change| (id.clone(), change)));
        }
    }
    changed
}

fn change_in_words((id, change): &(String, Change)) -> String {
    let Change { key, before, after } = change;
    let [before, after] = [before, after].map(|value| value.as_deref().unwrap_or("(absent)"));
    format!("{}\n", output::escaped(&format!("{id}: {key} {before} -> {after}")))
}

fn change_to_json((id, change): &(String, Change)) -> Value {
    json!({
        "scenario": id,
        "changed_key": change.key,
        "before": change.before,
        "after": change.after,
    })
}

fn numbers(set: &[(&str, f64)]) -> Vec<f64> {
    set.iter().map(|entry| entry.1).collect()
}

fn verdict_in_words(of: &Difference<'_>) -> String {
    let p = match of.significance() {
        Some(found) => format!(" p={:.3}", found.p),
        None if !of.has_chance => ", always".into(),
        None => String::new(),
    };
    match of.verdict() {
        ComparisonResult::Better => format!("better{p}"),
        ComparisonResult::Worse => format!("worse{p}"),
        ComparisonResult::Other => format!("other{p}"),
        ComparisonResult::MayBeChance => format!("~{p}"),
        ComparisonResult::Equal => "=".into(),
        ComparisonResult::TooFew => "?".into(),
    }
}

/// The controller of the runs, or both of a comparison of two.
fn controllers(of: &Difference<'_>) -> String {
    if of.controller == of.of.controller {
        return of.controller.into();
    }
    format!("{} -> {}", of.of.controller, of.controller)
}

fn to_cells(of: &Difference<'_>) -> Vec<String> {
    let (before, after) = of.means();
    let largest = before.unwrap_or_default().abs().max(after.unwrap_or_default().abs());
    let decimals = decimals_of(largest);
    let percent = of.percent().map(|percent| match percent.abs() {
        ..1_000.0 => format!("{percent:+.1}%"),
        _ => format!("{percent:+.0}%"),
    });
    vec![
        of.of.scenario.clone(),
        controllers(of),
        of.of.engine.clone(),
        of.flow.into(),
        of.metric.into(),
        table::with_spread(&numbers(&of.before), decimals),
        table::with_spread(&numbers(&of.after), decimals),
        percent.unwrap_or_else(|| "-".into()),
        verdict_in_words(of),
        format!("{}, {}", of.before.len(), of.after.len()),
    ]
}

/// Number of decimals that show the significant digits of a value.
fn decimals_of(value: f64) -> usize {
    if value == 0.0 {
        return 0;
    }
    (DIGITS - 1 - value.log10().floor() as i32).clamp(0, DECIMALS) as usize
}

/// The table of differences between two sides with these names.
fn in_table<'a>(differences: &[Difference<'_>], [before, after]: [&'a str; 2]) -> Table<'a> {
    let head = [
        "scenario",
        "controller",
        "engine",
        "flow",
        "metric",
        before,
        after,
        "change",
        "verdict",
        "seeds",
    ];
    Table {
        head: head.to_vec(),
        rows: differences.iter().map(to_cells).collect(),
        left: 5,
        common: vec![0, 1, 2, 3],
        spare: vec![9],
        words: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_file_goes_by_its_name_and_one_of_the_catalogue_by_its_id() {
        assert_eq!(file_name("a/b/mine.toml"), "mine.toml");
        assert_eq!(file_name("mine.toml"), "mine.toml");
        assert_eq!(file_name("/a/mine.toml/far/er"), "mine.toml/far/er");
        assert_eq!(file_name("lund/rmcat-ns3"), "lund/rmcat-ns3");
    }

    #[test]
    fn values_have_four_significant_digits() {
        let shown = |value: f64| format!("{value:.*}", decimals_of(value));
        assert_eq!(shown(145.4021), "145.4");
        assert_eq!(shown(1.12419), "1.124");
        assert_eq!(shown(12_345.6), "12346");
        assert_eq!(shown(0.012_34), "0.0123");
        assert_eq!(shown(0.0), "0");
    }
}
