//! Helpers for tests of congestion controls.

use weir::units::{TimeDelta, Timestamp};

use super::{AckEvent, Repair};

/// The round-trip time of [`ack`].
pub(super) const RTT: TimeDelta = TimeDelta::from_millis(100);

/// An acknowledgement at `ms` milliseconds that delivers this many segments to a window-limited
/// sender.
pub(super) fn ack(ms: i64, delivered: u64) -> AckEvent {
    AckEvent {
        now: Timestamp::from_millis(ms),
        delivered,
        lost: 0,
        marked: 0,
        total_delivered: delivered,
        rtt: Some(RTT),
        smoothed_rtt: RTT,
        prior_in_flight: 10,
        in_flight: 10 - delivered.min(10),
        acknowledged: 0,
        next: u64::MAX,
        repair: Repair::None,
        is_window_limited: true,
        has_advanced: true,
        sample: None,
        departure_wait: TimeDelta::ZERO,
    }
}
