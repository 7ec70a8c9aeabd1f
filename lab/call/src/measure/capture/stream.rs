//! A media stream in the captures of both ends: which packets arrived, in which order, and how
//! late.
//!
//! Packets are matched by SSRC and sequence number, which SRTP does not encrypt. Both captures use
//! the same clock, so the difference of the timestamps is the one-way delay.

use std::ops::Range;

use weir::feedback::SeqUnwrapper;
use weir::units::{TimeDelta, Timestamp};

use super::host::{Sighting, Window, Windowed};

/// Width of a bin of the delay distribution (aalto, chapter 6).
pub const DELAY_BIN: TimeDelta = TimeDelta::from_millis(10);
/// Number of bins: up to 300 ms, and one for longer delays.
pub const DELAY_BINS: usize = 31;

/// One stream between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// SSRC of the stream.
    pub ssrc: u32,
    /// Payload types in the stream, in rising order.
    pub payload_types: Vec<u8>,
    /// Packets sent within the window.
    pub sent: Windowed,
    /// Packets received within the window.
    pub received: Windowed,
    /// Packets sent within the window that never arrived. Packets after the last one that arrived
    /// do not count, because they may still have been in flight at the end.
    pub lost: u64,
    /// Packets that arrived after a packet that was sent later.
    pub reordered: u64,
    /// Packets that arrived more often than they were sent.
    pub duplicates: u64,
    /// One-way delay of each packet sent within the window, in rising order.
    pub delays: Vec<TimeDelta>,
}

impl Stream {
    /// Matches sent with received packets. Both lists are sorted by time.
    pub fn of(ssrc: u32, sent: &[Sighting], received: &[Sighting], window: &Window) -> Self {
        let mut departures = Departures::of(sent);
        let shift = departures.shift_of(sent, received);
        let (mut delays, mut reordered, mut duplicates) = (Vec::new(), 0, 0);
        let mut highest = None;
        for arrival in received {
            let sequence = arrival.sequence + shift;
            let Some(departure) = departures.take(sequence) else {
                duplicates += u64::from(departures.had(sequence));
                continue;
            };
            if window.contains(departure) {
                reordered += u64::from(highest.is_some_and(|highest| sequence < highest));
                delays.push(arrival.time - departure);
            }
            highest = highest.max(Some(sequence));
        }
        delays.sort_unstable();
        let mut payload_types: Vec<u8> = sent.iter().map(|packet| packet.payload_type).collect();
        payload_types.sort_unstable();
        payload_types.dedup();
        Self {
            ssrc,
            payload_types,
            sent: Windowed::of(sent, window),
            received: Windowed::of(received, window),
            lost: highest.map_or(0, |highest| departures.left_below(highest, window)),
            reordered,
            duplicates,
            delays,
        }
    }

    /// Histogram of the delays, in bins of [`DELAY_BIN`].
    pub fn delay_bins(&self) -> [u64; DELAY_BINS] {
        let mut bins = [0; DELAY_BINS];
        for delay in &self.delays {
            let bin = delay.as_nanos().max(0) / DELAY_BIN.as_nanos();
            bins[usize::try_from(bin).unwrap_or(usize::MAX).min(DELAY_BINS - 1)] += 1;
        }
        bins
    }

    /// Mean delay; `None` if nothing arrived.
    pub fn mean_delay(&self) -> Option<TimeDelta> {
        let sum: i128 = self.delays.iter().map(|delay| i128::from(delay.as_nanos())).sum();
        let count = i128::try_from(self.delays.len()).ok().filter(|count| *count > 0)?;
        i64::try_from(sum / count).ok().map(TimeDelta::from_nanos)
    }
}

/// Sent packets by sequence number, and which of them have arrived.
struct Departures {
    /// Sorted by number. A packet may be sent twice with the same number; then by time.
    by_sequence: Vec<(i64, Timestamp)>,
    taken: Vec<bool>,
}

