//! Values over time.

use weir::units::{TimeDelta, Timestamp};
use weir_net::TraceEnd;

use super::{MAX_SAMPLES, Result, TraceError};

/// Longest recording, in nanoseconds: 1000 hours.
pub(super) const MAX_LENGTH: i64 = 1_000 * 3_600 * 1_000_000_000;
/// How long a recording of one sample lasts, in nanoseconds.
const ONE_SAMPLE: i64 = 1_000_000_000;
/// Times after this, in nanoseconds, are those of a calendar, not of an experiment.
const CALENDAR: i64 = 100_000_000 * 1_000_000_000;
/// Longest time between two samples of a calendar, in nanoseconds. After a longer one, a new
/// experiment began.
const MAX_GAP: i64 = 60 * 1_000_000_000;

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

    pub(super) fn into_parts(self) -> (Vec<(Timestamp, T)>, TimeDelta) {
        (self.steps, self.length)
    }

    pub(super) fn map<U>(self, value: impl Fn(T) -> U) -> Series<U> {
        let steps = self.steps.into_iter().map(|(at, of)| (at, value(of))).collect();
        Series { steps, length: self.length }
    }
}

/// A value and where it comes from.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// In nanoseconds, since anything.
    at: i64,
    value: f64,
    line: u32,
}

/// The samples of a recording, as they are read.
#[derive(Debug)]
pub(super) struct Samples {
    list: Vec<Sample>,
    /// When the last sample ends; `None` if it lasts as long as the one before.
    end: Option<i64>,
    /// What to do about times that go back.
    hint: &'static str,
    /// Whether a later sample at the same time replaces an earlier one.
    may_repeat: bool,
}

impl Samples {
    /// Samples with increasing times.
    pub(super) fn strict() -> Self {
        Self { list: Vec::new(), end: None, hint: "", may_repeat: false }
    }

    /// Samples of a log, in which the last one of each time counts.
    pub(super) fn of_log(hint: &'static str) -> Self {
        Self { list: Vec::new(), end: None, hint, may_repeat: true }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a sample.
    pub(super) fn push(&mut self, line: usize, at: i64, value: f64) -> Result<()> {
        let sample = Sample { at, value, line: u32::try_from(line).unwrap_or(u32::MAX) };
        match self.list.last_mut() {
            Some(last) if last.at > at || (last.at == at && !self.may_repeat) => {
                let words = if last.at == at { "is that of" } else { "is earlier than that of" };
                let message = format!("the time {words} the line before{}", self.hint);
                return Err(TraceError::at(line, &message));
            }
            Some(last) if last.at == at => {
                *last = sample;
                return Ok(());
            }
            _ => {}
        }
        if self.list.len() == MAX_SAMPLES {
            return Err(TraceError::at(line, &format!("more than {MAX_SAMPLES} samples")));
        }
        if at - self.list.first().map_or(at, |first| first.at) > MAX_LENGTH {
            return Err(TraceError::at(line, "more than 1000 hours after the first line"));
        }
        self.list.push(sample);
        Ok(())
    }

    /// Sets the end of the last sample.
    pub(super) fn end_at(&mut self, end: i64) {
        self.end = Some(end);
    }

    /// The part of the samples between two times since the first.
    pub(super) fn series(
        self,
        from: Option<TimeDelta>,
        to: Option<TimeDelta>,
    ) -> Result<Series<f64>> {
        let (Some(first), Some(last)) = (self.list.first(), self.list.last()) else {
            return Err(TraceError::of_file("the trace has no values"));
        };
        let before_last = self.list.len().checked_sub(2).map(|index| self.list[index].at);
        let lasts = before_last.map_or(ONE_SAMPLE, |before| last.at - before);
        let length = self.end.unwrap_or(last.at + lasts) - first.at;
        let from = from.map_or(0, TimeDelta::as_nanos);
        let to = to.map_or(length, TimeDelta::as_nanos);
        if length > MAX_LENGTH {
            return Err(TraceError::of_file("the trace is longer than 1000 hours"));
        }
        if from < 0 || to > length || from >= to {
            let seconds = length as f64 / 1e9;
            let message = format!("from and to must lie in the trace, which has {seconds} s");
            return Err(TraceError::of_file(&message));
        }
        let start = self.list.partition_point(|sample| sample.at - first.at <= from) - 1;
        let stop = self.list.partition_point(|sample| sample.at - first.at < to);
        let part = &self.list[start..stop];
        if first.at > CALENDAR {
            check_gaps(part)?;
        }
        let mut steps = Vec::with_capacity(part.len());
        for sample in part {
            let time = (sample.at - first.at - from).max(0);
            steps.push((Timestamp::from_nanos(time), sample.value));
        }
        Ok(Series { steps, length: TimeDelta::from_nanos(to - from) })
    }
}

fn check_gaps(samples: &[Sample]) -> Result<()> {
    let gap = samples.windows(2).find(|pair| pair[1].at - pair[0].at > MAX_GAP);
    let Some(&[before, after]) = gap else { return Ok(()) };
    let seconds = (after.at - before.at) / 1_000_000_000;
    let message = format!("{seconds} s after the line before; choose a part by where, from and to");
    Err(TraceError::at(after.line as usize, &message))
}
