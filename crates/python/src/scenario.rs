//! Scenarios: from the catalogue, from a file, or from a text.

use std::sync::Arc;

use pyo3::prelude::*;
use weir_lab::scenario::{self, catalogue};

use crate::error;

/// A scenario: the network, the flows, and what is expected of them.
#[pyclass(frozen, module = "weir_rtc")]
#[derive(Clone)]
pub struct Scenario(pub Arc<scenario::Scenario>);

#[pymethods]
impl Scenario {
    /// Parses the text of a scenario file. Traces that it names are read from the current folder.
    #[new]
    #[pyo3(signature = (text, id = "python"))]
    fn new(text: &str, id: &str) -> PyResult<Self> {
        let folder = std::env::current_dir().ok();
        let parsed = scenario::parse(id, text, folder.as_deref()).map_err(error)?;
        Ok(Self(Arc::new(parsed)))
    }

    /// Its id in tables and records.
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// The text that it was read from.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// How long it lasts, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.0.duration.as_secs_f64()
    }

    /// The names of its flows.
    #[getter]
    fn flows(&self) -> Vec<&str> {
        self.0.flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    fn __repr__(&self) -> String {
        format!("Scenario({:?})", self.0.id)
    }
}

/// The scenarios that a name selects: an id, a pattern such as `lund/*`, or the path of a file.
#[pyfunction]
pub fn find(name: &str) -> PyResult<Vec<Scenario>> {
    let found = catalogue::find(name).map_err(error)?;
    Ok(found.into_iter().map(|scenario| Scenario(Arc::new(scenario))).collect())
}

/// The TOML text of a document that is given as JSON.
#[pyfunction]
pub fn toml_of_json(json: &str) -> PyResult<String> {
    let document: toml::Table = serde_json::from_str(json).map_err(error)?;
    toml::to_string(&document).map_err(error)
}
