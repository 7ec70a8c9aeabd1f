//! `bearers.csv`: one row for each bearer of the cellular cell, direction and 50 ms; and
//! `bearer-events.csv`: what became of bearers. Cells are whole numbers. An empty cell means that
//! the value was not measured.

use weir::units::Timestamp;
use weir_net::cellular::{BearerEvent, BearerEventKind, BearerRow};
use weir_net::path::NOTE_INTERVAL;
use weir_scenario::Scenario;
use weir_sim::trace::Trace;

use super::table::{
    Cell, ColumnGroup, CsvColumn, Log, always, column, name_column, time_column, word_of,
};

/// The file of rows.
pub(crate) const FILE: Log<BearerRow, BearerRow> = Log {
    file: "bearers.csv",
    groups: GROUPS,
    items: rows,
    read: rows_mut,
    applies: Scenario::has_cellular,
    row: BearerRow::clone,
    item: Ok,
};

/// The file of events.
pub(crate) const EVENTS: Log<Event, BearerEvent> = Log {
    file: "bearer-events.csv",
    groups: EVENT_GROUPS,
    items: events,
    read: events_mut,
    applies: Scenario::has_cellular,
    row: Event::of,
    item: Event::event,
};

fn rows(part: &Trace) -> &[BearerRow] {
    &part.access.cellular.rows
}

fn rows_mut(trace: &mut Trace) -> &mut Vec<BearerRow> {
    &mut trace.access.cellular.rows
}

fn events(part: &Trace) -> &[BearerEvent] {
    &part.access.cellular.events
}

fn events_mut(trace: &mut Trace) -> &mut Vec<BearerEvent> {
    &mut trace.access.cellular.events
}

pub(crate) const GROUPS: &[ColumnGroup<BearerRow>] =
    &[ColumnGroup { columns: COLUMNS, is_in: always }];
pub(crate) const EVENT_GROUPS: &[ColumnGroup<Event>] =
    &[ColumnGroup { columns: EVENT_COLUMNS, is_in: always }];

const COLUMNS: &[CsvColumn<BearerRow>] = &[
    time_column!(NOTE_INTERVAL, "end of the interval, a multiple of 50"),
    name_column!("terminal", node, "terminal", "name of the terminal"),
    column!("bearer", "", bearer, "name of the bearer; the default bearer is `default`"),
    column!("direction", "", direction, "`up` or `down`"),
    column!(
        "sinr_db_x100",
        "0.01 dB",
        sinr_db,
        "SINR over the whole carrier at the end of the interval, without fading; like \
            the next five columns it is of the terminal and equal for all its bearers"
    ),
    column!(
        "mcs_x100",
        "0.01",
        mcs,
        "mean MCS of the blocks sent for the first time; empty if there were none"
    ),
    column!("blocks", "", blocks, "blocks sent for the first time"),
    column!("failures", "", failures, "how many of these blocks could not be decoded at first"),
    column!("retransmissions", "", retransmissions, "further transmissions of blocks by HARQ"),
    column!("abandoned", "", abandoned, "blocks given up after their last transmission"),
    column!(
        "prbs_x100",
        "0.01 PRB",
        prbs,
        "resource blocks times TTIs that the bearer had, retransmissions included; \
            bearers share a block by their bytes"
    ),
    column!("rlc_repeated_bytes", "byte", rlc_repeated, "bytes that RLC sent again"),
    column!("offered_bytes", "byte", offered, "IP bytes that came to be sent"),
    column!("delivered_bytes", "byte", delivered, "IP bytes that arrived"),
    column!("dropped_packets", "packets", dropped_packets, "packets that the queue dropped"),
    column!("lost_packets", "packets", lost_packets, "packets lost on the air"),
    column!("queue_bytes", "byte", queue, "bytes in the queue at the end of the interval"),
];

/// A row of the events.
#[derive(Default)]
pub(crate) struct Event {
    time: Timestamp,
    node: usize,
    bearer: String,
    kind: Option<BearerEventKind>,
}

impl Event {
    fn of(event: &BearerEvent) -> Self {
        let BearerEvent { time, node, bearer, kind } = event.clone();
        Self { time, node, bearer, kind: Some(kind) }
    }

    fn event(self) -> Result<BearerEvent, String> {
        let Self { time, node, bearer, kind } = self;
        let kind = kind.ok_or("event: an empty cell")?;
        Ok(BearerEvent { time, node, bearer, kind })
    }
}

/// All events that a record can have.
const KINDS: [BearerEventKind; 6] = [
    BearerEventKind::Added,
    BearerEventKind::Changed,
    BearerEventKind::Removed,
    BearerEventKind::Refused,
    BearerEventKind::Preempted,
    BearerEventKind::Unknown,
];

impl Cell for BearerEventKind {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }

    fn take(cell: &str) -> Result<Self, String> {
        word_of(cell, "event", &KINDS, |kind: Self| kind.to_string())
    }
}

const EVENT_COLUMNS: &[CsvColumn<Event>] = &[
    column!("time_ns", "ns", time, "when it happened"),
    name_column!("terminal", node, "terminal", "name of the terminal"),
    column!("bearer", "", bearer, "name of the bearer"),
    column!(
        "event",
        "",
        kind,
        "`added`, `changed` (its guarantee), `removed`, `refused` (no room for its \
            guarantee) or `pre-empted` (a more important bearer took its place). `unknown`: there \
            is no such bearer, or there is one already"
    ),
];
