//! `nodes.csv`: one row for each node of the Wi-Fi cell and 500 ms. Cells are whole numbers. An
//! empty cell means that the value was not measured.

use weir_net::wifi::{NODE_INTERVAL, NodeRow};
use weir_scenario::Scenario;
use weir_sim::trace::Trace;

use super::table::{ColumnGroup, CsvColumn, Log, always, column, name_column, time_column};

/// The file.
pub(crate) const FILE: Log<NodeRow, NodeRow> = Log {
    file: "nodes.csv",
    groups: GROUPS,
    items: rows,
    read: rows_mut,
    applies: Scenario::has_wifi,
    row: NodeRow::clone,
    item: Ok,
};

fn rows(part: &Trace) -> &[NodeRow] {
    &part.access.wifi.rows
}

fn rows_mut(trace: &mut Trace) -> &mut Vec<NodeRow> {
    &mut trace.access.wifi.rows
}

pub(crate) const GROUPS: &[ColumnGroup<NodeRow>] =
    &[ColumnGroup { columns: COLUMNS, is_in: always }];

const COLUMNS: &[CsvColumn<NodeRow>] = &[
    time_column!(NODE_INTERVAL, "end of the interval, a multiple of 500"),
    name_column!("node", node, "node", "name of the node; the access point is `ap`"),
    column!("offered_bytes", "byte", offered, "IP bytes enqueued at the node"),
    column!("delivered_bytes", "byte", delivered, "IP bytes that the node's receivers delivered"),
    column!(
        "delivered_packets",
        "packets",
        delivered_packets,
        "packets that its receivers delivered"
    ),
    column!("dropped_packets", "packets", dropped_packets, "packets that its queue dropped"),
    column!("lost_packets", "packets", lost_packets, "packets dropped after their last attempt"),
    column!("attempts", "", attempts, "transmissions of packets"),
    column!("failures", "", failures, "transmissions that were not acknowledged"),
    column!(
        "airtime_us",
        "µs",
        airtime,
        "time on the air, with the node's data frames and its answers to others"
    ),
    column!("queue_bytes", "byte", queue, "bytes in the node's queues at the end of the interval"),
    column!(
        "excess_bps",
        "bit/s",
        excess,
        "excess delivery rate that the node measures in best effort over a second; empty if it \
         has not sent"
    ),
    column!(
        "capacity_bps",
        "bit/s",
        capacity,
        "capacity that the node measures in best effort over a second; empty if it has not sent"
    ),
];
