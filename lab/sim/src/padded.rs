//! A controller whose sender pads up to a rate of its own.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{Controller, FeedbackReport, Metrics, RateLimits, SentPacket, Target};

/// A controller, and the rate up to which its sender pads whatever the controller asks for. Such a
/// sender is not limited by its source, so its estimate can grow to that rate.
pub(crate) struct Padded<C> {
    pub controller: C,
    pub up_to: Bitrate,
}

impl<C: Controller> Controller for Padded<C> {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.controller.on_media_queued(now, added, queued);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.controller.on_packet_sent(now, packet);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.controller.on_feedback(now, report);
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.controller.on_round_trip_time(now, rtt);
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.controller.on_receiver_limit(now, limit);
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.controller.set_limits(now, limits);
    }

    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.controller.set_desired_bitrate(now, desired);
    }

    fn on_route_change(&mut self, now: Timestamp) {
        self.controller.on_route_change(now);
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.controller.on_shared_rate(now, share);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.controller.on_timeout(now);
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.controller.next_timeout()
    }

    /// The padding is limited by the target [LIBWEBRTC §GoogCcNetworkController].
    fn target(&self) -> Target {
        let target = self.controller.target();
        let padding = self.up_to.min(target.bitrate).max(target.padding_rate);
        target.with_padding_rate(padding)
    }

    fn metrics(&self) -> Metrics {
        self.controller.metrics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_controllers::LabAlgorithm;

    #[test]
    fn the_padding_goes_up_to_its_rate_but_not_beyond_the_target() {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(100), kbps(300), kbps(900)).unwrap();
        for (up_to, padding) in [(200, 200), (300, 300), (1_370, 300)] {
            let controller = LabAlgorithm::Gcc.build(limits);
            let padded = Padded { controller, up_to: kbps(up_to) };
            assert_eq!(padded.target().padding_rate, kbps(padding));
        }
    }
}
