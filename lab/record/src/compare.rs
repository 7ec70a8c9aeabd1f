//! Differences between two sets of runs, and whether they are more than chance.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use weir_metrics::{Better, mean};

use crate::calls::counting;
use crate::run::Engine;
use crate::significance::Significance;
use crate::spread::Spread;
use crate::summary::Summary;

/// Metrics that are compared, for each flow that has them.
const METRICS: [&str; 24] = [
    "utilization",
    "rate_mbps.mean",
    "queuing_delay_ms.mean",
    "queuing_delay_ms.p95",
    "rtt_ms.mean",
    "loss_ratio.mean",
    "responsiveness_s",
    "residual_loss_ratio",
    "frame_rate",
    "frame_delay_ms.mean",
    "frame_delay_ms.p95",
    "freeze_count",
    "freeze_duration_s",
    "good_ratio",
    "no_picture_ratio",
    "late_ratio",
    "bad_picture_ratio",
    "shown_delay_ms.p95",
    "stalled_ratio",
    "vmaf.mean",
    "mouth_to_ear_ms.mean",
    "concealed_ratio",
    "speech_rating",
    "goodput_mbps.mean",
];
/// A metric of a flow, before and after, with one value for each seed.
pub struct Difference<'a> {
    /// One of the runs before: scenario and engine are those of all.
    pub of: &'a Summary,
    /// The controller of the runs after. It differs from that of `of` in a comparison of two.
    pub controller: &'a str,
    /// The flow.
    pub flow: &'a str,
    /// Path of the metric.
    pub metric: &'static str,
    /// Seed and value of each run.
    pub before: Vec<(&'a str, f64)>,
    /// Seed and value of each run.
    pub after: Vec<(&'a str, f64)>,
    /// Whether runs may differ by chance. Simulations of a scenario without anything random are
    /// equal for every seed: they are one sample, and no test applies.
    pub has_chance: bool,
}

/// Result of comparing a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonResult {
    /// The difference is more than chance, and the value is better.
    Better,
    /// The difference is more than chance, and the value is worse.
    Worse,
    /// The difference is more than chance, but neither value is better.
    Other,
    /// The difference may be chance.
    MayBeChance,
    /// No value differs.
    Equal,
    /// There are too few seeds for a test.
    TooFew,
}

/// Adds a run to others. One that was recorded again, with the same seed and every value equal, is
/// no other run and counts once.
pub(crate) fn add_distinct<'a>(runs: &mut Vec<&'a Summary>, run: &'a Summary) {
    if !runs.contains(&run) {
        runs.push(run);
    }
}

/// Groups the runs that differ only in their seed, in the order of their first occurrence. A run
/// that was recorded again counts once.
pub fn groups(summaries: &[Summary]) -> Vec<Vec<&Summary>> {
    fn key(run: &Summary) -> (&str, &str, &str) {
        (&run.scenario, &run.controller, &run.engine)
    }
    let mut indices: HashMap<(&str, &str, &str), usize> = HashMap::new();
    let mut groups: Vec<Vec<&Summary>> = Vec::new();
    for summary in summaries {
        let index = *indices.entry(key(summary)).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => add_distinct(group, summary),
            None => groups.push(vec![summary]),
        }
    }
    groups
}

/// A metric of a flow by seed, of the runs that have it.
fn values<'a>(group: &[&'a Summary], flow: &str, metric: &str) -> Vec<(&'a str, f64)> {
    let of_runs = group.iter().map(|run| (run.seed.as_str(), run.metric(Some(flow), metric)));
    of_runs.filter_map(|(seed, value)| Some((seed, value?))).collect()
}

/// Which runs of two sets are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Those of the same scenario, engine and controller.
    Controller,
    /// Those of the same scenario and engine: each set has one controller, and the two differ.
    Pair,
}

