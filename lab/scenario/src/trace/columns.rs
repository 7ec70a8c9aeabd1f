//! Two columns without a header: seconds, and Mbit/s, dB or ms.

use weir::units::TimeDelta;

use super::clock::Clock;
use super::series::Samples;
use super::unit::Unit;
use super::{Options, Result, TraceError, Want, lines, quoted};

pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    let usual = match options.want {
        Want::Up | Want::Down => Some(Unit::Rate(1e6)),
        Want::Decibels => Some(Unit::Decibels),
        Want::Delay | Want::Jitter => Some(Unit::Time(1e-3)),
        Want::Loss => None,
    };
    let Some(unit) = options.unit.or(usual) else {
        let message = "the unit of the loss is not known; write unit = \"%\" or \"ratio\"";
        return Err(TraceError::of_file(message));
    };
    let unit = match unit.check(options.want)? {
        Unit::Time(seconds) if options.round_trip == Some(true) => Unit::Time(seconds / 2.0),
        unit => unit,
    };
    let chosen = options.time_unit.map(TimeDelta::as_secs_f64);
    let mut clock = Clock::new(chosen, chosen.is_some(), None);
    let mut samples = Samples::strict();
    for (number, line) in lines(text) {
        let mut fields = fields(line);
        let (Some(time), Some(value), None) = (fields.next(), fields.next(), fields.next()) else {
            let message = format!("expected a time and a value, not {}", quoted(line));
            return Err(TraceError::at(number, &message));
        };
        let Some(at) = clock.read(time) else {
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
