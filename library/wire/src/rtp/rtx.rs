//! The payload of a retransmission [RFC4588 §4].
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   original sequence number    |  original payload ..          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The surrounding packet has a payload type, SSRC and sequence number of its own; it keeps the
//! timestamp and the marker of the original.

use crate::Error;

/// Content of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtx<'a> {
    /// Sequence number of the original packet.
    pub sequence_number: u16,
    /// Payload of the original packet.
    pub payload: &'a [u8],
}

impl<'a> Rtx<'a> {
    /// Bytes added to the original payload.
    pub const OVERHEAD: usize = 2;

    /// Reads the payload of a packet whose payload type is that of retransmissions.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the payload has no whole sequence number.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let (number, payload) = payload.split_first_chunk().ok_or(Error::Truncated)?;
        Ok(Self { sequence_number: u16::from_be_bytes(*number), payload })
    }

    /// Size in bytes of the payload.
    pub const fn size(&self) -> usize {
        Self::OVERHEAD + self.payload.len()
    }

    /// Writes the payload to the front of `buffer` and returns its size.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let (number, payload) = buffer[..self.size()].split_at_mut(Self::OVERHEAD);
        number.copy_from_slice(&self.sequence_number.to_be_bytes());
        payload.copy_from_slice(self.payload);
        self.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 5] = [0xff, 0xfe, 1, 2, 3];

    // [RFC4588 §4]
    #[test]
    fn the_original_number_stands_before_the_original_payload() {
        let rtx = Rtx { sequence_number: 65_534, payload: &[1, 2, 3] };
        let mut bytes = [0xaa; 5];
        assert_eq!(rtx.emit(&mut bytes), 5);
        assert_eq!(bytes, BYTES);
        assert_eq!(Rtx::parse(&BYTES), Ok(rtx));
    }

    #[test]
    fn a_retransmission_of_an_empty_payload_is_its_number_alone() {
        assert_eq!(Rtx::parse(&BYTES[..2]), Ok(Rtx { sequence_number: 65_534, payload: &[] }));
    }

    #[test]
    fn a_payload_without_a_number_is_rejected() {
        for len in 0..Rtx::OVERHEAD {
            assert_eq!(Rtx::parse(&BYTES[..len]), Err(Error::Truncated), "{len}");
        }
    }
}
