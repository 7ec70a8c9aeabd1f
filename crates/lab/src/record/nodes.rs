//! `nodes.csv`: a row a node of the Wi-Fi cell and 500 ms, integers only; an empty cell was not measured.

use std::io::{self, Write};

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_net::wifi::{NODE_INTERVAL, NodeRow};

use super::series::{Cells, micros, put_cells, put_number, time};

pub(super) const HEADER: &str = "time_ms,node,offered_bytes,delivered_bytes,delivered_packets,dropped_packets,\
                      lost_packets,attempts,failures,airtime_us,queue_bytes,excess_bps,capacity_bps";
const COLUMNS: usize = 13;

/// Writes the next rows.
pub(super) fn write(out: &mut impl Write, nodes: &[String], rows: &[NodeRow]) -> io::Result<()> {
    let mut lines = Vec::new();
    for row in rows {
        put_number(&mut lines, row.time.as_millis().unsigned_abs());
        lines.push(b',');
        lines.extend_from_slice(nodes[row.node].as_bytes());
        let cells = [
            Some(row.offered.as_bytes()),
            Some(row.delivered.as_bytes()),
            Some(row.delivered_packets),
            Some(row.dropped_packets),
            Some(row.lost_packets),
            Some(row.attempts),
            Some(row.failures),
            Some(micros(row.airtime)),
            Some(row.queue.as_bytes()),
            row.excess.map(Bitrate::as_bps),
            row.capacity.map(Bitrate::as_bps),
        ];
        put_cells(&mut lines, &cells);
        lines.push(b'\n');
    }
    out.write_all(&lines)
}

pub(super) fn parse_row(line: &str, nodes: &[String]) -> Result<NodeRow, String> {
    let cells = Cells::of(line, COLUMNS)?;
    let time_ms = cells.number(0)?;
    if !time_ms.is_multiple_of(NODE_INTERVAL.as_millis().unsigned_abs()) {
        return Err(format!("{time_ms} ms is not a multiple of {}", NODE_INTERVAL.as_millis()));
    }
    let rate = |column| Ok::<_, String>(cells.optional(column)?.map(Bitrate::from_bps));
    Ok(NodeRow {
        time: Timestamp::ZERO + time(time_ms.saturating_mul(1000))?,
        node: cells.position(1, "node", nodes)?,
        offered: cells.size(2)?,
        delivered: cells.size(3)?,
        delivered_packets: cells.amount(4)?,
        dropped_packets: cells.amount(5)?,
        lost_packets: cells.amount(6)?,
        attempts: cells.amount(7)?,
        failures: cells.amount(8)?,
        airtime: time(cells.number(9)?)?,
        queue: DataSize::from_bytes(cells.number(10)?),
        excess: rate(11)?,
        capacity: rate(12)?,
    })
}
