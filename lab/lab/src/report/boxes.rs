//! Box plots over the seeds, as lund, section 5.2 defines them.
//!
//! The thesis leaves two things open. Where the count is odd, the median belongs to both halves
//! (Tukey's hinges): of five iterations the quartiles are then the second and the fourth value, as
//! common plotting programs have them. An outlier lies more than 1.5 interquartile ranges outside
//! the box.

use super::format::BoxPlot;
use super::rounded;
use crate::metrics::percentile;

/// How far a whisker may reach, in interquartile ranges.
const WHISKER: f64 = 1.5;
const DECIMALS: i32 = 6;

/// The box of the values; `None` for fewer than two.
pub(super) fn of(mut values: Vec<f64>) -> Option<BoxPlot> {
    if values.len() < 2 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let half = values.len().div_ceil(2);
    let median = |values| percentile(values, 0.5);
    let q1 = median(&values[..half])?;
    let q3 = median(&values[values.len() - half..])?;
    let reach = WHISKER * (q3 - q1);
    let is_outlier = |value: &f64| *value < q1 - reach || *value > q3 + reach;
    let (outliers, within): (Vec<f64>, Vec<f64>) =
        values.iter().partition(|value| is_outlier(value));
    let round = |value| rounded(value, DECIMALS);
    Some(BoxPlot {
        min: round(*within.first()?),
        q1: round(q1),
        median: round(median(&values)?),
        q3: round(q3),
        max: round(*within.last()?),
        outliers: outliers.into_iter().map(round).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_five_values_the_quartiles_are_the_second_and_the_fourth() {
        let plot = of(vec![0.9, 0.5, 0.7, 0.8, 0.6]).unwrap();
        assert_eq!((plot.min, plot.q1, plot.median, plot.q3, plot.max), (0.5, 0.6, 0.7, 0.8, 0.9));
        assert_eq!(plot.outliers, [0.0; 0]);
    }

    #[test]
    fn of_four_values_the_quartiles_are_the_medians_of_the_halves() {
        let plot = of(vec![1.0, 2.0, 4.0, 8.0]).unwrap();
        assert_eq!((plot.q1, plot.median, plot.q3), (1.5, 3.0, 6.0));
    }

    #[test]
    fn a_whisker_ends_at_the_last_value_within_one_and_a_half_boxes() {
        // The box reaches from 10 to 12, so whiskers may reach from 7 to 15.
        let plot = of(vec![6.9, 7.0, 10.0, 10.0, 11.0, 12.0, 12.0, 15.0, 15.1]).unwrap();
        assert_eq!(
            (plot.min, plot.q1, plot.median, plot.q3, plot.max),
            (7.0, 10.0, 11.0, 12.0, 15.0)
        );
        assert_eq!(plot.outliers, [6.9, 15.1]);
    }

    #[test]
    fn equal_values_have_a_flat_box_and_one_value_has_none() {
        let plot = of(vec![3.0; 5]).unwrap();
        assert_eq!((plot.min, plot.median, plot.max), (3.0, 3.0, 3.0));
        assert_eq!(of(vec![3.0]), None);
    }
}
