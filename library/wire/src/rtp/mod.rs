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
mod replace;
mod rtx;
#[cfg(test)]
mod tests;

use core::fmt;
use core::num::NonZeroU8;
use core::ops::Range;

use crate::Error;
use crate::bytes::{Field, read_u16, read_u32, write_u16, write_u32};
use crate::header::VERSION;
pub use extension::{
    AbsSendTime, Element, Elements, ExtensionId, FeedbackRequest, TransportSequenceNumber,
    elements_size, emit_elements,
};
pub use replace::replace_element;
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

    /// Where the data of the first element with this id is in the packet.
    pub fn element_range(&self, id: ExtensionId) -> Option<Range<usize>> {
        let data = self.element(id)?;
        // The data is a part of the packet, so the difference of the addresses is its place.
        let start = data.as_ptr() as usize - self.bytes.as_ptr() as usize;
        Some(start..start + data.len())
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
