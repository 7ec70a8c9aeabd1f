//! What is counted: what came, what was refused, and what limited the calls.

use std::collections::BTreeMap;

use weir_analyze::{Cause, GoodTime};

/// Why something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// The token is wrong, or the address names nothing.
    Token,
    /// There are too many calls.
    Calls,
    /// This end of a call has sent too much, or too fast.
    Bytes,
    /// The disk does not take it.
    Disk,
    /// It is no event.
    Event,
    /// Another connection of the same end came later.
    Replaced,
}

impl Refused {
    pub const ALL: [Self; 6] =
        [Self::Token, Self::Calls, Self::Bytes, Self::Disk, Self::Event, Self::Replaced];

    /// Its name in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Calls => "calls",
            Self::Bytes => "bytes",
            Self::Disk => "disk",
            Self::Event => "event",
            Self::Replaced => "replaced",
        }
    }
}

/// What happened since the start.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub reports: u64,
    pub events: u64,
    pub bytes: u64,
    pub joined: u64,
    pub ended: u64,
    pub lost_writes: u64,
    pub untold: u64,
    pub refused: BTreeMap<Refused, u64>,
    /// Seconds of calls in which each cause held, in the order of [`Cause::ALL`].
    pub bad_s: [f64; Cause::ALL.len()],
    /// Seconds of received videos, in the order of [`WATCHED`].
    pub watched_s: [f64; WATCHED.len()],
}

/// What seconds of received videos were like.
pub const WATCHED: [&str; 3] = ["good", "no_picture", "late"];

/// Seconds of received videos, in the order of [`WATCHED`].
pub fn watched_s(good: GoodTime) -> [f64; WATCHED.len()] {
    [good.good_s, good.no_picture_s, good.late_s]
}
