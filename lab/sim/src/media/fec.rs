//! XOR parity over groups of media packets, in the form of FlexFEC [RFC8627 §6.2, §6.3].
//!
//! Each group has one parity packet, which can restore any single packet of the group. The higher
//! the loss ratio, the smaller the groups.

use std::collections::BTreeMap;

use weir::feedback::FeedbackReport;
use weir::units::{TimeDelta, Timestamp};
use weir_wire::rtp::RtpHeader;
use weir_wire::vp8::Descriptor;

use crate::rtp_format::{EXTENSION_ID, FIXED_HEADER, RTP_HEADER};

/// Target for the loss ratio after repair, assuming independent losses. At lower loss ratios there
/// is no parity.
const RESIDUAL_LOSS: f64 = 0.01;
/// Maximum number of packets in a group: the bits of a mask of two words [RFC8627 §4.2.2.1].
pub(super) const MAX_GROUP: usize = 46;
/// A group ends with the first frame that ends at least this long after the group began. Parity
/// that comes later than a retransmission would is of little use.
const GROUP_TIME: TimeDelta = TimeDelta::from_millis(60);
/// Maximum time from a packet to its parity: the duration of the group, one more frame and the send
/// queue.
pub(super) const PARITY_TIME: TimeDelta = TimeDelta::from_millis(150);
/// Weight of one packet in the smoothed loss ratio, which therefore covers a few hundred packets.
const LOSS_GAIN: f64 = 1.0 / 256.0;
/// Range of sequence numbers for which the decoder keeps media and parity packets.
const DECODER_WINDOW: i64 = 512;

/// Number of bytes carried after the fixed RTP header: the header extension and the codec's header.
pub(super) const BODY: usize = RTP_HEADER - FIXED_HEADER + Descriptor::SIZE;
/// Bits of the RTP version, which parity does not cover.
const VERSION_MASK: u16 = 0b11 << 14;
const MARKER: u16 = 1 << 7;

/// The exclusive or of one or more packets. It excludes sequence number, SSRC and version. Of the
/// payload it includes only the codec's header, because the rest is not carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parity {
    /// Flags and payload type of the RTP header.
    pub(super) flags: u16,
    /// RTP timestamp.
    pub(super) timestamp: u32,
    /// Bytes after the fixed RTP header.
    pub(super) length: u16,
    /// The first of these bytes.
    pub(super) body: [u8; BODY],
}

impl Parity {
    /// The parity of a single media packet with `length` bytes after its fixed header. The values
    /// of header extensions count as zero, because they are filled in only when the packet leaves,
    /// after the parity was computed.
    pub(super) fn of(header: &RtpHeader, start: [u8; Descriptor::SIZE], length: u16) -> Self {
        let header =
            header.with_transport_sequence_number(Some((EXTENSION_ID, 0))).with_abs_send_time(None);
        let mut bytes = [0; RTP_HEADER];
        header.emit(&mut bytes);
        let mut body = [0; BODY];
        body[..RTP_HEADER - FIXED_HEADER].copy_from_slice(&bytes[FIXED_HEADER..]);
        body[RTP_HEADER - FIXED_HEADER..].copy_from_slice(&start);
        let flags = u16::from_be_bytes([bytes[0], bytes[1]]) & !VERSION_MASK;
        Self { flags, timestamp: header.timestamp, length, body }
    }

    /// The RTP marker, if this is a single packet.
    pub(super) fn marker(&self) -> bool {
        self.flags & MARKER != 0
    }

    /// The first bytes of the payload, if this is a single packet.
    pub(super) fn start(&self) -> &[u8] {
        &self.body[RTP_HEADER - FIXED_HEADER..]
    }

    fn add(&mut self, other: &Self) {
        self.flags ^= other.flags;
        self.timestamp ^= other.timestamp;
        self.length ^= other.length;
        for (byte, other) in self.body.iter_mut().zip(other.body) {
            *byte ^= other;
        }
    }
}

/// Media packets that are protected together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Sequence number of the first one.
    pub(super) first: i64,
    /// Number of packets.
    pub(super) packets: usize,
    /// Difference between the sequence numbers of neighbours in the group.
    pub(super) step: usize,
    /// Maximum length of a packet after its fixed header.
    pub(super) longest: u16,
    /// Their parity.
    pub(super) parity: Parity,
    began: Timestamp,
}

impl Group {
    /// A group without packets.
    pub(super) fn new(now: Timestamp, first: i64, step: usize) -> Self {
        Self { first, packets: 0, step, longest: 0, parity: Parity::default(), began: now }
    }

    /// Adds a packet to the group.
    pub(super) fn add(&mut self, packet: &Parity) {
        self.packets += 1;
        self.longest = self.longest.max(packet.length);
        self.parity.add(packet);
    }
}

/// Forms groups of the packets that are put into the send queue.
#[derive(Clone, Debug, Default)]
pub(super) struct FecEncoder {
    loss_ratio: f64,
    group: Option<Group>,
}

impl FecEncoder {
    #[cfg(test)]
    pub(super) fn with_loss_ratio(loss_ratio: f64) -> Self {
        Self { loss_ratio, group: None }
    }

