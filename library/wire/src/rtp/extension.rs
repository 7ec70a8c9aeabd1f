//! RTP header extension elements in both forms [RFC8285 §4.2, §4.3], and two kinds of data in them:
//! the transport-wide sequence number and the absolute send time.
//!
//! ```text
//!   one-byte form                      two-byte form
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            0xBEDE             |  |        0x100          |appbits|
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    length of data in words    |  |    length of data in words    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  ID   | L - 1 | L data bytes ..  |      ID       |       L       | L data bytes ..
//! ```
//!
//! Elements follow each other. A zero byte between them is padding.

use core::num::NonZeroU8;

use crate::Error;
use crate::bytes::{Field, read_u16, read_u24, write_u16};

mod field {
    use super::Field;
    pub const PROFILE: Field = 0..2;
    pub const LENGTH: Field = 2..4;
    pub const DATA: usize = 4;
}

const WORD: usize = 4;
const ONE_BYTE_PROFILE: u16 = 0xbede;
const TWO_BYTE_PROFILE: u16 = 0x1000;
/// Bits for the application's own use in the two-byte profile word.
const APPBITS_MASK: u16 = 0x000f;
/// Largest id of the one-byte form.
const ONE_BYTE_MAX_ID: u8 = 14;
/// Reserved id in the one-byte form: the reader stops at it.
const ONE_BYTE_STOP_ID: u8 = 15;
/// Maximum number of data bytes in an element of the one-byte form.
const ONE_BYTE_MAX_DATA: usize = 16;

/// The local identifier of an extension, as agreed in signalling: 1..=255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionId(NonZeroU8);

impl ExtensionId {
    /// Returns `None` for 0, which marks padding.
    pub const fn new(value: u8) -> Option<Self> {
        match NonZeroU8::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The number, 1..=255.
    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

/// One extension element: an id and at most 255 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    id: ExtensionId,
    data: &'a [u8],
}

impl<'a> Element<'a> {
    /// Without data, to fill an array.
    pub(super) const EMPTY: Self = Self { id: ExtensionId(NonZeroU8::MIN), data: &[] };

    /// Returns `None` if the data is longer than 255 bytes.
    pub fn new(id: ExtensionId, data: &'a [u8]) -> Option<Self> {
        (data.len() <= usize::from(u8::MAX)).then_some(Self { id, data })
    }

    /// An element whose data is known at compile time to be short enough.
    pub(super) const fn of_array<const N: usize>(id: ExtensionId, data: &'a [u8; N]) -> Self {
        const { assert!(N <= u8::MAX as usize) };
        Self { id, data }
    }

    /// The local identifier.
    pub const fn id(&self) -> ExtensionId {
        self.id
    }

    /// The data bytes.
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }

