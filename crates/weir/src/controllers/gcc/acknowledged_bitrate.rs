//! Acknowledged bitrate: what the receiver got, by feedback, robust against gaps and bursts.
//!
//! Implements [LIBWEBRTC §RobustThroughputEstimator].

use alloc::collections::VecDeque;

use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §RobustThroughputEstimator].
/// The window holds more packets than this and lasts longer than this, or the one that comes first
/// of the two below.
const WINDOW_PACKETS: usize = 20;
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
const MAX_PACKETS: usize = 500;
const MAX_WINDOW: TimeDelta = TimeDelta::from_secs(5);
/// Fewer packets than this give no rate.
const REQUIRED_PACKETS: usize = 10;
/// A packet that arrived this much before the newest one means that the receiver's clock jumped.
const MAX_REORDERING: TimeDelta = TimeDelta::from_secs(1);
/// No rate is taken over less.
const MIN_SPAN: TimeDelta = TimeDelta::from_millis(1);

#[derive(Clone, Copy, Debug)]
struct Packet {
    arrival_time: Timestamp,
    send_time: Timestamp,
    size: DataSize,
}

/// The packets of the last second or so, by arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct AcknowledgedBitrate {
    window: VecDeque<Packet>,
    /// When the newest packet that left the window was sent.
    newest_discarded: Option<Timestamp>,
}

impl AcknowledgedBitrate {
    /// Takes a packet that arrived.
    pub(super) fn on_packet(
        &mut self,
        send_time: Timestamp,
        arrival_time: Timestamp,
        size: DataSize,
    ) {
        let at = match self.window.back() {
            Some(last) if arrival_time < last.arrival_time => {
                if last.arrival_time - arrival_time > MAX_REORDERING {
                    *self = Self::default();
                }
                self.window.partition_point(|packet| packet.arrival_time <= arrival_time)
            }
            _ => self.window.len(),
        };
        self.window.insert(at, Packet { arrival_time, send_time, size });
        while self.first_is_outside() {
            let Some(gone) = self.window.pop_front() else { break };
            let newest = self.newest_discarded.map_or(gone.send_time, |at| at.max(gone.send_time));
            self.newest_discarded = Some(newest);
        }
    }

