//! The result of one run in numbers: what `--json` prints and `summary.json` holds.

use serde::{Deserialize, Serialize};
use weir_sim::trace::{Row, Trace};

use crate::metrics::{Metrics, utilization};
use crate::run::RunInfo;
use crate::scenario::{Condition, Expectation, ExpectedFlow, Flow, Scenario};

/// Version of the summary's shape.
pub const SCHEMA: u32 = 1;

/// One run: a scenario under a controller with a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Scenario id.
    pub scenario: String,
    /// Controller: an algorithm's name, or the browser's.
    pub controller: String,
    /// `sim` or `call`.
    pub engine: String,
    /// Seed, as a string: JSON numbers lose large integers.
    pub seed: String,
    /// Length of the run.
    pub duration_s: f64,
    /// The bottleneck.
    pub link: LinkSummary,
    /// A flow each.
    pub flows: Vec<FlowSummary>,
    /// Published values beside ours.
    pub paper: Vec<PaperRow>,
    /// Assertions and whether they hold.
    pub expect: Vec<ExpectRow>,
}

/// The bottleneck, all flows of the first flow's direction together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Received bits of all flows over what the bottleneck could carry.
    pub utilization: Option<f64>,
}

/// A flow over its whole time, and over the scenario's sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Name.
    pub flow: String,
    /// What it carries: `media`, `audio`, `tcp` or `udp`.
    pub kind: String,
    /// Over its whole time.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Over the scenario's sections.
    pub sections: Vec<SectionSummary>,
}

/// A flow over one section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SectionSummary {
    /// What a table calls it.
    pub name: String,
    /// Its beginning.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// The same metrics.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// A published value beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperRow {
    /// Table, figure or section.
    #[serde(rename = "where")]
    pub location: String,
    /// Path of the metric.
    pub metric: String,
    /// The value as printed.
    pub published: String,
    /// Ours.
    pub measured: Option<f64>,
}

/// An assertion and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectRow {
    /// What it says.
    pub text: String,
    /// Ours.
    pub measured: Option<f64>,
    /// What it is held against.
    pub limit: f64,
    /// Whether it holds; an assertion on a value that nobody measured does not.
    pub pass: bool,
    /// Why the controller is known to miss it.
    #[serde(default)]
    pub known_miss: Option<String>,
}

impl Summary {
    /// Measures a run. `scenario` says which sections, published values and assertions apply.
    pub fn of(scenario: &Scenario, info: &RunInfo, trace: &Trace) -> Self {
        let rows_of = |index: usize| -> Vec<Row> {
            trace.rows.iter().filter(|row| row.flow == index).copied().collect()
        };
        let flow = |(index, name): (usize, &String)| {
            let rows = rows_of(index);
            let section = |section: &crate::scenario::Section| {
                let within = |row: &&Row| row.time > section.from && row.time <= section.to;
                let rows: Vec<Row> = rows.iter().filter(within).copied().collect();
                SectionSummary {
                    name: section.name.clone(),
                    from_s: section.from.as_secs_f64(),
                    to_s: section.to.as_secs_f64(),
                    metrics: Metrics::of(&rows),
                }
            };
            FlowSummary {
                flow: name.clone(),
                kind: scenario.flows.get(index).map_or("media", Flow::kind).into(),
                metrics: Metrics::of(&rows),
                sections: scenario.sections.iter().map(section).collect(),
            }
        };
        let flows: Vec<FlowSummary> = trace.flows.iter().enumerate().map(flow).collect();
        Self {
            schema: SCHEMA,
            scenario: info.scenario.clone(),
            controller: info.controller.clone(),
            engine: info.engine.as_str().into(),
            seed: info.seed.to_string(),
            duration_s: scenario.duration.as_secs_f64(),
            link: LinkSummary { utilization: link_utilization(scenario, trace) },
            paper: paper_rows(scenario, info, &flows),
            expect: expect_rows(scenario, info, &flows),
            flows,
        }
    }

    /// A metric of a flow, the first one if none is named.
    pub fn metric(&self, flow: Option<&str>, path: &str) -> Option<f64> {
        metric_of(&self.flows, flow, path)
    }
}

fn metric_of(flows: &[FlowSummary], flow: Option<&str>, path: &str) -> Option<f64> {
    let wanted = |summary: &&FlowSummary| flow.is_none_or(|flow| summary.flow == flow);
    flows.iter().find(wanted)?.metrics.at(path)
}

/// What the flows of the first flow's direction received, over what the link could carry while any of
/// them was active.
fn link_utilization(scenario: &Scenario, trace: &Trace) -> Option<f64> {
    let direction = scenario.flows.first()?.direction;
    let together =
        |row: &&Row| scenario.flows.get(row.flow).is_some_and(|flow| flow.direction == direction);
    let mut joined: Vec<Row> = Vec::new();
    for row in trace.rows.iter().filter(together) {
        match joined.last_mut() {
            Some(last) if last.time == row.time => last.received += row.received,
            _ => joined.push(*row),
        }
    }
    utilization(&joined)
}

fn paper_rows(scenario: &Scenario, info: &RunInfo, flows: &[FlowSummary]) -> Vec<PaperRow> {
    let ours = |controller: Option<weir::Algorithm>| {
        controller.is_none_or(|controller| controller.name() == info.controller)
    };
    let row = |value: &crate::scenario::PaperValue| PaperRow {
        location: value.location.clone(),
        metric: value.metric.clone(),
        published: value.published.clone(),
        measured: metric_of(flows, value.flow.as_deref(), &value.metric),
    };
    scenario.paper.iter().filter(|value| ours(value.controller)).map(row).collect()
}

fn expect_rows(scenario: &Scenario, info: &RunInfo, flows: &[FlowSummary]) -> Vec<ExpectRow> {
    let row = |expectation: &Expectation| {
        let measured = measured(expectation, flows);
        let (limit, holds) = match expectation.condition {
            Condition::Below(limit) => (limit, measured.is_some_and(|value| value <= limit)),
            Condition::Above(limit) => (limit, measured.is_some_and(|value| value >= limit)),
            // One run has no rival: the parser refuses these two here.
            Condition::Highest | Condition::Lowest => (0.0, false),
        };
        let known_miss = expectation.known_miss(&info.controller).map(String::from);
        ExpectRow { text: expectation.text.clone(), measured, limit, pass: holds, known_miss }
    };
    let expectations = scenario.expectations.iter();
    expectations.filter(|expectation| expectation.applies_to(&info.controller)).map(row).collect()
}

/// The value that an expectation judges; of several flows the worst, and none if one has none.
fn measured(expectation: &Expectation, flows: &[FlowSummary]) -> Option<f64> {
    let value = |flow: &FlowSummary| {
        let metrics = match &expectation.section {
            None => &flow.metrics,
            Some(name) => &flow.sections.iter().find(|section| section.name == *name)?.metrics,
        };
        metrics.at(&expectation.metric)
    };
    let media = |flow: &&FlowSummary| flow.kind == "media";
    match &expectation.flow {
        ExpectedFlow::Named(name) => flows.iter().find(|flow| flow.flow == *name).and_then(value),
        ExpectedFlow::First => flows.iter().find(media).and_then(value),
        ExpectedFlow::Every => {
            let values: Option<Vec<f64>> = flows.iter().filter(media).map(value).collect();
            values?.into_iter().reduce(match expectation.condition {
                Condition::Above(_) => f64::min,
                _ => f64::max,
            })
        }
    }
}
