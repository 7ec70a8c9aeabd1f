//! What a prober learned, for the host and its log.

use weir::controller::Probe;
use weir::units::{Bitrate, Timestamp};

use crate::decision::{Change, Decision, Reason as DecisionReason};

/// What a probe showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeOutcome {
    /// Counts the outcomes of this prober, from 1.
    pub number: u64,
    /// When it was known.
    pub at: Timestamp,
    /// What it showed.
    pub result: ProbeResult,
}

impl ProbeOutcome {
    /// The same as a decision for the host's log, made under this budget.
    pub fn decision(&self, budget: Bitrate) -> Decision {
        let (change, reason, needed) = match self.result {
            ProbeResult::Started(probe) => {
                let change = Change::Probe { rate: probe.rate, size: probe.size };
                (change, DecisionReason::CapacityUnknown, probe.rate)
            }
            ProbeResult::Arrived(rate) => {
                (Change::Proved { rate }, DecisionReason::ProbeArrived, rate)
            }
            ProbeResult::MediaArrived(rate) => {
                (Change::Proved { rate }, DecisionReason::MediaArrived, rate)
            }
            ProbeResult::Queued(rate) => {
                (Change::Disproved { rate }, DecisionReason::ProbeQueued, rate)
            }
            ProbeResult::Unanswered => {
                let rate = Bitrate::ZERO;
                (Change::Disproved { rate }, DecisionReason::ProbeQueued, rate)
            }
        };
        Decision::new(self.at, None, change, reason, budget, needed)
    }
}

/// What a probe, or media in its place, showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeResult {
    /// A probe begins.
    Started(Probe),
    /// Its packets arrived at this rate.
    Arrived(Bitrate),
    /// Media arrived at this rate, which is more than was known to fit.
    MediaArrived(Bitrate),
    /// Its packets were lost or queued. They arrived at this rate.
    Queued(Bitrate),
    /// No feedback came on its packets.
    Unanswered,
}