impl By {
    fn matches(self, before: &Summary, after: &Summary) -> bool {
        before.scenario == after.scenario
            && before.engine == after.engine
            && (self == Self::Pair || before.controller == after.controller)
    }
}

/// What sets of runs contain: each controller, with the numbers of its scenarios and runs.
pub fn found_in(sets: &[&[Summary]]) -> String {
    let mut found: BTreeMap<&str, BTreeMap<(&str, &str, &str), ()>> = BTreeMap::new();
    for run in sets.iter().copied().flatten() {
        let key = (run.scenario.as_str(), run.engine.as_str(), run.seed.as_str());
        found.entry(&run.controller).or_default().insert(key, ());
    }
    if found.is_empty() {
        return "no run".into();
    }
    let mut words = Vec::new();
    for (controller, runs) in &found {
        let mut scenarios: Vec<&str> = runs.keys().map(|key| key.0).collect();
        scenarios.dedup();
        let (runs, scenarios) = (runs.len(), scenarios.len());
        let run = if runs == 1 { "run" } else { "runs" };
        let scenario = if scenarios == 1 { "scenario" } else { "scenarios" };
        words.push(format!("{controller} ({runs} {run} of {scenarios} {scenario})"));
    }
    words.join(", ")
}

/// The line of a comparison of two controllers that have no scenario in common.
pub fn nothing_of_both(first: &str, second: &str, found: &str) -> String {
    format!(
        "nothing to compare: no scenario has runs of both {first} and {second} on the same engine; \
         found {found}"
    )
}

/// The differences of every metric and flow in runs that both sets have.
pub fn differences<'a>(before: &'a [Summary], after: &'a [Summary], by: By) -> Vec<Difference<'a>> {
    let mut differences = Vec::new();
    let after_groups = groups(after);
    for old in groups(before) {
        let Some(new) = after_groups.iter().find(|group| by.matches(old[0], group[0])) else {
            continue;
        };
        let (of, controller) = (old[0], new[0].controller.as_str());
        let [old, new] = [old, new.clone()].map(|group| counting(group, |run| run.exclusion()));
        let has_chance = may_differ(&old) || may_differ(&new);
        for flow in &of.flows {
            for metric in METRICS {
                let [before, after] = [&old, &new].map(|group| values(group, &flow.flow, metric));
                if !before.is_empty() || !after.is_empty() {
                    let flow = flow.flow.as_str();
                    differences.push(Difference {
                        of,
                        controller,
                        flow,
                        metric,
                        before,
                        after,
                        has_chance,
                    });
                }
            }
        }
    }
    differences
}

/// Whether runs of a group may differ by chance. Simulations with several seeds that are equal in
/// every metric do not.
fn may_differ(group: &[&Summary]) -> bool {
    let [first, others @ ..] = group else { return true };
    if others.is_empty() || first.engine != Engine::Sim.as_str() {
        return true;
    }
    for flow in &first.flows {
        for metric in METRICS {
            let value = first.metric(Some(&flow.flow), metric);
            for other in others {
                if other.metric(Some(&flow.flow), metric) != value {
                    return true;
                }
            }
        }
    }
    false
}

fn numbers(set: &[(&str, f64)]) -> Vec<f64> {
    set.iter().map(|entry| entry.1).collect()
}

impl<'a> Difference<'a> {
    /// Means over the seeds.
    pub fn means(&self) -> (Option<f64>, Option<f64>) {
        (mean(numbers(&self.before)), mean(numbers(&self.after)))
    }

    fn change(&self) -> Option<f64> {
        let (before, after) = self.means();
        Some(after? - before?)
    }

    /// The change in per cent; `None` if the value before is missing or zero.
    pub fn percent(&self) -> Option<f64> {
        let before = self.means().0?;
        let change = self.change()?;
        if change == 0.0 {
            return Some(0.0);
        }
        if before != 0.0 { Some(change / before.abs() * 100.0) } else { None }
    }