impl Departures {
    fn of(sent: &[Sighting]) -> Self {
        let mut by_sequence: Vec<_> =
            sent.iter().map(|packet| (packet.sequence, packet.time)).collect();
        by_sequence.sort_unstable();
        let taken = vec![false; by_sequence.len()];
        Self { by_sequence, taken }
    }

    /// Offset to add to the receiver's unwrapped sequence numbers. The receiver may have missed a
    /// wrap before its first packet. That packet must be near the last one sent by then.
    fn shift_of(&self, sent: &[Sighting], received: &[Sighting]) -> i64 {
        let Some(first) = received.first() else { return 0 };
        let before = sent.partition_point(|packet| packet.time <= first.time);
        let Some(reference) = sent.get(before.saturating_sub(1)) else { return 0 };
        let mut unwrapper = SeqUnwrapper::default();
        unwrapper.set_last(reference.sequence);
        let wire = u32::from(first.sequence as u16);
        unwrapper.peek(wire) - first.sequence
    }

    fn with(&self, sequence: i64) -> Range<usize> {
        let start = self.by_sequence.partition_point(|packet| packet.0 < sequence);
        let end = self.by_sequence.partition_point(|packet| packet.0 <= sequence);
        start..end
    }

    fn had(&self, sequence: i64) -> bool {
        !self.with(sequence).is_empty()
    }

    /// Send time of the packet that arrives now; `None` if all packets with this number have
    /// arrived.
    fn take(&mut self, sequence: i64) -> Option<Timestamp> {
        let index = self.with(sequence).find(|index| !self.taken[*index])?;
        self.taken[index] = true;
        Some(self.by_sequence[index].1)
    }

    /// Number of packets below `highest` that were sent within the window and did not arrive.
    fn left_below(&self, highest: i64, window: &Window) -> u64 {
        let packets = self.by_sequence.iter().zip(&self.taken);
        let lost = packets.filter(|((sequence, time), taken)| {
            !**taken && *sequence < highest && window.contains(*time)
        });
        lost.count() as u64
    }
}

/// Lost packets divided by expected packets in a span of time, from the receiver's packets only, by
/// Equation 1 of aalto (section 4.1): growth of lost packets divided by growth of received plus
/// lost packets. A late packet can make it negative. `None` if no packet was expected.
pub fn loss_ratio(received: &[Sighting], from: Timestamp, to: Timestamp) -> Option<f64> {
    let (expected_before, seen_before) = counted_until(received, from);
    let (expected, seen) = counted_until(received, to);
    let expected = expected - expected_before;
    let lost = expected - (seen - seen_before);
    if expected > 0 { Some(lost as f64 / expected as f64) } else { None }
}

/// The packets expected and received until a time.
fn counted_until(received: &[Sighting], time: Timestamp) -> (i64, i64) {
    let seen = &received[..received.partition_point(|packet| packet.time <= time)];
    let (Some(first), Some(highest)) =
        (received.first(), seen.iter().map(|packet| packet.sequence).max())
    else {
        return (0, 0);
    };
    (highest - first.sequence + 1, seen.len() as i64)
}

