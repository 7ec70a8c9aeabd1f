//! Simulated runs beside real calls of the same scenario, section by section: the other half of
//! `weir compare`.

use serde_json::json;
use weir_lab::calls::counting;
use weir_lab::metrics::{Metrics, capacity_changes, mean};
use weir_lab::record::Record;
use weir_lab::run::Engine;
use weir_lab::spread::{Spread, differ_by_chance};
use weir_sim::trace::Row;

use crate::table;

/// How far a simulated run may be from a real one: share of the rate, ms of the queuing delay's 95th
/// percentile, s of the time to 90 % of a new capacity.
const RATE_LIMIT: f64 = 0.10;
const DELAY_LIMIT_MS: f64 = 30.0;
const TIME_LIMIT_S: f64 = 1.5;
/// A call's rows may begin this much before or after the scenario's time: a step of the capacity that
/// comes so little before a section is the section's.
const ALIGNMENT_S: f64 = 0.5;

/// One value of all runs that have it, real and simulated.
struct Pair {
    real: Vec<f64>,
    simulated: Vec<f64>,
    limit: f64,
    /// The error counts as a share of the real value.
    relative: bool,
}

/// How a simulated value stands to the real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Within the goal.
    Met,
    /// Beyond the goal, but chance alone may have put it there: the two means do not differ by a
    /// two-sided test at 5 %.
    WithinSpread,
    Missed,
}

impl Pair {
    fn error(&self) -> Option<f64> {
        let (real, simulated) = (mean(self.real.clone())?, mean(self.simulated.clone())?);
        Some((simulated - real) / if self.relative { real } else { 1.0 })
    }

    /// A value that only one of them has is a miss, one that neither has says nothing.
    fn verdict(&self) -> Option<Verdict> {
        if self.real.is_empty() && self.simulated.is_empty() {
            return None;
        }
        let is_met = self.error().is_some_and(|error| error.abs() <= self.limit);
        Some(match is_met {
            true => Verdict::Met,
            false if differ_by_chance(&self.real, &self.simulated) => Verdict::WithinSpread,
            false => Verdict::Missed,
        })
    }

    fn to_json(&self) -> serde_json::Value {
        let confidence = |values| Spread::of(values).map(|spread| spread.confidence);
        json!({
            "real": mean(self.real.clone()),
            "real_confidence": confidence(&self.real),
            "simulated": mean(self.simulated.clone()),
            "simulated_confidence": confidence(&self.simulated),
            "error": self.error(),
            "limit": self.limit,
            "pass": self.verdict().map(|verdict| verdict == Verdict::Met),
            "within_spread": self.verdict().map(|verdict| verdict != Verdict::Missed),
        })
    }
}

/// A flow in a section, under one simulated and one real controller.
pub struct Line {
    scenario: String,
    flow: String,
    real: String,
    simulated: String,
    section: String,
    rate_mbps: Pair,
    delay_ms: Pair,
    time_s: Pair,
}

/// The lines of all scenarios of which the one set has real calls and the other simulated runs.
pub fn lines(before: &[Record], after: &[Record]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (real, simulated) in [(before, after), (after, before)] {
        let groups = groups(real, Engine::Call);
        for of_real in &groups {
            for of_sim in self::groups(simulated, Engine::Sim) {
                if played(&of_real[0].info.scenario) == played(&of_sim[0].info.scenario) {
                    lines.extend(lines_of(of_real, &of_sim));
                }
            }
        }
    }
    lines
}

/// The scenario that a run played. The variant `browser` says what a browser is, which a call has
/// anyway, so it is the same scenario.
fn played(scenario: &str) -> &str {
    scenario.strip_suffix("/browser").unwrap_or(scenario)
}

