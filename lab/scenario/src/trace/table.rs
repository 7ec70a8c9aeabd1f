//! Tables: which column has the time, which the value, and which rows count.

use weir::units::TimeDelta;

use super::clock::{self, Clock};
use super::known::{Known, KnownTime};
use super::numbers::{self, number};
use super::series::{Samples, Values};
use super::spans::Spans;
use super::unit::{self, Unit};
use super::{Cell, Column, Content, Decimal, Options, Result, TraceError, Want, quoted};
use crate::error::nearest;

/// Most columns of a table.
pub(super) const MAX_COLUMNS: usize = 10_000;
/// What stands for a value that was not measured, in any case. Android writes the largest 32-bit
/// number.
const MISSING: [&str; 17] = [
    "",
    "-",
    "--",
    "?",
    "*",
    "nan",
    "na",
    "n/a",
    "n.a.",
    "#n/a",
    "<na>",
    "nil",
    "null",
    "none",
    "missing",
    "undefined",
    "2147483647",
];
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
    Between(usize, usize, Spans),
    /// A column of dates, and one of times of the day.
    Dated(usize, usize, Clock),
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
    decimal: Option<Decimal>,
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
        samples.is_known = known.is_some();
        let content = Content {
            set: known.map(|known| known.name),
            columns: header.to_vec(),
            value: header.get(value).cloned(),
            times,
        };
        let run = header.iter().position(|name| has_word(name, &RUNS));
        let (next, has_row) = (0, false);
        Ok(Self {
            content,
            time,
            value,
            unit,
            decimal: options.decimal,
            rows,
            without,
            only,
            samples,
            next,
            has_row,
            run,
        })
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
                Cell::Number(wanted) => numbers::whole(text, self.decimal) == Some(*wanted),
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
        let value =
            if is_missing { None } else { Some(self.unit.read(line, text, self.decimal)?) };
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
                let lasts = numbers::whole(text, self.decimal);
                let lasts = lasts.and_then(|lasts| clock::nanos(lasts * *unit));
                lasts.filter(|lasts| *lasts > 0).ok_or_else(|| {
                    let expected = if *unit == 1e-3 { "milliseconds" } else { "a time" };
                    not_what(line, &format!("{expected} above 0"), text)
                })?
            }
            Time::Dated(date, time, clock) => {
                let text = format!("{} {}", cell_at(cells, *date), cell_at(cells, *time));
                let Some(at) = clock.read(&text) else { return Err(no_time(line, &text, clock)) };
                return Ok(at);
            }
            Time::Between(from, to, spans) => {
                let (from, to) = (cell_at(cells, *from), cell_at(cells, *to));
                let Some(start) = seconds(from, self.decimal) else {
                    return Err(not_what(line, "seconds from and to", from));
                };
                let at = match seconds(to, self.decimal) {
                    Some(end) => spans.place(start, end),
                    None => None,
                };
                let Some(at) = at else { return Err(not_what(line, "a row that lasts", to)) };
                self.next = spans.end();
                return Ok(at);
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
        let is_plain = matches!(&self.time, Time::At(_, clock) if clock.is_plain());
        self.samples.has_plain_times = is_plain;
        match self.time {
            Time::At(..) | Time::Dated(..) => self.samples.turn_if_newest_first(),
            _ => self.samples.end_at(self.next),
        }
        Ok((self.samples, self.content))
    }
}