/// Packets after `from` up to and including `to`. The packets must be sorted by time.
pub fn between(packets: &[Sighting], from: Timestamp, to: Timestamp) -> &[Sighting] {
    let [start, end] = [from, to].map(|time| packets.partition_point(|packet| packet.time <= time));
    packets.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        start: Timestamp::ZERO,
        end: Timestamp::from_secs(10),
        edge: TimeDelta::from_millis(10),
        travel: TimeDelta::ZERO,
    };

    fn sightings(packets: &[(i64, i64)]) -> Vec<Sighting> {
        let sighting = |&(ms, sequence): &(i64, i64)| Sighting {
            time: Timestamp::from_millis(ms),
            sequence,
            size: 1_000,
            payload_type: 96,
            payload: Some(960),
        };
        packets.iter().map(sighting).collect()
    }

    fn stream(sent: &[(i64, i64)], received: &[(i64, i64)]) -> Stream {
        Stream::of(7, &sightings(sent), &sightings(received), &WINDOW)
    }

    #[test]
    fn delay_is_the_time_between_the_two_ends() {
        let stream = stream(&[(10, 1), (20, 2), (30, 3)], &[(40, 1), (45, 2), (355, 3)]);
        let ms = |ms| TimeDelta::from_millis(ms);
        assert_eq!(stream.delays, [ms(25), ms(30), ms(325)]);
        assert_eq!(stream.mean_delay(), Some(TimeDelta::from_nanos(126_666_666)));
        let bins = stream.delay_bins();
        assert_eq!((bins[2], bins[3], bins[30]), (1, 1, 1));
        assert_eq!(bins.iter().sum::<u64>(), 3);
        assert_eq!(stream.payload_types, [96]);
    }

    #[test]
    fn packets_that_never_arrived_are_lost_except_the_last_ones() {
        let stream = stream(&[(10, 1), (20, 2), (30, 3), (40, 4)], &[(40, 1), (60, 3)]);
        assert_eq!((stream.lost, stream.delays.len()), (1, 2));
        assert_eq!((stream.sent.within.packets, stream.received.within.packets), (4, 2));
    }

    #[test]
    fn late_packets_are_reordered_and_second_copies_duplicates() {
        let stream = stream(
            &[(10, 1), (20, 2), (30, 3), (40, 4)],
            &[(41, 1), (42, 3), (43, 2), (44, 3), (45, 4)],
        );
        assert_eq!((stream.reordered, stream.duplicates, stream.lost), (1, 1, 0));
    }

    #[test]
    fn a_packet_that_left_twice_and_arrived_twice_is_no_duplicate() {
        let stream = stream(&[(10, 1), (20, 1)], &[(40, 1), (55, 1)]);
        assert_eq!(stream.duplicates, 0);
        assert_eq!(stream.delays, [TimeDelta::from_millis(30), TimeDelta::from_millis(35)]);
    }

    #[test]
    fn a_receiver_that_missed_the_wrap_is_matched_all_the_same() {
        let sent = [(10, 65_534), (20, 65_535), (30, 65_536), (40, 65_537)];
        let stream = stream(&sent, &[(60, 0), (70, 1)]);
        assert_eq!((stream.lost, stream.delays.len()), (2, 2));
    }

    #[test]
    fn a_packet_before_the_window_is_not_counted() {
        let stream = stream(&[(-30, 1), (-10, 2), (10, 3)], &[(20, 1), (40, 3)]);
        assert_eq!((stream.lost, stream.delays.len()), (0, 1));
        assert_eq!(stream.sent.within.packets, 1);
    }

    // aalto, Equation 1.
    #[test]
    fn loss_over_a_span_is_the_growth_of_lost_over_expected() {
        let received = sightings(&[(10, 1), (20, 2), (30, 5), (40, 4), (50, 6)]);
        let loss = |from, to| {
            loss_ratio(&received, Timestamp::from_millis(from), Timestamp::from_millis(to))
        };
        assert_eq!(loss(0, 20), Some(0.0));
        // 3, 4 and 5 were expected; only 5 arrived.
        assert_eq!(loss(20, 35), Some(2.0 / 3.0));
        // 6 was expected; 6 and the late 4 arrived.
        assert_eq!(loss(35, 60), Some(-1.0));
        assert_eq!(loss(60, 90), None);
    }

    #[test]
    fn packets_between_are_those_after_the_beginning_up_to_the_end() {
        let packets = sightings(&[(10, 1), (20, 2), (30, 3)]);
        let at = Timestamp::from_millis;
        assert_eq!(between(&packets, at(10), at(30)), &packets[1..]);
        assert_eq!(between(&packets, at(30), at(10)), []);
    }
}
