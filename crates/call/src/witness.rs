//! What three witnesses say of one call: the browsers' reports, the captures of the hosts, and the
//! emulator's log.
//!
//! ```text
//! reports, captures -> Ends -> counts of each stream -+
//! emulator ---------> LinkLog ------------------------+-> agreement -> call.json
//! ```

mod agreement;
mod counted;
mod ends;
mod json;
mod link_log;
mod sources;

pub use agreement::Row;
pub use counted::{Compared, ComparedInterval};
pub use ends::{CapturedInterval, Ends, PeerStream};
pub use json::emit;
pub use link_log::{LinkLog, link_window};
pub use sources::{Counted, Role, Way};
