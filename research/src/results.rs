//! Scores and contests as JSON, as `weir research score --json` prints them.

use serde_json::{Value, json};
use weir_metrics::mean;

use super::contest::{Contest, FamilyResult, mean_and_worst_tenth};
use super::score::Score;

/// Weight of the worst tenth in the objective.
pub const WORST_WEIGHT: f64 = 0.5;

/// The scores of one controller.
pub fn of<'a>(scores: &'a [Score], controller: &str) -> Vec<&'a Score> {
    scores.iter().filter(|score| score.controller == controller).collect()
}

/// Means of each controller, the contests against the others, and every run.
pub fn to_json(names: &[&str], scores: &[Score], contests: &[Contest]) -> Value {
    let controllers: Vec<Value> = names.iter().map(|name| means(name, scores)).collect();
    let contests: Vec<Value> = contests.iter().map(contest).collect();
    json!({ "controllers": controllers, "contests": contests, "runs": scores })
}

fn means(name: &str, scores: &[Score]) -> Value {
    let (regret, worst) = mean_and_worst_tenth(&of(scores, name)).unwrap_or_default();
    let objective = regret + WORST_WEIGHT * worst;
    let mut row = json!({
        "controller": name, "regret": regret, "worst_tenth": worst, "objective": objective,
    });
    if let Some(good) = good_ratio(&of(scores, name)) {
        row["good_ratio"] = good.into();
    }
    row
}

/// Mean good time over the runs that have one.
pub fn good_ratio(scores: &[&Score]) -> Option<f64> {
    mean(scores.iter().filter_map(|score| score.good_ratio).collect())
}

fn contest(contest: &Contest) -> Value {
    let families: Vec<Value> = contest.families.iter().map(family).collect();
    json!({
        "rival": contest.rival, "won_tied_lost": contest.counts(),
        "is_won": contest.is_won(), "families": families,
    })
}

fn family(family: &FamilyResult) -> Value {
    json!({
        "family": family.family, "won_tied_lost": family.counts,
        "own": family.own, "rival": family.rival,
        "better_by": family.better_by, "confidence": family.confidence,
        "p": family.p, "outcome": family.outcome.word(),
    })
}
