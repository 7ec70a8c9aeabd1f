//! Logs of downloads in Ghent's 4G network (van der Hooft et al., 2016), and of Norway's 3G network
//! (Riiser et al., 2013).
//!
//! A line has six numbers: the time of day, milliseconds since the start, latitude, longitude, the
//! bytes received since the line before, and the milliseconds since the line before.

use super::numbers::number;
use super::series::Samples;
use super::unit::Unit;
use super::{Options, Result, TraceError, clock, lines, quoted};

/// Bit/s of one byte in a millisecond.
const BYTE_PER_MS: Unit = Unit::Rate(8_000.0);

pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    BYTE_PER_MS.check(options.want)?;
    let mut samples = Samples::strict();
    let (mut end, mut before) = (0, 0.0);
    for (line, content) in lines(text) {
        let wrong = |what: &str| TraceError::at(line, &format!("{what}, not {}", quoted(content)));
        let numbers: Option<Vec<f64>> = content.split_whitespace().take(7).map(number).collect();
        let Some(&[_, elapsed, _, _, bytes, lasts]) = numbers.as_deref() else {
            return Err(wrong("expected six numbers"));
        };
        if elapsed < before {
            return Err(wrong("expected a time no earlier than that of the line before"));
        }
        before = elapsed;
        let Some(lasts_nanos) = clock::nanos(lasts / 1e3) else {
            return Err(wrong("expected milliseconds since the line before at the end"));
        };
        // The first line of a log may have no line before, and so no time.
        if lasts_nanos == 0 {
            continue;
        }
        samples.push(line, end, BYTE_PER_MS.value(line, bytes / lasts)?)?;
        end += lasts_nanos;
    }
    samples.end_at(end);
    Ok(samples)
}
