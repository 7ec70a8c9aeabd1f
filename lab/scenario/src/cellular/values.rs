//! Values of several keys: numbers within a range, and values for each direction.

use std::ops::RangeInclusive;

use weir::units::{DataSize, TimeDelta};
use weir_net::cellular::Directions;

use super::Result;
use crate::error::quoted;
use crate::reader::{Item, Table};

const WAYS: &[&str] = &["up", "down"];

/// A number within a range.
pub(super) fn within(item: &Item, range: RangeInclusive<f64>) -> Result<f64> {
    let number = item.number()?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(item.error(&format!("must be between {} and {}", range.start(), range.end())))
}

/// A whole number within a range.
pub(super) fn whole(item: &Item, range: RangeInclusive<u32>) -> Result<u32> {
    let number = item.number()?;
    let (min, max) = (*range.start(), *range.end());
    if number.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(&number) {
        return Ok(number as u32);
    }
    Err(item.error(&format!("must be a whole number from {min} to {max}")))
}

/// A time within a range.
pub(super) fn time(item: &Item, range: RangeInclusive<TimeDelta>) -> Result<TimeDelta> {
    let time = item.time()?;
    if range.contains(&time) {
        return Ok(time);
    }
    let [least, most] = [range.start(), range.end()].map(|time| time.as_millis_f64());
    Err(item.error(&format!("must be between {least}ms and {most}ms")))
}

/// A size within a range of bytes.
pub(super) fn size(item: &Item, range: RangeInclusive<u64>) -> Result<DataSize> {
    let size = item.size()?;
    if range.contains(&size.as_bytes()) {
        return Ok(size);
    }
    Err(item.error(&format!("must be between {}B and {}B", range.start(), range.end())))
}

/// A number within a range, or the default.
pub(super) fn within_or(
    table: &Table,
    key: &'static str,
    default: f64,
    range: RangeInclusive<f64>,
) -> Result<f64> {
    table.or(key, default, |item| within(item, range))
}

/// A whole number within a range, or the default.
pub(super) fn whole_or(
    table: &Table,
    key: &'static str,
    default: u32,
    range: RangeInclusive<u32>,
) -> Result<u32> {
    table.or(key, default, |item| whole(item, range))
}

/// A time within a range, or the default.
pub(super) fn time_or(
    table: &Table,
    key: &'static str,
    default: TimeDelta,
    range: RangeInclusive<TimeDelta>,
) -> Result<TimeDelta> {
    table.or(key, default, |item| time(item, range))
}

/// Reads one value for both directions, or `{ up = ..., down = ... }`. A direction that is left out
/// has its default, if there is one.
pub(super) fn directed<'a, V: Clone>(
    item: &Item<'a>,
    default: Option<Directions<V>>,
    read: impl Fn(&Item<'a>) -> Result<V>,
) -> Result<Directions<V>> {
    if !item.is_table() || item.named()?.iter().all(|(name, _)| !WAYS.contains(name)) {
        return read(item).map(Directions::both);
    }
    let table = item.table(WAYS)?;
    let (up, down) = default.map_or((None, None), |it| (Some(it.up), Some(it.down)));
    let [up, down] =
        [("up", up), ("down", down)].map(|(key, default)| match (table.get(key), default) {
            (Some(item), _) => read(&item),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(table.error(&format!("{key} is missing; write both directions"))),
        });
    Ok(Directions { up: up?, down: down? })
}

/// Reads a frequency such as `"1.8GHz"` in hertz.
pub(super) fn frequency(item: &Item) -> Result<f64> {
    let text = item.string("a frequency such as \"1.8GHz\"")?.trim();
    let units = [("MHz", 1e6), ("GHz", 1e9)];
    let mut number = None;
    for (unit, hertz) in units {
        let Some(digits) = text.strip_suffix(unit) else { continue };
        let digits = digits.trim_end();
        let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
        if let (true, Ok(plain)) = (is_plain, digits.parse::<f64>()) {
            number = Some(plain * hertz);
        }
    }
    match number {
        Some(hertz) if (1e8..=1e11).contains(&hertz) => Ok(hertz),
        Some(_) => Err(item.error("must be between 100MHz and 100GHz")),
        None => Err(item.error(&format!(
            "{} is not a frequency; write a number and a unit, such as \"1.8GHz\"",
            quoted(text)
        ))),
    }
}
