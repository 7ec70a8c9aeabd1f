//! `decisions.csv`: one row for each decision of a simulated forwarding server, with its reason.

use weir::units::{Bitrate, Timestamp};
use weir_scenario::Scenario;
use weir_sim::trace::{DecisionKind, LayerDecision, Trace};

use super::table::{Cell, ColumnGroup, CsvColumn, Log, always, column, word_of};

/// The file.
pub(crate) const FILE: Log<Row, LayerDecision> = Log {
    file: "decisions.csv",
    groups: GROUPS,
    items: decisions,
    read: decisions_mut,
    applies: has_server,
    row: Row::of,
    item: Row::decision,
};

fn decisions(part: &Trace) -> &[LayerDecision] {
    &part.decisions
}

fn decisions_mut(trace: &mut Trace) -> &mut Vec<LayerDecision> {
    &mut trace.decisions
}

fn has_server(scenario: &Scenario) -> bool {
    scenario.server.is_some()
}

pub(crate) const GROUPS: &[ColumnGroup<Row>] = &[ColumnGroup { columns: COLUMNS, is_in: always }];

/// A row of the file.
#[derive(Default)]
pub(crate) struct Row {
    time: Timestamp,
    flow: String,
    track: Option<u64>,
    kind: Option<DecisionKind>,
    from: Option<u64>,
    to: Option<u64>,
    reason: String,
    budget: Bitrate,
    needed: Bitrate,
}

impl Row {
    fn of(decision: &LayerDecision) -> Self {
        let LayerDecision { time, flow, track, kind, from, to, reason, budget, needed, .. } =
            decision.clone();
        let (kind, reason) = (Some(kind), reason.into());
        Self { time, flow, track, kind, from, to, reason, budget, needed }
    }

    fn decision(self) -> Result<LayerDecision, String> {
        let mut decision = LayerDecision::default();
        decision.kind = self.kind.ok_or("decision: an empty cell")?;
        decision.reason = self.reason.into();
        (decision.time, decision.flow, decision.track) = (self.time, self.flow, self.track);
        (decision.from, decision.to) = (self.from, self.to);
        (decision.budget, decision.needed) = (self.budget, self.needed);
        Ok(decision)
    }
}

impl Cell for DecisionKind {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_str().as_bytes());
    }

    fn take(cell: &str) -> Result<Self, String> {
        word_of(cell, "decision", &Self::ALL, Self::as_str)
    }
}

const COLUMNS: &[CsvColumn<Row>] = &[
    column!("time_ns", "ns", time, "when it was made"),
    column!("flow", "", flow, "name of the subscriber's flow"),
    column!(
        "publisher",
        "",
        track,
        "number of the publisher, from 1; empty for what is about the path"
    ),
    column!(
        "decision",
        "",
        kind,
        "`chosen`: another layer is wanted. `switched`: it is sent from now on. `key \
            frame asked`. `refused`: the better layer `to` was not chosen. `cut`: nothing is sent \
            until the key frame of a cheaper layer comes. `probe`: more than the media is sent for \
            a moment. `proved`, `disproved`: that `needed` arrives"
    ),
    column!("from", "", from, "the layer before, from 0; empty if nothing was sent"),
    column!(
        "to",
        "",
        to,
        "the layer after, or the one that was asked for or refused; empty for a pause"
    ),
    column!("reason", "", reason, "why, in the words of `weir_sfu::Reason`"),
    column!("budget_bps", "bit/s", budget, "what all pictures could take at that moment"),
    column!("needed_bps", "bit/s", needed, "what the decision needs, or what was probed"),
];
