//! Tables: which column has the time, which the value, and which rows count.

use weir::units::TimeDelta;

use super::clock::{self, Clock};
use super::known::{Known, KnownTime};
use super::series::{Samples, Values};
use super::unit::{self, Unit, number};
use super::{Cell, Column, Content, Options, Result, TraceError, Want, quoted};
use crate::error::nearest;

/// Most columns of a table.
pub(super) const MAX_COLUMNS: usize = 10_000;
/// What stands for a value that was not measured, in any case. Android writes the largest 32-bit
/// number.
const MISSING: [&str; 10] =
    ["", "-", "--", "nan", "na", "n/a", "#n/a", "null", "none", "2147483647"];
/// Words in the name of a column that tells one run from another.
const RUNS: [&str; 8] = ["run", "runs", "test", "trip", "experiment", "exp", "session", "id"];
/// Words in the name of a column of how long each row lasts.
const DURATIONS: [&str; 10] = [
    "duration",
    "durations",
    "dur",
    "lasts",
    "delta",
    "dt",
    "interval",
    "intervals",
    "period",
    "length",
];
/// Words with which a name is of one end of such a time, or of its number.
const ENDS: [&str; 10] =
    ["start", "begin", "begins", "from", "end", "ends", "to", "id", "number", "index"];
/// Words in the name of the first of two columns that make it that of the times.
const TIMES: [&str; 11] = [
    "time",
    "timestamp",
    "datetimestamp",
    "ts",
    "t",
    "date",
    "datetime",
    "elapsed",
    "epoch",
    "uptime",
    "duration",
];
/// Words of a round trip.
const ROUND_TRIPS: [&str; 4] = ["rtt", "ping", "roundtrip", "rtd"];

/// How the rows tell the time.
#[derive(Clone, Debug)]
enum Time {
    /// A column of the times at which they begin.
    At(usize, Clock),
    /// A column of how long they last, in a unit in seconds.
    Lasts(usize, f64),
    /// Two columns of seconds: they last from one to the other.
    Between(usize, usize),
    /// All last as long, in nanoseconds.
    Every(i64),
}

