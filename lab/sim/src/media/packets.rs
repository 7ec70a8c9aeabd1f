//! Wire format of the packets of a repaired flow: media, retransmissions and parity. Each kind has
//! its own SSRC, payload type and RTP sequence numbers. All share the transport-wide sequence
//! numbers.

use weir::feedback::{RtpNumber, SeqUnwrapper, Unwrapper};
use weir::units::{DataSize, Timestamp};
use weir_wire::flexfec::{self, Mask};
use weir_wire::rtp::{PayloadType, RtpHeader, Rtx, View};
use weir_wire::vp8::Descriptor;

use super::fec::{BODY, Group, Parity};
use super::{Kind, MediaPacket, Receipt};
use crate::rtp_format::{
    EXTENSION_ID, EXTENSION_IDS, FIXED_HEADER, IP_UDP, PAYLOAD_TYPE, RTP_HEADER, SRTP_TAG,
    VIDEO_CLOCK_HZ, rtp_timestamp,
};

const RTX_PAYLOAD_TYPE: PayloadType = PayloadType::new(97).unwrap();
const FEC_PAYLOAD_TYPE: PayloadType = PayloadType::new(98).unwrap();
/// Size of a packet without header extension and payload: IP, UDP, the fixed RTP header and SRTP.
const AROUND: u64 = IP_UDP + FIXED_HEADER as u64 + SRTP_TAG;
/// Additional size of a retransmission compared with the original packet.
const RTX_OVERHEAD: DataSize = DataSize::from_bytes(Rtx::OVERHEAD as u64);

/// A packet that waits to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) kind: Kind,
    /// Whole IP packet.
    pub(crate) size: DataSize,
    /// RTP header. Extensions are filled in when the packet leaves.
    pub(crate) header: RtpHeader,
    /// SSRC of the media, if this is a parity packet.
    csrc: Option<u32>,
    /// The first bytes of the payload. The rest is counted, not carried.
    payload: Vec<u8>,
}

impl Packet {
    /// Sequence number of the original packet, if this is a retransmission.
    pub(super) fn repeated(&self) -> Option<u16> {
        (self.kind == Kind::Rtx)
            .then(|| Rtx::parse(&self.payload).ok())
            .flatten()
            .map(|rtx| rtx.sequence_number)
    }

    /// Whether it contains no payload.
    pub(super) fn is_padding(&self) -> bool {
        self.payload.is_empty()
    }

    /// Writes the headers and the first bytes of the payload.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let csrc_size = if self.csrc.is_some() { RtpHeader::CSRC_SIZE } else { 0 };
        let mut bytes = vec![0; self.header.size() + csrc_size + self.payload.len()];
        let size = match self.csrc {
            Some(csrc) => self.header.emit_with_csrc(csrc, &mut bytes),
            None => self.header.emit(&mut bytes),
        };
        bytes[size..].copy_from_slice(&self.payload);
        bytes
    }

    /// Identifies the packet in feedback that uses SSRC and sequence number.
    pub(crate) fn rtp_number(&self) -> RtpNumber {
        let RtpHeader { ssrc, sequence_number, .. } = self.header;
        RtpNumber { ssrc, sequence_number }
    }

    /// Number of bytes after the fixed header, including the extension and the bytes that are not
    /// carried.
    fn length(&self) -> u16 {
        length(self.size)
    }

    /// The parts of a media packet that parity covers.
    pub(super) fn parity(&self) -> Parity {
        let start = *self.payload.first_chunk().expect("media packets begin a payload");
        Parity::of(&self.header, start, self.length())
    }
}

fn length(size: DataSize) -> u16 {
    size.as_bytes().saturating_sub(AROUND) as u16
}

/// The SSRCs of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ssrcs {
    pub(crate) media: u32,
    pub(crate) rtx: u32,
    pub(crate) fec: u32,
}

impl Ssrcs {
    /// SSRCs of the flow whose media has this SSRC. Media SSRCs count from 1.
    pub(crate) fn of(media: u32) -> Self {
        Self { media, rtx: 1 << 16 | media, fec: 2 << 16 | media }
    }
}

