//! Tests whether chance alone explains the difference between two sets of runs. Both tests use
//! ranks, so they assume nothing about the distribution of values.
//!
//! For small sets the probability is exact: it counts all possible assignments of signs to the
//! ranks, or of ranks to the sets. Larger sets use the normal distribution. Equal values share the
//! mean of their ranks.

/// Level of significance: a difference with at most this probability is more than chance.
pub const LEVEL: f64 = 0.05;
/// Largest number of ranks, of both sets together, for which the probability is exact.
const EXACT: usize = 50;
/// Fewest pairs that can give a significant result: 2 of 2^6 assignments of signs are below
/// [`LEVEL`], 2 of 2^5 are not.
const PAIRS: usize = 6;

/// Test by which two sets are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Wilcoxon's signed-rank test: both sets have the same seeds, and values are compared seed by
    /// seed.
    SignedRank,
    /// Mann-Whitney U test (Wilcoxon's rank-sum test): each value is compared with all values of
    /// the other set.
    RankSum,
}

impl Test {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignedRank => "signed-rank",
            Self::RankSum => "rank-sum",
        }
    }
}

/// Result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Significance {
    /// Test that was used.
    pub test: Test,
    /// Two-sided p-value: probability of a difference at least this large if there is no real one.
    pub p: f64,
}

impl Significance {
    /// Compares two sets of values, each with its run's seed; `None` if there are too few for a
    /// significant result.
    ///
    /// The signed-rank test needs six pairs. With fewer, the rank-sum test treats the values as
    /// independent. If pairs are correlated, that only makes it more conservative.
    pub fn of(before: &[(&str, f64)], after: &[(&str, f64)]) -> Option<Self> {
        if let Some(differences) = paired(before, after).filter(|pairs| pairs.len() >= PAIRS) {
            return Some(Self { test: Test::SignedRank, p: signed_rank(&differences) });
        }
        let [before, after]: [Vec<f64>; 2] =
            [before, after].map(|set| set.iter().map(|entry| entry.1).collect());
        can_be_significant(before.len(), after.len())
            .then(|| Self { test: Test::RankSum, p: rank_sum(&before, &after) })
    }

    /// Whether the difference is more than chance.
    pub fn is_significant(&self) -> bool {
        self.p <= LEVEL
    }
}

/// The value after minus the value before, for each seed; `None` if the seeds differ.
fn paired(before: &[(&str, f64)], after: &[(&str, f64)]) -> Option<Vec<f64>> {
    let mut differences = Vec::new();
    for (seed, value) in before {
        let mut found = after.iter().filter(|entry| entry.0 == *seed);
        let partner = found.next()?;
        // A seed that occurs twice in a set has no unique partner.
        if found.next().is_some() {
            return None;
        }
        differences.push(partner.1 - value);
    }
    (differences.len() == after.len()).then_some(differences)
}

/// Whether sets of these sizes can differ significantly: whether the most extreme assignment of
/// ranks is rarer than [`LEVEL`].
fn can_be_significant(before: usize, after: usize) -> bool {
    let ways = (1..=before.min(after))
        .fold(1.0, |ways, k| ways * (before + after + 1 - k) as f64 / k as f64);
    2.0 / ways <= LEVEL
}

/// Two-sided p-value of Wilcoxon's signed-rank test. Pairs without a difference are left out.
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
    // Number of ways to choose the positive ranks, for each sum of them.
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for rank in ranks {
        for sum in (rank..=total).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    tails(&ways, positive, total as f64 / 2.0)
}

/// Two-sided p-value of the rank-sum test.
pub fn rank_sum(a: &[f64], b: &[f64]) -> f64 {
    // Count the assignments of the smaller set: they are fewer, and the other set has the remaining
    // ranks.
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
    // Number of ways to choose ranks, for each number and sum of them.
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

/// Twice the rank of each value; ranks begin at 1. Equal values share the mean of their ranks, so
/// doubled ranks are whole numbers.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut ranks = Vec::with_capacity(values.len());
    for value in values {
        let below = sorted.partition_point(|other| other < value);
        let up_to = sorted.partition_point(|other| other <= value);
        ranks.push(below + 1 + up_to);
    }
    ranks
}

/// Share of the assignments whose sum is at least as far from the expected one as `sum`.
fn tails(ways: &[f64], sum: usize, expected: f64) -> f64 {
    let distance = |sum: usize| (sum as f64 - expected).abs();
    // Sums are whole numbers and the expected one is a simple fraction, so a smaller difference is
    // a rounding error.
    let farthest = distance(sum) - 1e-6;
    let far = ways.iter().enumerate().filter(|(sum, _)| distance(*sum) >= farthest);
    far.map(|(_, ways)| ways).sum::<f64>() / ways.iter().sum::<f64>()
}

/// Two-sided probability of a normal distribution; 1 if the variance is zero. Subtracts half a rank
/// as the continuity correction; ranks are doubled here.
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

    // Tables of critical values of U at 5 %, both sides: 0 of 4 and 4, 2 of 5 and 5, 23 of 10 and
    // 10.
    #[test]
    fn rank_sums_are_significant_up_to_the_critical_value() {
        // P-value of two sets of `size` values whose U statistic is `overtaken`.
        let of = |size: usize, overtaken: usize| {
            let b: Vec<f64> = (1..=size).map(|i| i as f64).collect();
            let mut a: Vec<f64> = (0..size).map(|i| -(i as f64)).collect();
            let (whole, rest) = (overtaken / size, overtaken % size);
            for (i, value) in a.iter_mut().take(whole).enumerate() {
                *value = 100.0 + i as f64;
            }
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
        // The sets do not overlap: the most extreme of 252 assignments, on each side.
        near(rank_sum(&[1.0; 5], &[2.0; 5]), 2.0 / 252.0);
    }

    #[test]
    fn many_values_are_judged_by_the_normal_distribution_near_the_exact_one() {
        // 50 pairs are judged exactly, 52 by the normal distribution. The two additional pairs have
        // the lowest ranks and hardly matter.
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
        // Values of the seeds differ by far more than the change of 1, which every seed shows.
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
