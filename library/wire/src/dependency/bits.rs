//! Numbers of any count of bits, most significant bit first [AV1-RTP §A.4.1].

use alloc::vec::Vec;

use crate::Error;

const BYTE: usize = 8;

/// Reads numbers from bytes.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// f(n): a number of at most 32 bits.
    pub(super) fn bits(&mut self, count: usize) -> Result<u32, Error> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / BYTE).ok_or(Error::Truncated)?;
            value = value << 1 | u32::from(byte >> (BYTE - 1 - self.at % BYTE) & 1);
            self.at += 1;
        }
        Ok(value)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Error> {
        Ok(self.bits(1)? == 1)
    }

    /// ns(n): a number below `limit`, which is not zero, in as few bits as possible.
    pub(super) fn below(&mut self, limit: u32) -> Result<u32, Error> {
        let width = limit.ilog2() as usize + 1;
        let short = (1 << width) - limit;
        let value = self.bits(width - 1)?;
        if value < short {
            return Ok(value);
        }
        Ok((value << 1) + self.bits(1)? - short)
    }
}

/// Writes numbers behind each other.
#[derive(Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    at: usize,
}

impl Writer {
    pub(super) fn bits(&mut self, value: u32, count: usize) {
        for place in (0..count).rev() {
            if self.at.is_multiple_of(BYTE) {
                self.bytes.push(0);
            }
            let bit = (value >> place & 1) as u8;
            if let Some(last) = self.bytes.last_mut() {
                *last |= bit << (BYTE - 1 - self.at % BYTE);
            }
            self.at += 1;
        }
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.bits(u32::from(flag), 1);
    }

    pub(super) fn below(&mut self, value: u32, limit: u32) {
        let width = limit.ilog2() as usize + 1;
        let short = (1 << width) - limit;
        if value < short {
            self.bits(value, width - 1);
        } else {
            self.bits(value + short, width);
        }
    }

    /// The bytes; zeros fill the last one.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [AV1-RTP §A.4.1]
    #[test]
    fn each_number_below_each_limit_is_read_as_it_was_written() {
        for limit in 1..=33 {
            for value in 0..limit {
                let mut writer = Writer::default();
                writer.bits(5, 3);
                writer.below(value, limit);
                writer.flag(true);
                let bytes = writer.finish();
                let mut reader = Reader::new(&bytes);
                assert_eq!(reader.bits(3), Ok(5));
                assert_eq!(reader.below(limit), Ok(value), "{value} of {limit}");
                assert_eq!(reader.flag(), Ok(true));
            }
        }
        // Of five values, the first three take two bits.
        let mut writer = Writer::default();
        writer.below(2, 5);
        writer.below(3, 5);
        assert_eq!(writer.finish(), [0b1011_0000]);
        assert_eq!(Reader::new(&[]).bits(1), Err(Error::Truncated));
    }
}
