//! Looks up the rows of a flow by time, and the bytes received in them.

use std::ops::Range;
use std::sync::Arc;

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_sim::trace::{ROW_INTERVAL, Row};

use super::column::{Column, Spool};

/// Rising times of the rows. Rows nearly always follow each other without a gap, so only the start
/// of each gapless sequence is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// First row of each gapless sequence, and the time at which that row ends.
    sequences: Vec<(usize, Timestamp)>,
    rows: usize,
    last: Option<Timestamp>,
}

impl Times {
    fn push(&mut self, time: Timestamp) {
        if self.last.is_none_or(|last| last + ROW_INTERVAL != time) {
            self.sequences.push((self.rows, time));
        }
        self.rows += 1;
        self.last = Some(time);
    }

    /// Number of rows that end at or before `time`.
    fn until(&self, time: Timestamp) -> usize {
        let sequence = self.sequences.partition_point(|(_, first)| *first <= time);
        let Some((row, first)) = sequence.checked_sub(1).map(|index| self.sequences[index]) else {
            return 0;
        };
        let end = self.sequences.get(sequence).map_or(self.rows, |(row, _)| *row);
        let within = (time - first).as_nanos() / ROW_INTERVAL.as_nanos() + 1;
        end.min(row + within as usize)
    }
}

/// What a flow received, row by row.
#[derive(Debug)]
pub struct Received {
    times: Times,
    bytes: Column,
    /// What the narrowest link of its path carried of it.
    carried_bits: Column,
}

impl Received {
    pub(super) fn new(spool: &Arc<Spool>) -> Self {
        let [bytes, carried_bits] = [Column::new(spool), Column::new(spool)];
        Self { times: Times::default(), bytes, carried_bits }
    }

    pub(super) fn push(&mut self, row: &Row) {
        self.times.push(row.time);
        self.bytes.push(row.received.as_bytes());
        self.carried_bits.push(row.bits_carried());
    }

    pub(super) fn bytes(&self) -> &Column {
        &self.bytes
    }

    /// Number of rows that end at or before `time`.
    pub(super) fn until(&self, time: Timestamp) -> usize {
        self.times.until(time)
    }

    /// Bytes received in the rows that end within `time`.
    pub fn within(&self, time: &Range<Timestamp>) -> DataSize {
        DataSize::from_bytes(self.bytes.sum(self.rows(time)))
    }

    /// Bits of the flow that the narrowest link of its path carried in these rows.
    pub fn carried_within(&self, time: &Range<Timestamp>) -> u64 {
        self.carried_bits.sum(self.rows(time))
    }

    fn rows(&self, time: &Range<Timestamp>) -> Range<usize> {
        let (from, to) = (self.times.until(time.start), self.times.until(time.end));
        from..to.max(from)
    }

    /// Mean rate over these rows.
    pub(super) fn rate(&self, rows: Range<usize>) -> Bitrate {
        let time = ROW_INTERVAL * rows.len() as i64;
        DataSize::from_bytes(self.bytes.sum(rows)) / time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_time_across_a_gap() {
        let mut times = Times::default();
        let ends: Vec<i64> = (1..=40).chain(100..=140).map(|row| row * 50).collect();
        for ms in &ends {
            times.push(Timestamp::from_millis(*ms));
        }
        assert_eq!(times.sequences.len(), 2);
        for ms in [0, 49, 50, 51, 1_999, 2_000, 4_999, 5_000, 6_999, 7_000, 9_000] {
            let before = ends.partition_point(|end| *end <= ms);
            assert_eq!(times.until(Timestamp::from_millis(ms)), before, "{ms}");
        }
    }
}
