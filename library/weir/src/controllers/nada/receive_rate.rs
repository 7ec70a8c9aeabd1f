//! Receiving rate `r_recv`: bytes that arrived within the last `LOGWIN`, divided by `LOGWIN`
//! [NADA §5.1.3].
//!
//! The window is measured in arrival time. Measured in send time, it would hide a growing queue.

use alloc::collections::VecDeque;

use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Maximum number of packets in the window: 250 Mbit/s of full-size packets for 500 ms.
const MAX_PACKETS: usize = 1 << 13;

/// Counts received bytes in a sliding window.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiveRate {
    /// Arrival time and size of each packet, in the order of feedback.
    arrivals: VecDeque<(Timestamp, DataSize)>,
    bytes: DataSize,
    newest: Option<Timestamp>,
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
        while let Some(&(oldest, size)) = self.arrivals.front()
            && (oldest <= newest - length || self.arrivals.len() > MAX_PACKETS)
        {
            self.arrivals.pop_front();
            self.bytes = self.bytes.saturating_sub(size);
        }
    }

    /// `r_recv`; `None` before the first arrival.
    pub(super) fn bitrate(&self, length: TimeDelta) -> Option<Bitrate> {
        self.newest.map(|_| self.bytes / length)
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

    #[test]
    fn memory_is_bounded_when_time_stands_still() {
        let mut rate = ReceiveRate::default();
        feed(&mut rate, core::iter::repeat_n(0, 100_000));
        assert_eq!(rate.arrivals.len(), MAX_PACKETS);
    }
}
