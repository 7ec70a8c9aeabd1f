//! `l4s_alpha`: the smoothed share of packets that carry Congestion Experienced.
//!
//! Implements [SCREAMV2 §4.2.1.3]: like DCTCP, but with a fast rise and a slow fall.

use crate::controllers::scream_common::Acknowledgement;
use crate::units::{TimeDelta, Timestamp};

// Parameters [SCREAMV2 §4.2.1.3].
/// `L4S_AVG_G_UP`: gain when the share rises.
const L4S_AVG_G_UP: f64 = 1.0 / 8.0;
/// `L4S_AVG_G_DOWN`: gain when it falls.
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;
/// Maximum time between two updates; a shorter round-trip time replaces it.
const UPDATE_INTERVAL: TimeDelta = TimeDelta::from_millis(10);

/// Counts packets, not bytes: the short last packet of a frame weighs as much as the others.
#[derive(Clone, Debug, Default)]
pub(super) struct L4sAlpha {
    alpha: f64,
    /// Packets delivered since the last update, `data_units_delivered_this_rtt`.
    delivered: u64,
    /// Packets marked since the last update, `data_units_marked_this_rtt`.
    marked: u64,
    updated: Timestamp,
}

impl L4sAlpha {
    pub fn update(&mut self, now: Timestamp, rtt: TimeDelta, ack: &Acknowledgement) {
        self.delivered += ack.received_packets;
        self.marked += ack.marked_packets;
        if self.delivered == 0 || now - self.updated < UPDATE_INTERVAL.min(rtt) {
            return;
        }
        let fraction = self.marked as f64 / self.delivered as f64;
        if fraction >= self.alpha {
            self.alpha += L4S_AVG_G_UP * (fraction - self.alpha);
        } else {
            self.alpha *= 1.0 - L4S_AVG_G_DOWN;
        }
        (self.delivered, self.marked, self.updated) = (0, 0, now);
    }

    /// `l4s_alpha`, 0.0..=1.0.
    pub fn value(&self) -> f64 {
        self.alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    /// Alpha after reports of (time in ms, delivered, marked).
    fn alphas<const N: usize>(reports: [(i64, u64, u64); N]) -> [f64; N] {
        let mut alpha = L4sAlpha::default();
        reports.map(|(at, received_packets, marked_packets)| {
            let ack =
                Acknowledgement { received_packets, marked_packets, ..Acknowledgement::default() };
            alpha.update(Timestamp::from_millis(1_000 + at), RTT, &ack);
            alpha.value()
        })
    }

    // [SCREAMV2 §4.2.1.3]
    #[test]
    fn it_rises_by_an_eighth_of_the_way_and_falls_by_a_128th() {
        let half = 0.5 / 8.0;
        assert_eq!(
            alphas([(0, 10, 5), (10, 10, 0), (20, 10, 10)]),
            [half, half * 127.0 / 128.0, {
                let fallen = half * 127.0 / 128.0;
                fallen + (1.0 - fallen) / 8.0
            }]
        );
    }

    // [SCREAMV2 §4.2.1.3]
    #[test]
    fn reports_within_10_ms_count_as_one_and_one_without_packets_is_none() {
        assert_eq!(
            alphas([(0, 1, 0), (5, 1, 1), (10, 1, 0), (50, 0, 0)]),
            [0.0, 0.0, 0.0625, 0.0625]
        );
    }
}
