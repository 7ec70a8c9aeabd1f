//! Parses a scenario file into a [`Scenario`], or returns a one-line error.
//!
//! The lists of keys below show the structure of the format.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use toml::de::DeTable;
use weir::units::TimeDelta;
use weir_controllers::LabAlgorithm;
use weir_metrics::{Metrics, PARTICIPANT_PREFIX};

use super::applies::MetricScope;
use super::error::{ScenarioError, nearest, quoted};
use super::kind::Access;
use super::metric_paths;
use super::network;
use super::reader::{File, Item, Table};
use super::requirement::REQUIREMENTS;
use super::trace_files::{FileText, TraceFiles};
use super::{
    Condition, Expectation, ExpectedFlow, Finding, Flow, KnownMiss, PaperValue, Scenario, Section,
    call, flow, handover, nat, recovery, server,
};

type Result<T> = std::result::Result<T, ScenarioError>;

const TOP: &[&str] = &[
    "title",
    "source",
    "description",
    "duration",
    "feedback_interval",
    "topology",
    "server",
    "network",
    "participant",
    "nat",
    "handover",
    "publisher",
    "call",
    "media",
    "tcp",
    "quic",
    "flow",
    "section",
    "paper",
    "finding",
    "expect",
    "known_miss",
    "variant",
];
const SECTION: &[&str] = &["name", "from", "to"];
const PAPER: &[&str] =
    &["location", "metric", "controller", "flow", "section", "published", "note", "since"];
const FINDING: &[&str] =
    &["text", "location", "controller", "metric", "above", "below", "is", "why"];
const EXPECT: &[&str] = &[
    "text",
    "metric",
    "flow",
    "participant",
    "section",
    "back_to",
    "of",
    "controllers",
    "above",
    "below",
    "requirements",
];
const KNOWN_MISS: &[&str] = &["expect", "controllers", "why", "by_chance"];

/// Default interval between feedback reports.
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
/// Minimum feedback interval. More reports than packets would add no information, only cost.
const MIN_FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(1);

/// Parses a scenario. `id` identifies it in errors. Trace files are read from `base_dir`.
pub fn parse(id: &str, text: &str, base_dir: Option<&Path>) -> Result<Scenario> {
    read_from(id, text, None, TraceFiles::beside(base_dir))
}

/// Parses a variant of the scenario in the file.
pub fn parse_variant(
    id: &str,
    text: &str,
    variant: &str,
    base_dir: Option<&Path>,
) -> Result<Scenario> {
    read_from(id, text, Some(variant), TraceFiles::beside(base_dir))
}

/// Parses a scenario or a variant from a record, which contains the trace files.
pub fn parse_recorded(
    id: &str,
    text: &str,
    variant: Option<&str>,
    traces: BTreeMap<String, FileText>,
) -> Result<Scenario> {
    read_from(id, text, variant, TraceFiles::recorded(traces))
}

/// The names of the variants in a file; empty if it is not valid TOML.
pub(super) fn variants(text: &str) -> Vec<String> {
    let document = DeTable::parse(text).ok();
    let found = document.as_ref().and_then(|document| document.get_ref().get("variant"));
    let table = found.and_then(|variants| variants.get_ref().as_table());
    table.into_iter().flat_map(|table| table.keys()).map(|key| key.get_ref().to_string()).collect()
}

fn read_from(
    id: &str,
    text: &str,
    variant: Option<&str>,
    files: TraceFiles<'_>,
) -> Result<Scenario> {
    let file = File { id, text };
    let document = DeTable::parse(text).map_err(|error| syntax_error(file, &error))?;
    let mut top = Table::top(file, &document, TOP)?;
    if let Some(name) = variant {
        top = varied(top, name)?;
    }
    let title = top.require("title", "\"One line\"")?.prose()?;
    let source = top.require("source", "\"Paper or standard, section\"")?.prose()?;
    let description = top.require("description", "\"What is done and why\"")?.prose()?;
    let duration = duration(&top)?;
    let network = network::network(&top, duration, &files)?;
    let participants = network::participants(&top, duration, &files)?;
    let nats = nat::nats(&top, duration)?;
    let handovers = handover::handovers(&top, duration, &files)?;
    let call = call::plan(&top, duration)?;
    let server = server::plan(&top, duration)?;
    let mut flows = flow::flows(&top, duration, &network, server.as_ref())?;
    call::film(&mut flows, &call, &top)?;
    let path = SharedPath { hops: network.hops.len(), access: network.access.as_ref() };
    let sections = read(&top, "section", SECTION, |table| section(table, duration))?;
    let scope = MetricScope { flows: &flows, hops: &network.hops };
    let mut expectations = read(&top, "expect", EXPECT, |table| {
        let expectation = expectation(table, &flows, &sections, path)?;
        // Expectations in a record are not checked again: they were valid for the version that made
        // it.
        if !files.are_recorded() {
            can_have(table, &expectation, scope)?;
        }
        Ok(expectation)
    })?;
    for table in top.tables("known_miss", KNOWN_MISS)? {
        known_miss(&table, &mut expectations)?;
    }
    Ok(Scenario {
        id: id.into(),
        variant: variant.map(String::from),
        text: text.into(),
        traces: files.into_read(),
        ended_early: false,
        title,
        source,
        description,
        duration,
        feedback_interval: feedback_interval(&top, duration)?,
        paper: read(&top, "paper", PAPER, |table| paper(table, &flows, &sections, path))?.concat(),
        access: network.access,
        hops: network.hops,
        participants,
        nats,
        handovers,
        server,
        call,
        sections,
        findings: read(&top, "finding", FINDING, finding)?,
        expectations,
        flows,
    })
}

