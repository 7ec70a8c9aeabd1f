//! Packet chunks: runs and vectors of packet status symbols.
//!
//! ```text
//!   run length         0 | symbol (2) | run length (13)
//!   one-bit vector     1 | 0 | 14 symbols: lost, small delta
//!   two-bit vector     1 | 1 | 7 symbols
//! ```
//!
//! The first packet's symbol is in the most significant bits.

use crate::Error;

// Symbols, widths and flags are those of [TWCC].

/// Status of a packet, and the size of its delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// Not received.
    Lost = 0,
    /// Received, delta of 0..=255 ticks in one byte.
    SmallDelta = 1,
    /// Received, any other delta in two signed bytes.
    LargeDelta = 2,
}

impl Symbol {
    fn from_code(code: u16) -> Result<Self, Error> {
        match code {
            0 => Ok(Self::Lost),
            1 => Ok(Self::SmallDelta),
            2 => Ok(Self::LargeDelta),
            _ => Err(Error::ReservedSymbol),
        }
    }
}

const VECTOR_FLAG: u16 = 1 << 15;
const TWO_BIT_FLAG: u16 = 1 << 14;
const RUN_SYMBOL_SHIFT: u32 = 13;
const MAX_RUN: usize = (1 << RUN_SYMBOL_SHIFT) - 1;
const ONE_BIT_SYMBOLS: usize = 14;
const TWO_BIT_SYMBOLS: usize = 7;
const VECTOR_MASK: u16 = TWO_BIT_FLAG - 1;
/// Bits before the symbols of a vector.
const VECTOR_FLAG_BITS: u32 = VECTOR_MASK.leading_zeros();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    RunLength {
        symbol: Symbol,
        length: u16,
    },
    /// 14 symbols of one bit.
    OneBit(u16),
    /// 7 symbols of two bits, some of which may be the reserved symbol.
    TwoBit(u16),
}

/// Number of deltas of each size that the packets of a chunk have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub small_deltas: usize,
    pub large_deltas: usize,
}

impl Chunk {
    pub(super) fn from_bits(bits: u16) -> Result<Self, Error> {
        if bits & VECTOR_FLAG == 0 {
            let symbol = Symbol::from_code(bits >> RUN_SYMBOL_SHIFT)?;
            return Ok(Self::RunLength { symbol, length: bits & MAX_RUN as u16 });
        }
        let symbols = bits & VECTOR_MASK;
        Ok(if bits & TWO_BIT_FLAG == 0 { Self::OneBit(symbols) } else { Self::TwoBit(symbols) })
    }

    /// Number of packets that the chunk covers.
    pub(super) const fn len(self) -> u16 {
        match self {
            Self::RunLength { length, .. } => length,
            Self::OneBit(_) => ONE_BIT_SYMBOLS as u16,
            Self::TwoBit(_) => TWO_BIT_SYMBOLS as u16,
        }
    }

    /// Counts the deltas of the first `count` packets. `count` must not exceed `len`.
    pub(super) fn tally(self, count: u16) -> Result<Tally, Error> {
        match self {
            Self::RunLength { symbol, .. } => {
                let of = |wanted| if symbol == wanted { usize::from(count) } else { 0 };
                Ok(Tally {
                    small_deltas: of(Symbol::SmallDelta),
                    large_deltas: of(Symbol::LargeDelta),
                })
            }
            Self::OneBit(bits) => {
                let bits = bits >> (ONE_BIT_SYMBOLS as u16 - count);
                Ok(Tally { small_deltas: bits.count_ones() as usize, large_deltas: 0 })
            }
            Self::TwoBit(bits) => {
                const LOW_BITS: u16 = 0x1555;
                let bits = bits >> (2 * (TWO_BIT_SYMBOLS as u16 - count));
                let (low, high) = (bits & LOW_BITS, bits >> 1 & LOW_BITS);
                if low & high != 0 {
                    return Err(Error::ReservedSymbol);
                }
                Ok(Tally {
                    small_deltas: low.count_ones() as usize,
                    large_deltas: high.count_ones() as usize,
                })
            }
        }
    }

    /// The symbols of the packets.
    pub(super) const fn symbols(self) -> Symbols {
        let left = self.len();
        match self {
            Self::RunLength { symbol, .. } => {
                Symbols { bits: (symbol as u16) << (u16::BITS - 2), width: 2, step: 0, left }
            }
            Self::OneBit(bits) => {
                Symbols { bits: bits << VECTOR_FLAG_BITS, width: 1, step: 1, left }
            }
            Self::TwoBit(bits) => {
                Symbols { bits: bits << VECTOR_FLAG_BITS, width: 2, step: 2, left }
            }
        }
    }
}

