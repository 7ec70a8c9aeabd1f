//! What became of bearers during a run.

use std::fmt::{self, Display};

use weir::units::Timestamp;

/// What became of a bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BearerEvent {
    /// When.
    pub time: Timestamp,
    /// Number of the terminal among the nodes.
    pub node: usize,
    /// Name of the bearer.
    pub bearer: String,
    /// What happened.
    pub kind: BearerEventKind,
}

/// What can happen to a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerEventKind {
    /// It was added.
    Added,
    /// Its guarantee was changed.
    Changed,
    /// It was removed.
    Removed,
    /// There was no room for its guarantee.
    Refused,
    /// A more important bearer took its place.
    Preempted,
    /// There is no such bearer, or there is one already.
    Unknown,
}

impl Display for BearerEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Refused => "refused",
            Self::Preempted => "pre-empted",
            Self::Unknown => "unknown",
        })
    }
}
