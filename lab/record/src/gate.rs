//! Judges the expectations of scenarios: whether they hold, fail, or are known misses.

use weir_metrics::mean;
use weir_scenario::requirement::REQUIREMENTS;

use crate::compare::add_distinct;
use crate::spread::Spread;
use crate::summary::{Bound, ExpectRow, Summary};

/// Result of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It does not hold.
    Fails,
    /// The mean of several seeds is on the wrong side of the limit, but chance alone may explain
    /// it.
    InDoubt,
    /// It does not hold, and the scenario declares it a known miss.
    KnownMiss,
    /// It holds although the scenario declares it a known miss.
    MissIsGone,
}

impl Outcome {
    /// The word in tables. What makes a check fail is in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "FAILS",
            Self::InDoubt => "in doubt",
            Self::KnownMiss => "known miss",
            Self::MissIsGone => "KNOWN MISS HOLDS",
        }
    }

    /// Whether the check passes; a `strict` check also fails if there is doubt.
    pub const fn passes(self, strict: bool) -> bool {
        match self {
            Self::Holds | Self::KnownMiss => true,
            Self::InDoubt => !strict,
            Self::Fails | Self::MissIsGone => false,
        }
    }
}

/// How sure a miss of several seeds must be, which depends on how many are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Hundreds are judged at once, and a test at 5 % would reject some of them by chance: a
    /// two-sided test at 0.1 % must reject.
    OfMany,
    /// A few are judged: the limit must be outside of the 95 % interval, which is shown.
    OfFew,
}

/// An expectation of a scenario under one controller, over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Scenario id.
    pub scenario: String,
    /// Controller.
    pub controller: String,
    /// `sim` or `call`.
    pub engine: String,
    /// What is expected: text, limit, reason of a known miss. `measured` is the mean over the
    /// seeds, `None` if a seed has no value.
    pub row: ExpectRow,
    /// Deciding flows of the seeds that miss the expectation, or of all seeds if none misses it.
    /// Empty if the metric is of all flows together.
    pub flows: Vec<String>,
    /// Half the width of the mean's 95 % confidence interval; `None` for fewer than two seeds.
    pub confidence: Option<f64>,
    /// Seeds of the runs.
    pub seeds: Vec<String>,
    /// Number of seeds with which it holds.
    pub held: usize,
    /// The result.
    pub outcome: Outcome,
}

/// Judges every expectation of every scenario and controller by its mean over the seeds, in the
/// order of the runs. A run that was recorded again, with the same seed and every value equal,
/// counts once.
///
/// With one seed the result is exact, because equal seeds give equal runs. With several seeds an
/// expectation fails only if it is missed with this certainty. A known miss is gone when the
/// expectation holds with every seed.
pub fn judge(summaries: &[Summary], certainty: Certainty) -> Vec<Judgement> {
    let mut groups: Vec<Vec<&Summary>> = Vec::new();
    for summary in summaries {
        let own = groups.iter_mut().find(|group| {
            (&group[0].scenario, &group[0].controller) == (&summary.scenario, &summary.controller)
        });
        match own {
            Some(group) => add_distinct(group, summary),
            None => groups.push(vec![summary]),
        }
    }
    groups.iter().flat_map(|group| judge_group(group, certainty)).collect()
}

fn judge_group(runs: &[&Summary], certainty: Certainty) -> Vec<Judgement> {
    let first = runs[0];
    let mut judgements = Vec::new();
    for (index, row) in first.expect.iter().enumerate() {
        let rows = runs.iter().filter_map(|run| run.expect.get(index));
        let held = rows.clone().filter(|row| row.pass).count();
        let values: Option<Vec<f64>> = rows.map(|row| row.measured).collect();
        let values = values.unwrap_or_default();
        let spread = Spread::of(&values);
        let measured = mean(values);
        let holds = measured.is_some_and(|value| row.bound.holds(value, row.limit));
        let in_doubt = measured.zip(spread).is_some_and(|(value, spread)| {
            let half = match certainty {
                Certainty::OfMany => spread.doubt,
                Certainty::OfFew => spread.confidence,
            };
            (value - row.limit).abs() <= half
        });
        let outcome = match &row.known_miss {
            None if holds => Outcome::Holds,
            None if in_doubt => Outcome::InDoubt,
            None => Outcome::Fails,
            Some(_) if held == runs.len() && !row.by_chance => Outcome::MissIsGone,
            Some(_) => Outcome::KnownMiss,
        };
        judgements.push(Judgement {
            scenario: first.scenario.clone(),
            controller: first.controller.clone(),
            engine: first.engine.clone(),
            row: ExpectRow { measured, pass: holds, ..row.clone() },
            flows: deciding(runs, index, held == runs.len()),
            confidence: spread.map(|spread| spread.confidence),
            seeds: runs.iter().map(|run| run.seed.clone()).collect(),
            held,
            outcome,
        });
    }
    judgements
}

