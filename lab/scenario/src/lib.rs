//! A scenario: a network, the flows that use it, and published results to compare with.
//!
//! Scenarios are read from TOML files, those of the [`catalogue`] or your own. Here are also the
//! [`Controllers`] that a run chooses from, the [`constants`] that can be overridden, and what can
//! be said of a scenario before it runs: how much its capacity varies ([`variation`]) and what a
//! sender could reach on it ([`oracle`]).
//!
//! # Modules
//!
//! - `parse`, `reader`, `kind`: a file as a whole; tables and items with their errors; the kinds
//!   of networks.
//! - `catalogue`: finds scenarios by id, pattern or file.
//! - `metric_paths`: which metrics an expectation or a published value can name.
//! - `called`: a scenario as `weir call` plays it.
//! - `controllers`: the controllers that a run chooses from, by name.
//! - `constants`: constants of `sluice` by name, for experiments.
//! - `variation/`: how much a capacity varies, whether it was recorded, written or simulated:
//!   `weir trace`.
//! - `oracle`: what a sender could reach that knows the network.
//! - `files`: reads regular files only.
#![forbid(unsafe_code)]

mod applies;
mod aqm;
pub mod call;
mod called;
pub mod catalogue;
mod cellular;
mod changes;
pub mod constants;
mod controllers;
mod error;
pub mod files;
mod flow;
mod handover;
mod kind;
mod load;
pub mod metric_paths;
mod nat;
mod network;
mod opus;
pub mod oracle;
pub mod packed;
mod parse;
pub mod quantity;
mod quic;
mod reader;
mod recovery;
pub mod requirement;
mod server;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod trace_files;
pub mod variation;
mod warnings;
mod wifi;
mod wired;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_controllers::{LabAlgorithm, LabController};
use weir_net::Schedule;
use weir_net::path::{AccessPlan, Attachment};

pub use weir_net::Hop;
pub use weir_sim::{
    Congestion, Cubic, Direction, EncoderDriver, EncoderVideo, Feedback, QuicAck, QuicCongestion,
    QuicDelivery, QuicSource, QuicStack, ReceiverClock, Repair, ShortTransfers, Source, Tcp, Udp,
};
use weir_sim::{FlowKind, Watching};

pub use call::CallPlan;
pub use called::CallSender;
pub use changes::{Change, changes, whole_text};
pub use controllers::{Controllers, LIBRARY, UnknownController};
pub use error::{ScenarioError, nearest};
pub use handover::ParticipantHandover;
pub use kind::{Access, NodeGroup};
pub use nat::ParticipantNat;
pub use network::ParticipantNetwork;
pub use parse::{parse, parse_recorded, parse_variant};
pub use recovery::Recovery;
pub use server::ServerPlan;
use trace_files::FileText;

/// Length of the time for which a record shows every detail of the access network.
const DETAILS: TimeDelta = TimeDelta::from_millis(100);

/// One experiment, as described by its TOML file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Folder and file name such as `lund/rmcat-ns3`, or the path of a file outside the catalogue.
    pub id: String,
    /// Name of the variant within the file; `None` for the scenario without a variant.
    pub variant: Option<String>,
    /// Content of the file, unchanged.
    pub text: String,
    /// Contents of the trace files that it refers to, unchanged, by file name.
    pub traces: BTreeMap<String, FileText>,
    /// Title, one line.
    pub title: String,
    /// Origin: paper or standard, with the section.
    pub source: String,
    /// What is done and why, and how open parameters were chosen.
    pub description: String,
    /// Length of the run.
    pub duration: TimeDelta,
    /// Whether the user ended the run before the end that the text gives.
    pub ended_early: bool,
    /// How often a receiver sends transport-wide feedback.
    pub feedback_interval: TimeDelta,
    /// The access network, such as a Wi-Fi cell. Host A and others are its terminals.
    pub access: Option<Access>,
    /// The bottlenecks, in order from host A (or the access network) to host B. Without an access
    /// network there is at least one.
    pub hops: Vec<Hop>,
    /// Networks of participants of an application under test, by name: `p2` and so on. The first
    /// participant is behind `access` and `hops`.
    pub participants: BTreeMap<String, ParticipantNetwork>,
    /// The NATs of participants of calls and applications. Simulations have none.
    pub nats: Vec<ParticipantNat>,
    /// Changes of participants to a second interface. Simulations have none.
    pub handovers: Vec<ParticipantHandover>,
    /// The simulated forwarding server; `None` without one. Media flows are its subscribers.
    pub server: Option<ServerPlan>,
    /// The flows that use the network.
    pub flows: Vec<Flow>,
    /// How real browsers run the scenario.
    pub call: CallPlan,
    /// Parts of the run that tables refer to.
    pub sections: Vec<Section>,
    /// Published values.
    pub paper: Vec<PaperValue>,
    /// Published findings in words, each with the condition under which our results agree.
    pub findings: Vec<Finding>,
    /// Assertions that the test gate checks.
    pub expectations: Vec<Expectation>,
}

