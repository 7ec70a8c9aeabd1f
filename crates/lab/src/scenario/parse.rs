//! A scenario file's text becomes a [`Scenario`], or one line that says why not.
//!
//! docs/scenario-format.md describes the format; the key tables below are its index.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeTable;
use weir::Algorithm;
use weir::controller::RateLimits;
use weir::units::{Bitrate, TimeDelta, Timestamp};

use crate::metrics::Metrics;

use super::error::{ScenarioError, nearest, quoted};
use super::reader::{File, Item, Table};
use super::trace_files::TraceFiles;
use super::{
    Condition, Direction, Expectation, Finding, Flow, PaperValue, Scenario, Section, Source,
    network,
};

type Result<T> = std::result::Result<T, ScenarioError>;

const TOP: &[&str] = &[
    "title",
    "source",
    "description",
    "duration",
    "feedback_interval",
    "network",
    "flow",
    "section",
    "paper",
    "finding",
    "expect",
];
const FLOW: &[&str] = &[
    "kind",
    "direction",
    "start",
    "stop",
    "controller",
    "min_bitrate",
    "start_bitrate",
    "max_bitrate",
    "source",
];
const SOURCE: &[&str] = &["kind", "fps", "cap"];
const SECTION: &[&str] = &["name", "from", "to"];
const PAPER: &[&str] = &["location", "metric", "controller", "flow", "published", "note"];
const FINDING: &[&str] =
    &["text", "location", "controller", "metric", "above", "below", "is", "why"];
const EXPECT: &[&str] = &["text", "metric", "flow", "controllers", "above", "below"];

/// How often a receiver sends feedback where the file does not say.
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
/// Feedback that comes more often than packets tells nothing and only costs time.
const MIN_FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(1);
const MIN_BITRATE: Bitrate = Bitrate::from_kbps(150);
const START_BITRATE: Bitrate = Bitrate::from_kbps(300);
const MAX_BITRATE: Bitrate = Bitrate::from_kbps(2500);
const FPS: f64 = 30.0;
const FPS_MIN: f64 = 1.0;
const FPS_MAX: f64 = 240.0;

/// Reads a scenario. `id` names it in errors; a trace file is sought in `base_dir`.
pub fn parse(id: &str, text: &str, base_dir: Option<&Path>) -> Result<Scenario> {
    read_from(id, text, TraceFiles::beside(base_dir))
}

/// Reads a scenario from a record, which holds the trace files that it names.
pub fn parse_recorded(id: &str, text: &str, traces: &BTreeMap<String, String>) -> Result<Scenario> {
    read_from(id, text, TraceFiles::recorded(traces))
}

fn read_from(id: &str, text: &str, files: TraceFiles<'_>) -> Result<Scenario> {
    let file = File { id, text };
    let document = DeTable::parse(text).map_err(|error| syntax_error(file, &error))?;
    let top = Table::top(file, &document, TOP)?;
    let title = top.require("title", "\"One line\"")?.prose()?;
    let source = top.require("source", "\"Paper or standard, section\"")?.prose()?;
    let description = top.require("description", "\"What is done and why\"")?.prose()?;
    let duration = duration(&top)?;
    let (up, down) = network::links(&top, duration, &files)?;
    let flows = flows(&top, duration)?;
    Ok(Scenario {
        id: id.into(),
        text: text.into(),
        traces: files.into_read(),
        title,
        source,
        description,
        duration,
        feedback_interval: feedback_interval(&top, duration)?,
        up,
        down,
        sections: read(&top, "section", SECTION, |table| section(table, duration))?,
        paper: read(&top, "paper", PAPER, |table| paper(table, &flows))?,
        findings: read(&top, "finding", FINDING, finding)?,
        expectations: read(&top, "expect", EXPECT, |table| expectation(table, &flows))?,
        flows,
    })
}

fn syntax_error(file: File, error: &toml::de::Error) -> ScenarioError {
    let span = error.span().unwrap_or(0..0);
    let found = match file.text.get(span.clone()).map(str::trim) {
        None | Some("") => String::new(),
        Some(found) => format!(", found {}", quoted(found)),
    };
    file.error(span, &format!("not valid TOML: {}{found}", error.message()))
}

