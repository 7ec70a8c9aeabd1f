//! Reads recordings of a link or of a radio channel, in the formats of other programs and of public
//! data sets.
//!
//! ```text
//!   bytes --> text --recognise--> mahimahi | two columns | netem-trace | table in CSV or JSON
//!                                 | log of a program --> rows --> Trace
//! ```
//!
//! A [`Trace`] is a list of opportunities to send, or rates, decibels, times or shares over time.
//! Nothing here knows a kind of network: a wired link takes a trace as its capacity, its delay, its
//! jitter or its loss, and a cell takes one as the signal of a terminal.
//!
//! The files come from anywhere. Every reader is strict and names the line of an error, and the
//! number of samples is bounded.

mod by_column;
mod clock;
mod columns;
mod csv;
mod date;
mod ghent;
mod json;
mod keys;
mod known;
mod logs;
mod marked;
mod netem;
mod numbers;
mod object;
mod ping;
mod recognise;
mod series;
mod spacing;
mod spans;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod unit;

use std::borrow::Cow;
use std::{fmt, io};

use weir::units::{Bitrate, TimeDelta, Timestamp};
pub use weir_net::TraceEnd;
use weir_net::{Capacity, CapacityTrace, Opportunity, Schedule, ScheduleError, TraceLines};

use recognise::{check_keys, recognised};
pub use series::Series;
use series::{Part, Samples};
use text::lines;
pub use unit::Unit;

use super::error::quoted;
use super::trace_files::KeptText;
pub use keys::read_file;
pub(super) use keys::{DELAY_KEYS, JITTER_KEYS, KEYS, SINR_KEYS, from_table};

/// Most samples of a trace: more than a day of one every 25 ms.
const MAX_SAMPLES: usize = 1 << 22;
/// Largest JSON text. Its values need more memory than their text.
const MAX_JSON: usize = 1 << 26;
/// Most characters of an error: the names in it may come from the file.
const SHOWN: usize = 400;

/// What a trace is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The rate of the way up, from a terminal.
    Up,
    /// The rate of the way down, to a terminal.
    Down,
    /// A quantity of the radio channel in dB or dBm, such as the SINR.
    Decibels,
    /// The delay of one direction.
    Delay,
    /// The share of packets that are lost.
    Loss,
    /// The size of the jitter.
    Jitter,
}

/// What the times of rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowTimes {
    /// A value applies from its time until that of the next row.
    #[default]
    Start,
    /// A value applies from the time of the row before until its own; the first is not used. So
    /// Pensieve's simulator reads its cooked traces.
    End,
}

/// A format of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Times in milliseconds at which 1500 bytes may leave, one a line.
    Mahimahi,
    /// Two columns without a header: seconds, and Mbit/s or dB.
    Columns,
    /// The JSON or TOML of the crate netem-trace, which rattan reads.
    NetemTrace,
    /// A table with a header, in lines.
    Csv,
    /// A list of objects, which are the rows of a table, by itself or in an object.
    Json,
    /// Six columns without a header: two times, a position, bytes, and their milliseconds.
    Ghent,
    /// What iperf3 or iperf prints.
    Iperf,
    /// What nuttcp prints with an interval.
    Nuttcp,
    /// What ping prints.
    Ping,
    /// Lines of words, in which a number stands behind the same text each time.
    Lines,
}

impl Format {
    /// All formats by their names in scenario files.
    pub const ALL: [(&'static str, Self); 10] = [
        ("mahimahi", Self::Mahimahi),
        ("columns", Self::Columns),
        ("netem-trace", Self::NetemTrace),
        ("csv", Self::Csv),
        ("json", Self::Json),
        ("ghent", Self::Ghent),
        ("iperf", Self::Iperf),
        ("nuttcp", Self::Nuttcp),
        ("ping", Self::Ping),
        ("lines", Self::Lines),
    ];

    /// Its name in scenario files.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|named| named.1 == self);
        named.expect("all formats have a name").0
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By its name in the header.
    Name(String),
    /// By its number from 1.
    Number(usize),
}

/// What stands in a number before its fraction. The other one may part its thousands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal {
    /// `1,234.5`.
    Point,
    /// `1.234,5`.
    Comma,
}

