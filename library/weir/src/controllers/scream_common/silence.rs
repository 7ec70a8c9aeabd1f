//! Silence: detects missing acknowledgements and allows a minimum send rate (SCREAM-D2,
//! SCREAMV2-D2).
//!
//! [SCREAM §7] and [SCREAMV2 §8] assume a minimum send rate without feedback, but give no rule for
//! it.

use super::RATE_PACE_MIN;
use crate::units::{DataSize, TimeDelta, Timestamp};

/// Maximum time between two feedback packets: twice the interval of 400 ms at low bitrates
/// [SCREAM §4.2.2].
const MAX_FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(800);

/// Detects missing acknowledgements, and then grants the minimum send rate.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Silence {
    /// Start of the wait for an acknowledgement; `None` while nothing new is in flight.
    waiting_since: Option<Timestamp>,
    /// Bytes that may be sent regardless of the window; `None` while acknowledgements arrive.
    /// Negative after a packet that was larger than the allowance.
    allowance: Option<i64>,
}

impl Silence {
    pub fn on_packet_sent(&mut self, now: Timestamp, size: DataSize) {
        self.waiting_since.get_or_insert(now);
        if let Some(allowance) = &mut self.allowance {
            *allowance = allowance.saturating_sub_unsigned(size.as_bytes());
        }
    }

    /// An acknowledgement arrived; `in_flight` bytes remain in flight.
    pub fn on_acknowledged(&mut self, now: Timestamp, in_flight: DataSize) {
        self.allowance = None;
        self.waiting_since = (in_flight > DataSize::ZERO).then_some(now);
    }

    /// Must be called every `interval`. Returns true if an acknowledgement is overdue. It returns
    /// true again only after another packet was sent without acknowledgement.
    pub fn on_tick(&mut self, now: Timestamp, interval: TimeDelta, rtt: TimeDelta) -> bool {
        let overdue = self.waiting_since.is_some_and(|s| now - s >= rtt + MAX_FEEDBACK_INTERVAL);
        if overdue {
            self.waiting_since = None;
            self.allowance.get_or_insert(0);
        }
        if let Some(allowance) = &mut self.allowance {
            // An unused allowance is not saved; a negative one is carried over.
            let share = (RATE_PACE_MIN * interval).as_bytes();
            *allowance = (*allowance).min(0).saturating_add_unsigned(share);
        }
        overdue
    }

    /// Whether acknowledgements are missing.
    pub fn is_silent(&self) -> bool {
        self.allowance.is_some()
    }

    /// Bytes that may be sent although the window is closed.
    pub fn allowance(&self) -> DataSize {
        let bytes = self.allowance.and_then(|bytes| u64::try_from(bytes).ok());
        DataSize::from_bytes(bytes.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(200);
    const TICK: TimeDelta = TimeDelta::from_millis(200);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    // SCREAM-D2
    #[test]
    fn an_acknowledgement_is_overdue_after_a_round_trip_and_800_ms() {
        let mut silence = Silence::default();
        assert!(!silence.on_tick(at(0), TICK, RTT), "nothing was sent");
        silence.on_packet_sent(at(100), bytes(1_200));
        silence.on_packet_sent(at(900), bytes(1_200));
        assert!(!silence.on_tick(at(1_099), TICK, RTT));
        assert!(silence.on_tick(at(1_100), TICK, RTT));
        assert!(!silence.on_tick(at(9_000), TICK, RTT), "nothing was sent since");
        silence.on_packet_sent(at(9_000), bytes(1_200));
        assert!(silence.on_tick(at(10_000), TICK, RTT));
    }

    // SCREAM-D2
    #[test]
    fn a_closed_window_lets_50_kbps_out_in_silence() {
        let mut silence = Silence::default();
        silence.on_packet_sent(at(0), bytes(1_200));
        let mut sent = 0;
        for tick in 1..=100 {
            silence.on_tick(at(200 * tick), TICK, RTT);
            while silence.allowance() > DataSize::ZERO {
                silence.on_packet_sent(at(200 * tick), bytes(1_200));
                sent += 1_200;
            }
        }
        // Overdue at the fifth of 100 ticks, so 96 ticks of 1250 bytes. The last packet exceeds the
        // allowance.
        assert_eq!(sent, 120_000);
    }

    // SCREAM-D2
    #[test]
    fn an_acknowledgement_ends_the_silence_and_is_owed_while_something_is_in_flight() {
        let mut silence = Silence::default();
        silence.on_packet_sent(at(0), bytes(1_200));
        silence.on_tick(at(1_000), TICK, RTT);
        assert!(silence.is_silent());
        silence.on_acknowledged(at(1_050), bytes(12_000));
        assert!(!silence.is_silent());
        assert!(
            silence.on_tick(at(2_050), TICK, RTT),
            "the window may be full: nothing more is sent"
        );
        silence.on_acknowledged(at(2_100), DataSize::ZERO);
        assert!(!silence.on_tick(at(9_000), TICK, RTT));
    }
}
