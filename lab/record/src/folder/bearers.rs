//! `bearers.csv`: one row for each bearer of the cellular cell, direction and 50 ms; and
//! `bearer-events.csv`: what became of bearers. Cells are whole numbers. An empty cell means that
//! the value was not measured.

use weir::units::Timestamp;
use weir_net::cellular::{BearerEvent, BearerEventKind, BearerRow};
use weir_net::path::{Direction, NOTE_INTERVAL};

use super::table::{
    ColumnGroup, CsvColumn, Log, column, interval_end, node_column, number, put_number,
};

/// The file of rows.
pub(crate) const FILE: Log<BearerRow, BearerRow> = Log {
    file: "bearers.csv",
    groups: GROUPS,
    items: |part| &part.access.cellular.rows,
    read: |trace| &mut trace.access.cellular.rows,
    applies: |scenario| scenario.access.as_ref().is_some_and(weir_scenario::Access::is_cellular),
    row: BearerRow::clone,
    item: Ok,
};

/// The file of events.
pub(crate) const EVENTS: Log<Event, BearerEvent> = Log {
    file: "bearer-events.csv",
    groups: EVENT_GROUPS,
    items: |part| &part.access.cellular.events,
    read: |trace| &mut trace.access.cellular.events,
    applies: |scenario| scenario.access.as_ref().is_some_and(weir_scenario::Access::is_cellular),
    row: Event::of,
    item: Event::event,
};

pub(crate) const GROUPS: &[ColumnGroup<BearerRow>] =
    &[ColumnGroup { columns: COLUMNS, is_in: |_| true }];
pub(crate) const EVENT_GROUPS: &[ColumnGroup<Event>] =
    &[ColumnGroup { columns: EVENT_COLUMNS, is_in: |_| true }];

/// Hundredths that a cell may have; more than any SINR, MCS or number of resource blocks.
const HUNDREDTHS_MAX: i64 = 1 << 36;

const COLUMNS: &[CsvColumn<BearerRow>] = &[
    CsvColumn {
        name: "time_ms",
        unit: "ms",
        meaning: "end of the interval, a multiple of 50",
        in_call: "",
        put: |row, _, out| put_number(out, row.time.as_millis().unsigned_abs()),
        take: |row, cell, _| {
            row.time = interval_end(cell, NOTE_INTERVAL)?;
            Ok(())
        },
    },
    node_column!("terminal", node, "terminal", "name of the terminal"),
    CsvColumn {
        name: "bearer",
        unit: "",
        meaning: "name of the bearer; the default bearer is `default`",
        in_call: "",
        put: |row, _, out| put_name(out, &row.bearer),
        take: |row, cell, _| {
            row.bearer = cell.into();
            Ok(())
        },
    },
    CsvColumn {
        name: "direction",
        unit: "",
        meaning: "`up` or `down`",
        in_call: "",
        put: |row, _, out| out.extend_from_slice(row.direction.word().as_bytes()),
        take: |row, cell, _| {
            row.direction = direction(cell)?;
            Ok(())
        },
    },
    CsvColumn {
        name: "sinr_db_x100",
        unit: "0.01 dB",
        meaning: "SINR over the whole carrier at the end of the interval, without fading; like \
            the next five columns it is of the terminal and equal for all its bearers",
        in_call: "",
        put: |row, _, out| put_hundredths(out, row.sinr_db),
        take: |row, cell, _| {
            row.sinr_db = hundredths(cell)?;
            Ok(())
        },
    },
    CsvColumn {
        name: "mcs_x100",
        unit: "0.01",
        meaning: "mean MCS of the blocks sent for the first time; empty if there were none",
        in_call: "",
        put: |row, _, out| {
            if let Some(mcs) = row.mcs {
                put_hundredths(out, mcs);
            }
        },
        take: |row, cell, _| {
            row.mcs = (!cell.is_empty()).then(|| hundredths(cell)).transpose()?;
            Ok(())
        },
    },
    column!("blocks", "", blocks, "blocks sent for the first time"),
    column!("failures", "", failures, "how many of these blocks could not be decoded at first"),
    column!("retransmissions", "", retransmissions, "further transmissions of blocks by HARQ"),
    column!("abandoned", "", abandoned, "blocks given up after their last transmission"),
    CsvColumn {
        name: "prbs_x100",
        unit: "0.01 PRB",
        meaning: "resource blocks times TTIs that the bearer had, retransmissions included; \
            bearers share a block by their bytes",
        in_call: "",
        put: |row, _, out| put_hundredths(out, row.prbs),
        take: |row, cell, _| {
            row.prbs = hundredths(cell)?;
            Ok(())
        },
    },
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

const EVENT_COLUMNS: &[CsvColumn<Event>] = &[
    column!("time_ns", "ns", time, "when it happened"),
    node_column!("terminal", node, "terminal", "name of the terminal"),
    CsvColumn {
        name: "bearer",
        unit: "",
        meaning: "name of the bearer",
        in_call: "",
        put: |row, _, out| put_name(out, &row.bearer),
        take: |row, cell, _| {
            row.bearer = cell.into();
            Ok(())
        },
    },
    CsvColumn {
        name: "event",
        unit: "",
        meaning: "`added`, `changed` (its guarantee), `removed`, `refused` (no room for its \
            guarantee) or `pre-empted` (a more important bearer took its place). `unknown`: there \
            is no such bearer, or there is one already",
        in_call: "",
        put: |row, _, out| {
            out.extend_from_slice(
                row.kind.map(|kind| kind.to_string()).unwrap_or_default().as_bytes(),
            );
        },
        take: |row, cell, _| {
            row.kind = KINDS.into_iter().find(|kind| kind.to_string() == cell);
            if row.kind.is_some() { Ok(()) } else { Err(format!("no event '{cell}'")) }
        },
    },
];

/// The direction that a cell names.
pub(super) fn direction(cell: &str) -> Result<Direction, String> {
    let direction = Direction::BOTH.iter().copied().find(|direction| direction.word() == cell);
    direction.ok_or_else(|| format!("no direction '{cell}'"))
}

/// Writes a name. A bearer that the emulator's caller has added may have any name.
fn put_name(out: &mut Vec<u8>, name: &str) {
    let plain = |c: char| if c == ',' || c.is_control() { '_' } else { c };
    out.extend(name.chars().map(plain).collect::<String>().bytes());
}

fn put_hundredths(out: &mut Vec<u8>, value: f64) {
    let max = HUNDREDTHS_MAX as f64;
    let hundredths = (value * 100.0).round().clamp(-max, max) as i64;
    if hundredths < 0 {
        out.push(b'-');
    }
    put_number(out, hundredths.unsigned_abs());
}

fn hundredths(cell: &str) -> Result<f64, String> {
    let (sign, digits) = cell.strip_prefix('-').map_or((1, cell), |digits| (-1, digits));
    let number = i64::try_from(number(digits)?).unwrap_or(i64::MAX);
    if number > HUNDREDTHS_MAX {
        return Err(format!("{number} is too large"));
    }
    Ok((sign * number) as f64 / 100.0)
}
