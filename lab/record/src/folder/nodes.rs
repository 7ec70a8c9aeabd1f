//! `nodes.csv`: one row for each node of the Wi-Fi cell and 500 ms. Cells are whole numbers. An
//! empty cell means that the value was not measured.

use weir_net::wifi::{NODE_INTERVAL, NodeRow};
use weir_scenario::Scenario;

use super::table::{ColumnGroup, CsvColumn, Log, column, interval_end, node_column, put_number};

/// The file.
pub(crate) const FILE: Log<NodeRow, NodeRow> = Log {
    file: "nodes.csv",
    groups: GROUPS,
    items: |part| &part.access.wifi.rows,
    read: |trace| &mut trace.access.wifi.rows,
    applies: Scenario::has_wifi,
    row: NodeRow::clone,
    item: Ok,
};

pub(crate) const GROUPS: &[ColumnGroup<NodeRow>] =
    &[ColumnGroup { columns: COLUMNS, is_in: |_| true }];

const COLUMNS: &[CsvColumn<NodeRow>] = &[
    CsvColumn {
        name: "time_ms",
        unit: "ms",
        meaning: "end of the interval, a multiple of 500",
        in_call: "",
        put: |row, _, out| put_number(out, row.time.as_millis().unsigned_abs()),
        take: |row, cell, _| {
            row.time = interval_end(cell, NODE_INTERVAL)?;
            Ok(())
        },
    },
    node_column!("node", node, "node", "name of the node; the access point is `ap`"),
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