/// An error names this many variants at most.
const VARIANTS_SHOWN: usize = 20;

/// Applies the variant of this name.
fn varied<'a>(top: Table<'a>, name: &str) -> Result<Table<'a>> {
    let variants = top.or("variant", Vec::new(), Item::named)?;
    match variants.iter().find(|variant| variant.0 == name) {
        Some((_, variant)) => top.varied(variant),
        None => {
            let mut text = format!("there is no variant {}", quoted(name));
            for (index, (known, _)) in variants.iter().take(VARIANTS_SHOWN).enumerate() {
                text += if index == 0 { "; there is " } else { ", " };
                text += &quoted(known);
            }
            Err(top.error(&text))
        }
    }
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

fn section(table: &Table, duration: TimeDelta) -> Result<Section> {
    let name = table.require("name", "\"after the drop\"")?.prose()?;
    let from = table.require("from", "\"0s\"")?.moment(duration)?;
    let to = table.require("to", "\"20s\"")?.moment(duration)?;
    if to <= from {
        return Err(table.error("to must come after from"));
    }
    Ok(Section { name, from, to })
}

/// The published values of a table: one, or one per section in the file's order.
fn paper(
    table: &Table,
    flows: &[Flow],
    sections: &[Section],
    path: SharedPath<'_>,
) -> Result<Vec<PaperValue>> {
    let published = table.require("published", "\"0.77-0.79\"")?;
    let values: Vec<(Option<String>, String)> = match published.elements() {
        None => vec![(section_name(table, sections)?, published.prose()?)],
        Some(elements) => {
            if let Some(section) = table.get("section") {
                return Err(section.error("a list has a value of each section; leave it out"));
            }
            if elements.len() != sections.len() {
                let (values, sections) = (elements.len(), sections.len());
                return Err(published.error(&format!("{values} values for {sections} sections")));
            }
            let mut values = Vec::new();
            for (section, item) in sections.iter().zip(&elements) {
                values.push((Some(section.name.clone()), item.prose()?));
            }
            values
        }
    };
    let value = PaperValue {
        location: table.require("location", "\"Table 1\"")?.prose()?,
        metric: paper_metric(table, path)?,
        controller: table.optional("controller", Item::algorithm)?,
        flow: flow_name(table, flows)?,
        section: None,
        published: String::new(),
        note: prose_or_empty(table, "note")?,
        since: prose_or_empty(table, "since")?,
    };
    let parts = values.into_iter();
    Ok(parts
        .map(|(section, published)| PaperValue { section, published, ..value.clone() })
        .collect())
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

fn expectation(
    table: &Table,
    flows: &[Flow],
    sections: &[Section],
    path: SharedPath<'_>,
) -> Result<Expectation> {
    let participant = participant(table)?;
    let metric = match &participant {
        Some(_) => participant_metric(table)?,
        None if is_of_calls(table) => calls_metric(table)?,
        None => shared_metric(table, path)?.map_or_else(|| metric(table), Ok)?,
    };
    let condition = condition(table, None)?;
    let section = section_name(table, sections)?;
    let recovery = recovery::recovery(table, &metric, section.as_deref(), sections)?;
    let text = match (table.get("text"), &recovery) {
        (Some(item), _) => item.prose()?,
        (None, Some(recovery)) => format!("{recovery} {condition}"),
        (None, None) => format!("{metric} {condition}"),
    };
    let flow = match (participant, table.get("flow")) {
        (Some(participant), None) => participant,
        (Some(_), Some(item)) => {
            return Err(item.error("a participant has no flow; leave out one of the two"));
        }
        (None, None) if is_of_calls(table) => ExpectedFlow::Calls,
        (None, Some(item)) if item.string("a flow's name")? == "every" => ExpectedFlow::Every,
        _ => flow_name(table, flows)?.map_or(ExpectedFlow::First, ExpectedFlow::Named),
    };
    Ok(Expectation {
        text,
        metric,
        flow,
        section,
        controllers: table.or("controllers", Vec::new(), controllers)?,
        condition,
        recovery,
        requirements: table.or("requirements", Vec::new(), requirements)?,
        known_misses: Vec::new(),
    })
}

/// The participant or stream of an application under test that an expectation names.
fn participant(table: &Table) -> Result<Option<ExpectedFlow>> {
    let Some(item) = table.get("participant") else { return Ok(None) };
    let name = item.string("a participant's name such as \"p2\"")?;
    if name == "every" {
        return Ok(Some(ExpectedFlow::EveryParticipant));
    }
    let number = name.strip_prefix('p').unwrap_or_default();
    let (number, stream) = number.split_once('/').unwrap_or((number, "1"));
    if [number, stream].iter().any(|text| text.parse::<NonZeroU32>().is_err()) {
        let message = format!(
            "there is no participant {}; write \"every\", \"p2\", or \"p2/1\" for its first stream",
            quoted(name)
        );
        return Err(item.error(&message));
    }
    Ok(Some(ExpectedFlow::Participant(name.into())))
}

/// Whether an expectation is of all calls together.
fn is_of_calls(table: &Table) -> bool {
    let metric = table.get("metric").and_then(|item| item.prose().ok());
    metric.is_some_and(|metric| metric_paths::names_calls(&metric))
}

/// Reads a metric of all calls over their whole time.
fn calls_metric(table: &Table) -> Result<String> {
    let path = table.require("metric", "\"calls.setup_ms\"")?.prose()?;
    for key in ["flow", "section"] {
        if let Some(item) = table.get(key) {
            let message =
                format!("{path} is a metric of all calls over their whole time; leave it out");
            return Err(item.error(&message));
        }
    }
    Ok(path)
}

fn participant_metric(table: &Table) -> Result<String> {
    let item = table.require("metric", "\"participant.frame_rate\"")?;
    let path = item.prose()?;
    if metric_paths::names_participant(&path) {
        return Ok(path);
    }
    let with_prefix = format!("{PARTICIPANT_PREFIX}{path}");
    let advice = match metric_paths::names_participant(&with_prefix) {
        true => format!("write \"{with_prefix}\""),
        false => format!("there are {}", metric_paths::of_participants()),
    };
    Err(item.error(&format!("a participant has no metric {}; {advice}", quoted(&path))))
}

/// Refuses an expectation of a metric that its flows cannot have, because it would always fail.
fn can_have(table: &Table, expectation: &Expectation, scope: MetricScope<'_>) -> Result<()> {
    let metric = &expectation.metric;
    if expectation.flow.is_of_real_run() {
        return Ok(());
    }
    let mut media = scope.flows.iter().filter(|flow| flow.traffic.media().is_some());
    let flows: Vec<&Flow> = match &expectation.flow {
        _ if metric_paths::is_shared(metric) => scope.flows.iter().take(1).collect(),
        ExpectedFlow::Named(name) => scope.flows.iter().filter(|flow| flow.name == *name).collect(),
        ExpectedFlow::First => media.next().into_iter().collect(),
        ExpectedFlow::Every => media.collect(),
        ExpectedFlow::EveryParticipant | ExpectedFlow::Participant(_) | ExpectedFlow::Calls => {
            Vec::new()
        }
    };
    if flows.is_empty() {
        let name = &scope.flows[0].name;
        return Err(table.error(&format!("there is no media flow; write flow = \"{name}\"")));
    }
    match flows.iter().find_map(|flow| scope.unmet_need(metric, flow)) {
        Some(message) => Err(table.require("metric", "\"utilization\"")?.error(&message)),
        None => Ok(()),
    }
}

/// Adds a known miss to the expectations that it names.
fn known_miss(table: &Table, expectations: &mut [Expectation]) -> Result<()> {
    let controllers = controllers(&table.require("controllers", "[\"nada\"]")?)?;
    let why = table.require("why", "\"The standard's gain is too small here\"")?.prose()?;
    let by_chance = table.or("by_chance", false, Item::boolean)?;
    let named = table.require("expect", "\"the text of an expectation\"")?;
    let names = named.elements().unwrap_or_else(|| vec![named.clone()]);
    for item in &names {
        let text = item.prose()?;
        let texts = expectations.iter().map(|expectation| expectation.text.clone());
        let texts: Vec<String> = texts.collect();
        let Some(index) = texts.iter().position(|known| *known == text) else {
            let near = nearest(&text, texts.iter().map(String::as_str));
            let hint = near
                .first()
                .map_or("write its text".into(), |near| format!("did you mean {}?", quoted(near)));
            let message = format!("there is no expectation {}; {hint}", quoted(&text));
            return Err(item.error(&message));
        };
        let expectation = &mut expectations[index];
        for &controller in &controllers {
            if !expectation.applies_to(controller.name()) {
                return Err(item.error(&format!("the expectation is not for {controller}")));
            }
            if expectation.known_misses.iter().any(|known| known.controller == controller) {
                return Err(item.error(&format!("{controller} has a known miss of it already")));
            }
            expectation.known_misses.push(KnownMiss { controller, why: why.clone(), by_chance });
        }
    }
    Ok(())
}

fn controllers(item: &Item) -> Result<Vec<LabAlgorithm>> {
    match item.elements() {
        Some(names) if !names.is_empty() => names.iter().map(Item::algorithm).collect(),
        _ => Err(item.error("expected a list such as [\"nada\"]; leave it out for all")),
    }
}

/// Reads the numbers of requirements of RFC 8836.
fn requirements(item: &Item) -> Result<Vec<String>> {
    let Some(elements) = item.elements() else {
        return Err(item.error("expected a list such as [\"1c\", \"4\"]"));
    };
    let mut numbers = Vec::new();
    for item in elements {
        let number = item.string("a requirement of RFC 8836 such as \"1c\"")?;
        if REQUIREMENTS.iter().all(|known| known.0 != number) {
            let number = quoted(number);
            return Err(
                item.error(&format!("RFC 8836 has no requirement {number} that can be run"))
            );
        }
        numbers.push(number.into());
    }
    Ok(numbers)
}

fn prose_or_empty(table: &Table, key: &'static str) -> Result<String> {
    table.or(key, String::new(), Item::prose)
}

fn metric(table: &Table) -> Result<String> {
    let item = table.require("metric", "\"utilization\"")?;
    let path = item.prose()?;
    if Metrics::has_path(&path) {
        return Ok(path);
    }
    Err(item.error(&metric_paths::unknown(&path)))
}

/// The hops and the access network, which metrics of all flows together refer to.
#[derive(Clone, Copy)]
struct SharedPath<'a> {
    hops: usize,
    access: Option<&'a Access>,
}