    /// The test of the difference; `None` if there are too few seeds, or nothing random.
    pub fn significance(&self) -> Option<Significance> {
        self.has_chance.then(|| Significance::of(&self.before, &self.after))?
    }

    /// Whether each seed has the same value as before, or all runs of both sides have one value.
    fn is_equal(&self) -> bool {
        let mut all = self.before.iter().chain(&self.after);
        if let (Some(first), false) = (self.before.first(), self.after.is_empty())
            && all.all(|run| run.1 == first.1)
        {
            return true;
        }
        let [before, after] = [&self.before, &self.after].map(|set| {
            let mut runs = set.clone();
            runs.sort_by(|a, b| a.0.cmp(b.0).then(a.1.total_cmp(&b.1)));
            runs
        });
        before == after
    }

    /// What came of the comparison.
    pub fn verdict(&self) -> ComparisonResult {
        if self.is_equal() {
            return ComparisonResult::Equal;
        }
        match self.significance() {
            None if self.has_chance => return ComparisonResult::TooFew,
            Some(found) if !found.is_significant() => return ComparisonResult::MayBeChance,
            _ => {}
        }
        let rises = self.change().map(|change| change > 0.0);
        match (Better::of(self.metric), rises) {
            (Some(Better::Higher), Some(true)) | (Some(Better::Lower), Some(false)) => {
                ComparisonResult::Better
            }
            (Some(Better::Higher), Some(false)) | (Some(Better::Lower), Some(true)) => {
                ComparisonResult::Worse
            }
            _ => ComparisonResult::Other,
        }
    }

    /// All of it, as `weir compare --json` prints it.
    pub fn to_json(&self) -> Value {
        let interval =
            |set: &[(&str, f64)]| Spread::of(&numbers(set)).map(|spread| spread.confidence);
        let (before, after) = self.means();
        let found = self.significance();
        let mut row = json!({
            "scenario": self.of.scenario,
            "controller": self.controller,
            "engine": self.of.engine,
            "flow": self.flow,
            "metric": self.metric,
            "before": before,
            "before_confidence": interval(&self.before),
            "before_runs": self.before.len(),
            "after": after,
            "after_confidence": interval(&self.after),
            "after_runs": self.after.len(),
            "change": self.change(),
            "change_percent": self.percent(),
            "better": match Better::of(self.metric) {
                Some(Better::Higher) => Some("higher"),
                Some(Better::Lower) => Some("lower"),
                _ => None,
            },
            "verdict": match self.verdict() {
                ComparisonResult::Better => "better",
                ComparisonResult::Worse => "worse",
                ComparisonResult::Other => "other",
                ComparisonResult::MayBeChance => "chance",
                ComparisonResult::Equal => "equal",
                ComparisonResult::TooFew => "too few",
            },
            "p": found.map(|found| found.p),
            "test": found.map(|found| found.test.name()),
            "has_chance": self.has_chance,
        });
        if self.controller != self.of.controller {
            row["against"] = json!(self.of.controller);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use weir_sim::trace::Trace;

    use super::*;
    use crate::run::RunInfo;
    use crate::subject::Subject;

    fn run(seed: u64) -> Summary {
        let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"1s\"\n\
                    [network]\n[[flow]]\n";
        let scenario = weir_scenario::parse("x", text, None).unwrap();
        let subject = Subject::controller("gcc");
        let info = RunInfo { scenario: "x".into(), subject, engine: Engine::Sim, seed };
        Summary::of(&scenario, &info, &Trace::new(vec!["media-1".into()]), None)
    }

    #[test]
    fn a_run_that_was_recorded_again_counts_once() {
        let runs = [run(1), run(1), run(2), run(1)];
        assert_eq!(groups(&runs).iter().map(Vec::len).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn each_compared_metric_is_declared_and_has_a_better_side() {
        for metric in METRICS {
            let better = Better::of(metric);
            assert!(better.is_some_and(|better| better != Better::Neither), "{metric}");
        }
    }
}
