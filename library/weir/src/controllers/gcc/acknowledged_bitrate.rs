//! Acknowledged bitrate: the rate that the receiver got, from feedback. Robust to gaps and bursts.
//!
//! Implements [LIBWEBRTC §RobustThroughputEstimator].

use crate::fifo::Fifo;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §RobustThroughputEstimator].
/// Packets leave once the window exceeds both `WINDOW_PACKETS` and `WINDOW`, or either
/// `MAX_PACKETS` or `MAX_WINDOW`.
const WINDOW_PACKETS: usize = 20;
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
const MAX_PACKETS: usize = 500;
const MAX_WINDOW: TimeDelta = TimeDelta::from_secs(5);
/// Minimum number of packets for a rate.
const REQUIRED_PACKETS: usize = 10;
/// If a packet arrived more than this before the newest one, the receiver's clock jumped.
const MAX_REORDERING: TimeDelta = TimeDelta::from_secs(1);
/// Lower limit of the span over which a rate is computed.
const MIN_SPAN: TimeDelta = TimeDelta::from_millis(1);

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub arrival_time: Timestamp,
    pub send_time: Timestamp,
    pub size: DataSize,
}

/// The packets of about the last second in arrival order.
///
/// Sums and gaps are updated with each packet that enters or leaves. The whole window is searched
/// only after one of its two longest gaps has left, or while packets are reordered.
#[derive(Clone, Debug, Default)]
pub(super) struct AcknowledgedBitrate {
    window: Fifo<Packet>,
    /// Latest send time of the packets that have left the window.
    newest_discarded: Option<Timestamp>,
    /// Total size of the packets in the window.
    received: DataSize,
    /// `None` if the gaps must be searched for.
    gaps: Option<LongestGaps>,
    /// The packet with the latest send time; of several, the first.
    last_sent: Option<Packet>,
    /// Number of packets that must leave before the window is in send order.
    reordered: usize,
}

/// The two longest gaps between consecutive arrivals, and how often each occurs. Feedback counts
/// time in ticks, so many gaps are equal.
#[derive(Clone, Copy, Debug, Default)]
struct LongestGaps {
    first: TimeDelta,
    count_first: usize,
    second: TimeDelta,
    count_second: usize,
}

impl LongestGaps {
    fn of(window: &[Packet]) -> Self {
        let mut gaps = Self::default();
        for pair in window.windows(2) {
            gaps.add(pair[1].arrival_time - pair[0].arrival_time);
        }
        gaps
    }

    fn add(&mut self, gap: TimeDelta) {
        if self.count_first == 0 || gap > self.first {
            (self.second, self.count_second) = (self.first, self.count_first);
            (self.first, self.count_first) = (gap, 1);
        } else if gap == self.first {
            self.count_first += 1;
        } else if self.count_second == 0 || gap > self.second {
            (self.second, self.count_second) = (gap, 1);
        } else if gap == self.second {
            self.count_second += 1;
        }
    }

    /// Removes a gap. Returns false if the next longest must be searched for.
    fn remove(&mut self, gap: TimeDelta) -> bool {
        let count = if gap == self.first {
            &mut self.count_first
        } else if gap == self.second {
            &mut self.count_second
        } else {
            return true;
        };
        *count = count.saturating_sub(1);
        *count > 0
    }

    /// Excess of the longest gap over the second longest.
    fn excess(self) -> TimeDelta {
        if self.count_first > 1 { TimeDelta::ZERO } else { self.first - self.second }
    }
}

/// Number, size and time span of sent packets.
#[derive(Clone, Copy, Debug)]
struct Sent {
    count: usize,
    size: DataSize,
    first: Timestamp,
    /// The packet with the latest send time; of several, the first.
    last: Packet,
}

impl AcknowledgedBitrate {
    /// Adds this number of packets in arrival order, the first of which arrived at `first`.
    ///
    /// Those that the window cannot hold leave at once.
    pub(super) fn on_sorted(
        &mut self,
        first: Timestamp,
        count: usize,
        mut packets: impl Iterator<Item = Packet>,
    ) {
        let gone = count.saturating_sub(MAX_PACKETS);
        let is_in_order = self.window.last().is_none_or(|last| last.arrival_time <= first);
        if gone > 0 && is_in_order {
            self.pass(packets.by_ref().take(gone));
        }
        self.on_packets(packets);
    }

