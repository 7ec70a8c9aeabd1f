//! Compares two controllers over many scored runs.
//!
//! A scenario is won if, over the paired seeds, the lower end of the 95 % interval of the
//! improvement is above [`MARGIN`]. It is lost if the upper end of the interval is below
//! `-MARGIN`. Otherwise it is a tie. A family is judged by Wilcoxon's signed-rank test over all its
//! paired runs, corrected for the number of families after Holm. The test tells whether chance
//! within these scenarios explains the difference. It says nothing of other scenarios: with eight
//! of them, no test over scenarios could be significant after the correction for twelve families.

use std::collections::BTreeMap;

use weir_metrics::mean;
use weir_record::significance::{LEVEL, signed_rank};
use weir_record::spread::Spread;

use super::Family;
use super::score::Score;

/// Smallest difference of regrets that matters.
pub const MARGIN: f64 = 0.01;
/// Share of the scenarios that a claim needs to win.
pub const CLAIM: f64 = 0.6;

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The own controller is better.
    Win,
    /// Neither is better beyond doubt.
    Tie,
    /// The rival is better.
    Loss,
}

impl Outcome {
    /// As tables and JSON say it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Win => "won",
            Self::Tie => "tie",
            Self::Loss => "lost",
        }
    }
}

/// A scenario under both controllers.
#[derive(Clone, Debug, PartialEq)]
pub struct Bout {
    /// Scenario id.
    pub scenario: String,
    /// Its family.
    pub family: String,
    /// Mean regret of the own controller.
    pub own: f64,
    /// Mean regret of the rival.
    pub rival: f64,
    /// The rival's regret less the own one: mean over the seeds.
    pub better_by: f64,
    /// The improvement of each seed.
    pub improvements: Vec<f64>,
    /// The seed with the least improvement.
    pub worst_seed: u64,
    /// Result.
    pub outcome: Outcome,
}

/// The scenarios of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyResult {
    /// Name of the family.
    pub family: String,
    /// Scenarios won, tied and lost.
    pub counts: [usize; 3],
    /// Mean regret of the own controller.
    pub own: f64,
    /// Mean regret of the rival.
    pub rival: f64,
    /// Mean improvement.
    pub better_by: f64,
    /// Half the width of its 95 % interval over the runs; `None` for a single run.
    pub confidence: Option<f64>,
    /// P-value of the signed-rank test over the runs, after Holm's correction.
    pub p: f64,
    /// Result: at least [`MARGIN`] better or worse, and significant.
    pub outcome: Outcome,
}

/// One controller against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// Name of the rival.
    pub rival: String,
    /// Each scenario, in the order of the scores.
    pub bouts: Vec<Bout>,
    /// Each family.
    pub families: Vec<FamilyResult>,
}

impl Contest {
    /// Compares the scores of two controllers. Runs without a partner of the same scenario and seed
    /// do not count.
    pub fn between(own: &str, rival: &str, scores: &[Score]) -> Self {
        let (of_own, of_rival) = (own, rival);
        let [mut own, mut theirs] = [BTreeMap::new(), BTreeMap::new()];
        for score in scores {
            let key = (score.scenario.as_str(), score.seed);
            if score.controller == of_own {
                own.insert(key, score);
            }
            if score.controller == of_rival {
                theirs.insert(key, score);
            }
        }
        let mut pairs: BTreeMap<&str, Vec<(&Score, &Score)>> = BTreeMap::new();
        for (key, own) in &own {
            if let Some(rival) = theirs.get(key) {
                pairs.entry(key.0).or_default().push((own, rival));
            }
        }
        let bouts: Vec<Bout> = pairs.values().map(|pairs| bout(pairs)).collect();
        Self { rival: rival.into(), families: families(&bouts), bouts }
    }

    /// Scenarios won, tied and lost.
    pub fn counts(&self) -> [usize; 3] {
        counts(self.bouts.iter())
    }