/// Creates packets with consecutive sequence numbers.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    ssrcs: Ssrcs,
    /// Sequence number of the next media packet.
    pub(super) next_number: i64,
    next_rtx: u16,
    next_fec: u16,
}

impl Writer {
    pub(super) fn new(ssrcs: Ssrcs) -> Self {
        Self { ssrcs, next_number: 0, next_rtx: 0, next_fec: 0 }
    }

    /// Creates the next media packet.
    pub(super) fn media(
        &mut self,
        captured: Timestamp,
        start: Descriptor,
        last: bool,
        size: DataSize,
    ) -> Packet {
        let (number, timestamp) = (self.next_number as u16, rtp_timestamp(captured));
        let header = RtpHeader::new(self.ssrcs.media, PAYLOAD_TYPE, number, timestamp)
            .with_marker(last)
            .with_transport_sequence_number(Some((EXTENSION_ID, 0)));
        self.next_number += 1;
        Packet { kind: Kind::Media, size, header, csrc: None, payload: start.emit().to_vec() }
    }

    /// Creates a retransmission of a media packet [RFC4588 §4].
    pub(super) fn rtx(&mut self, original: &Packet) -> Packet {
        let header = original
            .header
            .with_payload_type(RTX_PAYLOAD_TYPE)
            .with_sequence_number(self.next_rtx)
            .with_ssrc(self.ssrcs.rtx);
        self.next_rtx = self.next_rtx.wrapping_add(1);
        let rtx =
            Rtx { sequence_number: original.header.sequence_number, payload: &original.payload };
        let mut payload = vec![0; rtx.size()];
        rtx.emit(&mut payload);
        Packet { kind: Kind::Rtx, size: original.size + RTX_OVERHEAD, header, csrc: None, payload }
    }

    /// Creates a padding packet. It is part of the retransmission stream, because the receiver
    /// requests no packets that are missing there.
    pub(super) fn padding(&mut self, now: Timestamp, size: DataSize) -> Packet {
        let timestamp = rtp_timestamp(now);
        let header = RtpHeader::new(self.ssrcs.rtx, RTX_PAYLOAD_TYPE, self.next_rtx, timestamp)
            .with_transport_sequence_number(Some((EXTENSION_ID, 0)));
        self.next_rtx = self.next_rtx.wrapping_add(1);
        Packet { kind: Kind::Rtx, size, header, csrc: None, payload: Vec::new() }
    }

    /// Creates the parity packet of a group [RFC8627 §4.2].
    pub(super) fn fec(&mut self, now: Timestamp, group: &Group) -> Packet {
        let timestamp = rtp_timestamp(now);
        let header = RtpHeader::new(self.ssrcs.fec, FEC_PAYLOAD_TYPE, self.next_fec, timestamp)
            .with_transport_sequence_number(Some((EXTENSION_ID, 0)));
        self.next_fec = self.next_fec.wrapping_add(1);
        let fec = fec_header(group);
        let mut payload = vec![0; fec.size() + BODY];
        let size = fec.emit(&mut payload);
        payload[size..].copy_from_slice(&group.parity.body);
        let csrc = Some(self.ssrcs.media);
        Packet { kind: Kind::Fec, size: fec_size(group), header, csrc, payload }
    }
}

fn fec_header(group: &Group) -> flexfec::Header {
    let places = (0..group.packets).map(|index| (index * group.step) as u32);
    let mask = Mask::new(places).expect("a group fits a mask");
    let mut header = flexfec::Header::new(group.first as u16, mask);
    header.protect(group.parity.flags, group.parity.length, group.parity.timestamp);
    header
}

/// Size on the wire of a group's parity packet.
pub(super) fn fec_size(group: &Group) -> DataSize {
    let headers = RTP_HEADER - FIXED_HEADER + RtpHeader::CSRC_SIZE + fec_header(group).size();
    DataSize::from_bytes(AROUND + headers as u64 + u64::from(group.longest))
}

/// Content of a packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// A media packet, original or retransmission, with its unwrapped number.
    Media(Kind, i64, Parity),
    /// The parity of the media packets with these unwrapped numbers.
    Parity(Vec<i64>, Parity),
    /// Padding.
    Nothing,
}

