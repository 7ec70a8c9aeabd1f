//! Random draws for generated scenarios.
//!
//! Each value is rounded to a few significant digits before it is written. Logarithm and
//! exponential come from `libm`, so the same seed gives the same text on every machine.

use weir_net::Seed;
use weir_net::seed::Stream;

/// The random numbers of one scenario.
pub(super) struct Draw(Stream);

impl Draw {
    /// The numbers of this seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(Seed::new(seed).stream("generate"))
    }

    /// Uniformly distributed between two values.
    pub(super) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.uniform()
    }

    /// A whole number from `low` to `high`, both included.
    pub(super) fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + (self.0.uniform() * (high - low + 1) as f64) as u64
    }

    /// Log-uniformly distributed between two values: each doubling is equally likely.
    pub(super) fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(self.uniform(libm::log(low), libm::log(high)))
    }

    /// Like [`Self::log_uniform`], with two significant digits.
    pub(super) fn rounded(&mut self, low: f64, high: f64) -> u64 {
        two_digits(self.log_uniform(low, high))
    }

    /// Standard normal distribution.
    pub(super) fn normal(&mut self) -> f64 {
        self.0.normal()
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.0.chance(probability)
    }

    /// One of these, each equally likely.
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.whole(0, of.len() as u64 - 1) as usize]
    }
}

/// The nearest whole number with two significant digits.
pub(super) fn two_digits(value: f64) -> u64 {
    let mut unit = 1;
    while value >= (100 * unit) as f64 {
        unit *= 10;
    }
    (value / unit as f64).round() as u64 * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_significant_digits_remain() {
        let rounded = [0.4, 7.4, 99.4, 99.6, 104.0, 1_950.0, 19_999.0].map(two_digits);
        assert_eq!(rounded, [0, 7, 99, 100, 100, 2_000, 20_000]);
    }

    #[test]
    fn draws_stay_within_their_bounds_and_reach_both() {
        let mut draw = Draw::new(1);
        let whole: Vec<u64> = (0..200).map(|_| draw.whole(3, 5)).collect();
        assert_eq!((whole.iter().min(), whole.iter().max()), (Some(&3), Some(&5)));
        let low = (0..1_000).filter(|_| draw.log_uniform(1.0, 100.0) < 10.0).count();
        assert!((450..550).contains(&low), "{low}");
    }
}
