//! Reads recordings of a link or of a radio channel, in the formats of other programs and of public
//! data sets.
//!
//! ```text
//!   text --recognise--> mahimahi | two columns | netem-trace | CSV | JSON | Ghent's logs --> Trace
//! ```
//!
//! A [`Trace`] is a list of opportunities to send, rates over time, or decibels over time. Nothing
//! here knows a kind of network: a wired link takes a trace as its capacity, and a cell takes one
//! as the rate or the signal of a terminal.
//!
//! The files come from anywhere. Every reader is strict and names the line of an error, and the
//! number of samples is bounded.

mod clock;
mod columns;
mod csv;
mod ghent;
mod json;
mod keys;
mod known;
mod netem;
mod series;
mod table;
#[cfg(test)]
mod tests;
mod unit;

use std::fmt;

use weir::units::{Bitrate, TimeDelta};
use weir_net::{Capacity, CapacityTrace, Schedule, TraceEnd};

pub use series::Series;
pub use unit::Unit;

use super::error::quoted;
pub(super) use keys::{KEYS, from_table};

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
}

/// A format of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Times in milliseconds at which 1500 bytes may leave, one a line.
    Mahimahi,
    /// Two columns without a header: seconds, and Mbit/s or dB.
    Columns,
    /// The JSON of bandwidths of the crate netem-trace, which rattan reads.
    NetemTrace,
    /// A table with a header, in lines.
    Csv,
    /// A list of objects, which are the rows of a table.
    Json,
    /// Six columns without a header: two times, a position, bytes, and their milliseconds.
    Ghent,
}

impl Format {
    /// All formats by their names in scenario files.
    pub const ALL: [(&'static str, Self); 6] = [
        ("mahimahi", Self::Mahimahi),
        ("columns", Self::Columns),
        ("netem-trace", Self::NetemTrace),
        ("csv", Self::Csv),
        ("json", Self::Json),
        ("ghent", Self::Ghent),
    ];

    fn name(self) -> &'static str {
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
    /// The unit of the times; `None` for seconds and for dates.
    pub time_unit: Option<TimeDelta>,
    /// How long every row lasts, instead of a column of times.
    pub interval: Option<TimeDelta>,
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
            interval: None,
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
            ("interval", self.interval.is_some()),
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
}

impl Trace {
    /// The capacity that was recorded.
    ///
    /// # Errors
    /// If it is not a recording of a capacity, or if it carries nothing. Opportunities only repeat.
    pub fn capacity(self, end: TraceEnd) -> Result<Capacity, TraceError> {
        match self {
            Self::Opportunities(_) if end == TraceEnd::Hold => {
                Err(TraceError::of_file("opportunities to send cannot be held; they repeat"))
            }
            Self::Opportunities(trace) => Ok(Capacity::Trace(trace)),
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
        }
    }
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

/// Reads a trace.
///
/// # Errors
/// If the text is not of the format, or of none. The error names the line.
pub fn read(text: &str, options: &Options) -> Result<Trace> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let format = options.format.map_or_else(|| recognised(text, options), Ok)?;
    check_keys(format, options)?;
    let samples = match format {
        Format::Mahimahi if options.want == Want::Decibels => {
            return Err(TraceError::of_file("a mahimahi trace holds no decibels"));
        }
        Format::Mahimahi => {
            let trace = CapacityTrace::parse(text);
            let trace = trace.map_err(|error| TraceError::of_file(&error.to_string()))?;
            return Ok(Trace::Opportunities(trace));
        }
        Format::Columns => columns::read(text, options),
        Format::NetemTrace => netem::read(text, options),
        Format::Csv => csv::read(text, options),
        Format::Json => json::read(text, options),
        Format::Ghent => ghent::read(text, options),
    }?;
    let series = samples.series(options.from, options.to)?;
    Ok(match options.want {
        Want::Up | Want::Down => Trace::Rates(series.map(Bitrate::from_bps_f64)),
        Want::Decibels => Trace::Decibels(series),
    })
}

/// The format that a text has by its first line.
fn recognised(text: &str, options: &Options) -> Result<Format> {
    let Some((number, line)) = lines(text).next() else {
        return Err(TraceError::of_file("the trace is empty"));
    };
    match line.chars().next() {
        Some('{') => return Ok(Format::NetemTrace),
        Some('[') => return Ok(Format::Json),
        _ if options.column.is_some() => return Ok(Format::Csv),
        _ => {}
    }
    let fields: Vec<&str> = columns::fields(line).take(8).collect();
    let is_numbers = fields.iter().all(|field| unit::number(field).is_some());
    match fields.len() {
        1 if is_numbers => Ok(Format::Mahimahi),
        2 if is_numbers => Ok(Format::Columns),
        6 if is_numbers && !line.contains([',', ';']) => Ok(Format::Ghent),
        2.. if !is_numbers => Ok(Format::Csv),
        count => {
            let message = match is_numbers {
                true => format!("{count} columns without a header; write column, unit and time"),
                false => format!("{} is no trace; write its format", quoted(line)),
            };
            Err(TraceError::at(number, &message))
        }
    }
}

/// Refuses keys that do not apply to a format.
fn check_keys(format: Format, options: &Options) -> Result<()> {
    let known: &[&str] = match format {
        Format::Mahimahi => &[],
        Format::Columns => &["unit", "time_unit", "from", "to"],
        Format::NetemTrace | Format::Ghent => &["from", "to"],
        Format::Csv | Format::Json => return Ok(()),
    };
    match options.set().find(|key| !known.contains(key)) {
        Some(key) => {
            let message = format!("a trace of the format {} has no {key}", format.name());
            Err(TraceError::of_file(&message))
        }
        None => Ok(()),
    }
}

/// The lines with their numbers from 1, without empty lines and comments.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}
