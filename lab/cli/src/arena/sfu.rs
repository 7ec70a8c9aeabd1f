//! Forwarding servers in the arena: applications of `weir call --app`, whose participants are
//! browsers.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use weir_call::stack::Stack;
use weir_record::shell::quoted;
use weir_record::subject::Subject;
use weir_record::summary::Summary;

use super::verdict::Verdict;
use super::{Cell, parsed};
use crate::app;
use crate::layout::Table;
use crate::table::with_spread;

/// What the columns are.
pub const LEGEND: &str = "Runs that count; what each participant sends and receives, decodes, and \
    how long its pictures were frozen; expectations of the whole scenario that hold. \
    ± is the 95 % confidence interval of the mean of several runs.";
/// The scenarios, a folder beside the stacks.
const SCENARIOS: &str = "sfu";

/// The scenario files for forwarding servers, in order.
pub fn scenarios(arena: &Path) -> anyhow::Result<Vec<String>> {
    let folder = arena.join(SCENARIOS);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path.display().to_string());
        }
    }
    files.sort();
    Ok(files)
}

/// The forwarding server of this name.
pub fn server(arena: &Path, name: &str) -> anyhow::Result<Stack> {
    let stack = Stack::read(arena, name)?;
    anyhow::ensure!(
        stack.application().is_some(),
        "{name} is a sender and no forwarding server: leave out --role"
    );
    Ok(stack)
}

/// What runs with this server are made with.
pub fn subject(stack: &Stack, quality: bool) -> anyhow::Result<Subject> {
    let mut all: Vec<OsString> = ["weir", "call", "x"].map(OsString::from).to_vec();
    all.extend(words(stack));
    all.extend(quality.then(|| "--quality".into()));
    app::subject(&parsed(all)?)
}

/// The options of `weir call` that name the server and its participants.
pub fn words(stack: &Stack) -> Vec<OsString> {
    let Some(application) = stack.application() else { return Vec::new() };
    let folder = quoted(&stack.folder().display().to_string());
    let serve = format!("cd {folder} && {}", application.serve);
    let mut words: Vec<OsString> = Vec::new();
    // One word, whatever the page begins with.
    words.push(format!("--app={}", application.page).into());
    words.extend(["--join".into(), stack.folder().join(&application.join).into()]);
    words.extend(["--serve-app", &serve].map(OsString::from));
    words.extend(["--participants", &application.participants.to_string()].map(OsString::from));
    words
}

/// A row for each participant of each cell.
pub fn matrix(cells: &[Cell<'_>], verdicts: &[Verdict]) -> Table<'static> {
    let mut rows = Vec::new();
    for (cell, verdict) in cells.iter().zip(verdicts) {
        let mut sound = cell.summaries();
        sound.retain(|summary| summary.exclusion().is_none());
        let expectations = verdict.in_words();
        for name in participants(&sound) {
            rows.push(vec![
                cell.competitor.name().to_owned(),
                cell.scenario.id.clone(),
                name.clone(),
                sound.len().to_string(),
                of(&sound, &name, "participant.send_rate_mbps", 2),
                of(&sound, &name, "participant.receive_rate_mbps", 2),
                of(&sound, &name, "participant.frame_rate", 1),
                of(&sound, &name, "participant.freeze_duration_s", 1),
                expectations.clone(),
            ]);
        }
        if sound.is_empty() {
            let mut row = vec![cell.competitor.name().to_owned(), cell.scenario.id.clone()];
            row.extend(["-", "0", "-", "-", "-", "-"].map(str::to_owned));
            row.push(expectations);
            rows.push(row);
        }
    }
    let head = vec![
        "server",
        "scenario",
        "participant",
        "runs",
        "sent Mbit/s",
        "received Mbit/s",
        "pictures/s",
        "frozen s",
        "expectations",
    ];
    Table { head, rows, left: 3, ..Table::default() }
}

/// What each participant received, in a line each.
pub fn received(summaries: &[Summary]) -> Vec<String> {
    let mut lines = Vec::new();
    for name in participants(summaries) {
        let rate = of(summaries, &name, "participant.receive_rate_mbps", 2);
        let pictures = of(summaries, &name, "participant.frame_rate", 1);
        let frozen = of(summaries, &name, "participant.freeze_duration_s", 1);
        lines.push(format!("{name}: {rate} Mbit/s, {pictures} pictures/s, frozen {frozen} s"));
    }
    lines
}

/// Names of the participants, in order.
fn participants(summaries: &[Summary]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for summary in summaries {
        for one in summary.calls.iter().flat_map(|calls| &calls.results) {
            if one.is_participant() && !names.contains(&one.name) {
                names.push(one.name.clone());
            }
        }
    }
    names
}

/// Mean and spread of a metric of a participant over the runs.
fn of(summaries: &[Summary], name: &str, path: &str, decimals: usize) -> String {
    let each = summaries.iter().flat_map(|summary| &summary.calls).flat_map(|calls| &calls.results);
    let own = each.filter(|one| one.name == name && one.section.is_none());
    with_spread(&own.filter_map(|one| one.at(path)).collect::<Vec<f64>>(), decimals)
}
