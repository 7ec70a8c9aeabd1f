//! Receiving rate `r_recv`: bytes that arrived within the last `LOGWIN`, divided by `LOGWIN`
//! [NADA §5.1.3].
//!
//! The window is measured in arrival time. Measured in send time, it would hide a growing queue.

use alloc::collections::VecDeque;

use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Maximum number of packets in the window: 1 Gbit/s of 960 bytes each for 500 ms. With more, the
/// window is the time that so many packets take.
const MAX_PACKETS: usize = 1 << 16;
/// What was not reported on counts in this many parts.
const PARTS: u32 = 16;

/// Counts received bytes in a sliding window.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiveRate {
    /// Arrival time and size of each packet, in the order of feedback.
    arrivals: VecDeque<(Timestamp, DataSize)>,
    bytes: DataSize,
    newest: Option<Timestamp>,
    /// When the window begins, if it holds as many packets as it may.
    full_from: Option<Timestamp>,
}

impl ReceiveRate {
    /// Adds a packet that arrived.
    pub(super) fn on_arrival(&mut self, arrival: Timestamp, size: DataSize, length: TimeDelta) {
        let newest = match self.newest {
            // The packet arrived before the start of the window: the receiver's clock was stepped
            // back, so start again.
            Some(newest) if arrival <= newest - length => {
                self.arrivals.clear();
                self.bytes = DataSize::ZERO;
                arrival
            }
            Some(newest) => newest.max(arrival),
            None => arrival,
        };
        self.newest = Some(newest);
        self.arrivals.push_back((arrival, size));
        self.bytes += size;
        self.full_from = None;
        while let Some(&(oldest, size)) = self.arrivals.front()
            && (oldest <= newest - length || self.arrivals.len() > MAX_PACKETS)
        {
            if oldest > newest - length {
                self.full_from = Some(oldest);
            }
            self.arrivals.pop_front();
            self.bytes = self.bytes.saturating_sub(size);
        }
    }

    /// Adds what arrived after the newest packet and before this one, and was not reported on
    /// (NADA-D13): evenly over that time.
    pub(super) fn on_unreported(&mut self, next: Timestamp, size: DataSize, length: TimeDelta) {
        let Some(newest) = self.newest.filter(|_| size > DataSize::ZERO) else { return };
        for part in 1..=PARTS {
            let passed = (next - newest) * (f64::from(part) / f64::from(PARTS));
            self.on_arrival(newest + passed, size * (1.0 / f64::from(PARTS)), length);
        }
    }

    /// `r_recv`; `None` before the first arrival.
    pub(super) fn bitrate(&self, length: TimeDelta) -> Option<Bitrate> {
        let newest = self.newest?;
        let passed = self.full_from.map_or(length, |from| newest - from);
        Some(self.bytes / if passed > TimeDelta::ZERO { passed } else { length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: TimeDelta = TimeDelta::from_millis(500);
    const SIZE: DataSize = DataSize::from_bytes(1250);

    fn feed(rate: &mut ReceiveRate, ms: impl IntoIterator<Item = i64>) {
        for ms in ms {
            rate.on_arrival(Timestamp::from_millis(ms), SIZE, LENGTH);
        }
    }

    // [NADA §5.1.3]
    #[test]
    fn a_packet_of_1250_bytes_every_10_ms_is_1_mbps() {
        let mut rate = ReceiveRate::default();
        assert_eq!(rate.bitrate(LENGTH), None);
        feed(&mut rate, (0..1000).step_by(10));
        assert_eq!(rate.bitrate(LENGTH), Some(Bitrate::from_kbps(1000)));
    }

    #[test]
    fn arrivals_may_be_told_out_of_order() {
        let mut rate = ReceiveRate::default();
        feed(&mut rate, (0..1000).step_by(20).flat_map(|ms| [ms + 10, ms]));
        assert_eq!(rate.bitrate(LENGTH), Some(Bitrate::from_kbps(1000)));
    }

    #[test]
    fn a_clock_that_steps_by_an_hour_either_way_starts_the_window_again() {
        let mut rate = ReceiveRate::default();
        let one_packet = Some(Bitrate::from_kbps(20));
        feed(&mut rate, [0, 10, 3_600_000]);
        assert_eq!(rate.bitrate(LENGTH), one_packet);
        feed(&mut rate, [20]);
        assert_eq!(rate.bitrate(LENGTH), one_packet);
    }

    // NADA-D13
    #[test]
    fn what_is_not_reported_counts_when_it_arrived() {
        for (reports, window) in [(200, 500), (400, 500), (400, 600), (800, 600), (2_000, 500)] {
            let length = TimeDelta::from_millis(window);
            let mut rate = ReceiveRate::default();
            for report in 0..12 {
                let times = report * reports..(report + 1) * reports;
                if report % 2 == 0 {
                    for at in times.step_by(10).map(Timestamp::from_millis) {
                        rate.on_arrival(at, SIZE, length);
                    }
                } else {
                    let next = Timestamp::from_millis(times.end);
                    rate.on_unreported(next, SIZE * (reports as f64 / 10.0), length);
                }
            }
            let measured = rate.bitrate(length).unwrap().as_kbps_f64();
            assert!((measured - 1_000.0).abs() < 50.0, "{measured}: {reports}, {window}");
        }
    }

    // [NADA §5.1.3]
    #[test]
    fn the_rate_is_right_from_10_kbps_to_10_gbps() {
        for kbps in [10, 1_000, 100_000, 400_000, 1_000_000, 10_000_000] {
            let mut rate = ReceiveRate::default();
            let gap = SIZE / Bitrate::from_kbps(kbps);
            let mut at = Timestamp::ZERO;
            while at < Timestamp::from_secs(if kbps > 1_000_000 { 1 } else { 2 }) {
                rate.on_arrival(at, SIZE, LENGTH);
                at += gap;
            }
            let measured = rate.bitrate(LENGTH).unwrap().as_kbps_f64() / kbps as f64;
            assert!((measured - 1.0).abs() < 0.02 || kbps == 10, "{measured} of {kbps} kbit/s");
        }
    }

    #[test]
    fn memory_is_bounded_when_time_stands_still() {
        let mut rate = ReceiveRate::default();
        feed(&mut rate, core::iter::repeat_n(0, 100_000));
        assert_eq!(rate.arrivals.len(), MAX_PACKETS);
    }
}
