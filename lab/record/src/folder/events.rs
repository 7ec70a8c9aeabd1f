//! `events.jsonl`: one line for each rate change, with its reason, the controller's state and its
//! signals.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir::units::{Bitrate, Timestamp};
use weir_sim::trace::RateChange;

/// Limit of the number of signals, more than any controller has. A damaged record must not fill the
/// memory.
const SIGNALS_MAX: usize = 64;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    time_us: i64,
    flow: String,
    from_bps: u64,
    to_bps: u64,
    reason: String,
    state: String,
    signals: Map<String, Value>,
}

/// Writes the next changes.
pub(super) fn write(
    out: &mut impl Write,
    flows: &[String],
    changes: &[RateChange],
) -> io::Result<()> {
    for event in changes {
        let line = Line {
            time_us: event.time.as_micros(),
            flow: flows[event.flow].clone(),
            from_bps: event.from.as_bps(),
            to_bps: event.to.as_bps(),
            reason: event.reason.to_string(),
            state: event.state.to_string(),
            signals: event
                .signals
                .iter()
                .map(|(name, value)| (name.to_string(), Value::from(*value)))
                .collect(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Parses a line.
pub(super) fn parse_line(line: &str, flows: &[String]) -> Result<RateChange, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    rate_change(line, flows)
}

fn rate_change(line: Line, flows: &[String]) -> Result<RateChange, String> {
    if line.signals.len() > SIGNALS_MAX {
        return Err(format!("more than {SIGNALS_MAX} signals"));
    }
    let mut signals = Vec::new();
    for (name, value) in line.signals {
        let value = value.as_f64().ok_or_else(|| format!("signal {name} is not a number"))?;
        signals.push((name.into(), value));
    }
    let flow = flows
        .iter()
        .position(|flow| *flow == line.flow)
        .ok_or_else(|| format!("no flow '{}'", line.flow))?;
    let (from, to) = (Bitrate::from_bps(line.from_bps), Bitrate::from_bps(line.to_bps));
    Ok(RateChange::new(Timestamp::from_micros(line.time_us), flow, from, to)
        .with_reason(line.reason.into())
        .with_state(line.state.into())
        .with_signals(signals))
}
