//! RTP packets [RFC3550 §5.1] with header extensions [RFC8285 §4].
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|X|  CC   |M|     PT      |       sequence number         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           timestamp                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                             SSRC                              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                CSRC, as many as CC says (0..15)               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  extension block if X, payload, padding whose last byte is    |
//! |  its length if P                                              |
//! ```
//!
//! A view reads any packet. The value, `RtpHeader`, has the fields that a congestion-controlled
//! sender fills in itself: no CSRC, and the transport-wide sequence number and the absolute send
//! time as typed extensions. All other extensions (`mid`, `rid`, a dependency descriptor) are
//! elements, an id with bytes: [`View::elements`] reads them, [`RtpHeader::emit_with`] writes them.
//!
//! [RFC3550 §5.1]: https://www.rfc-editor.org/rfc/rfc3550#section-5.1
//! [RFC8285 §4]: https://www.rfc-editor.org/rfc/rfc8285#section-4

mod extension;
mod rtx;

use core::fmt;
use core::num::NonZeroU8;

use crate::Error;
use crate::bytes::{Field, read_u16, read_u32, write_u16, write_u32};
use crate::header::VERSION;
pub use extension::{
    AbsSendTime, Element, Elements, ExtensionId, FeedbackRequest, TransportSequenceNumber,
    elements_size, emit_elements,
};
pub use rtx::Rtx;

mod field {
    use super::Field;
    pub const FLAGS: usize = 0;
    pub const PAYLOAD_TYPE: usize = 1;
    pub const SEQUENCE_NUMBER: Field = 2..4;
    pub const TIMESTAMP: Field = 4..8;
    pub const SSRC: Field = 8..12;
    pub const CSRCS: usize = 12;
}

const PADDING_FLAG: u8 = 1 << 5;
const EXTENSION_FLAG: u8 = 1 << 4;
const CSRC_COUNT_MASK: u8 = (1 << 4) - 1;
const MARKER_FLAG: u8 = 1 << 7;
const CSRC_SIZE: usize = 4;

/// A payload type: 7 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadType(u8);

impl PayloadType {
    /// Returns `None` above 127.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 1 << 7 { Some(Self(value)) } else { None }
    }

    /// The number, 0..=127.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Extension ids, as agreed in signalling, for the extensions of [`RtpHeader`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionIds {
    /// For [`RtpHeader::transport_sequence_number`].
    pub transport_sequence_number: Option<ExtensionId>,
    /// For [`RtpHeader::abs_send_time`].
    pub abs_send_time: Option<ExtensionId>,
}

impl ExtensionIds {
    /// No extensions.
    pub const NONE: Self = Self { transport_sequence_number: None, abs_send_time: None };

    with! {
        with_transport_sequence_number: transport_sequence_number: Option<ExtensionId>,
        with_abs_send_time: abs_send_time: Option<ExtensionId>,
    }
}

/// The header of an RTP packet of a congestion-controlled flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RtpHeader {
    /// For video: this packet is the last of its frame.
    pub marker: bool,
    /// Identifies the codec of the payload.
    pub payload_type: PayloadType,
    /// Increases by one with each packet of this SSRC.
    pub sequence_number: u16,
    /// Sampling time of the payload in units of the codec's clock.
    pub timestamp: u32,
    /// The media source.
    pub ssrc: u32,
    /// Transport-wide sequence number, and the extension id agreed for it.
    pub transport_sequence_number: Option<(ExtensionId, u16)>,
    /// Time at which this packet was sent, and the extension id agreed for it.
    pub abs_send_time: Option<(ExtensionId, AbsSendTime)>,
}

impl RtpHeader {
    /// Most elements of [`RtpHeader::emit_with`].
    pub const MAX_ELEMENTS: usize = 14;
    /// Size in bytes of the largest header without further elements: both extensions in the
    /// two-byte form.
    pub const MAX_SIZE: usize = field::CSRCS + 16;
    /// Size in bytes of one CSRC.
    pub const CSRC_SIZE: usize = CSRC_SIZE;

