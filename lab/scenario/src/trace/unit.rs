//! Units of values and times, and numbers.

use super::{Result, TraceError, Want, quoted};

/// Largest rate in bit/s, as in scenario files.
const MAX_RATE: f64 = 1e12;
/// Largest decibels in either direction.
const MAX_DECIBELS: f64 = 200.0;
/// Longest delay in seconds.
const MAX_DELAY: f64 = 1_000.0;

/// The unit of the values of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// A rate, in bit/s.
    Rate(f64),
    /// Decibels, or decibels of a milliwatt.
    Decibels,
    /// A time, in seconds.
    Time(f64),
    /// A share, of 1.
    Share(f64),
}

impl Unit {
    /// All units by their names in scenario files.
    pub const ALL: [(&'static str, Self); 19] = [
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
        ("s", Self::Time(1.0)),
        ("ms", Self::Time(1e-3)),
        ("us", Self::Time(1e-6)),
        ("ns", Self::Time(1e-9)),
        ("%", Self::Share(0.01)),
        ("ratio", Self::Share(1.0)),
    ];

    /// The unit at the end of a column's name, such as `throughput_mbps`, `rate [MB/s]`,
    /// `bandwidth_kbit_s`, `RSRQ [dB]` or `loss %`. `None` if the name has none, or if it is one of
    /// several, such as `MBPS`.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let words = words(name);
        let last = *words.last()?;
        match last.to_ascii_lowercase().as_str() {
            "db" | "dbm" => return Some(Self::Decibels),
            "%" | "percent" | "pct" => return Some(Self::Share(0.01)),
            "ratio" | "share" | "fraction" => return Some(Self::Share(1.0)),
            _ => {}
        }
        if let Some(amount) = last.strip_suffix("ps") {
            return amount_per_second(amount).map(Self::Rate);
        }
        let is_second = ["s", "sec", "second", "seconds"].contains(&last);
        match words.as_slice() {
            [.., amount, "per", _] if is_second => amount_per_second(amount).map(Self::Rate),
            [.., amount, _] if is_second && is_amount(amount) => {
                amount_per_second(amount).map(Self::Rate)
            }
            _ => time_of_name(name).map(Self::Time),
        }
    }

    /// Refuses a unit that does not measure what is wanted.
    pub(super) fn check(self, want: Want) -> Result<Self> {
        let (wanted, fits) = match want {
            Want::Up | Want::Down => ("rates are", matches!(self, Self::Rate(_))),
            Want::Decibels => ("decibels are", self == Self::Decibels),
            Want::Delay | Want::Jitter => ("times are", matches!(self, Self::Time(_))),
            Want::Loss => ("a share of packets is", matches!(self, Self::Share(_))),
        };
        if fits {
            return Ok(self);
        }
        let found = match self {
            Self::Rate(_) => "rates",
            Self::Decibels => "decibels",
            Self::Time(_) => "times",
            Self::Share(_) => "shares",
        };
        Err(TraceError::of_file(&format!("{wanted} wanted, and the values are {found}")))
    }

    /// The value of a number in bit/s, dB, seconds, or of 1.
    pub(super) fn value(self, line: usize, number: f64) -> Result<f64> {
        let (value, least, most, words) = match self {
            Self::Rate(bps) => (number * bps, 0.0, MAX_RATE, "a rate from 0 to 1000 Gbit/s"),
            Self::Decibels => (number, -MAX_DECIBELS, MAX_DECIBELS, "from -200 to 200 dB"),
            Self::Time(seconds) => (number * seconds, 0.0, MAX_DELAY, "a time from 0 to 1000 s"),
            Self::Share(of_one) => (number * of_one, 0.0, 1.0, "a share from 0 to 1"),
        };
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(TraceError::at(line, &format!("expected {words}, not {number}")))
    }

    /// The value of a text in bit/s, dB, seconds, or of 1.
    pub(super) fn read(self, line: usize, text: &str) -> Result<f64> {
        match number(text) {
            Some(number) => self.value(line, number),
            None => Err(TraceError::at(line, &format!("expected a number, not {}", quoted(text)))),
        }
    }
}

/// The words of a name: what stands between separators.
pub(super) fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric() && c != '%' && c != 'µ')
        .filter(|word| !word.is_empty())
        .collect()
}

/// Whether a word is of bits or bytes, so that seconds after it make a rate.
fn is_amount(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["b", "bit", "bits", "byte", "bytes"].iter().any(|end| word.ends_with(end))
}