/// Reads a metric of all flows together; returns `None` if it is a metric of a single flow.
fn shared_metric(table: &Table, shared: SharedPath<'_>) -> Result<Option<String>> {
    let path = table.require("metric", "\"utilization\"")?.prose()?;
    if !metric_paths::names_shared(&path, shared.hops, shared.access) {
        return Ok(None);
    }
    match table.get("flow") {
        None => Ok(Some(path)),
        Some(flow) => {
            Err(flow.error(&format!("{path} is a metric of all flows together; leave it out")))
        }
    }
}

/// Reads a metric for a published value. It may also be a metric of the calls, which only real runs
/// have. Expectations cannot use those.
fn paper_metric(table: &Table, shared: SharedPath<'_>) -> Result<String> {
    let path = table.require("metric", "\"utilization\"")?.prose()?;
    if !metric_paths::names_calls(&path) {
        return shared_metric(table, shared)?.map_or_else(|| metric(table), Ok);
    }
    calls_metric(table)?;
    if let Some(list) = table.get("published").filter(|item| item.elements().is_some()) {
        return Err(list.error(&format!("{path} is not measured by section; write one value")));
    }
    Ok(path)
}

fn flow_name(table: &Table, flows: &[Flow]) -> Result<Option<String>> {
    let Some(item) = table.get("flow") else { return Ok(None) };
    let name = item.string("a flow's name")?;
    let names = flows.iter().map(|flow| flow.name.as_str());
    if names.clone().any(|known| known == name) {
        return Ok(Some(name.into()));
    }
    let first = nearest(name, names).first().copied().unwrap_or(&flows[0].name);
    Err(item.error(&format!("there is no flow {}; write one such as \"{first}\"", quoted(name))))
}

fn section_name(table: &Table, sections: &[Section]) -> Result<Option<String>> {
    let Some(item) = table.get("section") else { return Ok(None) };
    let name = item.prose()?;
    if sections.iter().any(|section| section.name == name) {
        return Ok(Some(name));
    }
    let near = nearest(&name, sections.iter().map(|section| section.name.as_str()));
    let hint = near.first().map_or("write [[section]]".into(), |near| format!("write \"{near}\""));
    Err(item.error(&format!("there is no section {}; {hint}", quoted(&name))))
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