/// The flows that decided, each once, in the order of the runs.
fn deciding(runs: &[&Summary], index: usize, all_hold: bool) -> Vec<String> {
    let rows = runs.iter().filter_map(|run| run.expect.get(index));
    let mut flows: Vec<String> = Vec::new();
    for flow in rows.filter(|row| all_hold || !row.pass).filter_map(|row| row.flow.as_ref()) {
        if !flows.contains(flow) {
            flows.push(flow.clone());
        }
    }
    flows
}

/// Whether a controller meets a requirement of RFC 8836.
#[derive(Clone, Debug, PartialEq)]
pub struct RequirementVerdict {
    /// Number of the requirement in RFC 8836, such as `1a`.
    pub requirement: &'static str,
    /// The requirement in a few words.
    pub text: &'static str,
    /// Controller.
    pub controller: String,
    /// Whether it is met; `None` if no expectation of the runs tests it.
    pub met: Option<bool>,
    /// The deciding expectation: the failed one that is furthest from its limit. If none failed,
    /// the one that is nearest to its limit.
    pub by: Option<Judgement>,
    /// Number of expectations that test it.
    pub tested: usize,
    /// How many of them hold.
    pub held: usize,
}

/// A verdict for each requirement and controller [RFC8836 §2]: met if every expectation that names
/// it holds.
///
/// [RFC8836 §2]: https://www.rfc-editor.org/rfc/rfc8836#section-2
pub fn verdicts(judgements: &[Judgement]) -> Vec<RequirementVerdict> {
    let mut controllers: Vec<&str> = Vec::new();
    for judgement in judgements {
        if !controllers.contains(&judgement.controller.as_str()) {
            controllers.push(&judgement.controller);
        }
    }
    let mut all = Vec::new();
    for &(requirement, text) in REQUIREMENTS {
        for &controller in &controllers {
            let mut tested: Vec<&Judgement> = judgements.iter().collect();
            tested.retain(|judgement| {
                judgement.controller == controller
                    && judgement.row.requirements.iter().any(|known| known == requirement)
            });
            let held = tested.iter().filter(|judgement| judgement.row.pass).count();
            let by = tested.iter().min_by(|a, b| margin(&a.row).total_cmp(&margin(&b.row)));
            all.push(RequirementVerdict {
                requirement,
                text,
                controller: controller.into(),
                met: (!tested.is_empty()).then_some(held == tested.len()),
                by: by.map(|judgement| (*judgement).clone()),
                tested: tested.len(),
                held,
            });
        }
    }
    all
}

