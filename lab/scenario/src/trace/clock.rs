//! Times of rows: numbers since anything, dates, or times of a day.

use chrono::format::{Item, Parsed, StrftimeItems};

use super::date::{date, is_summer};
use super::numbers::{self, is_digit};
use super::{Decimal, Options};

/// Latest time in seconds: in the year 2096.
const MAX_SECONDS: f64 = 4e9;
/// Latest time of numbers in minutes, hours or days, in seconds: days may count from 1900.
const MAX_LONG: f64 = 9e9;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_HOUR: i64 = 3_600 * NANOS_PER_SECOND;
const NANOS_PER_DAY: i64 = 24 * NANOS_PER_HOUR;
/// The year of dates without one, which has a leap day.
const ANY_YEAR: i64 = 2_000;
const NANOS_PER_YEAR: i64 = 366 * NANOS_PER_DAY;
/// Most words of a date.
const DATE_WORDS: usize = 6;

/// Formats of dates that are read without being named. Dates with the day or the month first are
/// not: `01/02/2021` is either.
const FORMATS: [&str; 28] = [
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
    "%A, %d-%b-%y %H:%M:%S %Z",
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
    /// What stands in numbers before the fraction.
    pub(super) decimal: Option<Decimal>,
    /// Days, or whatever else the times begin anew with, that have passed.
    rounds: i64,
    of_round: i64,
}

impl Clock {
    /// A clock of numbers in a unit in seconds, and only of those if the unit was chosen.
    pub(super) fn new(unit: Option<f64>, has_numbers_only: bool, options: &Options) -> Self {
        let (format, decimal) = (options.time_format.clone(), options.decimal);
        Self { unit, has_numbers_only, format, decimal, ..Self::default() }
    }

    /// Whether it reads numbers as seconds because nothing says otherwise.
    pub(super) fn is_plain(&self) -> bool {
        self.unit.is_none() && self.format.is_none()
    }

    /// Reads a time into nanoseconds, rounded to microseconds: more digits than that of the seconds
    /// since 1970 are lost in a number. Times of day go on after midnight.
    pub(super) fn read(&mut self, text: &str) -> Option<i64> {
        let text = text.trim();
        if let Some(format) = &self.format {
            let time = formatted(text, format)?;
            return Some(self.in_order(time));
        }
        // A number of so many digits that is a date is none of seconds: it is beyond the year 2096.
        if self.unit.is_none()
            && let Some(format) = format_of_digits(text)
            && let Some(time) = formatted(text, format)
        {
            return Some(self.in_order(time));
        }
        match numbers::whole(text, self.decimal) {
            Some(number) => {
                let unit = self.unit.unwrap_or(1.0);
                let most = if unit > 1.0 { MAX_LONG } else { MAX_SECONDS };
                nanos_up_to(number * unit, most)
            }
            None if self.has_numbers_only => None,
            None => {
                let time = date(text).map(Time::Date).or_else(|| known(text));
                let time = time.or_else(|| elapsed(text))?;
                Some(self.in_order(time))
            }
        }
    }

    /// The time that a text begins with: as many of its words as make one.
    pub(super) fn leading(&mut self, text: &str) -> Option<i64> {
        let mut end = 0;
        for _ in 0..DATE_WORDS {
            let rest = &text[end..];
            let start = end + (rest.len() - rest.trim_start().len());
            let word = text[start..].find([' ', '\t', ']', ')', ';']).unwrap_or(text.len() - start);
            end = start + word;
            let tried = text[..end].trim_end_matches([',', ':', '"']);
            if let Some(at) = self.read(tried) {
                return Some(at);
            }
            if end == text.len() {
                break;
            }
        }
        None
    }

