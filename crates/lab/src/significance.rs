//! Whether chance alone explains the difference between two sets of runs: two tests on ranks, which ask
//! nothing of how values are distributed.
//!
//! Small sets are judged exactly: the probability is a count of the ways in which chance could have dealt
//! the signs, or the places, of the ranks that are there. Equal values share the mean of their ranks.

/// A difference is more than chance below this probability.
pub const LEVEL: f64 = 0.05;
/// The largest set, of both sides together, whose ways are counted.
const EXACT: usize = 50;
/// The fewest pairs that can differ by more than chance: 2 of 2^6 ways are below [`LEVEL`], 2 of 2^5 not.
const PAIRS: usize = 6;

/// How two sets were held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Wilcoxon's signed ranks: both sets have the same seeds, and each is compared with itself.
    SignedRank,
    /// Mann and Whitney's U, or Wilcoxon's rank sum: each value is compared with all of the other set.
    RankSum,
}

impl Test {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignedRank => "signed-rank",
            Self::RankSum => "rank-sum",
        }
    }
}

/// What a test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Significance {
    /// The test.
    pub test: Test,
    /// Probability, on both sides, of a difference like this one or larger if there is none.
    pub p: f64,
}

impl Significance {
    /// Compares two sets of values, each with its run's seed; `None` if there are too few to tell.
    ///
    /// Signed ranks need six pairs. With fewer, the values count as those of separate runs: pairs that
    /// go together only make that test more careful.
    pub fn of(before: &[(&str, f64)], after: &[(&str, f64)]) -> Option<Self> {
        if let Some(differences) = paired(before, after).filter(|pairs| pairs.len() >= PAIRS) {
            return Some(Self { test: Test::SignedRank, p: signed_rank(&differences) });
        }
        let values = |set: &[(&str, f64)]| set.iter().map(|entry| entry.1).collect::<Vec<f64>>();
        let (before, after) = (values(before), values(after));
        can_tell(before.len(), after.len())
            .then(|| Self { test: Test::RankSum, p: rank_sum(&before, &after) })
    }

    /// Whether the difference is more than chance.
    pub fn is_significant(&self) -> bool {
        self.p <= LEVEL
    }
}

/// After less before of each seed; `None` if the seeds are not the same.
fn paired(before: &[(&str, f64)], after: &[(&str, f64)]) -> Option<Vec<f64>> {
    let after_of = |seed: &str| {
        let mut found = after.iter().filter(|entry| entry.0 == seed);
        // A seed that stands in a set twice has no one partner.
        found.next().filter(|_| found.next().is_none()).map(|entry| entry.1)
    };
    let pairs = before.iter().map(|(seed, value)| Some(after_of(seed)? - value));
    pairs.collect::<Option<Vec<f64>>>().filter(|pairs| pairs.len() == after.len())
}

/// Whether the most extreme of all ways to deal so many ranks is rarer than [`LEVEL`].
fn can_tell(before: usize, after: usize) -> bool {
    let ways = (1..=before.min(after))
        .fold(1.0, |ways, k| ways * (before + after + 1 - k) as f64 / k as f64);
    2.0 / ways <= LEVEL
}