/// What a cell must be for its row to count.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// This text.
    Text(String),
    /// A number of this value.
    Number(f64),
}

/// How to read a trace. Everything but `want` may be left out; then the content decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What it is read for.
    pub want: Want,
    /// Its format.
    pub format: Option<Format>,
    /// The column of the values.
    pub column: Option<Column>,
    /// The unit of the values.
    pub unit: Option<Unit>,
    /// The column of the times.
    pub time: Option<Column>,
    /// The unit of the times; `None` for that of the column's name, or seconds and dates.
    pub time_unit: Option<TimeDelta>,
    /// The format of dates, as of strftime; `None` for those that are known.
    pub time_format: Option<String>,
    /// What the times of the rows are; `None` for starts, unless they seem to be those at which a
    /// buffer was emptied.
    pub times: Option<RowTimes>,
    /// The column of how long the rows last, instead of a column of times.
    pub duration: Option<Column>,
    /// How long every row lasts, instead of a column of times.
    pub interval: Option<TimeDelta>,
    /// The list of rows in an object of JSON, as the keys that lead to it, with dots between.
    pub list: Option<String>,
    /// Whether times are round trips, of which half is the delay; `None` to go by the name of the
    /// column.
    pub round_trip: Option<bool>,
    /// Whether amounts of data count up since a start, instead of being those of their rows.
    pub counter: bool,
    /// How many lines at the start are not read.
    pub skip: usize,
    /// What the lines of a mahimahi trace are opportunities for.
    pub opportunity: Opportunity,
    /// What stands in numbers before the fraction; `None` for a point, unless a comma is unclear.
    pub decimal: Option<Decimal>,
    /// The rows that count: those with these cells.
    pub rows: Vec<(String, Cell)>,
    /// Start of the part that is used, since the first row.
    pub from: Option<TimeDelta>,
    /// End of the part that is used, since the first row.
    pub to: Option<TimeDelta>,
}

impl Options {
    /// Options that leave everything to the content.
    pub const fn new(want: Want) -> Self {
        Self {
            want,
            format: None,
            column: None,
            unit: None,
            time: None,
            time_unit: None,
            time_format: None,
            times: None,
            duration: None,
            interval: None,
            list: None,
            round_trip: None,
            counter: false,
            skip: 0,
            opportunity: Opportunity::Mahimahi,
            decimal: None,
            rows: Vec::new(),
            from: None,
            to: None,
        }
    }

    /// The keys that are set, by their names in scenario files.
    fn set(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("column", self.column.is_some()),
            ("unit", self.unit.is_some()),
            ("time", self.time.is_some()),
            ("time_unit", self.time_unit.is_some()),
            ("time_format", self.time_format.is_some()),
            ("times", self.times.is_some()),
            ("duration", self.duration.is_some()),
            ("interval", self.interval.is_some()),
            ("list", self.list.is_some()),
            ("round_trip", self.round_trip.is_some()),
            ("counter", self.counter),
            ("skip", self.skip > 0),
            ("opportunity", self.opportunity != Opportunity::Mahimahi),
            ("decimal", self.decimal.is_some()),
            ("where", !self.rows.is_empty()),
            ("from", self.from.is_some()),
            ("to", self.to.is_some()),
        ];
        keys.into_iter().filter_map(|(name, set)| set.then_some(name))
    }
}

/// A recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Trace {
    /// Times at which 1500 bytes may leave.
    Opportunities(CapacityTrace),
    /// Rates over time.
    Rates(Series<Bitrate>),
    /// Decibels over time.
    Decibels(Series<f64>),
    /// Delays or sizes of a jitter over time.
    Times(Series<TimeDelta>),
    /// Shares of 1 over time.
    Shares(Series<f64>),
}

impl Trace {
    /// The capacity that was recorded. Of opportunities that are held, the last second repeats.
    ///
    /// # Errors
    /// If it is not a recording of a capacity, or if it carries nothing.
    pub fn capacity(self, end: TraceEnd) -> Result<Capacity, TraceError> {
        match self {
            Self::Opportunities(trace) => Ok(Capacity::Trace(trace.with_end(end))),
            Self::Rates(series) => {
                let (steps, length) = series.into_parts();
                if steps.iter().all(|step| step.1 == Bitrate::ZERO) {
                    return Err(TraceError::of_file("all rates are 0"));
                }
                Schedule::recorded(steps, length, end)
                    .map(Capacity::Schedule)
                    .map_err(|error| TraceError::of_file(&error.to_string()))
            }
            Self::Decibels(_) => Err(TraceError::of_file("decibels are no capacity")),
            Self::Times(_) | Self::Shares(_) => {
                Err(TraceError::of_file("the values are no capacity"))
            }
        }
    }