/// The symbols of a chunk in packet order.
///
/// This is a shift register with the next symbol in its top bits. The kinds of chunks differ only
/// in two numbers, so there is no branch on the kind for each packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbols {
    bits: u16,
    /// Bits of a symbol.
    width: u32,
    /// Bits from a symbol to the next: zero in a run, which repeats one symbol.
    step: u32,
    /// Packets whose symbols have not been returned yet.
    left: u16,
}

impl Symbols {
    pub(super) const EMPTY: Self = Self { bits: 0, width: 1, step: 0, left: 0 };
}

impl Iterator for Symbols {
    type Item = Result<Symbol, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let code = self.bits >> (u16::BITS - self.width);
        self.bits <<= self.step;
        Some(Symbol::from_code(code))
    }
}

/// The chunk being written. It accepts symbols as long as one chunk can represent all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenChunk {
    /// The first symbols. If `len` is larger, all further symbols equal the first.
    symbols: [Symbol; ONE_BIT_SYMBOLS],
    len: usize,
    is_run: bool,
    has_large_delta: bool,
}

impl OpenChunk {
    pub(super) const EMPTY: Self = Self {
        symbols: [Symbol::Lost; ONE_BIT_SYMBOLS],
        len: 0,
        is_run: true,
        has_large_delta: false,
    };

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a symbol. If it does not fit, closes a chunk first and returns its bits.
    ///
    /// The choice of chunk is libwebrtc's: a run if all symbols are equal; else a one-bit vector if
    /// it is exactly full; else a two-bit vector of the first seven, and the rest stay open.
    pub(super) fn push(&mut self, symbol: Symbol) -> Option<u16> {
        let full = if self.takes(symbol) { None } else { Some(self.close_front()) };
        if self.len < ONE_BIT_SYMBOLS {
            self.symbols[self.len] = symbol;
        }
        self.len += 1;
        self.is_run &= symbol == self.symbols[0];
        self.has_large_delta |= symbol == Symbol::LargeDelta;
        full
    }

    fn takes(&self, symbol: Symbol) -> bool {
        let is_one_bit = !self.has_large_delta && symbol != Symbol::LargeDelta;
        let is_run = self.is_run && symbol == self.symbols[0];
        self.len < TWO_BIT_SYMBOLS
            || (self.len < ONE_BIT_SYMBOLS && is_one_bit)
            || (self.len < MAX_RUN && is_run)
    }

    /// Closes a chunk. Symbols that do not fit it open the next one.
    fn close_front(&mut self) -> u16 {
        if self.is_run || self.len == ONE_BIT_SYMBOLS {
            let bits = self.bits();
            *self = Self::EMPTY;
            return bits;
        }
        let open = *self;
        *self = Self::EMPTY;
        for &symbol in &open.symbols[TWO_BIT_SYMBOLS..open.len] {
            let full = self.push(symbol);
            debug_assert!(full.is_none(), "fewer than seven symbols are left");
        }
        two_bit_vector(&open.symbols[..TWO_BIT_SYMBOLS])
    }

    /// The bits of the chunk at the end of a packet. Unused places are zero, which means lost.
    pub(super) fn bits(&self) -> u16 {
        if self.is_run {
            (self.symbols[0] as u16) << RUN_SYMBOL_SHIFT | self.len as u16
        } else if self.len <= TWO_BIT_SYMBOLS {
            two_bit_vector(&self.symbols[..self.len])
        } else {
            one_bit_vector(&self.symbols[..self.len])
        }
    }
}

fn one_bit_vector(symbols: &[Symbol]) -> u16 {
    let set = |bits, (index, &symbol)| bits | (symbol as u16) << (ONE_BIT_SYMBOLS - 1 - index);
    symbols.iter().enumerate().fold(VECTOR_FLAG, set)
}

fn two_bit_vector(symbols: &[Symbol]) -> u16 {
    let set =
        |bits, (index, &symbol)| bits | (symbol as u16) << (2 * (TWO_BIT_SYMBOLS - 1 - index));
    symbols.iter().enumerate().fold(VECTOR_FLAG | TWO_BIT_FLAG, set)
}
