//! The result of one run in numbers, which `--json` prints and `summary.json` contains.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir::units::Timestamp;
use weir_metrics::{CapacityChange, FlowMeter, Metrics};
use weir_net::cellular::BearerRow;
use weir_net::wifi::NodeRow;
use weir_scenario::{Condition, Expectation, ExpectedFlow, PaperValue, Scenario, metric_paths};
use weir_sim::trace::{Row, Trace};

use crate::calls::{Calls, Exclusion};
use crate::recovery::RecoveryMeter;
use crate::run::RunInfo;
use crate::shared::{Shared, without_load};
use crate::terminals::TerminalsMeter;
use crate::wifi_cell::CellMeter;

/// Version of the summary's format.
pub const SCHEMA: u32 = 1;

/// Metrics of what is seen of a flow: their names, and those of the same in calls.
const SCREEN: [(&str, &str); 7] = [
    ("good_ratio", "calls.good_ratio"),
    ("shown_delay_ms.mean", "calls.screen_delay_ms.mean"),
    ("shown_delay_ms.p50", "calls.screen_delay_ms.p50"),
    ("shown_delay_ms.p95", "calls.screen_delay_ms.p95"),
    ("stalled_ratio", "calls.screen_stall_ratio"),
    ("longest_stall_s", "calls.longest_stall_s"),
    ("vmaf.mean", "calls.vmaf"),
];

/// Whether a metric is of what is seen, which calls measure if they are asked to.
pub fn is_of_the_screen(metric: &str) -> bool {
    SCREEN.iter().any(|(name, of_calls)| [*name, *of_calls].contains(&metric))
}

/// Whether a metric of calls needs the VMAF of what is seen.
pub fn needs_vmaf(metric: &str) -> bool {
    ["good_ratio", "vmaf.mean", "calls.good_ratio", "calls.vmaf"].contains(&metric)
}

/// Whether a metric of a flow needs a model of its pictures in a simulation.
pub fn needs_picture_model(metric: &str) -> bool {
    let of_good_time = ["good_ratio", "no_picture_ratio", "late_ratio", "bad_picture_ratio"];
    of_good_time.contains(&metric) || metric.starts_with("vmaf.")
}

/// One run: a scenario under a controller with a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// Scenario id.
    pub scenario: String,
    /// Controller: an algorithm's name, the browser's, or the command of `weir link`.
    pub controller: String,
    /// `sim`, `call` or `link`.
    pub engine: String,
    /// Seed, as a string: JSON numbers lose large integers.
    pub seed: String,
    /// Length of the run.
    pub duration_s: f64,
    /// All flows together.
    #[serde(flatten)]
    pub shared: Shared,
    /// All flows together over the scenario's sections.
    #[serde(default)]
    pub sections: Vec<SharedSection>,
    /// One entry for each flow.
    pub flows: Vec<FlowSummary>,
    /// Published values with the measured ones.
    pub paper: Vec<PaperRow>,
    /// Assertions and whether they hold.
    pub expect: Vec<ExpectRow>,
    /// Results of the calls of a real run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
}

/// A flow over its whole time, and over the scenario's sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Name.
    pub flow: String,
    /// Kind of traffic: `media`, `audio`, `tcp`, `udp` or `link`.
    pub kind: String,
    /// Over its whole time.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Over the scenario's sections.
    pub sections: Vec<SectionSummary>,
}

/// All flows together over one section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedSection {
    /// Name of the section in tables.
    pub name: String,
    /// Metrics over the section.
    #[serde(flatten)]
    pub shared: Shared,
}

/// A flow over one section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SectionSummary {
    /// Name of the section in tables.
    pub name: String,
    /// Its beginning.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Metrics over the section.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// A published value and the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperRow {
    /// Table, figure or section.
    #[serde(rename = "where")]
    pub location: String,
    /// The flow; `None` for the first.
    #[serde(default)]
    pub flow: Option<String>,
    /// The section; `None` for the whole time.
    #[serde(default)]
    pub section: Option<String>,
    /// Path of the metric.
    pub metric: String,
    /// The value as printed.
    pub published: String,
    /// The measured value.
    pub measured: Option<f64>,
}