/// The nanoseconds of a text in seconds.
fn seconds(text: &str, decimal: Option<Decimal>) -> Option<i64> {
    numbers::whole(text, decimal).and_then(clock::nanos)
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
    let Some(unit) = unit else { return Err(unknown_unit(name)) };
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

/// Of a table with a column of times, the only other one whose name says that it is what is wanted.
fn the_only_value(header: &[String], options: &Options) -> Result<(usize, Unit)> {
    let timed = match options.time.as_ref().or(options.duration.as_ref()) {
        Some(column) => Some(find(header, column)?),
        None => times_column(header),
    };
    if timed.is_none() && options.interval.is_none() {
        return Err(unknown(header));
    }
    let mut others: Vec<(usize, &str)> = Vec::new();
    for (index, name) in header.iter().enumerate() {
        if Some(index) != timed {
            others.push((index, name));
        }
    }
    let mut found = None;
    for &(index, name) in &others {
        let in_name = Unit::of_name(name).filter(|unit| unit.check(options.want).is_ok());
        let unit = match options.unit {
            Some(unit) if in_name.is_some() || others.len() == 1 => Some(unit),
            Some(_) => None,
            None => in_name,
        };
        if let Some(unit) = unit
            && found.replace((index, halved(unit, name, options))).is_some()
        {
            return Err(unknown(header));
        }
    }
    if let Some(found) = found {
        return Ok(found);
    }
    match others.as_slice() {
        // What it is in the end says why it is not what is wanted.
        &[(index, name)] if number(name).is_none() => match Unit::of_name(name) {
            Some(unit) => Ok((index, unit)),
            None => Err(unknown_unit(name)),
        },
        _ => Err(unknown(header)),
    }
}

fn unknown_unit(name: &str) -> TraceError {
    let hint = match unit::is_amount_name(name) {
        true => " = \"B\" or the like, and counter = true if it counts since a start",
        false => "",
    };
    let message = format!("the unit of {} is not known; write unit{hint}", quoted(name));
    TraceError::of_file(&message)
}

/// Whether a name has one of these words.
fn has_word(name: &str, words: &[&str]) -> bool {
    unit::words(name).iter().any(|own| words.iter().any(|word| own.eq_ignore_ascii_case(word)))
}

/// The column of times or durations: the first, or else the only one whose name says so.
fn times_column(header: &[String]) -> Option<usize> {
    match times_columns(header).as_slice() {
        [0, ..] => Some(0),
        [index] => Some(*index),
        // `ms` alone is a time, but only where a table begins.
        _ if is_unit_of_time(header.first()?) => Some(0),
        _ => None,
    }
}

/// The columns whose names say that they are of times or durations.
fn times_columns(header: &[String]) -> Vec<usize> {
    let mut columns = Vec::new();
    for (index, name) in header.iter().enumerate() {
        if is_time(name) {
            columns.push(index);
        }
    }
    columns
}

/// Whether a name is of times or durations.
fn is_time(name: &str) -> bool {
    has_word(name, &TIMES) || is_duration(name) || unit::has_since(&unit::words(name))
}

/// Whether a name is that of a unit of time alone.
fn is_unit_of_time(name: &str) -> bool {
    unit::words(name).len() == 1 && unit::time_of_name(name).is_some()
}

/// A column of dates and one of times of the day, where those are the only ones.
fn date_and_time(header: &[String]) -> Option<(usize, usize)> {
    let columns = times_columns(header);
    let &[date, time] = columns.as_slice() else { return None };
    let is_date = is_date(&header[date]) && !is_of_day(&header[date]);
    let is_time = is_of_day(&header[time]) && !self::is_date(&header[time]);
    if is_date && is_time { Some((date, time)) } else { None }
}

fn is_date(name: &str) -> bool {
    has_word(name, &["date", "day"])
}

fn is_of_day(name: &str) -> bool {
    has_word(name, &["time", "clock"])
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
        _ if !numbers::hint(text, clock.decimal).is_empty() => numbers::hint(text, clock.decimal),
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
            let (from, to) = (find_name(header, from)?, find_name(header, to)?);
            Ok((Time::Between(from, to, Spans::default()), words))
        }
        None => match (date_and_time(header), times_column(header)) {
            (Some((date, time)), _) => {
                let words = format!("dates in {}", quoted(&header[date]));
                let words = format!("{words}, times in {}", quoted(&header[time]));
                Ok((Time::Dated(date, time, Clock::new(None, false, options)), words))
            }
            (None, Some(index)) => of_column(header, index, options),
            (None, None) => {
                let message = "which column has the time? Write time, duration or interval";
                Err(TraceError::of_file(message))
            }
        },
    }
}

/// A column of times; of durations, if its name says so.
fn of_column(header: &[String], index: usize, options: &Options) -> Result<(Time, String)> {
    let name = header.get(index).map_or("", String::as_str);
    if is_duration(name) {
        return lasts(header, index, options);
    }
    if options.times.is_none() && has_word(name, &["end", "ends"]) && !has_word(name, &["start"]) {
        let message = "seems to say when rows end; write times = \"end\", or \"start\" if not";
        return Err(TraceError::of_file(&format!("{} {message}", quoted(name))));
    }
    let chosen = options.time_unit.map(TimeDelta::as_secs_f64);
    let unit = chosen.or_else(|| unit::time_of_name(name));
    let clock = Clock::new(unit, chosen.is_some(), options);
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
