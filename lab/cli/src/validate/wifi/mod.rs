//! `weir research validate wifi`: compares the Wi-Fi cell with published figures.
//!
//! A row contains a quantity, its reference value with the source, and the value of the model. The
//! references are fixed: `cell.rs` has those of measured cells, `formulas.rs` those of durations
//! and closed forms.

mod cell;
mod formulas;

use crate::output;
use crate::table;

/// A quantity and its reference.
#[derive(Clone, Debug)]
struct Check {
    quantity: String,
    /// Source of the reference.
    source: &'static str,
    reference: f64,
    measured: f64,
    limit: Limit,
    /// Decimals of the reference.
    decimals: usize,
}

/// Largest allowed error: the larger of the two values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Limit {
    /// As a share of the reference.
    relative: f64,
    /// In the unit of the quantity.
    absolute: f64,
}

impl Limit {
    /// Equal, to the decimals of the reference.
    const EXACT: Self = Self { relative: 0.0, absolute: 0.0 };
}

impl Check {
    fn is_within(&self) -> bool {
        let Limit { relative, absolute } = self.limit;
        // Allow half of the last decimal for the rounding of the reference, and a little more for
        // that of floats.
        let rounding = 0.5000001 / 10_f64.powi(self.decimals as i32);
        let allowed = (relative * self.reference.abs()).max(absolute).max(rounding);
        (self.measured - self.reference).abs() <= allowed
    }

    fn row(&self) -> Vec<String> {
        let decimals = self.decimals;
        let off = match self.reference {
            0.0 => "-".into(),
            reference => format!("{:+.1}", (self.measured / reference - 1.0) * 100.0),
        };
        vec![
            self.quantity.clone(),
            self.source.into(),
            format!("{:.decimals$}", self.reference),
            format!("{:.decimals$}", self.measured),
            off,
            self.limit.to_string(),
            if self.is_within() { "within" } else { "MISS" }.into(),
        ]
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let relative = (self.relative > 0.0).then(|| format!("{} %", self.relative * 100.0));
        let absolute = if self.absolute > 0.0 { Some(self.absolute.to_string()) } else { None };
        let parts: Vec<String> = relative.into_iter().chain(absolute).collect();
        f.write_str(if parts.is_empty() { "exact".into() } else { parts.join(" or ") }.as_str())
    }
}

const HEAD: [&str; 7] =
    ["quantity", "source", "reference", "measured", "error %", "limit", "verdict"];

/// Measures and prints the table. Returns whether all values are within the limits.
pub fn validate(is_quick: bool) -> anyhow::Result<bool> {
    let mut checks = formulas::durations();
    checks.extend(cell::saturation(is_quick));
    checks.extend(cell::aggregation(is_quick));
    checks.extend(cell::hidden_terminal(is_quick));
    checks.extend(cell::capacity(is_quick));
    checks.extend(formulas::paper());
    let rows: Vec<Vec<String>> = checks.iter().map(Check::row).collect();
    output::print(&table::aligned(&HEAD, &rows, 2))?;
    let missed = checks.iter().filter(|check| !check.is_within()).count();
    output::line(&format!("{} of {} within", checks.len() - missed, checks.len()))?;
    Ok(missed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(measured: f64, limit: Limit) -> Check {
        let quantity = "throughput".into();
        Check { quantity, source: "ns-3", reference: 30.0, measured, limit, decimals: 2 }
    }

    #[test]
    fn the_larger_of_the_two_limits_counts() {
        let limit = Limit { relative: 0.02, absolute: 0.3 };
        assert!(check(30.599, limit).is_within());
        assert!(!check(30.611, limit).is_within());
        let limit = Limit { relative: 0.01, absolute: 0.6 };
        assert!(check(29.401, limit).is_within());
        assert!(!check(29.389, limit).is_within());
        assert!(!check(f64::NAN, limit).is_within());
    }

    #[test]
    fn exact_is_up_to_the_decimals_of_the_reference() {
        assert!(check(30.004, Limit::EXACT).is_within());
        assert!(!check(30.006, Limit::EXACT).is_within());
    }

    #[test]
    fn a_row_says_how_far_it_is_off_and_what_it_may_be() {
        let limit = Limit { relative: 0.02, absolute: 0.3 };
        let row = check(31.5, limit).row();
        assert_eq!(row[2..], ["30.00", "31.50", "+5.0", "2 % or 0.3", "MISS"]);
    }
}
