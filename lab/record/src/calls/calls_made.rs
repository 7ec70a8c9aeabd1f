//! Decides whether the values of a real run count. No other module decides it.

use serde::{Deserialize, Serialize};

/// Why the values of a real run do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusion {
    /// A call failed, so its media was missing on the path of the others.
    Failed,
    /// The machine disturbed the run: packets left late, or processors were busy all the time.
    Disturbed,
}

/// Outcome of a real run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsMade {
    /// Number of calls that were attempted.
    pub made: usize,
    /// Number of calls that connected and lasted.
    pub succeeded: usize,
    /// The machine disturbed the run, so its values describe the machine more than the network.
    // Its name in records of schema 1.
    #[serde(alias = "bent")]
    pub disturbed: bool,
}

impl CallsMade {
    /// Why the values of the run do not count; `None` if they do.
    pub fn exclusion(self) -> Option<Exclusion> {
        match self {
            Self { disturbed: true, .. } => Some(Exclusion::Disturbed),
            Self { made, succeeded, .. } => (succeeded < made).then_some(Exclusion::Failed),
        }
    }
}
