//! `weir research validate cellular`: compares the cellular cell with runs of the LTE module of
//! ns-3 3.37.
//!
//! `reference.csv` has the runs with their conditions. Each one is repeated with the model for
//! several seeds, because start phases, block errors and the places in the fading recording are
//! random: the reference is one draw, or the mean of eight for runs with fading. A value is within
//! its limit if the range of the model's values, widened by the limit, contains the reference.
//! Where there is a formula, it is the reference of further runs (`theory`).

mod reference;
mod run;
mod theory;

use std::ops::RangeInclusive;

use anyhow::Result;
use rayon::prelude::*;

use self::reference::{Results, Row};
use crate::output;
use crate::table;

/// Seeds of a run without fading.
const SEEDS: RangeInclusive<u64> = 1..=10;
/// Seeds of a run with fading.
const FADING_SEEDS: RangeInclusive<u64> = 1..=4;
/// Seeds of a run with `--quick`.
const QUICK_SEEDS: RangeInclusive<u64> = 1..=2;

/// Values outside their limits whose cause is known. ns-3 sends again only whole parts of RLC, and
/// after `t-PollRetransmit` all parts that are not acknowledged; so a deep fade stalls it. The
/// model cuts retransmissions to the size of the block, as 3GPP TS 36.322 §5.2.1 says.
const KNOWN_MISSES: [(&str, &str); 2] =
    [("harqAM-dl-cqi40-s10", "p95, ms"), ("harqAM-ul-s20", "p95, ms")];

/// A value of a run and its reference.
struct Check {
    run: String,
    what: &'static str,
    reference: f64,
    /// The model's values, one for each seed.
    measured: Vec<f64>,
    limit: Limit,
}

/// Largest allowed distance between the reference and the range of the model's values.
#[derive(Clone, Copy)]
enum Limit {
    /// As a share of the reference.
    Share(f64),
    /// In the unit of the value.
    Plain(f64),
}

impl Limit {
    fn allowed(self, reference: f64) -> f64 {
        match self {
            // Rates of the reference have three decimals.
            Self::Share(share) => share * reference.abs() + 0.001,
            Self::Plain(plain) => plain,
        }
    }
}

impl Check {
    fn range(&self) -> (f64, f64) {
        let least = self.measured.iter().copied().fold(f64::INFINITY, f64::min);
        (least, self.measured.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    fn is_within(&self) -> bool {
        let (least, most) = self.range();
        let allowed = self.limit.allowed(self.reference);
        (least - allowed..=most + allowed).contains(&self.reference)
    }

    fn is_known_miss(&self) -> bool {
        KNOWN_MISSES.contains(&(self.run.as_str(), self.what))
    }

    /// Whether it is as expected: within its limit, or a known miss.
    fn is_expected(&self) -> bool {
        self.is_within() != self.is_known_miss()
    }

    fn row(&self) -> Vec<String> {
        let (least, most) = self.range();
        let limit = match self.limit {
            Limit::Share(share) => format!("{} %", share * 100.0),
            Limit::Plain(plain) => plain.to_string(),
        };
        vec![
            self.run.clone(),
            self.what.into(),
            format!("{:.3}", self.reference),
            format!("{least:.3}"),
            format!("{most:.3}"),
            limit,
            match (self.is_within(), self.is_known_miss()) {
                (true, false) => "within",
                (false, true) => "known miss",
                (true, true) => "WITHIN, but listed as a known miss",
                (false, false) => "MISS",
            }
            .into(),
        ]
    }
}

const HEAD: [&str; 7] = ["run", "value", "reference", "least", "most", "limit", "verdict"];

/// Measures and prints the table. Returns whether all values are within the limits.
pub fn validate(is_quick: bool) -> Result<bool> {
    let rows = reference::rows()?;
    let runs = reference::runs(&rows);
    let results = measure(&runs, is_quick)?;
    let theory = theory::checks(&if is_quick { QUICK_SEEDS } else { SEEDS });
    let formulas = theory.len();
    let repeated = runs.iter().zip(&results).flat_map(|(run, results)| checks(run, results));
    let checks: Vec<Check> = repeated.chain(theory).collect();
    let lines: Vec<Vec<String>> = checks.iter().map(Check::row).collect();
    output::print(&table::aligned(&HEAD, &lines, 2))?;
    let within = checks.iter().filter(|check| check.is_within()).count();
    let known = checks.iter().filter(|check| !check.is_within() && check.is_known_miss()).count();
    output::line(&format!(
        "{} runs, {} values: {within} within, {known} known misses, {} missed",
        runs.len() + formulas,
        checks.len(),
        checks.len() - within - known
    ))?;
    Ok(checks.iter().all(Check::is_expected))
}

/// Results of all runs: by run, by seed, by row.
fn measure(runs: &[&[Row]], is_quick: bool) -> Result<Vec<Vec<Vec<Results>>>> {
    let all = runs.par_iter().map(|rows| {
        let seeds = match rows[0].fading.as_str() {
            _ if is_quick => QUICK_SEEDS,
            "none" => SEEDS,
            _ => FADING_SEEDS,
        };
        seeds.map(|seed| run::run(rows, seed)).collect()
    });
    all.collect()
}

/// The checks of a run: those of its rows, one after another.
fn checks(rows: &[Row], results: &[Vec<Results>]) -> Vec<Check> {
    rows.iter().enumerate().flat_map(|(index, row)| of_row(row, index, results)).collect()
}

/// The checks of a row: rate, then MCS or delays, with the limits of its kind.
fn of_row(row: &Row, index: usize, results: &[Vec<Results>]) -> Vec<Check> {
    let run = match row.terminal.as_str() {
        "1" | "all" if row.flow == 1 => row.id.clone(),
        terminal => format!("{} ({terminal}/{})", row.id, row.flow),
    };
    let mut checks = Vec::new();
    for (what, of, limit) in limits(row) {
        let measured: Option<Vec<f64>> = results.iter().map(|rows| of(&rows[index])).collect();
        if let (Some(reference), Some(measured)) = (of(&row.results), measured) {
            checks.push(Check { run: run.clone(), what, reference, measured, limit });
        }
    }
    checks
}

/// Name, value and limit of a check.
type Limited = (&'static str, fn(&Results) -> Option<f64>, Limit);

/// What is compared of a row.
fn limits(row: &Row) -> Vec<Limited> {
    let is_fading = row.fading != "none";
    let is_saturated = row.load == "sat";
    if row.id.starts_with("same") && !is_saturated {
        // Which share of its packets finds room in the full queue depends on the phase of the
        // saturating load, which the reference does not give.
        return vec![("loss", |it| it.loss, Limit::Plain(0.1))];
    }
    let share = if is_fading { 0.1 } else { 0.02 };
    let mut limits: Vec<Limited> = vec![("rate, Mbit/s", |it| it.mbps, Limit::Share(share))];
    if is_fading {
        limits.push(("p95, ms", |it| it.p95_ms, Limit::Share(0.25)));
        return limits;
    }
    // ns-3 counts grants that were not used among the blocks of the uplink, so the mean over
    // different terminals is not exact.
    let limit = if row.id.starts_with("other") { 0.3 } else { 0.05 };
    limits.push(("MCS", |it| it.mcs, Limit::Plain(limit)));
    if is_saturated {
        limits.push(("p50, ms", |it| it.p50_ms, Limit::Share(0.02)));
    } else {
        limits.push(("p50, ms", |it| it.p50_ms, Limit::Plain(0.5)));
        limits.push(("p99, ms", |it| it.p99_ms, Limit::Plain(1.5)));
    }
    limits
}
