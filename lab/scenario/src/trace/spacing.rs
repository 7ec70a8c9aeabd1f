//! How far the rows of a log are apart, and what that says about their times.

use super::{Result, TraceError};

/// Longest time between two rows of a log, in nanoseconds, if most are far closer. After a longer
/// one, a new experiment began.
const MAX_GAP: i64 = 60 * 1_000_000_000;
/// A gap is this many times the median between two rows.
const GAP: i64 = 10;
/// Most rows of a log that was buffered last less than this part of the mean.
const MOSTLY_SHORT: i64 = 20;
/// Rows that a buffer let go at once last less than this part of the mean. Events that follow each
/// other fast last longer: the parts of a film that fill an empty player again.
const AT_ONCE: i64 = 200;
/// Fewest rows that are called bunched: so many at once, or in all.
pub(super) const BUNCH: usize = 8;
/// Rows of a log that follow each other faster than this were written at once: no radio has shorter
/// slots, which last 62.5 us at the widest spacing of its subcarriers (3GPP TS 38.211 §4.3.2).
pub(super) const SHORTEST: i64 = 62_500;
pub(super) const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// The years 1982 to 2064 as spreadsheets count their days.
pub(super) const DAYS: std::ops::Range<i64> = 30_000..60_000;
pub(super) const MINUTES_PER_DAY: i64 = 1_440;
/// A bunch of a buffer comes after the time that its rows last, within this factor.
const REFILL: i64 = 3;

/// A row: its time, its value, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// In nanoseconds, since anything.
    pub(super) at: i64,
    /// `None` for a row without one: the value before stays.
    pub(super) value: Option<f64>,
    pub(super) line: u32,
}

/// Whether whole numbers of seconds seem to be the digits of a clock, such as `101159`: they pass
/// hundreds in small steps, and never have an end from 60 to 99.
pub(super) fn are_clock_digits(rows: &[Sample]) -> bool {
    let mut hundreds = 0;
    let mut longest = 0;
    for pair in rows.windows(2) {
        let (before, after) = (pair[0].at / NANOS_PER_SECOND, pair[1].at / NANOS_PER_SECOND);
        match before / 100 == after / 100 {
            true => longest = longest.max(after - before),
            false => hundreds += 1,
        }
    }
    for row in rows {
        let seconds = row.at / NANOS_PER_SECOND;
        if seconds % 100 >= 60 || seconds >= 240_000 {
            return false;
        }
    }
    hundreds > 0 && (1..=30).contains(&longest)
}

/// Whether the rows have a pause that a bunch of a buffer does not explain: after it, nothing more
/// than before is caught up, and there is no other such pause.
pub(super) fn has_one_gap(rows: &[Sample]) -> bool {
    let (longest, second) = longest_spaces(rows);
    rows.len() > 2 && longest > MAX_GAP && second * GAP < longest
}

/// The longest time between two rows, and the second longest.
fn longest_spaces(rows: &[Sample]) -> (i64, i64) {
    let (mut longest, mut second) = (0, 0);
    for pair in rows.windows(2) {
        let space = pair[1].at - pair[0].at;
        second = second.max(space.min(longest));
        longest = longest.max(space);
    }
    (longest, second)
}

/// How many rows or more most times have, and how long each lasts then, if the values of equal
/// times differ.
pub(super) fn rows_at_each_time(rows: &[Sample]) -> Option<(usize, i64)> {
    let (mut times, mut several, mut least) = (0, 0, usize::MAX);
    for same in rows.chunk_by(|a, b| a.at == b.at) {
        times += 1;
        let differ = same.iter().any(|row| row.value != same[0].value);
        if same.len() > 1 && differ {
            several += 1;
            least = least.min(same.len());
        }
    }
    let span = rows[rows.len() - 1].at - rows[0].at;
    let is_most = several * 2 > times && times > 1;
    if is_most { Some((least, span / (times - 1) * times / rows.len() as i64)) } else { None }
}

/// A time as a scenario has it.
pub(super) fn shown(nanos: i64) -> String {
    let micros = (nanos as f64 / 1e3).round().max(1.0);
    match micros >= 1e4 {
        true => format!("{}ms", (micros / 1e3).round()),
        false => format!("{micros}us"),
    }
}

