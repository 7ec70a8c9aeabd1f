//! A scenario: a network, the flows that use it, and what a paper or a standard says of the result.

mod applies;
mod aqm;
pub mod call;
pub mod catalogue;
mod changes;
mod error;
mod flow;
mod kind;
mod network;
mod parse;
pub mod quantity;
mod reader;
pub mod requirement;
#[cfg(test)]
mod tests;
mod trace_files;
mod wifi;
mod wired;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;

use weir::controller::Settings;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{Algorithm, ControllerFactory};
use weir_net::Schedule;
use weir_net::path::{AccessPlan, Attachment};

pub use weir_net::Hop;
pub use weir_sim::{
    Congestion, Cubic, Direction, Feedback, Repair, ShortTransfers, Source, Tcp, Udp,
};

pub use call::CallPlan;
pub use changes::{Change, changes};
pub use error::{ScenarioError, nearest};
pub use kind::{Access, NodeGroup};
pub use parse::{parse, parse_recorded, parse_variant};

/// How much of the run a record shows every detail of the access network.
const DETAILS: TimeDelta = TimeDelta::from_millis(100);

/// One experiment, as its TOML file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `lund/rmcat-ns3`: folder and file name, or the path of a file outside the catalogue.
    pub id: String,
    /// The variant of the file's scenario that this is; `None` for the scenario itself.
    pub variant: Option<String>,
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
    /// The access network, such as a Wi-Fi cell, that host A and others are terminals of.
    pub access: Option<Access>,
    /// The bottlenecks, in order from host A, or the access network, to host B; without an access network
    /// at least one.
    pub hops: Vec<Hop>,
    /// The traffic.
    pub flows: Vec<Flow>,
    /// How real browsers play it.
    pub call: CallPlan,
    /// Parts of the run that tables are made of.
    pub sections: Vec<Section>,
    /// Published values.
    pub paper: Vec<PaperValue>,
    /// Published findings in words, with the condition under which ours agrees.
    pub findings: Vec<Finding>,
    /// Assertions of the gate.
    pub expectations: Vec<Expectation>,
}

/// Traffic from one host to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its kind and number, `media-1`; `media-1-up` where a scenario has both directions.
    pub name: String,
    /// Which way its data goes.
    pub direction: Direction,
    /// The terminal of the access network that is its end on A's side, and the class of its packets there.
    pub attachment: Option<Attachment>,
    /// The bottlenecks that it crosses, by index.
    pub hops: Range<usize>,
    /// Delay each way that it has to itself, before the bottlenecks.
    pub access_delay: TimeDelta,
    /// When it starts.
    pub start: Timestamp,
    /// When it ends.
    pub stop: Timestamp,
    /// When it is silent in between.
    pub pauses: Vec<Range<Timestamp>>,
    /// The call of real browsers that a media or audio flow is a part of, from 1.
    pub call: Option<usize>,
    /// What it sends.
    pub traffic: Traffic,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Video under a controller.
    Media(Media),
    /// Audio of 20 kbit/s, which nothing controls.
    Audio,
    /// A TCP connection.
    Tcp(Tcp),
    /// Packets at a given rate.
    Udp(Udp),
    /// Whatever a command sends: no scenario file has it, only the record of `weir link`.
    Link,
}

/// Video under a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// A fixed controller; `None` for the one that the command line names (`"$controller"`).
    pub controller: Option<Algorithm>,
    /// What the controller is told before the first packet.
    pub settings: Settings,
    /// What makes its frames.
    pub source: Source,
    /// The feedback that its receiver sends, from given times on.
    pub feedback: Vec<(Timestamp, Feedback)>,
    /// Media flows of one sender share what they know of the path; the name of the sender.
    pub sender: Option<String>,
    /// How lost packets are repaired; `None` for a receiver that only counts packets.
    pub repair: Option<Repair>,
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
    /// The section; `None` for the whole time.
    pub section: Option<String>,
    /// The value as printed, e.g. `0.77-0.79`.
    pub published: String,
    /// Why ours differs, or empty.
    pub note: String,
    /// What browsers changed since that moves the value of a real call, or empty.
    pub since: String,
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
    /// The flows that it is held against.
    pub flow: ExpectedFlow,
    /// The section that is measured; `None` for the flow's whole time.
    pub section: Option<String>,
    /// The controllers that it is for; empty for all.
    pub controllers: Vec<Algorithm>,
    /// The limit.
    pub condition: Condition,
    /// The requirements of RFC 8836 that it speaks of.
    pub requirements: Vec<String>,
    /// Controllers that are known to miss it, with the reason.
    pub known_misses: Vec<(Algorithm, String)>,
}

/// The flows that an expectation is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedFlow {
    /// The first media flow.
    First,
    /// Every media flow: the worst decides.
    Every,
    /// This one.
    Named(String),
}

impl Expectation {
    /// Whether it is for a controller of this name.
    pub fn applies_to(&self, controller: &str) -> bool {
        self.controllers.is_empty() || self.controllers.iter().any(|c| c.name() == controller)
    }

    /// Why a controller is known to miss it; `None` if it is not.
    pub fn known_miss(&self, controller: &str) -> Option<&str> {
        let known = self.known_misses.iter().find(|miss| miss.0.name() == controller);
        known.map(|miss| miss.1.as_str())
    }
}

impl Flow {
    /// The word for what it carries: `media`, `audio`, `tcp`, `udp` or `link`.
    pub const fn kind(&self) -> &'static str {
        flow::kind(&self.traffic)
    }

    /// The media that it carries, if it is a media flow.
    pub fn media(&self) -> Option<&Media> {
        match &self.traffic {
            Traffic::Media(media) => Some(media),
            _ => None,
        }
    }
}

