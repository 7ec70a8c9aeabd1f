//! Compares simulated runs with real calls of the same scenario, section by section: the other half
//! of `weir compare`.

use serde_json::json;
use weir_metrics::{Metrics, capacity_changes, mean};
use weir_record::Record;
use weir_record::calls::{Exclusion, counting};
use weir_record::run::Engine;
use weir_record::spread::{Spread, differ_by_chance};
use weir_record::subject::Subject;
use weir_sim::trace::Row;

use crate::layout::{Table, wrapped};
use crate::table;

/// Goals for the error of a simulated run: share of the rate, ms of the queuing delay's 95th
/// percentile, s of the time to 90 % of a new capacity.
const RATE_LIMIT: f64 = 0.10;
const DELAY_LIMIT_MS: f64 = 30.0;
const TIME_LIMIT_S: f64 = 1.5;
/// A call's rows may begin this much before or after the scenario's time. A capacity change that is
/// at most this much before a section therefore belongs to the section.
const ALIGNMENT_S: f64 = 0.5;

/// One value over all real and all simulated runs that have it.
struct Pair {
    real: Vec<f64>,
    simulated: Vec<f64>,
    limit: f64,
    /// Whether the error is a share of the real value.
    relative: bool,
}

/// Result of comparing a simulated value with the real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoalResult {
    /// Within the goal.
    Met,
    /// Beyond the goal, but possibly by chance: by a two-sided test at 5 % the two means do not
    /// differ.
    WithinSpread,
    Missed,
}

impl Pair {
    /// One value of the sections of all real and all simulated runs. The error is absolute.
    fn of(
        both: &[Vec<&SectionValues>; 2],
        value: fn(&SectionValues) -> Option<f64>,
        limit: f64,
    ) -> Self {
        let [real, simulated] =
            both.each_ref().map(|side| side.iter().filter_map(|values| value(values)).collect());
        Self { real, simulated, limit, relative: false }
    }

    fn error(&self) -> Option<f64> {
        let (real, simulated) = (mean(self.real.clone())?, mean(self.simulated.clone())?);
        Some((simulated - real) / if self.relative { real } else { 1.0 })
    }