/// Distance from the limit, relative to the limit; positive on the right side.
fn margin(row: &ExpectRow) -> f64 {
    let Some(measured) = row.measured else { return f64::NEG_INFINITY };
    let scale = if row.limit == 0.0 { 1.0 } else { row.limit.abs() };
    match row.bound {
        Bound::Above => (measured - row.limit) / scale,
        Bound::Below => (row.limit - measured) / scale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Engine, RunInfo};
    use crate::subject::Subject;
    use weir_scenario::parse;
    use weir_sim::trace::Trace;

    fn row(text: &str, measured: Option<f64>, known_miss: bool) -> ExpectRow {
        let (bound, limit) = (Bound::Above, 0.8);
        ExpectRow {
            text: text.into(),
            flow: Some("media-1".into()),
            measured,
            limit,
            bound,
            pass: measured.is_some_and(|value| bound.holds(value, limit)),
            known_miss: if known_miss { Some("because".into()) } else { None },
            by_chance: false,
            requirements: vec!["2".into()],
        }
    }

    /// A run under a controller with these expectations.
    fn run(controller: &str, expect: Vec<ExpectRow>) -> Summary {
        let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"1s\"\n\
                    [network]\n[[flow]]\n";
        let scenario = parse("x", text, None).unwrap();
        let info = RunInfo {
            scenario: "x".into(),
            subject: Subject::controller(controller),
            engine: Engine::Sim,
            seed: 1,
        };
        let trace = Trace::new(vec!["media-1".into()]);
        Summary { expect, ..Summary::of(&scenario, &info, &trace, None) }
    }

    /// Runs with these values, each with a seed of its own.
    fn runs_with(values: &[Option<f64>], known_miss: bool) -> Vec<Summary> {
        let mut runs = Vec::new();
        for (seed, &value) in values.iter().enumerate() {
            let run = run("nada", vec![row("e", value, known_miss)]);
            runs.push(Summary { seed: seed.to_string(), ..run });
        }
        runs
    }

    fn outcome(values: &[Option<f64>], known_miss: bool) -> Outcome {
        judge(&runs_with(values, known_miss), Certainty::OfMany)[0].outcome
    }

    #[test]
    fn a_run_that_was_recorded_four_times_is_judged_as_one() {
        let missed = run("nada", vec![row("e", Some(0.79), false)]);
        let judged = judge(&vec![missed; 4], Certainty::OfMany);
        assert_eq!((judged[0].seeds.len(), judged[0].confidence), (1, None));
    }

    #[test]
    fn an_expectation_holds_or_fails_and_a_known_miss_must_stay_one() {
        assert_eq!(outcome(&[Some(0.8)], false), Outcome::Holds);
        assert_eq!(outcome(&[Some(0.79)], false), Outcome::Fails);
        assert_eq!(outcome(&[None], false), Outcome::Fails);
        assert_eq!(outcome(&[Some(0.79)], true), Outcome::KnownMiss);
        assert_eq!(outcome(&[Some(0.8)], true), Outcome::MissIsGone);
        assert!(Outcome::KnownMiss.passes(true) && !Outcome::MissIsGone.passes(false));
    }

    #[test]
    fn of_several_seeds_the_mean_decides_and_fails_only_beyond_doubt() {
        assert_eq!(outcome(&[Some(0.7), Some(0.95)], false), Outcome::Holds);
        assert_eq!(outcome(&[Some(0.7), Some(0.85)], false), Outcome::InDoubt);
        assert_eq!(outcome(&[Some(0.7), Some(0.7)], false), Outcome::Fails);
        assert_eq!(outcome(&[Some(0.9), None], false), Outcome::Fails);
        assert!(Outcome::InDoubt.passes(false) && !Outcome::InDoubt.passes(true));
        // Mean 0.78, standard error 0.002: ten standard errors below the limit, with three degrees
        // of freedom.
        let near = [0.776, 0.778, 0.782, 0.784].map(Some);
        assert_eq!(outcome(&near, false), Outcome::InDoubt);
        // With nine degrees of freedom the same values are beyond doubt.
        let near: Vec<_> = near.iter().cycle().take(10).copied().collect();
        assert_eq!(outcome(&near, false), Outcome::Fails);
    }

    #[test]
    fn of_few_a_miss_counts_once_the_limit_is_outside_of_the_shown_interval() {
        // Means 0.25 and 0.7, 95 % intervals of 0.124 and 0.248 to each side.
        for (values, expected) in [
            ([0.2, 0.25, 0.3], [Outcome::InDoubt, Outcome::Fails]),
            ([0.6, 0.7, 0.8], [Outcome::InDoubt, Outcome::InDoubt]),
        ] {
            let runs = values.map(|value| run("nada", vec![row("e", Some(value), false)]));
            let judged = [Certainty::OfMany, Certainty::OfFew].map(|it| judge(&runs, it));
            assert_eq!(judged.map(|it| it[0].outcome), expected);
        }
    }

    #[test]
    fn the_flows_that_decided_are_those_of_the_seeds_that_miss_it() {
        let of = |value: f64, flow: &str| {
            let row = row("e", Some(value), false);
            run("nada", vec![ExpectRow { flow: Some(flow.into()), ..row }])
        };
        let runs = [of(0.9, "media-1"), of(0.1, "media-3"), of(0.2, "media-2"), of(0.3, "media-3")];
        assert_eq!(judge(&runs, Certainty::OfMany)[0].flows, ["media-3", "media-2"]);
        assert_eq!(judge(&runs[..1], Certainty::OfMany)[0].flows, ["media-1"]);
    }

    #[test]
    fn of_several_seeds_a_known_miss_is_gone_when_all_hold() {
        assert_eq!(outcome(&[Some(0.79), Some(0.95), Some(0.95)], true), Outcome::KnownMiss);
        assert_eq!(outcome(&[Some(0.81), Some(0.95), Some(0.8)], true), Outcome::MissIsGone);
        assert_eq!(outcome(&[Some(0.95), None], true), Outcome::KnownMiss);
        let runs = [0.79, 0.95].map(|value| run("nada", vec![row("e", Some(value), true)]));
        let judgement = &judge(&runs, Certainty::OfMany)[0];
        assert_eq!((judgement.held, judgement.seeds.len()), (1, 2));
        let by_chance = ExpectRow { by_chance: true, ..row("e", Some(0.9), true) };
        assert_eq!(
            judge(&[run("nada", vec![by_chance])], Certainty::OfMany)[0].outcome,
            Outcome::KnownMiss
        );
    }

    // [RFC8836 §2]
    #[test]
    fn a_requirement_is_met_if_all_that_speaks_of_it_holds() {
        let runs = [
            run("nada", vec![row("near", Some(0.81), false), row("far", Some(0.95), false)]),
            run("scream", vec![row("near", Some(0.95), false), row("far", Some(0.4), true)]),
        ];
        let verdicts = verdicts(&judge(&runs, Certainty::OfMany));
        let of = |requirement: &str, controller: &str| {
            let wanted = |verdict: &&RequirementVerdict| {
                (verdict.requirement, verdict.controller.as_str()) == (requirement, controller)
            };
            let found = verdicts.iter().find(wanted).unwrap();
            (found.met, found.by.as_ref().map(|by| by.row.text.clone()), found.held)
        };
        assert_eq!(of("2", "nada"), (Some(true), Some("near".into()), 2));
        assert_eq!(of("2", "scream"), (Some(false), Some("far".into()), 1));
        assert_eq!(of("1a", "nada"), (None, None, 0));
    }
}