    fn fits_one_byte_form(&self) -> bool {
        self.id.get() <= ONE_BYTE_MAX_ID && (1..=ONE_BYTE_MAX_DATA).contains(&self.data.len())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    OneByte,
    TwoByte,
}

impl Form {
    /// The smaller form that can represent all of `elements`.
    fn of(elements: &[Element<'_>]) -> Self {
        if elements.iter().all(Element::fits_one_byte_form) { Self::OneByte } else { Self::TwoByte }
    }

    const fn element_header_size(self) -> usize {
        match self {
            Self::OneByte => 1,
            Self::TwoByte => 2,
        }
    }
}

/// Size in bytes of the extension block that `emit_elements` writes.
pub fn elements_size(elements: &[Element<'_>]) -> usize {
    let header_size = Form::of(elements).element_header_size();
    let data: usize = elements.iter().map(|element| header_size + element.data.len()).sum();
    field::DATA + data.next_multiple_of(WORD)
}

/// Writes an extension block to the front of `buffer` and returns its size.
///
/// # Panics
/// If `buffer` is shorter than `elements_size`, or if the block exceeds the range of its length
/// field (a quarter of a megabyte).
pub fn emit_elements(elements: &[Element<'_>], buffer: &mut [u8]) -> usize {
    let form = Form::of(elements);
    let size = elements_size(elements);
    let block = &mut buffer[..size];
    let profile = match form {
        Form::OneByte => ONE_BYTE_PROFILE,
        Form::TwoByte => TWO_BYTE_PROFILE,
    };
    let words =
        u16::try_from((size - field::DATA) / WORD).expect("the block fits its length field");
    write_u16(block, field::PROFILE, profile);
    write_u16(block, field::LENGTH, words);
    let mut at = field::DATA;
    for Element { id, data } in elements {
        match form {
            // This form is chosen only if the data length less one fits four bits.
            Form::OneByte => block[at] = id.get() << 4 | (data.len() - 1) as u8,
            Form::TwoByte => block[at..at + 2].copy_from_slice(&[id.get(), data.len() as u8]),
        }
        at += form.element_header_size();
        block[at..at + data.len()].copy_from_slice(data);
        at += data.len();
    }
    block[at..].fill(0);
    size
}

/// The extension block that [`emit_elements`] writes for one element of two bytes. `None` if its id
/// requires the two-byte form.
#[inline]
pub(super) fn block_of_two_bytes(
    id: ExtensionId,
    data: [u8; 2],
) -> Option<[u8; field::DATA + WORD]> {
    if id.get() > ONE_BYTE_MAX_ID {
        return None;
    }
    let [profile, rest] = ONE_BYTE_PROFILE.to_be_bytes();
    Some([profile, rest, 0, 1, id.get() << 4 | 1, data[0], data[1], 0])
}

/// Size of the extension block at the front of `bytes`, which may be cut off.
pub(super) fn block_size(bytes: &[u8]) -> Result<usize, Error> {
    if bytes.len() < field::DATA {
        return Err(Error::Truncated);
    }
    Ok(field::DATA + usize::from(read_u16(bytes, field::LENGTH)) * WORD)
}

/// Iterator over the elements of an extension block. It ends where the block is damaged or must not
/// be read.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    form: Form,
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Iterates over an extension block, which is empty if the packet has none.
    pub(super) fn new(block: &'a [u8]) -> Self {
        let none = Self { form: Form::OneByte, rest: &[] };
        if block.len() < field::DATA {
            return none;
        }
        let rest = &block[field::DATA..];
        match read_u16(block, field::PROFILE) {
            ONE_BYTE_PROFILE => Self { form: Form::OneByte, rest },
            profile if profile & !APPBITS_MASK == TWO_BYTE_PROFILE => {
                Self { form: Form::TwoByte, rest }
            }
            _ => none, // The extension of another profile.
        }
    }

    /// Reads the id and data length of the next element. Skips padding.
    fn next_header(&mut self) -> Option<(ExtensionId, usize)> {
        match self.form {
            Form::OneByte => {
                let start = self.rest.iter().position(|byte| byte >> 4 != 0)?;
                let header = self.rest[start];
                self.rest = &self.rest[start + 1..];
                let id = header >> 4;
                if id == ONE_BYTE_STOP_ID {
                    return None;
                }
                Some((ExtensionId::new(id)?, usize::from(header & 0x0f) + 1))
            }
            Form::TwoByte => {
                let start = self.rest.iter().position(|&id| id != 0)?;
                let [id, length, rest @ ..] = &self.rest[start..] else { return None };
                self.rest = rest;
                Some((ExtensionId::new(*id)?, usize::from(*length)))
            }
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let element = self.next_header().and_then(|(id, length)| {
            let (data, rest) = self.rest.split_at_checked(length)?;
            self.rest = rest;
            Some(Element { id, data })
        });
        if element.is_none() {
            self.rest = &[];
        }
        element
    }
}

impl core::iter::FusedIterator for Elements<'_> {}

/// Data of the transport-wide sequence number extension. The first form has 2 bytes. The second
/// form has 4 bytes and requests feedback, as libwebrtc defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportSequenceNumber {
    /// Transport-wide sequence number: counts all packets of the transport.
    pub sequence_number: u16,
    /// Present if the sender asks for immediate feedback.
    pub request: Option<FeedbackRequest>,
}

/// A sender's request for immediate feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackRequest {
    /// Whether the feedback should include arrival times.
    pub with_timestamps: bool,
    /// Number of packets to report, counted back from this one, which is included; 15 bits, not
    /// zero.
    pub packet_count: u16,
}

impl TransportSequenceNumber {
    // [TWCC] has the first form only.
    const REQUEST_TIMESTAMPS_FLAG: u16 = 1 << 15;

