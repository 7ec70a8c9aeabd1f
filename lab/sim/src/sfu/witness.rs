//! A controller of the server, and the response times of the feedback that it gets.

use std::cell::Cell;

use weir::controller::Controller;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir::{FeedbackReport, Target};

/// Passes everything on and notes the shortest feedback response time since the last look.
pub(super) struct Witness {
    controller: Box<dyn Controller + Send>,
    rtt: Cell<Option<TimeDelta>>,
    is_paced: bool,
}

/// Packets of a server without a pacer leave at this rate.
const UNPACED: Bitrate = Bitrate::from_kbps(100_000);

impl Witness {
    pub(super) fn new(controller: Box<dyn Controller + Send>) -> Self {
        Self { controller, rtt: Cell::new(None), is_paced: true }
    }

    /// The same for a server that sends what comes at once.
    pub(super) fn unpaced(mut self) -> Self {
        self.is_paced = false;
        self
    }

    /// The shortest feedback response time since the last call.
    pub(super) fn take_rtt(&self) -> Option<TimeDelta> {
        self.rtt.take()
    }
}

impl Witness {
    fn change<T>(&mut self, work: impl FnOnce(&mut Box<dyn Controller + Send>) -> T) -> T {
        work(&mut self.controller)
    }

    fn read<T>(&self, work: impl FnOnce(&Box<dyn Controller + Send>) -> T) -> T {
        work(&self.controller)
    }
}

impl Controller for Witness {
    weir::forward_controller!(change, read: on_media_queued on_packet_sent on_round_trip_time
        on_receiver_limit set_limits set_desired_bitrate on_route_change on_shared_rate on_timeout
        next_timeout metrics);

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        let least = self.rtt.get().into_iter().chain(report.rtt(now)).min();
        self.rtt.set(least);
        self.controller.on_feedback(now, report);
    }

    fn target(&self) -> Target {
        let mut target = self.controller.target();
        if !self.is_paced {
            target.pacing_rate = target.pacing_rate.max(UNPACED);
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_controller_gets_every_call() {
        weir::testing::check_wrapper(|controller| Witness::new(Box::new(controller))).unwrap();
    }
}