    /// A time that begins anew each hour, day or year goes on after the one before.
    fn in_order(&mut self, time: Time) -> i64 {
        let (of_round, round) = match time {
            Time::Date(nanos) => return nanos,
            Time::OfHour(nanos) => (nanos, NANOS_PER_HOUR),
            Time::OfDay(nanos) => (nanos, NANOS_PER_DAY),
            Time::OfYear(nanos) => (nanos, NANOS_PER_YEAR),
        };
        if of_round + round / 2 < self.of_round {
            self.rounds += 1;
        }
        self.of_round = of_round;
        self.rounds * round + of_round
    }
}

/// A time in nanoseconds.
enum Time {
    /// Since 1970.
    Date(i64),
    /// Since the hour began.
    OfHour(i64),
    /// Since midnight.
    OfDay(i64),
    /// Of a date without its year.
    OfYear(i64),
}

/// The format of a date in digits alone, such as `20240621101112345`.
fn format_of_digits(text: &str) -> Option<&'static str> {
    let whole = text.split('.').next()?;
    match whole.len() {
        14 => Some("%Y%m%d%H%M%S%.f"),
        17 if whole.len() == text.len() => Some("%Y%m%d%H%M%S%3f"),
        20 if whole.len() == text.len() => Some("%Y%m%d%H%M%S%6f"),
        _ => None,
    }
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

/// Reads a text in a format that needs no key. The seconds of a time may have a decimal comma.
fn known(text: &str) -> Option<Time> {
    let with_point;
    let text = match text.rsplit_once(',') {
        Some((whole, digits)) if whole.ends_with(is_digit) && digits.chars().all(is_digit) => {
            with_point = format!("{whole}.{digits}");
            with_point.as_str()
        }
        _ => text,
    };
    FORMATS.iter().find_map(|format| formatted(text, format))
}

