//! Writing transport-wide feedback.

use alloc::vec::Vec;

use super::chunk::{OpenChunk, Symbol};
use super::{FORMAT, ReferenceTime, TICK_US, TICKS_PER_REFERENCE_UNIT, field};
use crate::bytes::{write_u16, write_u24, write_u32};
use crate::header::{self, TRANSPORT_FEEDBACK};

const WORD: usize = 4;
const CHUNK_SIZE: usize = 2;
/// Maximum number of consecutive lost packets within one feedback packet. After a longer run a
/// sender could mistake the next sequence number for an older one.
const MAX_LOST_RUN: i64 = 0x7ffe;

/// Writes the feedback of one receiver, in as many packets as its arrivals need.
#[derive(Clone, Debug)]
pub struct Builder {
    sender_ssrc: u32,
    media_ssrc: u32,
    /// Count of the next feedback packet; wraps.
    feedback_packet_count: u8,
    /// One after the highest sequence number reported so far.
    next_sequence_number: Option<i64>,
    draft: Draft,
    /// The finished packet. Its allocation is reused.
    packet: Vec<u8>,
}

impl Builder {
    /// Smallest `max_size`: it has room for one arrival after the longest run of losses.
    pub const MIN_PACKET_SIZE: usize = 32;

    /// Makes a builder whose feedback packet count starts at zero.
    pub const fn new(sender_ssrc: u32, media_ssrc: u32) -> Self {
        Self {
            sender_ssrc,
            media_ssrc,
            feedback_packet_count: 0,
            next_sequence_number: None,
            draft: Draft::EMPTY,
            packet: Vec::new(),
        }
    }

    /// Reports `arrivals`, pairs of unwrapped sequence number and arrival time in microseconds.
    /// Each packet has at most `max_size` bytes and is passed to `emit`.
    ///
    /// Numbers between the highest one reported before and the first arrival are reported as lost,
    /// so successive calls leave no gap. A late arrival may have a number below the highest
    /// reported. Then `arrivals` must again contain every packet received since that number; any
    /// that is missing is now reported as lost.
    ///
    /// # Panics
    /// If the sequence numbers do not increase, or `max_size` is less than `MIN_PACKET_SIZE`.
    pub fn build(&mut self, arrivals: &[(i64, i64)], max_size: usize, mut emit: impl FnMut(&[u8])) {
        assert!(max_size >= Self::MIN_PACKET_SIZE, "{max_size} bytes cannot hold feedback");
        for &(sequence_number, arrival_us) in arrivals {
            let tick = nearest_tick(arrival_us);
            if !self.draft.is_empty() && self.draft.push(sequence_number, tick, max_size) {
                continue;
            }
            self.finish(&mut emit);
            self.draft.start(self.base_before(sequence_number), tick);
            let fits = self.draft.push(sequence_number, tick, max_size);
            assert!(fits, "any arrival fits an empty packet of the minimum size");
        }
        self.finish(&mut emit);
    }

    /// Base sequence number of a packet whose first arrival is `sequence_number`.
    fn base_before(&self, sequence_number: i64) -> i64 {
        match self.next_sequence_number {
            Some(next) if (0..=MAX_LOST_RUN).contains(&sequence_number.saturating_sub(next)) => {
                next
            }
            _ => sequence_number,
        }
    }

    /// Passes the drafted packet to `emit`, if there is one.
    fn finish(&mut self, emit: &mut impl FnMut(&[u8])) {
        if self.draft.is_empty() {
            return;
        }
        self.packet.clear();
        self.packet.resize(self.draft.size(), 0);
        self.draft.emit(&mut self.packet);
        write_u32(&mut self.packet, field::SENDER_SSRC, self.sender_ssrc);
        write_u32(&mut self.packet, field::MEDIA_SSRC, self.media_ssrc);
        self.packet[field::FEEDBACK_COUNT] = self.feedback_packet_count;
        self.feedback_packet_count = self.feedback_packet_count.wrapping_add(1);
        // After a late arrival reported alone, the packets after it must not be reported as lost
        // next time.
        self.next_sequence_number = self.next_sequence_number.max(Some(self.draft.next));
        self.draft.clear();
        emit(&self.packet);
    }
}

/// The tick nearest to a time.
///
/// All times are rounded to the same grid and deltas are differences on it, so rounding errors do
/// not add up.
fn nearest_tick(time_us: i64) -> i64 {
    let is_nearer_to_next = time_us.rem_euclid(TICK_US) >= TICK_US / 2;
    time_us.div_euclid(TICK_US) + i64::from(is_nearer_to_next)
}

