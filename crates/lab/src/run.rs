//! Which run it is: scenario, controller, engine and seed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What made a run's packets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Virtual time: everything is simulated.
    Sim,
    /// The wall clock: real browsers through the emulator.
    Call,
}

impl Engine {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Call => "call",
        }
    }
}

/// Which run this is: the head of `run.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Scenario id.
    pub scenario: String,
    /// Controller: an algorithm's name, or the browser's.
    pub controller: String,
    /// What moved the packets.
    pub engine: Engine,
    /// Seed of everything that was drawn.
    pub seed: u64,
}

impl RunInfo {
    /// The command that makes this run again.
    pub fn command(&self) -> String {
        self.command_with(&format!("--seed {}", self.seed))
    }

    /// The command for runs like this one, with `seeds` for an option that names theirs.
    pub(crate) fn command_with(&self, seeds: &str) -> String {
        let Self { scenario, controller, .. } = self;
        match self.engine {
            Engine::Sim => format!("weir run {scenario} --controller {controller} {seeds}"),
            Engine::Call => format!("weir call {scenario} {seeds}"),
        }
    }

    /// Where the run's folder lies below the output folder.
    pub fn folder(&self) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let scenario: String = self.scenario.replace('/', "__").chars().map(safe).collect();
        let run = format!("{}-{}-seed{}", self.controller, self.engine.as_str(), self.seed);
        Path::new(scenario.trim_start_matches('.')).join(run)
    }
}
