//! Dates with the year first, in whatever way the parts are separated.

use super::numbers::is_digit;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Reads a date such as `2022-03-30 13:34:45.800`, `2019.12.14_10.16.30`, `2024/6/1 9:05:03` or
/// `2024-06-21T10:11:12-08:00`, in nanoseconds since 1970.
pub(super) fn date(text: &str) -> Option<i64> {
    if !text.is_ascii() {
        return None;
    }
    let (year, rest) = part(text, 4, "-./:")?;
    if text.len() - rest.len() != 5 {
        return None;
    }
    let (month, rest) = part(rest, 2, "-./:")?;
    let (day, rest) = part(rest, 2, "T _-")?;
    let (hour, rest) = part(rest, 2, ":.-")?;
    let (minute, rest) = part(rest, 2, ":.-")?;
    let (second, rest) = digits(rest, 2)?;
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

/// A number of up to so many digits before one of the separators.
fn part<'t>(text: &'t str, most: usize, separators: &str) -> Option<(i64, &'t str)> {
    let (number, rest) = digits(text, most)?;
    Some((number, rest.strip_prefix(|c| separators.contains(c))?))
}

/// A number of up to so many digits, and what follows it.
fn digits(text: &str, most: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    Some((whole(&text[..count])?, &text[count..]))
}

fn whole(text: &str) -> Option<i64> {
    // A sign is no digit.
    if text.chars().all(is_digit) { text.parse().ok() } else { None }
}

/// Seconds east of Greenwich of a zone such as `Z`, `-08:00` or `+0200 CEST`. If there is only its
/// name, zero, or an hour in summer: only differences count.
fn offset(zone: &str) -> Option<i64> {
    let zone = zone.trim();
    let (zone, name) = zone.split_once(' ').unwrap_or((zone, ""));
    if !name.is_empty() && !is_name_of_zone(name) {
        return None;
    }
    let sign = match zone.chars().next() {
        None => return Some(0),
        Some('+') => 1,
        Some('-') => -1,
        Some(_) if name.is_empty() && is_name_of_zone(zone) => {
            return Some(if is_summer(zone) { 3_600 } else { 0 });
        }
        Some(_) => return None,
    };
    let (hours, minutes) = match &zone[1..] {
        hours if hours.len() == 2 => (hours, "00"),
        both if both.len() == 4 => both.split_at(2),
        both => both.split_once(':').filter(|parts| parts.0.len() == 2 && parts.1.len() == 2)?,
    };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    (hours < 15 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Whether a word is the name of a zone, such as `UTC` or `CEST`.
fn is_name_of_zone(word: &str) -> bool {
    let is_half_of_day = ["AM", "PM"].iter().any(|half| word.eq_ignore_ascii_case(half));
    word.len() <= 5 && word.bytes().all(|byte| byte.is_ascii_alphabetic()) && !is_half_of_day
}

/// Whether a word is the name of a zone in summer, whose clocks are an hour ahead.
pub(super) fn is_summer(word: &str) -> bool {
    const EUROPE: [&str; 6] = ["CEST", "EEST", "WEST", "MEST", "MESZ", "BST"];
    let is_zone = (3..=5).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_uppercase());
    is_zone && (word.ends_with("DT") || EUROPE.contains(&word))
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
