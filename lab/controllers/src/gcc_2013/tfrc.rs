//! The rate of a TCP flow with the same loss ratio and round-trip time, by the throughput equation
//! [RFC5348 §3.1].

use weir::units::{Bitrate, TimeDelta};

/// `s` in bytes [LW2013 §send_side_bandwidth_estimation].
const PACKET_BYTES: f64 = 1_000.0;
/// `b`: packets per acknowledgement [RFC5348 §3.1].
const PACKETS_PER_ACK: f64 = 1.0;
/// `t_RTO` in round-trip times [RFC5348 §3.1].
const RTO_ROUND_TRIPS: f64 = 4.0;

/// `X`. The result is used as a floor, so it is zero without losses or without a round-trip time.
pub(super) fn tcp_friendly_rate(loss_ratio: f64, rtt: Option<TimeDelta>) -> Bitrate {
    let round_trip = rtt.unwrap_or_default().as_secs_f64();
    if loss_ratio <= 0.0 || round_trip <= 0.0 {
        return Bitrate::ZERO;
    }
    let (p, b) = (loss_ratio, PACKETS_PER_ACK);
    let retransmission = 3.0 * libm::sqrt(3.0 * b * p / 8.0) * p * (1.0 + 32.0 * p * p);
    let seconds = round_trip * (libm::sqrt(2.0 * b * p / 3.0) + RTO_ROUND_TRIPS * retransmission);
    Bitrate::from_bps_f64(8.0 * PACKET_BYTES / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(loss_ratio: f64, rtt_ms: i64) -> f64 {
        libm::round(
            tcp_friendly_rate(loss_ratio, Some(TimeDelta::from_millis(rtt_ms))).as_kbps_f64(),
        )
    }

    // [RFC5348 §3.1]: 8000 / 0.1 / (0.25820 + 4 * 3 * 0.19365 * 0.1 * 1.32) bit/s.
    #[test]
    fn ten_percent_at_100_ms_are_142_kbps() {
        assert_eq!(kbps(0.1, 100), 142.0);
        assert_eq!(kbps(0.1, 50), 283.0, "half the round trip, twice the rate");
        assert_eq!(kbps(0.5, 100), 3.0);
    }

    #[test]
    fn without_loss_or_round_trip_time_it_is_no_floor() {
        assert_eq!(tcp_friendly_rate(0.0, Some(TimeDelta::from_secs(1))), Bitrate::ZERO);
        assert_eq!(tcp_friendly_rate(0.1, Some(TimeDelta::ZERO)), Bitrate::ZERO);
        assert_eq!(tcp_friendly_rate(0.1, None), Bitrate::ZERO);
    }
}
