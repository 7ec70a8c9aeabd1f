//! The receiver's clock without its steps and its drift (S-37).
//!
//! A receiver restarts, its clock is set, or it runs faster than the sender's. Nothing of the path
//! has changed then. A one-way delay alone cannot tell such a change from a queue. But what a clock
//! adds to the delay, it takes from the *return time*: the time from the arrival of the newest
//! packet of a report until the report is there. A queue changes the delay alone.

use super::Parameters;
use super::in_order::InOrder;
use super::queue::Queue;
use crate::controllers::clock_drift::ClockDrift;
use crate::feedback::FeedbackReport;
use crate::units::{TimeDelta, Timestamp};

/// Less than this is no step: times on the wire are rounded to about a millisecond.
const LEAST: TimeDelta = TimeDelta::from_millis(5);
/// Reports that may show a step. One that the receiver held back for longer than usual hides it.
const CHANCES: usize = 4;
/// A step is longer than this many times the noise of the delay.
const NOISES: i64 = 4;
/// A longer queue drains within a few reports, so the delays before a step are no guide.
const LONG_QUEUE: TimeDelta = TimeDelta::from_millis(50);
/// Reports before the shortest return time is known: a receiver holds most of them back.
const ENOUGH: u32 = 20;

/// What the newest reports show, one after the other.
#[derive(Clone, Copy, Debug)]
struct Recent {
    return_time: TimeDelta,
    /// The smallest delay in it.
    delay: TimeDelta,
}

const UNKNOWN: Recent = Recent { return_time: TimeDelta::MAX, delay: TimeDelta::MAX };

/// Takes steps and drift out of a receiver's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiverClock {
    /// How far the clock is ahead of what it would have been without steps and drift.
    ahead: TimeDelta,
    drift: ClockDrift,
    last_report: Option<Timestamp>,
    /// The newest report and those before it.
    recent: [Recent; CHANCES],
    /// Reports so far, up to [`ENOUGH`].
    reports: u32,
    /// How far the return time of this report is below the shortest one, or above if negative.
    fell: TimeDelta,
    /// Arrivals of the newest packets of this report and of the one before.
    newest: [Timestamp; 2],
}

impl Default for ReceiverClock {
    fn default() -> Self {
        Self {
            ahead: TimeDelta::ZERO,
            drift: ClockDrift::new(),
            last_report: None,
            recent: [UNKNOWN; CHANCES],
            reports: 0,
            fell: TimeDelta::ZERO,
            newest: [Timestamp::ZERO; 2],
        }
    }
}

impl ReceiverClock {
    /// A report begins. The delay has this noise. A long one, as of a radio link, hides the drift.
    pub(super) fn begin_report(
        &mut self,
        now: Timestamp,
        report: &FeedbackReport,
        noise: TimeDelta,
        p: &Parameters,
    ) {
        let Some(newest) = report.packets.iter().rev().find_map(|packet| packet.arrival_time)
        else {
            return;
        };
        let last = self.last_report.replace(now).unwrap_or(now);
        if noise < p.q_stands {
            self.ahead += (now - last).max(TimeDelta::ZERO) * self.drift.share();
        }
        // The newest reports do not count: they may show a step.
        let left = self.recent[CHANCES - 1].return_time;
        self.recent.rotate_right(1);
        if left < TimeDelta::MAX {
            self.drift.learn(now, left, p.drift_max, p.q_sight);
        }
        self.newest = [newest - self.ahead, self.newest[0]];
        let return_time = now - self.newest[0];
        self.recent[0] = Recent { return_time, ..UNKNOWN };
        self.reports = (self.reports + 1).min(ENOUGH);
        self.fell = match self.drift.shortest() {
            Some(shortest) if self.reports == ENOUGH => shortest - return_time,
            _ => TimeDelta::ZERO,
        };
    }