    /// Packets arrived in order that have left the window, and so has all before them.
    fn pass(&mut self, packets: impl Iterator<Item = Packet>) {
        let mut newest = self.newest_discarded.unwrap_or(Timestamp::from_nanos(i64::MIN));
        for packet in self.window.iter() {
            newest = newest.max(packet.send_time);
        }
        let mut last_sent = self.last_sent;
        for packet in packets {
            newest = newest.max(packet.send_time);
            if last_sent.is_none_or(|last| packet.send_time > last.send_time) {
                last_sent = Some(packet);
            }
        }
        *self = Self { newest_discarded: Some(newest), last_sent, ..Self::default() };
    }

    /// Adds arrived packets.
    ///
    /// Packets are discarded once, after the last one is added. In arrival order the window's span
    /// and count only grow, so the result is the same as after discarding each time.
    pub(super) fn on_packets(&mut self, packets: impl Iterator<Item = Packet>) {
        for packet in packets {
            match self.window.last().copied() {
                Some(last) if packet.arrival_time < last.arrival_time => {
                    self.discard();
                    if last.arrival_time - packet.arrival_time > MAX_REORDERING {
                        *self = Self::default();
                    }
                    self.insert(packet);
                    self.discard();
                }
                Some(last) => self.append(last, packet),
                None => {
                    self.gaps = Some(LongestGaps::default());
                    if self.last_sent.is_none_or(|last| packet.send_time > last.send_time) {
                        self.last_sent = Some(packet);
                    }
                    self.received += packet.size;
                    self.window.push(packet);
                }
            }
        }
        self.discard();
    }

    /// Appends a packet that did not arrive before the last one of the window.
    #[inline]
    fn append(&mut self, last: Packet, packet: Packet) {
        if let Some(gaps) = &mut self.gaps {
            gaps.add(packet.arrival_time - last.arrival_time);
        }
        if packet.send_time < last.send_time {
            self.reordered = self.window.len();
        }
        if self.last_sent.is_none_or(|last| packet.send_time > last.send_time) {
            self.last_sent = Some(packet);
        }
        self.received += packet.size;
        self.window.push(packet);
    }

    /// Inserts a packet that arrived before others whose feedback came first.
    fn insert(&mut self, packet: Packet) {
        let at = self.window.partition_point(|other| other.arrival_time <= packet.arrival_time);
        self.window.insert(at, packet);
        self.received += packet.size;
        self.gaps = None;
        self.reordered = self.window.len();
        if self.last_sent.is_none_or(|last| packet.send_time > last.send_time) {
            self.last_sent = Some(packet);
        }
    }

    /// Removes the packets beyond the limits of the window. The last packet stays.
    fn discard(&mut self) {
        let mut window: &[Packet] = &self.window;
        let Some(last) = window.last() else { return };
        let newest = last.arrival_time;
        while let [gone, rest @ ..] = window
            && let Some(next) = rest.first()
        {
            let count = window.len();
            let span = newest - gone.arrival_time;
            let most = if count > WINDOW_PACKETS { WINDOW } else { MAX_WINDOW };
            if count <= MAX_PACKETS && span <= most {
                break;
            }
            let sent = self.newest_discarded.map_or(gone.send_time, |at| at.max(gone.send_time));
            self.newest_discarded = Some(sent);
            self.received = self.received.saturating_sub(gone.size);
            let gap = next.arrival_time - gone.arrival_time;
            if self.gaps.as_mut().is_some_and(|gaps| !gaps.remove(gap)) {
                self.gaps = None;
            }
            window = rest;
        }
        let left = self.window.len() - window.len();
        self.reordered = self.reordered.saturating_sub(left);
        self.window.remove_first(left);
    }

