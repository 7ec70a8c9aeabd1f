//! Unit strings: `25ms`, `2Mbps`, `60KB`, `1%`.

use weir::units::{Bitrate, DataSize, TimeDelta};
use weir_net::QueueLimit;

use super::error::quoted;

/// A kind of quantity: its units and its largest sensible value.
struct Kind {
    /// Name with its article, for errors.
    name: &'static str,
    example: &'static str,
    /// Names of the units, each with its size in the base unit.
    units: &'static [(&'static str, f64)],
    /// Largest value, in the base unit.
    max: f64,
    max_text: &'static str,
}

/// Base unit: a nanosecond.
const TIME: Kind = Kind {
    name: "a time",
    example: "25ms",
    units: &[("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)],
    max: 24.0 * 3600e9,
    max_text: "24h",
};

/// Base unit: a bit per second. `MBps` is missing on purpose, to avoid confusion of bytes and bits.
const RATE: Kind = Kind {
    name: "a bitrate",
    example: "2Mbps",
    units: &[
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Mbps", 1e6),
        ("Gbps", 1e9),
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
    ],
    max: 1e12,
    max_text: "1000Gbps",
};

/// Base units: a nanosecond, a byte or a packet; see [`queue`].
const QUEUE: Kind = Kind {
    name: "a queue limit",
    example: "300ms",
    units: &[
        ("ms", 1e6),
        ("s", 1e9),
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("KiB", 1024.0),
        ("MiB", 1024.0 * 1024.0),
        ("packets", 1.0),
    ],
    max: 1e12,
    max_text: "1000s, 1000000MB or 1000000000000packets",
};

/// Base unit: a byte.
const SIZE: Kind = Kind {
    name: "a size",
    example: "1500B",
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("KiB", 1024.0),
        ("MiB", 1024.0 * 1024.0),
    ],
    max: 1e12,
    max_text: "1000000MB",
};

impl Kind {
    /// Parses the text into the amount in the base unit and the unit's name.
    fn measure(&self, text: &str) -> Result<(f64, &'static str), String> {
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'))
            .unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
        let Ok(number) = number.parse::<f64>() else {
            return Err(format!(
                "{} is not {}; write a number and a unit, such as \"{}\"",
                quoted(text),
                self.name,
                self.example
            ));
        };
        let Some(&(unit, scale)) = self.units.iter().find(|known| known.0 == unit) else {
            let what = if unit.is_empty() { "no unit" } else { "unknown unit" };
            let names: Vec<&str> = self.units.iter().map(|known| known.0).collect();
            return Err(format!(
                "{what} in {}; write one of {}, such as \"{}\"",
                quoted(text),
                names.join(", "),
                self.example
            ));
        };
        let amount = number * scale;
        if amount < 0.0 {
            return Err(format!("{} must not be negative", quoted(text)));
        }
        if amount > self.max {
            return Err(format!("{} is too much; write at most {}", quoted(text), self.max_text));
        }
        Ok((amount, unit))
    }
}

/// Parses a time from zero to 24 h.
pub fn time(text: &str) -> Result<TimeDelta, String> {
    let (nanos, _) = TIME.measure(text)?;
    Ok(TimeDelta::from_nanos(nanos.round() as i64))
}

/// Parses a time that may be negative.
pub fn signed_time(text: &str) -> Result<TimeDelta, String> {
    match text.trim().strip_prefix('-') {
        Some(length) => time(length).map(|length| -length),
        None => time(text),
    }
}

/// Parses a bitrate that may be zero: a capacity of zero is an outage.
pub fn capacity(text: &str) -> Result<Bitrate, String> {
    let (bps, _) = RATE.measure(text)?;
    Ok(Bitrate::from_bps_f64(bps))
}

/// Parses a bitrate above zero.
pub fn rate(text: &str) -> Result<Bitrate, String> {
    match capacity(text)? {
        Bitrate::ZERO => Err(format!("{} must be above zero", quoted(text))),
        rate => Ok(rate),
    }
}

/// Parses a queue limit above zero, in time, bytes or packets.
pub(super) fn queue(text: &str) -> Result<QueueLimit, String> {
    let (amount, unit) = QUEUE.measure(text)?;
    let amount = amount.round();
    if amount < 1.0 {
        return Err(format!("{} must be above zero", quoted(text)));
    }
    Ok(match unit {
        "ms" | "s" => QueueLimit::Time(TimeDelta::from_nanos(amount as i64)),
        "packets" => QueueLimit::Packets(amount as usize),
        _ => QueueLimit::Bytes(DataSize::from_bytes(amount as u64)),
    })
}

/// Parses a size above zero.
pub(super) fn size(text: &str) -> Result<DataSize, String> {
    let (bytes, _) = SIZE.measure(text)?;
    match DataSize::from_bytes(bytes.round() as u64) {
        DataSize::ZERO => Err(format!("{} must be above zero", quoted(text))),
        size => Ok(size),
    }
}

/// Parses a probability, written as `"1%"` or `"0.01"`.
pub fn probability(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let parsed = match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => trimmed.parse(),
    };
    let Ok(value) = parsed else {
        return Err(format!("{} is not a probability; write \"1%\" or 0.01", quoted(text)));
    };
    in_unit_range(value).map_err(|error| format!("{}: {error}", quoted(text)))
}

