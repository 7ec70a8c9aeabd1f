//! Scenarios: from the catalogue, from a file, or from a text.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use weir_scenario::catalogue;

use crate::error;

/// A scenario: the network, the flows, and what is expected of them.
#[pyclass(frozen, module = "weir_rtc")]
#[derive(Clone)]
pub struct Scenario(pub Arc<weir_scenario::Scenario>);

#[pymethods]
impl Scenario {
    /// Parses the text of a scenario file, or one of its variants. The trace files that it names
    /// are `traces`, contents by name, or are read from the current folder.
    #[new]
    #[pyo3(signature = (text, id = "python", variant = None, traces = None))]
    fn new(
        text: &str,
        id: &str,
        variant: Option<&str>,
        traces: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let folder = std::env::current_dir().ok();
        let parsed = match (traces, variant) {
            (Some(traces), _) => {
                let texts = traces.into_iter().map(|(name, text)| (name, text.into())).collect();
                weir_scenario::parse_recorded(id, text, variant, texts)
            }
            (None, Some(variant)) => {
                weir_scenario::parse_variant(id, text, variant, folder.as_deref())
            }
            (None, None) => weir_scenario::parse(id, text, folder.as_deref()),
        };
        Ok(Self(Arc::new(parsed.map_err(error)?)))
    }

    /// What `copy` and `pickle` make it again from.
    fn __getnewargs__(&self) -> PyResult<Parts> {
        let Self(it) = self;
        Ok((it.text.clone(), it.id.clone(), it.variant.clone(), Some(self.traces()?)))
    }

    /// Its id in tables and records.
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// The text of its file, unchanged.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// The variant of the file that it is.
    #[getter]
    fn variant(&self) -> Option<&str> {
        self.0.variant.as_deref()
    }

    /// The trace files that it uses: contents by name.
    #[getter]
    fn traces(&self) -> PyResult<BTreeMap<String, String>> {
        let mut texts = BTreeMap::new();
        for (name, text) in &self.0.traces {
            texts.insert(name.clone(), text.read()?.to_string());
        }
        Ok(texts)
    }

    /// The text of a file that means this scenario without naming a variant.
    fn whole_text(&self) -> String {
        weir_scenario::whole_text(&self.0)
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

    /// Whether a flow is under the controller of the run. Without one, every controller gives the
    /// same run.
    #[getter]
    fn is_controlled(&self) -> bool {
        self.0.is_controlled()
    }

    fn __repr__(&self) -> String {
        format!("Scenario({:?})", self.0.id)
    }
}

/// Text, id, variant, trace files.
type Parts = (String, String, Option<String>, Option<BTreeMap<String, String>>);

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