/// An assertion and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectRow {
    /// The expectation in words.
    pub text: String,
    /// The flow that decided; `None` where all flows together are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The measured value.
    pub measured: Option<f64>,
    /// Limit for the measured value.
    pub limit: f64,
    /// On which side of the limit the value should be.
    pub bound: Bound,
    /// Whether it holds. It does not if the value was not measured.
    pub pass: bool,
    /// Why the controller is known to miss it.
    #[serde(default)]
    pub known_miss: Option<String>,
    /// Whether it meets it with some seeds all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_chance: bool,
    /// The requirements of RFC 8836 that it tests.
    #[serde(default)]
    pub requirements: Vec<String>,
}

/// On which side of a limit a value should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// At least.
    Above,
    /// At most.
    Below,
}

impl Bound {
    /// Whether a value is on the right side.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value >= limit,
            Self::Below => value <= limit,
        }
    }
}

impl Summary {
    /// Measures a run. `scenario` says which sections, published values and assertions apply.
    pub fn of(scenario: &Scenario, info: &RunInfo, trace: &Trace, calls: Option<Calls>) -> Self {
        let mut measurer = Measurer::new(scenario, info, &trace.flows);
        measurer.add(trace);
        measurer.finish(calls)
    }

    /// Why the run's values do not count; `None` if they do.
    pub fn exclusion(&self) -> Option<Exclusion> {
        self.calls.as_ref()?.count.exclusion()
    }

    /// A metric of a flow; of the first flow if none is named. What is seen of a media flow in a
    /// real call is the mean over those who received.
    pub fn metric(&self, flow: Option<&str>, path: &str) -> Option<f64> {
        let flow = self.flow(flow)?;
        flow.metrics.at(path).or_else(|| self.seen_in_calls(flow, path))
    }

    /// What is seen of a media flow, measured in calls.
    fn seen_in_calls(&self, flow: &FlowSummary, path: &str) -> Option<f64> {
        let (_, in_calls) = SCREEN.iter().find(|(name, _)| *name == path)?;
        self.calls.as_ref().filter(|_| flow.kind == "media")?.at(in_calls)
    }

    /// The measured value that is compared with a published one.
    pub fn beside(&self, value: &PaperValue) -> Option<f64> {
        let section = value.section.as_deref();
        if Calls::names(&value.metric) {
            return self.calls.as_ref()?.at(&value.metric);
        }
        if metric_paths::is_shared(&value.metric) {
            return self.shared_part(section)?.at(&value.metric);
        }
        self.flow(value.flow.as_deref())?.part(section)?.at(&value.metric)
    }

    fn flow(&self, name: Option<&str>) -> Option<&FlowSummary> {
        match name {
            Some(name) => self.flows.iter().find(|flow| flow.flow == name),
            None => self.flows.first(),
        }
    }

    /// All flows over the section of this name, or over the whole time.
    fn shared_part(&self, section: Option<&str>) -> Option<&Shared> {
        let Some(name) = section else { return Some(&self.shared) };
        let section = self.sections.iter().find(|section| section.name == name)?;
        Some(&section.shared)
    }

    /// The value that an expectation judges, and its flow. With several flows it is the worst
    /// value, or `None` if any flow has no value.
    fn judged(&self, expectation: &Expectation) -> (Option<String>, Option<f64>) {
        let section = expectation.section.as_deref();
        if metric_paths::is_shared(&expectation.metric) {
            let part = self.shared_part(section);
            return (None, part.and_then(|part| part.at(&expectation.metric)));
        }
        if expectation.flow.is_of_application() {
            return self.judged_participant(expectation);
        }
        if expectation.flow == ExpectedFlow::Calls {
            return (None, self.calls.as_ref().and_then(|calls| calls.at(&expectation.metric)));
        }
        let mut values = Vec::new();
        for index in self.expected_flows(expectation) {
            let flow = &self.flows[index];
            let part = flow.part(section);
            let value = part.and_then(|part| part.at(&expectation.metric));
            // A call is seen as a whole, without sections.
            let seen = match section {
                None => self.seen_in_calls(flow, &expectation.metric),
                Some(_) => None,
            };
            values.push((&flow.flow, value.or(seen)));
        }
        worst_of(values, expectation.condition)
    }