    /// A header without marker and extensions.
    pub const fn new(
        ssrc: u32,
        payload_type: PayloadType,
        sequence_number: u16,
        timestamp: u32,
    ) -> Self {
        Self {
            marker: false,
            payload_type,
            sequence_number,
            timestamp,
            ssrc,
            transport_sequence_number: None,
            abs_send_time: None,
        }
    }

    with! {
        with_marker: marker: bool,
        with_payload_type: payload_type: PayloadType,
        with_sequence_number: sequence_number: u16,
        with_timestamp: timestamp: u32,
        with_ssrc: ssrc: u32,
        with_transport_sequence_number: transport_sequence_number: Option<(ExtensionId, u16)>,
        with_abs_send_time: abs_send_time: Option<(ExtensionId, AbsSendTime)>,
    }

    /// Size in bytes of the header.
    pub fn size(&self) -> usize {
        self.size_with(&[])
    }

    /// Size in bytes of the header with these extension elements besides its own.
    ///
    /// # Panics
    /// If there are more than [`RtpHeader::MAX_ELEMENTS`].
    pub fn size_with(&self, others: &[Element<'_>]) -> usize {
        self.with_elements(others, |elements| match elements {
            [] => field::CSRCS,
            _ => field::CSRCS + elements_size(elements),
        })
    }

    /// Writes the header to the front of `buffer` and returns its size. The payload goes after it.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        if let (Some((id, number)), None) = (self.transport_sequence_number, self.abs_send_time)
            && let Some(block) = extension::block_of_two_bytes(id, number.to_be_bytes())
        {
            // Fast path for the usual packet of a sender with transport-wide feedback.
            self.emit_fixed(buffer);
            buffer[field::FLAGS] |= EXTENSION_FLAG;
            let end = field::CSRCS + block.len();
            buffer[field::CSRCS..end].copy_from_slice(&block);
            return end;
        }
        self.emit_with(&[], buffer)
    }

