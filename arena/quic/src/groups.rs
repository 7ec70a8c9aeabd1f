//! The bytes of a group's stream: the number of the group, and each frame behind its length.

/// Number of the group, 8 bytes, the highest first.
pub const GROUP_BYTES: usize = 8;
/// Length of a frame, 4 bytes, the highest first.
pub const LENGTH_BYTES: usize = 4;

/// Whether a frame of VP8 depends on no other: the lowest bit is 0 [RFC 6386, section 9.1]. Such a
/// frame begins a group.
pub fn is_key(frame: &[u8]) -> bool {
    frame.first().is_some_and(|first| first & 1 == 0)
}

/// The frame behind its length.
pub fn with_length(frame: &[u8]) -> Vec<u8> {
    let length = u32::try_from(frame.len()).expect("a frame is shorter than 4 GB");
    [&length.to_be_bytes(), frame].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_frame_of_vp8_begins_with_an_even_byte() {
        assert!(is_key(&[0x10, 0x02]) && !is_key(&[0x11, 0x02]) && !is_key(&[]));
    }

    #[test]
    fn a_frame_stands_behind_its_length() {
        assert_eq!(with_length(&[7, 8]), [0, 0, 0, 2, 7, 8]);
    }
}