    /// When a packet of the report arrived, had the clock neither stepped nor drifted. `now` is the
    /// time of the report.
    #[inline]
    pub(super) fn arrival(
        &mut self,
        now: Timestamp,
        sent: Timestamp,
        shown: Timestamp,
        queue: &Queue,
    ) -> Timestamp {
        let mut delay = shown - self.ahead - sent;
        let above = queue.above_base(delay);
        // No path becomes shorter or longer by more than its round trip. Most delays differ by less
        // than any.
        let is_far = above.abs() > LEAST && above.abs() > (now - sent).max(TimeDelta::ZERO) + LEAST;
        if self.fell.abs() > LEAST || is_far {
            delay = self.without_step(now, sent, delay, above, queue);
        }
        self.on_delay(delay);
        sent + delay
    }

    /// How far the clock is ahead while this stretch arrives; `None` if it may be stepped in it.
    pub(super) fn ahead_in(
        &self,
        stretch: &InOrder,
        now: Timestamp,
        queue: &Queue,
    ) -> Option<TimeDelta> {
        let far = (now - stretch.sent[1]).max(TimeDelta::ZERO) + LEAST;
        let [least, most] =
            stretch.extremes.map(|delay| queue.above_base(delay - self.ahead).abs());
        (self.fell.abs() <= LEAST && least.max(most) <= far).then_some(self.ahead)
    }

    /// A delay of the report, the clock's steps and drift left out.
    pub(super) fn on_delay(&mut self, delay: TimeDelta) {
        self.recent[0].delay = self.recent[0].delay.min(delay);
    }

