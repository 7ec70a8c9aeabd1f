//! Sender transmission control: how many bytes may be sent now, and how fast.
//!
//! Implements [SCREAMV2 §4.3].

use crate::controller::Window;
use crate::controllers::scream_common::RATE_PACE_MIN;
use crate::units::{Bitrate, DataSize};

// Parameters [SCREAMV2 §4.3.1].
/// `REF_WND_OVERHEAD_MIN`: allowed ratio of bytes in flight to reference window, with delay jitter.
const REF_WND_OVERHEAD_MIN: f64 = 1.5;
/// `REF_WND_OVERHEAD_MAX`: the same ratio without jitter.
const REF_WND_OVERHEAD_MAX: f64 = 3.0;
// Parameters [SCREAMV2 §4.3.2].
/// `MAX_RELAXED_PACING_FACTOR`: factor of the pacing rate at the maximum target bitrate.
const MAX_RELAXED_PACING_FACTOR: f64 = 4.0;
/// `RELAXED_PACING_LIMIT_LOW`: share of the maximum target bitrate above which pacing is faster.
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;

/// `send_wnd` [SCREAMV2 §4.3.1], but at least the allowance during silence (SCREAMV2-D2).
pub(super) fn send_window(
    ref_wnd: f64,
    in_flight: DataSize,
    jitter_scale: f64,
    allowance: DataSize,
) -> Window {
    let overhead =
        REF_WND_OVERHEAD_MIN + (REF_WND_OVERHEAD_MAX - REF_WND_OVERHEAD_MIN) * jitter_scale;
    let most = DataSize::from_bytes((ref_wnd * overhead) as u64);
    Window {
        congestion_window: DataSize::from_bytes(ref_wnd as u64),
        available: most.saturating_sub(in_flight).max(allowance),
    }
}

/// `pace_bitrate` [SCREAMV2 §4.3.2] with `PACKET_PACING_HEADROOM`.
pub(super) fn pacing_rate(target: Bitrate, max: Bitrate, headroom: f64) -> Bitrate {
    let pace = target.max(RATE_PACE_MIN) * headroom;
    let above = (target / max - RELAXED_PACING_LIMIT_LOW) / (1.0 - RELAXED_PACING_LIMIT_LOW);
    pace * (1.0 / (1.0 - above).clamp(1.0 / MAX_RELAXED_PACING_FACTOR, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    // [SCREAMV2 §4.3.1], SCREAMV2-D2
    #[test]
    fn three_times_the_window_may_be_in_flight_and_half_of_that_with_jitter() {
        let available = |in_flight, jitter_scale, allowance| {
            let bytes = DataSize::from_bytes;
            send_window(10_000.0, bytes(in_flight), jitter_scale, bytes(allowance)).available
        };
        assert_eq!(available(12_000, 1.0, 0), DataSize::from_bytes(18_000));
        assert_eq!(available(12_000, 0.0, 0), DataSize::from_bytes(3_000));
        assert_eq!(available(31_000, 1.0, 0), DataSize::ZERO);
        assert_eq!(available(31_000, 1.0, 1_250), DataSize::from_bytes(1_250));
    }

    // [SCREAMV2 §4.3.2]
    #[test]
    fn packets_leave_at_1_5_times_the_target_and_faster_near_the_maximum() {
        let pace = |kbps| {
            pacing_rate(Bitrate::from_kbps(kbps), Bitrate::from_kbps(1_000), 1.5).as_bps() / 1_000
        };
        assert_eq!([20, 400, 800].map(pace), [75, 600, 1_200]);
        assert_eq!([900, 950, 1_000].map(pace), [2_700, 5_700, 6_000]);
    }
}
