//! Values over time.
//!
//! ```text
//! rows -> runs of rows in order -> the part that is used -+-> gaps, bunches -> Series
//! ```

use weir::units::{TimeDelta, Timestamp};
use weir_net::TraceEnd;

use super::spacing::{
    BUNCH, DAYS, MINUTES_PER_DAY, NANOS_PER_SECOND, SHORTEST, Sample, are_clock_digits, check_gaps,
    has_one_gap, has_usual_rows, interval_of_bunches, mean_of, rows_at_each_time, shown,
};
use super::unit::Unit;
use super::{MAX_SAMPLES, Result, RowTimes, TraceError};

/// Longest recording, in nanoseconds: 1000 hours.
pub(super) const MAX_LENGTH: i64 = 1_000 * 3_600 * 1_000_000_000;
/// How long a recording of one sample lasts, in nanoseconds.
const ONE_SAMPLE: i64 = 1_000_000_000;
/// Times after this, in nanoseconds, are those of a calendar, not of an experiment.
const CALENDAR: i64 = 100_000_000 * 1_000_000_000;

/// Values that each apply from a given time on, the first from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<T> {
    steps: Vec<(Timestamp, T)>,
    length: TimeDelta,
}

impl<T: Copy> Series<T> {
    /// The values by increasing time. The first is at zero.
    pub fn steps(&self) -> &[(Timestamp, T)] {
        &self.steps
    }

    /// How long the recording is. It is above zero, and the last value begins within it.
    pub fn length(&self) -> TimeDelta {
        self.length
    }

    /// The value at a time.
    pub fn at(&self, at: Timestamp, end: TraceEnd) -> T {
        let at = match end {
            TraceEnd::Repeat => {
                Timestamp::from_nanos(at.as_nanos().max(0) % self.length.as_nanos())
            }
            TraceEnd::Hold => at,
        };
        let index = self.steps.partition_point(|step| step.0 <= at).saturating_sub(1);
        self.steps[index].1
    }

    /// The values of a run of this duration, with those of each round if the trace repeats.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn over(&self, duration: TimeDelta, end: TraceEnd) -> Result<Vec<(Timestamp, T)>> {
        let stop = Timestamp::ZERO + duration;
        let mut steps = Vec::new();
        let mut round = TimeDelta::ZERO;
        loop {
            for (at, value) in &self.steps {
                if *at + round >= stop {
                    return Ok(steps);
                }
                if steps.len() == MAX_SAMPLES {
                    let message = format!("has more than {MAX_SAMPLES} values in this run");
                    return Err(TraceError::of_file(&message));
                }
                steps.push((*at + round, *value));
            }
            if end == TraceEnd::Hold {
                return Ok(steps);
            }
            round += self.length;
        }
    }

    pub(super) fn into_parts(self) -> (Vec<(Timestamp, T)>, TimeDelta) {
        (self.steps, self.length)
    }

    pub(super) fn map<U>(self, value: impl Fn(T) -> U) -> Series<U> {
        let steps = self.steps.into_iter().map(|(at, of)| (at, value(of))).collect();
        Series { steps, length: self.length }
    }
}

/// The part of a recording that is used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// Start since the first row.
    pub(super) from: Option<TimeDelta>,
    /// End since the first row.
    pub(super) to: Option<TimeDelta>,
    /// What the times of the rows are, if that is known.
    pub(super) times: Option<RowTimes>,
}

/// What the values of rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Values {
    /// What holds from each row on.
    #[default]
    Levels,
    /// Amounts, each of the time of its row.
    Amounts,
    /// Amounts since a start before the first row.
    Counts,
}

/// The rows of a recording, as they are read.
#[derive(Debug)]
pub(super) struct Samples {
    list: Vec<Sample>,
    /// When the last row ends; `None` if it lasts as long as the one before.
    end: Option<i64>,
    /// Of a log, the last row of each time counts, and the times were measured.
    is_log: bool,
    /// What to do about times that go back.
    pub(super) hint: String,
    /// How long each row lasts if the times do not tell it.
    pub(super) usual: Option<TimeDelta>,
    /// What the values are.
    pub(super) values: Values,
    /// Whether the times are numbers of which nothing says the unit.
    pub(super) has_plain_times: bool,
    /// Whether it is known where the rows come from, and that the last one of each time counts.
    pub(super) is_known: bool,
}

