//! Scoreboard: the sender's state of the segments that are not acknowledged yet.

use std::collections::VecDeque;

use weir::units::Timestamp;

use super::delivery_rate::Stamp;
use super::segment::Part;

/// State of a segment from the sender's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentState {
    /// In flight.
    InFlight,
    /// Considered lost, and not retransmitted yet.
    Lost,
    /// Selectively acknowledged: arrived above a hole.
    Sacked,
}

/// A segment that was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) part: Part,
    /// Time of its last transmission.
    pub(super) sent_at: Timestamp,
    /// Whether it was sent more than once.
    pub(super) retransmitted: bool,
    /// State of the delivery rate at that time.
    pub(super) stamp: Stamp,
    state: SegmentState,
}

impl Sent {
    pub(super) fn is_in_flight(&self) -> bool {
        self.state == SegmentState::InFlight
    }
}

/// The segments from the first unacknowledged one to the last one sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sent: VecDeque<Sent>,
    in_flight: u64,
    sacked: u64,
    lost: u64,
    /// No segment before this index is lost.
    first_lost: usize,
}

impl Scoreboard {
    /// A segment of new data leaves.
    pub(super) fn on_sent(&mut self, now: Timestamp, part: Part, stamp: Stamp) {
        let state = SegmentState::InFlight;
        self.sent.push_back(Sent { part, sent_at: now, retransmitted: false, stamp, state });
        self.in_flight += 1;
    }