    /// The lower of send rate and receive rate; `None` if there are too few packets.
    ///
    /// The receive span starts when the first packet arrives, so that packet's bytes are excluded.
    /// The longest gap counts as if it were the second longest, because a pause of the path says
    /// nothing about its rate. The send span ends when the last packet is sent, so that packet's
    /// bytes are excluded. The send rate also excludes reordered packets: those sent before others
    /// that have left the window. If too few packets remain for it, the result is the receive rate.
    pub(super) fn bitrate(&mut self) -> Option<Bitrate> {
        if self.window.len() < REQUIRED_PACKETS {
            return None;
        }
        let (first, last) = (self.window.first()?, self.window.last()?);
        let window = &self.window;
        let gaps = self.gaps.get_or_insert_with(|| LongestGaps::of(window));
        let span = last.arrival_time - first.arrival_time - gaps.excess();
        let receive_rate = self.received.saturating_sub(first.size) / span.max(MIN_SPAN);
        let Some(sent) = self.sent().filter(|sent| sent.count >= REQUIRED_PACKETS) else {
            return Some(receive_rate);
        };
        let span = (sent.last.send_time - sent.first).max(MIN_SPAN);
        Some(receive_rate.min(sent.size.saturating_sub(sent.last.size) / span))
    }

    /// The packets of the window that were not sent before any that has left it.
    fn sent(&self) -> Option<Sent> {
        let (first, last) = (self.window.first()?, self.window.last()?);
        let horizon = self.newest_discarded.unwrap_or(Timestamp::from_nanos(i64::MIN));
        // If all send times are equal, `last_sent` may have left the window.
        if self.reordered == 0
            && horizon <= first.send_time
            && first.send_time < last.send_time
            && let Some(last) = self.last_sent
        {
            let (count, size) = (self.window.len(), self.received);
            return Some(Sent { count, size, first: first.send_time, last });
        }
        let mut counting = self.window.iter().filter(|packet| packet.send_time >= horizon);
        let first = *counting.next()?;
        let mut sent = Sent { count: 1, size: first.size, first: first.send_time, last: first };
        for packet in counting {
            sent.count += 1;
            sent.size += packet.size;
            sent.first = sent.first.min(packet.send_time);
            if packet.send_time > sent.last.send_time {
                sent.last = *packet;
            }
        }
        Some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1_250);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Feeds packets sent at these times. Each arrives `delay_ms` later.
    fn feed(
        acknowledged: &mut AcknowledgedBitrate,
        send_ms: impl Iterator<Item = i64>,
        delay_ms: impl Fn(i64) -> i64,
    ) {
        send_ms.for_each(|ms| acknowledged.on_packet(at(ms), at(ms + delay_ms(ms)), SIZE));
    }

    fn kbps(acknowledged: &mut AcknowledgedBitrate) -> Option<f64> {
        acknowledged.bitrate().map(Bitrate::as_kbps_f64)
    }