/// Two-sided probability by Wilcoxon's signed ranks; pairs that do not differ are left out.
pub fn signed_rank(differences: &[f64]) -> f64 {
    let differences: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    let sizes: Vec<f64> = differences.iter().map(|value| value.abs()).collect();
    let ranks = doubled_ranks(&sizes);
    let total: usize = ranks.iter().sum();
    let signed = ranks.iter().zip(&differences);
    let positive: usize = signed.filter(|(_, value)| **value > 0.0).map(|(rank, _)| rank).sum();
    if ranks.len() > EXACT {
        let variance = ranks.iter().map(|&rank| (rank * rank) as f64).sum::<f64>() / 4.0;
        return normal_tails(positive as f64 - total as f64 / 2.0, variance);
    }
    // Ways to choose the ranks that are positive, by their sum.
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for rank in ranks {
        for sum in (rank..=total).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    tails(&ways, positive, total as f64 / 2.0)
}

/// Two-sided probability by the sum of the first set's ranks among both sets.
pub fn rank_sum(a: &[f64], b: &[f64]) -> f64 {
    // Of the smaller set there are fewer ways to count; the other's sum is the rest.
    let (a, b) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = doubled_ranks(&all);
    let total: usize = ranks.iter().sum();
    let sum: usize = ranks[..a.len()].iter().sum();
    let (own, count) = (a.len() as f64, all.len() as f64);
    if a.is_empty() || all.len() < 2 {
        return 1.0;
    }
    let expected = own * total as f64 / count;
    if all.len() > EXACT {
        let mean = total as f64 / count;
        let squares: f64 = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum();
        let variance = own * (count - own) / (count * (count - 1.0)) * squares;
        return normal_tails(sum as f64 - expected, variance);
    }
    // Ways to choose so many of the ranks, by their number and sum.
    let mut ways = vec![vec![0.0; total + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for chosen in (1..=a.len()).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            for sum in rank..=total {
                more[0][sum] += fewer[chosen - 1][sum - rank];
            }
        }
    }
    tails(&ways[a.len()], sum, expected)
}

/// The rank of each value from 1 up, equal ones with the mean of theirs, all doubled so that they are whole.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let up_to = sorted.partition_point(|other| other <= value);
        below + 1 + up_to
    };
    values.iter().map(rank).collect()
}

/// Share of the ways whose sum is as far from the expected one as this, or farther.
fn tails(ways: &[f64], sum: usize, expected: f64) -> f64 {
    let distance = |sum: usize| (sum as f64 - expected).abs();
    // Sums are whole and the expected one a fraction of small numbers, so that what is less than this
    // apart is equal.
    let farthest = distance(sum) - 1e-6;
    let far = ways.iter().enumerate().filter(|(sum, _)| distance(*sum) >= farthest);
    far.map(|(_, ways)| ways).sum::<f64>() / ways.iter().sum::<f64>()
}

