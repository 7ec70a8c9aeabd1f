//! Writes a trace in another format.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use weir::units::{TimeDelta, Timestamp};
use weir_scenario::trace::{Trace, TraceEnd};

use super::file::TraceFile;
use crate::args::TraceTo;

/// Bits of an opportunity.
const OPPORTUNITY_BITS: f64 = 12_000.0;
/// Rows of opportunities in a table.
const ROW: TimeDelta = TimeDelta::from_millis(100);

/// The file in this format.
pub fn to(file: &TraceFile, to: TraceTo) -> anyhow::Result<String> {
    match to {
        TraceTo::Mahimahi => mahimahi(&file.reading.trace),
        TraceTo::Csv => Ok(csv(&file.reading.trace)),
    }
}

/// An opportunity as soon as there are bits for it, so that no part of the trace has more or less
/// than one of them too many.
fn mahimahi(trace: &Trace) -> anyhow::Result<String> {
    let mut lines = String::new();
    if let Trace::Opportunities(of) = trace {
        for ms in of.opportunities_ms() {
            let _ = writeln!(lines, "{ms}");
        }
        return Ok(lines);
    }
    if !matches!(trace, Trace::Rates(_)) {
        bail!("only rates can be written as opportunities");
    }
    let capacity = trace.clone().capacity(TraceEnd::Repeat)?;
    let length = capacity.recorded_length().unwrap_or_default();
    let (mut bits, mut sent) = (0.0, 0.0);
    for ms in 1..=length.as_millis() {
        let (from, to) = (Timestamp::from_millis(ms - 1), Timestamp::from_millis(ms));
        bits += capacity.bits(from, to).context("the rate is limited")?;
        while bits - sent >= OPPORTUNITY_BITS {
            sent += OPPORTUNITY_BITS;
            let _ = writeln!(lines, "{ms}");
        }
    }
    if lines.is_empty() {
        bail!("it carries less than one packet of 1500 bytes");
    }
    Ok(lines)
}

fn csv(trace: &Trace) -> String {
    let name = match trace {
        Trace::Opportunities(_) | Trace::Rates(_) => "rate_mbps",
        Trace::Decibels(_) => "value_db",
        Trace::Times(_) => "delay_ms",
        Trace::Shares(_) => "loss_ratio",
    };
    let mut rows: Vec<(Timestamp, f64)> = Vec::new();
    match trace {
        Trace::Opportunities(of) => {
            let capacity = weir_net::Capacity::Trace(of.clone());
            let length = capacity.recorded_length().unwrap_or_default();
            let mut from = Timestamp::ZERO;
            while from < Timestamp::ZERO + length {
                let to = from + ROW;
                let bits = capacity.bits(from, to).unwrap_or_default();
                rows.push((from, bits / ROW.as_secs_f64() / 1e6));
                from = to;
            }
        }
        Trace::Rates(series) => {
            rows.extend(series.steps().iter().map(|step| (step.0, step.1.as_mbps_f64())));
        }
        Trace::Times(series) => {
            rows.extend(series.steps().iter().map(|step| (step.0, step.1.as_millis_f64())));
        }
        Trace::Decibels(series) | Trace::Shares(series) => {
            rows.extend(series.steps().iter().map(|step| (step.0, step.1)));
        }
    }
    let mut text = format!("time_s,{name}\n");
    for (at, value) in rows {
        let _ = writeln!(text, "{},{value}", at.as_secs_f64());
    }
    text
}
