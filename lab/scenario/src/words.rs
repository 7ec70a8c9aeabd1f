//! Describes a scenario in words, for reports.

use std::fmt;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::{
    Aqm, Capacity, Jitter, JitterShape, LinkConfig, LossModel, PolicerConfig, QueueLimit, TraceEnd,
};

use super::aqm::name;
use super::{Condition, Scenario};

/// Most steps that are listed.
const STEPS_SHOWN: usize = 50;

impl Scenario {
    /// The network in words: the lines of the access network, then one per direction of each
    /// bottleneck.
    pub fn network_in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.access.iter().flat_map(|access| access.words.iter().cloned()));
        for (index, hop) in self.hops.iter().enumerate() {
            let place =
                if self.hops.len() == 1 { String::new() } else { format!("hop {} ", index + 1) };
            words.push(format!("{place}up: {}", link(&hop.up)));
            words.push(format!("{place}down: {}", link(&hop.down)));
        }
        words.extend(self.participants_in_words());
        words
    }

    /// The networks of participants of an application, one line each.
    fn participants_in_words(&self) -> impl Iterator<Item = String> {
        self.participants.iter().map(|(name, network)| {
            let mut parts = Vec::new();
            parts.extend(network.access.iter().flat_map(|access| access.words.iter().cloned()));
            for hop in &network.hops {
                parts.push(format!("up: {}", link(&hop.up)));
                parts.push(format!("down: {}", link(&hop.down)));
            }
            format!("{name} {}", parts.join("; "))
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(limit) => write!(f, "at most {limit}"),
            Self::Above(limit) => write!(f, "at least {limit}"),
            Self::Highest => f.write_str("highest of all controllers"),
            Self::Lowest => f.write_str("lowest of all controllers"),
        }
    }
}

fn link(link: &LinkConfig) -> String {
    let mut parts = vec![capacity(&link.capacity)];
    if link.capacity != Capacity::Unlimited {
        parts.push(queue(link));
    }
    parts.extend(link.burst.map(|of| format!("bursts of {} B", thousands(of.as_bytes()))));
    parts.extend(link.policer.map(policer));
    parts.push(format!("delay {}", steps(link.delay.steps(), time)));
    parts.extend(changing(link.jitter, &link.changes.jitter, jitter));
    parts.extend(changing(link.loss, &link.changes.loss, loss));
    if link.reorder > 0.0 {
        parts.push(format!("{} reordered", percent(link.reorder)));
    }
    if link.duplicate > 0.0 {
        parts.push(format!("{} duplicated", percent(link.duplicate)));
    }
    parts.join("; ")
}

fn policer(policer: PolicerConfig) -> String {
    let burst = thousands(policer.burst.as_bytes());
    format!("policed to {} with bursts of {burst} B", rate(policer.rate))
}

fn capacity(capacity: &Capacity) -> String {
    match capacity {
        Capacity::Unlimited => "unlimited".into(),
        Capacity::Trace(_) => "a recorded trace".into(),
        Capacity::Schedule(schedule) => match schedule.recording() {
            Some((length, end)) => {
                let mean = capacity.nominal_rate(Timestamp::ZERO).unwrap_or_default();
                recorded(length, end, mean)
            }
            None => steps(schedule.steps(), rate),
        },
    }
}

/// Describes a recording, which has too many steps to list.
fn recorded(length: TimeDelta, end: TraceEnd, mean: Bitrate) -> String {
    let end = match end {
        TraceEnd::Repeat => "repeated",
        TraceEnd::Hold => "then its last rate",
    };
    format!("recorded rates of {}, {end}; their mean is {}", time(length), rate(mean))
}

/// Formats steps such as `2 Mbit/s, then 500 kbit/s from 15 s`. Those of a recording are too many
/// to list.
fn steps<T: Copy>(steps: &[(Timestamp, T)], value: impl Fn(T) -> String) -> String {
    let mut words = Vec::new();
    if steps.len() > STEPS_SHOWN {
        return format!("{}, then in {} steps", value(steps[0].1), thousands(steps.len() as u64));
    }
    for &(from, to) in steps {
        words.push(match from {
            Timestamp::ZERO => value(to),
            _ => format!("then {} from {}", value(to), time(from - Timestamp::ZERO)),
        });
    }
    words.join(", ")
}