    /// The delay of a packet without a step, if the clock was stepped before it arrived. It differs
    /// by this much from the base.
    #[inline(never)]
    fn without_step(
        &mut self,
        now: Timestamp,
        sent: Timestamp,
        delay: TimeDelta,
        above_base: TimeDelta,
        queue: &Queue,
    ) -> TimeDelta {
        let before = self.recent[1..].iter().map(|recent| recent.delay).min();
        let Some(usual) = before.filter(|usual| *usual < TimeDelta::MAX) else { return delay };
        let by = delay - usual;
        let (size, fell) = (by.abs(), self.fell.abs());
        let is_same_way = (by > TimeDelta::ZERO) == (self.fell > TimeDelta::ZERO);
        // A queue that leaves keeps the order of arrivals. What falls by less becomes the base.
        let is_clear = by > LEAST || sent + delay < self.newest[1];
        // What a radio link's delay does by chance is no step.
        let is_told = is_same_way
            && is_clear
            && size <= fell * 2
            && fell <= size * 2
            && size > queue.noise() * NOISES;
        let is_far = above_base.abs() > (now - sent).max(TimeDelta::ZERO) + LEAST;
        if !is_told && !is_far {
            return delay;
        }
        // The queue is as it was. Of a long one, the way back tells more.
        let drains = is_told && queue.above_base(usual) > LONG_QUEUE;
        let by = if drains { self.fell } else { by };
        self.ahead += by;
        self.fell = TimeDelta::ZERO;
        self.recent[0].return_time += by;
        self.newest[0] -= by;
        for recent in &mut self.recent[1..] {
            // It may be on either clock.
            recent.return_time = TimeDelta::MAX;
        }
        delay - by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::PacketReport;
    use crate::units::DataSize;
    use alloc::vec::Vec;

    const RTT: TimeDelta = TimeDelta::from_millis(60);
    const P: Parameters = Parameters::DEFAULT;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// What a report of five packets shows, and when it comes.
    struct Shown {
        now: Timestamp,
        /// Waits in the queue, and on the way back.
        waits: TimeDelta,
        returns: TimeDelta,
        clock: TimeDelta,
    }

    /// The delay of the last packet of each report without the clock, for a path of 25 ms.
    fn delays(reports: impl Iterator<Item = Shown>) -> Vec<TimeDelta> {
        let (mut clock, mut queue) = (ReceiverClock::default(), Queue::new());
        let mut seen = Vec::new();
        for shown in reports {
            let sent = [50, 40, 30, 20, 0].map(|ago| shown.now - RTT - ms(ago));
            let packets = sent.map(|sent| {
                let arrival = sent + ms(25) + shown.waits + shown.clock;
                PacketReport::new(0, DataSize::from_bytes(1_000), sent)
                    .with_arrival_time(Some(arrival))
            });
            let now = shown.now + shown.waits + shown.returns;
            let report = FeedbackReport::new(packets.into());
            queue.begin_report();
            clock.begin_report(now, &report, queue.noise(), &P);
            let mut delay = TimeDelta::ZERO;
            for packet in &report.packets {
                let shown = packet.arrival_time.expect("it arrived");
                let arrived = clock.arrival(now, packet.send_time, shown, &queue);
                delay = arrived - packet.send_time;
                queue.on_packet(now, arrived, delay, &P);
            }
            queue.end_report(now, &P);
            seen.push(delay);
        }
        seen
    }

    fn report(number: i64, waits: TimeDelta, returns: TimeDelta, clock: TimeDelta) -> Shown {
        let now = Timestamp::from_millis(1_000 + 50 * number);
        Shown { now, waits, returns, clock }
    }

    // S-37
    #[test]
    fn a_step_of_any_size_either_way_changes_no_delay() {
        for step in [15, 40, 100, 500, 1_000, 60_000, 3_600_000, 400_000_000] {
            for step in [ms(step), -ms(step)] {
                let seen = delays((0..60).map(|number| {
                    let waits = ms(if number < 10 { 0 } else { 4 });
                    let held = ms(number * 7 % 10);
                    report(number, waits, held, if number < 30 { ms(0) } else { step })
                }));
                let change = seen[59] - seen[29];
                // A step back by less than a packet's gap becomes the base.
                let least = if step > ms(-60) { step.min(ms(-1)) } else { ms(-1) };
                assert!((least..=ms(1)).contains(&change), "{step}: {change}");
            }
        }
    }

    // S-37
    #[test]
    fn a_step_while_a_queue_drains_leaves_what_has_drained() {
        for step in [-3_600_000, -30_000, -2_000, 2_000, 60_000] {
            let seen = delays((0..60).map(|number| {
                // It falls by 30 ms from report to report.
                let waits = ms(if number < 25 { 0 } else { (400 - (number - 25) * 30).max(0) });
                let held = ms(number * 7 % 10);
                report(number, waits, held, ms(if number < 30 { 0 } else { step }))
            }));
            let change = seen[59] - seen[0];
            assert!(change.abs() <= ms(10), "{step}: {change}");
        }
    }

    // S-37
    #[test]
    fn a_queue_that_comes_or_leaves_is_no_step_of_the_clock() {
        for wait in [20, 200, 1_000] {
            let reports = 40 + wait / 25;
            let seen = delays((0..reports * 2).map(|number| {
                // No faster than a second a second.
                let left = (wait - (number - reports).max(0) * 50).max(0);
                let waits = if number < 20 { 0 } else { left };
                report(number, ms(waits), ms(number * 7 % 10), ms(0))
            }));
            assert_eq!(seen[reports as usize - 1] - seen[0], ms(wait));
            assert_eq!(seen[reports as usize * 2 - 1], seen[0]);
        }
    }

    // S-37
    #[test]
    fn a_way_back_that_changes_is_no_step_of_the_clock() {
        let seen = delays((0..60).map(|number| {
            let returns = [0, 300, 40, 0, 700][number as usize / 12];
            report(number, ms(3), ms(returns), ms(0))
        }));
        assert!(seen.iter().all(|delay| *delay == ms(28)), "{seen:?}");
    }

    // S-37
    #[test]
    fn a_clock_that_gains_up_to_1000_ppm_is_no_queue() {
        for ppm in [100, 300, 1_000] {
            let seen = delays((0..2_400).map(|number| {
                let gained = TimeDelta::from_nanos(50 * ppm * number);
                report(number, ms(5), ms(number * 7 % 30), gained)
            }));
            let change = seen[2_399] - seen[1_800];
            assert!(change.abs() < TimeDelta::from_micros(1_500), "{ppm} ppm: {change} in 30 s");
        }
    }
}
