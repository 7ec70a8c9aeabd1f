//! Logs of words: each value stands behind the same text, and the times begin lines or stand behind
//! a text of their own.
//!
//! ```text
//! len=46 ip=192.0.2.1 ttl=57 seq=3 rtt=12.3 ms                      column = "rtt="
//! Interim result: 94.2 10^6bits/s over 0.2 seconds ending at 1715938200.2
//!                                     column = "result:", time = "ending at", unit = "Mbps"
//! [1715938200.1] cubic rto:204 delivery_rate 58.3Mbps busy:1ms       column = "delivery_rate"
//! ```

use weir::units::TimeDelta;

use super::clock::Clock;
use super::numbers;
use super::series::Samples;
use super::table::{halved, values_of};
use super::unit::{self, Unit};
use super::{Column, Decimal, Options, Result, TraceError, lines, quoted};

/// Numbers from here on are seconds since 1970; smaller ones at the start of a line count something
/// else.
const CALENDAR: f64 = 1e8;

pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    let Some(Column::Name(mark)) = &options.column else {
        let message = "write column, the text before each value, such as column = \"rtt=\"";
        return Err(TraceError::of_file(message));
    };
    let mut samples = Samples::of_log();
    let mut times = Times::new(options)?;
    let (mut next, mut unit) = (0, None);
    for (line, content) in lines(text) {
        times.pass(line, content)?;
        let Some(value) = behind(content, mark) else { continue };
        let (number, word) = value_of(line, value, options.decimal)?;
        let first = match unit {
            Some(first) => first,
            None => *unit.insert(unit_of(line, mark, word, options)?),
        };
        // `58.3Mbps` may follow `850Kbps`.
        let of_value = first.of_word(word).unwrap_or(first);
        let at = match options.interval {
            Some(interval) => {
                let at = next;
                next += interval.as_nanos();
                at
            }
            None => times.now.ok_or_else(|| no_time(line))?,
        };
        samples.push(line, at, of_value.value(line, number)?)?;
    }
    match unit {
        None => Err(TraceError::of_file(&format!("no line has {}", quoted(mark)))),
        Some(unit) => {
            samples.values = values_of(unit, options)?;
            if options.interval.is_some() {
                samples.end_at(next);
            } else {
                samples.turn_if_newest_first();
            }
            Ok(samples)
        }
    }
}

/// What follows a text, without the signs and spaces between a name and its value.
fn behind<'t>(line: &'t str, mark: &str) -> Option<&'t str> {
    let (_, rest) = line.split_once(mark)?;
    Some(rest.trim_start_matches([' ', '\t', ':', '=', '"']))
}

/// The number that a text begins with, and the word behind it.
fn value_of(line: usize, text: &str, decimal: Option<Decimal>) -> Result<(f64, &str)> {
    let (first, after) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let shown = first.split(is_end_of_value).next().unwrap_or_default();
    // A comma before anything but a digit is the end of the value.
    let mut end = first.len();
    for (at, _) in first.match_indices(is_end_of_value) {
        if !first[at + 1..].starts_with(|c: char| c.is_ascii_digit()) {
            end = at;
            break;
        }
    }
    let Some((number, word)) = numbers::leading(&first[..end], decimal) else {
        let hint = numbers::hint(&first[..end], decimal);
        let shown = if hint.is_empty() { shown } else { &first[..end] };
        let message = format!("expected a number, not {}{hint}", quoted(shown));
        return Err(TraceError::at(line, &message));
    };
    let is_ended = end < first.len();
    let next = if is_ended { "" } else { after.split_whitespace().next().unwrap_or_default() };
    Ok((number, if word.is_empty() { next } else { word }))
}

/// What may end a value, unless a digit follows.
fn is_end_of_value(c: char) -> bool {
    c == ',' || c == ';'
}

/// The unit of the values: that of the key, of the word behind the first one, or of its name.
fn unit_of(line: usize, mark: &str, word: &str, options: &Options) -> Result<Unit> {
    let known = options.unit.or_else(|| Unit::of_name(word)).or_else(|| Unit::of_name(mark));
    let Some(unit) = known else {
        let message = format!("the unit behind {} is not known; write unit", quoted(mark));
        return Err(TraceError::at(line, &message));
    };
    let unit = unit.check(options.want);
    unit.map(|unit| halved(unit, mark, options))
        .map_err(|error| TraceError::at(line, &error.message))
}

/// The time of the latest line that has one.
struct Times<'o> {
    mark: Option<&'o str>,
    clock: Clock,
    now: Option<i64>,
}

impl<'o> Times<'o> {
    fn new(options: &'o Options) -> Result<Self> {
        let mark = match &options.time {
            None => None,
            Some(Column::Name(mark)) => Some(mark.as_str()),
            Some(Column::Number(_)) => {
                return Err(TraceError::of_file("write as time the text before each time"));
            }
        };
        let chosen = options.time_unit.map(TimeDelta::as_secs_f64);
        let named = mark.and_then(unit::time_of_name);
        let clock = Clock::new(chosen.or(named), chosen.is_some(), options);
        Ok(Self { mark, clock, now: None })
    }

    /// Takes the time of a line, if it has one.
    fn pass(&mut self, line: usize, content: &str) -> Result<()> {
        let Some(mark) = self.mark else {
            if let Some(at) = self.at_start(content) {
                self.now = Some(at);
            }
            return Ok(());
        };
        let Some(rest) = behind(content, mark) else { return Ok(()) };
        match self.clock.leading(rest) {
            Some(at) => self.now = Some(at),
            None => {
                let message = format!("expected a time behind {}", quoted(mark));
                return Err(TraceError::at(line, &message));
            }
        }
        Ok(())
    }

    /// The time at the start of a line. A small number counts something else, unless it is a
    /// fraction in brackets.
    fn at_start(&mut self, content: &str) -> Option<i64> {
        let text = content.trim_start_matches(['[', '(', ' ']);
        let first = text.split([' ', '\t', ']', ')', ',', ';']).next()?;
        let is_fraction = text.len() < content.len() && first.contains('.');
        let is_small = numbers::number(first).is_some_and(|number| number < CALENDAR);
        if is_small && !is_fraction && self.clock.unit.is_none() {
            return None;
        }
        self.clock.leading(text)
    }
}

fn no_time(line: usize) -> TraceError {
    let message = "no line up to this one begins with a time; write time, the text before each \
                   time, or interval";
    TraceError::at(line, message)
}
