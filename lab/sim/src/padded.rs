//! A controller whose sender pads up to a rate of its own.

use weir::{Bitrate, Controller, Target};

/// A controller, and the rate up to which its sender pads whatever the controller asks for. Such a
/// sender is not limited by its source, so its estimate can grow to that rate.
pub(crate) struct Padded<C> {
    pub controller: C,
    pub up_to: Bitrate,
}

impl<C> Padded<C> {
    fn change<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
        work(&mut self.controller)
    }

    fn read<T>(&self, work: impl FnOnce(&C) -> T) -> T {
        work(&self.controller)
    }
}

impl<C: Controller> Controller for Padded<C> {
    weir::forward_controller!(change, read: on_media_queued on_packet_sent on_feedback
        on_round_trip_time on_receiver_limit set_limits set_desired_bitrate on_route_change
        on_shared_rate on_timeout next_timeout metrics);

    /// The padding is limited by the target [LIBWEBRTC §GoogCcNetworkController].
    fn target(&self) -> Target {
        let target = self.controller.target();
        let padding = self.up_to.min(target.bitrate).max(target.padding_rate);
        target.with_padding_rate(padding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::RateLimits;
    use weir_controllers::LabAlgorithm;

    #[test]
    fn a_padded_controller_gets_every_call() {
        let up_to = Bitrate::from_kbps(100);
        weir::testing::check_wrapper(|controller| Padded { controller, up_to }).unwrap();
    }

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