/// Reads a time since a start such as `25:00:00.5`, which has more hours than a day.
fn elapsed(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let (Some(hours), Some(minutes), Some(seconds), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let is_time = hours.chars().all(is_digit) && minutes.len() == 2 && seconds.len() >= 2;
    let (hours, minutes) = (numbers::number(hours)?, numbers::number(minutes)?);
    let seconds = numbers::number(seconds)?;
    let is_time = is_time && (0.0..60.0).contains(&minutes) && (0.0..60.0).contains(&seconds);
    let nanos = nanos(hours * 3_600.0 + minutes * 60.0 + seconds)?;
    is_time.then_some(Time::OfDay(nanos))
}

/// Reads a text in a format. A time without a zone is of UTC; so is one whose zone is a name, but
/// for the hour of summer.
fn formatted(text: &str, format: &str) -> Option<Time> {
    let mut parsed = Parsed::new();
    chrono::format::parse(&mut parsed, text, StrftimeItems::new(format)).ok()?;
    // Only differences count.
    let has_year = parsed.year().is_some() || parsed.year_mod_100().is_some();
    let is_of_year = !has_year && parsed.day().is_some();
    if is_of_year {
        parsed.set_year(ANY_YEAR).ok()?;
    }
    let has_hour = parsed.hour_div_12().is_some() || parsed.hour_mod_12().is_some();
    let is_of_hour = !has_hour && parsed.minute().is_some() && parsed.timestamp().is_none();
    if is_of_hour {
        parsed.set_hour(0).ok()?;
    }
    let is_summer = format.contains("%Z") && text.split_whitespace().any(is_summer);
    let zone = parsed.offset().unwrap_or(if is_summer { 3_600 } else { 0 });
    let Ok(local) = parsed.to_naive_datetime_with_offset(zone) else {
        let time = parsed.to_naive_time().ok()?;
        let nanos = time.signed_duration_since(chrono::NaiveTime::MIN).num_nanoseconds()?;
        return Some(if is_of_hour { Time::OfHour(nanos) } else { Time::OfDay(nanos) });
    };
    let nanos = local.and_utc().timestamp_nanos_opt()?;
    let nanos = nanos.checked_sub(i64::from(zone) * NANOS_PER_SECOND)?;
    let is_date = (0..=MAX_SECONDS as i64 * NANOS_PER_SECOND).contains(&nanos);
    is_date.then_some(if is_of_year { Time::OfYear(nanos) } else { Time::Date(nanos) })
}

/// Nanoseconds from seconds, rounded to microseconds.
pub(super) fn nanos(seconds: f64) -> Option<i64> {
    nanos_up_to(seconds, MAX_SECONDS)
}

fn nanos_up_to(seconds: f64, most: f64) -> Option<i64> {
    let is_time = (0.0..=most).contains(&seconds);
    if is_time { Some((seconds * 1e6).round() as i64 * 1_000) } else { None }
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
            "2024-6-21 12:11:12",
            "2024/6/21 12:11:12",
            "2024:06:21 12:11:12",
            "2024-06-21-12-11-12",
            "2024-06-21 14:11:12.000 +0200 CEST",
            "2024-06-21 13:11:12 CEST",
            "Fri Jun 21 13:11:12 EDT 2024",
            "Friday, 21-Jun-24 12:11:12 GMT",
            "20240621121112000",
            "20240621121112000000",
        ] {
            assert_eq!(read(text), Some(NOON), "{text}");
        }
        assert_eq!(read("1970-01-02 00:00:00.25"), Some(86_400_250_000_000));
        assert_eq!(read("1970-1-2 0:0:5"), Some(86_405_000_000_000));
        assert_eq!(read("12:11:12,250"), read("12:11:12.25"));
        assert_eq!(read("20240621121112250"), Some(NOON + 250_000_000));
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
        assert_eq!(of("12:11", "%M:%S"), Some(731 * NANOS_PER_SECOND));
        assert_eq!(of("12:11.5", "%M:%S%.f"), Some(731_500_000_000));
        assert_eq!(of("121112", "%H%M%S"), Some(43_872 * NANOS_PER_SECOND));
        assert_eq!(of("06/21/24 12:11:12", "%m/%d/%y %H:%M:%S"), Some(NOON));
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
    fn times_of_an_hour_or_a_year_go_on_after_it() {
        let gained = |mut clock: Clock, texts: [&str; 2]| {
            let [before, after] = texts.map(|text| clock.read(text).unwrap());
            (after - before) / NANOS_PER_SECOND
        };
        let new_year = ["Dec 31 23:59:59", "Jan  1 00:00:01"];
        assert_eq!(gained(Clock::default(), new_year), 2);
        let of_hour = Clock { format: Some("%M:%S".into()), ..Clock::default() };
        assert_eq!(gained(of_hour, ["59:59", "00:01"]), 2);
        assert_eq!(gained(Clock::default(), ["23:59:59", "24:00:01.5"]), 2);
        assert_eq!(gained(Clock::default(), ["99:59:59", "100:00:01"]), 2);
    }

    #[test]
    fn a_named_zone_counts_as_utc_but_for_the_hour_of_summer() {
        for pair in [
            ["2024-03-31 01:59:59 CET", "2024-03-31 03:00:00 CEST"],
            ["2024-10-27 02:59:59 CEST", "2024-10-27 02:00:00 CET"],
            ["Sun Nov  3 01:59:59 EDT 2024", "Sun Nov  3 01:00:00 EST 2024"],
            ["Sun Nov  3 01:59:59 AM PDT 2024", "Sun Nov  3 01:00:00 AM PST 2024"],
        ] {
            let [before, after] = pair.map(|text| read(text).unwrap());
            assert_eq!(after - before, NANOS_PER_SECOND, "{pair:?}");
        }
    }

    #[test]
    fn numbers_of_days_may_count_from_1900() {
        let mut days = Clock { unit: Some(86_400.0), ..Clock::default() };
        let [before, after] = ["60000.5", "60001.5"].map(|text| days.read(text).unwrap());
        assert_eq!(after - before, NANOS_PER_DAY);
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
            "12:60:00",
            "25:00",
            "25:00:61",
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