/// A packet being filled; empty between packets.
#[derive(Clone, Debug)]
struct Draft {
    /// Sequence number of the first packet reported.
    base: i64,
    /// One after the last sequence number reported.
    next: i64,
    reference_units: i64,
    /// Arrival of the last packet; the next delta is relative to it.
    last_tick: i64,
    /// Chunks already closed.
    chunks: Vec<u8>,
    open: OpenChunk,
    deltas: Vec<u8>,
}

impl Draft {
    const EMPTY: Self = Self {
        base: 0,
        next: 0,
        reference_units: 0,
        last_tick: 0,
        chunks: Vec::new(),
        open: OpenChunk::EMPTY,
        deltas: Vec::new(),
    };

    fn is_empty(&self) -> bool {
        self.deltas.is_empty()
    }

    fn clear(&mut self) {
        self.chunks.clear();
        self.open = OpenChunk::EMPTY;
        self.deltas.clear();
    }

    /// Starts a packet whose first arrival is at `tick`. The first delta is then shorter than one
    /// unit of the reference time.
    fn start(&mut self, base: i64, tick: i64) {
        self.base = base;
        self.next = base;
        self.reference_units = tick.div_euclid(TICKS_PER_REFERENCE_UNIT);
        self.last_tick = self.reference_units * TICKS_PER_REFERENCE_UNIT;
    }

    /// Appends an arrival and the losses before it. Returns false, and leaves the draft unchanged,
    /// if they do not fit.
    fn push(&mut self, sequence_number: i64, tick: i64, max_size: usize) -> bool {
        assert!(sequence_number >= self.next, "sequence numbers must increase");
        let lost = sequence_number.saturating_sub(self.next);
        let status_count = sequence_number.saturating_sub(self.base).saturating_add(1);
        let Ok(delta) = i16::try_from(tick.saturating_sub(self.last_tick)) else { return false };
        if lost > MAX_LOST_RUN || status_count > i64::from(u16::MAX) {
            return false;
        }
        let (open, chunks_size) = (self.open, self.chunks.len());
        for _ in 0..lost {
            self.push_symbol(Symbol::Lost);
        }
        let small_delta = u8::try_from(delta);
        let (symbol, delta_size) = match small_delta {
            Ok(_) => (Symbol::SmallDelta, 1),
            Err(_) => (Symbol::LargeDelta, 2),
        };
        self.push_symbol(symbol);
        if (self.unpadded_size() + delta_size).next_multiple_of(WORD) > max_size {
            self.open = open;
            self.chunks.truncate(chunks_size);
            return false;
        }
        match small_delta {
            Ok(delta) => self.deltas.push(delta),
            Err(_) => self.deltas.extend_from_slice(&delta.to_be_bytes()),
        }
        self.last_tick = tick;
        self.next = sequence_number + 1;
        true
    }

    fn push_symbol(&mut self, symbol: Symbol) {
        if let Some(full) = self.open.push(symbol) {
            self.chunks.extend_from_slice(&full.to_be_bytes());
        }
    }

    /// Size in bytes without padding.
    fn unpadded_size(&self) -> usize {
        let open_size = if self.open.is_empty() { 0 } else { CHUNK_SIZE };
        field::CHUNKS + self.chunks.len() + open_size + self.deltas.len()
    }

    /// Size in bytes of the packet.
    fn size(&self) -> usize {
        self.unpadded_size().next_multiple_of(WORD)
    }

    /// Writes all fields of `packet`, which must be zero, except those that only the builder knows.
    fn emit(&self, packet: &mut [u8]) {
        let padding = packet.len() - self.unpadded_size();
        header::emit(packet, TRANSPORT_FEEDBACK, FORMAT, padding != 0);
        // Sequence numbers wrap on the wire; a draft covers at most 65535 of them.
        write_u16(packet, field::BASE_SEQUENCE_NUMBER, self.base as u16);
        write_u16(packet, field::STATUS_COUNT, (self.next - self.base) as u16);
        let reference_time = ReferenceTime::from_units(self.reference_units);
        write_u24(packet, field::REFERENCE_TIME, reference_time.units());
        let body = &mut packet[field::CHUNKS..];
        let (chunks, body) = body.split_at_mut(self.chunks.len());
        chunks.copy_from_slice(&self.chunks);
        let (open, body) = body.split_at_mut(CHUNK_SIZE);
        open.copy_from_slice(&self.open.bits().to_be_bytes());
        body[..self.deltas.len()].copy_from_slice(&self.deltas);
        if padding != 0 {
            packet[packet.len() - 1] = padding as u8;
        }
    }
}