/// The shortest descriptor that says the same of a packet as its own, which may have the fields of
/// temporal layers.
fn start_of(payload: &[u8]) -> [u8; Descriptor::SIZE] {
    Descriptor::parse(payload).expect("media packets begin a payload").emit()
}

/// Reads packets and unwraps their counters.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    ssrcs: Ssrcs,
    numbers: SeqUnwrapper,
    newest: Option<i64>,
    timestamps: Unwrapper<32>,
}

impl Reader {
    pub(super) fn new(ssrcs: Ssrcs) -> Self {
        let (numbers, timestamps) = (SeqUnwrapper::default(), Unwrapper::default());
        Self { ssrcs, numbers, newest: None, timestamps }
    }

    /// Reads a packet of the flow; `size` is that of the whole IP packet.
    pub(super) fn read(&mut self, view: &View<'_>, size: DataSize) -> Arrived {
        let header = view.header(EXTENSION_IDS);
        if view.payload().is_empty() {
            return Arrived::Nothing;
        }
        if header.ssrc == self.ssrcs.media {
            let number = self.numbers.peek(header.sequence_number.into());
            // Only the newest number becomes the reference for unwrapping. Otherwise one very late
            // packet would move it back.
            if self.newest.is_none_or(|newest| number > newest) {
                self.newest = Some(number);
                self.numbers.set_last(number);
            }
            let packet = Parity::of(&header, start_of(view.payload()), length(size));
            return Arrived::Media(Kind::Media, number, packet);
        }
        if header.ssrc == self.ssrcs.rtx {
            let rtx = Rtx::parse(view.payload()).expect("a retransmission says of what");
            let start = start_of(rtx.payload);
            let original = header.with_payload_type(PAYLOAD_TYPE);
            let packet = Parity::of(&original, start, length(size.saturating_sub(RTX_OVERHEAD)));
            let number = self.numbers.peek(rtx.sequence_number.into());
            return Arrived::Media(Kind::Rtx, number, packet);
        }
        let (fec, body) = flexfec::Header::parse(view.payload())
            .expect("what is neither media nor retransmission is parity");
        let numbers = fec.sequence_numbers().map(|number| self.numbers.peek(number.into()));
        Arrived::Parity(
            numbers.collect(),
            Parity {
                flags: fec.flags(),
                timestamp: fec.timestamp,
                length: fec.length,
                body: *body.first_chunk().expect("the simulator's own parity has a body"),
            },
        )
    }