/// The runs of an engine that differ by their seed alone, together: without those of which a call failed,
/// and without those that the machine bent, where there are others.
fn groups(records: &[Record], engine: Engine) -> Vec<Vec<&Record>> {
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    for record in records.iter().filter(|record| record.info.engine == engine) {
        let name = |record: &Record| match engine {
            Engine::Call => String::from(played(&record.info.scenario)),
            Engine::Sim => record.info.scenario.clone(),
        };
        let key = |record: &Record| (name(record), record.info.controller.clone());
        match groups.iter_mut().find(|group| key(group[0]) == key(record)) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    let counted = groups.into_iter().map(|group| counting(group, |record| record.flaw()));
    counted.filter(|group| !group.is_empty()).collect()
}

fn lines_of(real: &[&Record], simulated: &[&Record]) -> Vec<Line> {
    let scenario = &simulated[0].scenario;
    let whole = (String::from("all"), 0.0, scenario.duration.as_secs_f64());
    let sections = scenario.sections.iter().map(|section| {
        (section.name.clone(), section.from.as_secs_f64(), section.to.as_secs_f64())
    });
    let spans: Vec<_> = sections.chain([whole]).collect();
    let mut lines = Vec::new();
    // The goals are those of a controller, and only media has one.
    let media = scenario.flows.iter().filter(|flow| flow.media().is_some());
    for flow in media.map(|flow| &flow.name) {
        for (section, from_s, to_s) in &spans {
            let pair = |value: fn(&[Row], f64, f64) -> Option<f64>, limit, relative| {
                let over_runs = |runs: &[&Record]| {
                    let rows = runs.iter().filter_map(|run| rows(run, flow));
                    rows.filter_map(|rows| value(&rows, *from_s, *to_s)).collect()
                };
                Pair { real: over_runs(real), simulated: over_runs(simulated), limit, relative }
            };
            lines.push(Line {
                scenario: simulated[0].info.scenario.clone(),
                flow: flow.clone(),
                real: real[0].info.controller.clone(),
                simulated: simulated[0].info.controller.clone(),
                section: section.clone(),
                rate_mbps: pair(rate_mbps, RATE_LIMIT, true),
                delay_ms: pair(delay_ms, DELAY_LIMIT_MS, false),
                time_s: pair(time_s, TIME_LIMIT_S, false),
            });
        }
    }
    lines
}

fn rows(run: &Record, flow: &str) -> Option<Vec<Row>> {
    let index = run.trace.flows.iter().position(|name| name == flow)?;
    let rows: Vec<Row> = run.trace.rows.iter().filter(|row| row.flow == index).copied().collect();
    (!rows.is_empty()).then_some(rows)
}

fn metrics(rows: &[Row], from_s: f64, to_s: f64) -> Metrics {
    let within = |row: &&Row| row.time.as_secs_f64() > from_s && row.time.as_secs_f64() <= to_s;
    Metrics::of(&rows.iter().filter(within).copied().collect::<Vec<_>>(), &[])
}

fn rate_mbps(rows: &[Row], from_s: f64, to_s: f64) -> Option<f64> {
    Some(metrics(rows, from_s, to_s).rate_mbps?.mean)
}

fn delay_ms(rows: &[Row], from_s: f64, to_s: f64) -> Option<f64> {
    Some(metrics(rows, from_s, to_s).queuing_delay_ms?.p95)
}

/// Mean over the rises of the capacity within the section: a fall is no question of reaching.
fn time_s(rows: &[Row], from_s: f64, to_s: f64) -> Option<f64> {
    let changes = capacity_changes(rows);
    let within = changes.iter().filter(|change| {
        change.up && (from_s..to_s).contains(&(change.time.as_secs_f64() + ALIGNMENT_S))
    });
    mean(within.filter_map(|change| change.reached_s).collect())
}

/// As text.
pub fn table(lines: &[Line]) -> String {
    const HEAD: [&str; 15] = [
        "scenario",
        "flow",
        "real",
        "simulated",
        "section",
        "runs",
        "Mbit/s",
        "sim",
        "error",
        "p95 ms",
        "sim",
        "error",
        "to 90 % s",
        "sim",
        "goal",
    ];
    let rows: Vec<_> = lines.iter().map(to_cells).collect();
    let verdicts: Vec<_> =
        lines.iter().flat_map(Line::pairs).filter_map(|(_, pair)| pair.verdict()).collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    format!(
        "{}{} of {} values within the goal: rate 10 %, p95 of the queuing delay 30 ms, time to 90 % of \
         a new capacity 1.5 s; {} more within the spread: beyond it by no more than chance (Welch's \
         t-test, 5 %); {} missed\n± is the mean's 95 % confidence interval\n",
        table::aligned(&HEAD, &rows, 5),
        count(Verdict::Met),
        verdicts.len(),
        count(Verdict::WithinSpread),
        count(Verdict::Missed),
    )
}

impl Line {
    fn pairs(&self) -> [(&'static str, &Pair); 3] {
        [("rate", &self.rate_mbps), ("delay", &self.delay_ms), ("time", &self.time_s)]
    }

    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "scenario": self.scenario,
            "flow": self.flow,
            "real": self.real,
            "simulated": self.simulated,
            "section": self.section,
            "rate_mbps": self.rate_mbps.to_json(),
            "queuing_delay_p95_ms": self.delay_ms.to_json(),
            "time_to_90_percent_s": self.time_s.to_json(),
        })
    }
}

