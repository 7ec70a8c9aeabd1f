//! Two columns without a header: seconds, and Mbit/s or dB.

use super::series::Samples;
use super::unit::Unit;
use super::{Options, Result, TraceError, Want, clock, lines, quoted};

pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    let default = if options.want == Want::Decibels { Unit::Decibels } else { Unit::Rate(1e6) };
    let unit = options.unit.unwrap_or(default).check(options.want)?;
    let mut samples = Samples::strict();
    for (number, line) in lines(text) {
        let mut fields = fields(line);
        let (Some(time), Some(value), None) = (fields.next(), fields.next(), fields.next()) else {
            let message = format!("expected a time and a value, not {}", quoted(line));
            return Err(TraceError::at(number, &message));
        };
        let Some(at) = clock::read(time, options.time_unit) else {
            let message = format!("expected a time in seconds, not {}", quoted(time));
            return Err(TraceError::at(number, &message));
        };
        samples.push(number, at, unit.read(number, value)?)?;
    }
    Ok(samples)
}

/// The fields of a line, by white space or separators.
pub(super) fn fields(line: &str) -> impl Iterator<Item = &str> {
    let separated = line.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    separated.filter(|field| !field.is_empty())
}
