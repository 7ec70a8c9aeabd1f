//! Tables: which column has the time, which the value, and which rows count.

use weir::units::TimeDelta;

use super::known::{Known, KnownTime};
use super::series::Samples;
use super::unit::{Unit, number};
use super::{Cell, Column, Options, Result, TraceError, clock, quoted};
use crate::scenario::error::nearest;

/// Most columns of a table.
pub(super) const MAX_COLUMNS: usize = 10_000;
/// What stands for a value that was not measured. Android writes the largest 32-bit number.
const MISSING: [&str; 9] = ["", "-", "nan", "NaN", "NA", "N/A", "null", "None", "2147483647"];
const HINT: &str = "; choose the rows of one run, such as where = { run_num = 1 }";

/// How the rows tell the time.
#[derive(Clone, Copy, Debug)]
enum Time {
    /// A column of the times at which they begin, in a unit.
    At(usize, Option<TimeDelta>),
    /// A column of the milliseconds that they last.
    LastsMs(usize),
    /// All last as long, in nanoseconds.
    Every(i64),
}

/// A table that is being read, row by row.
#[derive(Debug)]
pub(super) struct Table<'o> {
    time: Time,
    value: usize,
    unit: Unit,
    rows: Vec<(usize, &'o Cell)>,
    samples: Samples,
    /// When the next row begins, for rows that have no time of their own.
    next: i64,
    has_row: bool,
}

impl<'o> Table<'o> {
    /// A table with this header, whose columns may be called by their numbers too.
    pub(super) fn new(header: &[String], line: usize, options: &'o Options) -> Result<Self> {
        if header.len() > MAX_COLUMNS {
            return Err(TraceError::at(line, &format!("more than {MAX_COLUMNS} columns")));
        }
        Self::of_header(header, options).map_err(|error| TraceError { line: Some(line), ..error })
    }

    fn of_header(header: &[String], options: &'o Options) -> Result<Self> {
        let known = Known::of(header);
        let (value, unit) = value(header, known, options)?;
        let unit = unit.check(options.want)?;
        let time = time(header, known, options)?;
        let mut rows = Vec::new();
        for (name, cell) in &options.rows {
            rows.push((find(header, &Column::Name(name.clone()))?, cell));
        }
        let samples = Samples::of_log(HINT);
        Ok(Self { time, value, unit, rows, samples, next: 0, has_row: false })
    }

    /// Reads a row of cells in the order of the header.
    pub(super) fn row<T: AsRef<str>>(&mut self, line: usize, cells: &[T]) -> Result<()> {
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
        self.has_row = true;
        let at = match self.time {
            Time::At(index, unit) => {
                let text = cell_at(cells, index);
                clock::read(text, unit).ok_or_else(|| not_what(line, "a time", text))?
            }
            Time::LastsMs(index) => {
                let text = cell_at(cells, index);
                let lasts = number(text).and_then(|ms| clock::nanos(ms / 1e3));
                let Some(lasts) = lasts.filter(|lasts| *lasts > 0) else {
                    return Err(not_what(line, "milliseconds above 0", text));
                };
                self.advance(lasts)
            }
            Time::Every(lasts) => self.advance(lasts),
        };
        let text = cell_at(cells, self.value);
        if MISSING.contains(&text) {
            // The value before stays.
            return Ok(());
        }
        let value = self.unit.read(line, text)?;
        self.samples.push(line, at, value)
    }

    /// Advances the time by a row, and returns when the row begins.
    fn advance(&mut self, lasts: i64) -> i64 {
        let at = self.next;
        self.next = at.saturating_add(lasts);
        at
    }

    /// The samples, at the end of the rows.
    pub(super) fn finish(mut self) -> Result<Samples> {
        if !self.has_row && !self.rows.is_empty() {
            return Err(TraceError::of_file("no row has what where says"));
        }
        if self.samples.is_empty() {
            return Err(TraceError::of_file("no row has a value"));
        }
        if !matches!(self.time, Time::At(..)) {
            self.samples.end_at(self.next);
        }
        Ok(self.samples)
    }
}

/// The column of the values, and their unit.
fn value(
    header: &[String],
    known: Option<&'static Known>,
    options: &Options,
) -> Result<(usize, Unit)> {
    let Some(column) = &options.column else {
        let known = known.ok_or_else(|| unknown(header))?;
        let (name, unit) = known.value(options.want)?;
        let index = find(header, &Column::Name(name.into()))?;
        return Ok((index, options.unit.unwrap_or(unit)));
    };
    let index = find(header, column)?;
    let name = header.get(index).map_or("", String::as_str);
    let unit = options.unit.or_else(|| known?.unit(name)).or_else(|| Unit::of_name(name));
    let Some(unit) = unit else {
        let message = format!("the unit of {} is not known; write unit", quoted(name));
        return Err(TraceError::of_file(&message));
    };
    Ok((index, unit))
}

/// Empty if the line has no such column.
fn cell_at<T: AsRef<str>>(cells: &[T], index: usize) -> &str {
    cells.get(index).map_or("", |cell| cell.as_ref().trim())
}

fn not_what(line: usize, expected: &str, text: &str) -> TraceError {
    TraceError::at(line, &format!("expected {expected}, not {}", quoted(text)))
}

fn time(header: &[String], known: Option<&'static Known>, options: &Options) -> Result<Time> {
    match (&options.time, options.interval, known) {
        (Some(_), Some(_), _) => Err(TraceError::of_file("write time or interval, not both")),
        (Some(column), None, _) => Ok(Time::At(find(header, column)?, options.time_unit)),
        (None, Some(interval), _) if interval > TimeDelta::ZERO => {
            Ok(Time::Every(interval.as_nanos()))
        }
        (None, Some(_), _) => Err(TraceError::of_file("the interval must be above zero")),
        (None, None, Some(known)) => match known.time {
            KnownTime::At(name) => {
                Ok(Time::At(find(header, &Column::Name(name.into()))?, options.time_unit))
            }
            KnownTime::LastsMs(name) => {
                Ok(Time::LastsMs(find(header, &Column::Name(name.into()))?))
            }
        },
        (None, None, None) => {
            Err(TraceError::of_file("which column has the time? Write time or interval"))
        }
    }
}

fn unknown(header: &[String]) -> TraceError {
    let shown: Vec<String> = header.iter().take(8).map(|name| quoted(name)).collect();
    let more = if header.len() > shown.len() { ", ..." } else { "" };
    let message =
        format!("no known table; name column, unit and time of {}{more}", shown.join(", "));
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
