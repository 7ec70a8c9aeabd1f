//! Times of day as dumps write them: ISO 8601, and the dates of a browser's language.

/// Where the clock has twelve hours, names of the halves of a day, and when they begin.
const HALVES: [(&str, u32); 10] = [
    ("am", 0),
    ("a.m", 0),
    ("a. m", 0),
    ("上午", 0),
    ("오전", 0),
    ("pm", 12),
    ("p.m", 12),
    ("p. m", 12),
    ("下午", 12),
    ("오후", 12),
];

/// A date as the languages of browsers write it, in ms since 1970 on that clock: `11/5/2020,
/// 9:34:11 PM`, `5.11.2020, 21:34:11`, `2020/11/5 21:34:11`. Of two small numbers, the first is
/// the day, but in America.
pub(super) fn local_date(text: &str) -> Option<f64> {
    let (before, rest) = text.split_once(':')?;
    let mut numbers = numbers(before);
    let hour = numbers.pop()?;
    let (a, b, c) = (*numbers.first()?, *numbers.get(1)?, *numbers.get(2)?);
    let (year, month, day) = match (a, b, c) {
        (1_000.., ..) => (a, b, c),
        _ if a <= 12 && b > 12 || text.contains(['A', 'P']) => (c, a, b),
        _ => (c, b, a),
    };
    let words = text.to_lowercase();
    let mut hour = hour;
    for (name, begin) in HALVES {
        if words.contains(name) {
            hour = hour % 12 + begin;
        }
    }
    let minutes = self::numbers(rest);
    let (minute, second) = (minutes.first()?, minutes.get(1).unwrap_or(&0));
    since_1970(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// The whole numbers in a text.
fn numbers(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(char::is_numeric) {
        rest = &rest[at..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        found.extend(rest[..length].parse::<u32>());
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    found
}

/// A time of ISO 8601 in UTC, in ms since 1970.
pub(super) fn since_1970(text: &str) -> Option<f64> {
    let utc = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
    let (date, clock) = utc.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_sound =
        (1970..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_sound || !(0.0..61.0).contains(&second) {
        return None;
    }
    // Years begin in March, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    const DAYS_TO_1970: i64 = 719_468;
    let hours = (days - DAYS_TO_1970) as f64 * 24.0 + hour;
    Some(((hours * 60.0 + minute) * 60.0 + second) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_counted_from_1970() {
        assert_eq!(since_1970("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(since_1970("2000-02-29T12:00:00Z"), Some(951_825_600_000.0));
        assert_eq!(since_1970("2026-11-23T04:32:47.346Z"), Some(1_795_408_367_346.0));
        assert_eq!(local_date("1/1/1970, 12:00:01 AM"), Some(1_000.0));
        assert_eq!(local_date("2/29/2000, 12:00:00 PM"), Some(951_825_600_000.0));
        for written in [
            "11/5/2020, 9:34:11 PM",
            "05/11/2020, 9:34:11 pm",
            "5.11.2020, 21:34:11",
            "05/11/2020 21:34:11",
            "2020/11/5 21:34:11",
            "2020-11-05 21:34:11",
            "2020. 11. 5. 오후 9:34:11",
        ] {
            assert_eq!(local_date(written), since_1970("2020-11-05T21:34:11Z"), "{written}");
        }
        assert_eq!(local_date("yesterday at 9:34"), None);
        assert_eq!(since_1970("yesterday"), None);
        assert_eq!(since_1970("1969-01-01T00:00:00Z"), None);
    }
}
