//! Times of day, in UTC: tickets say "at 10:32", and not "at 74 s".

const DAY_MS: f64 = 24.0 * 3.6e6;

/// `2025-11-29T07:06:40.000Z`, of ms since 1970. `None` before 1970 and after the year 9999.
pub fn iso_8601(ms: f64) -> Option<String> {
    let (year, month, day) = date(ms)?;
    let (hour, minute, second) = clock_parts(ms);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:06.3}Z"))
}

/// `2025-11-29 07:06:40 UTC`.
pub fn date_and_clock(ms: f64) -> Option<String> {
    let (year, month, day) = date(ms)?;
    Some(format!("{year:04}-{month:02}-{day:02} {} UTC", clock(ms)?))
}

/// `07:06:40`.
pub fn clock(ms: f64) -> Option<String> {
    date(ms)?;
    let (hour, minute, second) = clock_parts(ms);
    Some(format!("{hour:02}:{minute:02}:{:02}", second as u64))
}

fn clock_parts(ms: f64) -> (u64, u64, f64) {
    let ms = ms.round().rem_euclid(DAY_MS);
    let minutes = (ms / 6e4).floor();
    ((minutes / 60.0) as u64, minutes as u64 % 60, (ms - minutes * 6e4) / 1e3)
}

/// Year, month and day. Years begin in March, so that the leap day is the last.
fn date(ms: f64) -> Option<(i64, i64, i64)> {
    const DAYS_FROM_0: i64 = 719_468;
    const DAYS_OF_400_YEARS: i64 = 146_097;
    if !(0.0..2.5e14).contains(&ms) {
        return None;
    }
    let days = (ms.round() / DAY_MS).floor() as i64 + DAYS_FROM_0;
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let day = days.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    Some((year + era * 400 + i64::from(month <= 2), month, day_of_month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_since_1970_has_a_date_and_a_time_of_day() {
        assert_eq!(iso_8601(0.0).unwrap(), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_8601(951_825_600_000.0).unwrap(), "2000-02-29T12:00:00.000Z");
        assert_eq!(iso_8601(1_795_408_367_346.0).unwrap(), "2026-11-23T04:32:47.346Z");
        assert_eq!(date_and_clock(1_795_408_367_346.0).unwrap(), "2026-11-23 04:32:47 UTC");
        assert_eq!(clock(1_767_225_599_999.6).unwrap(), "00:00:00");
        assert_eq!((iso_8601(-1.0), clock(f64::NAN)), (None, None));
    }
}
