//! Probe estimator: the rate at which the packets of one probe passed the path.
//!
//! Implements [LIBWEBRTC §ProbeBitrateEstimator].

use alloc::collections::VecDeque;

use crate::controller::{Probe, ProbeId};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §ProbeBitrateEstimator].
/// Share of a probe's packets and bytes that must arrive.
const RECEIVED_SHARE: f64 = 0.8;
/// Maximum send or receive span of a probe.
const MAX_SPAN: TimeDelta = TimeDelta::from_secs(1);
/// If the receive rate exceeds this multiple of the send rate, the measurement is invalid.
const MAX_RATIO: f64 = 2.0;
/// If the receive rate is below `SATURATED` of the send rate, the path was saturated. The result is
/// then `TARGET_SHARE` of the receive rate, so that it does not cause over-use at once.
const SATURATED: f64 = 0.9;
const TARGET_SHARE: f64 = 0.95;
/// A probe whose last packet arrived longer ago than this is over.
const MAX_AGE: TimeDelta = TimeDelta::from_secs(1);
/// Number of remembered probes. There are never that many at once.
const MAX_PROBES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Cluster {
    probe: Probe,
    seen: Option<Seen>,
}

/// The packets of a probe that have arrived.
#[derive(Clone, Copy, Debug)]
struct Seen {
    packets: u32,
    bytes: DataSize,
    first_sent: Timestamp,
    /// Send time and size of the packet sent last.
    last_sent: (Timestamp, DataSize),
    /// Arrival time and size of the packet that arrived first.
    first_arrived: (Timestamp, DataSize),
    last_arrived: Timestamp,
}

/// Collects the packets of each probe.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeEstimator {
    clusters: VecDeque<Cluster>,
}

impl ProbeEstimator {
    /// Registers a probe when one of its packets is sent.
    pub(super) fn on_probe(&mut self, probe: Probe) {
        if self.clusters.back().is_some_and(|last| last.probe.id == probe.id) {
            return;
        }
        if self.clusters.len() == MAX_PROBES {
            self.clusters.pop_front();
        }
        self.clusters.push_back(Cluster { probe, seen: None });
    }

    /// Takes a packet of a probe that arrived. Returns the probe's result so far.
    pub(super) fn on_packet(
        &mut self,
        id: ProbeId,
        send_time: Timestamp,
        arrival_time: Timestamp,
        size: DataSize,
    ) -> Option<Bitrate> {
        let is_over = |seen: Seen| seen.last_arrived + MAX_AGE < arrival_time;
        self.clusters.retain(|cluster| !cluster.seen.is_some_and(is_over));
        let cluster = self.clusters.iter_mut().find(|cluster| cluster.probe.id == id)?;
        let seen = cluster.seen.get_or_insert(Seen {
            packets: 0,
            bytes: DataSize::ZERO,
            first_sent: send_time,
            last_sent: (send_time, size),
            first_arrived: (arrival_time, size),
            last_arrived: arrival_time,
        });
        seen.packets += 1;
        seen.bytes += size;
        seen.first_sent = seen.first_sent.min(send_time);
        if send_time > seen.last_sent.0 {
            seen.last_sent = (send_time, size);
        }
        if arrival_time < seen.first_arrived.0 {
            seen.first_arrived = (arrival_time, size);
        }
        seen.last_arrived = seen.last_arrived.max(arrival_time);
        let seen = *seen;
        let probe = cluster.probe;
        let is_enough = seen.packets >= (f64::from(probe.packets) * RECEIVED_SHARE) as u32
            && seen.bytes >= probe.size * RECEIVED_SHARE;
        is_enough.then(|| seen.bitrate())?
    }
}

