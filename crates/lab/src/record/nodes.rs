//! `nodes.csv`: a row a node of the Wi-Fi cell and 500 ms, integers only; an empty cell was not measured.

use std::io::Write;

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_sim::trace::{NODE_INTERVAL, NodeRow, Trace};

use super::series::{Cells, parse_rows, time};

const HEADER: &str = "time_ms,node,offered_bytes,delivered_bytes,delivered_packets,dropped_packets,\
                      lost_packets,attempts,failures,airtime_us,queue_bytes,excess_bps,capacity_bps";
const COLUMNS: usize = 13;

pub(super) fn emit(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::with_capacity(trace.node_rows.len() * 64 + HEADER.len());
    let mut put = |row: std::fmt::Arguments<'_>| {
        out.write_fmt(row).expect("writing to memory does not fail");
    };
    put(format_args!("{HEADER}\n"));
    for row in &trace.node_rows {
        put(format_args!("{},{}", row.time.as_millis(), trace.nodes[row.node]));
        let cells = [
            row.offered.as_bytes(),
            row.delivered.as_bytes(),
            row.delivered_packets,
            row.dropped_packets,
            row.lost_packets,
            row.attempts,
            row.failures,
            row.airtime.as_micros().unsigned_abs(),
            row.queue.as_bytes(),
        ];
        cells.iter().for_each(|cell| put(format_args!(",{cell}")));
        for rate in [row.excess, row.capacity] {
            match rate {
                Some(rate) => put(format_args!(",{}", rate.as_bps())),
                None => put(format_args!(",")),
            }
        }
        put(format_args!("\n"));
    }
    out
}

pub(super) fn parse(text: &str, nodes: &[String]) -> Result<Vec<NodeRow>, String> {
    parse_rows(text, HEADER, |line| parse_row(line, nodes))
}

fn parse_row(line: &str, nodes: &[String]) -> Result<NodeRow, String> {
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
