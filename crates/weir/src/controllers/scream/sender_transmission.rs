//! Sender transmission control: what the window still lets out, how fast, and what leaves although
//! no acknowledgement comes.
//!
//! Implements [SCREAM §4.1.2.5] and [SCREAM §4.1.2.6]. [SCREAM §7] counts on a minimum send rate
//! without feedback and gives no rule for it: SCREAM-D2.

use super::congestion_window::MSS;
use crate::controller::Window;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// `RATE_PACE_MIN`: lowest pacing rate [SCREAM §4.1.1.1], and the send rate in silence (SCREAM-D2).
const RATE_PACE_MIN: Bitrate = Bitrate::from_kbps(50);
/// The pacing rate over the highest target bitrate, at most (SCREAM-D11).
const MAX_PACING_FACTOR: f64 = 10.0;
/// The longest time between two feedback packets: twice the 400 ms of low bitrates
/// [SCREAM §4.2.2].
const MAX_FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(800);

/// Watches for acknowledgements that stay away, and hands out the minimum send rate then.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderTransmission {
    /// Since when an acknowledgement is owed; `None` while nothing new is in flight.
    waiting_since: Option<Timestamp>,
    /// Bytes that may leave regardless of the window; `None` while acknowledgements come.
    /// Negative after a packet larger than what was left.
    allowance: Option<i64>,
}

impl SenderTransmission {
    pub fn on_packet_sent(&mut self, now: Timestamp, size: DataSize) {
        self.waiting_since.get_or_insert(now);
        if let Some(allowance) = &mut self.allowance {
            *allowance = allowance.saturating_sub_unsigned(size.as_bytes());
        }
    }

    /// An acknowledgement came and left `in_flight`.
    pub fn on_acknowledged(&mut self, now: Timestamp, in_flight: DataSize) {
        self.allowance = None;
        self.waiting_since = (in_flight > DataSize::ZERO).then_some(now);
    }

    /// Called every `interval`. Whether an acknowledgement is overdue; told again only after one
    /// more packet was sent in vain.
    pub fn on_tick(&mut self, now: Timestamp, interval: TimeDelta, rtt: TimeDelta) -> bool {
        let overdue = self.waiting_since.is_some_and(|s| now - s >= rtt + MAX_FEEDBACK_INTERVAL);
        if overdue {
            self.waiting_since = None;
            self.allowance.get_or_insert(0);
        }
        if let Some(allowance) = &mut self.allowance {
            // What was not used is not saved up, what was overdrawn is paid off.
            let share = (RATE_PACE_MIN * interval).as_bytes();
            *allowance = (*allowance).min(0).saturating_add_unsigned(share);
        }
        overdue
    }

    /// Whether acknowledgements stay away.
    pub fn is_silent(&self) -> bool {
        self.allowance.is_some()
    }

    /// `send_wnd` [SCREAM §4.1.2.5], opened by the minimum send rate in silence.
    pub fn window(&self, cwnd: DataSize, in_flight: DataSize, delay_fraction: f64) -> Window {
        // A strict rule above the delay target, one segment of slack below it.
        let slack = if delay_fraction <= 1.0 { MSS as u64 } else { 0 };
        let send_window = (cwnd + DataSize::from_bytes(slack)).saturating_sub(in_flight);
        let allowance = self.allowance.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        Window {
            congestion_window: cwnd,
            available: send_window.max(DataSize::from_bytes(allowance)),
        }
    }
}

/// `pace_bitrate` [SCREAM §4.1.2.6]. SCREAM-D11: bounded, or a short round trip ends all pacing.
pub(super) fn pacing_rate(cwnd: DataSize, rtt: TimeDelta, max_bitrate: Bitrate) -> Bitrate {
    (cwnd / rtt).min(max_bitrate * MAX_PACING_FACTOR).max(RATE_PACE_MIN)
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

    fn available(control: &SenderTransmission, in_flight: u64, delay_fraction: f64) -> u64 {
        control.window(bytes(10_000), bytes(in_flight), delay_fraction).available.as_bytes()
    }

    // [SCREAM §4.1.2.5]
    #[test]
    fn the_send_window_has_a_segment_of_slack_up_to_the_delay_target() {
        let control = SenderTransmission::default();
        assert_eq!(available(&control, 4_000, 1.0), 7_000);
        assert_eq!(available(&control, 4_000, 1.01), 6_000);
        assert_eq!(available(&control, 12_000, 0.0), 0);
    }

    // [SCREAM §4.1.2.6]
    #[test]
    fn the_window_is_paced_over_a_round_trip_and_never_below_50_kbps() {
        let pace = |cwnd, millis| {
            let rtt = TimeDelta::from_millis(millis);
            pacing_rate(bytes(cwnd), rtt, Bitrate::from_kbps(2_500)).as_bps() / 1_000
        };
        assert_eq!(pace(10_000, 200), 400);
        assert_eq!(pace(3_000, 1_000), 50);
        assert_eq!(pace(10_000, 1), 25_000, "SCREAM-D11, 80 Mbit/s as the RFC has it");
    }

    // SCREAM-D2
    #[test]
    fn an_acknowledgement_is_overdue_after_a_round_trip_and_800_ms() {
        let mut control = SenderTransmission::default();
        assert!(!control.on_tick(at(0), TICK, RTT), "nothing was sent");
        control.on_packet_sent(at(100), bytes(1_200));
        control.on_packet_sent(at(900), bytes(1_200));
        assert!(!control.on_tick(at(1_099), TICK, RTT));
        assert!(control.on_tick(at(1_100), TICK, RTT));
        assert!(!control.on_tick(at(9_000), TICK, RTT), "nothing was sent since");
        control.on_packet_sent(at(9_000), bytes(1_200));
        assert!(control.on_tick(at(10_000), TICK, RTT));
    }

    // SCREAM-D2
    #[test]
    fn a_closed_window_lets_50_kbps_out_in_silence() {
        let mut control = SenderTransmission::default();
        control.on_packet_sent(at(0), bytes(1_200));
        let mut sent = 0;
        for tick in 1..=100 {
            control.on_tick(at(200 * tick), TICK, RTT);
            while available(&control, 99_999, 0.0) > 0 {
                control.on_packet_sent(at(200 * tick), bytes(1_200));
                sent += 1_200;
            }
        }
        // Overdue at the fifth of 100 ticks: 96 ticks of 1250 B, the last packet overdraws.
        assert_eq!(sent, 120_000);
    }

    // SCREAM-D2
    #[test]
    fn an_acknowledgement_ends_the_silence_and_is_owed_while_something_is_in_flight() {
        let mut control = SenderTransmission::default();
        control.on_packet_sent(at(0), bytes(1_200));
        control.on_tick(at(1_000), TICK, RTT);
        assert!(control.is_silent());
        control.on_acknowledged(at(1_050), bytes(12_000));
        assert!(!control.is_silent());
        assert!(
            control.on_tick(at(2_050), TICK, RTT),
            "the window may be full: nothing more is sent"
        );
        control.on_acknowledged(at(2_100), DataSize::ZERO);
        assert!(!control.on_tick(at(9_000), TICK, RTT));
    }
}
