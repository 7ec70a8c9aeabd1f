//! Compares three independent measurements (witnesses) of one call: the browsers' reports, the
//! captures at the hosts, and the emulator's log.
//!
//! ```text
//! reports, captures -> CallEnds -> counts of each stream -+
//! emulator ---------> LinkLog ------------------------+-> agreement -> call.json
//! ```

mod agreement;
mod counted;
mod ends;
mod json;
mod link_log;
mod sources;

pub use agreement::WitnessComparison;
pub use counted::{Compared, ComparedInterval};
pub use ends::{CallEnds, CapturedInterval, PeerStream};
pub use json::emit;
pub use link_log::{LinkLog, link_window};
pub use sources::{Counted, StreamDirection, StreamRole};
