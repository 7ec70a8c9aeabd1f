//! RACK loss detection: a segment is lost if a segment sent later has arrived and the reordering
//! window has passed [RFC8985 §6.2].

use weir::units::{TimeDelta, Timestamp};

use super::scoreboard::{Scoreboard, Sent};

/// `DupThresh`: number of segments above a hole from which the reordering window is zero
/// [RFC8985 §6.2].
const DUPLICATE_THRESHOLD: u64 = 3;
/// Step of the reordering window: the minimum round-trip time divided by this.
const WINDOW_STEP: i64 = 4;
/// Number of recoveries for which a wider reordering window is kept [RFC8985 §6.2].
const WINDOW_PERSISTS: u32 = 16;

/// State of RACK. Names in backticks are the RFC's [RFC8985 §5.2].
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`: of all delivered segments, the one sent last.
    newest: Option<(Timestamp, u64)>,
    /// `RACK.rtt`: round-trip time of the segment delivered last.
    rtt: TimeDelta,
    /// `RACK.fack`: the highest delivered sequence number.
    highest: u64,
    reordering_seen: bool,
    /// `RACK.reo_wnd_mult`.
    window_steps: i64,
    /// `RACK.reo_wnd_persist`.
    window_persists: u32,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            rtt: TimeDelta::ZERO,
            highest: 0,
            reordering_seen: false,
            window_steps: 1,
            window_persists: WINDOW_PERSISTS,
        }
    }
}

/// Times that the detection needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) smoothed_rtt: TimeDelta,
    pub(super) min_rtt: TimeDelta,
}

impl Rack {
    /// A segment arrived.
    pub(super) fn on_delivered(&mut self, now: Timestamp, sent: &Sent, min_rtt: TimeDelta) {
        // Step 3: a late first transmission indicates reordering.
        if sent.part.end < self.highest && !sent.retransmitted {
            self.reordering_seen = true;
        }
        self.highest = self.highest.max(sent.part.end);
        let rtt = now - sent.sent_at;
        // Step 2: such an early acknowledgement is for the original, not for the retransmission.
        // The echoed timestamp does not help: the acknowledgement of a block above a hole echoes
        // the time of a segment below the hole.
        if sent.retransmitted && rtt < min_rtt {
            return;
        }
        self.rtt = rtt;
        if self.newest.is_none_or(|newest| (sent.sent_at, sent.part.end) > newest) {
            self.newest = Some((sent.sent_at, sent.part.end));
        }
    }

    /// A retransmission was unnecessary, so the window was too short (step 4).
    pub(super) fn on_needless_retransmission(&mut self) {
        self.window_steps += 1;
        self.window_persists = WINDOW_PERSISTS;
    }

    /// A recovery has ended.
    pub(super) fn on_recovery_end(&mut self) {
        self.window_persists = self.window_persists.saturating_sub(1);
        if self.window_persists == 0 {
            self.window_steps = 1;
        }
    }

    /// Step 4: time for which a segment may be out of order before it counts as lost.
    fn reordering_window(&self, times: Times, sacked: u64, in_recovery: bool) -> TimeDelta {
        if !self.reordering_seen && (in_recovery || sacked >= DUPLICATE_THRESHOLD) {
            return TimeDelta::ZERO;
        }
        (times.min_rtt * self.window_steps / WINDOW_STEP).min(times.smoothed_rtt)
    }

    /// Step 5: marks the segments that are lost by now. Returns their number, and the time after
    /// which the remaining overtaken segments must be checked.
    pub(super) fn detect(
        &self,
        now: Timestamp,
        board: &mut Scoreboard,
        times: Times,
        in_recovery: bool,
    ) -> (u64, Option<TimeDelta>) {
        let Some(newest) = self.newest else { return (0, None) };
        let patience = self.rtt + self.reordering_window(times, board.sacked(), in_recovery);
        let (mut lost, mut wait) = (Vec::new(), None);
        for (index, sent) in board.iter().enumerate() {
            let is_older = (sent.sent_at, sent.part.end) < newest;
            // This segment was sent once, after the newest one. All later segments were sent after
            // it.
            if !is_older && !sent.retransmitted {
                break;
            }
            if !is_older || !sent.is_in_flight() {
                continue;
            }
            let left = patience - (now - sent.sent_at);
            if left <= TimeDelta::ZERO {
                lost.push(index);
            } else {
                wait = Some(wait.map_or(left, |wait: TimeDelta| wait.max(left)));
            }
        }
        for &index in &lost {
            board.mark_lost(index);
        }
        (lost.len() as u64, wait)
    }

    /// The retransmission timer has expired. Marks as lost the first segment, and all others that
    /// have had time to arrive [RFC8985 §6.3].
    pub(super) fn mark_lost_at_timeout(&self, now: Timestamp, board: &mut Scoreboard) {
        let is_lost = |(index, sent): (usize, &Sent)| {
            let had_time = now - sent.sent_at >= self.rtt;
            (sent.is_in_flight() && (index == 0 || had_time)).then_some(index)
        };
        let lost: Vec<usize> = board.iter().enumerate().filter_map(is_lost).collect();
        for &index in &lost {
            board.mark_lost(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery_rate::Stamp;
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);
    const TIMES: Times = Times { smoothed_rtt: RTT, min_rtt: RTT };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Six segments of ten bytes, sent a millisecond apart.
    fn six() -> Scoreboard {
        let mut board = Scoreboard::default();
        for index in 0..6_u64 {
            board.on_sent(at(index as i64), index * 10..(index + 1) * 10, Stamp::default());
        }
        board
    }

    fn sack(
        rack: &mut Rack,
        board: &mut Scoreboard,
        ms: i64,
        next: u64,
        block: std::ops::Range<u64>,
    ) {
        board.on_ack(next, &[block], |sent| rack.on_delivered(at(ms), sent, RTT));
    }

    #[test]
    fn one_segment_above_a_hole_starts_a_wait_of_a_quarter_of_the_round_trip() {
        let (mut rack, mut board) = (Rack::default(), six());
        sack(&mut rack, &mut board, 101, 0, 10..20);
        // Segment 0 left at 0 ms. It is lost after 100 + 25 ms.
        let wait = TimeDelta::from_millis(24);
        assert_eq!(rack.detect(at(101), &mut board, TIMES, false), (0, Some(wait)));
        assert_eq!(rack.detect(at(125), &mut board, TIMES, false), (1, None));
    }

    #[test]
    fn three_segments_above_a_hole_or_a_recovery_close_the_window() {
        let (mut rack, mut board) = (Rack::default(), six());
        sack(&mut rack, &mut board, 103, 0, 10..40);
        assert_eq!(rack.detect(at(103), &mut board, TIMES, false), (1, None));
        let (mut rack, mut board) = (Rack::default(), six());
        sack(&mut rack, &mut board, 101, 0, 10..20);
        assert_eq!(rack.detect(at(101), &mut board, TIMES, true), (1, None));
    }

    #[test]
    fn a_reordering_path_keeps_the_window_and_a_needless_repeat_widens_it() {
        let (mut rack, mut board) = (Rack::default(), six());
        sack(&mut rack, &mut board, 101, 0, 10..20);
        sack(&mut rack, &mut board, 102, 10, 10..20);
        sack(&mut rack, &mut board, 105, 20, 30..60);
        let wait = TimeDelta::from_millis(100 + 25 - 103);
        assert_eq!(rack.detect(at(105), &mut board, TIMES, false), (0, Some(wait)));
        rack.on_needless_retransmission();
        let wait = TimeDelta::from_millis(100 + 50 - 103);
        assert_eq!(rack.detect(at(105), &mut board, TIMES, false), (0, Some(wait)));
        for _ in 0..16 {
            rack.on_recovery_end();
        }
        let wait = TimeDelta::from_millis(100 + 25 - 103);
        assert_eq!(rack.detect(at(105), &mut board, TIMES, false), (0, Some(wait)));
    }

    #[test]
    fn patience_is_the_time_of_what_arrived_last_though_it_is_not_the_newest() {
        let (mut rack, mut board) = (Rack::default(), six());
        sack(&mut rack, &mut board, 105, 0, 50..60);
        sack(&mut rack, &mut board, 130, 0, 10..20);
        assert_eq!((rack.newest, rack.rtt), (Some((at(5), 60)), TimeDelta::from_millis(129)));
    }

    #[test]
    fn a_retransmission_is_lost_when_one_sent_after_it_arrives() {
        let (mut rack, mut board) = (Rack::default(), six());
        sack(&mut rack, &mut board, 103, 0, 10..40);
        rack.detect(at(103), &mut board, TIMES, false);
        board.on_sent_again(at(103), 0, Stamp::default());
        // New data, sent after the retransmission, arrives before it.
        board.on_sent(at(104), 60..70, Stamp::default());
        sack(&mut rack, &mut board, 204, 0, 60..70);
        // Segments 4 and 5 and the retransmission left at 4, 5 and 103 ms.
        assert_eq!(rack.detect(at(204), &mut board, TIMES, true), (3, None));
    }

    #[test]
    fn an_early_acknowledgement_of_a_retransmission_says_nothing_of_its_time() {
        let (mut rack, mut board) = (Rack::default(), six());
        board.mark_lost(0);
        board.on_sent_again(at(50), 0, Stamp::default());
        board.on_ack(10, &[], |sent| rack.on_delivered(at(101), sent, RTT));
        assert_eq!(rack.newest, None);
        sack(&mut rack, &mut board, 101, 10, 10..20);
        assert_eq!(rack.newest, Some((at(1), 20)));
    }
}
