//! The contract between an estimator at the receiver and the driver of the receiver.
//!
//! Most controllers run at the sender and use the arrival of each packet. An older kind estimates
//! at the receiver. It sends back only the maximum bitrate it wants (REMB), which the sender's half
//! gets through [`Controller::on_receiver_limit`](weir::Controller::on_receiver_limit).

use weir::feedback::Unwrapper;
use weir::units::{Bitrate, DataSize, Timestamp};

/// The receiver's half of a controller: a pure state machine.
///
/// Drive it like a [`Controller`](weir::Controller): `now` never goes backwards, and equal calls
/// give equal results. After each call, [`take_limit`](ReceiverEstimator::take_limit) returns what
/// to send.
pub trait ReceiverEstimator {
    /// A packet arrived.
    fn on_packet(&mut self, now: Timestamp, packet: &ReceivedPacket);

    /// The time given by [`ReceiverEstimator::next_timeout`] has passed.
    fn on_timeout(&mut self, now: Timestamp);

    /// Time at which [`ReceiverEstimator::on_timeout`] is due, if any. After that call it is later
    /// than the `now` of the call.
    fn next_timeout(&self) -> Option<Timestamp>;

    /// The limit to send to the sender now. Each limit is returned once.
    fn take_limit(&mut self) -> Option<Bitrate>;
}

/// A packet as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedPacket {
    /// Time at which the packet was sent, on the sender's clock: see [`AbsSendTimes`].
    pub send_time: Timestamp,
    /// RTP timestamp, which all packets of a frame share.
    pub rtp_timestamp: u32,
    /// As in [`SentPacket::size`](weir::SentPacket::size).
    pub size: DataSize,
}

impl ReceivedPacket {
    /// A packet with these properties.
    pub const fn new(send_time: Timestamp, rtp_timestamp: u32, size: DataSize) -> Self {
        Self { send_time, rtp_timestamp, size }
    }
}

/// Unwraps the absolute send times of received packets, which wrap every 64 s on the wire
/// [REMB §3].
///
/// [REMB §3]: https://datatracker.ietf.org/doc/html/draft-alvestrand-rmcat-remb-03#section-3
#[derive(Clone, Debug, Default)]
pub struct AbsSendTimes {
    ticks: Unwrapper<24>,
}

impl AbsSendTimes {
    /// Ticks per second on the wire: the time has 18 bits of fraction.
    const TICKS_PER_SECOND: i128 = 1 << 18;

    /// The time of the next packet: the candidate nearest to the last time.
    pub fn unwrap(&mut self, ticks: u32) -> Timestamp {
        let nanos = i128::from(self.ticks.unwrap(ticks)) * 1_000_000_000 / Self::TICKS_PER_SECOND;
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::units::TimeDelta;

    // [REMB §3]
    #[test]
    fn send_times_count_on_over_their_64_seconds() {
        let mut times = AbsSendTimes::default();
        let before = times.unwrap((1 << 24) - (1 << 17));
        let after = times.unwrap(1 << 17);
        assert_eq!(before, Timestamp::from_millis(63_500));
        assert_eq!(after - before, TimeDelta::from_secs(1));
    }
}