/// Bits of an amount such as `k`, `Mbit`, `KBytes` or `MiB`. An amount without bits or bytes is of
/// the word that it begins, as in `kbps`; there, the case of the `b` says which.
fn amount_per_second(amount: &str) -> Option<f64> {
    let lower = amount.to_ascii_lowercase();
    let spelt = [("bits", 1.0), ("bit", 1.0), ("bytes", 8.0), ("byte", 8.0)];
    let spelt = spelt.iter().find_map(|(word, bits)| Some((lower.strip_suffix(word)?, *bits)));
    if let Some((prefix, bits)) = spelt {
        return Some(bits * prefix_of(prefix)?);
    }
    // In `MBPS` and `mBps`, either could be meant.
    let (prefix, bits) = match (amount.strip_suffix('b'), amount.strip_suffix('B')) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) if prefix != "m" && prefix != "g" => (prefix, 8.0),
        _ => return None,
    };
    Some(bits * prefix_of(&prefix.to_ascii_lowercase())?)
}

fn prefix_of(prefix: &str) -> Option<f64> {
    let prefixes = [
        ("", 1.0),
        ("k", 1e3),
        ("m", 1e6),
        ("g", 1e9),
        ("kilo", 1e3),
        ("mega", 1e6),
        ("giga", 1e9),
        ("ki", 1024.0),
        ("mi", 1024.0 * 1024.0),
        ("gi", 1024.0 * 1024.0 * 1024.0),
    ];
    prefixes.iter().find(|known| known.0 == prefix).map(|known| known.1)
}

/// The unit of times that a column's name ends with, such as `timestamp_ms` or `Time [s]`, in
/// seconds.
pub(super) fn time_of_name(name: &str) -> Option<f64> {
    let units: [(&[&str], f64); 5] = [
        (&["s", "sec", "secs", "second", "seconds"], 1.0),
        (&["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"], 1e-3),
        (&["us", "µs", "usec", "usecs", "micros", "microsecond", "microseconds"], 1e-6),
        (&["ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"], 1e-9),
        (&["min", "mins", "minute", "minutes"], 60.0),
    ];
    let last = words(name).last()?.to_lowercase();
    units.iter().find(|unit| unit.0.contains(&last.as_str())).map(|unit| unit.1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_column_says_its_unit_case_and_all() {
        let rates = [
            ("throughput_mbps", 1e6),
            ("Verizon_throughput_Mbps", 1e6),
            ("rate_kbps", 1e3),
            ("tput_dl_bps", 1.0),
            ("rate [Gbps]", 1e9),
            ("rate_MBps", 8e6),
            ("rate_KBps", 8e3),
            ("rate_kBps", 8e3),
            ("rate_GBps", 8e9),
            ("rate_Bps", 8.0),
            ("rate_MiBps", 8.0 * 1_048_576.0),
            ("bandwidth_kbit_s", 1e3),
            ("bandwidth_kbit/s", 1e3),
            ("RATE(MBit/s)", 1e6),
            ("Mbits/sec", 1e6),
            ("rate (MB/s)", 8e6),
            ("rate [kB/s]", 8e3),
            ("rate Mb/s", 1e6),
            ("bits_per_second", 1.0),
            ("sum.bits_per_second", 1.0),
            ("bytes per second", 8.0),
            ("KBytes/sec", 8e3),
            ("megabits per second", 1e6),
        ];
        for (name, bps) in rates {
            assert_eq!(Unit::of_name(name), Some(Unit::Rate(bps)), "{name}");
        }
        let others = [
            ("RSRQ [dB]", Unit::Decibels),
            ("RSRP_dBm", Unit::Decibels),
            ("rtt_ms", Unit::Time(1e-3)),
            ("delay (s)", Unit::Time(1.0)),
            ("owd_us", Unit::Time(1e-6)),
            ("loss %", Unit::Share(0.01)),
            ("loss_pct", Unit::Share(0.01)),
            ("loss_ratio", Unit::Share(1.0)),
        ];
        for (name, unit) in others {
            assert_eq!(Unit::of_name(name), Some(unit), "{name}");
        }
    }

    #[test]
    fn a_name_that_says_no_unit_or_one_of_several_leaves_it_open() {
        for name in ["", "rate", "rate_MBPS", "rate_mBps", "rate_mB/s", "5G_TBS", "kbit", "bps_x"] {
            assert_eq!(Unit::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn the_name_of_a_time_says_its_unit() {
        let names = [
            ("timestamp_ms", 1e-3),
            ("Time [s]", 1.0),
            ("t_us", 1e-6),
            ("ts ns", 1e-9),
            ("elapsed (min)", 60.0),
            ("duration_s", 1.0),
        ];
        for (name, seconds) in names {
            assert_eq!(time_of_name(name), Some(seconds), "{name}");
        }
        for name in ["", "time", "utc_ts", "td", "seq_num", "Timestamp"] {
            assert_eq!(time_of_name(name), None, "{name}");
        }
    }
}
