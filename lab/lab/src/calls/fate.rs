//! Decides whether the values of a real run count. No other module decides it.

use serde::{Deserialize, Serialize};

/// Why the values of a real run do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// A call failed, so its media was missing on the path of the others.
    Failed,
    /// The machine disturbed the run: packets left late, or processors were busy all the time.
    Disturbed,
}

/// Outcome of a real run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// Number of calls that were attempted.
    pub made: usize,
    /// Number of calls that connected and lasted.
    pub succeeded: usize,
    /// The machine disturbed the run, so its values describe the machine more than the network.
    #[serde(rename = "bent")]
    pub disturbed: bool,
}

impl Fate {
    /// Why the values of the run do not count; `None` if they do.
    pub fn flaw(self) -> Option<Flaw> {
        match self {
            Self { disturbed: true, .. } => Some(Flaw::Disturbed),
            Self { made, succeeded, .. } => (succeeded < made).then_some(Flaw::Failed),
        }
    }
}