    /// The result. A value that only one side has is a miss; `None` if neither side has it.
    fn verdict(&self) -> Option<GoalResult> {
        if self.real.is_empty() && self.simulated.is_empty() {
            return None;
        }
        let is_met = self.error().is_some_and(|error| error.abs() <= self.limit);
        Some(match is_met {
            true => GoalResult::Met,
            false if differ_by_chance(&self.real, &self.simulated) => GoalResult::WithinSpread,
            false => GoalResult::Missed,
        })
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "real": mean(self.real.clone()),
            "real_confidence": Spread::of(&self.real).map(|spread| spread.confidence),
            "simulated": mean(self.simulated.clone()),
            "simulated_confidence": Spread::of(&self.simulated).map(|spread| spread.confidence),
            "error": self.error(),
            "limit": self.limit,
            "pass": self.verdict().map(|verdict| verdict == GoalResult::Met),
            "within_spread": self.verdict().map(|verdict| verdict != GoalResult::Missed),
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

/// The compared values of one run, without its rows, so that all runs fit in memory.
#[derive(PartialEq)]
pub struct Sections {
    scenario: String,
    seed: u64,
    subject: Subject,
    engine: Engine,
    exclusion: Option<Exclusion>,
    /// One entry for each media flow and section, in the scenario's order, and one over the whole
    /// time.
    values: Vec<SectionValues>,
}

/// Values of a flow over a section.
#[derive(Clone, PartialEq)]
struct SectionValues {
    flow: String,
    section: String,
    rate_mbps: Option<f64>,
    delay_ms: Option<f64>,
    time_s: Option<f64>,
}

impl Sections {
    /// Measures a run.
    pub fn of(record: &Record) -> Self {
        let Record { info, scenario, .. } = record;
        let whole = (String::from("all"), 0.0, scenario.duration.as_secs_f64());
        let sections = scenario.sections.iter().map(|section| {
            (section.name.clone(), section.from.as_secs_f64(), section.to.as_secs_f64())
        });
        let spans: Vec<_> = sections.chain([whole]).collect();
        let mut values = Vec::new();
        // The goals are for controllers, and only media flows have one.
        for flow in scenario.flows.iter().filter(|flow| flow.traffic.media().is_some()) {
            let rows = rows(record, &flow.name).unwrap_or_default();
            values.extend(spans.iter().map(|(section, from_s, to_s)| SectionValues {
                flow: flow.name.clone(),
                section: section.clone(),
                rate_mbps: rate_mbps(&rows, *from_s, *to_s),
                delay_ms: delay_ms(&rows, *from_s, *to_s),
                time_s: time_s(&rows, *from_s, *to_s),
            }));
        }
        Self {
            scenario: info.scenario.clone(),
            seed: info.seed,
            subject: info.subject.clone(),
            engine: info.engine,
            exclusion: record.exclusion(),
            values,
        }
    }

    /// Whether two runs of one engine differ in nothing but their seed.
    fn is_beside(&self, other: &Self) -> bool {
        let is_same_scenario = match self.engine {
            Engine::Call => played(&self.scenario) == played(&other.scenario),
            Engine::Sim | Engine::Link => self.scenario == other.scenario,
        };
        is_same_scenario && self.subject == other.subject
    }

    fn at(&self, flow: &str, section: &str) -> Option<&SectionValues> {
        self.values.iter().find(|values| values.flow == flow && values.section == section)
    }
}

/// The lines of all scenarios for which one set has real calls and the other has simulated runs.
pub fn lines(before: &[Sections], after: &[Sections]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (real, simulated) in [(before, after), (after, before)] {
        let groups = groups(real, Engine::Call);
        for of_real in &groups {
            for of_sim in self::groups(simulated, Engine::Sim) {
                let (real, sim) = (of_real[0], of_sim[0]);
                if played(&real.scenario) == played(&sim.scenario)
                    && sim.subject.is_model_of(&real.subject)
                {
                    lines.extend(lines_of(of_real, &of_sim));
                }
            }
        }
    }
    lines
}

/// The scenario of a run, without the variant `browser`. That variant models a browser, and a call
/// has a real one, so it is the same scenario.
fn played(scenario: &str) -> &str {
    scenario.strip_suffix("/browser").unwrap_or(scenario)
}

/// Groups the runs of an engine that differ only in their seed. A run that was recorded again, with
/// the same seed and every value equal, counts once. Runs with a failed call are left
/// out; disturbed runs count only if there are no others.
fn groups(runs: &[Sections], engine: Engine) -> Vec<Vec<&Sections>> {
    let mut groups: Vec<Vec<&Sections>> = Vec::new();
    for run in runs.iter().filter(|run| run.engine == engine) {
        match groups.iter_mut().find(|group| group[0].is_beside(run)) {
            Some(group) if group.contains(&run) => {}
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let counted = groups.into_iter().map(|group| counting(group, |run| run.exclusion));
    counted.filter(|group| !group.is_empty()).collect()
}

fn lines_of(real: &[&Sections], simulated: &[&Sections]) -> Vec<Line> {
    let mut lines = Vec::new();
    for SectionValues { flow, section, .. } in &simulated[0].values {
        let both = [real, simulated]
            .map(|runs| runs.iter().filter_map(|run| run.at(flow, section)).collect());
        let rate_mbps = Pair::of(&both, |values| values.rate_mbps, RATE_LIMIT);
        lines.push(Line {
            scenario: simulated[0].scenario.clone(),
            flow: flow.clone(),
            real: real[0].subject.to_string(),
            simulated: simulated[0].subject.to_string(),
            section: section.clone(),
            rate_mbps: Pair { relative: true, ..rate_mbps },
            delay_ms: Pair::of(&both, |values| values.delay_ms, DELAY_LIMIT_MS),
            time_s: Pair::of(&both, |values| values.time_s, TIME_LIMIT_S),
        });
    }
    lines
}

fn rows(run: &Record, flow: &str) -> Option<Vec<Row>> {
    let index = run.trace.flows.iter().position(|name| name == flow)?;
    Some(run.trace.rows.iter().filter(|row| row.flow == index).copied().collect())
}

fn metrics(rows: &[Row], from_s: f64, to_s: f64) -> Metrics {
    let mut within = rows.to_vec();
    within.retain(|row| row.time.as_secs_f64() > from_s && row.time.as_secs_f64() <= to_s);
    Metrics::of(&within, &[])
}

fn rate_mbps(rows: &[Row], from_s: f64, to_s: f64) -> Option<f64> {
    Some(metrics(rows, from_s, to_s).rate_mbps?.mean)
}

fn delay_ms(rows: &[Row], from_s: f64, to_s: f64) -> Option<f64> {
    Some(metrics(rows, from_s, to_s).queuing_delay_ms?.p95)
}

/// Mean time over the increases of the capacity within the section. After a decrease there is no
/// higher rate to reach.
fn time_s(rows: &[Row], from_s: f64, to_s: f64) -> Option<f64> {
    let changes = capacity_changes(rows);
    let within = changes.iter().filter(|change| {
        change.up && (from_s..to_s).contains(&(change.time.as_secs_f64() + ALIGNMENT_S))
    });
    mean(within.filter_map(|change| change.reached_s).collect())
}

/// The lines as text, within a width if there is one.
pub fn table(lines: &[Line], width: Option<usize>) -> String {
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
    let table = Table {
        head: HEAD.to_vec(),
        rows: lines.iter().map(to_cells).collect(),
        left: 5,
        common: vec![0, 1, 2, 3, 5],
        // First the errors may be left out, then the times. The last column says by how much the
        // goal is missed.
        spare: vec![8, 11, 12, 13],
        words: Some(14),
    };
    let [mut met, mut within, mut missed] = [0; 3];
    for (_, pair) in lines.iter().flat_map(Line::pairs) {
        match pair.verdict() {
            Some(GoalResult::Met) => met += 1,
            Some(GoalResult::WithinSpread) => within += 1,
            Some(GoalResult::Missed) => missed += 1,
            None => {}
        }
    }
    let legend = format!(
        "The goals for the errors are 10 % of the rate, 30 ms of the queuing delay's 95th \
         percentile (p95), and 1.5 s of the time to 90 % of a new capacity. Of {} errors {met} \
         meet their goal. {within} more are within the spread: they exceed the goal by no more \
         than chance may cause (Welch's t-test at 5 %). {missed} miss it.\n\
         ± is the 95 % confidence interval of the mean.",
        met + within + missed
    );
    let legend = legend.lines().flat_map(|line| wrapped(line, width.unwrap_or(usize::MAX)));
    let legend: String = legend.map(|line| line + "\n").collect();
    table.text(width) + &legend
}

impl Line {
    fn pairs(&self) -> [(&'static str, &Pair); 3] {
        [("rate", &self.rate_mbps), ("delay", &self.delay_ms), ("time", &self.time_s)]
    }

    /// Names of the values with a verdict.
    fn with_verdict(&self, wanted: GoalResult) -> String {
        let with = self.pairs().into_iter().filter(|(_, pair)| pair.verdict() == Some(wanted));
        with.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
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
    let missed = line.with_verdict(GoalResult::Missed);
    let spread = line.with_verdict(GoalResult::WithinSpread);
    let goal = match (missed.is_empty(), spread.is_empty()) {
        (true, true) => "met".into(),
        (true, false) => format!("within spread: {spread}"),
        (false, true) => format!("missed: {missed}"),
        (false, false) => format!("missed: {missed}; within spread: {spread}"),
    };
    let rate_error = line.rate_mbps.error();
    let delay_error = line.delay_ms.error();
    vec![
        line.scenario.clone(),
        line.flow.clone(),
        line.real.clone(),
        line.simulated.clone(),
        line.section.clone(),
        format!("{}, {}", line.rate_mbps.real.len(), line.rate_mbps.simulated.len()),
        table::with_spread(&line.rate_mbps.real, 3),
        table::with_spread(&line.rate_mbps.simulated, 3),
        rate_error.map_or("-".into(), |error| format!("{:+.1}%", error * 100.0)),
        table::with_spread(&line.delay_ms.real, 1),
        table::with_spread(&line.delay_ms.simulated, 1),
        delay_error.map_or("-".into(), |error| format!("{error:+.1}")),
        table::with_spread(&line.time_s.real, 2),
        table::with_spread(&line.time_s.simulated, 2),
        goal,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(real: &[f64], simulated: &[f64], limit: f64, relative: bool) -> Option<GoalResult> {
        let (real, simulated) = (real.to_vec(), simulated.to_vec());
        Pair { real, simulated, limit, relative }.verdict()
    }

    #[test]
    fn a_rate_may_be_off_by_a_share_and_a_delay_by_ms() {
        assert_eq!(pair(&[2.0], &[2.19], RATE_LIMIT, true), Some(GoalResult::Met));
        assert_eq!(pair(&[2.0], &[1.79], RATE_LIMIT, true), Some(GoalResult::Missed));
        assert_eq!(pair(&[5.0], &[34.0], DELAY_LIMIT_MS, false), Some(GoalResult::Met));
        assert_eq!(pair(&[50.0], &[19.0], DELAY_LIMIT_MS, false), Some(GoalResult::Missed));
    }

    #[test]
    fn a_value_of_only_one_side_is_a_miss_and_one_of_neither_has_no_verdict() {
        assert_eq!(pair(&[3.0], &[], TIME_LIMIT_S, false), Some(GoalResult::Missed));
        assert_eq!(pair(&[], &[3.0], TIME_LIMIT_S, false), Some(GoalResult::Missed));
        assert_eq!(pair(&[], &[], TIME_LIMIT_S, false), None);
    }

    #[test]
    fn a_call_stands_beside_the_browser_variant_of_its_scenario() {
        assert_eq!(played("delft/wired-2/rtt50/browser"), played("delft/wired-2/rtt50"));
        assert_ne!(played("delft/wired-2/rtt50/browser"), played("delft/wired-2/rtt100"));
    }

    #[test]
    fn an_error_beyond_the_goal_may_be_within_the_spread() {
        let judge = |real: &[f64], simulated: &[f64]| pair(real, simulated, RATE_LIMIT, true);
        // The calls differ from each other as much as the simulated mean differs from theirs.
        assert_eq!(judge(&[0.97, 1.52, 1.3], &[1.0, 1.05, 1.1]), Some(GoalResult::WithinSpread));
        assert_eq!(judge(&[1.30, 1.32, 1.31], &[1.0, 1.05, 1.1]), Some(GoalResult::Missed));
        // The spread of a single call is unknown.
        assert_eq!(judge(&[1.3], &[1.0, 1.05, 1.1]), Some(GoalResult::Missed));
    }
}