    /// Indices of the flows to which an expectation applies.
    fn expected_flows(&self, expectation: &Expectation) -> Vec<usize> {
        let mut flows: Vec<usize> = (0..self.flows.len()).collect();
        match &expectation.flow {
            ExpectedFlow::Named(name) => flows.retain(|flow| self.flows[*flow].flow == *name),
            _ => flows.retain(|flow| self.flows[*flow].kind == "media"),
        }
        if expectation.flow != ExpectedFlow::Every {
            flows.truncate(1);
        }
        flows
    }

    /// The time until what an expectation of flows wants has come back, and the flow.
    fn recovered(
        &self,
        expectation: &Expectation,
        comebacks: &[(usize, Option<f64>)],
    ) -> (Option<String>, Option<f64>) {
        let mut values = Vec::new();
        for index in self.expected_flows(expectation) {
            let found = comebacks.iter().find(|(flow, _)| *flow == index);
            values.push((&self.flows[index].flow, found.and_then(|(_, seconds)| *seconds)));
        }
        worst_of(values, expectation.condition)
    }

    /// The same for participants of an application under test.
    fn judged_participant(&self, expectation: &Expectation) -> (Option<String>, Option<f64>) {
        let Some(calls) = &self.calls else { return (None, None) };
        let mut values = Vec::new();
        for one in &calls.results {
            let is_wanted = match &expectation.flow {
                ExpectedFlow::Participant(name) => one.name == *name,
                _ => one.is_participant(),
            };
            if !is_wanted || one.section != expectation.section {
                continue;
            }
            let value = match &expectation.recovery {
                Some(recovery) => one.recovered(recovery),
                None => one.at(&expectation.metric),
            };
            values.push((&one.name, value));
        }
        worst_of(values, expectation.condition)
    }
}

/// The first of the worst values, and its name.
fn worst_of(
    values: Vec<(&String, Option<f64>)>,
    condition: Condition,
) -> (Option<String>, Option<f64>) {
    let Some((mut name, mut worst)) = values.first().copied() else { return (None, None) };
    for (other, value) in values {
        if is_worse(value, worst, condition) {
            (name, worst) = (other, value);
        }
    }
    (Some(name.clone()), worst)
}

/// Whether a value is further from what an expectation wants than the worst one so far. No value is
/// the worst.
fn is_worse(value: Option<f64>, worst: Option<f64>, condition: Condition) -> bool {
    match (worst, value, condition) {
        (None, _, _) => false,
        (_, None, _) => true,
        (Some(worst), Some(value), Condition::Above(_)) => value < worst,
        (Some(worst), Some(value), _) => value > worst,
    }
}

/// The whole time of a run, then each section.
fn parts(scenario: &Scenario) -> Vec<Range<Timestamp>> {
    let mut parts = vec![whole(scenario)];
    for section in &scenario.sections {
        parts.push(section.from..section.to);
    }
    parts
}

/// Measures a run while its rows arrive.
#[derive(Debug)]
pub struct Measurer<'a> {
    scenario: &'a Scenario,
    info: &'a RunInfo,
    names: Vec<String>,
    flows: Vec<FlowMeter>,
    /// Over the whole time, then over each section.
    cell: Vec<CellMeter>,
    terminals: Vec<TerminalsMeter>,
    recoveries: Vec<RecoveryMeter<'a>>,
}

impl<'a> Measurer<'a> {
    /// `scenario` says which sections, published values and assertions apply.
    pub fn new(scenario: &'a Scenario, info: &'a RunInfo, flows: &[String]) -> Self {
        let parts = parts(scenario);
        let spool = Arc::default();
        let access = scenario.access.as_ref();
        let (mut meters, mut cell, mut terminals) = (Vec::new(), Vec::new(), Vec::new());
        for flow in 0..flows.len() {
            meters.push(FlowMeter::new(&parts[1..], scenario.arrivals(flow), &spool));
        }
        for part in parts {
            cell.push(CellMeter::new(access, part.clone()));
            terminals.push(TerminalsMeter::new(access, part));
        }
        let names = flows.to_vec();
        let recoveries = RecoveryMeter::all(scenario, flows.len());
        Self { scenario, info, names, flows: meters, cell, terminals, recoveries }
    }

