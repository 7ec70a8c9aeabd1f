//! The packets of a report that arrived, in the order of their arrival.

use alloc::vec::Vec;

use crate::controller::ProbeId;
use crate::feedback::PacketReport;
use crate::units::{DataSize, TimeDelta, Timestamp};

/// Packets by arrival, and what is known of all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals<'a> {
    /// Those that did not arrive stand between them and do not count.
    packets: &'a [PacketReport],
    /// Number of packets that arrived. No other field counts if there are none.
    pub count: usize,
    /// Arrivals of the first and of the last one.
    pub first: Timestamp,
    pub last: Timestamp,
    /// The earliest send time.
    pub first_sent: Timestamp,
    /// The smallest delay, with the offset of the clocks.
    pub least_delay: TimeDelta,
    /// Some belong to a probe.
    pub has_probes: bool,
}

/// Arrival, send time, size and probe: packets with the same first two may come in any order.
fn key(packet: &PacketReport) -> (Option<Timestamp>, Timestamp, DataSize, Option<ProbeId>) {
    (packet.arrival_time, packet.send_time, packet.size, packet.probe)
}

impl<'a> Arrivals<'a> {
    /// Reports are sorted by sequence number, which is the order of arrival unless the path
    /// reordered packets. Then they are sorted in the buffer.
    pub(super) fn of(packets: &'a [PacketReport], buffer: &'a mut Vec<PacketReport>) -> Self {
        let arrivals = Self::as_they_are(packets);
        if let Some(arrivals) = arrivals {
            return arrivals;
        }
        buffer.clear();
        buffer.extend(packets.iter().filter(|packet| packet.arrival_time.is_some()));
        buffer.sort_unstable_by_key(key);
        Self::as_they_are(buffer).unwrap_or(Self::of_none(buffer))
    }

    const fn of_none(packets: &'a [PacketReport]) -> Self {
        Self {
            packets,
            count: 0,
            first: Timestamp::MAX,
            last: Timestamp::from_nanos(i64::MIN),
            first_sent: Timestamp::MAX,
            least_delay: TimeDelta::MAX,
            has_probes: false,
        }
    }

    /// `None` if they are not in the order of arrival.
    fn as_they_are(packets: &'a [PacketReport]) -> Option<Self> {
        let mut all = Self::of_none(packets);
        let (mut before, mut sent) = (None, Timestamp::MAX);
        for packet in packets {
            let Some(arrival) = packet.arrival_time else { continue };
            // Feedback counts time in ticks, so many packets arrive at one time.
            let follows = arrival > all.last || arrival == all.last && packet.send_time > sent;
            if !follows && before.is_some_and(|before| key(packet) < key(before)) {
                return None;
            }
            (before, sent) = (Some(packet), packet.send_time);
            all.first = all.first.min(arrival);
            all.last = arrival;
            all.count += 1;
            all.first_sent = all.first_sent.min(packet.send_time);
            all.least_delay = all.least_delay.min(arrival - packet.send_time);
            all.has_probes |= packet.probe.is_some();
        }
        Some(all)
    }

    /// The packets, and when each arrived.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a PacketReport, Timestamp)> + use<'a> {
        let packets = self.packets.iter();
        packets.filter_map(|packet| packet.arrival_time.map(|arrival| (packet, arrival)))
    }
}
