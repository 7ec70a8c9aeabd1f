//! Sender transmission control: how many bytes may be sent now, and how fast.
//!
//! Implements [SCREAM §4.1.2.5] and [SCREAM §4.1.2.6].

use crate::controller::Window;
use crate::controllers::scream_common::{MSS, RATE_PACE_MIN};
use crate::units::{Bitrate, DataSize, TimeDelta};

/// Upper bound of the pacing rate, relative to the maximum target bitrate (SCREAM-D11).
const MAX_PACING_FACTOR: f64 = 10.0;

/// `send_wnd` [SCREAM §4.1.2.5], but at least the allowance during silence (SCREAM-D2).
pub(super) fn send_window(
    cwnd: DataSize,
    in_flight: DataSize,
    delay_fraction: f64,
    allowance: DataSize,
) -> Window {
    // Up to the delay target, one segment more than the window may be sent.
    let slack = if delay_fraction <= 1.0 { MSS as u64 } else { 0 };
    let send_window = (cwnd + DataSize::from_bytes(slack)).saturating_sub(in_flight);
    Window { congestion_window: cwnd, available: send_window.max(allowance) }
}

/// `pace_bitrate` [SCREAM §4.1.2.6]. SCREAM-D11: bounded, because with a short round-trip time the
/// RFC's rate is so high that packets are no longer paced.
pub(super) fn pacing_rate(cwnd: DataSize, rtt: TimeDelta, max_bitrate: Bitrate) -> Bitrate {
    (cwnd / rtt).min(max_bitrate * MAX_PACING_FACTOR).max(RATE_PACE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    fn available(in_flight: u64, delay_fraction: f64, allowance: u64) -> u64 {
        let window = send_window(bytes(10_000), bytes(in_flight), delay_fraction, bytes(allowance));
        window.available.as_bytes()
    }

    // [SCREAM §4.1.2.5], SCREAM-D2
    #[test]
    fn the_send_window_has_a_segment_of_slack_up_to_the_delay_target() {
        assert_eq!(available(4_000, 1.0, 0), 7_000);
        assert_eq!(available(4_000, 1.01, 0), 6_000);
        assert_eq!(available(12_000, 0.0, 0), 0);
        assert_eq!(available(12_000, 0.0, 1_250), 1_250);
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
}