/// Audio of 20 kbit/s [RFC8867 §5], a packet of 50 B each 20 ms.
fn audio() -> Udp {
    Udp {
        rate: Schedule::constant(Bitrate::from_kbps(20)).expect("the rate is not zero"),
        packet: DataSize::from_bytes(50),
    }
}

impl Scenario {
    /// The bottleneck, if there is only one and no access network.
    pub fn only_hop(&self) -> Option<&Hop> {
        match self.hops.as_slice() {
            [hop] if self.access.is_none() => Some(hop),
            _ => None,
        }
    }

    /// When media and TCP flows other than this one, of its direction, come, go, pause and resume.
    /// Short transfers do so all the time, and do not count.
    pub fn arrivals(&self, index: usize) -> Vec<Timestamp> {
        let Some(own) = self.flows.get(index) else { return Vec::new() };
        let other = |(other, flow): &(usize, &Flow)| {
            let lasting = match &flow.traffic {
                Traffic::Media(_) => true,
                Traffic::Tcp(tcp) => tcp.short.is_none(),
                _ => false,
            };
            lasting && *other != index && flow.direction == own.direction
        };
        let times = |flow: &Flow| {
            let pauses = flow.pauses.iter().flat_map(|pause| [pause.start, pause.end]);
            pauses.chain([flow.start, flow.stop]).collect::<Vec<_>>()
        };
        self.flows.iter().enumerate().filter(other).flat_map(|(_, flow)| times(flow)).collect()
    }

    /// The terminal that host A of `weir link` is: that of the first flow that is at one, else the first;
    /// `None` without an access network.
    pub fn link_attachment(&self) -> Option<Attachment> {
        let of_flow = self.flows.iter().find_map(|flow| flow.attachment);
        let first = self.access.as_ref().map(|access| access.config.default_attachment());
        of_flow.or(first)
    }

    /// The same network for so long under whatever a command sends each way: what `weir link` records.
    /// Sections, published values and assertions are about the scenario's own flows, and go with them.
    pub fn linked(self, duration: TimeDelta) -> Self {
        let attachment = self.link_attachment();
        let flow = |direction| Flow {
            name: match direction {
                Direction::Up => "link-up".into(),
                Direction::Down => "link-down".into(),
            },
            direction,
            attachment,
            hops: 0..self.hops.len(),
            access_delay: TimeDelta::ZERO,
            start: Timestamp::ZERO,
            stop: Timestamp::ZERO + duration,
            pauses: Vec::new(),
            call: None,
            traffic: Traffic::Link,
        };
        Self {
            flows: vec![flow(Direction::Up), flow(Direction::Down)],
            duration,
            sections: Vec::new(),
            paper: Vec::new(),
            findings: Vec::new(),
            expectations: Vec::new(),
            ..self
        }
    }

    /// What UDP flows send at a time over the bottlenecks that a media flow crosses, its way.
    pub fn load(&self, media: &Flow, at: Timestamp) -> Bitrate {
        let rate = |flow: &Flow| {
            let Traffic::Udp(udp) = &flow.traffic else { return None };
            let shares = flow.direction == media.direction
                && flow.hops.start < media.hops.end
                && media.hops.start < flow.hops.end;
            let active = (flow.start..flow.stop).contains(&at)
                && !flow.pauses.iter().any(|pause| pause.contains(&at));
            (shares && active).then(|| udp.rate.rate(at))
        };
        if media.media().is_none() {
            return Bitrate::ZERO;
        }
        self.flows.iter().filter_map(rate).fold(Bitrate::ZERO, |sum, rate| sum + rate)
    }

    /// The access network of a run. Every detail of it is noted for a little of the middle of the run.
    pub fn access_plan(&self) -> Option<AccessPlan> {
        let middle = Timestamp::ZERO + self.duration / 2;
        let plan = |access: &Access| AccessPlan {
            noted: middle..middle + DETAILS,
            ..AccessPlan::new(access.config.clone())
        };
        self.access.as_ref().map(plan)
    }

    /// What to simulate when the command line names this controller. Flows of a fixed controller keep it.
    pub fn sim_config(&self, controller: impl Into<ControllerFactory>) -> weir_sim::Config {
        let controller = controller.into();
        let flow = |flow: &Flow| weir_sim::FlowConfig {
            name: flow.name.clone(),
            direction: flow.direction,
            attachment: flow.attachment,
            hops: flow.hops.clone(),
            access_delay: flow.access_delay,
            start: flow.start,
            stop: flow.stop,
            pauses: flow.pauses.clone(),
            traffic: match &flow.traffic {
                Traffic::Media(media) => weir_sim::FlowKind::Media(weir_sim::Media {
                    controller: media.controller.map_or_else(|| controller.clone(), Into::into),
                    settings: media.settings,
                    sender: media.sender.clone(),
                    source: media.source,
                    feedback: media.feedback.clone(),
                    feedback_interval: self.feedback_interval,
                    repair: media.repair,
                }),
                Traffic::Audio => weir_sim::FlowKind::Udp(audio()),
                Traffic::Tcp(tcp) => weir_sim::FlowKind::Tcp(tcp.clone()),
                Traffic::Udp(udp) => weir_sim::FlowKind::Udp(udp.clone()),
                Traffic::Link => unreachable!("a command is run and not simulated"),
            },
        };
        weir_sim::Config {
            duration: self.duration,
            access: self.access_plan(),
            hops: self.hops.clone(),
            flows: self.flows.iter().map(flow).collect(),
        }
    }
}
