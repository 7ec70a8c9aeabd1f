//! The tag of a frame: a number inside the picture, which survives the codec.
//!
//! It is one row of 40 blocks along the top edge. A block is a square whose side is a fortieth of
//! the picture's width, so the tag scales with the picture.
//!
//! ```text
//! | 6 levels | 16 number | 4 stream | 8 CRC | 6 levels |
//! ```
//!
//! The levels alternate between dark and light. A reader takes its threshold from them, and a
//! picture without this pattern has no tag. The number is in Gray code, because a frame that is
//! blended from two neighbours then differs from both in at most one bit.

use std::ops::Range;

/// Blocks of a tag.
pub const BLOCKS: usize = 40;
/// Blocks at each end that show the two levels, dark first.
const LEVELS: usize = 6;
const NUMBER_BITS: usize = 16;
const STREAM_BITS: usize = 4;
const CRC_BITS: usize = 8;
const _: () = assert!(2 * LEVELS + NUMBER_BITS + STREAM_BITS + CRC_BITS == BLOCKS);

/// Luma of a 0 and of a 1. Both are inside the limited range of video, 16 to 235.
const DARK: u8 = 40;
const LIGHT: u8 = 210;
/// Minimum difference between the means of the light and of the dark levels. A picture of noise
/// stays below it.
const MIN_CONTRAST: u32 = 40;
/// CRC-8 with the polynomial x^8 + x^2 + x + 1, without reflection.
const POLYNOMIAL: u8 = 0x07;
const CRC_START: u8 = 0xFF;

/// Mean luma of each block.
pub type Blocks = [u8; BLOCKS];

/// What a tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Number of the frame in its file, from 0.
    pub number: u16,
    /// Number of the stream, 0 to 15.
    pub stream: u8,
}

/// Side of a block in a picture of this width, in pixels; 0 if the picture is too narrow for a tag.
pub fn side(width: usize) -> usize {
    width / BLOCKS
}

impl Tag {
    /// Luma of each block.
    pub fn blocks(self) -> Blocks {
        let mut bits = Vec::with_capacity(BLOCKS);
        push_levels(&mut bits);
        push_bits(&mut bits, u32::from(self.number ^ (self.number >> 1)), NUMBER_BITS);
        push_bits(&mut bits, u32::from(self.stream), STREAM_BITS);
        push_bits(&mut bits, u32::from(self.crc()), CRC_BITS);
        push_levels(&mut bits);
        let mut blocks = [DARK; BLOCKS];
        for (block, bit) in blocks.iter_mut().zip(bits) {
            *block = if bit { LIGHT } else { DARK };
        }
        blocks
    }

    /// The tag's rows of luma, for a picture of this width.
    pub fn rows(self, width: usize) -> Vec<u8> {
        let blocks = self.blocks();
        let mut row = Vec::with_capacity(width);
        for x in 0..width {
            row.push(blocks[x * BLOCKS / width]);
        }
        row.repeat(side(width))
    }

    /// Reads a tag; `None` if there is none, or if it is damaged.
    pub fn read(blocks: &Blocks) -> Option<Self> {
        let threshold = threshold(blocks)?;
        let mut rest = blocks[LEVELS..BLOCKS - LEVELS].iter().map(|&luma| luma > threshold);
        let gray = take_bits(&mut rest, NUMBER_BITS) as u16;
        let stream = take_bits(&mut rest, STREAM_BITS) as u8;
        let crc = take_bits(&mut rest, CRC_BITS) as u8;
        let tag = Self { number: from_gray(gray), stream };
        (tag.crc() == crc).then_some(tag)
    }

    fn crc(self) -> u8 {
        let [high, low] = self.number.to_be_bytes();
        let mut crc = CRC_START;
        for byte in [high, low, self.stream] {
            crc ^= byte;
            for _ in 0..8 {
                let carry = crc & 0x80 != 0;
                crc <<= 1;
                if carry {
                    crc ^= POLYNOMIAL;
                }
            }
        }
        crc
    }
}

/// Measures the blocks of a picture: the mean of the middle of each, where the codec blurs least.
/// `None` if the picture is too narrow or has too few rows.
pub fn measure(luma: &[u8], width: usize, stride: usize) -> Option<Blocks> {
    let side = side(width);
    if side == 0 || stride < width {
        return None;
    }
    let rows = middle(0, side);
    let mut blocks = [0; BLOCKS];
    for (index, block) in blocks.iter_mut().enumerate() {
        let columns = middle(start(index, width), start(index + 1, width));
        let (mut sum, mut count) = (0_usize, 0_usize);
        for y in rows.clone() {
            let row = luma.get(y * stride + columns.start..y * stride + columns.end)?;
            sum += row.iter().map(|&luma| usize::from(luma)).sum::<usize>();
            count += row.len();
        }
        *block = (sum / count) as u8;
    }
    Some(blocks)
}