    /// Returns `None` unless the data length is that of one of the forms.
    pub fn parse(data: &[u8]) -> Option<Self> {
        if data.len() != 2 && data.len() != 4 {
            return None;
        }
        let request = if data.len() == 4 { read_u16(data, 2..4) } else { 0 };
        let packet_count = request & !Self::REQUEST_TIMESTAMPS_FLAG;
        let with_timestamps = request & Self::REQUEST_TIMESTAMPS_FLAG != 0;
        Some(Self {
            sequence_number: read_u16(data, 0..2),
            request: (packet_count != 0)
                .then_some(FeedbackRequest { with_timestamps, packet_count }),
        })
    }
}

/// Data of the absolute send time extension [REMB §3]: the time at which a packet was sent, on the
/// sender's clock. It has 24 bits: 6 of seconds and 18 of fraction. It wraps every 64 s.
///
/// [REMB §3]: https://datatracker.ietf.org/doc/html/draft-alvestrand-rmcat-remb-03#section-3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsSendTime(u32);

impl AbsSendTime {
    /// Ticks per second. One tick is 3.8 us.
    pub const TICKS_PER_SECOND: i64 = 1 << 18;
    const BITS: u32 = 24;

    /// Keeps the low 24 bits.
    pub const fn from_ticks(ticks: i64) -> Self {
        Self((ticks & ((1 << Self::BITS) - 1)) as u32)
    }

    /// The last tick at or before a time in nanoseconds since any origin.
    pub const fn from_nanos(nanos: i64) -> Self {
        const NANOS_PER_SECOND: i64 = 1_000_000_000;
        // Whole seconds apart, so that 64 bits are enough.
        let (seconds, rest) =
            (nanos.div_euclid(NANOS_PER_SECOND), nanos.rem_euclid(NANOS_PER_SECOND));
        let ticks_of_rest = rest * Self::TICKS_PER_SECOND / NANOS_PER_SECOND;
        Self::from_ticks(seconds * Self::TICKS_PER_SECOND + ticks_of_rest)
    }

    /// The 24 bits as on the wire.
    pub const fn ticks(self) -> u32 {
        self.0
    }

    /// The data of the extension element.
    pub const fn to_bytes(self) -> [u8; 3] {
        let [_, bytes @ ..] = self.0.to_be_bytes();
        bytes
    }

