//! Simulates one run, measures it and writes its record.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use weir_controllers::LabController;
use weir_net::Seed;
use weir_scenario::Scenario;

use crate::folder::{RecordError, Writer};
use crate::run::{Engine, RunInfo};
use crate::subject::Subject;
use crate::summary::{Measurer, Summary};

/// Simulates a scenario under a controller. With `out`, the record of the run is written below that
/// folder, where `weir report` finds it. Rows are measured and written as they arrive, so that a
/// run of any length takes little memory. Returns `None` if `stop` was set; then there is no
/// record.
///
/// # Errors
///
/// The record exists already, or cannot be written.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use weir_controllers::{LabAlgorithm, LabController};
/// use weir_record::simulate;
/// use weir_scenario::catalogue;
///
/// let scenario = &catalogue::find("demo/first-call")?[0];
/// let gcc = LabController::from(LabAlgorithm::Gcc);
/// let summary = simulate(scenario, &gcc, 1, None, &AtomicBool::new(false))?;
/// assert!(summary.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate(
    scenario: &Scenario,
    controller: &LabController,
    seed: u64,
    out: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Option<Summary>, RecordError> {
    let info = RunInfo::simulated(scenario, controller, seed);
    let config = scenario.sim_config(controller);
    let names: Vec<String> = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    let mut measurer = Measurer::new(scenario, &info, &names);
    let mut writer = out.map(|out| Writer::create(out, &info, scenario)).transpose()?;
    let is_whole = weir_sim::run_in_parts(&config, Seed::new(seed), stop, |part| {
        measurer.add(part);
        writer.as_mut().map_or(Ok(()), |writer| writer.add(part))
    })?;
    if !is_whole {
        return Ok(None);
    }
    let summary = measurer.finish(None);
    if let Some(writer) = writer {
        writer.finish(&summary, None)?;
    }
    Ok(Some(summary))
}

impl RunInfo {
    /// The simulated run of a scenario under a controller with a seed. The run is not named after
    /// a controller that has no flow.
    pub fn simulated(scenario: &Scenario, controller: &LabController, seed: u64) -> Self {
        let subject = match scenario.is_controlled() {
            true => Subject::controller(controller.name()),
            false => Subject::NoController,
        };
        Self { scenario: scenario.id.clone(), subject, engine: Engine::Sim, seed }
    }
}
