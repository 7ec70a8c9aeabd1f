//! How a run was made.

use serde::{Deserialize, Serialize};

/// How a run was made: in simulation, or with real programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
