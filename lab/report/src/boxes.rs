//! Box plots over the seeds, as lund, section 5.2 defines them.
//!
//! The thesis leaves two things open. Where the count is odd, the median belongs to both halves
//! (Tukey's hinges): of five iterations the quartiles are then the second and the fourth value, as
//! common plotting programs have them. An outlier lies more than 1.5 interquartile ranges outside
//! the box.

use weir_metrics::percentile;

use super::format::{BoxPlot, Point};
use super::{DECIMALS, rounded};

/// How far a whisker may reach, in interquartile ranges.
const WHISKER: f64 = 1.5;

/// The box of a value of the points.
pub(super) fn of(points: &[Point], value: fn(&Point) -> Option<f64>) -> Option<BoxPlot> {
    plot(points.iter().filter_map(value).collect())
}

/// The box of the values; `None` for fewer than two.
fn plot(mut values: Vec<f64>) -> Option<BoxPlot> {
    if values.len() < 2 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let half = values.len().div_ceil(2);
    let q1 = percentile(&values[..half], 0.5)?;
    let q3 = percentile(&values[values.len() - half..], 0.5)?;
    let reach = WHISKER * (q3 - q1);
    let (outliers, within): (Vec<f64>, Vec<f64>) =
        values.iter().partition(|value| **value < q1 - reach || **value > q3 + reach);
    Some(BoxPlot {
        min: rounded(*within.first()?, DECIMALS),
        q1: rounded(q1, DECIMALS),
        median: rounded(percentile(&values, 0.5)?, DECIMALS),
        q3: rounded(q3, DECIMALS),
        max: rounded(*within.last()?, DECIMALS),
        outliers: outliers.into_iter().map(|value| rounded(value, DECIMALS)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_five_values_the_quartiles_are_the_second_and_the_fourth() {
        let drawn = plot(vec![0.9, 0.5, 0.7, 0.8, 0.6]).unwrap();
        assert_eq!(
            (drawn.min, drawn.q1, drawn.median, drawn.q3, drawn.max),
            (0.5, 0.6, 0.7, 0.8, 0.9)
        );
        assert_eq!(drawn.outliers, [0.0; 0]);
    }

    #[test]
    fn of_four_values_the_quartiles_are_the_medians_of_the_halves() {
        let drawn = plot(vec![1.0, 2.0, 4.0, 8.0]).unwrap();
        assert_eq!((drawn.q1, drawn.median, drawn.q3), (1.5, 3.0, 6.0));
    }

    #[test]
    fn a_whisker_ends_at_the_last_value_within_one_and_a_half_boxes() {
        // The box reaches from 10 to 12, so whiskers may reach from 7 to 15.
        let drawn = plot(vec![6.9, 7.0, 10.0, 10.0, 11.0, 12.0, 12.0, 15.0, 15.1]).unwrap();
        assert_eq!(
            (drawn.min, drawn.q1, drawn.median, drawn.q3, drawn.max),
            (7.0, 10.0, 11.0, 12.0, 15.0)
        );
        assert_eq!(drawn.outliers, [6.9, 15.1]);
    }

    #[test]
    fn equal_values_have_a_flat_box_and_one_value_has_none() {
        let drawn = plot(vec![3.0; 5]).unwrap();
        assert_eq!((drawn.min, drawn.median, drawn.max), (3.0, 3.0, 3.0));
        assert_eq!(plot(vec![3.0]), None);
    }
}
