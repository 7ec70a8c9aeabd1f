//! How far the objective moves with each constant of `sluice`, and without each of its boxes.

use anyhow::Context;
use weir_research::contest::mean_and_worst_tenth;
use weir_scenario::Scenario;
use weir_scenario::constants::{boxes, constants, sluice_with};

use super::{WORST_WEIGHT, scores};
use crate::args::research::Score as Args;
use crate::interrupt::Interrupt;
use crate::layout::Table;
use crate::select;

/// Regret and objective of `sluice` with one change.
struct Varied {
    what: String,
    change: String,
    regret: f64,
    worst: f64,
}

impl Varied {
    fn objective(&self) -> f64 {
        self.regret + WORST_WEIGHT * self.worst
    }

    fn distance(&self, base: f64) -> f64 {
        (self.objective() - base).abs()
    }
}

/// The table of all changes, the largest effect first.
pub(super) fn table(
    args: &Args,
    percent: u8,
    scenarios: &[Scenario],
    interrupt: &Interrupt,
) -> anyhow::Result<Table<'static>> {
    let mut changes = vec![("as documented", String::new(), Vec::new())];
    for (name, value) in constants() {
        for sign in [-1.0, 1.0] {
            let new = value * (1.0 + sign * f64::from(percent) / 100.0);
            let change = format!("{:+}%: {value} -> {new:.4}", sign * f64::from(percent));
            changes.push((name, change, vec![format!("sluice.{name}={new}")]));
        }
    }
    for (name, settings) in boxes() {
        changes.push((name, format!("off: {}", settings.join(" ")), settings));
    }
    let mut varied = Vec::new();
    for (what, change, settings) in changes {
        // The settings of the command line come first, so that a change is relative to them.
        let all = [args.selection.constants.as_slice(), &settings].concat();
        let sluice = sluice_with(&all).context("--set")?;
        let jobs = select::jobs(scenarios, &[sluice], select::seeds(&args.selection)?)?;
        let scores = scores(scenarios, &jobs, args.selection.jobs, interrupt)?;
        let (regret, worst) =
            mean_and_worst_tenth(&scores.iter().collect::<Vec<_>>()).unwrap_or_default();
        varied.push(Varied { what: what.into(), change, regret, worst });
    }
    let base = varied[0].objective();
    varied[1..].sort_by(|a, b| b.distance(base).total_cmp(&a.distance(base)));
    let mut rows = Vec::new();
    for one in varied {
        let (regret, worst) = (format!("{:.4}", one.regret), format!("{:.4}", one.worst));
        let objective = format!("{:.4}", one.objective());
        let moved = format!("{:+.1}", (one.objective() - base) / base * 100.0);
        rows.push(vec![one.what, one.change, regret, worst, objective, moved]);
    }
    let head = vec!["constant or box", "change", "regret", "worst tenth", "objective", "change, %"];
    Ok(Table { head, rows, left: 2, ..Table::default() })
}
