//! The compressed values of a batch: differences of a fixed width in bits, or texts behind their
//! lengths.
//!
//! ```text
//!  2 bits  kind: 0 unsigned differences, all values present, of 64 bits; 1 as said here:
//!  6 bits  width of a difference, minus one
//!  1 bit   differences have a sign        (kind 1)
//!  1 bit   values may be missing          (kind 1)
//!  6 bits  width of a value, minus one    (kind 1)
//!  n bits  which values are present       (if values may be missing)
//!  ...     differences, each to the value before; without one, a variable-length number
//! ```
//!
//! No bytes at all mean that every value equals the first event's.

/// The values of the events behind the first, whose value is `base`. `None` if the bytes are
/// damaged.
pub(super) fn values(bytes: &[u8], base: Option<u64>, count: usize) -> Option<Vec<Option<u64>>> {
    if bytes.is_empty() {
        return Some(vec![base; count]);
    }
    let mut bits = Bits { bytes, at: 0 };
    let kind = bits.read(2)?;
    let delta_width = bits.read(6)? as u32 + 1;
    let (is_signed, may_miss, value_width) = match kind {
        0 => (false, false, 64),
        1 => (bits.read(1)? == 1, bits.read(1)? == 1, bits.read(6)? as u32 + 1),
        _ => return None,
    };
    if delta_width > value_width {
        return None;
    }
    let present: Vec<bool> = match may_miss {
        true => (0..count).map(|_| bits.read(1).map(|bit| bit == 1)).collect::<Option<_>>()?,
        false => vec![true; count],
    };
    let mut last = base;
    let mut values = Vec::new();
    for is_present in present {
        if !is_present {
            values.push(None);
            continue;
        }
        let value = match last {
            None => bits.read_variable()?,
            Some(last) => {
                let delta = bits.read(delta_width)?;
                let is_negative = is_signed && delta >> (delta_width - 1) == 1;
                let delta = if is_negative { delta | !mask(delta_width) } else { delta };
                last.wrapping_add(delta) & mask(value_width)
            }
        };
        last = Some(value);
        values.push(last);
    }
    Some(values)
}

/// The texts of the events behind the first: all lengths, and then all texts. `None` if the bytes
/// are damaged.
pub(super) fn blobs(bytes: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let mut bits = Bits { bytes, at: 0 };
    let lengths = (0..count).map(|_| bits.read_variable()).collect::<Option<Vec<u64>>>()?;
    let mut rest = bytes.get(bits.at / 8..)?;
    let mut blobs = Vec::new();
    for length in lengths {
        let (blob, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        blobs.push(blob);
        rest = after;
    }
    Some(blobs)
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Bits, the most significant of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// A number of 1 to 64 bits.
    fn read(&mut self, width: u32) -> Option<u64> {
        let mut value = 0;
        let mut left = width;
        while left > 0 {
            let byte = u64::from(*self.bytes.get(self.at / 8)?);
            let unread = 8 - (self.at % 8) as u32;
            let taken = left.min(unread);
            let part = byte >> (unread - taken) & ((1 << taken) - 1);
            value = value << taken | part;
            self.at += taken as usize;
            left -= taken;
        }
        Some(value)
    }

    /// A number whose bytes hold seven bits each, the least significant first.
    fn read_variable(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read(8)?;
            value |= (byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs groups of (width, value).
    fn packed(groups: &[(u32, u64)]) -> Vec<u8> {
        let bits = groups
            .iter()
            .flat_map(|&(width, value)| (0..width).rev().map(move |bit| (value >> bit & 1) as u8));
        let bits: Vec<u8> = bits.collect();
        let byte =
            |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << (7 - at));
        bits.chunks(8).map(byte).collect()
    }

    #[test]
    fn empty_deltas_repeat_the_first_value() {
        assert_eq!(values(&[], Some(5), 2), Some(vec![Some(5), Some(5)]));
        assert_eq!(values(&[], None, 1), Some(vec![None]));
    }

    #[test]
    fn unsigned_differences_add_up() {
        let bytes = packed(&[(2, 0), (6, 2), (3, 1), (3, 7), (3, 0)]);
        assert_eq!(values(&bytes, Some(10), 3), Some(vec![Some(11), Some(18), Some(18)]));
    }

    #[test]
    fn signed_differences_wrap_at_the_width_of_a_value() {
        // 16-bit values with differences of 3 bits: 65535 + 2, then - 3.
        let bytes = packed(&[(2, 1), (6, 2), (1, 1), (1, 0), (6, 15), (3, 2), (3, 0b101)]);
        assert_eq!(values(&bytes, Some(65_535), 2), Some(vec![Some(1), Some(65_534)]));
    }

    #[test]
    fn a_value_and_the_base_may_be_missing() {
        // Present, missing, present: 300 as a variable-length number, and one more.
        let bytes = packed(&[
            (2, 1),
            (6, 0),
            (1, 0),
            (1, 1),
            (6, 63),
            (3, 0b101),
            (8, 0b1010_1100),
            (8, 2),
            (1, 1),
        ]);
        assert_eq!(values(&bytes, None, 3), Some(vec![Some(300), None, Some(301)]));
    }

    #[test]
    fn blobs_follow_their_lengths() {
        assert_eq!(blobs(&[1, 2, 7, 8, 9], 2), Some(vec![&[7][..], &[8, 9][..]]));
        assert_eq!(blobs(&[1, 2, 7, 8], 2), None);
    }

    #[test]
    fn cut_or_unknown_bytes_are_refused() {
        let bytes = packed(&[(2, 1), (6, 62), (1, 1), (1, 0), (6, 63), (63, 1), (63, 9)]);
        assert_eq!(values(&bytes, Some(1), 2), Some(vec![Some(2), Some(11)]));
        for end in 1..bytes.len() {
            assert_eq!(values(&bytes[..end], Some(1), 2), None, "{end}");
        }
        assert_eq!(values(&packed(&[(2, 2), (6, 0)]), Some(1), 1), None);
        assert_eq!(
            values(&packed(&[(2, 1), (6, 9), (1, 0), (1, 0), (6, 1), (9, 0)]), Some(1), 1),
            None
        );
    }
}
