//! A path that becomes longer both ways at once (NADA-D18, SCREAMV2-D13).
//!
//! A one-way delay alone takes it for a queue, which no lower rate drains. But a queue makes one
//! way longer, and a new path both: the time of a packet there, and that of its report back. A
//! clock that steps makes one time longer and the other one shorter.
//!
//! The new path may have less capacity, too. Then a queue stands on it until the rate has followed,
//! and the rate of before would fill it again.

use crate::units::{Bitrate, TimeDelta, Timestamp};

/// A way is longer from this on: the queue of a few packets, or a report that waited, is shorter.
const LONGER: TimeDelta = TimeDelta::from_millis(30);
/// Both ways become longer by similar times: each by at least this part of the other.
const SIMILAR: f64 = 0.25;
/// A path that is longer stays so: for this time and so many round trips and reports.
const STAYS: TimeDelta = TimeDelta::from_millis(400);
const STAYS_ROUND_TRIPS: f64 = 2.0;
const STAYS_REPORTS: u32 = 4;
/// Meanwhile a queue would have grown or drained by more than this, or this part of what is more.
const SAME: TimeDelta = TimeDelta::from_millis(5);
const SAME_PART: f64 = 0.125;
/// The ways are compared with those of this time and so many reports before.
const BEFORE: TimeDelta = TimeDelta::from_secs(1);
const BEFORE_REPORTS: u32 = 4;

/// How long the newest packet of a report took, and its report: by two clocks, so that only
/// differences mean something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    pub(crate) there: TimeDelta,
    pub(crate) back: TimeDelta,
}

impl Ways {
    fn shorter(self, other: Self) -> Self {
        Self { there: self.there.min(other.there), back: self.back.min(other.back) }
    }

    /// How they differ from those before.
    fn beyond(self, before: Self) -> Change {
        let (there, back) = (self.there - before.there, self.back - before.back);
        if there < LONGER || back < LONGER || there < back * SIMILAR {
            Change::None
        } else if back < there * SIMILAR {
            Change::Queue
        } else {
            Change::Both
        }
    }
}

/// What became longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// Both ways, by similar times.
    Both,
    /// Both, and the one there by so much more that a queue stands on it.
    Queue,
}

/// Both ways have become longer.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    /// As they were.
    before: Ways,
    /// The rate then; `None` if a queue stood on the new path.
    rate: Option<Bitrate>,
    /// Since when, and for how many reports, packets have taken the same time there.
    since: Timestamp,
    reports: u32,
    shortest: TimeDelta,
    longest: TimeDelta,
}

impl Suspect {
    fn new(now: Timestamp, ways: Ways, before: Ways, rate: Option<Bitrate>) -> Self {
        Self { before, rate, since: now, reports: 1, shortest: ways.there, longest: ways.there }
    }

    fn takes_the_same(&mut self, there: TimeDelta) -> bool {
        (self.shortest, self.longest) = (self.shortest.min(there), self.longest.max(there));
        self.reports += 1;
        let more = self.shortest - self.before.there;
        self.longest - self.shortest <= SAME.max(more * SAME_PART)
    }
}

/// Recognises a path that has become longer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LongerPath {
    /// The shortest ways of this period and of the one before.
    shortest: [Option<Ways>; 2],
    period_begin: Timestamp,
    period_reports: u32,
    suspect: Option<Suspect>,
}

impl LongerPath {
    /// A report came, while this was the rate. If the path is longer since some time, returns the
    /// rate before it was, or that of now if the new path cannot carry that one.
    pub(crate) fn on_report(
        &mut self,
        now: Timestamp,
        ways: Ways,
        round_trip: TimeDelta,
        rate: Bitrate,
    ) -> Option<Bitrate> {
        let Some(suspect) = &mut self.suspect else {
            self.look_for_change(now, ways, rate);
            return None;
        };
        let change = ways.beyond(suspect.before);
        if change == Change::None {
            self.suspect = None;
            return None;
        }
        if change == Change::Queue {
            suspect.rate = None;
        }
        if change == Change::Queue || !suspect.takes_the_same(ways.there) {
            *suspect = Suspect::new(now, ways, suspect.before, suspect.rate);
            return None;
        }
        let stays = STAYS.max(round_trip * STAYS_ROUND_TRIPS);
        if now - suspect.since < stays || suspect.reports < STAYS_REPORTS {
            return None;
        }
        let before = suspect.rate.unwrap_or(rate);
        *self = Self { period_begin: now, ..Self::default() };
        Some(before)
    }