    /// Whether the protocol allows the claim of being better: no family is lost, and enough of the
    /// scenarios are won.
    pub fn is_won(&self) -> bool {
        let [won, ..] = self.counts();
        let lost = self.families.iter().any(|family| family.outcome == Outcome::Loss);
        !lost && won as f64 >= CLAIM * self.bouts.len() as f64 && won > 0
    }
}

/// Result of a difference whose interval has this half width.
fn outcome(better_by: f64, half: f64) -> Outcome {
    match better_by {
        value if value - half > MARGIN => Outcome::Win,
        value if value + half < -MARGIN => Outcome::Loss,
        _ => Outcome::Tie,
    }
}

fn bout(pairs: &[(&Score, &Score)]) -> Bout {
    let differences: Vec<f64> =
        pairs.iter().map(|(own, rival)| rival.regret - own.regret).collect();
    let better_by = mean(differences.clone()).unwrap_or_default();
    // One seed tells nothing of chance.
    let half = Spread::of(&differences).map_or(f64::INFINITY, |spread| spread.confidence);
    let worst = pairs.iter().zip(&differences).min_by(|a, b| a.1.total_cmp(b.1));
    let first = pairs[0].0;
    Bout {
        scenario: first.scenario.clone(),
        family: first.family.clone(),
        own: mean(pairs.iter().map(|pair| pair.0.regret).collect()).unwrap_or_default(),
        rival: mean(pairs.iter().map(|pair| pair.1.regret).collect()).unwrap_or_default(),
        better_by,
        improvements: differences.clone(),
        worst_seed: worst.map_or(0, |(pair, _)| pair.0.seed),
        outcome: outcome(better_by, half),
    }
}

fn counts<'a>(bouts: impl Iterator<Item = &'a Bout>) -> [usize; 3] {
    let mut counts = [0; 3];
    for bout in bouts {
        counts[bout.outcome as usize] += 1;
    }
    counts
}

/// Place of a family in tables: generated ones in their order, then others by name.
fn place(family: &str) -> (usize, &str) {
    let known = Family::ALL.iter().position(|known| known.name() == family);
    (known.unwrap_or(Family::ALL.len()), family)
}

fn families(bouts: &[Bout]) -> Vec<FamilyResult> {
    let mut by_family: BTreeMap<(usize, &str), Vec<&Bout>> = BTreeMap::new();
    for bout in bouts {
        by_family.entry(place(&bout.family)).or_default().push(bout);
    }
    let mut gains: Vec<Vec<f64>> = Vec::new();
    for bouts in by_family.values() {
        gains.push(bouts.iter().flat_map(|bout| bout.improvements.iter().copied()).collect());
    }
    let plain: Vec<f64> = gains.iter().map(|gains| signed_rank(gains)).collect();
    let mut results = Vec::new();
    for ((((_, name), bouts), gains), p) in by_family.into_iter().zip(gains).zip(holm(&plain)) {
        let confidence = Spread::of(&gains).map(|spread| spread.confidence);
        let better_by = mean(gains).unwrap_or_default();
        let sign = if p <= LEVEL { 0.0 } else { f64::INFINITY };
        results.push(FamilyResult {
            family: name.into(),
            own: mean(bouts.iter().map(|bout| bout.own).collect()).unwrap_or_default(),
            rival: mean(bouts.iter().map(|bout| bout.rival).collect()).unwrap_or_default(),
            counts: counts(bouts.into_iter()),
            better_by,
            confidence,
            p,
            outcome: outcome(better_by, sign),
        });
    }
    results
}

/// P-values corrected for their number: the smallest is multiplied by the number of tests, the next
/// by one less, and so on; none is below a smaller one's (Holm 1979).
pub fn holm(plain: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..plain.len()).collect();
    order.sort_by(|&a, &b| plain[a].total_cmp(&plain[b]));
    let (mut corrected, mut least) = (vec![0.0; plain.len()], 0.0_f64);
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((plain[index] * (plain.len() - rank) as f64).min(1.0));
        corrected[index] = least;
    }
    corrected
}

