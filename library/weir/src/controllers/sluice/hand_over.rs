//! A path that was away: everything that was sent for a while got lost (S-19).
//!
//! A full queue loses some packets and delays the others. If nothing at all arrives of what was
//! sent over some time, and what came before had not waited, the path was cut. What carries packets
//! afterwards may be another one. A link that stands still with a full queue loses all, too, but
//! the packets before had waited for the queue.

use super::Parameters;
use super::parameters::Switch;
use crate::units::{TimeDelta, Timestamp};

/// The newest packet that arrived, and how many were lost since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cuts {
    newest_sent: Option<Timestamp>,
    /// How long it was above the base.
    waited: TimeDelta,
    lost: u64,
}

impl Cuts {
    /// The next packet in the order of sending got lost.
    pub(super) fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// Whether packets were lost since the last one that arrived.
    pub(super) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Packets arrived without a loss. The last one was sent then, and was this long above the
    /// base.
    pub(super) fn on_stretch(&mut self, sent: Timestamp, above: TimeDelta) {
        self.newest_sent = Some(sent);
        self.waited = above;
    }

    /// The packet that arrived was this long above the base.
    pub(super) fn waited(&mut self, above: TimeDelta) {
        self.waited = above;
    }

    /// The next packet arrived. Returns how many packets the path lost while it was away, if it
    /// was.
    pub(super) fn on_arrived(&mut self, sent: Timestamp, p: &Parameters) -> Option<u64> {
        let lost = core::mem::take(&mut self.lost);
        let last = self.newest_sent.replace(sent)?;
        let is_cut = sent - last >= p.outage()
            && lost as f64 >= p.losses
            && self.waited < p.outage()
            && p.has(Switch::Cut);
        is_cut.then_some(lost)
    }
}
