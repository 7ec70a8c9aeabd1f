//! The contract between a receiver-side estimator and the receiver that drives it.
//!
//! Most controllers live at the sender and hear of each packet's arrival. An older kind estimates at the
//! receiver and sends back one number, the highest bitrate it wants (REMB), which reaches the sender's
//! half as [`Controller::on_receiver_limit`](crate::Controller::on_receiver_limit).

use crate::feedback::Unwrapper;
use crate::units::{Bitrate, DataSize, Timestamp};

/// The receiver's half of a controller: a pure state machine.
///
/// Drive it as a [`Controller`](crate::Controller): `now` never goes backwards, equal calls give equal
/// results, and after each call [`take_limit`](ReceiverEstimator::take_limit) says what to send.
pub trait ReceiverEstimator {
    /// A packet arrived.
    fn on_packet(&mut self, now: Timestamp, packet: &ReceivedPacket);

    /// The time given by [`ReceiverEstimator::next_timeout`] has passed.
    fn on_timeout(&mut self, now: Timestamp);

    /// When [`ReceiverEstimator::on_timeout`] is due, if ever. After that call it lies later than its
    /// `now`.
    fn next_timeout(&self) -> Option<Timestamp>;

    /// The limit to send to the sender now; each is handed out once.
    fn take_limit(&mut self) -> Option<Bitrate>;
}

/// A packet as its receiver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPacket {
    /// When it left the sender, by the sender's clock: see [`AbsSendTimes`].
    pub send_time: Timestamp,
    /// RTP timestamp: the packets of a frame have the same.
    pub rtp_timestamp: u32,
    /// As in [`SentPacket::size`](crate::SentPacket::size).
    pub size: DataSize,
}

/// Turns the absolute send times of received packets, which wrap every 64 s on the wire [REMB §3], into
/// times that do not.
///
/// [REMB §3]: https://datatracker.ietf.org/doc/html/draft-alvestrand-rmcat-remb-03#section-3
#[derive(Clone, Debug, Default)]
pub struct AbsSendTimes {
    ticks: Unwrapper<24>,
}

impl AbsSendTimes {
    /// Ticks in a second on the wire: 18 bits behind the point.
    const TICKS_PER_SECOND: i128 = 1 << 18;

    /// The time of the next packet: the one nearest to the last.
    pub fn unwrap(&mut self, ticks: u32) -> Timestamp {
        let nanos = i128::from(self.ticks.unwrap(ticks)) * 1_000_000_000 / Self::TICKS_PER_SECOND;
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::TimeDelta;

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