/// The first column of a block.
fn start(block: usize, width: usize) -> usize {
    (block * width).div_ceil(BLOCKS)
}

/// The middle half of these pixels; of three, the one in the middle.
fn middle(start: usize, end: usize) -> Range<usize> {
    let edge = match end - start {
        3 => 1,
        length => length / 4,
    };
    start + edge..end - edge
}

/// The luma between dark and light; `None` if the levels do not alternate.
fn threshold(blocks: &Blocks) -> Option<u8> {
    let ends = [&blocks[..LEVELS], &blocks[BLOCKS - LEVELS..]];
    let (mut dark, mut light) = (0, 0);
    for pair in ends.iter().flat_map(|levels| levels.chunks_exact(2)) {
        dark += u32::from(pair[0]);
        light += u32::from(pair[1]);
    }
    let pairs = LEVELS as u32;
    if light < dark + MIN_CONTRAST * pairs {
        return None;
    }
    let threshold = ((dark + light) / (2 * pairs)) as u8;
    for pair in ends.iter().flat_map(|levels| levels.chunks_exact(2)) {
        if pair[0] > threshold || pair[1] <= threshold {
            return None;
        }
    }
    Some(threshold)
}

fn push_levels(bits: &mut Vec<bool>) {
    for index in 0..LEVELS {
        bits.push(index % 2 == 1);
    }
}

/// The lowest `count` bits, the highest of them first.
fn push_bits(bits: &mut Vec<bool>, value: u32, count: usize) {
    for bit in (0..count).rev() {
        bits.push(value >> bit & 1 == 1);
    }
}

fn take_bits(bits: &mut impl Iterator<Item = bool>, count: usize) -> u32 {
    let mut value = 0;
    for bit in bits.take(count) {
        value = value << 1 | u32::from(bit);
    }
    value
}

fn from_gray(gray: u16) -> u16 {
    let mut number = gray;
    for shift in [1, 2, 4, 8] {
        number ^= number >> shift;
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_number_and_stream_is_read_back() {
        for number in 0..=u16::MAX {
            let tag = Tag { number, stream: (number % 16) as u8 };
            assert_eq!(Tag::read(&tag.blocks()), Some(tag));
        }
    }

    #[test]
    fn neighbours_differ_in_one_block_of_the_number() {
        let number = |number| {
            let blocks = Tag { number, stream: 0 }.blocks();
            blocks[LEVELS..LEVELS + NUMBER_BITS].to_vec()
        };
        for first in 0..u16::MAX {
            let pairs = number(first).into_iter().zip(number(first + 1));
            assert_eq!(pairs.filter(|(a, b)| a != b).count(), 1, "{first}");
        }
    }

    #[test]
    fn one_wrong_block_is_never_a_tag() {
        let blocks = Tag { number: 12_345, stream: 3 }.blocks();
        for index in 0..BLOCKS {
            let mut wrong = blocks;
            wrong[index] = if wrong[index] == DARK { LIGHT } else { DARK };
            assert_eq!(Tag::read(&wrong), None, "block {index}");
        }
    }

    #[test]
    fn a_picture_narrower_than_the_tag_has_none() {
        assert_eq!(measure(&[0; 39 * 39], 39, 39), None);
        assert_eq!(measure(&[0; 40], 80, 80), None, "half of the rows are missing");
        assert_eq!(measure(&[0; 400], 80, 40), None, "rows overlap");
    }

    /// Nearest pixel of a row of tags in a picture of another width.
    fn scaled(rows: &[u8], from: usize, to: usize) -> Vec<u8> {
        let mut scaled = Vec::new();
        for y in 0..side(to) {
            for x in 0..to {
                let row = (y * from / to).min(side(from) - 1);
                scaled.push(rows[row * from + x * from / to]);
            }
        }
        scaled
    }

    proptest! {
        #[test]
        fn a_tag_survives_noise_and_scaling(
            number in any::<u16>(),
            stream in 0_u8..16,
            // Below three pixels a block, scaling may take a whole block from its neighbour.
            from in 3 * BLOCKS..2000,
            to in 3 * BLOCKS..2000,
            noise in proptest::collection::vec(-45_i16..=45, 64),
        ) {
            let tag = Tag { number, stream };
            let mut rows = scaled(&tag.rows(from), from, to);
            for (luma, noise) in rows.iter_mut().zip(noise.iter().cycle()) {
                *luma = (i16::from(*luma) + noise).clamp(0, 255) as u8;
            }
            prop_assert_eq!(Tag::read(&measure(&rows, to, to).unwrap()), Some(tag));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(
            luma in proptest::collection::vec(any::<u8>(), 0..4000),
            width in 0_usize..300,
            stride in 0_usize..400,
        ) {
            if let Some(blocks) = measure(&luma, width, stride) {
                let _ = Tag::read(&blocks);
            }
        }
    }
}
