//! VP8 in RTP: the first bytes of each packet's payload [RFC7741 §4.2, §4.3].
//!
//! ```text
//!      +-+-+-+-+-+-+-+-+
//!      |X|R|N|S|R| PID |  N: no other frame needs this one; S and PID 0: a frame starts here
//!      +-+-+-+-+-+-+-+-+
//!   X: |I|L|T|K|  RSV  |
//!      +-+-+-+-+-+-+-+-+
//!   I: |M| picture id  |  15 bits in two bytes if M, else 7 in one
//!      +-+-+-+-+-+-+-+-+
//!   L: |   TL0PICIDX   |
//!      +-+-+-+-+-+-+-+-+
//! T/K: |TID|Y| KEYIDX  |
//!      +-+-+-+-+-+-+-+-+
//!      | size|H| VER |P|  VP8's own header, at the start of a frame: a key frame unless P
//!      +-+-+-+-+-+-+-+-+
//! ```
//!
//! Parsing skips all optional fields. [`Descriptor`] writes none of them: in a stream where each
//! frame depends on the one before, the start bit is enough to separate the frames.
//!
//! [RFC7741 §4.2, §4.3]: https://www.rfc-editor.org/rfc/rfc7741#section-4.2

use crate::Error;

const EXTENDED_FLAG: u8 = 1 << 7;
const START_FLAG: u8 = 1 << 4;
const PARTITION_MASK: u8 = (1 << 3) - 1;
const PICTURE_ID_FLAG: u8 = 1 << 7;
const LAYER_INDEX_FLAG: u8 = 1 << 6;
const LAYER_FLAGS: u8 = 1 << 5 | 1 << 4;
const LONG_PICTURE_ID_FLAG: u8 = 1 << 7;
const INTER_FRAME_FLAG: u8 = 1 << 0;

/// Role of a packet in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// The first packet of a key frame, which depends on no other frame.
    KeyFrameStart,
    /// The first packet of a frame that depends on the frame before it.
    InterFrameStart,
    /// Any later packet of a frame.
    Continuation,
}

impl Descriptor {
    /// Size in bytes of what `emit` writes: the payload descriptor and the first byte after it. In
    /// a continuation that byte is ordinary frame data.
    pub const SIZE: usize = 2;

    /// Writes the beginning of a payload.
    pub const fn emit(self) -> [u8; Self::SIZE] {
        match self {
            Self::KeyFrameStart => [START_FLAG, 0],
            Self::InterFrameStart => [START_FLAG, INTER_FRAME_FLAG],
            Self::Continuation => [0, 0],
        }
    }

    /// Reads the beginning of a payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the payload ends within the descriptor.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let byte = |index: usize| payload.get(index).copied().ok_or(Error::Truncated);
        let first = byte(0)?;
        let mut size = 1;
        if first & EXTENDED_FLAG != 0 {
            let present = byte(size)?;
            size += 1;
            if present & PICTURE_ID_FLAG != 0 {
                size += if byte(size)? & LONG_PICTURE_ID_FLAG != 0 { 2 } else { 1 };
            }
            size += usize::from(present & LAYER_INDEX_FLAG != 0);
            size += usize::from(present & LAYER_FLAGS != 0);
        }
        let media = byte(size)?;
        if first & START_FLAG == 0 || first & PARTITION_MASK != 0 {
            return Ok(Self::Continuation);
        }
        let inter_frame = media & INTER_FRAME_FLAG != 0;
        Ok(if inter_frame { Self::InterFrameStart } else { Self::KeyFrameStart })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Descriptor::{Continuation, InterFrameStart, KeyFrameStart};

    // [RFC7741 §4.2], [RFC7741 §4.3]
    #[test]
    fn the_start_of_a_frame_says_whether_it_is_a_key_frame() {
        for (descriptor, bytes) in
            [(KeyFrameStart, [0x10, 0x00]), (InterFrameStart, [0x10, 0x01]), (Continuation, [0, 0])]
        {
            assert_eq!(descriptor.emit(), bytes);
            assert_eq!(Descriptor::parse(&bytes), Ok(descriptor));
        }
    }

    #[test]
    fn only_the_first_partition_starts_a_frame() {
        assert_eq!(Descriptor::parse(&[0x11, 0x00]), Ok(Continuation));
        assert_eq!(Descriptor::parse(&[0x30, 0x00]), Ok(KeyFrameStart), "a frame nobody needs");
    }

    // [RFC7741 §4.2]
    #[test]
    fn extensions_are_skipped() {
        let cases: [&[u8]; 6] = [
            &[0x90, 0x00, 0x01],
            &[0x90, 0x80, 0x7F, 0x01],
            &[0x90, 0x80, 0xFF, 0xFF, 0x01],
            &[0x90, 0xC0, 0xFF, 0xFF, 0x00, 0x01],
            &[0x90, 0xE0, 0xFF, 0xFF, 0x00, 0x00, 0x01],
            &[0x90, 0xF0, 0xFF, 0xFF, 0x00, 0x00, 0x01],
        ];
        for bytes in cases {
            assert_eq!(Descriptor::parse(bytes), Ok(InterFrameStart), "{bytes:02x?}");
            for len in 0..bytes.len() {
                assert_eq!(Descriptor::parse(&bytes[..len]), Err(Error::Truncated), "{len}");
            }
        }
    }
}