/// Traffic from one host to another. Its name is made of kind and number: `media-1`, or
/// `media-1-up` if the scenario has both directions.
pub type Flow = weir_sim::FlowConfig<Traffic>;

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Video controlled by a congestion controller.
    Media(Media),
    /// Audio of 20 kbit/s without congestion control.
    Audio,
    /// A TCP connection.
    Tcp(Tcp),
    /// Media or data over QUIC.
    Quic(Quic),
    /// Packets at a given rate.
    Udp(Udp),
    /// Traffic of a command under `weir link`. It occurs in records only, not in scenario files.
    Link,
}

/// Video controlled by a congestion controller: a fixed one, or (`None`, in files `"$controller"`)
/// the one named on the command line.
pub type Media = weir_sim::Media<Option<LabAlgorithm>>;

/// Media or data over QUIC, whose controller is as that of [`Media`].
pub type Quic = weir_sim::Quic<Media>;

/// A part of a run, for which metrics are computed separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Name in tables.
    pub name: String,
    /// Start of the section.
    pub from: Timestamp,
    /// End of the section.
    pub to: Timestamp,
}

/// A published value, shown beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperValue {
    /// Table or figure in the publication.
    pub location: String,
    /// Path of the metric in a flow's summary, for example `rtt_ms.max`.
    pub metric: String,
    /// The controller that the value applies to; `None` for all.
    pub controller: Option<LabAlgorithm>,
    /// The flow that the value applies to; `None` for the first media flow.
    pub flow: Option<String>,
    /// The section that the value applies to; `None` for the whole time.
    pub section: Option<String>,
    /// The value as printed, for example `0.77-0.79`.
    pub published: String,
    /// Why our value differs, or empty.
    pub note: String,
    /// Changes in browsers since the publication that affect the value in real calls, or empty.
    pub since: String,
}

/// A published finding in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The finding, in our words.
    pub text: String,
    /// Section or figure in the publication.
    pub location: String,
    /// The controller that the finding is about.
    pub controller: LabAlgorithm,
    /// Path of the metric that decides whether we agree.
    pub metric: String,
    /// Condition under which our result agrees.
    pub condition: Condition,
    /// Cause of the difference or of the agreement, as far as we tested it.
    pub why: String,
}

/// A condition on a metric. Findings use the mean over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// The value is at most this.
    Below(f64),
    /// The value is at least this.
    Above(f64),
    /// No other controller of the scenario has a higher value.
    Highest,
    /// No other controller of the scenario has a lower value.
    Lowest,
}

/// An assertion about a metric of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The assertion in words.
    pub text: String,
    /// Path of the metric in a flow's summary.
    pub metric: String,
    /// The flows to which it applies.
    pub flow: ExpectedFlow,
    /// The section in which the metric is measured; `None` for the flow's whole time.
    pub section: Option<String>,
    /// The controllers to which it applies; empty for all.
    pub controllers: Vec<LabAlgorithm>,
    /// The condition that the metric must meet, or the seconds of `recovery`.
    pub condition: Condition,
    /// What is measured is the time until the metric has come back; `None` if it is the metric
    /// itself.
    pub recovery: Option<Recovery>,
    /// The requirements of RFC 8836 that it covers.
    pub requirements: Vec<String>,
    /// Controllers that do not meet it.
    pub known_misses: Vec<KnownMiss>,
}

/// A controller that is known not to meet an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMiss {
    /// The controller.
    pub controller: LabAlgorithm,
    /// The reason.
    pub why: String,
    /// Whether it meets the expectation with some seeds, so that to meet it is no news.
    pub by_chance: bool,
}

/// The flows to which an expectation applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedFlow {
    /// The first media flow.
    First,
    /// Every media flow. The worst value decides.
    Every,
    /// The flow with this name.
    Named(String),
    /// No flow: every participant of an application under test. The worst value decides.
    EveryParticipant,
    /// No flow: the participant or stream of an application under test with this name.
    Participant(String),
    /// No flow: all calls of a real run.
    Calls,
}

impl ExpectedFlow {
    /// Whether it is of an application under test, which only a real call has.
    pub const fn is_of_application(&self) -> bool {
        matches!(self, Self::EveryParticipant | Self::Participant(_))
    }

    /// Whether it is of no flow, but of an application or of calls, which only a real run has.
    pub const fn is_of_real_run(&self) -> bool {
        self.is_of_application() || matches!(self, Self::Calls)
    }
}

