//! Identity of a run: scenario, controller, engine and seed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_controllers::LabAlgorithm;

/// Longest part of a command in a folder name, in characters. File systems allow names of 255
/// bytes.
const NAME_MAX: usize = 100;

/// Begin of the controller's name in the record of a call that was made elsewhere. The name of the
/// file follows.
pub const ANALYZED: &str = "analyzed ";

/// Behind the name of the file: the controller that got the recorded feedback. Its name follows.
pub const OPEN_LOOP: &str = ", open loop: ";

/// How a run was made: in simulation, or with real programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Engine {
    /// Virtual time: everything is simulated.
    Sim,
    /// The wall clock: real browsers through the emulator.
    Call,
    /// The wall clock: any command through the emulator.
    Link,
}

impl Engine {
    /// Name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Call => "call",
            Self::Link => "link",
        }
    }
}

/// Identity of a run: the first members of `run.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Scenario id.
    pub scenario: String,
    /// Controller: name of the algorithm or of the browser. For [`Engine::Link`] it is the command
    /// in shell syntax, preceded by `--peer PEER --` if another command ran at the far end.
    pub controller: String,
    /// How the run was made.
    pub engine: Engine,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl RunInfo {
    /// The command that repeats this run.
    pub fn command(&self) -> String {
        self.command_with(&format!("--seed {}", self.seed))
    }

    /// The command that repeats runs like this one; `seeds` is the option that selects their seeds.
    pub(crate) fn command_with(&self, seeds: &str) -> String {
        let Self { scenario, controller, .. } = self;
        match self.engine {
            Engine::Sim => format!("weir run {scenario} --controller {controller} {seeds}"),
            Engine::Call if controller.starts_with(ANALYZED) => {
                let name = &controller[ANALYZED.len()..];
                format!("weir analyze {}", name.split(OPEN_LOOP).next().unwrap_or(name))
            }
            Engine::Call if controller.starts_with("--app ") => {
                format!("weir call {scenario} {seeds} {controller}")
            }
            Engine::Call if is_ours(controller) => {
                format!("weir call {scenario} --controller {controller} {seeds}")
            }
            Engine::Call => format!("weir call {scenario} {seeds}"),
            Engine::Link if controller.starts_with("--peer ") => {
                format!("weir link {scenario} {seeds} {controller}")
            }
            Engine::Link => format!("weir link {scenario} {seeds} -- {controller}"),
        }
    }

    /// Path of the run's folder below the output folder.
    pub fn folder(&self) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let scenario: String = self.scenario.replace('/', "__").chars().map(safe).collect();
        let controller: String = self.controller.chars().map(safe).take(NAME_MAX).collect();
        let run = format!("{controller}-{}-seed{}", self.engine.as_str(), self.seed);
        Path::new(scenario.trim_start_matches('.')).join(run.trim_start_matches(['.', '-']))
    }
}

/// Whether this is the name of a controller of ours. A browser has its own congestion control, and
/// its own name stands in place of a controller's.
pub(crate) fn is_ours(controller: &str) -> bool {
    LabAlgorithm::all().any(|algorithm| algorithm.name() == controller)
}

/// Whether two chosen sets with these controllers can be compared. A controller of ours is compared
/// only with itself. A browser is compared with each, because any could be its model.
pub fn is_model_of(simulated: &str, real: &str) -> bool {
    simulated == real || !is_ours(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(controller: &str) -> RunInfo {
        let (scenario, controller) = ("demo/first-call".into(), controller.into());
        RunInfo { scenario, controller, engine: Engine::Link, seed: 7 }
    }

    #[test]
    fn a_call_under_a_controller_of_ours_names_it() {
        let call = |controller: &str| {
            let run = RunInfo { engine: Engine::Call, ..link(controller) };
            run.command()
        };
        assert_eq!(call("nada"), "weir call demo/first-call --controller nada --seed 7");
        assert_eq!(call("chromium"), "weir call demo/first-call --seed 7");
    }

    #[test]
    fn a_controller_of_ours_is_compared_only_with_itself() {
        assert!(is_model_of("gcc", "gcc") && is_model_of("nada", "chromium"));
        assert!(!is_model_of("gcc", "nada"));
    }

    #[test]
    fn the_run_of_a_command_says_how_to_make_it_again() {
        let ping = link("ping -c 3 10.45.0.2").command();
        assert_eq!(ping, "weir link demo/first-call --seed 7 -- ping -c 3 10.45.0.2");
        let iperf3 = link("--peer 'iperf3 -s -1' -- iperf3 -c 10.45.0.2").command();
        assert_eq!(
            iperf3,
            "weir link demo/first-call --seed 7 --peer 'iperf3 -s -1' -- iperf3 -c 10.45.0.2"
        );
    }

    #[test]
    fn the_folder_of_a_command_has_a_plain_name() {
        let folder = |command: &str| link(command).folder().display().to_string();
        let ping = "demo__first-call/ping_-c_3_10.45.0.2-link-seed7";
        assert_eq!(folder("ping -c 3 10.45.0.2"), ping);
        assert_eq!(folder("../../x\n"), "demo__first-call/_.._x_-link-seed7");
        assert!(folder(&"x".repeat(1_000)).len() < 150);
    }
}