    /// Measures the next part of the run.
    pub fn add(&mut self, trace: &Trace) {
        for row in &trace.rows {
            self.add_row(row);
        }
        for row in &trace.access.wifi.rows {
            self.add_node_row(row);
        }
        for row in &trace.access.cellular.rows {
            self.add_bearer_row(row);
        }
    }

    /// Measures the next row. Returns the row as measured: loads are subtracted from its capacity.
    pub fn add_row(&mut self, row: &Row) -> Row {
        let row = without_load(self.scenario, row);
        self.flows[row.flow].push(&row);
        for meter in self.recoveries.iter_mut().filter(|meter| meter.flow == row.flow) {
            meter.push(&row);
        }
        row
    }

    /// Measures the next row of a node.
    pub fn add_node_row(&mut self, row: &NodeRow) {
        for part in &mut self.cell {
            part.push(row);
        }
    }

    /// Measures the next row of a bearer.
    pub fn add_bearer_row(&mut self, row: &BearerRow) {
        for part in &mut self.terminals {
            part.push(row);
        }
    }

    /// Computes the summary after the last row.
    pub fn finish(self, calls: Option<Calls>) -> Summary {
        self.finish_with_changes(calls).0
    }

    /// Like [`Self::finish`], with the capacity changes of each flow.
    pub fn finish_with_changes(self, calls: Option<Calls>) -> (Summary, Vec<Vec<CapacityChange>>) {
        let Self { scenario, info, names, flows, cell, terminals, recoveries } = self;
        let (mut summaries, mut changes, mut received) = (Vec::new(), Vec::new(), Vec::new());
        for ((index, name), meter) in names.into_iter().enumerate().zip(flows) {
            let measured = meter.finish();
            let mut sections = Vec::new();
            for (section, metrics) in scenario.sections.iter().zip(measured.parts) {
                let (from_s, to_s) = (section.from.as_secs_f64(), section.to.as_secs_f64());
                sections.push(SectionSummary { name: section.name.clone(), from_s, to_s, metrics });
            }
            summaries.push(FlowSummary {
                flow: name,
                kind: scenario.flows.get(index).map_or("media", |flow| flow.traffic.kind()).into(),
                metrics: measured.whole,
                sections,
            });
            changes.push(measured.changes);
            received.push(measured.received);
        }
        let mut shared = Vec::new();
        for ((part, cell), terminals) in parts(scenario).into_iter().zip(cell).zip(terminals) {
            let (cell, terminals) = (cell.finish(), terminals.finish());
            shared.push(Shared::of(scenario, &received, &part, cell, terminals));
        }
        let of_sections = shared.split_off(1);
        let mut sections = Vec::new();
        for (section, shared) in scenario.sections.iter().zip(of_sections) {
            sections.push(SharedSection { name: section.name.clone(), shared });
        }
        let mut summary = Summary {
            schema: SCHEMA,
            scenario: info.scenario.clone(),
            controller: info.subject.to_string(),
            engine: info.engine.as_str().into(),
            seed: info.seed.to_string(),
            duration_s: scenario.duration.as_secs_f64(),
            shared: shared.remove(0),
            sections,
            flows: summaries,
            paper: Vec::new(),
            expect: Vec::new(),
            calls,
        };
        summary.paper = paper_rows(scenario, info, |value| summary.beside(value));
        summary.expect =
            expect_rows(scenario, info, summary.calls.as_ref(), |index, expectation| {
                if expectation.recovery.is_none() || expectation.flow.is_of_application() {
                    return summary.judged(expectation);
                }
                let mut comebacks = Vec::new();
                for meter in &recoveries {
                    if meter.expectation == index {
                        comebacks.push((meter.flow, meter.seconds()));
                    }
                }
                summary.recovered(expectation, &comebacks)
            });
        (summary, changes)
    }
}

/// The whole time of a run.
fn whole(scenario: &Scenario) -> Range<Timestamp> {
    Timestamp::ZERO..Timestamp::ZERO + scenario.duration
}