impl Expectation {
    /// Whether it applies to the controller of this name.
    pub fn applies_to(&self, controller: &str) -> bool {
        self.controllers.is_empty() || self.controllers.iter().any(|c| c.name() == controller)
    }

    /// A controller's known miss; `None` if it has none.
    pub fn known_miss(&self, controller: &str) -> Option<&KnownMiss> {
        self.known_misses.iter().find(|miss| miss.controller.name() == controller)
    }
}

impl Traffic {
    /// Its kind: `media`, `audio`, `tcp`, `quic`, `udp` or `link`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Media(_) => "media",
            Self::Audio => "audio",
            Self::Tcp(_) => "tcp",
            Self::Quic(_) => "quic",
            Self::Udp(_) => "udp",
            Self::Link => "link",
        }
    }

    /// The video under a controller for media, if it is one. Over QUIC its controller and settings
    /// alone apply.
    pub fn media(&self) -> Option<&Media> {
        match self {
            Self::Media(media) => Some(media),
            Self::Quic(quic) if quic.congestion == QuicCongestion::Media => Some(&quic.media),
            _ => None,
        }
    }
}

impl Scenario {
    /// Whether a publication has a value of this controller for the scenario, or a finding about
    /// it.
    pub fn has_published(&self, controller: LabAlgorithm) -> bool {
        self.paper.iter().any(|value| value.controller == Some(controller))
            || self.findings.iter().any(|finding| finding.controller == controller)
    }

    /// The bottleneck, if there is only one and no access network.
    pub fn only_hop(&self) -> Option<&Hop> {
        match self.hops.as_slice() {
            [hop] if self.access.is_none() => Some(hop),
            _ => None,
        }
    }

    /// Names and times of the sections.
    pub fn section_spans(&self) -> Vec<(String, Range<Timestamp>)> {
        let span = |section: &Section| (section.name.clone(), section.from..section.to);
        self.sections.iter().map(span).collect()
    }

    /// What expectations want to come back.
    pub fn recoveries(&self) -> Vec<&Recovery> {
        self.expectations.iter().filter_map(|it| it.recovery.as_ref()).collect()
    }

    /// Times at which other media, TCP and QUIC flows of the same direction start, stop, pause and
    /// resume. Short transfers are left out, because they start and stop all the time.
    pub fn arrivals(&self, index: usize) -> Vec<Timestamp> {
        let Some(own) = self.flows.get(index) else { return Vec::new() };
        let other = |(other, flow): &(usize, &Flow)| {
            let lasting = match &flow.traffic {
                Traffic::Media(_) | Traffic::Quic(_) => true,
                Traffic::Tcp(tcp) => tcp.short.is_none(),
                _ => false,
            };
            lasting && *other != index && flow.direction == own.direction
        };
        let mut times = Vec::new();
        for (_, flow) in self.flows.iter().enumerate().filter(other) {
            for pause in &flow.pauses {
                times.extend([pause.start, pause.end]);
            }
            times.extend([flow.start, flow.stop]);
        }
        times
    }

    /// The terminal that host A of `weir link` uses: that of the first flow with one, otherwise the
    /// default. `None` without an access network.
    pub fn link_attachment(&self) -> Option<Attachment> {
        let of_flow = self.flows.iter().find_map(|flow| flow.attachment);
        let first = self.access.as_ref().map(|access| access.config.default_attachment());
        of_flow.or(first)
    }

    /// The same scenario, ended by the user at this time. Sections, published values and assertions
    /// are removed, because they refer to the whole scenario.
    pub fn ended_at(self, duration: TimeDelta) -> Self {
        let end = Timestamp::ZERO + duration;
        let mut flows = self.flows;
        for flow in &mut flows {
            flow.start = flow.start.min(end);
            flow.stop = flow.stop.min(end);
            flow.pauses.retain(|pause| pause.end <= end);
        }
        Self {
            flows,
            duration,
            ended_early: true,
            sections: Vec::new(),
            paper: Vec::new(),
            findings: Vec::new(),
            expectations: Vec::new(),
            ..self
        }
    }

    /// The same network with the traffic of a command in both directions, for this duration.
    /// `weir link` records this scenario. Sections, published values and assertions are removed,
    /// because they refer to the scenario's own flows.
    pub fn linked(self, duration: TimeDelta) -> Self {
        let mut flows = Vec::new();
        for &direction in Direction::BOTH {
            let name = format!("link-{}", direction.word());
            flows.push(
                Flow::new(name, duration, Traffic::Link)
                    .with_direction(direction)
                    .with_attachment(self.link_attachment())
                    .with_hops(0..self.hops.len()),
            );
        }
        Self {
            flows,
            duration,
            sections: Vec::new(),
            paper: Vec::new(),
            findings: Vec::new(),
            expectations: Vec::new(),
            ..self
        }
    }

