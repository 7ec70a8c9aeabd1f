//! `weir list`: the sources of the catalogue, or the scenarios, source by source.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;
use weir_scenario::{Scenario, catalogue, nearest};

use crate::args::List;
use crate::layout::{self, Form, Table, wrapped};
use crate::{output, sources};

/// Lines are at most this long, unless the terminal is wider.
const WIDTH: usize = 80;
/// Longest id that is on one line with its title.
const LONGEST_ID: usize = 26;
/// Width of a duration such as `3600 s`.
const LENGTH_WIDTH: usize = 6;

/// The last line of the list of sources.
const GO_ON: &str = "Go on: `weir list lund`, `weir list --all`, `weir run lund/rmcat-ns3`";

/// Prints the sources, or the selected scenarios.
pub fn list(args: &List) -> anyhow::Result<ExitCode> {
    let scenarios = chosen(args)?;
    if args.json {
        let entries: Vec<_> = scenarios.iter().map(entry).collect();
        output::json(&serde_json::to_string_pretty(&entries)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.pattern.is_none() && args.source.is_none() && !args.all {
        output::print(&by_source(&scenarios))?;
        output::line(&format!("\n{GO_ON}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = layout::width().unwrap_or(WIDTH).max(WIDTH);
    let groups = scenarios.chunk_by(|a, b| source(a) == source(b));
    let texts: Vec<String> = groups.map(|group| text(group, width)).collect();
    output::print(&texts.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The scenarios that match the pattern and the source, by id.
fn chosen(args: &List) -> anyhow::Result<Vec<Scenario>> {
    let mut pattern = args.pattern.as_deref();
    let mut wanted_source = args.source.as_deref();
    if wanted_source.is_none() && pattern.is_some_and(is_source) {
        wanted_source = pattern.take();
    }
    let selected = pattern.filter(|pattern| !is_word(pattern)).unwrap_or("*");
    let mut scenarios = catalogue::find(selected)?;
    if let Some(wanted) = wanted_source {
        let mut sources: Vec<String> = scenarios.iter().map(source).map(String::from).collect();
        sources.dedup();
        scenarios.retain(|scenario| source(scenario).eq_ignore_ascii_case(wanted));
        if scenarios.is_empty() {
            let near = nearest(&wanted.to_lowercase(), sources.iter().map(String::as_str));
            let hint = match near.first() {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are {}", sources.join(", ")),
            };
            bail!("no scenario has the source '{wanted}'; {hint}");
        }
    }
    if let Some(word) = pattern.filter(|pattern| is_word(pattern)) {
        let lower = word.to_lowercase();
        scenarios.retain(|Scenario { id, title, .. }| {
            id.to_lowercase().contains(&lower) || title.to_lowercase().contains(&lower)
        });
        if scenarios.is_empty() {
            // The error of the catalogue suggests ids for a misspelt one.
            catalogue::find(word)?;
            bail!("no scenario of this source has '{word}' in its id or title");
        }
    }
    Ok(scenarios)
}

/// Whether a pattern is the name of a source.
fn is_source(pattern: &str) -> bool {
    sources::SOURCES.iter().any(|(name, _)| name.eq_ignore_ascii_case(pattern))
}

/// Whether a pattern is a word to look for, rather than a pattern of ids or a file.
fn is_word(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[']) && !pattern.contains(".toml")
}

/// The folder of a scenario of the catalogue; for a user's file the whole path.
fn source(scenario: &Scenario) -> &str {
    match scenario.id.split_once('/') {
        Some((source, _)) if !scenario.id.contains(".toml") => source,
        _ => &scenario.id,
    }
}

/// A line for each source: its name, what it is, and how many scenarios it has.
fn by_source(scenarios: &[Scenario]) -> String {
    let mut rows = Vec::new();
    for group in scenarios.chunk_by(|a, b| source(a) == source(b)) {
        let name = source(&group[0]);
        rows.push(vec![name.into(), sources::about(name).into(), group.len().to_string()]);
    }
    let head = vec!["source", "what it is", "scenarios"];
    let table = Table { head, rows, left: 2, words: Some(1), ..Table::default() };
    table.written(Form::of(false))
}

/// The scenarios of one source under its name, with their titles.
fn text(group: &[Scenario], width: usize) -> String {
    let count = match group.len() {
        1 => "1 scenario".into(),
        count => format!("{count} scenarios"),
    };
    let mut text = format!("{}: {count}\n", source(&group[0]));
    let id_widths = group.iter().map(|scenario| scenario.id.chars().count());
    let id_width = id_widths.filter(|&width| width <= LONGEST_ID).max().unwrap_or(0);
    for Scenario { id, title, duration, .. } in group {
        let length = format!("{:.0} s", duration.as_secs_f64());
        let room = width - (2 + id_width + 2 + LENGTH_WIDTH + 2);
        for (index, title) in wrapped(title, room).iter().enumerate() {
            let is_first = index == 0;
            let is_long = id.chars().count() > id_width;
            if is_first && is_long {
                text += &format!("  {id}\n");
            }
            let id = if is_first && !is_long { id } else { "" };
            let length = if is_first { &length } else { "" };
            text += &format!("  {id:id_width$}  {length:>LENGTH_WIDTH$}  {title}\n");
        }
    }
    text
}

fn entry(scenario: &Scenario) -> serde_json::Value {
    json!({
        "scenario": scenario.id,
        "title": scenario.title,
        "source": scenario.source,
        "description": scenario.description.trim(),
        "duration_s": scenario.duration.as_secs_f64(),
        "network": scenario.network_in_words(),
        "flows": scenario.flows.iter().map(|flow| &flow.name).collect::<Vec<_>>(),
        "sections": scenario.sections.iter().map(|section| &section.name).collect::<Vec<_>>(),
        "paper": scenario.paper.len(),
        "expect": scenario.expectations.len(),
    })
}
