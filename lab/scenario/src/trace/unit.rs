//! Units of values and times, and numbers.

use super::numbers;
use super::{Decimal, Result, TraceError, Want, quoted};

/// Largest rate in bit/s, as in scenario files.
const MAX_RATE: f64 = 1e12;
/// Largest decibels in either direction.
const MAX_DECIBELS: f64 = 200.0;
/// Largest amount of data in bits, beyond what counters of 64 bits hold.
const MAX_AMOUNT: f64 = 1e21;
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
    /// An amount of data, in bits. Over the time of its row it is a rate.
    Amount(f64),
}

impl Unit {
    /// All units by their names in scenario files.
    pub const ALL: [(&'static str, Self); 29] = [
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
        ("GB/s", Self::Rate(8e9)),
        ("KiB/s", Self::Rate(8.0 * 1024.0)),
        ("MiB/s", Self::Rate(8.0 * 1024.0 * 1024.0)),
        ("dB", Self::Decibels),
        ("dBm", Self::Decibels),
        ("s", Self::Time(1.0)),
        ("ms", Self::Time(1e-3)),
        ("us", Self::Time(1e-6)),
        ("ns", Self::Time(1e-9)),
        ("%", Self::Share(0.01)),
        ("ratio", Self::Share(1.0)),
        ("bit", Self::Amount(1.0)),
        ("B", Self::Amount(8.0)),
        ("kB", Self::Amount(8e3)),
        ("MB", Self::Amount(8e6)),
        ("GB", Self::Amount(8e9)),
        ("KiB", Self::Amount(8.0 * 1024.0)),
        ("MiB", Self::Amount(8.0 * 1024.0 * 1024.0)),
    ];

    /// The unit at the end of a column's name, such as `throughput_mbps`, `rate [MB/s]`,
    /// `bandwidth_kbit_s`, `rateMbps`, `RSRQ [dB]` or `loss %`. `None` if the name has none, or if
    /// it is one of several, such as `MBPS` or `rtt_min`.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let words = words(name);
        let last = *words.last()?;
        if is_prefix_cut(name, last) {
            return None;
        }
        match last.to_ascii_lowercase().as_str() {
            "db" | "dbm" => return Some(Self::Decibels),
            "percent" | "pct" => return Some(Self::Share(0.01)),
            "ratio" | "share" | "fraction" => return Some(Self::Share(1.0)),
            word if word.ends_with('%') => return Some(Self::Share(0.01)),
            _ => {}
        }
        if let Some(amount) = last.strip_suffix("ps") {
            return amount_per_second(amount).map(Self::Rate);
        }
        let lower = last.to_ascii_lowercase();
        let is_second = ["s", "sec", "second", "seconds"].contains(&lower.as_str());
        match words.as_slice() {
            [.., amount, per, _] if is_second && per.eq_ignore_ascii_case("per") => {
                amount_per_second(amount).map(Self::Rate)
            }
            // In `MB/S`, bits could be meant.
            [.., amount, "S"] if is_amount(amount) && !is_spelt(amount) => None,
            [.., amount, _] if is_second && is_amount(amount) => {
                amount_per_second(amount).map(Self::Rate)
            }
            _ => time_unit(&SHORT_TIMES, last).map(Self::Time),
        }
    }

    /// Refuses a unit that does not measure what is wanted.
    pub(super) fn check(self, want: Want) -> Result<Self> {
        let (wanted, fits) = match want {
            Want::Up | Want::Down => ("rates are", matches!(self, Self::Rate(_) | Self::Amount(_))),
            Want::Decibels => ("decibels are", self == Self::Decibels),
            Want::Delay | Want::Jitter => ("times are", matches!(self, Self::Time(_))),
            Want::Loss => ("a share of packets is", matches!(self, Self::Share(_))),
        };
        if fits {
            return Ok(self);
        }
        let found = match self {
            Self::Rate(_) => "rates (for capacity)",
            Self::Decibels => "decibels (for sinr)",
            Self::Time(_) => "times (for delay or jitter)",
            Self::Share(_) => "shares (for loss)",
            Self::Amount(_) => "amounts of data (for capacity)",
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
            Self::Amount(bits) => (number * bits, 0.0, MAX_AMOUNT, "an amount of data"),
        };
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        let is_percent = self == Self::Share(1.0) && (0.0..=100.0).contains(&value);
        let hint = if is_percent { "; if it is percent, write unit = \"%\"" } else { "" };
        Err(TraceError::at(line, &format!("expected {words}, not {number}{hint}")))
    }

    /// The value of a text in bit/s, dB, seconds, or of 1.
    pub(super) fn read(self, line: usize, text: &str, decimal: Option<Decimal>) -> Result<f64> {
        let Some((number, rest)) = numbers::leading(text, decimal) else {
            let hint = numbers::hint(text, decimal);
            let message = format!("expected a number, not {}{hint}", quoted(text));
            return Err(TraceError::at(line, &message));
        };
        if rest.is_empty() {
            return self.value(line, number);
        }
        match self.of_word(rest) {
            Some(unit) => unit.value(line, number),
            None => {
                let message = format!("expected a number, not {}", quoted(text));
                Err(TraceError::at(line, &message))
            }
        }
    }