/// Returns the value if it is a probability.
pub(super) fn in_unit_range(value: f64) -> Result<f64, String> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err("a probability lies between 0 and 1; for per cent write \"1%\"".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("25ms"), Ok(TimeDelta::from_millis(25)));
        assert_eq!(time("1.5s"), Ok(TimeDelta::from_millis(1500)));
        assert_eq!(time(" 2 min "), Ok(TimeDelta::from_secs(120)));
        assert_eq!(time("0.1us"), Ok(TimeDelta::from_nanos(100)));
        assert_eq!(time("24h"), Ok(TimeDelta::from_secs(86_400)));
        assert_eq!(time("25h").unwrap_err(), "'25h' is too much; write at most 24h");
        assert_eq!(time("-1ms").unwrap_err(), "'-1ms' must not be negative");
        let error = time("25").unwrap_err();
        assert_eq!(error, "no unit in '25'; write one of us, ms, s, min, h, such as \"25ms\"");
        let error = time("25 parsec").unwrap_err();
        assert!(error.starts_with("unknown unit in '25 parsec'; write one of us, ms"), "{error}");
    }

    #[test]
    fn bitrates_are_bits_and_above_zero() {
        assert_eq!(rate("2Mbps"), Ok(Bitrate::from_kbps(2000)));
        assert_eq!(rate("1500kbps"), Ok(Bitrate::from_kbps(1500)));
        assert_eq!(rate("500 kbit/s"), Ok(Bitrate::from_kbps(500)));
        assert_eq!(rate("0kbps").unwrap_err(), "'0kbps' must be above zero");
        assert_eq!(capacity("0kbps"), Ok(Bitrate::ZERO));
        assert_eq!(rate("-2Mbps").unwrap_err(), "'-2Mbps' must not be negative");
        let error = rate("2MBps").unwrap_err();
        assert!(error.starts_with("unknown unit in '2MBps'; write one of bps, kbps"), "{error}");
    }

    #[test]
    fn queues_are_times_bytes_or_packets() {
        assert_eq!(queue("300ms"), Ok(QueueLimit::Time(TimeDelta::from_millis(300))));
        assert_eq!(queue("75000B"), Ok(QueueLimit::Bytes(DataSize::from_bytes(75_000))));
        assert_eq!(queue("60KB"), Ok(QueueLimit::Bytes(DataSize::from_bytes(60_000))));
        assert_eq!(queue("1KiB"), Ok(QueueLimit::Bytes(DataSize::from_bytes(1_024))));
        assert_eq!(queue("50packets"), Ok(QueueLimit::Packets(50)));
        assert_eq!(queue("0packets").unwrap_err(), "'0packets' must be above zero");
    }

    #[test]
    fn sizes_are_bytes_and_above_zero() {
        assert_eq!(size("50KB"), Ok(DataSize::from_bytes(50_000)));
        assert_eq!(size("1.5KiB"), Ok(DataSize::from_bytes(1_536)));
        assert_eq!(size("0.4B").unwrap_err(), "'0.4B' must be above zero");
        assert!(size("300ms").unwrap_err().starts_with("unknown unit in '300ms'; write one of B"));
    }

    #[test]
    fn probabilities_are_per_cent_or_fractions() {
        assert_eq!(probability("1%"), Ok(0.01));
        assert_eq!(probability("0.01"), Ok(0.01));
        assert!(probability("101%").is_err());
        assert!(probability("-1%").is_err());
        assert!(probability("NaN").is_err());
        assert!(probability("much").is_err());
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "ms", "1.2.3ms", "infms", "NaNs", "--1s", "1e3ms", "٣s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