    /// Index of the next segment to retransmit: the first lost one.
    pub(super) fn next_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let skipped = self.sent.iter().skip(self.first_lost);
        self.first_lost += skipped.take_while(|sent| sent.state != SegmentState::Lost).count();
        Some(self.first_lost)
    }

    /// Time of the last transmission of the first segment.
    pub(super) fn first_sent_at(&self) -> Option<Timestamp> {
        self.sent.front().map(|sent| sent.sent_at)
    }

    /// Index of the last segment, if it has not arrived.
    pub(super) fn last(&self) -> Option<usize> {
        let last = self.sent.back()?;
        if last.state != SegmentState::Sacked { Some(self.sent.len() - 1) } else { None }
    }

    /// Retransmits a segment. Returns its data range.
    pub(super) fn on_sent_again(&mut self, now: Timestamp, index: usize, stamp: Stamp) -> Part {
        self.set(index, SegmentState::InFlight);
        let sent = &mut self.sent[index];
        (sent.sent_at, sent.retransmitted, sent.stamp) = (now, true, stamp);
        sent.part.clone()
    }

    /// Takes an acknowledgement. Calls `delivered` for each segment that it newly acknowledges, and
    /// returns their number.
    pub(super) fn on_ack(
        &mut self,
        next: u64,
        blocks: &[Part],
        mut delivered: impl FnMut(&Sent),
    ) -> u64 {
        let mut count = 0;
        while self.sent.front().is_some_and(|sent| sent.part.end <= next) {
            if self.sent[0].state != SegmentState::Sacked {
                count += 1;
                delivered(&self.sent[0]);
            }
            self.set(0, SegmentState::Sacked);
            self.sacked -= 1;
            self.sent.pop_front();
            self.first_lost = self.first_lost.saturating_sub(1);
        }
        for block in blocks {
            let first = self.sent.partition_point(|sent| sent.part.start < block.start);
            for index in first..self.sent.len() {
                if self.sent[index].part.end > block.end {
                    break;
                }
                if self.sent[index].state != SegmentState::Sacked {
                    count += 1;
                    delivered(&self.sent[index]);
                    self.set(index, SegmentState::Sacked);
                }
            }
        }
        count
    }

    /// Marks a segment as lost.
    pub(super) fn mark_lost(&mut self, index: usize) {
        self.set(index, SegmentState::Lost);
        self.first_lost = self.first_lost.min(index);
    }

    /// Marks all lost segments as in flight again.
    pub(super) fn unmark_lost(&mut self) {
        for index in 0..self.sent.len() {
            if self.sent[index].state == SegmentState::Lost {
                self.set(index, SegmentState::InFlight);
            }
        }
    }

    fn set(&mut self, index: usize, state: SegmentState) {
        let old = std::mem::replace(&mut self.sent[index].state, state);
        *self.count_of(old) -= 1;
        *self.count_of(state) += 1;
    }

    fn count_of(&mut self, state: SegmentState) -> &mut u64 {
        match state {
            SegmentState::InFlight => &mut self.in_flight,
            SegmentState::Lost => &mut self.lost,
            SegmentState::Sacked => &mut self.sacked,
        }
    }

    /// Segments in order of sequence number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter()
    }

    /// Number of segments in flight, retransmissions included: `pipe` in the RFCs.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Number of segments that arrived above a hole.
    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Number of segments that wait for retransmission.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of segments that are not acknowledged cumulatively.
    pub(super) fn outstanding(&self) -> u64 {
        self.sent.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten segments of ten bytes, sent a millisecond apart.
    fn ten() -> Scoreboard {
        let mut board = Scoreboard::default();
        for index in 0..10_u64 {
            let now = Timestamp::from_millis(index as i64);
            board.on_sent(now, index * 10..(index + 1) * 10, Stamp::default());
        }
        board
    }

    fn ack(board: &mut Scoreboard, next: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        let mut delivered = Vec::new();
        let blocks: Vec<Part> = blocks.iter().map(|&(start, end)| start..end).collect();
        let count = board.on_ack(next, &blocks, |sent| delivered.push(sent.part.start));
        assert_eq!(count, delivered.len() as u64);
        delivered
    }

    fn counts(board: &Scoreboard) -> (u64, u64, u64) {
        (board.in_flight(), board.sacked(), board.lost())
    }

    #[test]
    fn a_segment_is_delivered_once_by_sack_or_by_the_acknowledgement() {
        let mut board = ten();
        assert_eq!(ack(&mut board, 20, &[(50, 60), (30, 40)]), [0, 10, 50, 30]);
        assert_eq!(counts(&board), (6, 2, 0));
        assert_eq!(ack(&mut board, 20, &[(50, 70), (30, 40)]), [60]);
        assert_eq!(ack(&mut board, 60, &[(60, 70)]), [20, 40]);
        assert_eq!(counts(&board), (3, 1, 0));
        assert_eq!(ack(&mut board, 100, &[]), [70, 80, 90]);
        assert_eq!((counts(&board), board.outstanding()), ((0, 0, 0), 0));
    }

    #[test]
    fn lost_segments_are_sent_again_in_order_and_can_be_lost_again() {
        let mut board = ten();
        ack(&mut board, 10, &[(30, 40)]);
        board.mark_lost(1);
        board.mark_lost(0);
        assert_eq!(counts(&board), (6, 1, 2));
        let again = |board: &mut Scoreboard| {
            let index = board.next_lost()?;
            Some(board.on_sent_again(Timestamp::from_millis(20), index, Stamp::default()))
        };
        assert_eq!(again(&mut board), Some(10..20));
        assert_eq!(again(&mut board), Some(20..30));
        assert_eq!(again(&mut board), None);
        assert_eq!(counts(&board), (8, 1, 0));
        assert!(board.iter().next().unwrap().retransmitted);
        board.mark_lost(0);
        assert_eq!(board.next_lost(), Some(0));
        assert_eq!(ack(&mut board, 20, &[]), [10]);
        assert_eq!(board.next_lost(), None);
    }

    #[test]
    fn what_was_taken_for_lost_can_be_on_its_way_again() {
        let mut board = ten();
        ack(&mut board, 20, &[(40, 60)]);
        for &index in [0, 1, 4, 5, 6, 7].iter() {
            board.mark_lost(index);
        }
        assert_eq!(counts(&board), (0, 2, 6));
        assert_eq!(board.next_lost(), Some(0));
        board.unmark_lost();
        assert_eq!((counts(&board), board.next_lost()), ((6, 2, 0), None));
        assert_eq!(board.last(), Some(7));
        ack(&mut board, 20, &[(80, 100)]);
        assert_eq!(board.last(), None);
    }
}