    /// The rates that were recorded, over a run of this duration.
    ///
    /// # Errors
    /// If it holds no rates, or too many for such a run.
    pub fn rates_over(
        self,
        duration: TimeDelta,
        end: TraceEnd,
    ) -> Result<Vec<(Timestamp, Bitrate)>, TraceError> {
        match self {
            Self::Rates(series) => series.over(duration, end),
            _ => Err(TraceError::of_file("the values are no rates over time")),
        }
    }

    /// The decibels that were recorded.
    ///
    /// # Errors
    /// If it holds none.
    pub fn decibels(self) -> Result<Series<f64>, TraceError> {
        match self {
            Self::Decibels(series) => Ok(series),
            _ => Err(TraceError::of_file("the values are no decibels")),
        }
    }

    /// The times that were recorded, over a run of this duration.
    ///
    /// # Errors
    /// If it holds no times, or too many for such a run.
    pub fn times_over(
        self,
        duration: TimeDelta,
        end: TraceEnd,
    ) -> Result<Vec<(Timestamp, TimeDelta)>, TraceError> {
        match self {
            Self::Times(series) => series.over(duration, end),
            _ => Err(TraceError::of_file("the values are no times")),
        }
    }

    /// The shares that were recorded, over a run of this duration.
    ///
    /// # Errors
    /// If it holds no shares, or too many for such a run.
    pub fn shares_over(
        self,
        duration: TimeDelta,
        end: TraceEnd,
    ) -> Result<Vec<(Timestamp, f64)>, TraceError> {
        match self {
            Self::Shares(series) => series.over(duration, end),
            _ => Err(TraceError::of_file("the values are no shares")),
        }
    }
}

/// What a file holds beside its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The public set or the program that it is known to come from.
    pub set: Option<&'static str>,
    /// The columns of a table.
    pub columns: Vec<String>,
    /// The column that is read.
    pub value: Option<String>,
    /// How it tells the time, in words; empty if there is one way only.
    pub times: String,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its format.
    pub format: Format,
    /// What it holds.
    pub content: Content,
    /// The trace.
    pub trace: Trace,
}

/// Why a trace was refused, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    line: Option<usize>,
    message: String,
}

type Result<T, E = TraceError> = std::result::Result<T, E>;

impl TraceError {
    /// An error of a line; 0 if the line is not known.
    fn at(line: usize, message: &str) -> Self {
        Self { line: (line > 0).then_some(line), ..Self::of_file(message) }
    }

    pub(crate) fn of_file(message: &str) -> Self {
        let message = super::error::printable(message).chars().take(SHOWN).collect();
        Self { line: None, message }
    }

    /// The same with more words at the end.
    fn and(self, words: &str) -> Self {
        Self { message: self.message + words, ..self }
    }

    /// The error of the JSON reader without its place at the end.
    fn of_json(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |parts| parts.0);
        Self::at(error.line().max(1), message)
    }

    /// The line of the file that is wrong, from 1; `None` if the whole is.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
impl std::error::Error for TraceError {}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        Self::of_file(&error.to_string())
    }
}

/// Reads a trace.
///
/// # Errors
/// If the text is not of the format, or of none. The error names the line.
pub fn read(text: &str, options: &Options) -> Result<Trace> {
    read_all(text, options).map(|reading| reading.trace)
}