    fn first_is_outside(&self) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else {
            return false;
        };
        let span = last.arrival_time - first.arrival_time;
        let count = self.window.len();
        count > MAX_PACKETS || span > MAX_WINDOW || (count > WINDOW_PACKETS && span > WINDOW)
    }

    /// The lower one of send and receive rate; `None` for too few packets.
    ///
    /// The first packet's arrival opens the receive span, so its bytes are not of it; the longest gap
    /// counts as the second longest, because a pause of the path says nothing of its rate. The last
    /// packet's sending closes the send span, so its bytes are not of it. Packets that were sent before
    /// others that have left the window are reordered and no part of the send rate; where too few are
    /// left the receive rate stands alone.
    pub(super) fn bitrate(&self) -> Option<Bitrate> {
        if self.window.len() < REQUIRED_PACKETS {
            return None;
        }
        let (first, last) = (self.window.front()?, self.window.back()?);
        let horizon = self.newest_discarded.unwrap_or(Timestamp::from_nanos(i64::MIN));
        let mut received = DataSize::ZERO;
        let (mut longest, mut second) = (TimeDelta::ZERO, TimeDelta::ZERO);
        let mut before = first.arrival_time;
        let (mut sent, mut count) = (DataSize::ZERO, 0);
        let mut first_sent = Timestamp::MAX;
        let mut last_sent = (Timestamp::from_nanos(i64::MIN), DataSize::ZERO);
        for packet in &self.window {
            received += packet.size;
            let gap = packet.arrival_time - before;
            before = packet.arrival_time;
            second = second.max(gap.min(longest));
            longest = longest.max(gap);
            if packet.send_time >= horizon {
                count += 1;
                sent += packet.size;
                first_sent = first_sent.min(packet.send_time);
                if packet.send_time > last_sent.0 {
                    last_sent = (packet.send_time, packet.size);
                }
            }
        }
        let span = last.arrival_time - first.arrival_time - longest + second;
        let receive_rate = received.saturating_sub(first.size) / span.max(MIN_SPAN);
        if count < REQUIRED_PACKETS {
            return Some(receive_rate);
        }
        let span = (last_sent.0 - first_sent).max(MIN_SPAN);
        Some(receive_rate.min(sent.saturating_sub(last_sent.1) / span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1_250);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Packets sent at these times that arrive so much later.
    fn feed(
        acknowledged: &mut AcknowledgedBitrate,
        send_ms: impl Iterator<Item = i64>,
        delay_ms: impl Fn(i64) -> i64,
    ) {
        send_ms.for_each(|ms| acknowledged.on_packet(at(ms), at(ms + delay_ms(ms)), SIZE));
    }

    fn kbps(acknowledged: &AcknowledgedBitrate) -> Option<f64> {
        acknowledged.bitrate().map(Bitrate::as_kbps_f64)
    }

    // [LIBWEBRTC §RobustThroughputEstimator]: 1250 B each 10 ms are 1 Mbit/s.
    #[test]
    fn ten_packets_give_a_rate_and_the_window_is_a_second_of_more_than_20() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..90).step_by(10), |_| 25);
        assert_eq!(kbps(&acknowledged), None);
        feed(&mut acknowledged, (90..3_000).step_by(10), |_| 25);
        assert_eq!(kbps(&acknowledged), Some(1_000.0));
        assert_eq!(acknowledged.window.len(), 101);
        feed(&mut acknowledged, (3_000..5_000).step_by(5), |_| 25);
        assert_eq!(kbps(&acknowledged), Some(2_000.0));
    }

    // [LIBWEBRTC §RobustThroughputEstimator]
    #[test]
    fn a_slow_stream_has_a_window_of_20_packets_up_to_5_s() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..20_000).step_by(100), |_| 25);
        assert_eq!(acknowledged.window.len(), 20);
        feed(&mut acknowledged, (20_000..60_000).step_by(1_000), |_| 25);
        assert_eq!(acknowledged.window.len(), 6);
        assert_eq!(kbps(&acknowledged), None);
    }

    // [LIBWEBRTC §RobustThroughputEstimator]: 50 packets in 490 ms, held back 400 ms and let go.
    #[test]
    fn the_longest_gap_counts_as_the_second_longest_and_a_burst_as_it_was_sent() {
        let mut acknowledged = AcknowledgedBitrate::default();
        let held = |ms: i64| if (200..600).contains(&ms) { 625 - ms } else { 25 };
        feed(&mut acknowledged, (0..=1_000).step_by(10), held);
        assert_eq!(kbps(&acknowledged), Some(1_000.0), "bounded by the send rate");
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..500).step_by(10), |ms| if ms < 250 { 0 } else { 400 });
        let with_gap = 49.0 * 10.0 / (490.0 + 400.0) * 1_000.0;
        let without = 49.0 * 10.0 / (490.0 + 400.0 - 410.0 + 10.0) * 1_000.0;
        let rate = kbps(&acknowledged).unwrap();
        assert!((rate - without).abs() < 1.0 && rate > with_gap, "{rate}");
    }

    // [LIBWEBRTC §RobustThroughputEstimator]: sent twice as fast as received.
    #[test]
    fn the_lower_one_of_send_and_receive_rate_is_told() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..1_000).step_by(5), |ms| 25 + ms);
        let rate = kbps(&acknowledged).unwrap();
        assert!((rate - 1_000.0).abs() < 10.0, "{rate}");
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..1_000).step_by(5), |ms| 500 - ms / 2);
        assert_eq!(kbps(&acknowledged), Some(2_000.0));
    }

    // [LIBWEBRTC §RobustThroughputEstimator]
    #[test]
    fn a_packet_sent_before_discarded_ones_does_not_stretch_the_send_span() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..3_000).step_by(10), |_| 25);
        let before = kbps(&acknowledged);
        acknowledged.on_packet(at(500), at(3_020), SIZE);
        let after = kbps(&acknowledged).unwrap();
        assert!((after - before.unwrap()).abs() < 15.0, "{after}");
    }

    // [LIBWEBRTC §RobustThroughputEstimator]
    #[test]
    fn arrivals_that_fall_back_by_more_than_a_second_start_afresh() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..3_000).step_by(10), |_| 5_000);
        acknowledged.on_packet(at(3_000), at(3_025), SIZE);
        assert_eq!(acknowledged.window.len(), 1);
    }

    #[test]
    fn the_order_of_feedback_within_a_second_does_not_matter() {
        let (mut one, mut other) = (AcknowledgedBitrate::default(), AcknowledgedBitrate::default());
        feed(&mut one, (0..2_000).step_by(10), |_| 25);
        let swapped = (0..200).map(|i: i64| 10 * (i ^ 3));
        feed(&mut other, swapped, |_| 25);
        assert_eq!(kbps(&one), kbps(&other));
    }
}
