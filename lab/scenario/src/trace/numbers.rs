//! Numbers as people and programs write them: with groups of digits, decimal commas, and units.

use std::borrow::Cow;

use super::Decimal;

/// What parts the digits of a number into groups of three, whatever stands before its fraction.
const GROUPS: [char; 5] = ['\'', '’', '\u{a0}', '\u{202f}', ' '];

/// A finite number in decimal digits.
pub(super) fn number(text: &str) -> Option<f64> {
    // Rust also parses words such as `infinity`.
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The number that a text begins with, and what follows it, without the space between. The whole
/// number is read or none: what is not clear, such as `8,5` without a key, is no number.
pub(super) fn leading(text: &str, decimal: Option<Decimal>) -> Option<(f64, &str)> {
    // Nearly all are plain.
    if decimal != Some(Decimal::Comma)
        && let Some(number) = number(text)
    {
        return Some((number, ""));
    }
    let (token, rest) = token(text);
    Some((value(token, decimal)?, rest))
}

/// A number alone.
pub(super) fn whole(text: &str, decimal: Option<Decimal>) -> Option<f64> {
    let (number, rest) = leading(text, decimal)?;
    rest.is_empty().then_some(number)
}

/// The start of a text that may be a number, and what follows it.
fn token(text: &str) -> (&str, &str) {
    let text = text.trim();
    let mut end = text.find(is_not_of_number).unwrap_or(text.len());
    if let Some(power) = text[end..].strip_prefix(['e', 'E']) {
        let digits = power.trim_start_matches(['+', '-']);
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count > 0 && power.len() - digits.len() <= 1 {
            end = text.len() - digits.len() + count;
        }
    }
    (text[..end].trim_end(), text[end..].trim_start())
}

fn is_not_of_number(c: char) -> bool {
    !is_digit(c) && !"+-.,".contains(c) && !GROUPS.contains(&c)
}

/// Whether a letter is a digit.
pub(super) fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn is_no_digit(c: char) -> bool {
    !c.is_ascii_digit()
}

fn value(token: &str, decimal: Option<Decimal>) -> Option<f64> {
    if decimal == Some(Decimal::Comma) {
        return number(&with_point(token)?);
    }
    match number(token) {
        Some(number) => Some(number),
        None => grouped(token, ',', '.', decimal.is_some()),
    }
}

/// A number with a decimal comma or groups, with a decimal point and without groups.
fn with_point(token: &str) -> Option<Cow<'_, str>> {
    match grouped(token, '.', ',', true) {
        Some(number) => Some(Cow::Owned(number.to_string())),
        None if token.contains(',') => None,
        None => Some(Cow::Borrowed(token)),
    }
}

/// A number whose digits are parted into groups of three, such as `40'570'020` or `1,234,567.5`, or
/// with another mark before its fraction than a point. A `mark` that stands alone could be the
/// decimal one, so unless it is known not to be there must be two, or a fraction behind it.
fn grouped(token: &str, mark: char, point: char, is_known: bool) -> Option<f64> {
    let unsigned = token.strip_prefix(['-', '+']).unwrap_or(token);
    let sign = &token[..token.len() - unsigned.len()];
    let (unsigned, power) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at(at),
        None => (unsigned, ""),
    };
    let (whole, fraction) = unsigned.split_once(point).unwrap_or((unsigned, ""));
    if fraction.contains(is_no_digit) {
        return None;
    }
    let Some(of_groups) = whole.chars().find(|c| is_no_digit(*c)) else {
        // Nothing is parted, so it is a number only with its own mark.
        let is_number = point != '.' && !whole.is_empty() && !fraction.is_empty();
        let text = format!("{sign}{whole}.{fraction}{power}");
        return if is_number { number(&text) } else { None };
    };
    let is_clear = GROUPS.contains(&of_groups)
        || of_groups == mark
            && (is_known || !fraction.is_empty() || whole.matches(mark).count() > 1);
    let mut groups = whole.split(of_groups);
    let first = groups.next().unwrap_or_default();
    let mut digits = format!("{sign}{first}");
    let mut is_grouped = is_clear && (1..=3).contains(&first.len()) && first != "0";
    for group in groups {
        is_grouped &= group.len() == 3 && !group.contains(is_no_digit);
        digits.push_str(group);
    }
    if is_grouped { number(&format!("{digits}.{fraction}{power}")) } else { None }
}