    /// The unit of a value that names its own, such as `8.5 Mbit/s`, if it measures the same.
    pub(super) fn of_word(self, word: &str) -> Option<Self> {
        let words = words(word);
        // What is no unit before one would be left out.
        if words.len() > 1 && !is_amount(words[0]) {
            return None;
        }
        match (self, Self::of_name(word)?) {
            (Self::Rate(_), unit @ Self::Rate(_)) | (Self::Share(_), unit @ Self::Share(_)) => {
                Some(unit)
            }
            (Self::Time(own), Self::Time(seconds)) => {
                // Of a round trip, half counts.
                let is_half = !Self::ALL.iter().any(|unit| unit.1 == Self::Time(own));
                Some(Self::Time(if is_half { seconds / 2.0 } else { seconds }))
            }
            _ => None,
        }
    }
}

/// The words of a name: what stands between separators, and those of `rateMbps`.
pub(super) fn words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for text in name.split(|c: char| !c.is_alphanumeric() && c != '%' && c != 'µ') {
        let (mut start, mut lower) = (0, 0);
        for (at, letter) in text.char_indices() {
            // `dB` and `kBps` are one word.
            if letter.is_uppercase() && lower > 1 {
                words.push(&text[start..at]);
                start = at;
            }
            lower = if letter.is_lowercase() { lower + 1 } else { 0 };
        }
        words.push(&text[start..]);
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a word that begins within another may have lost the letter before it, as `Bps` in
/// `rateMBps` or `ratekBps`, or has its `B` only because it begins a word, as in `downlinkBps`.
fn is_prefix_cut(name: &str, word: &str) -> bool {
    let Some(before) = name.rfind(word).and_then(|at| name[..at].chars().next_back()) else {
        return false;
    };
    let begins_word = word == "Bps" && before.is_lowercase();
    begins_word || ("kmg".contains(before) && word.starts_with(['B', 'b']))
}

/// Whether a word is of bits or bytes, so that seconds after it make a rate.
fn is_amount(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["b", "bit", "bits", "byte", "bytes", "octet", "octets"].iter().any(|end| word.ends_with(end))
}

/// Whether a column's name is of an amount of data, such as `rxBytes` or `bytes_total`.
pub(super) fn is_amount_name(name: &str) -> bool {
    words(name).iter().any(|word| is_spelt(word))
}

/// Whether it is spelt out whether a word is of bits or bytes.
fn is_spelt(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["bit", "bits", "byte", "bytes", "octet", "octets"].iter().any(|end| word.ends_with(end))
}

/// Bits of an amount such as `k`, `Mbit`, `KBytes` or `MiB`. An amount without bits or bytes is of
/// the word that it begins, as in `kbps`; there, the case of the `b` says which.
fn amount_per_second(amount: &str) -> Option<f64> {
    let lower = amount.to_ascii_lowercase();
    let spelt = [
        ("bits", 1.0),
        ("bit", 1.0),
        ("bytes", 8.0),
        ("byte", 8.0),
        ("octets", 8.0),
        ("octet", 8.0),
    ];
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

/// Names of a unit of time, and its seconds.
type TimeNames = (&'static [&'static str], f64);

/// The units of delays. `min` is none of them: `rtt_min` is the least one.
const SHORT_TIMES: [TimeNames; 4] = [
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"], 1e-3),
    (&["us", "µs", "μs", "usec", "usecs", "micro", "micros", "microsecond", "microseconds"], 1e-6),
    (&["ns", "nsec", "nsecs", "nano", "nanos", "nanosecond", "nanoseconds"], 1e-9),
];
/// The units of times only.
const LONG_TIMES: [TimeNames; 3] = [
    (&["min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600.0),
    (&["d", "day", "days"], 86_400.0),
];
/// Names of a time that may stand before its unit without a separator, as in `timems`.
const TIMES: [&str; 8] = ["timestamp", "time", "ts", "t", "elapsed", "epoch", "utc", "unix"];

fn time_unit(units: &[TimeNames], word: &str) -> Option<f64> {
    let word = word.to_lowercase();
    units.iter().find(|unit| unit.0.contains(&word.as_str())).map(|unit| unit.1)
}

/// The unit of times in a column's name, such as `timestamp_ms`, `Time [s]`, `timeMs` or
/// `ms_since_start`, in seconds.
pub(super) fn time_of_name(name: &str) -> Option<f64> {
    let words = words(name);
    let last = words.last()?;
    if let Some(unit) = time_unit(&SHORT_TIMES, last).or_else(|| time_unit(&LONG_TIMES, last)) {
        return Some(unit);
    }
    for word in words.iter().rev() {
        // An `s` before other words may mean anything, and `US` is a country.
        let unit = time_unit(&SHORT_TIMES[1..], word);
        if unit.is_some() && (!word.eq_ignore_ascii_case("us") || has_since(&words)) {
            return unit;
        }
        if let Some(unit) = time_of_word(word) {
            return Some(unit);
        }
    }
    for word in words {
        if ["seconds", "minutes", "hours"].contains(&word.to_lowercase().as_str()) {
            return time_unit(&SHORT_TIMES, word).or_else(|| time_unit(&LONG_TIMES, word));
        }
    }
    None
}

/// Whether a name says since when a time is.
pub(super) fn has_since(words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| ["since", "from", "after"].iter().any(|since| word.eq_ignore_ascii_case(since)))
}

/// The unit in a word such as `timems`.
fn time_of_word(word: &str) -> Option<f64> {
    let lower = word.to_lowercase();
    for stem in TIMES {
        let rest = lower.strip_prefix(stem).filter(|rest| rest.len() > 1);
        if let Some(unit) = rest.and_then(|rest| time_unit(&SHORT_TIMES, rest)) {
            return Some(unit);
        }
    }
    None
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
            ("octets/s", 8.0),
            ("in kOctets per second", 8e3),
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
            ("rateMbps", 1e6),
            ("downlinkRateMBps", 8e6),
            ("rateKiBps", 8.0 * 1024.0),
            ("rate KiB/s", 8.0 * 1024.0),
            ("bit/s", 1.0),
            ("MBIT/S", 1e6),
            ("KBytes/Sec", 8e3),
            ("bitsPerSecond", 1.0),
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
            ("loss%", Unit::Share(0.01)),
            ("avgRttMs", Unit::Time(1e-3)),
            ("rtt (μs)", Unit::Time(1e-6)),
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
        // `Bps` begins a word, as `Rate` would: its `B` may be a `b`.
        for name in ["bitrateBps", "downlinkThroughputBps", "rateBps"] {
            assert_eq!(Unit::of_name(name), None, "{name}");
        }
        for name in ["ratekBps", "linkBps", "RATE_KBPS", "rtt_min", "rtt_minutes", "MB/S"] {
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
            ("timeMs", 1e-3),
            ("timestampMS", 1e-3),
            ("timems", 1e-3),
            ("timestampus", 1e-6),
            ("time (µs)", 1e-6),
            ("time (μs)", 1e-6),
            ("time_milli", 1e-3),
            ("ms_since_start", 1e-3),
            ("time_us_since_boot", 1e-6),
            ("timestamp_ms_utc", 1e-3),
            ("seconds elapsed", 1.0),
            ("time_h", 3_600.0),
        ];
        for (name, seconds) in names {
            assert_eq!(time_of_name(name), Some(seconds), "{name}");
        }
        for name in ["", "time", "utc_ts", "td", "seq_num", "Timestamp", "times", "time_US_East"] {
            assert_eq!(time_of_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_value_may_name_its_own_unit() {
        let mbps = Unit::Rate(1e6);
        let own = [
            ("8.5 Mbits/sec", 8.5e6),
            ("850kbps", 850e3),
            ("+8.5 Mbit/s", 8.5e6),
            ("1.5e3 kbps", 1.5e6),
            ("1.5E+3kbps", 1.5e6),
            ("1,234.5 kbps", 1_234.5e3),
            ("1,234,567 bps", 1_234_567.0),
            ("12 500 kbit/s", 12.5e6),
            ("12'500 kbit/s", 12.5e6),
        ];
        for (text, bps) in own {
            assert_eq!(mbps.read(1, text, None), Ok(bps), "{text}");
        }
        let comma = Some(Decimal::Comma);
        for (text, bps) in [("8,5 Mbit/s", 8.5e6), ("1.234,5 kbps", 1_234.5e3), ("8 Mbps", 8e6)] {
            assert_eq!(mbps.read(1, text, comma), Ok(bps), "{text}");
        }
        assert_eq!(Unit::Share(1.0).read(1, "2.5%", None), Ok(0.025));
        assert_eq!(Unit::Time(1e-3).read(1, "12 s", None), Ok(12.0));
        // Half of a round trip.
        assert_eq!(Unit::Time(0.5e-3).read(1, "12 s", None), Ok(6.0));
        assert_eq!(Unit::Time(0.5e-3).read(1, "12", None), Ok(0.006));
    }

    #[test]
    fn a_value_that_is_not_wholly_understood_is_refused() {
        let mbps = Unit::Rate(1e6);
        for text in ["12 ms", "8,5 Mbit/s", "1,234 kbps", "12 50 kbit/s", "1.5e Mbps", "8 of 9"] {
            assert!(mbps.read(1, text, None).is_err(), "{text}");
        }
        let error = mbps.read(7, "8,5 Mbit/s", None).unwrap_err().to_string();
        assert!(error.contains("write decimal = \",\""), "{error}");
    }
}