fn read<T>(
    top: &Table,
    key: &'static str,
    keys: &'static [&'static str],
    element: impl Fn(&Table) -> Result<T>,
) -> Result<Vec<T>> {
    top.tables(key, keys)?.iter().map(element).collect()
}

fn duration(top: &Table) -> Result<TimeDelta> {
    let item = top.require("duration", "\"60s\"")?;
    let duration = item.time()?;
    if duration == TimeDelta::ZERO {
        return Err(item.error("must be above zero"));
    }
    Ok(duration)
}

fn feedback_interval(top: &Table, duration: TimeDelta) -> Result<TimeDelta> {
    let Some(item) = top.get("feedback_interval") else { return Ok(FEEDBACK_INTERVAL) };
    let interval = item.time()?;
    if interval < MIN_FEEDBACK_INTERVAL || interval > duration {
        return Err(item.error("must be between 1ms and the duration"));
    }
    Ok(interval)
}

fn flows(top: &Table, duration: TimeDelta) -> Result<Vec<Flow>> {
    let mut flows = read(top, "flow", FLOW, |table| flow(table, duration))?;
    if flows.is_empty() {
        return Err(top.error("there is no traffic; write [[flow]]"));
    }
    name(&mut flows);
    Ok(flows)
}

/// `media-1`, `media-2`; with both directions present a count of its own in each, `media-1-up`.
fn name(flows: &mut [Flow]) {
    let both_ways = flows.iter().any(|flow| flow.direction != flows[0].direction);
    let (mut up, mut down) = (0, 0);
    for flow in flows {
        let (count, direction) = match flow.direction {
            Direction::Up => (&mut up, "up"),
            Direction::Down => (&mut down, "down"),
        };
        *count += 1;
        flow.name =
            if both_ways { format!("media-{count}-{direction}") } else { format!("media-{count}") };
    }
}

fn flow(table: &Table, duration: TimeDelta) -> Result<Flow> {
    if let Some(kind) = table.get("kind") {
        kind.choice(&[("media", ())])?;
    }
    let direction = table.get("direction").map_or(Ok(Direction::Up), |item| {
        item.choice(&[("up", Direction::Up), ("down", Direction::Down)])
    })?;
    let start = moment(table, "start", duration)?.unwrap_or(Timestamp::ZERO);
    let stop = moment(table, "stop", duration)?.unwrap_or(Timestamp::ZERO + duration);
    if stop <= start {
        return Err(table.error("stop must come after start"));
    }
    let controller =
        table.get("controller").map_or(Ok(None), |item| item.algorithm_or_variable())?;
    let source = source(table)?;
    // The flow is named once all directions are known.
    let name = String::new();
    Ok(Flow { name, direction, start, stop, controller, limits: limits(table)?, source })
}

fn moment(table: &Table, key: &'static str, duration: TimeDelta) -> Result<Option<Timestamp>> {
    table.get(key).map(|item| item.moment(duration)).transpose()
}

fn limits(table: &Table) -> Result<RateLimits> {
    let rate = |key| table.get(key).map(|item: Item| item.rate()).transpose();
    let min = rate("min_bitrate")?.unwrap_or(MIN_BITRATE);
    let max = rate("max_bitrate")?.unwrap_or(MAX_BITRATE);
    if min > max {
        let message = format!("min_bitrate ({min}) must not be above max_bitrate ({max})");
        return Err(table.error(&message));
    }
    let start = rate("start_bitrate")?.unwrap_or(START_BITRATE.clamp(min, max));
    RateLimits::new(min, start, max).map_err(|_| {
        table.error(&format!(
            "start_bitrate ({start}) must lie between min_bitrate ({min}) and max_bitrate ({max})"
        ))
    })
}

#[derive(Clone, Copy)]
enum SourceKind {
    Filler,
    Rfc8593,
}