    /// Like [`RtpHeader::emit`], with these extension elements behind the header's own, such as
    /// `mid`, `rid` or a dependency descriptor.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`size_with`](RtpHeader::size_with), or if there are more than
    /// [`RtpHeader::MAX_ELEMENTS`].
    pub fn emit_with(&self, others: &[Element<'_>], buffer: &mut [u8]) -> usize {
        self.emit_fixed(buffer);
        self.with_elements(others, |elements| {
            if elements.is_empty() {
                return field::CSRCS;
            }
            buffer[field::FLAGS] |= EXTENSION_FLAG;
            field::CSRCS + emit_elements(elements, &mut buffer[field::CSRCS..])
        })
    }

    /// Writes what precedes CSRCs and extensions.
    fn emit_fixed(&self, buffer: &mut [u8]) {
        buffer[field::FLAGS] = VERSION << 6;
        let marker_flag = if self.marker { MARKER_FLAG } else { 0 };
        buffer[field::PAYLOAD_TYPE] = marker_flag | self.payload_type.get();
        write_u16(buffer, field::SEQUENCE_NUMBER, self.sequence_number);
        write_u32(buffer, field::TIMESTAMP, self.timestamp);
        write_u32(buffer, field::SSRC, self.ssrc);
    }

    /// Calls `take` with all extension elements. The data of the header's own is on the stack.
    fn with_elements<T>(
        &self,
        others: &[Element<'_>],
        take: impl FnOnce(&[Element<'_>]) -> T,
    ) -> T {
        let number = self.transport_sequence_number.map(|(id, number)| (id, number.to_be_bytes()));
        let time = self.abs_send_time.map(|(id, time)| (id, time.to_bytes()));
        let mut elements = [Element::EMPTY; Self::MAX_ELEMENTS + 2];
        let mut count = 0;
        if let Some((id, data)) = &number {
            elements[count] = Element::of_array(*id, data);
            count += 1;
        }
        if let Some((id, data)) = &time {
            elements[count] = Element::of_array(*id, data);
            count += 1;
        }
        assert!(others.len() <= Self::MAX_ELEMENTS, "{} extension elements", others.len());
        elements[count..count + others.len()].copy_from_slice(others);
        take(&elements[..count + others.len()])
    }

    /// Writes the header with one CSRC and returns its size, which is [`RtpHeader::CSRC_SIZE`] more
    /// than without. A FEC repair packet names its protected media source in this way.
    ///
    /// # Panics
    /// If `buffer` is shorter than the returned size.
    pub fn emit_with_csrc(&self, csrc: u32, buffer: &mut [u8]) -> usize {
        let size = self.emit(buffer);
        buffer.copy_within(field::CSRCS..size, field::CSRCS + CSRC_SIZE);
        write_u32(buffer, field::CSRCS..field::CSRCS + CSRC_SIZE, csrc);
        buffer[field::FLAGS] |= 1;
        size + CSRC_SIZE
    }

    /// Writes a packet of this header and `padding` bytes without payload, and returns its size
    /// [RFC3550 §5.1]. Senders use such packets to fill their rate or to probe.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size` plus the padding.
    ///
    /// [RFC3550 §5.1]: https://www.rfc-editor.org/rfc/rfc3550#section-5.1
    pub fn emit_padding(&self, padding: NonZeroU8, buffer: &mut [u8]) -> usize {
        let start = self.emit(buffer);
        buffer[field::FLAGS] |= PADDING_FLAG;
        let bytes = &mut buffer[start..start + usize::from(padding.get())];
        bytes.fill(0);
        bytes[bytes.len() - 1] = padding.get();
        start + bytes.len()
    }
}

impl fmt::Display for RtpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { marker, payload_type, sequence_number, timestamp, ssrc, .. } = *self;
        let (payload_type, marker) = (payload_type.get(), if marker { ", marker" } else { "" });
        write!(f, "RTP ssrc {ssrc:#010x}, type {payload_type}, seq {sequence_number}")?;
        write!(f, ", time {timestamp}{marker}")?;
        if let Some((_, number)) = self.transport_sequence_number {
            write!(f, ", transport seq {number}")?;
        }
        if let Some((_, time)) = self.abs_send_time {
            let seconds = f64::from(time.ticks()) / AbsSendTime::TICKS_PER_SECOND as f64;
            write!(f, ", sent {seconds:.3} s")?;
        }
        Ok(())
    }
}

/// An RTP packet in checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    bytes: &'a [u8],
    /// The extension block with its four leading bytes; empty if there is none.
    extension: &'a [u8],
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads the RTP packet of one datagram.
    ///
    /// Damage inside the extension block does not reject the packet: its payload is still usable,
    /// and so are the elements before the damage.
    ///
    /// # Errors
    /// As [`View::parse_header`], and [`Error::Padding`] if the padding does not fit the packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut view = Self::parse_header(bytes)?;
        if view.is_padded() {
            let padding = usize::from(*view.payload.last().ok_or(Error::Padding)?);
            if padding == 0 || padding > view.payload.len() {
                return Err(Error::Padding);
            }
            view.payload = &view.payload[..view.payload.len() - padding];
        }
        Ok(view)
    }

    /// Like [`View::parse`], for a packet whose end is encrypted [RFC3711 §3.1] or cut off.
    /// Everything after the header counts as payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the bytes end within the header, [`Error::Version`] for another
    /// version.
    ///
    /// [RFC3711 §3.1]: https://www.rfc-editor.org/rfc/rfc3711#section-3.1
    pub fn parse_header(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.len() < field::CSRCS {
            return Err(Error::Truncated);
        }
        let flags = bytes[field::FLAGS];
        if flags >> 6 != VERSION {
            return Err(Error::Version);
        }
        let csrcs_size = usize::from(flags & CSRC_COUNT_MASK) * CSRC_SIZE;
        let rest = bytes.get(field::CSRCS + csrcs_size..).ok_or(Error::Truncated)?;
        let extension_size =
            if flags & EXTENSION_FLAG != 0 { extension::block_size(rest)? } else { 0 };
        let (extension, payload) = rest.split_at_checked(extension_size).ok_or(Error::Truncated)?;
        Ok(Self { bytes, extension, payload })
    }

    /// Size in bytes of the header, including CSRCs and extensions.
    pub fn header_size(&self) -> usize {
        let csrcs = usize::from(self.bytes[field::FLAGS] & CSRC_COUNT_MASK) * CSRC_SIZE;
        field::CSRCS + csrcs + self.extension.len()
    }

