//! A trace file with the keys of a scenario, and its description.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, anyhow};
use weir::units::{TimeDelta, Timestamp};
use weir_net::Capacity;
use weir_scenario::trace::{self, Format, Reading, Series, Trace, TraceEnd, Want};
use weir_scenario::variation::{Variation, of_capacity};

use super::plot::{figures, plot};
use crate::args::{Direction, TraceArgs, TraceUse};

/// Columns of the plot.
const WIDTH: usize = 72;
/// Most columns of a table that are named.
const COLUMNS: usize = 12;

/// A trace that was read.
pub struct TraceFile {
    path: String,
    /// The keys in TOML, after `trace`.
    keys: String,
    used_as: TraceUse,
    direction: Direction,
    pub reading: Reading,
    end: TraceEnd,
}

/// Whether a word of the command line is a key with a value, such as `column=rate_mbps`.
pub fn is_key(word: &str) -> bool {
    let Some((key, _)) = word.split_once('=') else { return false };
    let is_name = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'.');
    let is_where = key.strip_prefix("where.").is_some_and(|column| !column.is_empty());
    ((is_name && !key.is_empty()) || is_where) && !Path::new(word).exists()
}

/// The keys in TOML. A value that is no number, list, table or text in quotes is a text.
fn in_toml(words: &[&String]) -> String {
    let mut keys = String::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else { continue };
        let is_value = value.parse::<f64>().is_ok()
            || ["true", "false"].contains(&value)
            || value.starts_with(['"', '\'', '[', '{']);
        let key = match key.strip_prefix("where.") {
            Some(column) => format!("where.\"{}\"", column.replace('"', "\\\"")),
            None => key.to_owned(),
        };
        let value = match is_value {
            true => value.to_owned(),
            false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
        };
        let _ = write!(keys, ", {key} = {value}");
    }
    keys
}

/// The error of a scenario without the place in it, and without the name of the trace file.
fn without_place<'a>(error: &'a str, name: &str) -> &'a str {
    let message = error.strip_prefix(":1: capacity").unwrap_or(error);
    let message = message.trim_start_matches(['.', ':', ' ']);
    let message = message.strip_prefix("trace: ").unwrap_or(message);
    let message = message.strip_prefix("cannot read ").unwrap_or(message);
    message.strip_prefix(&format!("'{name}': ")).unwrap_or(message)
}

impl TraceFile {
    /// Reads a file as a scenario would.
    pub fn read(path: &str, keys: &[&String], args: &TraceArgs) -> anyhow::Result<Self> {
        let keys = in_toml(keys);
        let want = match (args.r#as, args.direction) {
            (TraceUse::Capacity, Direction::Up) => Want::Up,
            (TraceUse::Capacity, Direction::Down) => Want::Down,
            (TraceUse::Sinr, _) => Want::Decibels,
            (TraceUse::Delay, _) => Want::Delay,
            (TraceUse::Loss, _) => Want::Loss,
            (TraceUse::Jitter, _) => Want::Jitter,
        };
        let file = Path::new(path);
        let folder = file.parent().unwrap_or(Path::new(""));
        let name = file.file_name().context("no file")?.to_string_lossy();
        let line = format!("trace = {}{keys}", quoted(&name));
        let (reading, end) = trace::read_file(&line, want, folder)
            .map_err(|error| anyhow!("{path}: {}", without_place(&error.to_string(), &name)))?;
        let end = end.unwrap_or_default();
        Ok(Self {
            path: path.into(),
            keys,
            used_as: args.r#as,
            direction: args.direction,
            reading,
            end,
        })
    }

