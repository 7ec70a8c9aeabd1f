//! Times of rows: numbers since anything, dates, or times of a day.

use chrono::format::{Item, Parsed, StrftimeItems};

use super::unit::number;

/// Latest time in seconds: in the year 2096.
const MAX_SECONDS: f64 = 4e9;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_DAY: i64 = 86_400 * NANOS_PER_SECOND;

/// Formats of dates that are read without being named. Dates with the day or the month first are
/// not: `01/02/2021` is either.
const FORMATS: [&str; 27] = [
    // date(1) with and without AM or PM, asctime, and RFC 2822. Those with PM come first, because
    // any word counts as a zone.
    "%a %b %e %I:%M:%S%.f %p %Z %Y",
    "%a %b %e %I:%M:%S%.f %p %Y",
    "%a %d %b %Y %I:%M:%S%.f %p %Z",
    "%a %b %e %H:%M:%S%.f %Z %Y",
    "%a %b %e %H:%M:%S%.f %Y",
    "%a %d %b %Y %H:%M:%S%.f %Z",
    "%a, %d %b %Y %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S %Z",
    "%d %b %Y %H:%M:%S%.f",
    "%d-%b-%Y %H:%M:%S%.f",
    "%d-%b-%y %H:%M:%S%.f",
    // Logs of web servers, and of syslog, which leaves the year out.
    "[%d/%b/%Y:%H:%M:%S %z]",
    "%d/%b/%Y:%H:%M:%S %z",
    "%b %e %H:%M:%S%.f",
    // With the month in words first, whole or short.
    "%B %e, %Y %I:%M:%S%.f %p",
    "%B %e, %Y %H:%M:%S%.f",
    "%A, %B %e, %Y %I:%M:%S%.f %p",
    // The short form of ISO 8601, and that of names of files.
    "%Y%m%dT%H%M%S%.f",
    "%Y%m%dT%H%M%S%.fZ",
    "%Y%m%d_%H%M%S%.f",
    "%Y%m%d-%H%M%S%.f",
    "%Y%m%d %H%M%S%.f",
    // With the year first, but AM or PM, or no seconds.
    "%Y-%m-%d %I:%M:%S%.f %p",
    "%Y/%m/%d %I:%M:%S%.f %p",
    "%Y-%m-%d %H:%M",
    "%I:%M:%S%.f %p",
    "%H:%M:%S%.f",
];

/// How to read the times of a file, and what day it is in a file that has times of day.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// The unit of numbers, in seconds; `None` for seconds.
    pub(super) unit: Option<f64>,
    /// Whether there are numbers only.
    pub(super) has_numbers_only: bool,
    /// The format of dates, as of strftime; `None` for those that are known.
    pub(super) format: Option<String>,
    day: i64,
    of_day: i64,
}

impl Clock {
    /// A clock of numbers in a unit in seconds, and only of those if the unit was chosen.
    pub(super) fn new(unit: Option<f64>, has_numbers_only: bool, format: Option<String>) -> Self {
        Self { unit, has_numbers_only, format, ..Self::default() }
    }

    /// Reads a time into nanoseconds, rounded to microseconds: more digits than that of the seconds
    /// since 1970 are lost in a number. Times of day go on after midnight.
    pub(super) fn read(&mut self, text: &str) -> Option<i64> {
        if let Some(format) = &self.format {
            let time = formatted(text.trim(), format)?;
            return Some(self.on_its_day(time));
        }
        // A number of 14 digits that is a date is none of seconds: it is beyond the year 2096.
        if self.unit.is_none()
            && text.trim().split('.').next().is_some_and(|whole| whole.len() == 14)
            && let Some(time) = formatted(text.trim(), "%Y%m%d%H%M%S%.f")
        {
            return Some(self.on_its_day(time));
        }
        match number(text) {
            Some(number) => nanos(number * self.unit.unwrap_or(1.0)),
            None if self.has_numbers_only => None,
            None => {
                let time = date(text.trim()).map(Time::Date).or_else(|| known(text.trim()))?;
                Some(self.on_its_day(time))
            }
        }
    }