fn to_cells(line: &Line) -> Vec<String> {
    let names = |wanted: Verdict| {
        let named = line.pairs().into_iter().filter(|(_, pair)| pair.verdict() == Some(wanted));
        named.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    };
    let goal = match (names(Verdict::Missed), names(Verdict::WithinSpread)) {
        (missed, spread) if missed.is_empty() && spread.is_empty() => "met".into(),
        (missed, spread) if missed.is_empty() => format!("within spread: {spread}"),
        (missed, spread) if spread.is_empty() => format!("missed: {missed}"),
        (missed, spread) => format!("missed: {missed}; within spread: {spread}"),
    };
    let percent = line.rate_mbps.error().map(|error| format!("{:+.1}%", error * 100.0));
    let ms = line.delay_ms.error().map(|error| format!("{error:+.1}"));
    let dash = || String::from("-");
    vec![
        line.scenario.clone(),
        line.flow.clone(),
        line.real.clone(),
        line.simulated.clone(),
        line.section.clone(),
        format!("{}, {}", line.rate_mbps.real.len(), line.rate_mbps.simulated.len()),
        table::with_spread(&line.rate_mbps.real, 3),
        table::with_spread(&line.rate_mbps.simulated, 3),
        percent.unwrap_or_else(dash),
        table::with_spread(&line.delay_ms.real, 1),
        table::with_spread(&line.delay_ms.simulated, 1),
        ms.unwrap_or_else(dash),
        table::with_spread(&line.time_s.real, 2),
        table::with_spread(&line.time_s.simulated, 2),
        goal,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(real: &[f64], simulated: &[f64], limit: f64, relative: bool) -> Option<Verdict> {
        let (real, simulated) = (real.to_vec(), simulated.to_vec());
        Pair { real, simulated, limit, relative }.verdict()
    }

    #[test]
    fn a_rate_may_be_off_by_a_share_and_a_delay_by_ms() {
        assert_eq!(pair(&[2.0], &[2.19], RATE_LIMIT, true), Some(Verdict::Met));
        assert_eq!(pair(&[2.0], &[1.79], RATE_LIMIT, true), Some(Verdict::Missed));
        assert_eq!(pair(&[5.0], &[34.0], DELAY_LIMIT_MS, false), Some(Verdict::Met));
        assert_eq!(pair(&[50.0], &[19.0], DELAY_LIMIT_MS, false), Some(Verdict::Missed));
    }

    #[test]
    fn what_only_one_of_them_reached_is_a_miss_and_what_neither_did_is_no_question() {
        assert_eq!(pair(&[3.0], &[], TIME_LIMIT_S, false), Some(Verdict::Missed));
        assert_eq!(pair(&[], &[3.0], TIME_LIMIT_S, false), Some(Verdict::Missed));
        assert_eq!(pair(&[], &[], TIME_LIMIT_S, false), None);
    }

    #[test]
    fn a_call_stands_beside_the_browser_variant_of_its_scenario() {
        assert_eq!(played("delft/wired-2/rtt50/browser"), played("delft/wired-2/rtt50"));
        assert_ne!(played("delft/wired-2/rtt50/browser"), played("delft/wired-2/rtt100"));
    }

    #[test]
    fn beyond_the_goal_it_counts_whether_chance_may_have_put_it_there() {
        let judge = |real: &[f64], simulated: &[f64]| pair(real, simulated, RATE_LIMIT, true);
        // Calls that differ among themselves as much as the simulated mean from theirs.
        assert_eq!(judge(&[0.97, 1.52, 1.3], &[1.0, 1.05, 1.1]), Some(Verdict::WithinSpread));
        assert_eq!(judge(&[1.30, 1.32, 1.31], &[1.0, 1.05, 1.1]), Some(Verdict::Missed));
        // A single call says nothing of its spread.
        assert_eq!(judge(&[1.3], &[1.0, 1.05, 1.1]), Some(Verdict::Missed));
    }
}