/// Mean regret and the mean of its worst tenth, over the scenarios of one controller.
pub fn mean_and_worst_tenth(scores: &[&Score]) -> Option<(f64, f64)> {
    let mut of: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for score in scores {
        of.entry(&score.scenario).or_default().push(score.regret);
    }
    let mut regrets: Vec<f64> = of.into_values().filter_map(mean).collect();
    regrets.sort_by(|a, b| b.total_cmp(a));
    let tenth = regrets.len().div_ceil(10);
    Some((mean(regrets.clone())?, mean(regrets[..tenth].to_vec())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(controller: &str, family: &str, scenario: u64, seed: u64, regret: f64) -> Score {
        let scenario = format!("x/{family}/{scenario}.toml");
        Score::of_regret(&scenario, controller, seed, regret)
    }

    /// Both controllers on this many scenarios with three seeds; the rival is worse by `by`.
    fn both(family: &str, scenarios: u64, by: f64) -> Vec<Score> {
        let runs = (1..=scenarios).flat_map(|scenario| (1..=3).map(move |seed| (scenario, seed)));
        runs.flat_map(|(scenario, seed)| {
            // Seeds and scenarios differ a little, so that there is an interval and ranks differ.
            let noise = scenario as f64 * 1e-4 + seed as f64 * 1e-5;
            [
                score("own", family, scenario, seed, 0.1),
                score("rival", family, scenario, seed, 0.1 + by + noise),
            ]
        })
        .collect()
    }

    #[test]
    fn a_family_is_won_if_the_ranks_say_so_after_correction() {
        let mut scores = both("steps", 8, 0.05);
        scores.extend(both("walk", 8, 0.0));
        let contest = Contest::between("own", "rival", &scores);
        let [steps, walk] = contest.families.as_slice() else { panic!("{contest:?}") };
        assert_eq!((steps.family.as_str(), steps.counts), ("steps", [8, 0, 0]));
        assert_eq!(steps.outcome, Outcome::Win);
        // All 24 runs have one sign: 2 of 2^24, doubled for two families.
        assert!((steps.p - 4.0 / 2_f64.powi(24)).abs() < 1e-15, "{steps:?}");
        assert_eq!((walk.counts, walk.outcome), ([0, 8, 0], Outcome::Tie));
        // Half of the scenarios are won, and the claim needs three of five.
        assert_eq!(contest.counts(), [8, 8, 0]);
        assert!(!contest.is_won());
        assert!(Contest::between("own", "rival", &both("steps", 8, 0.05)).is_won());
    }

    #[test]
    fn a_lost_family_forbids_the_claim() {
        let mut scores = both("steps", 20, 0.05);
        scores.extend(both("walk", 8, -0.05));
        let contest = Contest::between("own", "rival", &scores);
        assert_eq!(contest.families[1].outcome, Outcome::Loss);
        assert!(contest.counts() == [20, 0, 8] && !contest.is_won());
        assert!(Contest::between("rival", "own", &scores).families[1].outcome == Outcome::Win);
    }

    #[test]
    fn one_seed_wins_nothing() {
        let scores: Vec<Score> =
            both("steps", 3, 0.5).into_iter().filter(|score| score.seed == 1).collect();
        assert_eq!(Contest::between("own", "rival", &scores).counts(), [0, 3, 0]);
    }

    // By hand: 0.01 x 3, 0.02 x 2, and 0.03 x 1, which is raised to the value before it.
    #[test]
    fn holm_multiplies_by_the_tests_that_are_left() {
        let corrected = holm(&[0.03, 0.01, 0.02]);
        let wanted = [0.04, 0.03, 0.04];
        let near = corrected.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near, "{corrected:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn the_worst_tenth_is_of_scenarios() {
        let scores: Vec<Score> =
            (1..=20).map(|it| score("own", "steps", it, 1, it as f64 / 100.0)).collect();
        let all: Vec<&Score> = scores.iter().collect();
        let (mean, worst) = mean_and_worst_tenth(&all).unwrap();
        assert!((mean - 0.105).abs() < 1e-12 && (worst - 0.195).abs() < 1e-12);
        assert_eq!(mean_and_worst_tenth(&[]), None);
    }
}
