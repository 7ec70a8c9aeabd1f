//! Marks where the work of one part ends and that of another begins.
//!
//! `scripts/camera-instructions.sh` counts the instructions between the marks. It finds them by the
//! names of their functions, so a mark does nothing but to be called. It costs about five
//! instructions.

use std::cell::Cell;

use weir::controller::{Controller, Metrics, Target};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::{Bitrate, DataSize, RateLimits, TimeDelta, Timestamp};

/// What the program is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// None of the parts below: sockets, waiting, the simulated network.
    Other,
    /// Makes pictures.
    Picture,
    /// Encodes them.
    Encoder,
    /// Makes RTP packets.
    Packetizer,
    /// Queue, pacer and send history.
    Pacer,
    /// Reads RTCP, joins it with the send history and writes sender reports.
    Feedback,
    /// The congestion controller.
    Controller,
}

thread_local! {
    static CURRENT: Cell<Part> = const { Cell::new(Part::Other) };
}

/// Defines the functions that the counter looks for. Each has a body of its own, as the linker
/// merges functions with equal bodies.
macro_rules! marks {
    ($($name:ident: $part:ident,)*) => {
        $(
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $name() {
                std::hint::black_box(Part::$part);
            }
        )*
        fn mark(part: Part) {
            match part { $(Part::$part => $name(),)* }
        }
    };
}
marks! {
    mark_other: Other,
    mark_picture: Picture,
    mark_encoder: Encoder,
    mark_packetizer: Packetizer,
    mark_pacer: Pacer,
    mark_feedback: Feedback,
    mark_controller: Controller,
}

/// Does work that counts towards a part. The work may contain work of other parts.
pub fn within<T>(part: Part, work: impl FnOnce() -> T) -> T {
    let before = CURRENT.replace(part);
    mark(part);
    let result = work();
    CURRENT.set(before);
    mark(before);
    result
}

/// A controller whose work counts towards [`Part::Controller`].
pub struct Marked<C>(pub C);

impl<C: Controller> Controller for Marked<C> {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        within(Part::Controller, || self.0.on_media_queued(now, added, queued));
    }
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        within(Part::Controller, || self.0.on_packet_sent(now, packet));
    }
    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        within(Part::Controller, || self.0.on_feedback(now, report));
    }
    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        within(Part::Controller, || self.0.on_round_trip_time(now, rtt));
    }
    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        within(Part::Controller, || self.0.on_receiver_limit(now, limit));
    }
    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        within(Part::Controller, || self.0.set_limits(now, limits));
    }
    fn on_route_change(&mut self, now: Timestamp) {
        within(Part::Controller, || self.0.on_route_change(now));
    }
    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        within(Part::Controller, || self.0.on_shared_rate(now, share));
    }
    fn on_timeout(&mut self, now: Timestamp) {
        within(Part::Controller, || self.0.on_timeout(now));
    }
    fn next_timeout(&self) -> Option<Timestamp> {
        within(Part::Controller, || self.0.next_timeout())
    }
    fn target(&self) -> Target {
        within(Part::Controller, || self.0.target())
    }
    fn metrics(&self) -> Metrics {
        within(Part::Controller, || self.0.metrics())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_inner_work_the_outer_part_goes_on() {
        within(Part::Pacer, || {
            within(Part::Controller, || assert_eq!(CURRENT.get(), Part::Controller));
            assert_eq!(CURRENT.get(), Part::Pacer);
        });
        assert_eq!(CURRENT.get(), Part::Other);
    }
}
