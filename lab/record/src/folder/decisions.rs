//! `decisions.csv`: one row for each decision of a simulated forwarding server, with its reason.

use weir::units::{Bitrate, Timestamp};
use weir_sim::trace::{DecisionKind, LayerDecision};

use super::table::{ColumnGroup, CsvColumn, Log, column};

/// The file.
pub(crate) const FILE: Log<Row, LayerDecision> = Log {
    file: "decisions.csv",
    groups: GROUPS,
    items: |part| &part.decisions,
    read: |trace| &mut trace.decisions,
    applies: |scenario| scenario.server.is_some(),
    row: Row::of,
    item: Row::decision,
};

pub(crate) const GROUPS: &[ColumnGroup<Row>] = &[ColumnGroup { columns: COLUMNS, is_in: |_| true }];

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

const COLUMNS: &[CsvColumn<Row>] = &[
    column!("time_ns", "ns", time, "when it was made"),
    CsvColumn {
        name: "flow",
        unit: "",
        meaning: "name of the subscriber's flow",
        in_call: "",
        put: |row, _, out| out.extend_from_slice(row.flow.as_bytes()),
        take: |row, cell, _| {
            row.flow = cell.into();
            Ok(())
        },
    },
    column!(
        "publisher",
        "",
        track,
        "number of the publisher, from 1; empty for what is about the path"
    ),
    CsvColumn {
        name: "decision",
        unit: "",
        meaning: "`chosen`: another layer is wanted. `switched`: it is sent from now on. `key \
            frame asked`. `refused`: the better layer `to` was not chosen. `cut`: nothing is sent \
            until the key frame of a cheaper layer comes. `probe`: more than the media is sent for \
            a moment. `proved`, `disproved`: that `needed` arrives",
        in_call: "",
        put: |row, _, out| {
            out.extend_from_slice(row.kind.map_or("", DecisionKind::as_str).as_bytes());
        },
        take: |row, cell, _| {
            row.kind = DecisionKind::ALL.into_iter().find(|kind| kind.as_str() == cell);
            if row.kind.is_some() { Ok(()) } else { Err(format!("no decision '{cell}'")) }
        },
    },
    column!("from", "", from, "the layer before, from 0; empty if nothing was sent"),
    column!(
        "to",
        "",
        to,
        "the layer after, or the one that was asked for or refused; empty for a pause"
    ),
    CsvColumn {
        name: "reason",
        unit: "",
        meaning: "why, in the words of `weir_sfu::Reason`",
        in_call: "",
        put: |row, _, out| out.extend_from_slice(row.reason.as_bytes()),
        take: |row, cell, _| {
            row.reason = cell.into();
            Ok(())
        },
    },
    column!("budget_bps", "bit/s", budget, "what all pictures could take at that moment"),
    column!("needed_bps", "bit/s", needed, "what the decision needs, or what was probed"),
];