    /// Updates the loss ratio.
    pub(super) fn on_feedback(&mut self, report: &FeedbackReport) {
        for packet in report.packets.iter().filter(|packet| !packet.recovered) {
            let lost = f64::from(u8::from(packet.arrival_time.is_none()));
            self.loss_ratio += (lost - self.loss_ratio) * LOSS_GAIN;
        }
    }

    /// Number of packets in a group; `None` if the loss ratio is too low for parity.
    ///
    /// With a loss ratio p, a packet in a group of k stays lost if it is lost together with one of
    /// the k - 1 others or with the parity. The probability of this is about k p^2. The result is
    /// the largest k for which it does not exceed the target.
    fn group_size(&self) -> Option<usize> {
        let squared = self.loss_ratio * self.loss_ratio;
        (self.loss_ratio > RESIDUAL_LOSS)
            .then(|| ((RESIDUAL_LOSS / squared) as usize).clamp(1, MAX_GROUP))
    }

    /// A media packet is put into the send queue.
    pub(super) fn on_packet(&mut self, now: Timestamp, number: i64, packet: Parity) {
        if self.group_size().is_none() {
            self.group = None;
            return;
        }
        let group = self.group.filter(|group| group.packets < MAX_GROUP);
        let mut group = group.unwrap_or(Group::new(now, number, 1));
        group.add(&packet);
        self.group = Some(group);
    }

    /// Returns the group if its parity is due now.
    pub(super) fn due(&self, now: Timestamp, at_frame_end: bool) -> Option<&Group> {
        let size = self.group_size()?;
        let old = |group: &Group| at_frame_end && now - group.began >= GROUP_TIME;
        self.group.as_ref().filter(|group| group.packets >= size || old(group))
    }

    /// The group's parity was put into the send queue.
    pub(super) fn on_parity(&mut self) {
        self.group = None;
    }
}

/// Restores lost packets.
#[derive(Clone, Debug, Default)]
pub(super) struct FecDecoder {
    media: BTreeMap<i64, Parity>,
    repairs: Vec<Repair>,
}

#[derive(Clone, Debug)]
struct Repair {
    numbers: Vec<i64>,
    parity: Parity,
}

impl FecDecoder {
    /// A media packet was received or restored.
    pub(super) fn on_packet(&mut self, number: i64, packet: Parity) {
        self.media.insert(number, packet);
        let horizon = self.horizon();
        while self.media.first_key_value().is_some_and(|(&first, _)| first < horizon) {
            self.media.pop_first();
        }
    }

    /// The parity of these media packets arrived.
    pub(super) fn on_parity(&mut self, numbers: Vec<i64>, parity: Parity) {
        self.repairs.push(Repair { numbers, parity });
    }

    /// Restores a packet if that is possible now.
    pub(super) fn recover(&mut self) -> Option<(i64, Parity)> {
        let horizon = self.horizon();
        let media = &self.media;
        let mut recovered = None;
        self.repairs.retain(|repair| {
            let mut missing = repair.numbers.iter().filter(|number| !media.contains_key(number));
            match (missing.next(), missing.next()) {
                (Some(&number), None) if number >= horizon && recovered.is_none() => {
                    recovered = Some((number, repair.solve(media)));
                    false
                }
                (Some(first), second) => *second.unwrap_or(first) >= horizon,
                (None, _) => false,
            }
        });
        recovered
    }

    fn horizon(&self) -> i64 {
        self.media.last_key_value().map_or(0, |(&newest, _)| newest - DECODER_WINDOW)
    }
}

