//! Holds its start bitrate until the algorithm lands.

use crate::controller::{Controller, Metrics, RateLimits, Reason, Target};
use crate::feedback::{FeedbackReport, SentPacket};
use crate::units::Timestamp;

/// Constant bitrate.
#[derive(Clone, Debug)]
pub struct Scream {
    limits: RateLimits,
}

impl Scream {
    /// A controller at the start bitrate.
    pub fn new(limits: RateLimits) -> Self {
        Self { limits }
    }
}

impl Controller for Scream {
    fn on_packet_sent(&mut self, _now: Timestamp, _packet: &SentPacket) {}
    fn on_feedback(&mut self, _now: Timestamp, _report: &FeedbackReport) {}
    fn on_timeout(&mut self, _now: Timestamp) {}
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn target(&self) -> Target {
        Target { bitrate: self.limits.start(), pacing_rate: self.limits.start(), window: None }
    }
    fn metrics(&self) -> Metrics {
        Metrics {
            reason: Reason::Start,
            state: "constant",
            rtt: None,
            queuing_delay: None,
            loss_ratio: 0.0,
            acknowledged_bitrate: None,
            signals: [("", 0.0); 4],
        }
    }
}
