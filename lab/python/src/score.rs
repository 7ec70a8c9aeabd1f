//! Scores runs against what is possible, for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use weir_lab::Controllers;
use weir_lab::protocol::contest::Contest;
use weir_lab::protocol::oracle::possible;
use weir_lab::protocol::results;
use weir_lab::protocol::score::{Score, score as score_run};

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
    let work = || score_run(&scenario, &factory, seed, &possible(&scenario, seed), &stop);
    let found = watched(py, &stop, || with_a_thread_state(work))?;
    fault.raise()?;
    found.map(|score| serde_json::to_string(&score).map_err(error)).transpose()
}

/// What `weir research score --json` prints of these scores, the JSON texts of `score`. `own` is
/// compared with each other controller.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands the values over")]
pub fn contests(names: Vec<String>, own: &str, scores: Vec<String>) -> PyResult<String> {
    let parse = |text: &String| serde_json::from_str(text).map_err(error);
    let scores: Vec<Score> = scores.iter().map(parse).collect::<PyResult<_>>()?;
    let rivals = names.iter().filter(|name| *name != own);
    let contests: Vec<Contest> =
        rivals.map(|rival| Contest::between(own, rival, &scores)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(results::to_json(&names, &scores, &contests).to_string())
}