    /// True if padding follows the payload, or is all that follows the header.
    pub fn is_padded(&self) -> bool {
        self.bytes[field::FLAGS] & PADDING_FLAG != 0
    }

    /// For video: this packet is the last of its frame.
    pub fn marker(&self) -> bool {
        self.bytes[field::PAYLOAD_TYPE] & MARKER_FLAG != 0
    }

    /// Identifies the codec of the payload.
    pub fn payload_type(&self) -> PayloadType {
        PayloadType(self.bytes[field::PAYLOAD_TYPE] & !MARKER_FLAG)
    }

    /// Increases by one with each packet of this SSRC.
    pub fn sequence_number(&self) -> u16 {
        read_u16(self.bytes, field::SEQUENCE_NUMBER)
    }

    /// Sampling time of the payload in units of the codec's clock.
    pub fn timestamp(&self) -> u32 {
        read_u32(self.bytes, field::TIMESTAMP)
    }

    /// The media source.
    pub fn ssrc(&self) -> u32 {
        read_u32(self.bytes, field::SSRC)
    }

    /// The contributing sources, which a mixer has combined.
    pub fn csrcs(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let count = usize::from(self.bytes[field::FLAGS] & CSRC_COUNT_MASK);
        let csrcs = &self.bytes[field::CSRCS..][..count * CSRC_SIZE];
        csrcs.chunks_exact(CSRC_SIZE).map(|csrc| read_u32(csrc, 0..CSRC_SIZE))
    }