impl FlowSummary {
    /// Over the section of this name, or over the whole time.
    fn part(&self, section: Option<&str>) -> Option<&Metrics> {
        let Some(name) = section else { return Some(&self.metrics) };
        self.sections.iter().find(|section| section.name == name).map(|section| &section.metrics)
    }
}

fn paper_rows(
    scenario: &Scenario,
    info: &RunInfo,
    measured: impl Fn(&PaperValue) -> Option<f64>,
) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for value in &scenario.paper {
        if value.controller.is_none_or(|controller| info.subject.is_controller(controller.name())) {
            rows.push(PaperRow {
                location: value.location.clone(),
                flow: value.flow.clone(),
                section: value.section.clone(),
                metric: value.metric.clone(),
                published: value.published.clone(),
                measured: measured(value),
            });
        }
    }
    rows
}

/// Whether a run can meet an expectation. What is expected of participants or calls is no failure
/// where there are none.
fn is_possible(expectation: &Expectation, calls: Option<&Calls>) -> bool {
    match &expectation.flow {
        ExpectedFlow::Calls => calls.is_some_and(|calls| calls.count.made > 0),
        flow => !flow.is_of_application() || calls.is_some_and(|calls| !calls.results.is_empty()),
    }
}

fn expect_rows(
    scenario: &Scenario,
    info: &RunInfo,
    calls: Option<&Calls>,
    judged: impl Fn(usize, &Expectation) -> (Option<String>, Option<f64>),
) -> Vec<ExpectRow> {
    let label = info.subject.to_string();
    let mut rows = Vec::new();
    for (index, expectation) in scenario.expectations.iter().enumerate() {
        if !is_possible(expectation, calls) || !expectation.applies_to(&label) {
            continue;
        }
        let (flow, measured) = judged(index, expectation);
        let (bound, limit) = match expectation.condition {
            Condition::Below(limit) => (Bound::Below, limit),
            Condition::Above(limit) => (Bound::Above, limit),
            Condition::Highest | Condition::Lowest => {
                unreachable!("the parser gives an expectation a limit, for one run has no rival")
            }
        };
        let known = expectation.known_miss(&label);
        rows.push(ExpectRow {
            text: expectation.text.clone(),
            flow,
            measured,
            limit,
            bound,
            pass: measured.is_some_and(|value| bound.holds(value, limit)),
            known_miss: known.map(|miss| miss.why.clone()),
            by_chance: known.is_some_and(|miss| miss.by_chance),
            requirements: expectation.requirements.clone(),
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use weir_controllers::LabAlgorithm;

    use super::*;
    use weir_metrics::CallMetrics;
    use weir_scenario::parse;

    const TEXT: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"10s\"\n\
        [network.up]\ncapacity = \"1Mbps\"\n[network.down]\n\
        [call.video]\nwidth = 640\nheight = 360\ncontent = \"film\"\n\
        [media]\nmax_bitrate = \"1Mbps\"\nsource = { kind = \"encoder\", fps = 30 }\n\
        repair = { nack = true }\nquality = true\n[[flow]]\n\
        [[expect]]\ntext = \"good\"\nmetric = \"good_ratio\"\nabove = 0.8\n";

    #[test]
    fn what_is_seen_of_a_call_has_the_names_of_a_simulated_flow() {
        let scenario = parse("t.toml", TEXT, None).unwrap();
        let info = RunInfo::simulated(&scenario, &LabAlgorithm::Sluice.into(), 1);
        let trace = Trace::new(vec![scenario.flows[0].name.clone()]);
        let all = CallMetrics { good_ratio: Some(0.71), vmaf: Some(86.0), ..Default::default() };
        let calls = Calls { all, ..Calls::default() };
        let summary = Summary::of(&scenario, &info, &trace, Some(calls));
        assert_eq!(summary.metric(None, "good_ratio"), Some(0.71));
        assert_eq!(summary.metric(None, "vmaf.mean"), Some(86.0));
        assert_eq!(summary.metric(None, "stalled_ratio"), None);
        assert_eq!((summary.expect[0].measured, summary.expect[0].pass), (Some(0.71), false));
        let without = Summary::of(&scenario, &info, &trace, None);
        assert_eq!((without.metric(None, "good_ratio"), without.expect[0].measured), (None, None));
    }
}