    /// What the file is, in some lines.
    pub fn described(&self) -> anyhow::Result<String> {
        let mut lines = vec![format!("{}: {}", self.path, self.kind())];
        let content = &self.reading.content;
        if !content.columns.is_empty() {
            let shown: Vec<&str> =
                content.columns.iter().take(COLUMNS).map(String::as_str).collect();
            let more = if content.columns.len() > COLUMNS { ", ..." } else { "" };
            lines.push(format!("columns: {}{more}", shown.join(", ")));
            let value = content.value.as_deref().unwrap_or("?");
            lines.push(format!("read: '{value}'; {}", content.times));
        }
        match &self.reading.trace {
            Trace::Opportunities(_) | Trace::Rates(_) => {
                let capacity = self.reading.trace.clone().capacity(self.end)?;
                self.describe_capacity(&capacity, &mut lines);
            }
            Trace::Decibels(series) => lines.extend(of_series(series, |db| db, "dB")),
            Trace::Times(series) => {
                lines.extend(of_series(series, TimeDelta::as_millis_f64, "ms"));
            }
            Trace::Shares(series) => lines.extend(of_series(series, |share| share * 100.0, "%")),
        }
        lines.push("in a scenario:".into());
        lines.push(format!("  {} = {{ trace = {}{} }}", self.key(), quoted(&self.path), self.keys));
        Ok(lines.join("\n") + "\n")
    }

    fn kind(&self) -> String {
        let format = match self.reading.format {
            Format::Mahimahi => "opportunities of mahimahi",
            Format::Columns => "two columns",
            Format::NetemTrace => "a model of netem-trace",
            Format::Csv => "a table",
            Format::Json => "a table in JSON",
            Format::Ghent => "a log of Ghent's kind",
            Format::Iperf => "a log of iperf",
            Format::Nuttcp => "a log of nuttcp",
            Format::Ping => "a log of ping",
            Format::Lines => "a log in words",
        };
        let set = self.reading.content.set.map(|set| format!(" of {set}")).unwrap_or_default();
        format!("{format}{set} (format = \"{}\")", self.reading.format.name())
    }

    fn key(&self) -> &'static str {
        match (self.used_as, self.direction) {
            (TraceUse::Capacity, Direction::Up) => "[network.up] capacity",
            (TraceUse::Capacity, Direction::Down) => "[network.down] capacity",
            (TraceUse::Sinr, _) => "[network.terminal.NAME] sinr",
            (TraceUse::Delay, _) => "[network.up] delay",
            (TraceUse::Loss, _) => "[network.up] loss",
            (TraceUse::Jitter, _) => "[network.up] kind = \"netem\"; jitter",
        }
    }

    fn describe_capacity(&self, capacity: &Capacity, lines: &mut Vec<String>) {
        let length = capacity.recorded_length().unwrap_or_default();
        let seconds: Vec<f64> = rates(capacity, length, whole_seconds(length));
        lines.push(format!(
            "{:.1} s; mean {} Mbit/s; of seconds: {}",
            length.as_secs_f64(),
            figures(exact_mean(capacity, length), 3),
            percentiles(seconds, "Mbit/s")
        ));
        if let Some(of) = of_capacity(capacity) {
            lines.push(outages(&of));
        }
        lines.push(plot(&rates(capacity, length, WIDTH), length.as_secs_f64(), "Mbit/s"));
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn whole_seconds(length: TimeDelta) -> usize {
    usize::try_from(length.as_secs_f64().round() as i64).unwrap_or(1).max(1)
}

fn exact_mean(capacity: &Capacity, length: TimeDelta) -> f64 {
    rates(capacity, length, 1)[0]
}

/// The mean rates of equal parts, in Mbit/s.
fn rates(capacity: &Capacity, length: TimeDelta, parts: usize) -> Vec<f64> {
    let mut rates = Vec::new();
    let mut from = Timestamp::ZERO;
    for part in 1..=parts {
        let nanos = i128::from(length.as_nanos()) * part as i128 / parts as i128;
        let to = Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let bits = bits_until(capacity, from, to);
        rates.push(bits / (to - from).as_secs_f64().max(1e-9) / 1e6);
        from = to;
    }
    rates
}

/// The bits after a time and until another. An opportunity at the end of a trace belongs to it.
pub fn bits_until(capacity: &Capacity, from: Timestamp, to: Timestamp) -> f64 {
    const NEXT: TimeDelta = TimeDelta::from_nanos(1);
    match capacity {
        Capacity::Trace(_) => capacity.bits(from + NEXT, to + NEXT).unwrap_or(0.0),
        _ => capacity.bits(from, to).unwrap_or(0.0),
    }
}

fn outages(of: &Variation) -> String {
    match (of.outage_median_s, of.outage_longest_s) {
        (Some(median), Some(longest)) => format!(
            "outages of 150 ms or more: {:.1} % of the time, {:.1} a minute, median {median:.2} s, \
             longest {longest:.2} s",
            of.outage_share * 100.0,
            of.outages_per_min
        ),
        _ => "no outage of 150 ms or more".into(),
    }
}

/// Length, mean, percentiles and plot of values over time.
fn of_series<T: Copy>(series: &Series<T>, number: impl Fn(T) -> f64, unit: &str) -> Vec<String> {
    let mut lasting = lasting(series, &number);
    let seconds = series.length().as_secs_f64();
    let mut sum = 0.0;
    for (value, lasts) in &lasting {
        sum += value * lasts;
    }
    lasting.sort_by(by_value);
    let mut shown = Vec::new();
    for (name, share) in PERCENTILES {
        shown.push(percentile(name, value_at(&lasting, share * seconds)));
    }
    let (mean, shown) = (figures(sum / seconds, 3), shown.join(", "));
    vec![
        format!("{seconds:.1} s; mean {mean} {unit}; {shown} {unit}"),
        plot(&sampled(series, &number, WIDTH), seconds, unit),
    ]
}

fn by_value(a: &(f64, f64), b: &(f64, f64)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0)
}

