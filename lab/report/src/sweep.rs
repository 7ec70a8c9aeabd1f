//! The report of a sweep: means over tens of thousands of runs, which the Python package computes
//! from Parquet files. The page is the viewer of every report. Its data have other types, which are
//! these.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::page::{self, ReportError};

/// Everything that the report of a sweep shows. `kind` tells the page which report it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SweepReport {
    schema: u32,
    /// Always `sweep`.
    kind: String,
    title: String,
    /// The command that wrote this report.
    command: String,
    /// Program and version.
    generator: String,
    /// In the order of legends and tables.
    controllers: Vec<String>,
    /// Metrics that have a value in at least one run. Members named `values` have one entry for
    /// each.
    metrics: Vec<SweepMetric>,
    runs: usize,
    scenarios: Vec<SweepScenario>,
}

/// A metric of a run: the mean over its media flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct SweepMetric {
    name: String,
    unit: String,
    /// `higher`, `lower` or empty.
    better: String,
    meaning: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct SweepScenario {
    id: String,
    runs: usize,
    seeds: usize,
    /// Number of different combinations of the parameters' values.
    points: usize,
    parameters: Vec<SweepParameter>,
    maps: Vec<HeatMap>,
    /// Mean over the seeds, for each controller and combination of parameters. If there are many, a
    /// part of them, which contains every front.
    dots: Vec<SweepDot>,
    fronts: Vec<FrontRow>,
    worst: Vec<WorstRuns>,
}

/// A parameter, and its values or ranges of its values in rising order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct SweepParameter {
    name: String,
    bins: Vec<String>,
}

/// Two parameters against each other; `y` is `null` if the sweep has only one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct HeatMap {
    /// Index of the parameter.
    x: usize,
    y: Option<usize>,
    cells: Vec<HeatCell>,
}

/// The runs of a controller in which both parameters have values of one bin. All numbers but the
/// last two are indices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct HeatCell {
    controller: usize,
    x: usize,
    y: usize,
    runs: usize,
    /// Mean of each metric.
    values: Vec<Option<f64>>,
}

/// A controller at one combination of the parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct SweepDot {
    controller: usize,
    /// Value of each parameter.
    at: Vec<String>,
    p95_queuing_delay_ms: f64,
    utilization: f64,
    runs: usize,
    /// No other dot of this controller has at least this utilization and at most this delay.
    on_own_front: bool,
}

/// How often a controller is on the Pareto front of utilization and delay among the controllers,
/// over all combinations of the parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct FrontRow {
    controller: usize,
    points: usize,
    on_front: usize,
    /// The only one on the front: no other has more utilization or less delay.
    alone: usize,
}

/// The worst runs of a controller by one metric, the worst first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct WorstRuns {
    controller: usize,
    /// Index of the metric.
    metric: usize,
    runs: Vec<WorstRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct WorstRun {
    seed: String,
    /// Value of each parameter.
    at: Vec<String>,
    values: Vec<Option<f64>>,
    /// The command that makes this run again, with a record.
    command: String,
}

impl SweepReport {
    /// Reads the data that the Python package has computed.
    pub fn of_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Writes one HTML file that opens offline, as a whole or not at all.
    pub fn write_html(&self, path: &Path) -> Result<(), ReportError> {
        page::write(path, &page::json(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_another_form_are_refused() {
        let metric =
            r#"{"name": "utilization", "unit": "", "better": "higher", "meaning": "used"}"#;
        let head =
            r#"{"schema": 1, "kind": "sweep", "title": "t", "command": "c", "generator": "g""#;
        let whole = |metric: &str, runs: &str| {
            format!(r#"{head}, "controllers": [], "metrics": [{metric}], {runs} "scenarios": []}}"#)
        };
        let report = SweepReport::of_json(&whole(metric, r#""runs": 0,"#)).unwrap();
        assert_eq!(report.metrics[0].name, "utilization");
        let error = |text: String| SweepReport::of_json(&text).unwrap_err().to_string();
        assert!(error(whole(metric, "")).contains("missing field `runs`"));
        assert!(error(whole(r#"{"nome": 1}"#, r#""runs": 0,"#)).contains("unknown field `nome`"));
    }
}