    fn on_its_day(&mut self, time: Time) -> i64 {
        match time {
            Time::Date(nanos) => nanos,
            Time::OfDay(nanos) => {
                if nanos + NANOS_PER_DAY / 2 < self.of_day {
                    self.day += 1;
                }
                self.of_day = nanos;
                self.day * NANOS_PER_DAY + nanos
            }
        }
    }
}

/// A time in nanoseconds.
enum Time {
    /// Since 1970.
    Date(i64),
    /// Since midnight.
    OfDay(i64),
}

/// Whether a text is a format of dates or times.
pub(super) fn is_format(text: &str) -> bool {
    let mut fields = 0;
    for item in StrftimeItems::new(text) {
        match item {
            Item::Error => return false,
            Item::Numeric(..) | Item::Fixed(_) => fields += 1,
            _ => {}
        }
    }
    fields > 0
}

fn known(text: &str) -> Option<Time> {
    FORMATS.iter().find_map(|format| formatted(text, format))
}

/// Reads a text in a format. A time without a zone is of UTC; so is one whose zone is a name.
fn formatted(text: &str, format: &str) -> Option<Time> {
    let mut parsed = Parsed::new();
    chrono::format::parse(&mut parsed, text, StrftimeItems::new(format)).ok()?;
    // Only differences count, so any year will do that has a leap day.
    if parsed.year().is_none() && parsed.day().is_some() {
        parsed.set_year(2_000).ok()?;
    }
    let zone = parsed.offset().unwrap_or(0);
    let Ok(local) = parsed.to_naive_datetime_with_offset(zone) else {
        let time = parsed.to_naive_time().ok()?;
        let since_midnight = time.signed_duration_since(chrono::NaiveTime::MIN);
        return since_midnight.num_nanoseconds().map(Time::OfDay);
    };
    let nanos = local.and_utc().timestamp_nanos_opt()?;
    let nanos = nanos.checked_sub(i64::from(zone) * NANOS_PER_SECOND)?;
    (0..=MAX_SECONDS as i64 * NANOS_PER_SECOND).contains(&nanos).then_some(Time::Date(nanos))
}

