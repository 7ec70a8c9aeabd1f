//! The parts of STUN messages that a lab reads in passing.

/// Size of the header: type, length, cookie and transaction id [RFC8489 §5].
///
/// [RFC8489 §5]: https://www.rfc-editor.org/rfc/rfc8489#section-5
pub const HEADER_BYTES: usize = 20;
/// Bytes 4 to 7 of every message [RFC8489 §5].
///
/// [RFC8489 §5]: https://www.rfc-editor.org/rfc/rfc8489#section-5
pub const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
/// Size of an attribute's header (type and length). Attributes are aligned to it [RFC8489 §14].
const WORD_BYTES: usize = 4;

/// Offset and stated length of the value of the first attribute of this type. The message may have
/// been truncated after the offset.
pub fn attribute(message: &[u8], wanted: u16) -> Option<(usize, usize)> {
    let mut at = HEADER_BYTES;
    loop {
        let kind = u16_at(message, at)?;
        let length = usize::from(u16_at(message, at + 2)?);
        at += WORD_BYTES;
        if kind == wanted {
            return Some((at, length));
        }
        at += length.next_multiple_of(WORD_BYTES);
    }
}

/// The 16-bit number at this offset.
pub fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_behind_others_and_their_padding() {
        let header = [0; HEADER_BYTES];
        let message = [&header[..], &[0, 9, 0, 3, 1, 2, 3, 0], &[0, 6, 0, 1, 7, 0, 0, 0]].concat();
        assert_eq!(attribute(&message, 9), Some((24, 3)));
        assert_eq!(attribute(&message, 6), Some((32, 1)));
        assert_eq!(attribute(&message, 7), None);
        assert!((0..24).all(|length| attribute(&message[..length], 9).is_none()));
    }
}
