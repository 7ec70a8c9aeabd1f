//! Turns the selection on the command line into runs.

use std::ops::RangeInclusive;

use anyhow::{Context, Error, bail, ensure};
use weir_controllers::{LabAlgorithm, LabController};
use weir_record::run::RunInfo;
use weir_scenario::constants::sluice_with;
use weir_scenario::{CallSender, Scenario, catalogue};
use weir_scenario::{Controllers, LIBRARY};

use crate::args::Selection;
use crate::output::escaped;

/// Maximum number of runs of one command: a typing error must not fill the memory.
const RUNS_MAX: u128 = 1_000_000;

/// One run to make.
pub struct Job<'a> {
    pub scenario: &'a Scenario,
    pub controller: LabController,
    pub info: RunInfo,
}

/// The scenarios of all names, each once, in the order of the command line.
pub fn scenarios(names: &[String]) -> anyhow::Result<Vec<Scenario>> {
    let mut found: Vec<Scenario> = Vec::new();
    for name in names {
        for scenario in catalogue::find(name)? {
            if !found.iter().any(|known| known.id == scenario.id) {
                for warning in scenario.warnings() {
                    eprintln!("weir: {}: {}", scenario.id, escaped(&warning));
                }
                found.push(scenario);
            }
        }
    }
    Ok(found)
}

/// Says which scenarios have networks of participants, which only applications under test have.
pub fn note_participants(scenarios: &[Scenario]) {
    for scenario in scenarios.iter().filter(|scenario| !scenario.participants.is_empty()) {
        eprintln!(
            "weir: {}: only `weir call --app` has participants; their networks are left out, and \
             [network] is there",
            scenario.id
        );
    }
}

/// Says which scenarios have NATs or servers of ICE, which simulations do not have.
pub fn note_nats(scenarios: &[Scenario]) {
    for scenario in scenarios.iter().filter(|it| !(it.nats.is_empty() && it.handovers.is_empty())) {
        eprintln!(
            "weir: {}: NATs and hand-overs to a second interface are for real calls (`weir call`); \
             this simulation has none",
            scenario.id
        );
    }
}

/// The controllers of the selection: those of a list such as `nada,scream`, or `all`. Without a
/// list, those of the library.
pub fn controllers(selection: &Selection) -> anyhow::Result<Vec<LabController>> {
    named(selection.controller.as_deref().unwrap_or(LIBRARY), &selection.constants)
}

/// The controllers of a list such as `nada,scream`, or `all`, where `sluice` has these constants.
pub fn named(list: &str, constants: &[String]) -> anyhow::Result<Vec<LabController>> {
    let mut controllers = Controllers::default();
    if !constants.is_empty() {
        controllers = controllers.with(sluice_with(constants).context("--set")?);
    }
    controllers.choose(list).map_err(|unknown| {
        let context = format!("--controller '{}'", unknown.name);
        anyhow::Error::from(unknown).context(context)
    })
}

/// Chromium's own congestion control, as the list of controllers of a call names it.
pub const CHROMIUM: &str = "chromium";

/// Each scenario as a call plays it under each controller of the list, in that order of nesting.
/// `gcc` stands for the congestion control of Chromium. A scenario without a flow that is under the
/// controller is there once.
pub fn called(selection: &Selection) -> anyhow::Result<Vec<(Scenario, LabController)>> {
    let list = selection.controller.as_deref().unwrap_or(CHROMIUM);
    let scenarios = scenarios(&selection.scenarios)?;
    note_participants(&scenarios);
    note_nats(&scenarios);
    let mut called = Vec::new();
    for scenario in scenarios {
        let mut of_scenario = Vec::new();
        for name in list.split(',').map(str::trim) {
            let (sender, name) = match name {
                CHROMIUM => (CallSender::Chromium, LabAlgorithm::Gcc.name()),
                name => (CallSender::Pipeline, name),
            };
            for controller in named(name, &selection.constants)? {
                of_scenario.push((scenario.as_called(sender).map_err(Error::msg)?, controller));
            }
        }
        if !scenario.is_controlled() {
            of_scenario.truncate(1);
        }
        called.append(&mut of_scenario);
    }
    Ok(called)
}

/// The threads that make this many runs: those of `--jobs`, or one for each core.
pub fn threads(jobs: Option<usize>, runs: usize) -> anyhow::Result<rayon::ThreadPool> {
    ensure!(jobs != Some(0), "--jobs 0 runs nothing: write 1 or more");
    // More threads than runs would be idle; 0 means one for each core.
    let threads = jobs.map_or(0, |jobs| jobs.min(runs));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.context("cannot start the worker threads")
}

/// The seeds that were asked for.
pub fn seeds(selection: &Selection) -> anyhow::Result<RangeInclusive<u64>> {
    match (selection.seeds, selection.seed) {
        (Some(0), _) => bail!("--seeds 0 makes no run: write 1 or more"),
        (Some(n), _) => Ok(1..=n),
        (None, seed) => {
            let seed = seed.unwrap_or(1);
            Ok(seed..=seed)
        }
    }
}

/// Returns an error if `things` with these seeds each are more runs than one command may make.
pub fn refuse_too_many(things: usize, seeds: &RangeInclusive<u64>) -> anyhow::Result<()> {
    let runs = things as u128 * (u128::from(seeds.end() - seeds.start()) + 1);
    ensure!(runs <= RUNS_MAX, "these are {runs} runs: ask for at most {RUNS_MAX} in one command");
    Ok(())
}

/// Every scenario under every controller with every seed, in that order of nesting. A scenario
/// without a flow that is under the controller runs once with each seed.
pub fn jobs<'a>(
    scenarios: &'a [Scenario],
    controllers: &[LabController],
    seeds: RangeInclusive<u64>,
) -> anyhow::Result<Vec<Job<'a>>> {
    let runs = scenarios.iter().map(|scenario| scenario.controllers_to_run(controllers).len());
    refuse_too_many(runs.sum(), &seeds)?;
    let mut jobs = Vec::new();
    for scenario in scenarios {
        for controller in scenario.controllers_to_run(controllers) {
            for seed in seeds.clone() {
                let info = RunInfo::simulated(scenario, controller, seed);
                jobs.push(Job { scenario, controller: controller.clone(), info });
            }
        }
    }
    Ok(jobs)
}