impl Seen {
    fn bitrate(&self) -> Option<Bitrate> {
        let send_span = self.last_sent.0 - self.first_sent;
        let receive_span = self.last_arrived - self.first_arrived.0;
        let is_burst = |span: TimeDelta| span > TimeDelta::ZERO && span <= MAX_SPAN;
        if !is_burst(send_span) || !is_burst(receive_span) {
            return None;
        }
        // The send span ends when the last packet is sent, the receive span starts when the first
        // packet arrives. So the bytes of these two packets are excluded.
        let sent = self.bytes.saturating_sub(self.last_sent.1) / send_span;
        let received = self.bytes.saturating_sub(self.first_arrived.1) / receive_span;
        if received > sent * MAX_RATIO {
            return None;
        }
        if received < sent * SATURATED {
            return Some(received * TARGET_SHARE);
        }
        Some(sent.min(received))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1_000);

    fn estimator() -> ProbeEstimator {
        let mut estimator = ProbeEstimator::default();
        estimator.on_probe(Probe {
            id: ProbeId(1),
            rate: Bitrate::from_kbps(4_000),
            size: DataSize::from_bytes(5_000),
            packets: 5,
        });
        estimator
    }

    /// The estimate in kbit/s after packets given as (send, arrival) in ms.
    fn probe(packets: &[(i64, i64)]) -> Option<u64> {
        let mut estimator = estimator();
        let at = Timestamp::from_millis;
        packets.iter().fold(None, |_, &(send, arrival)| {
            let rate = estimator.on_packet(ProbeId(1), at(send), at(arrival), SIZE);
            rate.map(|rate| rate.as_bps() / 1_000)
        })
    }

    // [LIBWEBRTC §ProbeBitrateEstimator]: 4000 B in 8 ms.
    #[test]
    fn a_probe_that_gets_through_measures_its_own_rate() {
        let through = [(0, 50), (2, 52), (4, 54), (6, 56), (8, 58)];
        assert_eq!(probe(&through), Some(4_000));
        assert_eq!(probe(&[(0, 50), (2, 51), (4, 53), (6, 54), (8, 56)]), Some(4_000));
    }

    // [LIBWEBRTC §ProbeBitrateEstimator]: 0.95 * 4000 B in 20 ms, and 4000 B in 22 ms.
    #[test]
    fn a_probe_that_is_stretched_measures_95_percent_of_its_receive_rate() {
        assert_eq!(probe(&[(0, 50), (2, 55), (4, 60), (6, 65), (8, 70)]), Some(1_520));
        assert_eq!(probe(&[(0, 50), (4, 54), (8, 58), (12, 62), (20, 72)]), Some(1_454));
    }

    // [LIBWEBRTC §ProbeBitrateEstimator]
    #[test]
    fn four_of_five_packets_are_enough_and_three_are_not() {
        assert_eq!(probe(&[(0, 50), (2, 52), (4, 54)]), None);
        assert_eq!(probe(&[(0, 50), (2, 52), (4, 54), (8, 58)]), Some(3_000));
    }

    // [LIBWEBRTC §ProbeBitrateEstimator]
    #[test]
    fn spans_of_nothing_or_over_a_second_and_ratios_above_2_measure_nothing() {
        assert_eq!(probe(&[(0, 50), (0, 52), (0, 54), (0, 56)]), None);
        assert_eq!(probe(&[(0, 50), (2, 50), (4, 50), (6, 50)]), None);
        assert_eq!(probe(&[(0, 0), (400, 400), (800, 800), (1_001, 1_001)]), None);
        assert_eq!(probe(&[(0, 50), (4, 51), (8, 52), (12, 54)]), None);
        assert_eq!(probe(&[(0, 50), (4, 52), (8, 54), (12, 56)]), Some(2_000));
    }

    #[test]
    fn packets_of_an_unknown_or_finished_probe_measure_nothing() {
        let mut estimator = estimator();
        let at = Timestamp::from_millis;
        assert_eq!(estimator.on_packet(ProbeId(9), at(0), at(50), SIZE), None);
        estimator.on_packet(ProbeId(1), at(0), at(50), SIZE);
        estimator.on_packet(ProbeId(1), at(2), at(1_051), SIZE);
        assert!(estimator.clusters.is_empty());
    }
}
