//! What each rule and each constant of `sluice` is worth: the regret that a change of it adds.
//!
//! Every changed controller runs the same scenarios with the same seeds as the one of the page. So
//! each run has a pair, and what is lost is the difference of the two. A mean over many scenarios
//! hides a rule that one of them needs. So each scenario is judged by itself, too.

use serde_json::{Value, json};
use weir_metrics::mean;
use weir_record::spread::Spread;

use super::contest::{Bout, Contest, Outcome};
use super::score::Score;

/// What one change costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// Number of runs that were compared.
    pub runs: usize,
    /// Those of them in which the change changed the regret.
    pub moved: usize,
    /// Mean regret that the change adds.
    pub lost: f64,
    /// Half the width of its 95 % interval over the runs; `None` for a single run.
    pub confidence: Option<f64>,
    /// The controller of the page against the changed one.
    pub contest: Contest,
}

/// What a change loses, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A scenario or a family is worse beyond doubt.
    Real,
    /// Nothing is worse beyond doubt.
    None,
    /// No run is different: these scenarios do not ask for it.
    Unasked,
}

impl Loss {
    /// As tables and JSON say it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Real => "loses",
            Self::None => "no loss",
            Self::Unasked => "not asked",
        }
    }
}

impl Worth {
    /// Compares the controller named `own` with the one named `changed`.
    pub fn of(own: &str, changed: &str, scores: &[Score]) -> Self {
        let contest = Contest::between(own, changed, scores);
        let bouts = contest.bouts.iter();
        let differences: Vec<f64> =
            bouts.flat_map(|bout| bout.improvements.iter().copied()).collect();
        Self {
            runs: differences.len(),
            moved: differences.iter().filter(|difference| **difference != 0.0).count(),
            lost: mean(differences.clone()).unwrap_or_default(),
            confidence: Spread::of(&differences).map(|spread| spread.confidence),
            contest,
        }
    }

    /// Whether the change loses something.
    pub fn loss(&self) -> Loss {
        // What the controller of the page wins, the changed one loses.
        let mut outcomes = self.contest.bouts.iter().map(|bout| bout.outcome);
        let mut of_families = self.contest.families.iter().map(|family| family.outcome);
        match self.moved {
            0 => Loss::Unasked,
            _ if outcomes.any(|it| it == Outcome::Win) => Loss::Real,
            _ if of_families.any(|it| it == Outcome::Win) => Loss::Real,
            _ => Loss::None,
        }
    }

    /// The scenario that loses most.
    pub fn worst(&self) -> Option<&Bout> {
        self.contest.bouts.iter().max_by(|a, b| a.better_by.total_cmp(&b.better_by))
    }

    /// As `weir research ablate --json` prints it.
    pub fn to_json(&self, change: &str, settings: &[String]) -> Value {
        let [lost, same, gained] = self.contest.counts();
        let mut scenarios = Vec::new();
        for bout in &self.contest.bouts {
            scenarios.push(json!({ "scenario": bout.scenario, "lost": bout.better_by }));
        }
        json!({
            "change": change, "settings": settings, "loss": self.loss().word(),
            "runs": self.runs, "moved": self.moved,
            "lost": self.lost, "confidence": self.confidence,
            "scenarios_lost_same_gained": [lost, same, gained], "scenarios": scenarios,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(controller: &str, scenario: &str, seed: u64, regret: f64) -> Score {
        Score::of_regret(&format!("x/{scenario}.toml"), controller, seed, regret)
    }

    /// Ten scenarios with three seeds, of which the change costs the first this much regret.
    fn worth(first: f64) -> Worth {
        let mut scores = Vec::new();
        for scenario in 0..10 {
            for seed in 1..=3 {
                let (id, regret) = (format!("{scenario}"), 0.1 + seed as f64 * 1e-3);
                let more = if scenario == 0 { first } else { 0.0 };
                scores.push(score("sluice", &id, seed, regret));
                scores.push(score("S-1 off", &id, seed, regret + more));
            }
        }
        Worth::of("sluice", "S-1 off", &scores)
    }

    #[test]
    fn a_rule_that_one_scenario_needs_is_not_lost_in_the_mean() {
        let worth = worth(0.05);
        assert_eq!((worth.runs, worth.moved, worth.loss()), (30, 3, Loss::Real));
        assert!((worth.lost - 0.005).abs() < 1e-12, "{worth:?}");
        assert_eq!(worth.worst().unwrap().scenario, "x/0.toml");
    }

    #[test]
    fn what_changes_nothing_was_not_asked_for_and_what_gains_is_no_loss() {
        assert_eq!(worth(0.0).loss(), Loss::Unasked);
        assert_eq!(worth(-0.05).loss(), Loss::None);
    }
}