    /// The header extension elements in packet order.
    pub fn elements(&self) -> Elements<'a> {
        Elements::new(self.extension)
    }

    /// The data of the first element with this id.
    pub fn element(&self, id: ExtensionId) -> Option<&'a [u8]> {
        self.elements().find(|element| element.id() == id).map(|element| element.data())
    }

    /// The transport-wide sequence number, if there is a valid element with this id.
    pub fn transport_sequence_number(&self, id: ExtensionId) -> Option<TransportSequenceNumber> {
        TransportSequenceNumber::parse(self.element(id)?)
    }

    /// The absolute send time, if there is a valid element with this id.
    pub fn abs_send_time(&self, id: ExtensionId) -> Option<AbsSendTime> {
        AbsSendTime::parse(self.element(id)?)
    }

    /// The payload without padding.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header as a value, with the extensions under these ids. CSRCs and other extensions are
    /// left out.
    pub fn header(&self, ids: ExtensionIds) -> RtpHeader {
        RtpHeader {
            marker: self.marker(),
            payload_type: self.payload_type(),
            sequence_number: self.sequence_number(),
            timestamp: self.timestamp(),
            ssrc: self.ssrc(),
            transport_sequence_number: ids
                .transport_sequence_number
                .and_then(|id| Some((id, self.transport_sequence_number(id)?.sequence_number))),
            abs_send_time: ids.abs_send_time.and_then(|id| Some((id, self.abs_send_time(id)?))),
        }
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (payload_type, sequence_number) = (self.payload_type().get(), self.sequence_number());
        write!(f, "RTP ssrc {:#010x}, type {payload_type}, seq {sequence_number}", self.ssrc())?;
        let marker = if self.marker() { ", marker" } else { "" };
        write!(f, ", time {}{marker}, payload {} B", self.timestamp(), self.payload.len())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    const ID_3: ExtensionId = ExtensionId::new(3).unwrap();
    const ID_5: ExtensionId = ExtensionId::new(5).unwrap();
    const ID_15: ExtensionId = ExtensionId::new(15).unwrap();

    const HEADER: RtpHeader = RtpHeader {
        marker: true,
        payload_type: PayloadType::new(96).unwrap(),
        sequence_number: 0xfffe,
        timestamp: 0x0001_5f90,
        ssrc: 0x0bad_cafe,
        transport_sequence_number: Some((ID_5, 0x1234)),
        abs_send_time: None,
    };
    const BYTES: [u8; 20] = [
        0x90, 0xe0, 0xff, 0xfe, // V=2, X; marker and type 96; sequence number
        0x00, 0x01, 0x5f, 0x90, // timestamp
        0x0b, 0xad, 0xca, 0xfe, // SSRC
        0xbe, 0xde, 0x00, 0x01, // one-byte form, one word
        0x51, 0x12, 0x34, 0x00, // id 5, two bytes; padding
    ];

    /// Only the transport-wide sequence number, under this id.
    fn number(id: ExtensionId) -> ExtensionIds {
        ExtensionIds { transport_sequence_number: Some(id), abs_send_time: None }
    }

    fn emit(header: &RtpHeader) -> Vec<u8> {
        let mut bytes = alloc::vec![0xaa; RtpHeader::MAX_SIZE];
        let size = header.emit(&mut bytes);
        assert_eq!(size, header.size());
        bytes.truncate(size);
        bytes
    }

    // [RFC3550 §5.1], [RFC8285 §4.2]
    #[test]
    fn a_header_with_a_one_byte_extension_is_written_and_read() {
        assert_eq!(emit(&HEADER), BYTES);
        let view = View::parse(&BYTES).unwrap();
        assert_eq!(view.header(number(ID_5)), HEADER);
        assert_eq!(view.payload(), []);
        assert_eq!(
            HEADER.to_string(),
            "RTP ssrc 0x0badcafe, type 96, seq 65534, time 90000, marker, transport seq 4660"
        );
        assert_eq!(
            view.to_string(),
            "RTP ssrc 0x0badcafe, type 96, seq 65534, time 90000, marker, payload 0 B"
        );
    }

    // [RFC8285 §4.3]
    #[test]
    fn an_id_above_14_takes_the_two_byte_form() {
        let header = RtpHeader { transport_sequence_number: Some((ID_15, 0x1234)), ..HEADER };
        let bytes = emit(&header);
        assert_eq!(bytes[12..], [0x10, 0x00, 0x00, 0x01, 15, 2, 0x12, 0x34]);
        assert_eq!(View::parse(&bytes).unwrap().header(number(ID_15)), header);
    }

    // [REMB §3]
    #[test]
    fn a_header_carries_when_it_was_sent_alone_or_behind_the_sequence_number() {
        let time = AbsSendTime::from_nanos(1_500_000_000);
        let header = RtpHeader { abs_send_time: Some((ID_3, time)), ..HEADER };
        let bytes = emit(&header);
        assert_eq!(bytes[12..], [0xbe, 0xde, 0, 2, 0x51, 0x12, 0x34, 0x32, 0x06, 0, 0, 0]);
        let both =
            ExtensionIds { transport_sequence_number: Some(ID_5), abs_send_time: Some(ID_3) };
        assert_eq!(View::parse(&bytes).unwrap().header(both), header);
        assert!(header.to_string().ends_with(", transport seq 4660, sent 1.500 s"));

        let alone = RtpHeader { transport_sequence_number: None, ..header };
        let bytes = emit(&alone);
        assert_eq!(bytes[12..], [0xbe, 0xde, 0, 1, 0x32, 0x06, 0, 0]);
        assert_eq!(View::parse(&bytes).unwrap().header(both), alone);
    }

    // [RFC8285 §4.2]
    #[test]
    fn other_extensions_are_written_behind_the_header_s_own_and_read_as_elements() {
        let others = [
            Element::new(ID_3, b"audio").unwrap(),             // mid
            Element::new(ID_15, &[0x80, 0, 1, 0, 7]).unwrap(), // a dependency descriptor
        ];
        let mut bytes = [0xaa; 64];
        let size = HEADER.emit_with(&others, &mut bytes);
        assert_eq!(size, HEADER.size_with(&others));
        let view = View::parse(&bytes[..size]).unwrap();
        assert_eq!(view.header(number(ID_5)), HEADER);
        let read: Vec<_> = view.elements().skip(1).collect();
        assert_eq!(read, others);

        let plain = RtpHeader { transport_sequence_number: None, ..HEADER };
        let size = plain.emit_with(&others[..1], &mut bytes);
        assert!(View::parse(&bytes[..size]).unwrap().elements().eq([others[0]]));
    }

    #[test]
    #[should_panic(expected = "15 extension elements")]
    fn a_header_takes_at_most_14_other_elements() {
        let element = Element::new(ID_3, &[1]).unwrap();
        HEADER.size_with(&[element; RtpHeader::MAX_ELEMENTS + 1]);
    }

    #[test]
    fn the_largest_header_has_both_extensions_in_the_two_byte_form() {
        let time = AbsSendTime::from_ticks(0);
        let header = RtpHeader { abs_send_time: Some((ID_15, time)), ..HEADER };
        assert_eq!(header.size(), RtpHeader::MAX_SIZE);
    }

    #[test]
    fn a_header_without_extension_is_twelve_bytes() {
        let header = RtpHeader { marker: false, transport_sequence_number: None, ..HEADER };
        let bytes = emit(&header);
        assert_eq!(bytes[..2], [0x80, 0x60]);
        assert_eq!(bytes.len(), 12);
        assert_eq!(View::parse(&bytes).unwrap().header(number(ID_5)), header);
    }

    #[test]
    fn every_truncation_of_the_header_is_rejected() {
        for len in 0..BYTES.len() {
            assert_eq!(View::parse(&BYTES[..len]), Err(Error::Truncated), "{len}");
        }
    }

    #[test]
    fn csrcs_lie_between_ssrc_and_extension() {
        let mut bytes = BYTES.to_vec();
        bytes[0] |= 2;
        bytes.splice(12..12, [0, 0, 0, 1, 0, 0, 0, 2]);
        let view = View::parse(&bytes).unwrap();
        assert!(view.csrcs().eq([1, 2]));
        assert_eq!(view.header(number(ID_5)), HEADER);
    }

    // [RFC3550 §5.1]
    #[test]
    fn a_contributing_source_is_written_before_the_extension() {
        let mut bytes = [0xaa; 24];
        assert_eq!(HEADER.emit_with_csrc(0x0102_0304, &mut bytes), 24);
        let mut expected = BYTES.to_vec();
        expected[0] |= 1;
        expected.splice(12..12, [1, 2, 3, 4]);
        assert_eq!(bytes[..], expected);
    }

    #[test]
    fn padding_is_cut_from_the_payload() {
        let mut bytes = BYTES.to_vec();
        bytes[0] |= PADDING_FLAG;
        assert_eq!(View::parse(&bytes), Err(Error::Padding));
        bytes.extend([1, 2, 3, 0, 2]);
        assert_eq!(View::parse(&bytes).unwrap().payload(), [1, 2, 3]);
        for illegal in [0, 6] {
            *bytes.last_mut().unwrap() = illegal;
            assert_eq!(View::parse(&bytes), Err(Error::Padding));
        }
    }

    // [RFC3711 §3.1]
    #[test]
    fn a_header_is_read_where_the_padding_is_encrypted_or_cut_off() {
        let mut bytes = BYTES.to_vec();
        bytes[0] |= PADDING_FLAG;
        let cut = View::parse_header(&bytes).unwrap();
        assert_eq!((cut.header(number(ID_5)), cut.payload()), (HEADER, &[][..]));
        bytes.extend([1, 2, 3, 0]);
        let encrypted = View::parse_header(&bytes).unwrap();
        assert_eq!(
            (encrypted.header_size(), encrypted.payload()),
            (BYTES.len(), &[1, 2, 3, 0][..])
        );
    }

    // [RFC3550 §5.1]
    #[test]
    fn a_packet_of_padding_alone_has_no_payload() {
        let header = RtpHeader { marker: false, transport_sequence_number: None, ..HEADER };
        let mut bytes = [0xaa; 12 + 255];
        assert_eq!(header.emit_padding(NonZeroU8::new(3).unwrap(), &mut bytes), 15);
        assert_eq!((bytes[0], &bytes[12..15]), (0xa0, &[0, 0, 3][..]));
        assert_eq!(header.emit_padding(NonZeroU8::MAX, &mut bytes), bytes.len());
        let view = View::parse(&bytes).unwrap();
        assert_eq!((view.header(number(ID_5)), view.payload()), (header, &[][..]));
    }

    #[test]
    fn a_packet_of_another_version_is_rejected() {
        let mut bytes = BYTES;
        bytes[0] = 0x50;
        assert_eq!(View::parse(&bytes), Err(Error::Version));
    }

    #[test]
    fn a_payload_type_has_seven_bits() {
        assert_eq!(PayloadType::new(127).map(PayloadType::get), Some(127));
        assert_eq!(PayloadType::new(128), None);
    }
}
