//! Metrics of all flows on a path: utilization, and how they share it.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use weir::units::{TimeDelta, Timestamp};
use weir_metrics::declared::{Shape, first_key};
use weir_metrics::{
    Fairness, LinkSummary, NodeMetrics, Ratio, Received, RunningMean, TerminalMetrics,
};
use weir_net::Capacity;
use weir_scenario::{Direction, Flow, Scenario};
use weir_sim::trace::{ROW_INTERVAL, Row};

/// Windows over which throughputs are compared, in seconds [RFC8868 §3].
const WINDOWS: [i64; 3] = [1, 5, 20];
/// Largest fair ratio of two throughputs; the smallest is its inverse [RFC8868 §3].
const FAIR_RATIO: f64 = 3.0;

/// Metrics over all flows in the direction of the first flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    /// Utilization of the bottlenecks.
    pub link: LinkSummary,
    /// Fairness between the media flows; `None` for fewer than two.
    pub fairness: Option<Fairness>,
    /// The nodes of a Wi-Fi cell, by the names of their tables; the access point is `ap`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cell: BTreeMap<String, NodeMetrics>,
    /// The terminals of a cellular cell, by the names of their tables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub terminal: BTreeMap<String, TerminalMetrics>,
}

impl Shared {
    /// Measures a part of a run from what each flow received.
    pub fn of(
        scenario: &Scenario,
        received: &[Received],
        part: &Range<Timestamp>,
        cell: BTreeMap<String, NodeMetrics>,
        terminal: BTreeMap<String, TerminalMetrics>,
    ) -> Self {
        Self {
            link: link(scenario, received, part),
            fairness: fairness(scenario, received, part),
            cell,
            terminal,
        }
    }

    /// The value at a dotted path such as `fairness.ratio_20s.min`; `None` where it does not apply
    /// or the path names nothing.
    pub fn at(&self, path: &str) -> Option<f64> {
        let (part, rest) = first_key(path);
        let (name, metric) = first_key(rest);
        match part {
            "link" => self.link.at(rest),
            "fairness" => self.fairness.at(rest),
            "cell" => self.cell.get(name)?.at(metric),
            "terminal" => self.terminal.get(name)?.at(metric),
            _ => None,
        }
    }
}

/// Number of rows that end at or before `time`.
fn index(time: Timestamp) -> usize {
    ((time - Timestamp::ZERO).as_nanos() / ROW_INTERVAL.as_nanos()) as usize
}

fn link(scenario: &Scenario, received: &[Received], part: &Range<Timestamp>) -> LinkSummary {
    let Some(direction) = scenario.flows.first().map(|flow| flow.direction) else {
        return LinkSummary { utilization: None, hops: BTreeMap::new() };
    };
    let mut hops = BTreeMap::new();
    for hop in 0..scenario.hops.len() {
        if let Some(utilization) = utilization(scenario, received, part, hop, direction) {
            hops.insert((hop + 1).to_string(), utilization);
        }
    }
    LinkSummary {
        utilization: hops.values().copied().reduce(f64::max),
        hops: if scenario.hops.len() > 1 { hops } else { BTreeMap::new() },
    }
}

/// Share of what a bottleneck could carry while flows crossed it; `None` if it is unlimited.
fn utilization(
    scenario: &Scenario,
    received: &[Received],
    part: &Range<Timestamp>,
    hop: usize,
    direction: Direction,
) -> Option<f64> {
    let mut crossing: Vec<(&Flow, &Received)> = scenario.flows.iter().zip(received).collect();
    crossing.retain(|(flow, _)| flow.direction == direction && flow.hops.contains(&hop));
    let start = crossing.iter().map(|(flow, _)| flow.start).min()?.max(part.start);
    let stop = crossing.iter().map(|(flow, _)| flow.stop).max()?.min(part.end);
    let time = start..stop;
    let bits: f64 = crossing.iter().map(|(_, of)| of.carried_within(&time) as f64).sum();
    let carried = carried(scenario, hop, direction, &time)?;
    if carried > 0.0 { Some(bits / carried) } else { None }
}

/// Bits that a bottleneck could carry in a time; `None` if it is unlimited.
fn carried(
    scenario: &Scenario,
    hop: usize,
    direction: Direction,
    time: &Range<Timestamp>,
) -> Option<f64> {
    let link = scenario.hops[hop].link(direction);
    let mut sum = 0.0;
    for row in index(time.start)..index(time.end) {
        let start = Timestamp::ZERO + ROW_INTERVAL * row as i64;
        sum += link.bits(start, start + ROW_INTERVAL)?;
    }
    Some(sum)
}