    /// Reads the frame information of a media packet.
    pub(super) fn media(&mut self, number: i64, packet: &Parity) -> MediaPacket {
        let start = Descriptor::parse(packet.start()).expect("media packets begin a payload");
        let ticks = self.timestamps.unwrap(packet.timestamp);
        MediaPacket {
            number,
            captured: Timestamp::from_secs_f64(ticks as f64 / VIDEO_CLOCK_HZ),
            first: start != Descriptor::Continuation,
            last: packet.marker(),
            key: start == Descriptor::KeyFrameStart,
            receipt: Receipt::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::fec::FecEncoder;

    const SSRCS: Ssrcs = Ssrcs { media: 7, rtx: 8, fec: 9 };
    const SIZE: DataSize = DataSize::from_bytes(1_000);

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    /// A key frame of two packets.
    fn key_frame(writer: &mut Writer) -> [Packet; 2] {
        let captured = Timestamp::from_millis(500);
        [
            writer.media(captured, Descriptor::KeyFrameStart, false, SIZE),
            writer.media(captured, Descriptor::Continuation, true, SIZE),
        ]
    }

    fn read(reader: &mut Reader, packet: &Packet) -> Arrived {
        reader.read(&View::parse(&packet.emit()).unwrap(), packet.size)
    }

    #[test]
    fn a_media_packet_says_where_in_its_frame_it_stands() {
        let mut reader = Reader::new(SSRCS);
        let seen = key_frame(&mut Writer::new(SSRCS)).map(|sent| {
            let Arrived::Media(Kind::Media, number, packet) = read(&mut reader, &sent) else {
                panic!("this is media")
            };
            assert_eq!(packet, sent.parity());
            reader.media(number, &packet)
        });
        let captured = Timestamp::from_millis(500);
        let receipt = Receipt::default();
        let first =
            MediaPacket { number: 0, captured, first: true, last: false, key: true, receipt };
        let last =
            MediaPacket { number: 1, captured, first: false, last: true, key: false, receipt };
        assert_eq!(seen, [first, last]);
    }

    // [RFC4588 §4]
    #[test]
    fn a_retransmission_carries_the_packet_that_it_repeats() {
        let mut writer = Writer::new(SSRCS);
        let [_, original] = key_frame(&mut writer);
        let rtx = writer.rtx(&original);
        assert_eq!((rtx.size, rtx.emit().len()), (bytes(1_002), 24));
        let emitted = rtx.emit();
        let view = View::parse(&emitted).unwrap();
        assert_eq!((view.ssrc(), view.sequence_number(), view.marker()), (8, 0, true));
        assert_eq!(view.payload_type(), RTX_PAYLOAD_TYPE);
        assert_eq!((rtx.repeated(), original.repeated()), (Some(1), None));
        assert_eq!(
            read(&mut Reader::new(SSRCS), &rtx),
            Arrived::Media(Kind::Rtx, 1, original.parity())
        );
        assert_eq!(writer.rtx(&original).header.sequence_number, 1);
    }

    // [RFC8627 §4.2]
    #[test]
    fn parity_crosses_the_wire_with_the_numbers_of_its_packets() {
        let mut writer = Writer::new(SSRCS);
        let mut encoder = FecEncoder::with_loss_ratio(0.02);
        let now = Timestamp::from_millis(500);
        for (number, packet) in (0..).zip(key_frame(&mut writer)) {
            encoder.on_packet(now, number, packet.parity());
        }
        let group = encoder.due(Timestamp::from_secs(2), true).unwrap();
        let fec = writer.fec(now, group);
        // RTP header with CSRC: 24 B; FEC header: 12 B; then the packets without their fixed
        // headers.
        assert_eq!(fec.size, bytes(28 + 24 + 12 + (1_000 - 28 - 12 - 10) + 10));
        assert_eq!(fec.size, fec_size(group));
        let emitted = fec.emit();
        assert_eq!(emitted.len(), 24 + 12 + 10);
        let view = View::parse(&emitted).unwrap();
        assert_eq!((view.ssrc(), view.csrcs().collect()), (9, vec![7]));
        let arrived = read(&mut Reader::new(SSRCS), &fec);
        assert_eq!(arrived, Arrived::Parity(vec![0, 1], group.parity));
    }

    // [RFC8627 §4.2.2.1]
    #[test]
    fn the_mask_names_every_second_packet_where_two_groups_take_turns() {
        let mut writer = Writer::new(SSRCS);
        let [first, second] = key_frame(&mut writer).map(|packet| packet.parity());
        let mut group = Group::new(Timestamp::ZERO, 5, 2);
        for packet in [&first, &second, &first] {
            group.add(packet);
        }
        let arrived = read(&mut Reader::new(SSRCS), &writer.fec(Timestamp::ZERO, &group));
        assert_eq!(arrived, Arrived::Parity(vec![5, 7, 9], group.parity));
    }

    #[test]
    fn numbers_and_timestamps_count_on_over_their_wraps() {
        let mut writer = Writer::new(SSRCS);
        let mut reader = Reader::new(SSRCS);
        let mut last = None;
        // Fourteen hours, in which the 32-bit clock of 90 kHz wraps once and the sequence numbers
        // twice.
        for minute in 0..140_000 {
            let captured = Timestamp::from_millis(minute * 360);
            let sent = writer.media(captured, Descriptor::KeyFrameStart, true, SIZE);
            let Arrived::Media(_, number, packet) = read(&mut reader, &sent) else {
                panic!("this is media")
            };
            last = Some(reader.media(number, &packet));
        }
        let last = last.unwrap();
        assert_eq!((last.number, last.captured), (139_999, Timestamp::from_millis(50_399_640)));
    }
}