    /// Returns `None` unless the data has three bytes.
    pub fn parse(data: &[u8]) -> Option<Self> {
        if data.len() == 3 { Some(Self(read_u24(data, 0..3))) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn id(value: u8) -> ExtensionId {
        ExtensionId::new(value).unwrap()
    }

    fn element(value: u8, data: &[u8]) -> Element<'_> {
        Element::new(id(value), data).unwrap()
    }

    #[test]
    fn the_short_way_writes_the_block_of_one_element_of_two_bytes() {
        for value in [1, 7, 14] {
            let block = block_of_two_bytes(id(value), [3, 9]).unwrap();
            assert_eq!(emit(&[element(value, &[3, 9])]), block);
        }
        assert_eq!(block_of_two_bytes(id(15), [3, 9]), None);
    }

    fn emit(elements: &[Element<'_>]) -> Vec<u8> {
        let mut bytes = vec![0xaa; elements_size(elements)];
        assert_eq!(emit_elements(elements, &mut bytes), bytes.len());
        bytes
    }

    // [RFC8285 §4.2]
    #[test]
    fn one_byte_elements_are_written_and_read() {
        let elements = [element(1, &[0x11]), element(14, &[0x22, 0x33, 0x44])];
        let bytes = [0xbe, 0xde, 0, 2, 0x10, 0x11, 0xe2, 0x22, 0x33, 0x44, 0, 0];
        assert_eq!(emit(&elements), bytes);
        assert!(Elements::new(&bytes).eq(elements));
    }

    // [RFC8285 §4.3]
    #[test]
    fn two_byte_elements_are_written_and_read() {
        let elements = [element(1, &[]), element(255, &[0x22, 0x33, 0x44])];
        let bytes = [0x10, 0x00, 0, 2, 1, 0, 255, 3, 0x22, 0x33, 0x44, 0];
        assert_eq!(emit(&elements), bytes);
        assert!(Elements::new(&bytes).eq(elements));
    }

    #[test]
    fn data_of_17_bytes_takes_the_two_byte_form() {
        assert_eq!(emit(&[element(1, &[7; 16])])[..2], [0xbe, 0xde]);
        assert_eq!(emit(&[element(1, &[7; 17])])[..2], [0x10, 0x00]);
    }

    #[test]
    fn an_element_holds_at_most_255_bytes() {
        assert!(Element::new(id(1), &[0; 255]).is_some());
        assert!(Element::new(id(1), &[0; 256]).is_none());
    }

    #[test]
    fn application_bits_do_not_hide_the_two_byte_form() {
        assert_eq!(Elements::new(&[0x10, 0x0f, 0, 1, 9, 2, 1, 2]).count(), 1);
        assert_eq!(Elements::new(&[0x10, 0x1f, 0, 1, 9, 2, 1, 2]).count(), 0);
    }

    // [RFC8285 §4.2]
    #[test]
    fn padding_between_elements_is_skipped() {
        let one_byte = [0xbe, 0xde, 0, 2, 0, 0x10, 0x11, 0, 0, 0x20, 0x22, 0];
        assert!(Elements::new(&one_byte).eq([element(1, &[0x11]), element(2, &[0x22])]));
        let two_byte = [0x10, 0, 0, 2, 0, 1, 1, 0x11, 0, 2, 0, 0];
        assert!(Elements::new(&two_byte).eq([element(1, &[0x11]), element(2, &[])]));
    }

    // [RFC8285 §4.2]
    #[test]
    fn id_15_ends_the_one_byte_form() {
        let bytes = [0xbe, 0xde, 0, 2, 0x10, 0x11, 0xf0, 0x33, 0x20, 0x22, 0, 0];
        let mut elements = Elements::new(&bytes);
        assert_eq!(elements.next(), Some(element(1, &[0x11])));
        assert_eq!(elements.next(), None);
        assert_eq!(elements.next(), None, "what follows stays unread");
    }

    #[test]
    fn an_element_longer_than_its_block_ends_the_walk() {
        let one_byte = [0xbe, 0xde, 0, 1, 0x10, 0x11, 0x23, 0x22];
        assert!(Elements::new(&one_byte).eq([element(1, &[0x11])]));
        let two_byte = [0x10, 0, 0, 1, 1, 1, 0x11, 2];
        assert!(Elements::new(&two_byte).eq([element(1, &[0x11])]));
    }

    // [TWCC]
    #[test]
    fn a_transport_sequence_number_may_carry_a_request() {
        let number = |request| TransportSequenceNumber { sequence_number: 0x0102, request };
        let request = |with_timestamps, packet_count| {
            Some(number(Some(FeedbackRequest { with_timestamps, packet_count })))
        };
        assert_eq!(TransportSequenceNumber::parse(&[1, 2]), Some(number(None)));
        assert_eq!(TransportSequenceNumber::parse(&[1, 2, 0x80, 0]), Some(number(None)));
        assert_eq!(TransportSequenceNumber::parse(&[1, 2, 0x80, 5]), request(true, 5));
        assert_eq!(TransportSequenceNumber::parse(&[1, 2, 0x7f, 0xff]), request(false, 0x7fff));
        for len in [0, 1, 3, 5] {
            assert_eq!(TransportSequenceNumber::parse(&[1; 5][..len]), None);
        }
    }

    // [REMB §3]: 1.5 s are 6 bits of 1 and 18 bits of one half.
    #[test]
    fn an_absolute_send_time_is_in_seconds_with_18_bits_behind_the_point() {
        let time = AbsSendTime::from_nanos(1_500_000_000);
        assert_eq!(time.to_bytes(), [0x06, 0, 0]);
        assert_eq!(AbsSendTime::parse(&[0x06, 0, 0]), Some(time));
        assert_eq!(i64::from(time.ticks()), AbsSendTime::TICKS_PER_SECOND * 3 / 2);
        for len in [0, 1, 2, 4] {
            assert_eq!(AbsSendTime::parse(&[1; 4][..len]), None);
        }
    }

    // [REMB §3]
    #[test]
    fn an_absolute_send_time_wraps_after_64_seconds() {
        assert_eq!(AbsSendTime::from_nanos(64_000_000_000), AbsSendTime::from_ticks(0));
        assert_eq!(AbsSendTime::from_nanos(-1).to_bytes(), [0xff; 3]);
        let years = i64::MAX / 64_000_000_000 * 64_000_000_000;
        assert_eq!(AbsSendTime::from_nanos(years), AbsSendTime::from_ticks(0), "no overflow");
    }
}
