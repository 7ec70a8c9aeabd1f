//! Transport blocks: what is on the air, and what became of it.

use std::ops::Range;

use weir::units::Timestamp;

use super::carrier::{Carrier, Tti};
use super::config::Harq;
use super::errors::{Modulation, Scheme, block_error};
use super::radio::Sinr;
use super::rlc::Span;
use crate::path::Direction;

/// A part of a block that belongs to one bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) bearer: usize,
    pub(super) span: Span,
}

/// The resource blocks of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// Groups of the downlink, one bit each.
    Groups(u64),
    /// Resource blocks of the uplink in a row.
    Row { first: u16, count: u16 },
}

impl Grant {
    /// Number of its resource blocks.
    pub(super) fn prbs(self, carrier: &Carrier) -> u16 {
        match self {
            Self::Groups(_) => self.groups().map(|group| carrier.group(group).len() as u16).sum(),
            Self::Row { count, .. } => count,
        }
    }

    /// Its groups; none for a row.
    pub(super) fn groups(self) -> impl Iterator<Item = u16> + Clone {
        let mut mask = if let Self::Groups(mask) = self { mask } else { 0 };
        std::iter::from_fn(move || {
            let group = mask.trailing_zeros() as u16;
            (mask != 0).then(|| {
                mask &= mask - 1;
                group
            })
        })
    }

    /// Its resource blocks, as ranges in increasing order.
    pub(super) fn ranges(self, carrier: &Carrier) -> impl Iterator<Item = Range<u16>> + Clone {
        let row =
            if let Self::Row { first, count } = self { Some(first..first + count) } else { None };
        self.groups().map(|group| carrier.group(group)).chain(row)
    }
}

/// A grant that its terminal has not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingGrant {
    pub(super) fill: Tti,
    pub(super) decided: Tti,
    pub(super) terminal: usize,
    pub(super) grant: Grant,
    pub(super) mcs: u8,
    pub(super) bytes: u32,
}

/// A report that has not reached the scheduler yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingReport {
    pub(super) arrives: Tti,
    pub(super) terminal: usize,
    pub(super) bytes: u64,
}

/// A transport block in progress.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) terminal: usize,
    pub(super) grant: Grant,
    pub(super) mcs: u8,
    pub(super) bytes: u32,
    pub(super) parts: Vec<Part>,
    /// Number of the current transmission, from 1.
    pub(super) attempt: u32,
    /// TTI in which the scheduler decided on this transmission.
    pub(super) decided: Tti,
    /// TTI in which it is decoded.
    pub(super) decoded: Tti,
    /// Whether this transmission is decoded, once it has been sent.
    pub(super) is_decoded: bool,
    /// Whether the receiver missed that there was a block: nobody asks for a retransmission.
    pub(super) is_missed: bool,
    /// The report of the terminal's queues within the block: when it was made, and its bytes.
    pub(super) report: Option<(Tti, u64)>,
    /// Mutual information times coded bits, and coded bits, over all transmissions.
    information: f64,
    coded_bits: f64,
}

impl Block {
    pub(super) fn new(terminal: usize, grant: Grant, (mcs, bytes): (u8, u32), now: Tti) -> Self {
        Self {
            terminal,
            grant,
            mcs,
            bytes,
            parts: Vec::new(),
            attempt: 1,
            decided: now,
            decoded: now,
            is_decoded: false,
            is_missed: false,
            report: None,
            information: 0.0,
            coded_bits: 0.0,
        }
    }

    /// Probability that this transmission cannot be decoded at this signal.
    pub(super) fn error(
        &mut self,
        carrier: &Carrier,
        harq: &Harq,
        direction: Direction,
        sinr: Sinr<'_>,
    ) -> f64 {
        let scheme = carrier.schemes(direction)[usize::from(self.mcs)];
        let factor = power_factor(carrier, direction, self.grant.prbs(carrier));
        let heard = sinr.information(scheme.modulation, self.grant.ranges(carrier), factor);
        let bits = f64::from(self.bytes) * 8.0;
        let coded_bits = bits / scheme.rate;
        if !harq.combining {
            self.information = 0.0;
            self.coded_bits = 0.0;
        }
        self.information += heard * coded_bits;
        self.coded_bits += coded_bits;
        // Incremental redundancy: all transmissions are one of a lower code rate.
        let combined = Scheme { rate: bits / self.coded_bits, ..scheme };
        block_error(combined, self.bytes, self.information / self.coded_bits)
    }
}

/// By how much the power of a terminal on its resource blocks exceeds that over the whole carrier:
/// it sends all its power on few of them. The base station's power is spread evenly.
pub(super) fn power_factor(carrier: &Carrier, direction: Direction, prbs: u16) -> f64 {
    match direction {
        Direction::Up => f64::from(carrier.prbs.up) / f64::from(prbs.max(1)),
        Direction::Down => 1.0,
    }
}

/// Modulations in the order of their bits, to index tables.
pub(super) const fn modulation_index(modulation: Modulation) -> usize {
    modulation.bits() as usize / 2 - 1
}

/// A block that was on the air, for pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    /// Start of its TTI.
    pub start: Timestamp,
    /// Its direction.
    pub direction: Direction,
    /// Number of the terminal among the nodes.
    pub node: usize,
    /// Its resource blocks, as ranges in increasing order.
    pub prbs: Vec<Range<u16>>,
    /// Modulation and coding scheme.
    pub mcs: u8,
    /// Size in bytes.
    pub bytes: u32,
    /// 1 for the first transmission.
    pub attempt: u32,
    /// Whether it was decoded.
    pub is_decoded: bool,
}
