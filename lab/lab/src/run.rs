//! Identity of a run: scenario, controller, engine and seed.

use std::path::{Path, PathBuf};

pub use crate::engine::Engine;
use crate::subject::Subject;

/// Longest part of a command in a folder name, in characters. File systems allow names of 255
/// bytes.
const NAME_MAX: usize = 100;

/// Firefox as the sender, as the command names it.
const FIREFOX: &str = "firefox";

/// Identity of a run: the first members of `run.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Scenario id.
    pub scenario: String,
    /// What the run was made with.
    pub subject: Subject,
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
        let Self { scenario, subject, engine, .. } = self;
        match subject {
            Subject::Analyzed { dump, .. } => format!("weir analyze {dump}"),
            Subject::Application { options } => format!("weir call {scenario} {seeds} {options}"),
            // Firefox sends, whatever browsers the scenario names.
            Subject::Browser { name, .. } if name == FIREFOX => {
                format!("weir call {scenario} --controller {name} {seeds}")
            }
            Subject::Browser { .. } => format!("weir call {scenario} {seeds}"),
            Subject::Stack { driver: None, .. } => {
                format!("weir call {scenario} {seeds} {subject}")
            }
            Subject::Stack { driver: Some(driver), .. } => {
                format!("weir call {scenario} {seeds} {subject} --driver {driver}")
            }
            Subject::Command { peer: None, .. } => {
                format!("weir link {scenario} {seeds} -- {subject}")
            }
            Subject::Command { .. } => format!("weir link {scenario} {seeds} {subject}"),
            Subject::Controller { name } => {
                let command = if *engine == Engine::Call { "call" } else { "run" };
                format!("weir {command} {scenario} --controller {name} {seeds}")
            }
        }
    }

    /// Path of the run's folder below the output folder.
    pub fn folder(&self) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let scenario: String = self.scenario.replace('/', "__").chars().map(safe).collect();
        let label = self.subject.to_string();
        let mut controller: String = label.chars().map(safe).take(NAME_MAX).collect();
        if label.chars().count() > NAME_MAX {
            // Long commands may differ in what is cut off.
            controller += &format!("_{:08x}", hash(&label));
        }
        let run = format!("{controller}-{}-seed{}", self.engine.as_str(), self.seed);
        Path::new(scenario.trim_start_matches('.')).join(run.trim_start_matches(['.', '-']))
    }
}

/// FNV-1a with 32 bits: short, and the same on every machine.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::StackRole;

    fn of(engine: Engine, label: &str) -> RunInfo {
        let subject = Subject::of_label(engine, label);
        RunInfo { scenario: "demo/first-call".into(), subject, engine, seed: 7 }
    }

    fn link(command: &str) -> RunInfo {
        of(Engine::Link, command)
    }

    #[test]
    fn a_call_under_a_controller_of_ours_names_it() {
        let call = |label: &str| of(Engine::Call, label).command();
        assert_eq!(call("nada"), "weir call demo/first-call --controller nada --seed 7");
        assert_eq!(call("chromium"), "weir call demo/first-call --seed 7");
        assert_eq!(call("firefox"), "weir call demo/first-call --controller firefox --seed 7");
    }

    #[test]
    fn a_stack_that_is_a_command_names_it() {
        let (driver, role) = (Some("'./driver x'".into()), StackRole::Sender);
        let subject = Subject::Stack { name: "mine".into(), driver, role };
        let info = RunInfo { subject, ..of(Engine::Call, "gcc") };
        let command = "weir call demo/first-call --seed 7 --stack mine --driver './driver x'";
        assert_eq!(info.command(), command);
        assert_eq!(info.folder().display().to_string(), "demo__first-call/stack_mine-call-seed7");
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
        let [one, other] = ["a", "b"].map(|end| folder(&("x".repeat(1_000) + end)));
        assert_ne!(one, other);
    }
}
