//! Two columns without a header: seconds, and Mbit/s, dB or ms. A comment above them may name the
//! columns, and so their units: `# time_ms rate_kbps`.

use weir::units::TimeDelta;

use super::clock::Clock;
use super::numbers;
use super::series::Samples;
use super::table::{halved, is_duration, values_of};
use super::unit::{self, Unit};
use super::{Decimal, Options, Result, TraceError, Want, lines, quoted};

pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    let names = names(text, options);
    let [time_name, value_name] = match names.as_slice() {
        [time, value] => [time.as_str(), value.as_str()],
        _ => ["", ""],
    };
    if is_duration(time_name) {
        let message = "the first column says how long rows last; write duration = 1, column = 2, \
                       unit and time_unit";
        return Err(TraceError::of_file(message));
    }
    let usual = match options.want {
        Want::Up | Want::Down => Some(Unit::Rate(1e6)),
        Want::Decibels => Some(Unit::Decibels),
        Want::Delay | Want::Jitter => Some(Unit::Time(1e-3)),
        Want::Loss => None,
    };
    let Some(unit) = options.unit.or_else(|| Unit::of_name(value_name)).or(usual) else {
        let message = "the unit of the loss is not known; write unit = \"%\" or \"ratio\"";
        return Err(TraceError::of_file(message));
    };
    let unit = halved(unit.check(options.want)?, value_name, options);
    let chosen = options.time_unit.map(TimeDelta::as_secs_f64);
    let mut clock =
        Clock::new(chosen.or_else(|| unit::time_of_name(time_name)), chosen.is_some(), options);
    let mut samples = Samples::strict();
    samples.values = values_of(unit, options)?;
    samples.has_plain_times = clock.is_plain();
    for (number, line) in lines(text) {
        let fields = fields(line, options.decimal);
        let &[time, value] = fields.as_slice() else {
            let message = format!("expected a time and a value, not {}", quoted(line));
            return Err(TraceError::at(number, &(message + comma_hint(line, options))));
        };
        let Some(at) = clock.read(time) else {
            let is_late = numbers::number(time).is_some_and(|time| time > 0.0);
            let hint = if is_late { "; write time_unit, such as \"ms\"" } else { "" };
            let message = format!("expected a time in seconds, not {}{hint}", quoted(time));
            return Err(TraceError::at(number, &message));
        };
        samples.push(number, at, unit.read(number, value, options.decimal)?)?;
    }
    Ok(samples)
}

/// The names of columns in the comment above the first row.
pub(super) fn names(text: &str, options: &Options) -> Vec<String> {
    let mut comment = "";
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match super::text::comment(line) {
            Some(text) => comment = text,
            None => break,
        }
    }
    let separators: &[char] = match options.decimal {
        Some(Decimal::Comma) => &['\t', ';'],
        _ => &['\t', ';', ','],
    };
    let mut names: Vec<String> = Vec::new();
    match comment.contains(separators) {
        true => names.extend(comment.split(separators).map(|name| name.trim().to_owned())),
        false => {
            for word in comment.split_whitespace() {
                match names.last_mut() {
                    // `time [ms]` is one name.
                    Some(name) if word.starts_with(['(', '[']) => {
                        *name += " ";
                        *name += word;
                    }
                    _ => names.push(word.into()),
                }
            }
        }
    }
    names
}

/// What to write if the numbers of a line seem to have decimal commas.
pub(super) fn comma_hint(line: &str, options: &Options) -> &'static str {
    let is_tried = options.decimal.is_some() || !line.contains([';', '\t', ' ']);
    let mut fields = line.split([';', '\t', ' ']);
    match fields.find(|field| !numbers::hint(field, None).is_empty()) {
        Some(field) if !is_tried => numbers::hint(field, None),
        _ => "",
    }
}

/// The fields of a line, by white space or separators. Commas that are decimal separate nothing.
pub(super) fn fields(line: &str, decimal: Option<Decimal>) -> Vec<&str> {
    let is_comma = decimal == Some(Decimal::Comma);
    let fields = line.split(|c: char| c.is_whitespace() || c == ';' || (c == ',' && !is_comma));
    fields.filter(|field| !field.is_empty()).collect()
}
