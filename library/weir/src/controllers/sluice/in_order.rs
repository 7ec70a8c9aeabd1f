//! Packets in a row that arrived in the order in which they were sent: most packets of a report.
//!
//! At 500 Mbit/s a report has thousands of packets. What they add to sums of whole numbers and to
//! extremes is the same whether it is added packet by packet or at once for a stretch of them, to
//! the last bit. So a packet of a stretch costs a third of one by itself.

use crate::feedback::PacketReport;
use crate::units::{DataSize, TimeDelta, Timestamp};

/// Packets of a stretch at most: what a stretch cannot express is done packet by packet.
const LONGEST: usize = 32;
/// Fewer packets are not worth one.
const SHORTEST: usize = 4;

/// The first packets of a report, or of the rest of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct InOrder<'a> {
    pub(super) packets: &'a [PacketReport],
    /// Send times of the first and of the last packet, and their arrivals by the receiver's clock.
    pub(super) sent: [Timestamp; 2],
    pub(super) shown: [Timestamp; 2],
    /// The shortest and the longest delay by that clock.
    pub(super) extremes: [TimeDelta; 2],
    pub(super) size: DataSize,
    /// The delay of each packet, and unused places.
    delays: [TimeDelta; LONGEST],
}

impl<'a> InOrder<'a> {
    /// The stretch with which these packets begin, if there is one. Its numbers begin with `next`.
    #[inline]
    pub(super) fn at_begin_of(packets: &'a [PacketReport], next: i64) -> Option<Self> {
        let first = packets.first()?;
        let sent_first = first.send_time;
        let shown_first = first.arrival_time?;
        let (mut sent, mut shown, mut size) = (sent_first, shown_first, 0_u64);
        let (mut least, mut most) = (TimeDelta::MAX, TimeDelta::from_nanos(i64::MIN));
        let mut delays = [TimeDelta::ZERO; LONGEST];
        let (mut number, mut count) = (next, 0);
        for (packet, place) in packets.iter().zip(&mut delays) {
            let Some(arrival) = packet.arrival_time else { break };
            let is_next = packet.sequence_number == number && !packet.recovered;
            if !is_next || packet.send_time < sent || arrival < shown {
                break;
            }
            (sent, shown) = (packet.send_time, arrival);
            let delay = shown - sent;
            *place = delay;
            (least, most) = (least.min(delay), most.max(delay));
            size = size.saturating_add(packet.size.as_bytes());
            number = number.wrapping_add(1);
            count += 1;
        }
        // Sizes are small numbers in the loops over a stretch.
        if count < SHORTEST || number < next || size > u32::MAX.into() {
            return None;
        }
        Some(Self {
            packets: &packets[..count],
            sent: [sent_first, sent],
            shown: [shown_first, shown],
            extremes: [least, most],
            size: DataSize::from_bytes(size),
            delays,
        })
    }

    /// The delay of each packet by the receiver's clock.
    pub(super) fn delays(&self) -> &[TimeDelta] {
        &self.delays[..self.packets.len()]
    }

    /// The packets, and their arrivals by the receiver's clock.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = (&'a PacketReport, Timestamp)> {
        let packets = self.packets.iter();
        packets.filter_map(|packet| packet.arrival_time.map(|shown| (packet, shown)))
    }
}
