//! The payload descriptor of VP8, with the places of the numbers that a server rewrites
//! [RFC7741 §4.2].
//!
//! [RFC7741 §4.2]: https://www.rfc-editor.org/rfc/rfc7741#section-4.2

use weir_wire::Error;
use weir_wire::vp8::Descriptor;

use crate::track::Frame;

const EXTENDED_FLAG: u8 = 1 << 7;
const PICTURE_ID_FLAG: u8 = 1 << 7;
const LAYER_INDEX_FLAG: u8 = 1 << 6;
const TEMPORAL_FLAG: u8 = 1 << 5;
const KEY_INDEX_FLAG: u8 = 1 << 4;
const LONG_FLAG: u8 = 1 << 7;
const SYNC_FLAG: u8 = 1 << 5;
/// Largest picture id of the long form.
pub(crate) const PICTURE_ID_MASK: u16 = (1 << 15) - 1;
const SHORT_MASK: u16 = (1 << 7) - 1;

/// What a VP8 payload descriptor says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PayloadDescriptor {
    /// Number of the picture: 15 bits, or 7 in the short form.
    pub picture_id: Option<u16>,
    /// Whether the picture id has the long form.
    pub is_long: bool,
    /// Number of the picture of temporal layer 0 (TL0PICIDX) on which this one depends.
    pub base_index: Option<u8>,
    /// Temporal layer; 0 if there are none.
    pub temporal: u8,
    /// The picture needs only the base layer (the bit Y).
    pub is_switching_point: bool,
    /// The packet is the first of a key frame.
    pub starts_key_frame: bool,
    /// Places of the two numbers in the payload.
    picture_id_at: usize,
    base_index_at: usize,
}

impl PayloadDescriptor {
    /// Reads the beginning of a payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the payload ends within the descriptor.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let start = Descriptor::parse(payload)?;
        let mut found =
            Self { starts_key_frame: start == Descriptor::KeyFrameStart, ..Self::default() };
        // The bytes that follow are there: the parser above has skipped them.
        let byte = payload.first().copied().ok_or(Error::Truncated)?;
        if byte & EXTENDED_FLAG == 0 {
            return Ok(found);
        }
        let present = payload.get(1).copied().ok_or(Error::Truncated)?;
        let mut at = 2;
        if present & PICTURE_ID_FLAG != 0 {
            let high = payload.get(at).copied().ok_or(Error::Truncated)?;
            found.picture_id_at = at;
            found.is_long = high & LONG_FLAG != 0;
            let mut number = u16::from(high) & SHORT_MASK;
            at += 1;
            if found.is_long {
                number = number << 8 | u16::from(payload.get(at).copied().ok_or(Error::Truncated)?);
                at += 1;
            }
            found.picture_id = Some(number);
        }
        if present & LAYER_INDEX_FLAG != 0 {
            found.base_index = Some(payload.get(at).copied().ok_or(Error::Truncated)?);
            found.base_index_at = at;
            at += 1;
        }
        if present & (TEMPORAL_FLAG | KEY_INDEX_FLAG) != 0 {
            let layers = payload.get(at).copied().ok_or(Error::Truncated)?;
            if present & TEMPORAL_FLAG != 0 {
                found.temporal = layers >> 6;
                found.is_switching_point = layers & SYNC_FLAG != 0;
            }
        }
        Ok(found)
    }

    /// What it says of the frame, which belongs to this simulcast stream.
    pub const fn frame(&self, stream: u8) -> Frame {
        Frame::new(stream)
            .with_temporal(self.temporal)
            .with_starts_key_frame(self.starts_key_frame)
            .with_is_switching_point(self.is_switching_point)
    }

    /// Writes other numbers into the payload from which this was parsed. The form stays: the short
    /// one carries the low 7 bits.
    pub(crate) fn rewrite(&self, payload: &mut [u8], picture_id: u16, base_index: u8) {
        let at = self.picture_id_at;
        if self.picture_id.is_some() && self.is_long {
            let number = picture_id & PICTURE_ID_MASK;
            if let Some(bytes) = payload.get_mut(at..at + 2) {
                bytes.copy_from_slice(&[LONG_FLAG | (number >> 8) as u8, number as u8]);
            }
        } else if self.picture_id.is_some()
            && let Some(byte) = payload.get_mut(at)
        {
            *byte = (picture_id & SHORT_MASK) as u8;
        }
        if self.base_index.is_some()
            && let Some(byte) = payload.get_mut(self.base_index_at)
        {
            *byte = base_index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Picture 0x1234, base index 7, temporal layer 1 with Y, start of a key frame.
    const PAYLOAD: [u8; 7] = [0x90, 0xe0, 0x92, 0x34, 7, 0x60, 0x00];

    // [RFC7741 §4.2]
    #[test]
    fn all_numbers_are_read() {
        let found = PayloadDescriptor::parse(&PAYLOAD).unwrap();
        assert_eq!((found.picture_id, found.is_long), (Some(0x1234), true));
        assert_eq!((found.base_index, found.temporal), (Some(7), 1));
        assert!(found.is_switching_point && found.starts_key_frame);
        for len in 0..PAYLOAD.len() {
            assert!(PayloadDescriptor::parse(&PAYLOAD[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn numbers_are_written_in_their_form() {
        let mut payload = PAYLOAD;
        PayloadDescriptor::parse(&PAYLOAD).unwrap().rewrite(&mut payload, 0x7fff, 9);
        assert_eq!(payload, [0x90, 0xe0, 0xff, 0xff, 9, 0x60, 0x00]);
        let mut short = [0x90, 0x80, 0x05, 0x01];
        PayloadDescriptor::parse(&short).unwrap().rewrite(&mut short, 0x181, 0);
        assert_eq!(short, [0x90, 0x80, 0x01, 0x01]);
    }
}