    /// Total rate of the UDP flows that share a bottleneck and the direction with a media flow, at
    /// a time.
    pub fn load(&self, media: &Flow, at: Timestamp) -> Bitrate {
        let mut sum = Bitrate::ZERO;
        for (flow, rates) in self.loads(media) {
            let is_on = (flow.start..flow.stop).contains(&at);
            if is_on && !flow.pauses.iter().any(|pause| pause.contains(&at)) {
                sum = sum + rates.rate(at);
            }
        }
        sum
    }

    /// The mean of [`Scenario::load`] between two times.
    pub fn mean_load(&self, media: &Flow, from: Timestamp, to: Timestamp) -> Bitrate {
        let mut bits = 0.0;
        for (flow, rates) in self.loads(media) {
            let (start, stop) = (flow.start.max(from), flow.stop.min(to));
            bits += rates.bits(start, stop);
            for pause in &flow.pauses {
                bits -= rates.bits(pause.start.max(start), pause.end.min(stop));
            }
        }
        Bitrate::from_bps_f64(bits / (to - from).as_secs_f64())
    }

    /// The UDP flows that share a bottleneck and the direction with a media flow, and their rates.
    fn loads(&self, media: &Flow) -> impl Iterator<Item = (&Flow, &Schedule)> {
        let (direction, hops) = (media.direction, media.hops.clone());
        let is_media = media.traffic.media().is_some();
        self.flows.iter().filter_map(move |flow| {
            let Traffic::Udp(udp) = &flow.traffic else { return None };
            let shares = flow.direction == direction
                && flow.hops.start < hops.end
                && hops.start < flow.hops.end;
            (is_media && shares).then_some((flow, &udp.rate))
        })
    }

    /// Whether its access network is a Wi-Fi cell.
    pub fn has_wifi(&self) -> bool {
        self.access.as_ref().is_some_and(Access::is_wifi)
    }

    /// Whether its access network is a cellular cell.
    pub fn has_cellular(&self) -> bool {
        self.access.as_ref().is_some_and(Access::is_cellular)
    }

    /// The access network of a run. Every detail is logged for a short time in the middle of the
    /// run.
    pub fn access_plan(&self) -> Option<AccessPlan> {
        let middle = Timestamp::ZERO + self.duration / 2;
        let plan = |access: &Access| {
            AccessPlan::new(access.config.clone()).with_noted(middle..middle + DETAILS)
        };
        self.access.as_ref().map(plan)
    }

    /// Whether a flow is under the controller of the run: media without a fixed controller.
    pub fn is_controlled(&self) -> bool {
        let mut media = self.flows.iter().filter_map(|flow| flow.traffic.media());
        media.any(|media| media.controller.is_none())
    }

    /// The controllers that make different runs of it: all of the chosen ones, or the first one if
    /// no flow is under the controller of the run.
    pub fn controllers_to_run<'a>(&self, chosen: &'a [LabController]) -> &'a [LabController] {
        if self.is_controlled() { chosen } else { &chosen[..chosen.len().min(1)] }
    }

    /// Configuration of the simulator for this controller. Flows with a fixed controller keep
    /// theirs.
    pub fn sim_config(&self, controller: impl Into<LabController>) -> weir_sim::Config {
        let controller = controller.into();
        let mut flows = Vec::new();
        for flow in &self.flows {
            let traffic = match &flow.traffic {
                Traffic::Media(media) => {
                    let own = media.controller.map_or_else(|| controller.clone(), Into::into);
                    let interval = self.feedback_interval;
                    let media = media.clone().under(own).with_feedback_interval(interval);
                    match &self.server {
                        None => FlowKind::Media(media),
                        Some(server) => {
                            let watches = media.watches.clone();
                            let watching = Watching::new(media, watches).with_core(server.core);
                            FlowKind::Subscriber(watching)
                        }
                    }
                }
                Traffic::Audio => FlowKind::Udp(self.call.audio.packets(flow.quality)),
                Traffic::Tcp(tcp) => FlowKind::Tcp(tcp.clone()),
                Traffic::Quic(quic) => {
                    let own = quic.media.controller;
                    let own = own.map_or_else(|| controller.clone(), Into::into);
                    let media = quic.media.clone().under(own);
                    FlowKind::Quic(quic.clone().carrying(media))
                }
                Traffic::Udp(udp) => FlowKind::Udp(udp.clone()),
                Traffic::Link => unreachable!("a command is run and not simulated"),
            };
            flows.push(flow.carrying(traffic));
        }
        weir_sim::Config::wired(self.duration, self.hops.clone(), flows)
            .with_access(self.access_plan())
            .with_publishers(
                self.server.as_ref().map_or_else(Vec::new, |server| server.publishers.clone()),
            )
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