/// Both tails of a normal distribution, with half a rank for what is whole here; 1 if nothing varies.
fn normal_tails(distance: f64, variance: f64) -> f64 {
    let distance = (distance.abs() - 1.0).max(0.0);
    if variance == 0.0 { 1.0 } else { libm::erfc(distance / (2.0 * variance).sqrt()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 5e-5, "{value} is not {expected}");
    }

    // Hollander and Wolfe, Nonparametric Statistical Methods, table 3.1: V = 40, one-sided 0.0195.
    #[test]
    #[expect(clippy::approx_constant, reason = "3.14 is a value of the table")]
    fn signed_ranks_give_the_probability_of_the_textbook() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let differences: Vec<f64> = before.iter().zip(after).map(|(a, b)| b - a).collect();
        near(signed_rank(&differences), 2.0 * 0.019531);
    }

    // The same, table 4.1: W = 35, one-sided 0.1272.
    #[test]
    fn rank_sums_give_the_probability_of_the_textbook() {
        let a = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let b = [1.15, 0.88, 0.90, 0.74, 1.21];
        near(rank_sum(&a, &b), 2.0 * 0.127206);
        near(rank_sum(&b, &a), 2.0 * 0.127206);
    }

    /// Ranks 1 to n of which these are negative.
    fn with_negative(n: usize, negative: &[usize]) -> Vec<f64> {
        let signed = |rank: usize| if negative.contains(&rank) { -1.0 } else { 1.0 } * rank as f64;
        (1..=n).map(signed).collect()
    }

    // Tables of critical values at 5 %, both sides: T = 0 of 6 pairs, 8 of 10, 52 of 20.
    #[test]
    fn signed_ranks_are_significant_up_to_the_critical_value() {
        near(signed_rank(&with_negative(6, &[])), 2.0 / 64.0);
        assert!(signed_rank(&with_negative(6, &[1])) > LEVEL);
        near(signed_rank(&with_negative(10, &[8])), 2.0 * 25.0 / 1024.0);
        assert!(signed_rank(&with_negative(10, &[9])) > LEVEL);
        assert!(signed_rank(&with_negative(20, &[20, 19, 13])) <= LEVEL);
        assert!(signed_rank(&with_negative(20, &[20, 19, 14])) > LEVEL);
    }

    // Tables of critical values of U at 5 %, both sides: 0 of 4 and 4, 2 of 5 and 5, 23 of 10 and 10.
    #[test]
    fn rank_sums_are_significant_up_to_the_critical_value() {
        // The lowest value of a first set of this size overtakes so many of the second set's.
        let of = |size: usize, overtaken: usize| {
            let b: Vec<f64> = (1..=size).map(|i| i as f64).collect();
            let mut a: Vec<f64> = (0..size).map(|i| -(i as f64)).collect();
            let (whole, rest) = (overtaken / size, overtaken % size);
            (0..whole).for_each(|i| a[i] = 100.0 + i as f64);
            a[whole] = rest as f64 + 0.5;
            rank_sum(&a, &b)
        };
        near(of(4, 0), 2.0 / 70.0);
        assert!(of(4, 1) > LEVEL);
        near(of(5, 2), 2.0 * 4.0 / 252.0);
        assert!(of(5, 3) > LEVEL);
        assert!(of(10, 23) <= LEVEL && of(10, 24) > LEVEL);
    }

    #[test]
    fn equal_values_share_their_ranks_and_sets_that_do_not_differ_say_so() {
        assert_eq!(doubled_ranks(&[3.0, 1.0, 3.0]), [5, 2, 5]);
        near(signed_rank(&[0.0, 0.0]), 1.0);
        near(rank_sum(&[1.0; 5], &[1.0; 5]), 1.0);
        // Nothing is random in either set: one of the two ways out of 252 on each side.
        near(rank_sum(&[1.0; 5], &[2.0; 5]), 2.0 / 252.0);
    }

    #[test]
    fn many_values_are_judged_by_the_normal_distribution_which_is_near_the_exact_one() {
        // 50 pairs are counted, 52 are not; two that hardly matter lie between.
        let negative: Vec<usize> = (1..=50).filter(|rank| rank % 3 == 0).collect();
        let exact = signed_rank(&with_negative(50, &negative));
        let mut more = with_negative(50, &negative);
        more.extend([0.1, -0.2]);
        assert!((exact - signed_rank(&more)).abs() < 0.01, "{exact}");
        let a: Vec<f64> = (0..25).map(|i| f64::from(i * 2)).collect();
        let b: Vec<f64> = (0..25).map(|i| f64::from(i * 2 + 9)).collect();
        let exact = rank_sum(&a, &b);
        let [mut a, mut b] = [a, b];
        a.push(24.5);
        b.push(33.5);
        assert!((exact - rank_sum(&a, &b)).abs() < 0.01, "{exact}");
    }

    fn seeded(values: &[f64]) -> Vec<(String, f64)> {
        values.iter().enumerate().map(|(seed, value)| (seed.to_string(), *value)).collect()
    }

    fn compare(before: &[(String, f64)], after: &[(String, f64)]) -> Option<Significance> {
        let [before, after] = [before, after]
            .map(|set| set.iter().map(|(seed, value)| (seed.as_str(), *value)).collect::<Vec<_>>());
        Significance::of(&before, &after)
    }

    #[test]
    fn seeds_that_both_sets_have_are_compared_with_themselves() {
        // Seeds differ by far more than a change of 1, which each of them shows.
        let before = seeded(&[10.0, 200.0, 3_000.0, 40.0, 500.0, 6_000.0]);
        let after: Vec<_> =
            before.iter().rev().map(|(s, value)| (s.clone(), value + 1.0)).collect();
        let found = compare(&before, &after).unwrap();
        assert_eq!(found.test, Test::SignedRank);
        assert!(found.is_significant());
        let others: Vec<_> = after.iter().map(|(s, value)| (format!("1{s}"), *value)).collect();
        let found = compare(&before, &others).unwrap();
        assert_eq!(found.test, Test::RankSum);
        assert!(!found.is_significant());
    }

    #[test]
    fn too_few_values_tell_nothing() {
        assert_eq!(compare(&seeded(&[1.0; 3]), &seeded(&[2.0; 3])), None);
        assert_eq!(compare(&seeded(&[1.0]), &seeded(&[2.0; 30])), None);
        let four = compare(&seeded(&[1.0; 4]), &seeded(&[2.0; 4])).unwrap();
        assert_eq!(four.test, Test::RankSum);
        assert!(four.is_significant());
    }
}