/// Reads a trace, and says what its file holds.
///
/// # Errors
/// As [`read`].
pub fn read_all(text: &str, options: &Options) -> Result<Reading> {
    // DOS ended texts with this sign.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end_matches('\u{1a}');
    if text.contains('\0') {
        let message = "has bytes of zero, which no text has; save it as a text in UTF-8";
        return Err(TraceError::of_file(message));
    }
    // Old programs ended lines with a carriage return alone.
    let ended = match text.contains('\r') && !text.contains('\n') {
        true => Cow::Owned(text.replace('\r', "\n")),
        false => Cow::Borrowed(text),
    };
    let kept = without_start(&ended, options.skip);
    let text = kept.as_ref();
    let format = options.format.map_or_else(|| recognised(text, options), Ok)?;
    check_keys(format, options)?;
    if format == Format::Mahimahi {
        let trace = Trace::Opportunities(opportunities(text, options)?);
        return Ok(Reading { format, content: Content::default(), trace });
    }
    let (samples, content) = match format {
        Format::Csv => csv::read(text, options)?,
        Format::Json => json::read(text, options)?,
        Format::Columns => of_format(columns::read(text, options)?),
        Format::NetemTrace => of_format(netem::read(text, options)?),
        Format::Ghent => of_format(ghent::read(text, options)?),
        Format::Iperf => of_format(logs::iperf(text, options)?),
        Format::Nuttcp => of_format(logs::nuttcp(text, options)?),
        Format::Ping => of_format(ping::read(text, options)?),
        Format::Lines => of_format(marked::read(text, options)?),
        Format::Mahimahi => unreachable!("it was read above"),
    };
    let part = Part { from: options.from, to: options.to, times: options.times };
    let series = samples.series(part)?;
    let trace = match options.want {
        Want::Up | Want::Down => Trace::Rates(series.map(Bitrate::from_bps_f64)),
        Want::Decibels => Trace::Decibels(series),
        Want::Delay | Want::Jitter => Trace::Times(series.map(TimeDelta::from_secs_f64)),
        Want::Loss => Trace::Shares(series),
    };
    Ok(Reading { format, content, trace })
}

/// The samples of a format that is no table.
fn of_format(samples: Samples) -> (Samples, Content) {
    (samples, Content::default())
}

fn opportunities(text: &str, options: &Options) -> Result<CapacityTrace> {
    has_opportunities(options.want)?;
    let trace = CapacityTrace::parse(text).map_err(|error| no_opportunities(&error))?;
    part_of(trace, options)
}

/// Reads a kept trace of mahimahi line by line; `None` if it is another one.
fn read_opportunities(kept: &KeptText, options: &Options) -> Result<Option<Reading>> {
    let format = Format::Mahimahi;
    let mut lines = TraceLines::default();
    let is_read = kept.each_line(
        |head| match options.format {
            Some(named) => named == format,
            None => recognised(head, options) == Ok(format),
        },
        |line| lines.add(line).map_err(|error| no_opportunities(&error)),
    )?;
    if !is_read {
        return Ok(None);
    }
    check_keys(format, options)?;
    has_opportunities(options.want)?;
    let trace = lines.finish().map_err(|error| no_opportunities(&error))?;
    let trace = Trace::Opportunities(part_of(trace, options)?);
    Ok(Some(Reading { format, content: Content::default(), trace }))
}

/// Refuses a trace of opportunities where something else is wanted.
fn has_opportunities(want: Want) -> Result<()> {
    let message = match want {
        Want::Up | Want::Down => return Ok(()),
        Want::Decibels => "a mahimahi trace holds no decibels",
        Want::Delay | Want::Loss | Want::Jitter => {
            "a mahimahi trace holds opportunities only; write column = 1, unit and interval"
        }
    };
    Err(TraceError::of_file(message))
}

fn no_opportunities(error: &ScheduleError) -> TraceError {
    let hint = "if the lines are values, write column = 1, unit and interval";
    TraceError::of_file(&format!("{error}; {hint}"))
}

fn part_of(trace: CapacityTrace, options: &Options) -> Result<CapacityTrace> {
    let part = trace.part(options.from, options.to);
    let part = part.map_err(|error| TraceError::of_file(&error.to_string()))?;
    Ok(part.with_opportunity(options.opportunity))
}

/// A text without its first lines. Empty ones stand for them, so that numbers of lines stay right.
fn without_start(text: &str, skip: usize) -> Cow<'_, str> {
    let mut rest = text;
    for _ in 0..skip {
        rest = rest.split_once('\n').map_or("", |parts| parts.1);
    }
    match skip {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned("\n".repeat(skip.min(text.len())) + rest),
    }
}
