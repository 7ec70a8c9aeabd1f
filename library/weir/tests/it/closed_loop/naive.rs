//! Controllers as a first attempt would be written, each with the fault behind one complaint.

use weir::controller::{RateLimits, Target};
use weir::feedback::ArrivalTimes;
use weir::{
    Bitrate, Controller, DataSize, FeedbackReport, Metrics, Reason, SentPacket, TimeDelta,
    Timestamp,
};

/// The fault of a naive controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Grows with each report, whatever is sent.
    GrowsForEver,
    /// Takes any increase of the delay between two reports for congestion.
    FearsDelay,
    /// Halves at every report with a loss, and never takes back a loss that proves to be late.
    HalvesAtLoss,
    /// Uses its lowest rate ever as the capacity.
    NeverForgets,
    /// Changes only when a report arrives.
    WaitsForFeedback,
    /// Paces at the rate of the whole link.
    Bursts,
    /// Aims slightly above the last received rate.
    FollowsTheSource,
    /// Does not enforce the limits.
    IgnoresLimits,
}

/// Grows by 2 % per report, halves at losses of more than a tenth, and has one fault.
pub struct Naive {
    fault: Fault,
    limits: RateLimits,
    bitrate: Bitrate,
    lowest: Bitrate,
    last_delay: Option<TimeDelta>,
    last_report: Option<Timestamp>,
}

const GROWTH: f64 = 1.02;
const CUT: f64 = 0.5;

impl Naive {
    pub fn boxed(fault: Fault, limits: RateLimits) -> Box<dyn Controller + Send> {
        let (bitrate, lowest) = (limits.start(), limits.max());
        Box::new(Self { fault, limits, bitrate, lowest, last_delay: None, last_report: None })
    }

    fn is_congested(&mut self, report: &FeedbackReport) -> bool {
        let counts = report.loss_counts();
        let delay = report.received().last().and_then(|packet| packet.one_way_delay());
        let before = core::mem::replace(&mut self.last_delay, delay);
        match self.fault {
            Fault::HalvesAtLoss => counts.lost > 0,
            Fault::FearsDelay => delay > before,
            _ => counts.lost * 10 > counts.received + counts.lost,
        }
    }
}

impl Controller for Naive {
    fn on_packet_sent(&mut self, _now: Timestamp, _packet: &SentPacket) {}

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        assert_eq!(report.arrival_times, ArrivalTimes::Measured, "it knows nothing else");
        let received: DataSize = report.received().map(|packet| packet.size).sum();
        let since = self.last_report.replace(now);
        let congested = self.is_congested(report);
        self.bitrate = match (self.fault, since) {
            (Fault::FollowsTheSource, Some(since)) => received / (now - since) * GROWTH,
            _ if congested => self.bitrate * CUT,
            _ => self.bitrate * GROWTH,
        };
        if congested {
            self.lowest = self.lowest.min(self.bitrate);
        }
        if self.fault == Fault::NeverForgets {
            self.bitrate = self.bitrate.min(self.lowest * 1.2);
        }
        if self.fault != Fault::IgnoresLimits {
            self.bitrate = self.limits.clamp(self.bitrate);
        }
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, _limit: Option<Bitrate>) {}

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.limits = limits;
        self.bitrate = limits.clamp(self.bitrate);
    }

    fn on_shared_rate(&mut self, _now: Timestamp, _share: Bitrate) {}

    fn on_timeout(&mut self, _now: Timestamp) {}

    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }

    fn target(&self) -> Target {
        let factor = if self.fault == Fault::Bursts { 100.0 } else { 1.5 };
        Target::new(self.bitrate, self.bitrate.max(Bitrate::from_kbps(1)) * factor)
    }

    fn metrics(&self) -> Metrics {
        Metrics::new(Reason::Increase, "naive")
    }
}
