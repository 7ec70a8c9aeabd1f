//! A path that was away: everything that was sent for a while got lost (S-35).
//!
//! A full queue loses some packets and delays the others. If nothing at all arrives of what was
//! sent over some time, the path was cut, and what carries packets afterwards may be another one.

use super::Parameters;
use crate::units::Timestamp;

/// The newest packet that arrived, and how many were lost since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cuts {
    newest_sent: Option<Timestamp>,
    lost: u64,
}

impl Cuts {
    /// The next packet in the order of sending got lost.
    pub(super) fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// The next packet arrived. Returns how many packets the path lost while it was away, if it
    /// was.
    pub(super) fn on_arrived(&mut self, sent: Timestamp, p: &Parameters) -> Option<u64> {
        let lost = core::mem::take(&mut self.lost);
        let last = self.newest_sent.replace(sent)?;
        (sent - last >= p.t_cut && lost as f64 >= p.cut_packets).then_some(lost)
    }
}
