//! Times of rows: numbers since anything, or dates.

use weir::units::TimeDelta;

use super::unit::number;

/// Latest time in seconds: in the year 2096.
const MAX_SECONDS: f64 = 4e9;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Reads a time into nanoseconds, rounded to microseconds: more digits than that of the seconds
/// since 1970 are lost in a number. `unit` is that of numbers; without one they are seconds, and
/// dates are read too.
pub(super) fn read(text: &str, unit: Option<TimeDelta>) -> Option<i64> {
    let scale = unit.map_or(1.0, TimeDelta::as_secs_f64);
    match number(text) {
        Some(number) => nanos(number * scale),
        None if unit.is_none() => date(text.trim()),
        None => None,
    }
}

/// Nanoseconds from seconds, rounded to microseconds.
pub(super) fn nanos(seconds: f64) -> Option<i64> {
    let is_time = (0.0..=MAX_SECONDS).contains(&seconds);
    is_time.then(|| (seconds * 1e6).round() as i64 * 1_000)
}

/// Reads a date such as `2022-03-30 13:34:45.800`, `2019.12.14_10.16.30` or
/// `2024-06-21T10:11:12-08:00`.
fn date(text: &str) -> Option<i64> {
    if !text.is_ascii() {
        return None;
    }
    let (year, rest) = digits(text, 4, "-./")?;
    let (month, rest) = digits(rest, 2, "-./")?;
    let (day, rest) = digits(rest, 2, "T _")?;
    let (hour, rest) = digits(rest, 2, ":.-")?;
    let (minute, rest) = digits(rest, 2, ":.-")?;
    let (second, rest) = (rest.get(..2)?, rest.get(2..)?);
    let second = whole(second)?;
    let is_date = (1970..=2096).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !is_date {
        return None;
    }
    let (fraction, zone) = match rest.strip_prefix(['.', ',']) {
        None => (0, rest),
        Some(rest) => {
            let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
            let micros: String = format!("{:0<6}", &rest[..end]).chars().take(6).collect();
            (whole(&micros)? * 1_000, &rest[end..])
        }
    };
    let of_day = hour * 3_600 + minute * 60 + second - offset(zone)?;
    Some((days_since_1970(year, month, day) * 86_400 + of_day) * NANOS_PER_SECOND + fraction)
}

/// A number of so many digits before one of the separators.
fn digits<'t>(text: &'t str, count: usize, separators: &str) -> Option<(i64, &'t str)> {
    let rest = text.get(count..)?.strip_prefix(|c| separators.contains(c))?;
    Some((whole(&text[..count])?, rest))
}

fn whole(text: &str) -> Option<i64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

/// Seconds east of Greenwich of a zone such as `Z` or `-08:00`; zero if there is none.
fn offset(zone: &str) -> Option<i64> {
    let zone = zone.trim();
    let sign = match zone.chars().next() {
        None => return Some(0),
        Some('+') => 1,
        Some('-') => -1,
        Some(_) => return ["Z", "UTC"].contains(&zone).then_some(0),
    };
    let (hours, minutes) = match &zone[1..] {
        hours if hours.len() == 2 => (hours, "00"),
        both if both.len() == 4 => both.split_at(2),
        both => both.split_once(':').filter(|parts| parts.0.len() == 2 && parts.1.len() == 2)?,
    };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    (hours < 15 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let years: i64 = (1970..year).map(|year| if days_in(year, 2) == 29 { 366 } else { 365 }).sum();
    let months: i64 = (1..month).map(|month| days_in(year, month)).sum();
    years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_of_its_unit_or_a_date() {
        let ms = Some(TimeDelta::from_millis(1));
        assert_eq!(read("1.5", None), Some(1_500_000_000));
        assert_eq!(read("1453121790686", ms), Some(1_453_121_790_686_000_000));
        let noon = Some(1_718_971_872_000_000_000);
        for text in [
            "2024-06-21 12:11:12",
            "2024.06.21_12.11.12",
            "2024-06-21T12:11:12.000Z",
            "2024-06-21T04:11:12-08:00",
            "2024-06-21T14:11:12+0200",
            "2024-06-21 14:11:12+02",
            "1718971872",
        ] {
            assert_eq!(read(text, None), noon, "{text}");
        }
        assert_eq!(read("1970-01-02 00:00:00.25", None), Some(86_400_250_000_000));
        assert_eq!(read("2024-06-21 12:11:12", ms), None);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "-1",
            "1e10",
            "inf",
            "now",
            "2024-13-01 00:00:00",
            "2023-02-29 00:00:00",
            "2024-06-21",
            "2024-06-21 24:00:00",
            "2024-06-21 12:11",
            "2024-06-21 12:11:12 CET",
            "2024-06-21 12:11:12+99",
            "20-24-06 12:11:12",
            "１970-01-01 00:00:00",
        ] {
            assert_eq!(read(text, None), None, "{text}");
        }
    }
}