impl Samples {
    /// Samples with increasing times.
    pub(super) fn strict() -> Self {
        Self {
            list: Vec::new(),
            end: None,
            is_log: false,
            hint: String::new(),
            usual: None,
            values: Values::Levels,
            has_plain_times: false,
            is_known: false,
        }
    }

    /// Rows of a log.
    pub(super) fn of_log() -> Self {
        Self { is_log: true, ..Self::strict() }
    }

    pub(super) fn has_values(&self) -> bool {
        self.list.iter().any(|sample| sample.value.is_some())
    }

    /// Adds a row with a value.
    pub(super) fn push(&mut self, line: usize, at: i64, value: f64) -> Result<()> {
        self.push_row(line, at, Some(value))
    }

    /// Adds a row.
    pub(super) fn push_row(&mut self, line: usize, at: i64, value: Option<f64>) -> Result<()> {
        let sample = Sample { at, value, line: u32::try_from(line).unwrap_or(u32::MAX) };
        if self.list.len() == MAX_SAMPLES {
            return Err(TraceError::at(line, &format!("more than {MAX_SAMPLES} samples")));
        }
        if at - self.list.first().map_or(at, |first| first.at) > MAX_LENGTH {
            return Err(TraceError::at(line, "more than 1000 hours after the first line"));
        }
        self.list.push(sample);
        Ok(())
    }

    /// Sets the end of the last row: rows that say how long they last need no look at their times.
    pub(super) fn end_at(&mut self, end: i64) {
        self.end = Some(end);
    }

    /// Puts the rows of a table into the order of time that has the newest one first.
    pub(super) fn turn_if_newest_first(&mut self) {
        let [first, .., last] = self.list.as_slice() else { return };
        let falls = self.list.windows(2).all(|pair| pair[0].at >= pair[1].at);
        // Two rows may be of two experiments.
        if self.list.len() > 2 && falls && first.at > last.at {
            self.list.reverse();
        }
    }

    /// The part of the rows between two times since the first.
    pub(super) fn series(&self, part: Part) -> Result<Series<f64>> {
        let Some(first) = self.list.first().map(|first| first.at) else {
            return Err(TraceError::of_file("the trace has no values"));
        };
        let mut run = self.run(first, part)?;
        match part.times {
            Some(RowTimes::Start) => {}
            Some(RowTimes::End) => run = run.shifted()?,
            None => {
                self.check_meaning(run.all)?;
                if let Some(usual) = self.bunched(run.all)? {
                    run = Run::every(run.all, usual);
                }
            }
        }
        match self.values {
            Values::Levels => {}
            Values::Amounts => run.amounts_to_rates()?,
            Values::Counts => run.counts_to_rates()?,
        }
        self.cut(&run, first, part)
    }

