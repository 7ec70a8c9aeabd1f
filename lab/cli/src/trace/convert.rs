//! Writes a trace in another format.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use weir::units::{TimeDelta, Timestamp};
use weir_scenario::trace::{Trace, TraceEnd};

use super::file::{TraceFile, bits_until};
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
    let (mut bits, mut sent, mut last) = (0.0, 0.0, 0);
    for ms in 1..=length.as_millis() {
        let (from, to) = (Timestamp::from_millis(ms - 1), Timestamp::from_millis(ms));
        bits += capacity.bits(from, to).context("the rate is limited")?;
        while bits - sent >= OPPORTUNITY_BITS {
            sent += OPPORTUNITY_BITS;
            last = ms;
            let _ = writeln!(lines, "{ms}");
        }
    }
    // A trace of mahimahi ends with an opportunity. One more keeps its length.
    let end = length.as_millis();
    if last > 0 && last < end {
        let _ = writeln!(lines, "{end}");
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
    let length;
    match trace {
        Trace::Opportunities(of) => {
            let capacity = weir_net::Capacity::Trace(of.clone());
            let end = Timestamp::ZERO + capacity.recorded_length().unwrap_or_default();
            length = end - Timestamp::ZERO;
            let mut from = Timestamp::ZERO;
            while from < end {
                let to = (from + ROW).min(end);
                let bits = bits_until(&capacity, from, to);
                rows.push((from, bits / (to - from).as_secs_f64() / 1e6));
                from = to;
            }
        }
        Trace::Rates(series) => {
            length = series.length();
            rows.extend(series.steps().iter().map(|step| (step.0, step.1.as_mbps_f64())));
        }
        Trace::Times(series) => {
            length = series.length();
            rows.extend(series.steps().iter().map(|step| (step.0, step.1.as_millis_f64())));
        }
        Trace::Decibels(series) | Trace::Shares(series) => {
            length = series.length();
            rows.extend(series.steps().iter().map(|step| (step.0, step.1)));
        }
    }
    keep_length(&mut rows, length);
    let mut text = format!("time_s,{name}\n");
    for (at, value) in rows {
        let _ = writeln!(text, "{},{value}", at.as_secs_f64());
    }
    text
}

/// The last row of a table lasts as long as the one before it. Where the last value lasts longer or
/// less long, a second row in the middle of its time says so.
fn keep_length(rows: &mut Vec<(Timestamp, f64)>, length: TimeDelta) {
    let Some(&(last, value)) = rows.last() else { return };
    let lasts = Timestamp::ZERO + length - last;
    let before = rows.len().checked_sub(2).map(|before| last - rows[before].0);
    if before.unwrap_or(TimeDelta::from_secs(1)) != lasts {
        rows.push((last + lasts / 2, value));
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::trace::{Options, Want, read};

    use super::*;

    fn trace(text: &str) -> Trace {
        read(text, &Options::new(Want::Up)).unwrap()
    }

    /// The bits of a trace over one round, and its length in ms.
    fn carried(trace: Trace) -> (f64, i64) {
        let capacity = trace.capacity(TraceEnd::Repeat).unwrap();
        let length = capacity.recorded_length().unwrap();
        let bits = bits_until(&capacity, Timestamp::ZERO, Timestamp::ZERO + length);
        (bits.round(), length.as_millis())
    }

    #[test]
    fn a_table_keeps_length_and_bits_whatever_the_last_row() {
        for text in ["0 8\n1 2\n", "0 8\n5 2\n6 1\n", "7 3\n", "10\n20\n250\n"] {
            let original = trace(text);
            let again = trace(&csv(&original));
            assert_eq!(carried(again), carried(original), "{text}");
        }
        let part = Options { to: Some(TimeDelta::from_millis(5_300)), ..Options::new(Want::Up) };
        let original = read("0 8\n5 2\n6 1\n", &part).unwrap();
        assert_eq!(carried(trace(&csv(&original))), carried(original));
    }

    #[test]
    fn opportunities_keep_length_and_bits_but_for_one_of_them() {
        for text in ["0 8\n1 2\n", "0 12\n1 0\n9 0\n", "0 0.01\n5 0.2\n"] {
            let original = trace(text);
            let (bits, length) = carried(original.clone());
            let (of_lines, of_trace) = carried(trace(&mahimahi(&original).unwrap()));
            assert_eq!(of_trace, length, "{text}");
            assert!((of_lines - bits).abs() <= OPPORTUNITY_BITS, "{text}: {of_lines} {bits}");
        }
    }
}