/// What to write if the comma of a number is decimal, or parts its groups; nothing if it has none,
/// or if the key is there.
pub(super) fn hint(text: &str, decimal: Option<Decimal>) -> &'static str {
    let (token, _) = token(text);
    if decimal.is_some() || value(token, None).is_some() {
        return "";
    }
    let is_comma = value(token, Some(Decimal::Comma)).is_some();
    let is_point = value(token, Some(Decimal::Point)).is_some();
    match (is_comma, is_point) {
        (true, true) => {
            "; if commas are decimal, write decimal = \",\"; if they part thousands, \".\""
        }
        (true, false) => "; if commas are decimal, write decimal = \",\"",
        (false, true) => "; if commas part thousands, write decimal = \".\"",
        (false, false) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Option<Decimal> = Some(Decimal::Comma);
    const POINT: Option<Decimal> = Some(Decimal::Point);

    #[test]
    fn digits_in_groups_are_one_number_unless_a_comma_may_be_decimal() {
        let numbers = [
            ("40'570'020", 40_570_020.0),
            ("1,234,567", 1_234_567.0),
            ("1,234.5", 1_234.5),
            ("9’999", 9_999.0),
            ("12 500", 12_500.0),
            ("12\u{a0}500.25", 12_500.25),
            ("-1,234.5", -1_234.5),
            ("1,234.5e3", 1_234.5e3),
        ];
        for (text, number) in numbers {
            assert_eq!(whole(text, None), Some(number), "{text}");
            assert_eq!(whole(text, POINT), Some(number), "{text}");
        }
        for text in ["1,234", "1,23,456", "1'23", "1234,567,890", "a'123", "1.234.567", "'123"] {
            assert_eq!(whole(text, None), None, "{text}");
        }
        assert_eq!(whole("1,234", POINT), Some(1_234.0));
        assert_eq!(whole("8,5", POINT), None);
    }

    #[test]
    fn with_decimal_commas_points_part_thousands() {
        let numbers = [
            ("8,5", 8.5),
            ("-8,25", -8.25),
            ("8", 8.0),
            ("1.234", 1_234.0),
            ("1.234.567", 1_234_567.0),
            ("1.234,5", 1_234.5),
            ("12 500,25", 12_500.25),
            ("12'500,25", 12_500.25),
            ("8,5e3", 8_500.0),
            // Of a time in a file whose values have commas.
            ("1718964672.25", 1_718_964_672.25),
            ("0.512", 0.512),
        ];
        for (text, number) in numbers {
            assert_eq!(whole(text, COMMA), Some(number), "{text}");
        }
        for text in ["8,", ",5", "1.23,5", "1,234.5", "8,5,3", "a,5"] {
            assert_eq!(whole(text, COMMA), None, "{text}");
        }
    }

    #[test]
    fn the_error_names_the_key_for_the_comma() {
        for text in ["8,5", "-8,25", "1.234.567", "1.234.567,8", "12 500,25", "8,5 Mbit/s"] {
            assert!(hint(text, None).contains("write decimal = \",\""), "{text}");
            assert_eq!(hint(text, COMMA), "", "{text}");
        }
        assert!(hint("1,234", None).contains("part thousands"));
        for text in ["", "8", "8.5", "a,5", "8,", "1,234.5", "Mbit/s"] {
            assert_eq!(hint(text, None), "", "{text}");
        }
    }

    #[test]
    fn a_number_ends_where_its_unit_begins() {
        assert_eq!(leading("8.5 Mbit/s", None), Some((8.5, "Mbit/s")));
        assert_eq!(leading("8.5e3Mbit/s", None), Some((8_500.0, "Mbit/s")));
        assert_eq!(leading("8eggs", None), Some((8.0, "eggs")));
        assert_eq!(leading("40.5/0.5", None), Some((40.5, "/0.5")));
        assert_eq!(leading("8,5 Mbit/s", None), None);
        assert_eq!(leading("Mbit/s", None), None);
    }
}