fn fairness(
    scenario: &Scenario,
    received: &[Received],
    part: &Range<Timestamp>,
) -> Option<Fairness> {
    let direction = scenario.flows.first()?.direction;
    let media: Vec<(usize, &Flow, f64)> = scenario
        .flows
        .iter()
        .enumerate()
        .filter(|(_, flow)| flow.direction == direction)
        .filter(|(_, flow)| flow.start < part.end && part.start < flow.stop)
        .filter_map(|(index, flow)| Some((index, flow, flow.traffic.media()?.settings.priority)))
        .collect();
    if media.len() < 2 {
        return None;
    }
    let spans = together(media.iter().map(|flow| flow.1), part);
    let media: Vec<(&Received, f64)> =
        media.iter().map(|(index, _, priority)| (&received[*index], *priority)).collect();
    let mut totals = vec![0.0; media.len()];
    for span in &spans {
        for (total, bits) in totals.iter_mut().zip(throughputs_over(&media, span)) {
            *total += bits;
        }
    }
    let mut ratios = [None; WINDOWS.len()];
    for (found, seconds) in ratios.iter_mut().zip(WINDOWS) {
        let length = TimeDelta::from_secs(seconds);
        let windows = spans.iter().flat_map(|span| windows(span, length));
        *found = ratio(windows.map(|window| throughputs_over(&media, &window)));
    }
    let [ratio_1s, ratio_5s, ratio_20s] = ratios;
    Some(Fairness { jain: jain(&totals)?, ratio_1s, ratio_5s, ratio_20s })
}

/// Bits of each flow over its priority.
fn throughputs_over(media: &[(&Received, f64)], window: &Range<Timestamp>) -> Vec<f64> {
    media.iter().map(|(of, priority)| of.within(window).as_bits() as f64 / priority).collect()
}

/// The times of a part in which all flows are active.
fn together<'a>(
    flows: impl Iterator<Item = &'a Flow> + Clone,
    part: &Range<Timestamp>,
) -> Vec<Range<Timestamp>> {
    let start = flows.clone().map(|flow| flow.start).max().unwrap_or(part.start).max(part.start);
    let stop = flows.clone().map(|flow| flow.stop).min().unwrap_or(part.end).min(part.end);
    let mut pauses: Vec<&Range<Timestamp>> = flows.flat_map(|flow| &flow.pauses).collect();
    pauses.sort_by_key(|pause| pause.start);
    let mut spans = Vec::new();
    let mut from = start;
    for pause in pauses {
        spans.push(from..pause.start.min(stop));
        from = from.max(pause.end);
    }
    spans.push(from..stop);
    spans.retain(|span| span.start < span.end);
    spans
}

/// Consecutive windows of equal length.
fn windows(
    span: &Range<Timestamp>,
    length: TimeDelta,
) -> impl Iterator<Item = Range<Timestamp>> + use<> {
    let Range { start, end } = span.clone();
    let count = (end - start).as_nanos() / length.as_nanos();
    (0..count).map(move |index| start + length * index..start + length * (index + 1))
}

fn ratio(windows: impl Iterator<Item = Vec<f64>>) -> Option<Ratio> {
    let (mut mean, mut min, mut within) =
        (RunningMean::default(), f64::INFINITY, RunningMean::default());
    for throughputs in windows {
        let most = throughputs.iter().copied().fold(0.0, f64::max);
        // If nothing arrives, all flows are equal.
        let ratio =
            if most == 0.0 { 1.0 } else { throughputs.into_iter().fold(most, f64::min) / most };
        mean.push(ratio);
        min = min.min(ratio);
        within.push(f64::from(u8::from(ratio * FAIR_RATIO >= 1.0)));
    }
    Some(Ratio { mean: mean.value()?, min, within: within.value()? })
}

/// `(sum x)^2 / (n * sum x^2)`.
fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares > 0.0 { Some(sum * sum / (values.len() as f64 * squares)) } else { None }
}

/// Subtracts the rate of UDP flows on the same path from the capacity of a media flow's row. A load
/// that does not yield is one way for a scenario to change the capacity [RFC8867 §5.1].
///
/// [RFC8867 §5.1]: https://www.rfc-editor.org/rfc/rfc8867#section-5.1
pub fn without_load(scenario: &Scenario, row: &Row) -> Row {
    let Some(flow) = scenario.flows.get(row.flow) else { return *row };
    let start = row.time - ROW_INTERVAL;
    let load = scenario.load(flow, start);
    let mean_load = scenario.mean_load(flow, start, row.time);
    let capacity = row.capacity.map(|rate| rate.saturating_sub(load));
    let mean = row.capacity_over_it().map(|mean| {
        // A load takes its share of the opportunities of a whole second, of which an interval may
        // have none.
        match row.capacity.filter(|_| has_opportunities(scenario, flow)) {
            Some(of_second) => mean * (1.0 - mean_load / of_second).max(0.0),
            None => mean.saturating_sub(mean_load),
        }
    });
    row.with_capacity(capacity).with_mean_capacity(mean.filter(|mean| Some(*mean) != capacity))
}

/// Whether a link on the flow's path replays opportunities.
fn has_opportunities(scenario: &Scenario, flow: &Flow) -> bool {
    let mut links = scenario.hops[flow.hops.clone()].iter().map(|hop| hop.link(flow.direction));
    links.any(|link| matches!(link.capacity, Capacity::Trace(_)))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod utilization;