/// Whether rows that each last so long have times that tell it only in the mean.
pub(super) fn has_usual_rows(rows: &[Sample], usual: i64) -> bool {
    let mean = mean_of(rows);
    let bunches = bunches_of(rows, mean / AT_ONCE);
    let interval = interval_of(rows, &bunches).unwrap_or(mean);
    let is_usual = (usual * 4 / 5..=usual * 5 / 4).contains(&interval);
    is_usual && bunches.iter().any(|bunch| bunch.rows > 1)
}

/// The mean time of a row, without those of the last bunch; `None` if there is only one bunch.
fn interval_of(rows: &[Sample], bunches: &[Bunch]) -> Option<i64> {
    let last = bunches.iter().rev().find(|bunch| bunch.before > 0)?;
    Some((last.at - rows[0].at) / last.before as i64)
}

/// The mean time from one of several rows to the next.
pub(super) fn mean_of(rows: &[Sample]) -> i64 {
    (rows[rows.len() - 1].at - rows[0].at) / (rows.len() as i64 - 1)
}

/// Rows that came at once.
#[derive(Clone, Copy)]
struct Bunch {
    /// When the first one came.
    at: i64,
    rows: usize,
    /// Different times of the rows.
    times: usize,
    /// How many rows came before.
    before: usize,
    /// Whether the first row has the value of the row before it. Points of a plot do: a stair has
    /// one point before each step and one after it.
    goes_on: bool,
}

/// How long a row lasts, if the rows came in bunches.
///
/// They did if most of them have next to no time of their own. They did as well if fewer came so,
/// each time after as long as their number takes: a line that stalled now and then.
pub(super) fn interval_of_bunches(rows: &[Sample]) -> Option<i64> {
    if rows.len() < BUNCH {
        return None;
    }
    let mean = mean_of(rows);
    let mut in_bunches = 0;
    let mut is_large = false;
    for pair in bunches_of(rows, mean / AT_ONCE).windows(2) {
        let (filled, takes) = (pair[1].at - pair[0].at, mean * pair[1].rows as i64);
        if filled < takes / REFILL || filled > takes * REFILL {
            continue;
        }
        is_large |= pair[1].rows >= BUNCH;
        if pair[1].times > 1 && !pair[1].goes_on {
            in_bunches += pair[1].rows;
        }
    }
    let bunches = bunches_of(rows, mean / MOSTLY_SHORT);
    let different: usize = bunches.iter().map(|bunch| bunch.times).sum();
    let is_mostly_short = 2 * (different - bunches.len()) > different - 1;
    let is_bunched = is_mostly_short || is_large || 4 * in_bunches > rows.len();
    if is_bunched { Some(interval_of(rows, &bunches).unwrap_or(mean)) } else { None }
}

/// The rows in bunches: those that follow each other within less than `short`.
fn bunches_of(rows: &[Sample], short: i64) -> Vec<Bunch> {
    let mut bunches: Vec<Bunch> = Vec::new();
    let mut before: Option<Sample> = None;
    for (index, row) in rows.iter().enumerate() {
        let last = before.replace(*row);
        let since = last.map(|last| row.at - last.at);
        match (since, bunches.last_mut()) {
            (Some(0), Some(bunch)) => bunch.rows += 1,
            (Some(since), Some(bunch)) if since < short => {
                bunch.rows += 1;
                bunch.times += 1;
            }
            _ => {
                let goes_on = last.is_some_and(|last| last.value == row.value);
                bunches.push(Bunch { at: row.at, rows: 1, times: 1, before: index, goes_on });
            }
        }
    }
    bunches
}

pub(super) fn check_gaps(rows: &[Sample]) -> Result<()> {
    let mut spaces: Vec<i64> = rows.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    spaces.sort_unstable();
    let Some(middle) = spaces.len().checked_sub(1).map(|last| spaces[last / 2]) else {
        return Ok(());
    };
    let longest = MAX_GAP.max(middle.saturating_mul(GAP));
    let gap = rows.windows(2).find(|pair| pair[1].at - pair[0].at > longest);
    let Some(&[before, after]) = gap else { return Ok(()) };
    let seconds = (after.at - before.at) / 1_000_000_000;
    let message = format!("{seconds} s after the line before; choose a part by where, from and to");
    Err(TraceError::at(after.line as usize, &message))
}
