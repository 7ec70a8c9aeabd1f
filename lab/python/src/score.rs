//! Scores runs against what is possible, for Python.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use weir_controllers::LabController;
use weir_research::contest::Contest;
use weir_research::results;
use weir_research::score::{Score, score as score_run};
use weir_scenario::Controllers;
use weir_scenario::oracle::possible;

use crate::controller::{Fault, own_factory};
use crate::error;
use crate::run::{watched, with_a_thread_state};
use crate::scenario::Scenario;

/// The score of one run as JSON. `None` if no flow of the scenario is under the controller.
#[pyfunction]
pub fn score(
    py: Python<'_>,
    scenario: PyRef<'_, Scenario>,
    controller: &Bound<'_, PyAny>,
    seed: u64,
) -> PyResult<Option<String>> {
    let fault = Fault::default();
    let factory = match controller.extract::<String>() {
        Ok(name) => Controllers::default().choose(&name).map_err(error)?.remove(0),
        Err(_) => own_factory(controller, &fault)?.into(),
    };
    let (scenario, stop) = (Arc::clone(&scenario.0), fault.stop());
    let found = watched(py, &stop, || score_of(&scenario, &factory, seed, &stop))?;
    fault.raise()?;
    found.map(|score| serde_json::to_string(&score).map_err(error)).transpose()
}

/// The score of one run. `None` if `stop` was set, or no flow is under the controller.
fn score_of(
    scenario: &weir_scenario::Scenario,
    factory: &LabController,
    seed: u64,
    stop: &AtomicBool,
) -> Option<Score> {
    with_a_thread_state(|| score_run(scenario, factory, seed, &possible(scenario, seed), stop))
}

/// What `weir research score --json` prints of these scores, the JSON texts of `score`. `own` is
/// compared with each other controller.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands the values over")]
pub fn contests(names: Vec<String>, own: &str, scores: Vec<String>) -> PyResult<String> {
    let mut parsed: Vec<Score> = Vec::new();
    for score in &scores {
        parsed.push(serde_json::from_str(score).map_err(error)?);
    }
    let rivals = names.iter().filter(|name| *name != own);
    let contests: Vec<Contest> =
        rivals.map(|rival| Contest::between(own, rival, &parsed)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(results::to_json(&names, &parsed, &contests).to_string())
}
