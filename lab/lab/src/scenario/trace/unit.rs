//! Units of values, and numbers.

use super::{Result, TraceError, Want, quoted};

/// Largest rate in bit/s, as in scenario files.
const MAX_RATE: f64 = 1e12;
/// Largest decibels in either direction.
const MAX_DECIBELS: f64 = 200.0;

/// The unit of the values of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// A rate, in bit/s.
    Rate(f64),
    /// Decibels, or decibels of a milliwatt.
    Decibels,
}

impl Unit {
    /// All units by their names in scenario files.
    pub const ALL: [(&'static str, Self); 13] = [
        ("bps", Self::Rate(1.0)),
        ("kbps", Self::Rate(1e3)),
        ("Mbps", Self::Rate(1e6)),
        ("Gbps", Self::Rate(1e9)),
        ("bit/s", Self::Rate(1.0)),
        ("kbit/s", Self::Rate(1e3)),
        ("Mbit/s", Self::Rate(1e6)),
        ("Gbit/s", Self::Rate(1e9)),
        ("B/s", Self::Rate(8.0)),
        ("kB/s", Self::Rate(8e3)),
        ("MB/s", Self::Rate(8e6)),
        ("dB", Self::Decibels),
        ("dBm", Self::Decibels),
    ];

    /// The unit at the end of a column's name, such as `throughput_mbps` or `RSRQ [dB]`.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let word = name.rsplit(['_', ' ', '[', '(', '/']).find(|word| !word.is_empty())?;
        let word = word.trim_end_matches([']', ')']).to_ascii_lowercase();
        let units = [
            ("bps", Self::Rate(1.0)),
            ("kbps", Self::Rate(1e3)),
            ("mbps", Self::Rate(1e6)),
            ("gbps", Self::Rate(1e9)),
            ("db", Self::Decibels),
            ("dbm", Self::Decibels),
        ];
        units.iter().find(|unit| unit.0 == word).map(|unit| unit.1)
    }

    /// Refuses a unit that does not measure what is wanted.
    pub(super) fn check(self, want: Want) -> Result<Self> {
        match (self, want) {
            (Self::Rate(_), Want::Decibels) => {
                Err(TraceError::of_file("decibels are wanted, and the values are rates"))
            }
            (Self::Decibels, Want::Up | Want::Down) => {
                Err(TraceError::of_file("rates are wanted, and the values are decibels"))
            }
            _ => Ok(self),
        }
    }

    /// The value of a number in bit/s or dB.
    pub(super) fn value(self, line: usize, number: f64) -> Result<f64> {
        let (value, least, most, words) = match self {
            Self::Rate(bps) => (number * bps, 0.0, MAX_RATE, "a rate from 0 to 1000 Gbit/s"),
            Self::Decibels => (number, -MAX_DECIBELS, MAX_DECIBELS, "from -200 to 200 dB"),
        };
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(TraceError::at(line, &format!("expected {words}, not {number}")))
    }

    /// The value of a text in bit/s or dB.
    pub(super) fn read(self, line: usize, text: &str) -> Result<f64> {
        match number(text) {
            Some(number) => self.value(line, number),
            None => Err(TraceError::at(line, &format!("expected a number, not {}", quoted(text)))),
        }
    }
}

/// A finite number in decimal digits.
pub(super) fn number(text: &str) -> Option<f64> {
    // Rust also parses words such as `infinity`.
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}