/// Formats steps of a property that may be absent.
fn changing<T: Copy>(
    first: T,
    later: &[(Timestamp, T)],
    value: fn(T) -> Option<String>,
) -> Option<String> {
    let all = [&[(Timestamp::ZERO, first)], later].concat();
    if all.iter().all(|step| value(step.1).is_none()) {
        return None;
    }
    Some(steps(&all, |to| value(to).unwrap_or_else(|| "none".into())))
}

fn queue(link: &LinkConfig) -> String {
    let limit = match link.queue {
        QueueLimit::Bytes(bytes) => format!("{} B", thousands(bytes.as_bytes())),
        QueueLimit::Packets(packets) => format!("{} packets", thousands(packets as u64)),
        QueueLimit::Time(limit) => time(limit),
    };
    match link.aqm {
        Aqm::DropTail => format!("queue {limit}"),
        aqm => format!("{} queue {limit}", name(aqm)),
    }
}

fn jitter(jitter: Jitter) -> Option<String> {
    let order = if jitter.may_reorder() { "may reorder" } else { "in order" };
    match jitter {
        Jitter::None => None,
        Jitter::Uniform { amount, .. } => {
            Some(format!("jitter ±{} as netem ({order})", time(amount)))
        }
        Jitter::HalfNormal { sd, .. } => {
            Some(format!("jitter with sd {} as RFC 8868 ({order})", time(sd)))
        }
        Jitter::Netem(of) => {
            let shape = match of.distribution {
                JitterShape::Uniform => "uniform",
                JitterShape::Normal => "normal",
                JitterShape::Pareto => "Pareto",
            };
            let correlation = match of.correlation > 0.0 {
                true => format!(", correlated by {}", percent(of.correlation)),
                false => String::new(),
            };
            Some(format!("{shape} jitter of {}{correlation} ({order})", time(of.amount)))
        }
    }
}

fn loss(loss: LossModel) -> Option<String> {
    match loss {
        LossModel::None => None,
        LossModel::Random(ratio) => Some(format!("{} lost", percent(ratio))),
        LossModel::GilbertElliott(model) => {
            Some(format!("{} lost in bursts", percent(model.mean_loss())))
        }
    }
}

/// Formats a ratio such as `0.5 %`, rounded to a thousandth of a per cent.
pub(super) fn percent(ratio: f64) -> String {
    format!("{} %", (ratio * 1e5).round() / 1e3)
}

pub(super) fn rate(rate: Bitrate) -> String {
    match rate.as_bps() {
        bps if bps < 1_000 => format!("{bps} bit/s"),
        bps if bps < 1_000_000 => format!("{} kbit/s", rate.as_kbps_f64()),
        _ => format!("{} Mbit/s", rate.as_mbps_f64()),
    }
}

pub(super) fn time(time: TimeDelta) -> String {
    if time < TimeDelta::from_secs(1) {
        return format!("{} ms", time.as_millis_f64());
    }
    format!("{} s", time.as_secs_f64())
}

/// Formats a number such as `75,000`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_units_fit_their_size() {
        assert_eq!(thousands(75_000), "75,000");
        assert_eq!(thousands(1_000_000), "1,000,000");
        assert_eq!(thousands(999), "999");
        assert_eq!(rate(Bitrate::from_kbps(1500)), "1.5 Mbit/s");
        assert_eq!(rate(Bitrate::from_kbps(500)), "500 kbit/s");
        assert_eq!(time(TimeDelta::from_millis(300)), "300 ms");
        assert_eq!(time(TimeDelta::from_secs(20)), "20 s");
        assert_eq!(percent(0.005), "0.5 %");
    }
}
