//! Confidence intervals of the mean over a few runs.

use weir_metrics::mean;

/// Quantiles of Student's t for 1, 2, .. degrees of freedom: 97.5 % and 99.95 %. They are the half
/// widths of the 95 % and the 99.9 % interval in standard errors.
const STUDENT_T: [(f64, f64); 30] = [
    (12.706, 636.619),
    (4.303, 31.599),
    (3.182, 12.924),
    (2.776, 8.610),
    (2.571, 6.869),
    (2.447, 5.959),
    (2.365, 5.408),
    (2.306, 5.041),
    (2.262, 4.781),
    (2.228, 4.587),
    (2.201, 4.437),
    (2.179, 4.318),
    (2.160, 4.221),
    (2.145, 4.140),
    (2.131, 4.073),
    (2.120, 4.015),
    (2.110, 3.965),
    (2.101, 3.922),
    (2.093, 3.883),
    (2.086, 3.850),
    (2.080, 3.819),
    (2.074, 3.792),
    (2.069, 3.768),
    (2.064, 3.745),
    (2.060, 3.725),
    (2.056, 3.707),
    (2.052, 3.690),
    (2.048, 3.674),
    (2.045, 3.659),
    (2.042, 3.646),
];
/// The same quantiles of the normal distribution, for more degrees of freedom.
const NORMAL: (f64, f64) = (1.960, 3.291);

/// Mean of a few values, with confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval.
    pub confidence: f64,
    /// Half the width of the mean's 99.9 % confidence interval.
    pub doubt: f64,
}

impl Spread {
    /// `None` for fewer than two values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let Moments { mean, error, degrees } = Moments::of(values)?;
        let error = error.sqrt();
        let (confidence, doubt) = STUDENT_T.get(degrees - 1).copied().unwrap_or(NORMAL);
        Some(Self { mean, confidence: confidence * error, doubt: doubt * error })
    }
}

/// Whether chance may explain the difference of two means, by Welch's two-sided test at 5 %, which
/// allows different variances. False if a set has fewer than two values, because its variance is
/// unknown.
pub fn differ_by_chance(a: &[f64], b: &[f64]) -> bool {
    let (Some(a), Some(b)) = (Moments::of(a), Moments::of(b)) else { return false };
    let error = a.error + b.error;
    let difference = (a.mean - b.mean).abs();
    if error == 0.0 {
        return difference == 0.0;
    }
    // Welch-Satterthwaite equation, rounded down, which gives the wider interval.
    let degrees = error * error
        / (a.error * a.error / a.degrees as f64 + b.error * b.error / b.degrees as f64);
    let (quantile, _) = STUDENT_T.get((degrees as usize).max(1) - 1).copied().unwrap_or(NORMAL);
    difference <= quantile * error.sqrt()
}

/// Mean and standard error of a set of values.
#[derive(Clone, Copy, Debug)]
struct Moments {
    mean: f64,
    /// Square of the mean's standard error.
    error: f64,
    /// Degrees of freedom: one less than the number of values.
    degrees: usize,
}

impl Moments {
    /// `None` for fewer than two values.
    fn of(values: &[f64]) -> Option<Self> {
        let degrees = values.len().checked_sub(1).filter(|&degrees| degrees > 0)?;
        let mean = mean(values.to_vec())?;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Some(Self { mean, error: squares / degrees as f64 / values.len() as f64, degrees })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confidence_interval_is_student_s() {
        // Mean 2, standard error 1/sqrt(3), two degrees of freedom.
        let spread = Spread::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((spread.mean - 2.0).abs() < 1e-12, "{spread:?}");
        assert!((spread.confidence - 4.303 / 3.0_f64.sqrt()).abs() < 1e-12, "{spread:?}");
        assert!((spread.doubt - 31.599 / 3.0_f64.sqrt()).abs() < 1e-12, "{spread:?}");
        assert!(Spread::of(&[1.0]).is_none());
    }

    #[test]
    fn two_means_differ_by_chance_within_welch_s_interval() {
        // Means 2 and 5, each with a standard error of 1/sqrt(3): 4 degrees of freedom, 2.776 *
        // 0.816.
        let a = [1.0, 2.0, 3.0];
        assert!(differ_by_chance(&a, &[3.2, 4.2, 5.2]));
        assert!(!differ_by_chance(&a, &[3.3, 4.3, 5.3]));
        assert!(!differ_by_chance(&a, &[2.0]));
        assert!(differ_by_chance(&[1.0, 1.0], &[1.0, 1.0]));
        assert!(!differ_by_chance(&[1.0, 1.0], &[1.1, 1.1]));
    }
}