fn source(flow: &Table) -> Result<Source> {
    let Some(item) = flow.get("source") else { return Ok(Source::Filler { fps: FPS, cap: None }) };
    let table = item.table(SOURCE)?;
    let kind = table
        .require("kind", "\"filler\"")?
        .choice(&[("filler", SourceKind::Filler), ("rfc8593", SourceKind::Rfc8593)])?;
    let fps = table.get("fps").map_or(Ok(FPS), |item| {
        let fps = item.number()?;
        if (FPS_MIN..=FPS_MAX).contains(&fps) {
            return Ok(fps);
        }
        Err(item.error(&format!("must be between {FPS_MIN} and {FPS_MAX} frames a second")))
    })?;
    match (kind, table.get("cap")) {
        (SourceKind::Filler, cap) => {
            Ok(Source::Filler { fps, cap: cap.map(|item| item.rate()).transpose()? })
        }
        (SourceKind::Rfc8593, None) => Ok(Source::Rfc8593 { fps }),
        (SourceKind::Rfc8593, Some(cap)) => {
            Err(cap.error("only a filler has a cap; write max_bitrate in the flow instead"))
        }
    }
}

fn section(table: &Table, duration: TimeDelta) -> Result<Section> {
    let name = table.require("name", "\"after the drop\"")?.prose()?;
    let from = table.require("from", "\"0s\"")?.moment(duration)?;
    let to = table.require("to", "\"20s\"")?.moment(duration)?;
    if to <= from {
        return Err(table.error("to must come after from"));
    }
    Ok(Section { name, from, to })
}

fn paper(table: &Table, flows: &[Flow]) -> Result<PaperValue> {
    Ok(PaperValue {
        location: table.require("location", "\"Table 1\"")?.prose()?,
        metric: metric(table)?,
        controller: table.get("controller").map(|item| item.algorithm()).transpose()?,
        flow: flow_name(table, flows)?,
        published: table.require("published", "\"0.77-0.79\"")?.prose()?,
        note: prose_or_empty(table, "note")?,
    })
}

fn finding(table: &Table) -> Result<Finding> {
    Ok(Finding {
        text: table.require("text", "\"What the paper found\"")?.prose()?,
        location: table.require("location", "\"Section 5\"")?.prose()?,
        controller: table.require("controller", "\"nada\"")?.algorithm()?,
        metric: metric(table)?,
        condition: condition(table, table.get("is"))?,
        why: prose_or_empty(table, "why")?,
    })
}

fn expectation(table: &Table, flows: &[Flow]) -> Result<Expectation> {
    let metric = metric(table)?;
    let condition = condition(table, None)?;
    let text = match table.get("text") {
        Some(item) => item.prose()?,
        None => format!("{metric} {condition}"),
    };
    let controllers = table.get("controllers").map_or(Ok(Vec::new()), controllers)?;
    Ok(Expectation { text, metric, flow: flow_name(table, flows)?, controllers, condition })
}

fn controllers(item: Item) -> Result<Vec<Algorithm>> {
    match item.elements() {
        Some(names) if !names.is_empty() => names.iter().map(Item::algorithm).collect(),
        _ => Err(item.error("expected a list such as [\"nada\"]; leave it out for all")),
    }
}

fn prose_or_empty(table: &Table, key: &'static str) -> Result<String> {
    table.get(key).map_or(Ok(String::new()), |item| item.prose())
}

fn metric(table: &Table) -> Result<String> {
    let item = table.require("metric", "\"utilization\"")?;
    let path = item.prose()?;
    if Metrics::has_path(&path) {
        return Ok(path);
    }
    let message = format!(
        "there is no metric {}; write one such as \"utilization\" or \"rtt_ms.max\"",
        quoted(&path)
    );
    Err(item.error(&message))
}

fn flow_name(table: &Table, flows: &[Flow]) -> Result<Option<String>> {
    let Some(item) = table.get("flow") else { return Ok(None) };
    let name = item.string("a flow's name")?;
    let names = || flows.iter().map(|flow| flow.name.as_str());
    if names().any(|known| known == name) {
        return Ok(Some(name.into()));
    }
    let first = nearest(name, names()).first().copied().unwrap_or(&flows[0].name);
    Err(item.error(&format!("there is no flow {}; write one such as \"{first}\"", quoted(name))))
}

fn condition(table: &Table, is: Option<Item>) -> Result<Condition> {
    match (table.get("above"), table.get("below"), is) {
        (Some(limit), None, None) => Ok(Condition::Above(limit.number()?)),
        (None, Some(limit), None) => Ok(Condition::Below(limit.number()?)),
        (None, None, Some(word)) => {
            word.choice(&[("highest", Condition::Highest), ("lowest", Condition::Lowest)])
        }
        _ => Err(table.error("write exactly one condition, such as above = 0.5 or below = 0.5")),
    }
}
