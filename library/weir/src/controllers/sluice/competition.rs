//! Recognises a flow that keeps the queue full, and the time to stop competing with it.

use super::Parameters;
use crate::units::{TimeDelta, Timestamp};

/// Longest time between two tests, in times of the shortest one (S-17).
const INTERVALS: i64 = 16;

/// How long a queue has stood that does not fall, although the sender drains it (S-15).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowding {
    /// Seconds of crowding. Time without a long queue takes them back slowly.
    time_s: f64,
    /// Seconds since the queue last fell.
    flat_s: f64,
    /// The longest and the shortest queue of late.
    most: TimeDelta,
    least: TimeDelta,
}

impl Crowding {
    /// A report showed this queue, `step_s` seconds after the one before. A queue up to `limit` is
    /// not crowded.
    pub(super) fn update(
        &mut self,
        queue: TimeDelta,
        limit: TimeDelta,
        noise: TimeDelta,
        step_s: f64,
        p: &Parameters,
    ) {
        let near = p.q_empty * 2 + noise;
        if queue <= limit {
            *self = Self { time_s: (self.time_s - p.relief * step_s).max(0.0), ..Self::default() };
            return;
        }
        let slow = self.most - p.draining * step_s;
        if queue < slow - near {
            self.most = slow.min(queue + near * 2);
            (self.least, self.flat_s) = (queue, 0.0);
        } else {
            self.least = if self.flat_s > 0.0 { self.least.min(queue) } else { queue };
            self.time_s += step_s;
            self.flat_s += step_s;
            self.most = slow.max(queue);
        }
    }

    /// How long the queue has been crowded.
    pub(super) fn time(&self) -> TimeDelta {
        TimeDelta::from_secs_f64(self.time_s)
    }

    /// Whether the delay has stayed the same for some time, although less is sent (S-19).
    pub(super) fn is_flat(&self, noise: TimeDelta, p: &Parameters) -> bool {
        TimeDelta::from_secs_f64(self.flat_s) > p.t_flat
            && self.most - self.least < p.margin + noise
    }
}

/// The tests whether the rival is still there (S-17).
#[derive(Clone, Copy, Debug)]
pub(super) struct RivalTests {
    /// When the next test is due.
    due: Timestamp,
    /// The running test: its end, and the queue at its beginning.
    running: Option<(Timestamp, TimeDelta)>,
    /// Time between two tests. It doubles each time that the rival comes back.
    interval: TimeDelta,
    /// When the last competition ended.
    left: Option<Timestamp>,
}

/// State of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// None is running.
    None,
    /// It runs.
    Running,
    /// The queue fell: nobody refills it.
    RivalIsGone,
    /// It ended, and the queue stands as before.
    RivalStays,
}

impl RivalTests {
    pub(super) const fn new() -> Self {
        Self {
            due: Timestamp::ZERO,
            running: None,
            interval: Parameters::DEFAULT.t_rival,
            left: None,
        }
    }

    /// Competition begins.
    pub(super) fn on_enter(&mut self, now: Timestamp, p: &Parameters) {
        let is_back = self.left.is_some_and(|left| now - left < p.t_period);
        self.interval =
            if is_back { (self.interval * 2).min(p.t_rival * INTERVALS) } else { p.t_rival };
        self.due = now + self.interval;
        self.running = None;
    }

    /// Competition ends.
    pub(super) fn on_leave(&mut self, now: Timestamp) {
        self.left = Some(now);
        self.running = None;
    }

    /// Whether a test should begin. It begins with a loss, which all flows at a full queue see at
    /// about the same time: so the tests of several flows fall together.
    pub(super) fn is_due(&self, now: Timestamp, has_loss: bool, p: &Parameters) -> bool {
        self.running.is_none() && now > self.due && (has_loss || now > self.due + p.t_rival * 2)
    }

    /// A test begins at this queue.
    pub(super) fn begin(&mut self, until: Timestamp, queue: TimeDelta) {
        self.running = Some((until, queue));
    }

    /// The result of the running test, given the queue now.
    pub(super) fn check(&mut self, now: Timestamp, queue: TimeDelta) -> Test {
        let Some((until, before)) = self.running else { return Test::None };
        if queue < before / 2 {
            Test::RivalIsGone
        } else if now < until {
            Test::Running
        } else {
            self.running = None;
            self.due = now + self.interval;
            Test::RivalStays
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Parameters = Parameters::DEFAULT;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Crowding after 5 s, with reports each 50 ms, of a queue at a time in ms.
    fn crowded(queue_at: impl Fn(i64) -> i64) -> Crowding {
        let mut crowding = Crowding::default();
        for step in 0..100 {
            crowding.update(ms(queue_at(step * 50)), ms(50), ms(0), 0.05, &P);
        }
        crowding
    }

    // S-15
    #[test]
    fn a_queue_that_stands_or_grows_is_crowded_and_one_that_falls_is_not() {
        assert!(crowded(|_| 200).time() > ms(4_900));
        assert!(crowded(|at| 100 + at / 50).time() > ms(4_900));
        assert!(crowded(|at| 600 - at / 10).time() < ms(1_500));
        assert_eq!(crowded(|_| 40).time(), ms(0));
    }

    // S-15
    #[test]
    fn a_sawtooth_is_crowded_although_it_is_short_at_times() {
        let saw = crowded(|at| if at % 1_000 < 200 { 20 } else { 100 + at % 1_000 / 10 });
        assert!(saw.time() > ms(2_500), "{}", saw.time());
    }

    // S-19
    #[test]
    fn a_delay_is_flat_if_it_has_not_changed_for_800_ms() {
        assert!(crowded(|_| 200).is_flat(ms(0), &P));
        assert!(!crowded(|at| if at < 4_500 { 300 } else { 200 }).is_flat(ms(0), &P));
        assert!(!crowded(|at| 100 + at / 50).is_flat(ms(0), &P), "it grows by 20 ms a second");
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    // S-17
    #[test]
    fn a_test_begins_with_a_loss_after_3_s_or_6_s_later_without_one() {
        let mut tests = RivalTests::new();
        tests.on_enter(at(0), &P);
        assert!(!tests.is_due(at(2_900), true, &P));
        assert!(tests.is_due(at(3_100), true, &P));
        assert!(!tests.is_due(at(3_100), false, &P));
        assert!(tests.is_due(at(9_100), false, &P));
    }

    // S-17
    #[test]
    fn half_of_the_queue_gone_means_that_the_rival_is_gone() {
        let mut tests = RivalTests::new();
        tests.on_enter(at(0), &P);
        assert_eq!(tests.check(at(3_200), ms(200)), Test::None);
        tests.begin(at(4_200), ms(200));
        assert_eq!(tests.check(at(3_300), ms(150)), Test::Running);
        assert_eq!(tests.check(at(3_400), ms(99)), Test::RivalIsGone);
        assert_eq!(tests.check(at(4_200), ms(150)), Test::RivalStays);
        assert!(!tests.is_due(at(7_100), true, &P), "the next one is 3 s later");
    }

    // S-17
    #[test]
    fn the_tests_of_a_rival_that_comes_back_become_rare() {
        let mut tests = RivalTests::new();
        tests.on_enter(at(0), &P);
        tests.on_leave(at(4_000));
        tests.on_enter(at(10_000), &P);
        assert!(!tests.is_due(at(15_900), true, &P));
        assert!(tests.is_due(at(16_100), true, &P));
        tests.on_leave(at(20_000));
        tests.on_enter(at(36_000), &P);
        assert!(tests.is_due(at(39_100), true, &P), "another rival");
    }
}