    /// The rows in order that hold the part.
    fn run(&self, first: i64, part: Part) -> Result<Run<'_>> {
        let out_of_order =
            |pair: &[Sample]| pair[0].at > pair[1].at || (pair[0].at == pair[1].at && !self.is_log);
        let breaks = self.list.windows(2).enumerate().filter(|(_, pair)| out_of_order(pair));
        let breaks: Vec<usize> = breaks.map(|(index, _)| index + 1).collect();
        let from = part.from.map_or(0, TimeDelta::as_nanos);
        let to = part.to.map(TimeDelta::as_nanos);
        let mut start = 0;
        for stop in breaks.iter().copied().chain([self.list.len()]) {
            let is_last = stop == self.list.len();
            let end = self.end.filter(|_| is_last);
            let run = Run::of(&self.list[start..stop], end, self.values);
            let begin = run.rows[0].at - first;
            let (is_first, end) = (start == 0, run.end - first);
            let has_start = match part.from {
                None => is_first,
                Some(_) => begin <= from && from < end,
            };
            let has_end = to.map_or(is_last, |to| to <= end);
            if (is_first && is_last) || (has_start && has_end) {
                return Ok(run);
            }
            start = stop;
        }
        let (before, sample) = (self.list[breaks[0] - 1], self.list[breaks[0]]);
        let words = if before.at == sample.at { "is that of" } else { "is earlier than that of" };
        let mut message = format!("the time {words} the line before{}", self.hint);
        if before.at > first && sample.at < before.at {
            let seconds = (before.at - first) as f64 / 1e9;
            message += &format!("; until there, to = \"{seconds}s\" is in order");
        }
        Err(TraceError::at(sample.line as usize, &message))
    }

    /// How long each row of a run lasts, if its times are not those at which they were measured: a
    /// log through a pipe has the times at which the pipe was emptied.
    fn bunched(&self, rows: &[Sample]) -> Result<Option<i64>> {
        if self.end.is_some() || rows.len() < 2 {
            return Ok(None);
        }
        let line = rows[1].line as usize;
        if rows[0].at == rows[rows.len() - 1].at {
            let message = "all rows have the same time; write how long each row lasts, by \
                           duration or interval";
            return Err(TraceError::at(line, message));
        }
        if let Some(usual) = self.usual.map(TimeDelta::as_nanos)
            && has_usual_rows(rows, usual)
        {
            return Ok(Some(usual));
        }
        if self.is_log && mean_of(rows) < SHORTEST {
            let message = "all rows came at once, as from a log that was buffered; write how long \
                           each row lasts, by duration or interval, or times = \"start\" if the \
                           times are right";
            return Err(TraceError::at(line, message));
        }
        if self.is_log && has_one_gap(rows) {
            return Ok(None);
        }
        if !self.is_known
            && self.values == Values::Levels
            && let Some((together, interval)) = rows_at_each_time(rows)
            && together < BUNCH
        {
            let interval = shown(interval);
            let message = format!(
                "most times have {together} rows or more; choose those of one by where, or if \
                 they follow each other, write interval = \"{interval}\", or times = \"start\" \
                 if the last one of each time counts"
            );
            return Err(TraceError::at(line, &message));
        }
        let Some(interval) = interval_of_bunches(rows) else { return Ok(None) };
        let interval = shown(interval);
        let column = if self.is_log { "" } else { " with column = 2 and unit" };
        let message = format!(
            "many rows have the time of another, as in a log that was buffered; write how long \
             each row lasts, such as interval = \"{interval}\"{column}, or times = \"start\" if \
             they are right"
        );
        Err(TraceError::at(line, &message))
    }

    /// Refuses numbers that seem to be other times than the seconds for which they would be taken.
    fn check_meaning(&self, rows: &[Sample]) -> Result<()> {
        let [first, second, ..] = rows else { return Ok(()) };
        if !self.has_plain_times || self.end.is_some() {
            return Ok(());
        }
        if are_clock_digits(rows) {
            let message = "the times never end with 60 to 99, as if they were hours, minutes and \
                           seconds; write time_format = \"%H%M%S\", or time_unit = \"s\" if they \
                           are seconds";
            return Err(TraceError::at(second.line as usize, message));
        }
        let seconds = first.at / NANOS_PER_SECOND;
        if DAYS.contains(&seconds) && mean_of(rows) < NANOS_PER_SECOND / MINUTES_PER_DAY {
            let message = format!(
                "times near {seconds} so close together may be days, as of a spreadsheet; write \
                 time_unit = \"d\", or \"s\" if they are seconds"
            );
            return Err(TraceError::at(second.line as usize, &message));
        }
        Ok(())
    }

    fn cut(&self, run: &Run, first: i64, part: Part) -> Result<Series<f64>> {
        let length = run.end - first;
        let from = part.from.map_or(0, TimeDelta::as_nanos).max(run.rows[0].at - first);
        let to = part.to.map_or(length, TimeDelta::as_nanos);
        if length > MAX_LENGTH {
            return Err(TraceError::of_file("the trace is longer than 1000 hours"));
        }
        if part.from.is_some_and(|from| from < TimeDelta::ZERO) || to > length || from >= to {
            let seconds = length as f64 / 1e9;
            let message = format!("from and to must lie in the trace, which has {seconds} s");
            return Err(TraceError::of_file(&message));
        }
        let start = run.rows.partition_point(|row| row.at - first <= from) - 1;
        let stop = run.rows.partition_point(|row| row.at - first < to);
        let rows = &run.rows[start..stop];
        if self.end.is_none() && (self.is_log || first > CALENDAR) {
            check_gaps(rows)?;
        }
        // Before the first value, it is taken to be that.
        let before = run.rows[..=start].iter().rev().find_map(|row| row.value);
        let Some(value) = before.or_else(|| run.rows.iter().find_map(|row| row.value)) else {
            return Err(TraceError::of_file("no row has a value"));
        };
        let mut steps = vec![(Timestamp::ZERO, value)];
        let mut is_known = before.is_some();
        for row in &rows[1..] {
            let Some(value) = row.value else { continue };
            if std::mem::replace(&mut is_known, true) {
                steps.push((Timestamp::from_nanos(row.at - first - from), value));
            }
        }
        Ok(Series { steps, length: TimeDelta::from_nanos(to - from) })
    }
}

