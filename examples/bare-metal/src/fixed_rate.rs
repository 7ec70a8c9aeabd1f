//! A controller that never changes its rate. What a program with it needs, the sender alone needs.

use weir::controller::{Controller, Metrics, Reason, Target};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::{Bitrate, RateLimits, Timestamp};

/// Half of the lowest capacity of lund/rmcat-ns3.
const RATE: Bitrate = Bitrate::from_kbps(250);

/// Sends at a fixed rate.
pub struct FixedRate;

impl Controller for FixedRate {
    fn on_packet_sent(&mut self, _: Timestamp, _: &SentPacket) {}
    fn on_feedback(&mut self, _: Timestamp, _: &FeedbackReport) {}
    fn on_receiver_limit(&mut self, _: Timestamp, _: Option<Bitrate>) {}
    fn set_limits(&mut self, _: Timestamp, _: RateLimits) {}
    fn on_shared_rate(&mut self, _: Timestamp, _: Bitrate) {}
    fn on_timeout(&mut self, _: Timestamp) {}
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn target(&self) -> Target {
        Target::new(RATE, RATE * 2.0)
    }
    fn metrics(&self) -> Metrics {
        Metrics::new(Reason::Start, "fixed")
    }
}
