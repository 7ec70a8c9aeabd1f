//! What was lost on the last part of the way, from a server to this end.
//!
//! A sequence number of RTP is the publisher's, or follows it: a server that forwards keeps its
//! gaps. The transport-wide number is given anew by whoever sends last. So a packet that is missing
//! in the first and not in the second was lost before the server.

use weir::units::Timestamp;

use super::Received;

/// Fewer packets of a time say nothing.
const LEAST: i64 = 10;
/// A larger hole is a new begin, and no loss.
const LARGEST_HOLE: i64 = 2_000;

/// Share of the packets with a transport-wide number that did not arrive between two times; `None`
/// if too few arrived, or the numbers began anew. `received` is in order of time.
pub(crate) fn loss(received: &[Received], from: Timestamp, to: Timestamp) -> Option<f64> {
    let first = received.partition_point(|packet| packet.time < from);
    let last = received.partition_point(|packet| packet.time < to);
    let (mut least, mut most, mut count) = (i64::MAX, i64::MIN, 0);
    for number in received.get(first..last)?.iter().filter_map(|packet| packet.number.get()) {
        least = least.min(number);
        most = most.max(number);
        count += 1;
    }
    let lost = most.saturating_sub(least).saturating_add(1).saturating_sub(count);
    let is_known = count >= LEAST && lost < LARGEST_HOLE;
    is_known.then(|| lost.max(0) as f64 / (count + lost.max(0)) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet each 10 ms, but for those whose number is left out.
    fn packets(left_out: fn(i64) -> bool) -> Vec<Received> {
        let mut packets = Vec::new();
        for number in 0..200 {
            if !left_out(number) {
                packets.push(Received {
                    time: Timestamp::from_millis(number * 10),
                    send_time: None.into(),
                    number: Some(number).into(),
                    size: 1_200,
                });
            }
        }
        packets
    }

    fn of_second(packets: &[Received], second: i64) -> Option<f64> {
        loss(packets, Timestamp::from_secs(second), Timestamp::from_secs(second + 1))
    }

    #[test]
    fn only_holes_of_transport_wide_numbers_count() {
        assert_eq!(of_second(&packets(|_| false), 0), Some(0.0));
        let fifth = packets(|number| number < 100 && number % 5 == 2);
        assert_eq!(of_second(&fifth, 0), Some(0.2));
        assert_eq!(of_second(&fifth, 1), Some(0.0));
    }

    #[test]
    fn few_packets_and_none_with_a_number_say_nothing() {
        assert_eq!(of_second(&packets(|number| number > 7), 0), None);
        assert_eq!(of_second(&packets(|_| false), 5), None);
        let mut unnumbered = packets(|_| false);
        for packet in &mut unnumbered {
            packet.number = None.into();
        }
        assert_eq!(of_second(&unnumbered, 0), None);
    }

    #[test]
    fn numbers_that_begin_anew_are_no_loss() {
        let mut packets = packets(|_| false);
        for packet in &mut packets[150..] {
            packet.number = packet.number.get().map(|number| number + 20_000).into();
        }
        assert_eq!(of_second(&packets, 1), None);
    }
}
