//! When the numbers of a stream begin anew.
//!
//! A number that is far behind the newest is no packet that comes late: the sender restarted, or
//! the number is damaged. Two of them in a row begin anew [RFC3550 §A.1]. What is far depends on
//! time and not on packets, because a repeat comes a round trip later at any rate.

use crate::units::{TimeDelta, Timestamp};

/// Numbers this close behind the newest come late, however slow the stream is. `MAX_MISORDER`
/// [RFC3550 §A.1].
const NEAR: i64 = 100;
/// A repeat may come for this time: two round trips to a sender a second away.
const WINDOW: TimeDelta = TimeDelta::from_secs(2);
/// Numbers of that time begin anew if nothing newer comes for so long.
const ALONE: TimeDelta = TimeDelta::from_millis(300);

/// What the number of a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is newer than all before it.
    Newer,
    /// It is not newer: it comes late, or for the second time.
    Late,
    /// It is far from the others. It is the first after a restart if the next one begins anew.
    Far,
    /// The numbers begin anew.
    Anew,
}

/// Numbers in a row, none of which is newer than the newest.
#[derive(Clone, Copy, Debug)]
struct Run {
    since: Timestamp,
    last: i64,
}

impl Run {
    fn is_before(&self, number: i64) -> bool {
        (1..=NEAR).contains(&number.saturating_sub(self.last))
    }
}

/// Tells packets that come late from numbers that begin anew.
#[derive(Clone, Copy, Debug, Default)]
pub struct Restarts {
    /// The newest number, and when it came.
    newest: Option<(Timestamp, i64)>,
    /// Times at least a window apart, and the newest number at each.
    marks: [Option<(Timestamp, i64)>; 2],
    run: Option<Run>,
}

impl Restarts {
    /// The numbers begin with this one, unwrapped.
    pub fn begin(&mut self, now: Timestamp, number: i64) {
        *self = Self { newest: Some((now, number)), marks: [Some((now, number)), None], run: None };
    }

    /// The place of a packet with this number, unwrapped. A number that is ahead by more than
    /// `most`, and by more than came in the last seconds, is far as well.
    pub fn place(&mut self, now: Timestamp, number: i64, most: i64) -> Place {
        let Some((came, newest)) = self.newest else {
            self.begin(now, number);
            return Place::Newer;
        };
        let before = self.marks[1].or(self.marks[0]).map_or(newest, |(_, number)| number);
        let ahead = number.saturating_sub(newest);
        if ahead > 0 && ahead <= most.max(newest - before) {
            self.newest = Some((now, number));
            self.run = None;
            if self.marks[0].is_none_or(|(at, _)| now - at >= WINDOW) {
                self.marks = [Some((now, number)), self.marks[0]];
            }
            return Place::Newer;
        }
        // After a silence nothing comes late.
        let is_far = ahead > 0 || number < before.saturating_sub(NEAR) || now - came >= WINDOW;
        let Some(run) = self.run.filter(|run| run.is_before(number)) else {
            self.run = Some(Run { since: now, last: number });
            return if is_far { Place::Far } else { Place::Late };
        };
        self.run = Some(Run { last: number, ..run });
        let is_alone = ahead < -NEAR && now - run.since >= ALONE;
        if is_far || is_alone { Place::Anew } else { Place::Late }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of this many packets a second, after ten seconds from number 0 on.
    fn stream(per_second: i64) -> (Restarts, Timestamp, i64) {
        let (mut restarts, mut now) = (Restarts::default(), Timestamp::ZERO);
        for number in 0..per_second * 10 {
            assert_eq!(restarts.place(now, number, i64::MAX), Place::Newer);
            now += TimeDelta::from_secs(1) / per_second;
        }
        (restarts, now, per_second * 10 - 1)
    }

    // [RFC3550 §A.1]
    #[test]
    fn numbers_that_go_far_back_begin_anew_with_the_second() {
        for per_second in [10, 100, 1_000] {
            let (mut restarts, now, newest) = stream(per_second);
            let back = newest - per_second * 4 - 200;
            assert_eq!(restarts.place(now, back, i64::MAX), Place::Far);
            assert_eq!(restarts.place(now, back + 1, i64::MAX), Place::Anew);
        }
    }

    #[test]
    fn numbers_of_the_last_seconds_begin_anew_when_they_stay_alone() {
        let (mut restarts, mut now, newest) = stream(1_000);
        let mut number = newest - 500;
        let from = now;
        while restarts.place(now, number, i64::MAX) == Place::Late {
            number += 1;
            now += TimeDelta::from_millis(1);
        }
        assert_eq!(now - from, ALONE);
    }

    #[test]
    fn repeats_beside_new_packets_come_late() {
        let (mut restarts, mut now, mut newest) = stream(1_000);
        for _ in 0..2_000 {
            newest += 1;
            assert_eq!(restarts.place(now, newest, i64::MAX), Place::Newer);
            for number in newest - 1_500..newest - 1_490 {
                assert_eq!(restarts.place(now, number, i64::MAX), Place::Late);
            }
            now += TimeDelta::from_millis(1);
        }
    }

    #[test]
    fn numbers_near_the_newest_begin_anew_after_a_silence() {
        for (after, place) in [(1_900, Place::Late), (2_000, Place::Far)] {
            let (mut restarts, now, newest) = stream(100);
            let now = now + TimeDelta::from_millis(after);
            assert_eq!(restarts.place(now, newest - 20, i64::MAX), place);
        }
    }

    // [RFC3550 §A.1]
    #[test]
    fn a_jump_ahead_is_far_only_beyond_what_may_be_lost() {
        let (mut restarts, now, newest) = stream(10);
        assert_eq!(restarts.place(now, newest + 3_001, 3_000), Place::Far);
        assert_eq!(restarts.place(now, newest + 1, 3_000), Place::Newer);
        assert_eq!(restarts.place(now, newest + 2_900, 3_000), Place::Newer);
        assert_eq!(restarts.place(now, newest + 9_000, 3_000), Place::Far);
        assert_eq!(restarts.place(now, newest + 9_001, 3_000), Place::Anew);
        let (mut restarts, now, newest) = stream(10_000);
        assert_eq!(restarts.place(now, newest + 9_000, 3_000), Place::Newer);
    }
}