    /// Whether both ways are longer, perhaps not for long enough yet.
    pub(crate) fn is_suspected(&self) -> bool {
        self.suspect.is_some()
    }

    fn look_for_change(&mut self, now: Timestamp, ways: Ways, rate: Bitrate) {
        let before = self.shortest.into_iter().flatten().reduce(Ways::shorter);
        if let Some(before) = before
            && ways.beyond(before) == Change::Both
        {
            self.suspect = Some(Suspect::new(now, ways, before, Some(rate)));
            return;
        }
        if now - self.period_begin >= BEFORE && self.period_reports >= BEFORE_REPORTS {
            self.shortest = [None, self.shortest[0]];
            (self.period_begin, self.period_reports) = (now, 0);
        }
        self.shortest[0] = Some(self.shortest[0].unwrap_or(ways).shorter(ways));
        self.period_reports += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const RATE: Bitrate = Bitrate::from_kbps(1_000);

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Reports each 50 ms for 20 s, with the ways that a time in ms has. Returns when the path was
    /// found to be longer, in ms, and the rate before.
    fn found(ways: impl Fn(i64) -> (i64, i64)) -> Vec<(i64, Bitrate)> {
        let mut path = LongerPath::default();
        let mut found = Vec::new();
        for report in 0..400 {
            let time = 50 * report;
            let (there, back) = ways(time);
            let rate = if time < 10_100 { RATE } else { RATE * 0.5 };
            let ways = Ways { there: ms(there), back: ms(back) };
            let now = Timestamp::from_millis(time);
            let before = path.on_report(now, ways, ms(there + back), rate);
            found.extend(before.map(|before| (time, before)));
        }
        found
    }

    /// Both ways are this much longer from 10 s on.
    fn longer(time: i64, by: i64) -> (i64, i64) {
        if time < 10_000 { (20, 20) } else { (20 + by, 20 + by) }
    }

    // NADA-D18, SCREAMV2-D13
    #[test]
    fn a_path_that_is_longer_both_ways_is_known_after_two_round_trips() {
        assert_eq!(found(|time| longer(time, 30)), [(10_400, RATE)]);
        assert_eq!(found(|time| longer(time, 280)), [(11_200, RATE)]);
        assert_eq!(found(|time| longer(time, 29)), []);
        // The ways need not be alike, nor the clocks.
        let unlike = |time| if time < 10_000 { (-7_000, 7_100) } else { (-6_800, 7_160) };
        assert_eq!(found(unlike), [(10_750, RATE)]);
    }

    #[test]
    fn one_way_that_is_longer_is_a_queue_and_a_clock_that_steps_is_none() {
        for (there, back) in [(100, 0), (0, 100), (100, -100), (200, 40)] {
            let ways = |time| if time < 10_000 { (20, 20) } else { (20 + there, 20 + back) };
            assert_eq!(found(ways), [], "{there} {back}");
        }
    }

    #[test]
    fn a_longer_path_with_less_capacity_is_known_when_its_queue_is_gone() {
        // Both ways are 40 ms longer. There, a queue of up to 400 ms stands for 2 s.
        let narrow = |time: i64| match time {
            ..10_000 => (20, 20),
            10_000..12_000 => (60 + (400 - (time - 11_000).abs() * 2 / 5).max(0), 60),
            _ => (60, 60),
        };
        assert_eq!(found(narrow), [(12_400, RATE * 0.5)]);
    }

    #[test]
    fn queues_both_ways_move() {
        // A queue of 200 ms each way, which grows at 100 ms a second and drains again.
        let swings = |time: i64| {
            let queue = (time % 4_000 - 2_000).abs() / 10;
            (20 + queue, 20 + queue)
        };
        assert_eq!(found(swings), []);
    }

    #[test]
    fn a_path_that_is_longer_for_a_moment_is_as_it_was() {
        let stalls = |time: i64| if time % 2_000 < 200 { (120, 120) } else { (20, 20) };
        assert_eq!(found(stalls), []);
    }
}