/// Nanoseconds from seconds, rounded to microseconds.
pub(super) fn nanos(seconds: f64) -> Option<i64> {
    let is_time = (0.0..=MAX_SECONDS).contains(&seconds);
    if is_time { Some((seconds * 1e6).round() as i64 * 1_000) } else { None }
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

/// Seconds east of Greenwich of a zone such as `Z` or `-08:00`; zero if there is none, or only its
/// name.
fn offset(zone: &str) -> Option<i64> {
    let zone = zone.trim();
    let sign = match zone.chars().next() {
        None => return Some(0),
        Some('+') => 1,
        Some('-') => -1,
        Some(_) => return is_name_of_zone(zone).then_some(0),
    };
    let (hours, minutes) = match &zone[1..] {
        hours if hours.len() == 2 => (hours, "00"),
        both if both.len() == 4 => both.split_at(2),
        both => both.split_once(':').filter(|parts| parts.0.len() == 2 && parts.1.len() == 2)?,
    };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    (hours < 15 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Whether a word is the name of a zone, such as `UTC` or `CEST`, whose offset does not matter.
fn is_name_of_zone(word: &str) -> bool {
    let is_half_of_day = ["AM", "PM"].iter().any(|half| word.eq_ignore_ascii_case(half));
    word.len() <= 5 && word.bytes().all(|byte| byte.is_ascii_alphabetic()) && !is_half_of_day
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

    fn read(text: &str) -> Option<i64> {
        Clock::default().read(text)
    }

    const NOON: i64 = 1_718_971_872_000_000_000;

    #[test]
    fn a_time_is_a_number_of_its_unit_or_a_date() {
        let mut ms = Clock { unit: Some(1e-3), has_numbers_only: true, ..Clock::default() };
        assert_eq!(read("1.5"), Some(1_500_000_000));
        assert_eq!(ms.read("1453121790686"), Some(1_453_121_790_686_000_000));
        for text in [
            "2024-06-21 12:11:12",
            "2024.06.21_12.11.12",
            "2024-06-21T12:11:12.000Z",
            "2024-06-21T04:11:12-08:00",
            "2024-06-21T14:11:12+0200",
            "2024-06-21 14:11:12+02",
            "1718971872",
            "Fri Jun 21 12:11:12 UTC 2024",
            "Fri Jun 21 12:11:12 2024",
            "Fri, 21 Jun 2024 14:11:12 +0200",
            "21 Jun 2024 12:11:12.000",
            "21-Jun-2024 12:11:12",
            "Fri Jun 21 12:11:12 PM UTC 2024",
            "Fri Jun 21 12:11:12 PM 2024",
            "Fri 21 Jun 2024 12:11:12 PM UTC",
            "Fri 21 Jun 2024 12:11:12 UTC",
            "Fri Jun 21 12:11:12.000 2024",
            "Fri, 21 Jun 2024 12:11:12 GMT",
            "Jun 21, 2024 12:11:12 PM",
            "June 21, 2024 12:11:12",
            "Friday, June 21, 2024 12:11:12 PM",
            "20240621T121112Z",
            "20240621-121112",
            "20240621 121112",
            "20240621121112",
            "20240621121112.000",
            "2024-06-21 12:11:12 PM",
            "2024/06/21 12:11:12 PM",
        ] {
            assert_eq!(read(text), Some(NOON), "{text}");
        }
        assert_eq!(read("1970-01-02 00:00:00.25"), Some(86_400_250_000_000));
        assert_eq!(read("2024-06-21 12:11"), Some(NOON - 12 * NANOS_PER_SECOND));
        assert_eq!(ms.read("2024-06-21 12:11:12"), None);
    }

    #[test]
    fn a_format_says_how_other_dates_are_written() {
        let of = |text, format: &str| {
            assert!(is_format(format), "{format}");
            Clock { format: Some(format.into()), ..Clock::default() }.read(text)
        };
        assert_eq!(of("06/21/2024, 12:11:12 PM", "%m/%d/%Y, %I:%M:%S %p"), Some(NOON));
        assert_eq!(of("21.06.2024 12:11:12", "%d.%m.%Y %H:%M:%S"), Some(NOON));
        assert_eq!(of("20240621/121112", "%Y%m%d/%H%M%S"), Some(NOON));
        assert_eq!(of("1718971872", "%s"), Some(NOON));
        assert_eq!(
            of("01/16/2021, 4:04 PM", "%m/%d/%Y, %I:%M %p"),
            Some(1_610_813_040_000_000_000)
        );
        assert_eq!(of("12:11", "%H:%M"), Some(43_860 * NANOS_PER_SECOND));
        assert_eq!(of("2024-06-21 12:11:12", "%d.%m.%Y %H:%M:%S"), None);
        for format in ["", "date", "%", "%J"] {
            assert!(!is_format(format), "{format}");
        }
    }

    #[test]
    fn times_of_day_go_on_after_midnight() {
        let mut clock = Clock::default();
        let noon = ["11:59:59 AM", "12:00:01 PM", "11:59:59 PM", "12:00:00 AM"];
        let times = noon.map(|text| clock.read(text).unwrap() / NANOS_PER_SECOND);
        assert_eq!(times, [43_199, 43_201, 86_399, 86_400]);
        let mut clock = Clock::default();
        let texts = ["23:59:59", "00:00:00.5", "00:00:01", "00:00:00"];
        let times = texts.map(|text| clock.read(text).unwrap() - NANOS_PER_DAY);
        assert_eq!(times, [-1_000_000_000, 500_000_000, 1_000_000_000, 0]);
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
            "2024-06-21 12:11:12+99",
            "20-24-06 12:11:12",
            "01/02/2021 12:11:12",
            "12:11",
            "１970-01-01 00:00:00",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
