//! Scenarios with a radio link.
//!
//! ```text
//! capacity = mean x slow walk x fast fading x (on or away)
//! ```
//!
//! The ranges are those of nine recordings of LTE, UMTS and EV-DO links (Winstein and others, NSDI
//! 2013), rounded: walk and fading from the coefficients of variation over 1 s and 50 ms outside of
//! outages, the times from their correlation. `docs/reference/generated-scenarios.md`
//! compares the statistics.

use super::wired::Path;
use super::{Draw, Family, head, list, media, two_digits};

/// Length of a run, s.
const DURATION: u64 = 60;
/// Length of a step of the capacity, ms.
const STEP: u64 = 25;
/// Standard deviation of the logarithm of an outage's length: of the recordings, one in ten is
/// three to four times as long as the median.
const OUTAGE_SD: f64 = 1.0;
/// Shortest and longest outage, ms.
const OUTAGE_LIMITS: (f64, f64) = (150.0, 6_000.0);

/// A logarithm that moves around 0 and forgets with a time constant.
struct Fading {
    sd: f64,
    /// Part of the value that is left after a step.
    kept: f64,
    value: f64,
}

impl Fading {
    fn new(sd: f64, correlation_ms: f64, draw: &mut Draw) -> Self {
        let kept = libm::exp(-(STEP as f64) / correlation_ms);
        Self { sd, kept, value: sd * draw.normal() }
    }

    /// The factor now, with a mean of 1; then moves on.
    fn next(&mut self, draw: &mut Draw) -> f64 {
        let factor = libm::exp(self.value - self.sd * self.sd / 2.0);
        let fresh = self.sd * libm::sqrt(1.0 - self.kept * self.kept);
        self.value = self.kept * self.value + fresh * draw.normal();
        factor
    }
}

/// Times in which the link is there, and outages, by turns.
struct Outages {
    /// Mean time between two outages, ms.
    between_ms: f64,
    median_ms: f64,
    is_away: bool,
    /// What is left of the outage, or until the next one, ms.
    left_ms: f64,
}

impl Outages {
    /// Outages of this median length for this share of the time. The link is there at first.
    fn new(share: f64, median_ms: f64, draw: &mut Draw) -> Self {
        let mean_ms = median_ms * libm::exp(OUTAGE_SD * OUTAGE_SD / 2.0);
        let between_ms = mean_ms * (1.0 - share) / share;
        let left_ms = between_ms * exponential(draw);
        Self { between_ms, median_ms, is_away: false, left_ms }
    }

    /// Whether the link is away in the next step.
    fn next(&mut self, draw: &mut Draw) -> bool {
        if self.left_ms <= 0.0 {
            self.is_away = !self.is_away;
            self.left_ms += match self.is_away {
                true => (self.median_ms * libm::exp(OUTAGE_SD * draw.normal()))
                    .clamp(OUTAGE_LIMITS.0, OUTAGE_LIMITS.1),
                false => self.between_ms * exponential(draw),
            };
        }
        self.left_ms -= STEP as f64;
        self.is_away
    }
}

/// Exponentially distributed with a mean of 1.
fn exponential(draw: &mut Draw) -> f64 {
    -libm::log(1.0 - draw.uniform(0.0, 1.0))
}

pub(super) fn radio(seed: u64, draw: &mut Draw) -> String {
    let path = Path::draw(draw, 600.0, 12_000.0);
    let (slow_sd, fast_sd) = (draw.uniform(0.15, 0.7), draw.uniform(0.2, 0.6));
    let mut slow = Fading::new(slow_sd, draw.log_uniform(1_000.0, 16_000.0), draw);
    let mut fast = Fading::new(fast_sd, draw.log_uniform(20.0, 200.0), draw);
    let (share, median_ms) = (draw.log_uniform(0.005, 0.27), draw.log_uniform(150.0, 900.0));
    let mut outages = Outages::new(share, median_ms, draw);
    let there_kbps = path.kbps / (1.0 - share);
    let mut steps: Vec<(u64, u64)> = Vec::new();
    for step in 0..DURATION * 1_000 / STEP {
        let faded = slow.next(draw) * fast.next(draw);
        let is_away = outages.next(draw);
        let kbps = if is_away { 0 } else { two_digits(there_kbps * faded).max(20) };
        if steps.last().is_none_or(|last| last.1 != kbps) {
            steps.push((step * STEP, kbps));
        }
    }
    head(Family::Radio, seed, DURATION, path.feedback_ms)
        + &path.network_with_buffer(&list(&steps))
        + &media(draw, path.kbps * 1.5)
        + "\n[[flow]]\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and coefficient of variation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (mean, (squares / values.len() as f64).sqrt() / mean)
    }

    #[test]
    fn fading_has_a_mean_of_one_and_its_deviation() {
        let mut draw = Draw::new(1);
        let mut fading = Fading::new(0.5, 100.0, &mut draw);
        let factors: Vec<f64> = (0..200_000).map(|_| fading.next(&mut draw)).collect();
        let (mean, variation) = moments(&factors);
        // A log-normal value has a coefficient of the square root of exp(sd^2) - 1.
        let expected = (0.25_f64.exp() - 1.0).sqrt();
        assert!((mean - 1.0).abs() < 0.02 && (variation - expected).abs() < 0.03, "{mean}");
    }

    #[test]
    fn outages_have_their_share_of_the_time_and_their_median() {
        let mut draw = Draw::new(1);
        let mut outages = Outages::new(0.1, 500.0, &mut draw);
        let steps: Vec<bool> = (0..400_000).map(|_| outages.next(&mut draw)).collect();
        let share = steps.iter().filter(|is_away| **is_away).count() as f64 / 4e5;
        // The limits make short ones longer, and long ones shorter.
        assert!((0.08..0.12).contains(&share), "{share}");
        let mut lengths: Vec<usize> =
            steps.split(|is_away| !is_away).map(<[bool]>::len).filter(|&len| len > 0).collect();
        lengths.sort_unstable();
        let median_ms = lengths[lengths.len() / 2] as u64 * STEP;
        assert!((425..=600).contains(&median_ms), "{median_ms}");
        assert!(lengths[0] as u64 * STEP >= 150);
    }
}
