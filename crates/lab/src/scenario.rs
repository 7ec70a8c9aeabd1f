//! A scenario: a network, the flows that use it, and what a paper or a standard says of the result.

pub mod catalogue;
mod error;
mod network;
mod parse;
mod quantity;
mod reader;
#[cfg(test)]
mod tests;
mod trace_files;
mod words;

use std::collections::BTreeMap;

use weir::Algorithm;
use weir::controller::RateLimits;
use weir::units::{TimeDelta, Timestamp};
use weir_net::LinkConfig;

pub use weir_sim::{Direction, Source};

pub use error::ScenarioError;
pub use parse::{parse, parse_recorded};

/// One experiment, as its TOML file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `lund/rmcat-ns3`: folder and file name, or the path of a file outside the catalogue.
    pub id: String,
    /// The file, word for word.
    pub text: String,
    /// The trace files that it names, word for word, by name.
    pub traces: BTreeMap<String, String>,
    /// One line.
    pub title: String,
    /// Where it comes from: paper and section, or standard and section.
    pub source: String,
    /// What is done and why, and which open parameters were chosen how.
    pub description: String,
    /// Length of the run.
    pub duration: TimeDelta,
    /// How often a receiver sends transport-wide feedback.
    pub feedback_interval: TimeDelta,
    /// From host A to host B.
    pub up: LinkConfig,
    /// From host B to host A.
    pub down: LinkConfig,
    /// The traffic.
    pub flows: Vec<Flow>,
    /// Parts of the run that tables are made of.
    pub sections: Vec<Section>,
    /// Published values.
    pub paper: Vec<PaperValue>,
    /// Published findings in words, with the condition under which ours agrees.
    pub findings: Vec<Finding>,
    /// Assertions of the gate.
    pub expectations: Vec<Expectation>,
}

/// One media flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// `media-1`, or `media-1-up` and `media-1-down` where a scenario has both directions.
    pub name: String,
    /// Which way its media goes.
    pub direction: Direction,
    /// When it starts.
    pub start: Timestamp,
    /// When it ends.
    pub stop: Timestamp,
    /// A fixed controller; `None` for the one that the command line names (`"$controller"`).
    pub controller: Option<Algorithm>,
    /// Range of its target bitrate.
    pub limits: RateLimits,
    /// What makes its frames.
    pub source: Source,
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What a table calls it.
    pub name: String,
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub to: Timestamp,
}

/// A published value, to stand beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperValue {
    /// Table or figure.
    pub location: String,
    /// Path of the metric in a flow's summary, e.g. `rtt_ms.max`.
    pub metric: String,
    /// The controller that it is about; `None` for all.
    pub controller: Option<Algorithm>,
    /// The flow; `None` for the first media flow.
    pub flow: Option<String>,
    /// The value as printed, e.g. `0.77-0.79`.
    pub published: String,
    /// Why ours differs, or empty.
    pub note: String,
}

/// A published finding in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The finding, in our words.
    pub text: String,
    /// Section or figure.
    pub location: String,
    /// The controller that it is about.
    pub controller: Algorithm,
    /// Path of the metric that decides.
    pub metric: String,
    /// When ours agrees.
    pub condition: Condition,
    /// The cause of a difference, or of the agreement, as far as we tested it.
    pub why: String,
}

/// A condition on a metric, averaged over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// At most.
    Below(f64),
    /// At least.
    Above(f64),
    /// No other controller of the scenario has a higher value.
    Highest,
    /// No other controller of the scenario has a lower value.
    Lowest,
}

/// An assertion over a metric of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What it says, in words.
    pub text: String,
    /// Path of the metric in a flow's summary.
    pub metric: String,
    /// The flow; `None` for the first media flow.
    pub flow: Option<String>,
    /// The controllers that it is for; empty for all.
    pub controllers: Vec<Algorithm>,
    /// The limit.
    pub condition: Condition,
}

impl Scenario {
    /// What to simulate when the command line names this controller.
    pub fn sim_config(&self, controller: Algorithm) -> weir_sim::Config {
        let flow = |flow: &Flow| weir_sim::Flow {
            name: flow.name.clone(),
            direction: flow.direction,
            start: flow.start,
            stop: flow.stop,
            algorithm: flow.controller.unwrap_or(controller),
            limits: flow.limits,
            source: flow.source,
        };
        weir_sim::Config {
            duration: self.duration,
            up: self.up.clone(),
            down: self.down.clone(),
            feedback_interval: self.feedback_interval,
            flows: self.flows.iter().map(flow).collect(),
        }
    }
}