impl Repair {
    /// The missing packet: the exclusive or of the parity and all other packets.
    fn solve(&self, media: &BTreeMap<i64, Parity>) -> Parity {
        let mut packet = self.parity;
        for p in self.numbers.iter().filter_map(|number| media.get(number)) {
            packet.add(p);
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::PacketReport;
    use weir::units::DataSize;
    use weir_wire::rtp::AbsSendTime;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn packet(number: i64) -> Parity {
        let mut body = [0; BODY];
        for (index, byte) in body.iter_mut().enumerate() {
            *byte = number as u8 ^ index as u8;
        }
        let timestamp = 3_000 * number as u32;
        Parity { flags: 96 | number as u16, timestamp, length: 900 + number as u16, body }
    }

    /// An encoder that has seen this many losses in 10,000 packets, at regular intervals.
    fn encoder(lost: usize) -> FecEncoder {
        let mut encoder = FecEncoder::default();
        let report = |number: usize| {
            PacketReport::new(number as i64, DataSize::from_bytes(1_200), at(0))
                .with_arrival_time((number * lost % 10_000 >= lost).then_some(at(50)))
        };
        let packets = (0..10_000).map(report).collect();
        encoder.on_feedback(&FeedbackReport::new(packets));
        encoder
    }

    #[test]
    fn groups_are_as_small_as_the_loss_ratio_calls_for() {
        assert_eq!(encoder(0).group_size(), None);
        assert_eq!(encoder(80).group_size(), None);
        assert!((20..=33).contains(&encoder(200).group_size().unwrap()));
        assert!((3..=5).contains(&encoder(500).group_size().unwrap()));
        assert_eq!(encoder(1_500).group_size(), Some(1));
        let barely = FecEncoder::with_loss_ratio(0.0101);
        assert_eq!(barely.group_size(), Some(MAX_GROUP));
    }

    #[test]
    fn a_group_ends_when_it_is_full_or_with_a_frame_once_it_is_old() {
        let mut encoder = FecEncoder::with_loss_ratio(0.045);
        for number in 0..3 {
            encoder.on_packet(at(0), number, packet(number));
            assert_eq!(encoder.due(at(0), true), None);
        }
        assert_eq!(encoder.due(at(60), false), None);
        let old = encoder.due(at(60), true).unwrap();
        assert_eq!((old.first, old.packets, old.longest), (0, 3, 902));
        encoder.on_packet(at(1), 3, packet(3));
        assert_eq!(encoder.due(at(1), false).map(|group| group.packets), Some(4));
        encoder.on_parity();
        assert_eq!(encoder.due(at(100), true), None);
    }

    #[test]
    fn a_group_that_may_not_be_protected_is_let_go_when_no_mask_holds_it() {
        let mut encoder = FecEncoder::with_loss_ratio(0.5);
        for number in 0..47 {
            encoder.on_packet(at(0), number, packet(number));
        }
        let group = encoder.due(at(0), false).unwrap();
        assert_eq!((group.first, group.packets), (46, 1));
    }

    /// The parity of the packets 10, 11, .. of a group of `size`.
    fn parity_of(size: i64) -> Group {
        let mut encoder = FecEncoder::with_loss_ratio(0.02);
        for number in 10..10 + size {
            encoder.on_packet(at(0), number, packet(number));
        }
        *encoder.due(at(99), true).unwrap()
    }

    // [RFC8627 §6.3.2]
    #[test]
    fn any_one_lost_packet_of_a_group_is_restored() {
        let group = parity_of(5);
        for lost in 10..15 {
            let mut decoder = FecDecoder::default();
            for number in (10..15).filter(|&number| number != lost) {
                decoder.on_packet(number, packet(number));
            }
            assert_eq!(decoder.recover(), None);
            decoder.on_parity((10..15).collect(), group.parity);
            assert_eq!(decoder.recover(), Some((lost, packet(lost))));
            assert_eq!(decoder.recover(), None, "the parity is used up");
        }
    }

    #[test]
    fn of_two_lost_packets_one_is_restored_once_the_other_came() {
        let mut decoder = FecDecoder::default();
        decoder.on_packet(12, packet(12));
        decoder.on_parity(vec![10, 11, 12], parity_of(3).parity);
        assert_eq!(decoder.recover(), None);
        decoder.on_packet(10, packet(10));
        assert_eq!(decoder.recover(), Some((11, packet(11))));
    }

    // [RFC8627 §6.3.2]
    #[test]
    fn a_packet_that_two_groups_lack_restores_one_more_of_each() {
        let group = |numbers: [i64; 2]| {
            let mut group = Group::new(at(0), numbers[0], 1);
            for &number in &numbers {
                group.add(&packet(number));
            }
            group.parity
        };
        let mut decoder = FecDecoder::default();
        for numbers in [[10, 11], [10, 12]] {
            decoder.on_parity(numbers.to_vec(), group(numbers));
        }
        assert_eq!(decoder.recover(), None);
        decoder.on_packet(10, packet(10));
        assert_eq!(decoder.recover(), Some((11, packet(11))));
        assert_eq!(decoder.recover(), Some((12, packet(12))));
    }

    #[test]
    fn what_can_never_be_restored_is_forgotten() {
        let mut decoder = FecDecoder::default();
        for number in 0..2_000 {
            decoder.on_packet(3 * number, packet(3 * number));
            let group = vec![3 * number, 3 * number + 1, 3 * number + 2];
            decoder.on_parity(group, packet(0));
            assert_eq!(decoder.recover(), None);
        }
        assert!(decoder.media.len() <= 172, "{}", decoder.media.len());
        assert!(decoder.repairs.len() <= 172, "{}", decoder.repairs.len());
    }

    #[test]
    fn parity_does_not_depend_on_what_is_written_when_a_packet_leaves() {
        let header = RtpHeader::new(3, crate::rtp_format::PAYLOAD_TYPE, 1, 2)
            .with_marker(true)
            .with_transport_sequence_number(Some((EXTENSION_ID, 0)));
        let later = header
            .with_sequence_number(9)
            .with_ssrc(9)
            .with_transport_sequence_number(Some((EXTENSION_ID, 9)))
            .with_abs_send_time(Some((EXTENSION_ID, AbsSendTime::from_ticks(9))));
        assert_eq!(Parity::of(&header, [0, 0], 7), Parity::of(&later, [0, 0], 7));
        assert_ne!(Parity::of(&header, [0, 0], 7), Parity::of(&header, [0, 1], 7));
    }
}
