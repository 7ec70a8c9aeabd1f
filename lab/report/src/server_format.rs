//! What the page shows of a forwarding server.

use serde::Serialize;

/// What a forwarding server sent to its subscribers over one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Forwarding {
    /// The command that repeats the run.
    pub command: String,
    pub controller: String,
    pub duration_s: f64,
    /// Layers of the publisher that has most.
    pub layers: usize,
    pub lanes: Vec<ForwardedLane>,
    /// Chosen and switched layers, and pauses, by time.
    pub choices: Vec<LayerChoice>,
    /// Whether there were more lanes or choices than these.
    pub is_cut: bool,
}

/// One publisher's picture on its way to one subscriber.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ForwardedLane {
    /// The subscriber.
    pub flow: String,
    pub publisher: String,
    pub spans: Vec<ForwardedSpan>,
}

/// A time in which one layer was sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ForwardedSpan {
    pub from_s: f64,
    pub to_s: f64,
    /// From 0, the smallest; `null`: nothing was sent.
    pub layer: Option<u64>,
    /// Why it was chosen; empty at the start.
    pub reason: String,
}

/// A decision about a layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct LayerChoice {
    pub time_s: f64,
    pub flow: String,
    pub publisher: String,
    /// `chosen`, `switched` or `cut`.
    pub decision: String,
    pub from: Option<u64>,
    /// `null`: a pause.
    pub to: Option<u64>,
    pub reason: String,
    /// What all pictures could take at that moment.
    pub budget_kbps: f64,
    /// What all pictures need after the decision.
    pub needed_kbps: f64,
}
