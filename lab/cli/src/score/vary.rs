//! How far the objective moves with each constant of `sluice`, and without each of its boxes.

use anyhow::Context;
use weir_lab::constants::{boxes, constants, sluice_with};
use weir_lab::protocol::contest::mean_and_worst_tenth;
use weir_lab::run::RunInfo;
use weir_lab::scenario::Scenario;

use super::{WORST_WEIGHT, scores};
use crate::args::research::Score as Args;
use crate::interrupt::Interrupt;
use crate::layout::Table;
use crate::select::{self, Job};

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
}

/// The table of all changes, the largest effect first.
pub(super) fn table(
    args: &Args,
    percent: u8,
    scenarios: &[Scenario],
    interrupt: &Interrupt,
) -> anyhow::Result<Table<'static>> {
    let of = |what: &str, change: String, settings: &[String]| -> anyhow::Result<Varied> {
        // What the command line sets comes first, so that a change is one from there.
        let all = [&args.selection.constants, settings].concat();
        let factory = sluice_with(&all).context("--set")?;
        let job = |(scenario, seed)| Job {
            scenario,
            controller: factory.clone(),
            info: RunInfo::simulated(scenario, &factory, seed),
        };
        let seeds = select::seeds(&args.selection)?;
        let runs =
            scenarios.iter().flat_map(|scenario| seeds.clone().map(move |it| (scenario, it)));
        let jobs: Vec<Job<'_>> = runs.map(job).collect();
        let scores = scores(scenarios, &jobs, args.selection.jobs, interrupt)?;
        let (regret, worst) =
            mean_and_worst_tenth(&scores.iter().collect::<Vec<_>>()).unwrap_or_default();
        Ok(Varied { what: what.into(), change, regret, worst })
    };
    let base = of("as documented", String::new(), &[])?;
    let mut varied = Vec::new();
    for (name, value) in constants() {
        for sign in [-1.0, 1.0] {
            let new = value * (1.0 + sign * f64::from(percent) / 100.0);
            let change = format!("{:+}%: {value} -> {new:.4}", sign * f64::from(percent));
            varied.push(of(name, change, &[format!("sluice.{name}={new}")])?);
        }
    }
    for (name, settings) in boxes() {
        varied.push(of(name, format!("off: {}", settings.join(" ")), &settings)?);
    }
    let moved = |one: &Varied| one.objective() - base.objective();
    varied.sort_by(|a, b| moved(b).abs().total_cmp(&moved(a).abs()));
    let row = |one: &Varied| {
        vec![
            one.what.clone(),
            one.change.clone(),
            format!("{:.4}", one.regret),
            format!("{:.4}", one.worst),
            format!("{:.4}", one.objective()),
            format!("{:+.1}", moved(one) / base.objective() * 100.0),
        ]
    };
    let rows = std::iter::once(&base).chain(&varied).map(row).collect();
    let head = vec!["constant or box", "change", "regret", "worst tenth", "objective", "change, %"];
    Ok(Table { head, rows, left: 2, ..Table::default() })
}
