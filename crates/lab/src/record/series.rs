//! `series.csv`: a row a flow and 50 ms, integers only; an empty cell was not measured.

use std::io::Write;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row, Trace};

const HEADER: &str = "time_ms,flow,capacity_bps,target_bps,pacing_bps,window_bytes,sent_bytes,\
                      received_bytes,sent_packets,lost_packets,rtt_us,queuing_delay_us,queue_bytes";
const COLUMNS: usize = 13;

pub(super) fn emit(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::with_capacity(trace.rows.len() * 80 + HEADER.len());
    let mut put = |row: std::fmt::Arguments<'_>| {
        out.write_fmt(row).expect("writing to memory does not fail");
    };
    put(format_args!("{HEADER}\n"));
    for row in &trace.rows {
        put(format_args!("{},{}", row.time.as_millis(), trace.flows[row.flow]));
        let optional = [
            row.capacity.map(|rate| rate.as_bps() as i64),
            row.target.map(|rate| rate.as_bps() as i64),
            row.pacing_rate.map(|rate| rate.as_bps() as i64),
            row.congestion_window.map(|size| size.as_bytes() as i64),
            Some(row.sent.as_bytes() as i64),
            Some(row.received.as_bytes() as i64),
            Some(row.sent_packets as i64),
            Some(row.lost_packets as i64),
            row.rtt.map(TimeDelta::as_micros),
            row.queuing_delay.map(TimeDelta::as_micros),
            Some(row.queue.as_bytes() as i64),
        ];
        for cell in optional {
            match cell {
                Some(value) => put(format_args!(",{value}")),
                None => put(format_args!(",")),
            }
        }
        put(format_args!("\n"));
    }
    out
}

pub(super) fn parse(text: &str, flows: &[String]) -> Result<Vec<Row>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(format!("the first line must be {HEADER}"));
    }
    let mut rows = Vec::new();
    for (index, line) in lines.enumerate() {
        let row = parse_row(line, flows).map_err(|what| format!("line {}: {what}", index + 2))?;
        if rows.last().is_some_and(|last: &Row| last.time > row.time) {
            return Err(format!("line {}: an earlier time than the line before", index + 2));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn parse_row(line: &str, flows: &[String]) -> Result<Row, String> {
    let cells: Vec<&str> = line.split(',').collect();
    if cells.len() != COLUMNS {
        return Err(format!("{} columns, not {COLUMNS}", cells.len()));
    }
    let optional = |column: usize| match cells[column] {
        "" => Ok(None),
        cell => cell.parse::<u64>().map(Some).map_err(|_| format!("'{cell}' is not a number")),
    };
    let number = |column: usize| optional(column)?.ok_or(format!("column {column} is empty"));
    let time_ms = number(0)?;
    if !time_ms.is_multiple_of(ROW_INTERVAL.as_millis() as u64) {
        return Err(format!("{time_ms} ms is not a multiple of {}", ROW_INTERVAL.as_millis()));
    }
    let signed = |value: u64| i64::try_from(value).map_err(|_| format!("{value} is too large"));
    let micros = |column: usize| -> Result<Option<TimeDelta>, String> {
        optional(column)?.map(|us| Ok(TimeDelta::from_micros(signed(us)?))).transpose()
    };
    Ok(Row {
        time: Timestamp::from_millis(signed(time_ms)?),
        flow: flows
            .iter()
            .position(|flow| flow == cells[1])
            .ok_or_else(|| format!("no flow '{}'", cells[1]))?,
        capacity: optional(2)?.map(Bitrate::from_bps),
        target: optional(3)?.map(Bitrate::from_bps),
        pacing_rate: optional(4)?.map(Bitrate::from_bps),
        congestion_window: optional(5)?.map(DataSize::from_bytes),
        sent: DataSize::from_bytes(number(6)?),
        received: DataSize::from_bytes(number(7)?),
        sent_packets: number(8)?,
        lost_packets: number(9)?,
        rtt: micros(10)?,
        queuing_delay: micros(11)?,
        queue: DataSize::from_bytes(number(12)?),
    })
}