/// Rows in order of time.
struct Run<'s> {
    /// All of them.
    all: &'s [Sample],
    /// The last one of each time; of amounts, their sum.
    rows: Vec<Sample>,
    /// When the last one ends.
    end: i64,
}

impl<'s> Run<'s> {
    /// The rows, of which there is one or more.
    fn of(all: &'s [Sample], end: Option<i64>, values: Values) -> Self {
        let mut rows: Vec<Sample> = Vec::with_capacity(all.len());
        for row in all {
            match rows.last_mut() {
                Some(last) if last.at == row.at => {
                    let sum = match (values, row.value, last.value) {
                        (Values::Amounts, Some(more), Some(amount)) => Some(amount + more),
                        _ => row.value.or(last.value),
                    };
                    *last = Sample { value: sum, ..*row };
                }
                _ => rows.push(*row),
            }
        }
        let last = rows[rows.len() - 1].at;
        let lasts = rows.len().checked_sub(2).map_or(ONE_SAMPLE, |before| last - rows[before].at);
        Self { all, rows, end: end.unwrap_or(last + lasts) }
    }

    /// The same values, of rows that each last as long.
    fn every(all: &'s [Sample], interval: i64) -> Self {
        let mut rows = all.to_vec();
        let mut at = rows[0].at;
        for row in &mut rows {
            row.at = at;
            at += interval;
        }
        Self { all, rows, end: at }
    }

    /// The same values, each from the time of the row before until its own. The first is not used.
    fn shifted(self) -> Result<Self> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for pair in self.rows.windows(2) {
            rows.push(Sample { at: pair[0].at, ..pair[1] });
        }
        let end = self.rows[self.rows.len() - 1].at;
        if rows.is_empty() {
            return Err(TraceError::of_file("a trace whose times are ends needs two rows or more"));
        }
        Ok(Self { rows, end, ..self })
    }
}

impl Run<'_> {
    /// Divides each amount by the time of its row.
    fn amounts_to_rates(&mut self) -> Result<()> {
        let mut until = self.end;
        for row in self.rows.iter_mut().rev() {
            if let Some(amount) = row.value {
                row.value = Some(rate_of(row, amount, until)?);
            }
            until = row.at;
        }
        Ok(())
    }

    /// Makes rates of what a counter gains from row to row. Rows without a value count nothing.
    fn counts_to_rates(&mut self) -> Result<()> {
        self.rows.retain(|row| row.value.is_some());
        let Some(last) = self.rows.pop().filter(|_| !self.rows.is_empty()) else {
            return Err(TraceError::of_file("a counter needs two rows or more"));
        };
        self.end = last.at;
        let mut next = last;
        for row in self.rows.iter_mut().rev() {
            let gained = next.value.unwrap_or_default() - row.value.unwrap_or_default();
            if gained < 0.0 {
                let message = "the counter goes back; choose a part before or after by from and to";
                return Err(TraceError::at(next.line as usize, message));
            }
            let rate = rate_of(row, gained, next.at)?;
            next = *row;
            row.value = Some(rate);
        }
        Ok(())
    }
}

/// The rate of an amount of data in the time of a row.
fn rate_of(row: &Sample, bits: f64, until: i64) -> Result<f64> {
    let seconds = (until - row.at) as f64 / 1e9;
    Unit::Rate(1.0).value(row.line as usize, bits / seconds)
}