    // [LIBWEBRTC §RobustThroughputEstimator]: 1250 B every 10 ms are 1 Mbit/s.
    #[test]
    fn ten_packets_give_a_rate_and_the_window_is_a_second_of_more_than_20() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..90).step_by(10), |_| 25);
        assert_eq!(kbps(&mut acknowledged), None);
        feed(&mut acknowledged, (90..3_000).step_by(10), |_| 25);
        assert_eq!(kbps(&mut acknowledged), Some(1_000.0));
        assert_eq!(acknowledged.window.len(), 101);
        feed(&mut acknowledged, (3_000..5_000).step_by(5), |_| 25);
        assert_eq!(kbps(&mut acknowledged), Some(2_000.0));
    }

    // [LIBWEBRTC §RobustThroughputEstimator]
    #[test]
    fn a_slow_stream_has_a_window_of_20_packets_up_to_5_s() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..20_000).step_by(100), |_| 25);
        assert_eq!(acknowledged.window.len(), 20);
        feed(&mut acknowledged, (20_000..60_000).step_by(1_000), |_| 25);
        assert_eq!(acknowledged.window.len(), 6);
        assert_eq!(kbps(&mut acknowledged), None);
    }

    // [LIBWEBRTC §RobustThroughputEstimator]: packets are held back for 400 ms, then released.
    #[test]
    fn the_longest_gap_counts_as_the_second_longest_and_a_burst_as_sent() {
        let mut acknowledged = AcknowledgedBitrate::default();
        let held = |ms: i64| if (200..600).contains(&ms) { 625 - ms } else { 25 };
        feed(&mut acknowledged, (0..=1_000).step_by(10), held);
        assert_eq!(kbps(&mut acknowledged), Some(1_000.0), "bounded by the send rate");
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..500).step_by(10), |ms| if ms < 250 { 0 } else { 400 });
        let with_gap = 49.0 * 10.0 / (490.0 + 400.0) * 1_000.0;
        let without = 49.0 * 10.0 / (490.0 + 400.0 - 410.0 + 10.0) * 1_000.0;
        let rate = kbps(&mut acknowledged).unwrap();
        assert!((rate - without).abs() < 1.0 && rate > with_gap, "{rate}");
    }

    // [LIBWEBRTC §RobustThroughputEstimator]: sent twice as fast as received.
    #[test]
    fn the_lower_one_of_send_and_receive_rate_is_told() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..1_000).step_by(5), |ms| 25 + ms);
        let rate = kbps(&mut acknowledged).unwrap();
        assert!((rate - 1_000.0).abs() < 10.0, "{rate}");
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..1_000).step_by(5), |ms| 500 - ms / 2);
        assert_eq!(kbps(&mut acknowledged), Some(2_000.0));
    }

    // [LIBWEBRTC §RobustThroughputEstimator]
    #[test]
    fn a_packet_sent_before_discarded_ones_does_not_stretch_the_send_span() {
        let mut acknowledged = AcknowledgedBitrate::default();
        feed(&mut acknowledged, (0..3_000).step_by(10), |_| 25);
        let before = kbps(&mut acknowledged);
        acknowledged.on_packet(at(500), at(3_020), SIZE);
        let after = kbps(&mut acknowledged).unwrap();
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
        assert_eq!(kbps(&mut one), kbps(&mut other));
    }

    impl AcknowledgedBitrate {
        fn on_packet(&mut self, send_time: Timestamp, arrival_time: Timestamp, size: DataSize) {
            self.on_packets(core::iter::once(Packet { arrival_time, send_time, size }));
        }
    }

    #[test]
    fn a_report_of_many_packets_is_as_good_as_many_reports() {
        for seed in 1..200_u64 {
            let mut state = seed;
            let mut draw = |below: u64| {
                state = state * 48_271 % 0x7fff_ffff;
                (state % below) as i64
            };
            let (mut one, mut other) =
                (AcknowledgedBitrate::default(), AcknowledgedBitrate::default());
            let mut now = 1_000;
            for _ in 0..100 {
                let packets: alloc::vec::Vec<Packet> = (0..draw(12))
                    .map(|_| {
                        now += if draw(60) == 0 { 5 * draw(1_200) } else { 5 * draw(4) };
                        let late = if draw(40) == 0 { draw(1_300) } else { 0 };
                        let sent = now - if draw(20) == 0 { draw(300) } else { now % 20 };
                        let size = DataSize::from_bytes(100 + draw(1_200) as u64);
                        Packet { arrival_time: at(now + 25 - late), send_time: at(sent), size }
                    })
                    .collect();
                one.on_packets(packets.iter().copied());
                packets.iter().for_each(|packet| {
                    other.on_packet(packet.send_time, packet.arrival_time, packet.size);
                });
                assert_eq!(one.bitrate(), other.bitrate(), "seed {seed}, {now} ms");
            }
        }
    }

    #[test]
    fn a_report_of_more_than_the_window_is_as_good_as_many() {
        for seed in 1..40_i64 {
            let (mut one, mut other) =
                (AcknowledgedBitrate::default(), AcknowledgedBitrate::default());
            let mut number = 0;
            for report in 0..12_i64 {
                let count = [30, 499, 2_100, 501, 700][(seed + report) as usize % 5];
                let packets: alloc::vec::Vec<Packet> = (number..number + count)
                    .map(|number| {
                        let late = if number * seed % 97 == 0 { 30 } else { 0 };
                        let pause = if number % 1_013 == 0 { seed } else { 0 };
                        let size = DataSize::from_bytes(1_000 + (number % 7) as u64);
                        let arrival_time = at(number / 40 * 2 + 100);
                        Packet { arrival_time, send_time: at(number / 20 - late + pause), size }
                    })
                    .collect();
                number += count;
                one.on_sorted(packets[0].arrival_time, packets.len(), packets.iter().copied());
                other.on_packets(packets.iter().copied());
                assert_eq!(one.bitrate(), other.bitrate(), "seed {seed}, {number}");
                assert_eq!(
                    alloc::format!("{:?}", one.window.last()),
                    alloc::format!("{:?}", other.window.last())
                );
                assert_eq!(one.newest_discarded, other.newest_discarded);
                assert_eq!((one.received, one.reordered), (other.received, other.reordered));
            }
        }
    }

    /// Reference implementation: the rule as written, over the whole window.
    fn by_the_whole_window(acknowledged: &AcknowledgedBitrate) -> Option<Bitrate> {
        let window: alloc::vec::Vec<Packet> = acknowledged.window.iter().copied().collect();
        let (first, last) = (window.first()?, window.last()?);
        if window.len() < REQUIRED_PACKETS {
            return None;
        }
        let mut gaps: alloc::vec::Vec<TimeDelta> =
            window.windows(2).map(|pair| pair[1].arrival_time - pair[0].arrival_time).collect();
        gaps.sort_unstable();
        let (longest, second) = (gaps[gaps.len() - 1], gaps[gaps.len() - 2]);
        let received: DataSize = window.iter().skip(1).map(|packet| packet.size).sum();
        let span = last.arrival_time - first.arrival_time - longest + second;
        let receive_rate = received / span.max(MIN_SPAN);
        let horizon = acknowledged.newest_discarded.unwrap_or(Timestamp::from_nanos(i64::MIN));
        let sent = window.iter().filter(|packet| packet.send_time >= horizon);
        if sent.clone().count() < REQUIRED_PACKETS {
            return Some(receive_rate);
        }
        let (earliest, latest) = (
            sent.clone().map(|packet| packet.send_time).min()?,
            sent.clone().map(|packet| packet.send_time).max()?,
        );
        let last_size = sent.clone().find(|packet| packet.send_time == latest)?.size;
        let size: DataSize = sent.map(|packet| packet.size).sum();
        let span = (latest - earliest).max(MIN_SPAN);
        Some(receive_rate.min(size.saturating_sub(last_size) / span))
    }

    // [LIBWEBRTC §RobustThroughputEstimator]
    #[test]
    fn what_is_kept_of_the_window_is_what_the_whole_window_tells() {
        // A Lehmer generator, so that each seed is another path.
        for seed in 1..200_u64 {
            let mut state = seed;
            let mut draw = |below: u64| {
                state = state * 48_271 % 0x7fff_ffff;
                (state % below) as i64
            };
            let mut acknowledged = AcknowledgedBitrate::default();
            let mut now = 1_000;
            for _ in 0..600 {
                // Ticks and bursts make gaps and send times equal; pauses and late packets are
                // rare.
                now += if draw(50) == 0 { 5 * draw(400) } else { 5 * draw(4) };
                let sent = now - if draw(20) == 0 { draw(300) } else { now % 20 };
                let back = [0, 0, 0, 400, 2_000][draw(if seed % 2 == 0 { 3 } else { 5 }) as usize];
                let arrival = now + 25 - if draw(40) == 0 { back } else { 0 };
                let size = DataSize::from_bytes(100 + draw(1_200) as u64);
                acknowledged.on_packet(at(sent), at(arrival), size);
                if draw(3) == 0 {
                    let expected = by_the_whole_window(&acknowledged);
                    assert_eq!(acknowledged.bitrate(), expected, "seed {seed}, {now} ms");
                }
            }
        }
    }
}
