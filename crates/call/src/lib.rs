//! Real video calls through the emulator: two browsers, the page that they open, the signalling
//! between them, and what they report.
//!
//! [`run_call`] makes one call from set-up to tear-down. [`Session`] is the server alone, for
//! browsers that somebody else opens. [`mod@derive`] turns what they report into the values of each
//! interval.

mod browser;
mod camera;
pub mod derive;
mod error;
mod message;
mod record;
mod run;
mod server;
pub mod stats;

pub use error::CallError;
pub use message::{Peer, SetupTimes, VideoConfig};
pub use record::{Unplayable, record, warnings};
pub use run::{CallConfig, CallOutcome, PeerOutcome, Progress, STATS_INTERVAL, run_call};
pub use server::{Event, EventKind, PageConfig, Session};
