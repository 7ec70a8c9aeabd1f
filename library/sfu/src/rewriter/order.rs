//! Which packets of a source are new, which come late, and when its numbers begin anew.
//!
//! A number far from the newest is no loss and no repeat: the publisher restarted, or the number is
//! damaged. Two of them in a row begin anew [RFC3550 §A.1]. What is far depends on time and not on
//! packets, because a repeat comes a round trip later at any rate.

use alloc::collections::VecDeque;

use weir::feedback::SeqUnwrapper;
use weir::units::{TimeDelta, Timestamp};

use super::Offsets;

/// Numbers this close to the newest are no jump, however slow the stream is. `MAX_MISORDER`
/// [RFC3550 §A.1].
const NEAR: i64 = 100;
/// A number this far behind is a jump at any rate: a quarter of all numbers.
const FAR: i64 = 1 << 14;
/// Missing packets that may still come. Each takes 40 bytes.
const MAX_HOLES: usize = 4_096;
/// Parts of the window between two marks.
const MARKS: i64 = 16;

/// What the number of a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is newer than all before it.
    Newer(i64),
    /// It is not newer: it comes late, or for the second time.
    Late(i64),
    /// It is far from the others. It may be the first after a restart.
    Jump,
    /// It follows a packet that was far from the others: the numbers begin anew.
    Anew,
}

/// A packet that is missing, and the numbers that are reserved for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    number: i64,
    pub sequence_number: u16,
    pub offsets: Offsets,
    since: Timestamp,
}

/// The numbers of one source.
#[derive(Clone, Debug)]
pub(super) struct Order {
    numbers: SeqUnwrapper,
    /// The newest number.
    pub highest: i64,
    /// The newest RTP timestamp.
    timestamp: u32,
    /// Times, and the newest number at each. The oldest is at least a window ago, if there is one.
    marks: VecDeque<(Timestamp, i64)>,
    /// The number that would follow a jump.
    after_jump: Option<u16>,
    /// Missing packets, the oldest first.
    holes: VecDeque<Hole>,
}

impl Order {
    /// A source whose first packet has these numbers.
    pub fn new(number: u16, timestamp: u32) -> Self {
        let mut numbers = SeqUnwrapper::default();
        let highest = numbers.unwrap(u32::from(number)) - 1;
        let (marks, holes) = (VecDeque::new(), VecDeque::new());
        Self { numbers, highest, timestamp, marks, after_jump: None, holes }
    }

    /// What the number of a packet says. `ticks` is the length of the window in RTP time.
    pub fn place(&mut self, number: u16, timestamp: u32, ticks: u32) -> Place {
        if let Some(known) = self.known(number, timestamp, ticks) {
            return known;
        }
        let follows = self.after_jump == Some(number);
        self.after_jump = Some(number.wrapping_add(1));
        if follows { Place::Anew } else { Place::Jump }
    }

    /// The same; `None` if the number is far from the others.
    pub fn known(&self, number: u16, timestamp: u32, ticks: u32) -> Option<Place> {
        let number = self.numbers.peek(u32::from(number));
        if number > self.highest {
            return (number - self.highest <= self.max_gap()).then_some(Place::Newer(number));
        }
        let is_known = self.hole(number).is_some() || self.is_late(number, timestamp, ticks);
        is_known.then_some(Place::Late(number))
    }

    /// Whether packets came within the window.
    pub fn is_recent(&self, now: Timestamp, window: TimeDelta) -> bool {
        self.marks.back().is_some_and(|&(at, _)| now - at <= window)
    }

    /// A longer gap is a jump. The frames in it would be lost for good anyway.
    fn max_gap(&self) -> i64 {
        (self.in_window() / 2).clamp(NEAR, MAX_HOLES as i64)
    }

    /// Packets of the window.
    fn in_window(&self) -> i64 {
        self.marks.front().map_or(0, |&(_, highest)| self.highest - highest)
    }

    /// Whether a packet that is not missing came before: its number and time are of the window.
    fn is_late(&self, number: i64, timestamp: u32, ticks: u32) -> bool {
        let is_near = self.highest - number <= self.in_window().clamp(NEAR, FAR);
        is_near && self.timestamp.wrapping_sub(timestamp) <= ticks
    }

    /// The packet is the newest. What can no longer come is forgotten. `ticks` is the length of
    /// the window in RTP time.
    pub fn advance(
        &mut self,
        now: Timestamp,
        number: i64,
        timestamp: u32,
        window: TimeDelta,
        ticks: u32,
    ) {
        self.highest = number;
        self.numbers.set_last(number);
        // Some pictures are shown before those that came before them. Further back, the
        // timestamps begin anew, although the numbers go on.
        let back = self.timestamp.wrapping_sub(timestamp);
        if back.cast_signed() < 0 || back > ticks {
            self.timestamp = timestamp;
        }
        if self.marks.back().is_none_or(|&(at, _)| now - at >= window / MARKS) {
            self.marks.push_back((now, number));
        }
        while self.marks.get(1).is_some_and(|&(at, _)| now - at >= window) {
            self.marks.pop_front();
        }
        while self
            .holes
            .front()
            .is_some_and(|hole| now - hole.since > window || number - hole.number >= FAR * 2 - 1)
        {
            self.holes.pop_front();
        }
    }

    /// Reserves a number for a packet that is missing.
    pub fn reserve(&mut self, now: Timestamp, number: i64, sequence_number: u16, offsets: Offsets) {
        if self.holes.len() == MAX_HOLES {
            self.holes.pop_front();
        }
        self.holes.push_back(Hole { number, sequence_number, offsets, since: now });
    }

    fn hole(&self, number: i64) -> Option<usize> {
        self.holes.binary_search_by_key(&number, |hole| hole.number).ok()
    }

    /// The reservation of a packet that comes late.
    pub fn take(&mut self, number: i64) -> Option<Hole> {
        let index = self.hole(number)?;
        self.holes.remove(index)
    }

    /// The source's number of the packet for which this number is reserved.
    pub fn missing(&self, sequence_number: u16) -> Option<u16> {
        let first = self.holes.front()?.sequence_number;
        let ahead = |number: u16| number.wrapping_sub(first);
        let found = self
            .holes
            .binary_search_by_key(&ahead(sequence_number), |hole| ahead(hole.sequence_number));
        found.ok().map(|index| self.holes[index].number as u16)
    }
}