/// A table that is being read, row by row.
#[derive(Debug)]
pub(super) struct Table<'o> {
    content: Content,
    time: Time,
    value: usize,
    unit: Unit,
    rows: Vec<(usize, &'o Cell)>,
    without: Option<(usize, &'static str)>,
    only: Option<(usize, &'static str)>,
    samples: Samples,
    /// When the next row begins, for rows that have no time of their own.
    next: i64,
    has_row: bool,
    /// The column that tells runs apart.
    run: Option<usize>,
}

impl<'o> Table<'o> {
    /// A table with this header, whose columns may be called by their numbers too.
    pub(super) fn new(header: &[String], line: usize, options: &'o Options) -> Result<Self> {
        if header.len() > MAX_COLUMNS {
            return Err(TraceError::at(line, &format!("more than {MAX_COLUMNS} columns")));
        }
        Self::of_header(header, options).map_err(|error| TraceError::at(line, &error.message))
    }

    fn of_header(header: &[String], options: &'o Options) -> Result<Self> {
        let known = Known::of(header);
        let (value, unit) = value(header, known, options)?;
        let unit = unit.check(options.want)?;
        let (time, times) = time(header, known, options)?;
        let mut rows = Vec::new();
        for (name, cell) in &options.rows {
            rows.push((find(header, &Column::Name(name.clone()))?, cell));
        }
        let without = known.and_then(|known| column_and_text(header, known.without?));
        let only = known.and_then(|known| column_and_text(header, known.only?));
        let mut samples = Samples::of_log();
        samples.usual = known.and_then(|known| known.usual);
        samples.values = values_of(unit, options)?;
        let content = Content {
            set: known.map(|known| known.name),
            columns: header.to_vec(),
            value: header.get(value).cloned(),
            times,
        };
        let run = header.iter().position(|name| has_word(name, &RUNS));
        let (next, has_row) = (0, false);
        Ok(Self { content, time, value, unit, rows, without, only, samples, next, has_row, run })
    }

    /// Reads a row of cells in the order of the header.
    pub(super) fn row<T: AsRef<str>>(&mut self, line: usize, cells: &[T]) -> Result<()> {
        // Programs that write tables for office may leave lines of separators at the end.
        let has_times = !matches!(self.time, Time::Every(_));
        if has_times && cells.iter().all(|cell| cell.as_ref().trim().is_empty()) {
            return Ok(());
        }
        for (index, wanted) in &self.rows {
            let text = cell_at(cells, *index);
            let counts = match wanted {
                Cell::Text(wanted) => text == wanted.trim(),
                Cell::Number(wanted) => number(text) == Some(*wanted),
            };
            if !counts {
                return Ok(());
            }
        }
        if self.without.is_some_and(|(index, text)| cell_at(cells, index) == text)
            || self.only.is_some_and(|(index, text)| cell_at(cells, index) != text)
        {
            return Ok(());
        }
        if !self.has_row && self.rows.is_empty() {
            self.samples.hint = self.hint(cells);
        }
        self.has_row = true;
        let at = self.time_of(line, cells)?;
        let text = cell_at(cells, self.value);
        let is_missing = MISSING.iter().any(|missing| text.eq_ignore_ascii_case(missing));
        let value = if is_missing { None } else { Some(self.unit.read(line, text)?) };
        self.samples.push_row(line, at, value)
    }

    fn time_of<T: AsRef<str>>(&mut self, line: usize, cells: &[T]) -> Result<i64> {
        let lasts = match &mut self.time {
            Time::At(index, clock) => {
                let text = cell_at(cells, *index);
                return clock.read(text).ok_or_else(|| no_time(line, text, clock));
            }
            Time::Lasts(index, unit) => {
                let text = cell_at(cells, *index);
                let lasts = number(text).and_then(|lasts| clock::nanos(lasts * *unit));
                lasts.filter(|lasts| *lasts > 0).ok_or_else(|| {
                    let expected = if *unit == 1e-3 { "milliseconds" } else { "a time" };
                    not_what(line, &format!("{expected} above 0"), text)
                })?
            }
            Time::Between(from, to) => {
                let texts = [*from, *to].map(|index| cell_at(cells, index));
                let [Some(from), Some(to)] = texts.map(|text| number(text).and_then(clock::nanos))
                else {
                    return Err(not_what(line, "seconds from and to", texts[0]));
                };
                if to <= from {
                    return Err(not_what(line, "a row that lasts", texts[1]));
                }
                to - from
            }
            Time::Every(lasts) => *lasts,
        };
        let at = self.next;
        self.next = at.saturating_add(lasts);
        Ok(at)
    }

    /// What to do about times that go back, by the first row.
    fn hint<T: AsRef<str>>(&self, cells: &[T]) -> String {
        let Some(run) = self.run else { return String::new() };
        let (name, text) = (&self.content.columns[run], cell_at(cells, run));
        let cell = match number(text) {
            Some(number) => number.to_string(),
            None => format!("\"{text}\""),
        };
        let key = if is_plain_key(name) { name.clone() } else { format!("\"{name}\"") };
        format!("; choose the rows of one run, such as where = {{ {key} = {cell} }}")
    }

    /// The samples and what they are, at the end of the rows.
    pub(super) fn finish(mut self) -> Result<(Samples, Content)> {
        if !self.has_row && !self.rows.is_empty() {
            return Err(TraceError::of_file("no row has what where says"));
        }
        if !self.samples.has_values() {
            return Err(TraceError::of_file("no row has a value"));
        }
        match self.time {
            Time::At(..) => self.samples.turn_if_newest_first(),
            _ => self.samples.end_at(self.next),
        }
        Ok((self.samples, self.content))
    }
}

/// What values of a unit are.
pub(super) fn values_of(unit: Unit, options: &Options) -> Result<Values> {
    match (unit, options.counter) {
        (Unit::Amount(_), true) => Ok(Values::Counts),
        (Unit::Amount(_), false) => Ok(Values::Amounts),
        (_, false) => Ok(Values::Levels),
        (_, true) => Err(TraceError::of_file("a counter has a unit of data, such as unit = \"B\"")),
    }
}

/// The column of the values, and their unit.
fn value(
    header: &[String],
    known: Option<&'static Known>,
    options: &Options,
) -> Result<(usize, Unit)> {
    let Some(column) = &options.column else {
        let (name, unit) = match known {
            Some(known) => known.value(options.want)?,
            None => return the_only_value(header, options),
        };
        let index = find(header, &Column::Name(name.into()))?;
        return Ok((index, options.unit.unwrap_or(unit)));
    };
    let index = find(header, column)?;
    let name = header.get(index).map_or("", String::as_str);
    let of_known = known.and_then(|known| known.unit(name));
    let unit = options.unit.or(of_known).or_else(|| Unit::of_name(name));
    let Some(unit) = unit else {
        let hint = match unit::is_amount_name(name) {
            true => " = \"B\" or the like, and counter = true if it counts since a start",
            false => "",
        };
        let message = format!("the unit of {} is not known; write unit{hint}", quoted(name));
        return Err(TraceError::of_file(&message));
    };
    // The unit of a known column has the half in it.
    let is_halved = options.unit.is_none() && of_known.is_some();
    Ok((index, if is_halved { unit } else { halved(unit, name, options) }))
}

/// The index of a column that there is, and a text.
fn column_and_text(
    header: &[String],
    (name, text): (&str, &'static str),
) -> Option<(usize, &'static str)> {
    Some((header.iter().position(|column| column == name)?, text))
}

/// The index of a column by its name.
fn find_name(header: &[String], name: &str) -> Result<usize> {
    find(header, &Column::Name(name.into()))
}

/// Whether TOML takes a key without quotes.
fn is_plain_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Of a table whose first column is of times, the only other one whose name says that it is what is
/// wanted.
fn the_only_value(header: &[String], options: &Options) -> Result<(usize, Unit)> {
    let is_timed = options.time.is_none() && has_times_first(header);
    if !is_timed {
        return Err(unknown(header));
    }
    let mut found = None;
    for (index, name) in header.iter().enumerate().skip(1) {
        let in_name = Unit::of_name(name).filter(|unit| unit.check(options.want).is_ok());
        let unit = match options.unit {
            Some(unit) if in_name.is_some() || header.len() == 2 => Some(unit),
            Some(_) => None,
            None => in_name,
        };
        if let Some(unit) = unit
            && found.replace((index, halved(unit, name, options))).is_some()
        {
            return Err(unknown(header));
        }
    }
    match (found, header) {
        (Some(found), _) => Ok(found),
        // What it is in the end says why it is not what is wanted.
        (None, [_, name]) => {
            Unit::of_name(name).map(|unit| (1, unit)).ok_or_else(|| unknown(header))
        }
        (None, _) => Err(unknown(header)),
    }
}

/// Whether a name has one of these words.
fn has_word(name: &str, words: &[&str]) -> bool {
    unit::words(name).iter().any(|own| words.iter().any(|word| own.eq_ignore_ascii_case(word)))
}

/// Whether the first column is of times or durations.
fn has_times_first(header: &[String]) -> bool {
    header.first().is_some_and(|name| has_word(name, &TIMES) || is_duration(name))
}

/// Whether a name is of how long a row lasts.
pub(super) fn is_duration(name: &str) -> bool {
    has_word(name, &DURATIONS) && !has_word(name, &ENDS)
}

/// Whether a name is of a round trip: `rtt_ms`, `minRTT`, `srtt`, `round-trip time`.
fn is_round_trip(name: &str) -> bool {
    let words = unit::words(name);
    let has_both = words
        .windows(2)
        .any(|pair| pair[0].eq_ignore_ascii_case("round") && pair[1].eq_ignore_ascii_case("trip"));
    let ends_so = words.iter().any(|word| word.to_ascii_lowercase().ends_with("rtt"));
    has_both || ends_so || has_word(name, &ROUND_TRIPS)
}

/// A round trip is twice the delay of a direction.
pub(super) fn halved(unit: Unit, name: &str, options: &Options) -> Unit {
    let is_round_trip = options.round_trip.unwrap_or_else(|| is_round_trip(name));
    match unit {
        Unit::Time(seconds) if is_round_trip && options.want == Want::Delay => {
            Unit::Time(seconds / 2.0)
        }
        unit => unit,
    }
}

/// Empty if the line has no such column.
fn cell_at<T: AsRef<str>>(cells: &[T], index: usize) -> &str {
    cells.get(index).map_or("", |cell| cell.as_ref().trim())
}

fn not_what(line: usize, expected: &str, text: &str) -> TraceError {
    TraceError::at(line, &format!("expected {expected}, not {}", quoted(text)))
}

fn no_time(line: usize, text: &str, clock: &Clock) -> TraceError {
    let hint = match (number(text), &clock.format) {
        _ if !unit::comma_hint(text).is_empty() => unit::comma_hint(text),
        (Some(number), None) if number > 0.0 => "; write time_unit, such as \"ms\", or time_format",
        (None, None) if !text.is_empty() && !clock.has_numbers_only => {
            "; write time_format, such as \"%m/%d/%Y, %I:%M %p\""
        }
        _ => "",
    };
    TraceError::at(line, &format!("expected a time, not {}{hint}", quoted(text)))
}

/// How the rows tell the time, and the same in words.
fn time(
    header: &[String],
    known: Option<&'static Known>,
    options: &Options,
) -> Result<(Time, String)> {
    let given = [options.time.is_some(), options.duration.is_some(), options.interval.is_some()];
    if given.iter().filter(|is_given| **is_given).count() > 1 {
        return Err(TraceError::of_file("write time, duration or interval, not several"));
    }
    if let Some(interval) = options.interval {
        if interval <= TimeDelta::ZERO {
            return Err(TraceError::of_file("the interval must be above zero"));
        }
        let words = format!("a row every {} s", interval.as_secs_f64());
        return Ok((Time::Every(interval.as_nanos()), words));
    }
    if let Some(column) = &options.duration {
        return lasts(header, find(header, column)?, options);
    }
    if let Some(column) = &options.time {
        return of_column(header, find(header, column)?, options);
    }
    match known.map(|known| known.time) {
        Some(KnownTime::At(name, unit)) => {
            let (mut time, words) = of_column(header, find_name(header, name)?, options)?;
            if let (Time::At(_, clock), None) = (&mut time, options.time_unit) {
                clock.unit = Some(unit as f64 / 1e9);
            }
            Ok((time, words))
        }
        Some(KnownTime::LastsMs(name)) => Ok((
            Time::Lasts(find_name(header, name)?, 1e-3),
            format!("durations in {}", quoted(name)),
        )),
        Some(KnownTime::Between(from, to)) => {
            let words = format!("from {} to {}", quoted(from), quoted(to));
            Ok((Time::Between(find_name(header, from)?, find_name(header, to)?), words))
        }
        None if has_times_first(header) => of_column(header, 0, options),
        None => {
            Err(TraceError::of_file("which column has the time? Write time, duration or interval"))
        }
    }
}

/// A column of times; of durations, if its name says so.
fn of_column(header: &[String], index: usize, options: &Options) -> Result<(Time, String)> {
    let name = header.get(index).map_or("", String::as_str);
    if is_duration(name) {
        return lasts(header, index, options);
    }
    let chosen = options.time_unit.map(TimeDelta::as_secs_f64);
    let unit = chosen.or_else(|| unit::time_of_name(name));
    let clock = Clock::new(unit, chosen.is_some(), options.time_format.clone());
    Ok((Time::At(index, clock), format!("times in {}", quoted(name))))
}

fn lasts(header: &[String], index: usize, options: &Options) -> Result<(Time, String)> {
    let name = header.get(index).map_or("", String::as_str);
    let unit = options.time_unit.map(TimeDelta::as_secs_f64).or_else(|| unit::time_of_name(name));
    let Some(unit) = unit else {
        let message = format!("the unit of {} is not known; write time_unit", quoted(name));
        return Err(TraceError::of_file(&message));
    };
    Ok((Time::Lasts(index, unit), format!("durations in {}", quoted(name))))
}

fn unknown(header: &[String]) -> TraceError {
    let shown: Vec<String> = header.iter().take(8).map(|name| quoted(name)).collect();
    let more = if header.len() > shown.len() { ", ..." } else { "" };
    // A line of values is no header.
    let is_named = header.iter().all(|name| number(name).is_none());
    let such = match is_named {
        true => "column = \"DL_bitrate\", unit = \"kbps\", time = \"Timestamp\"",
        false => "column = 2, unit = \"kbps\", time = 1",
    };
    let message = format!(
        "no known table; write which column to read, such as {such}; it has {}{more}",
        shown.join(", ")
    );
    TraceError::of_file(&message)
}

/// The index of a column.
fn find(header: &[String], column: &Column) -> Result<usize> {
    let name = match column {
        Column::Number(number) if (1..=header.len()).contains(number) => return Ok(number - 1),
        Column::Number(number) => {
            let message = format!("there are {} columns, and no column {number}", header.len());
            return Err(TraceError::of_file(&message));
        }
        Column::Name(name) => name,
    };
    let mut same = (0..header.len()).filter(|&index| header[index] == *name);
    match (same.next(), same.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => {
            let message = format!("several columns are called {}; write a number", quoted(name));
            Err(TraceError::of_file(&message))
        }
        (None, _) => {
            let near = nearest(name, header.iter().map(String::as_str));
            let hint = near
                .first()
                .map_or(String::new(), |near| format!("; did you mean {}?", quoted(near)));
            let message = format!("there is no column {}{hint}", quoted(name));
            Err(TraceError::of_file(&message))
        }
    }
}
