//! Whether a controller that wraps another one passes every call on.

use alloc::format;

use super::driver::{Violation, ensure};
use crate::controller::{Controller, Metrics, RateLimits, Reason, Signals, Target};
use crate::feedback::{FeedbackReport, PacketReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A call that a wrapper must pass on, with what it passes.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    MediaQueued(Timestamp, DataSize, DataSize),
    PacketSent(Timestamp, SentPacket),
    Feedback(Timestamp, FeedbackReport),
    RoundTripTime(Timestamp, TimeDelta),
    ReceiverLimit(Timestamp, Option<Bitrate>),
    Limits(Timestamp, RateLimits),
    DesiredBitrate(Timestamp, Option<Bitrate>),
    RouteChange(Timestamp),
    SharedRate(Timestamp, Bitrate),
    Timeout(Timestamp),
}

impl Call {
    fn make(&self, wrapper: &mut impl Controller) {
        match self {
            Self::MediaQueued(now, added, queued) => wrapper.on_media_queued(*now, *added, *queued),
            Self::PacketSent(now, packet) => wrapper.on_packet_sent(*now, packet),
            Self::Feedback(now, report) => wrapper.on_feedback(*now, report),
            Self::RoundTripTime(now, rtt) => wrapper.on_round_trip_time(*now, *rtt),
            Self::ReceiverLimit(now, limit) => wrapper.on_receiver_limit(*now, *limit),
            Self::Limits(now, limits) => wrapper.set_limits(*now, *limits),
            Self::DesiredBitrate(now, desired) => wrapper.set_desired_bitrate(*now, *desired),
            Self::RouteChange(now) => wrapper.on_route_change(*now),
            Self::SharedRate(now, share) => wrapper.on_shared_rate(*now, *share),
            Self::Timeout(now) => wrapper.on_timeout(*now),
        }
    }
}

/// The controller that [`check_wrapper`] gives to a wrapper. What it was told is in its metrics,
/// its target and its timeout.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    calls: u32,
    last: Option<Call>,
}

impl Counted {
    fn note(&mut self, call: Call) {
        self.calls += 1;
        self.last = Some(call);
    }

    /// A number that stands for the last call and its arguments: FNV-1a of their text.
    fn digest(&self) -> f64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in format!("{:?}", self.last).bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        (hash >> 12) as f64
    }
}

impl Controller for Counted {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.note(Call::MediaQueued(now, added, queued));
    }
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.note(Call::PacketSent(now, *packet));
    }
    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.note(Call::Feedback(now, report.clone()));
    }
    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.note(Call::RoundTripTime(now, rtt));
    }
    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.note(Call::ReceiverLimit(now, limit));
    }
    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.note(Call::Limits(now, limits));
    }
    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.note(Call::DesiredBitrate(now, desired));
    }
    fn on_route_change(&mut self, now: Timestamp) {
        self.note(Call::RouteChange(now));
    }
    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.note(Call::SharedRate(now, share));
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.note(Call::Timeout(now));
    }
    fn next_timeout(&self) -> Option<Timestamp> {
        Some(Timestamp::from_secs(1_000 + i64::from(self.calls)))
    }
    fn target(&self) -> Target {
        let bitrate = Bitrate::from_kbps(300 + u64::from(self.calls));
        Target::new(bitrate, bitrate * 1.5)
    }
    fn metrics(&self) -> Metrics {
        let signals = [("calls", f64::from(self.calls)), ("last_call", self.digest())];
        Metrics::new(Reason::Start, "counted").with_signals(Signals::first_of(&signals))
    }
}

/// Checks that a wrapper passes each call of [`Controller`] on to the controller in it, once and
/// with the same arguments, and that bitrate, timeout and metrics are those of that controller.
///
/// # Errors
///
/// The first call that gets lost or changes on the way.
pub fn check_wrapper<W: Controller>(wrap: impl FnOnce(Counted) -> W) -> Result<(), Violation> {
    let mut wrapper = wrap(Counted::default());
    let mut plain = Counted::default();
    for call in calls() {
        call.make(&mut wrapper);
        call.make(&mut plain);
        let (metrics, expected) = (wrapper.metrics(), plain.metrics());
        ensure!(metrics == expected, "{call:?} does not arrive once and as it is: {metrics:?}");
        let (timeout, expected) = (wrapper.next_timeout(), plain.next_timeout());
        ensure!(timeout == expected, "the timeout is {timeout:?} instead of {expected:?}");
        let (bitrate, expected) = (wrapper.target().bitrate, plain.target().bitrate);
        ensure!(bitrate == expected, "the target is {bitrate} instead of {expected}");
    }
    Ok(())
}

/// Each call of [`Controller`] that changes one, with arguments of its own.
fn calls() -> [Call; 10] {
    let at = Timestamp::from_secs;
    let kbps = Bitrate::from_kbps;
    let size = DataSize::from_bytes(1_200);
    let packet = PacketReport::new(7, size, at(1)).with_arrival_time(Some(at(2)));
    [
        Call::MediaQueued(at(1), size, DataSize::from_bytes(3_600)),
        Call::PacketSent(at(2), SentPacket::new(7, size)),
        Call::Feedback(at(3), FeedbackReport::new([packet].into())),
        Call::RoundTripTime(at(4), TimeDelta::from_millis(70)),
        Call::ReceiverLimit(at(5), Some(kbps(800))),
        Call::Limits(at(6), super::limits(100, 200, 900)),
        Call::DesiredBitrate(at(7), Some(kbps(700))),
        Call::RouteChange(at(8)),
        Call::SharedRate(at(9), kbps(400)),
        Call::Timeout(at(61)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::string::ToString as _;

    /// Passes on what the macro writes, but for one call.
    struct Forgetful<C>(C);

    impl<C> Forgetful<C> {
        fn change<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
            work(&mut self.0)
        }
        fn read<T>(&self, work: impl FnOnce(&C) -> T) -> T {
            work(&self.0)
        }
    }

    impl<C: Controller> Controller for Forgetful<C> {
        crate::forward_controller!(change, read: on_media_queued on_packet_sent on_feedback
            on_round_trip_time on_receiver_limit set_limits on_route_change on_shared_rate
            on_timeout next_timeout target metrics);
    }

    /// Passes on all.
    struct Whole<C>(C);

    impl<C> Whole<C> {
        fn change<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
            work(&mut self.0)
        }
        fn read<T>(&self, work: impl FnOnce(&C) -> T) -> T {
            work(&self.0)
        }
    }

    impl<C: Controller> Controller for Whole<C> {
        crate::forward_controller!(change, read);
    }

    #[test]
    fn a_wrapper_that_passes_on_every_call_holds() {
        check_wrapper(Whole).unwrap();
        check_wrapper(Box::new).unwrap();
    }

    #[test]
    fn a_wrapper_that_forgets_one_call_fails_and_names_it() {
        let violation = check_wrapper(Forgetful).unwrap_err().to_string();
        assert!(violation.contains("DesiredBitrate"), "{violation}");
    }
}
