//! What each request does.

use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::{Value, json};
use weir_controllers::{LabAlgorithm, LabController};
use weir_net::Seed;
use weir_record::Record;
use weir_record::memory::Files;
use weir_record::run::RunInfo;
use weir_report::Report;
use weir_scenario::Controllers;
use weir_scenario::{Scenario, catalogue, whole_text};

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Request {
    About {},
    Text { scenario: String },
    Simulate(Runs),
    Fingerprint(Runs),
}

/// Which runs are asked for: every controller with every seed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Runs {
    scenario: String,
    /// The scenario's text, if it is not in the catalogue.
    text: Option<String>,
    /// Such as `gcc,nada`, or `all`.
    controllers: String,
    seeds: Vec<u64>,
}

/// Any failure, as the line that `weir` would print.
type Failed = Box<dyn std::error::Error>;

/// The answer to a request; both are JSON.
///
/// ```
/// let answer = weir_wasm::answer(r#"{"text": {"scenario": "demo/nothing"}}"#);
/// assert!(answer.starts_with(r#"{"error":"there is no scenario 'demo/nothing'"#), "{answer}");
/// ```
pub fn answer(request: &str) -> String {
    match done(request) {
        Ok(json) => format!("{{\"ok\":{json}}}"),
        Err(error) => json!({ "error": error.to_string() }).to_string(),
    }
}

fn done(request: &str) -> Result<String, Failed> {
    Ok(match serde_json::from_str(request)? {
        Request::About {} => about()?.to_string(),
        Request::Text { scenario } => Value::from(whole_text(&find(&scenario)?)).to_string(),
        Request::Simulate(runs) => runs.report()?,
        Request::Fingerprint(runs) => Value::from(runs.fingerprints()?).to_string(),
    })
}

fn about() -> Result<Value, Failed> {
    let mut scenarios = Vec::new();
    for id in catalogue::ids() {
        // An id with nothing but variants stands for the first of them, which has an entry.
        let Ok(found) = find(id) else { continue };
        scenarios.push(json!({ "id": id, "title": found.title }));
    }
    let controllers: Vec<&str> = LabAlgorithm::all().map(LabAlgorithm::name).collect();
    let version = env!("CARGO_PKG_VERSION");
    Ok(json!({ "version": version, "controllers": controllers, "scenarios": scenarios }))
}

fn find(id: &str) -> Result<Scenario, Failed> {
    let mut found = catalogue::find(id)?;
    if found.len() > 1 {
        // `weir run` would take all of them, and the page shows one.
        return Err(format!("{id} means {} scenarios, not one", found.len()).into());
    }
    found.pop().ok_or_else(|| "the catalogue selects at least one scenario".into())
}

impl Runs {
    fn records(&self) -> Result<Vec<Files>, Failed> {
        let scenario = match &self.text {
            Some(text) => weir_scenario::parse(&self.scenario, text, None)?,
            None => find(&self.scenario)?,
        };
        let mut records = Vec::new();
        let chosen = Controllers::default().choose(&self.controllers)?;
        for controller in scenario.controllers_to_run(&chosen) {
            for seed in &self.seeds {
                records.push(simulated(&scenario, controller, *seed)?);
            }
        }
        Ok(records)
    }

    fn fingerprints(&self) -> Result<Vec<String>, Failed> {
        let mut fingerprints = Vec::new();
        for files in self.records()? {
            fingerprints.push(format!("{:016x}", files.fingerprint()));
        }
        Ok(fingerprints)
    }

    fn report(&self) -> Result<String, Failed> {
        let command = "the playground";
        let report = Report::of_files(&self.records()?, command, &AtomicBool::new(false))?;
        Ok(report.ok_or("the report was stopped")?.json())
    }
}

/// The record of one run, whole in memory.
fn simulated(scenario: &Scenario, controller: &LabController, seed: u64) -> Result<Files, Failed> {
    let info = RunInfo::simulated(scenario, controller, seed);
    let trace = weir_sim::run(&scenario.sim_config(controller), Seed::new(seed));
    Ok(Files::of(&Record { info, scenario: scenario.clone(), trace, call: None })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &Value) -> Value {
        serde_json::from_str(&answer(&request.to_string())).unwrap()
    }

    #[test]
    fn a_report_has_a_group_for_each_controller_and_flow_with_its_changes() {
        let runs =
            json!({ "scenario": "demo/first-call", "controllers": "gcc,nada", "seeds": [1] });
        let report = asked(&json!({ "simulate": runs }));
        let groups = report["ok"]["scenarios"][0]["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 4);
        // Changes that continue each other are one step of the report.
        assert!(groups.iter().all(|it| !it["events"].as_array().unwrap().is_empty()));
    }

    #[test]
    fn the_text_of_a_variant_is_that_of_the_variant() {
        let asked = asked(&json!({ "text": { "scenario": "demo/lte-5/walking" } }));
        let text = asked["ok"].as_str().unwrap();
        // Of the four texts of the file's variants only its own is left.
        assert!(text.contains("EPA") && !text.contains("EVA"), "{text}");
    }

    #[test]
    fn what_cannot_be_done_is_told_in_the_programs_words() {
        let runs =
            json!({ "scenario": "x", "text": "title = 1", "controllers": "gcc", "seeds": [1] });
        let error = asked(&json!({ "simulate": runs }))["error"].as_str().unwrap().to_string();
        assert!(error.contains("title"), "{error}");
        let runs = json!({ "scenario": "demo/first-call", "controllers": "gc", "seeds": [1] });
        let error = asked(&json!({ "fingerprint": runs }))["error"].as_str().unwrap().to_string();
        assert_eq!(error, "unknown controller; did you mean 'gcc'?");
        let error = asked(&json!({ "text": { "scenario": "demo/lte-5*" } }))["error"].to_string();
        assert!(error.contains("scenarios, not one"), "{error}");
    }
}