/// The values, and how many seconds each lasts.
fn lasting<T: Copy>(series: &Series<T>, number: &impl Fn(T) -> f64) -> Vec<(f64, f64)> {
    let mut values = Vec::new();
    let mut end = Timestamp::ZERO + series.length();
    for (at, value) in series.steps().iter().rev() {
        values.push((number(*value), (end - *at).as_secs_f64()));
        end = *at;
    }
    values
}

/// The value of those by size that is reached after so many seconds of all.
fn value_at(lasting: &[(f64, f64)], seconds: f64) -> f64 {
    let mut sum = 0.0;
    for (value, lasts) in lasting {
        sum += lasts;
        if sum >= seconds {
            return *value;
        }
    }
    lasting.last().map_or(0.0, |(value, _)| *value)
}

/// Values in the middle of equal parts.
fn sampled<T: Copy>(series: &Series<T>, number: &impl Fn(T) -> f64, count: usize) -> Vec<f64> {
    let mut values = Vec::new();
    for point in 0..count {
        let share = (point as f64 + 0.5) / count as f64;
        let at = Timestamp::ZERO + series.length() * share;
        values.push(number(series.at(at, TraceEnd::Hold)));
    }
    values
}

const PERCENTILES: [(u32, f64); 5] = [(5, 0.05), (25, 0.25), (50, 0.5), (75, 0.75), (95, 0.95)];

fn percentiles(mut values: Vec<f64>, unit: &str) -> String {
    values.sort_by(f64::total_cmp);
    let mut shown = Vec::new();
    for (name, share) in PERCENTILES {
        shown.push(percentile(name, weir_metrics::percentile(&values, share).unwrap_or_default()));
    }
    format!("{} {unit}", shown.join(", "))
}

fn percentile(name: u32, value: f64) -> String {
    format!("p{name} {}", figures(value, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_percentiles_weigh_each_value_by_its_time() {
        let text = "time_s,delay_ms\n0,10\n9,1000\n9.01,20\n9.99,30\n10,30\n";
        let options = trace::Options::new(Want::Delay);
        let Trace::Times(series) = trace::read(text, &options).unwrap() else { panic!() };
        let lines = of_series(&series, TimeDelta::as_millis_f64, "ms");
        let expected = "10.0 s; mean 12.008 ms; p5 10.00, p25 10.00, p50 10.00, p75 10.00, p95 \
                        20.00 ms";
        assert_eq!(lines[0], expected);
    }
}
