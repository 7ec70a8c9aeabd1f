//! The standing queue of the path, and the noise of its delay.
//!
//! The clocks of sender and receiver need not agree: the base delay and every sample contain the
//! same offset, which cancels in their difference.

use super::Parameters;
use super::base::Base;
use crate::units::{TimeDelta, Timestamp};

/// Time after which a report closes a bucket, over which one minimum of the delay is taken: some
/// 50 ms, since reports are not quite on time.
pub(super) const CLOSES: TimeDelta = TimeDelta::from_millis(45);
/// Longest time of arrivals in one bucket. A report of a longer time closes several.
const BUCKET_MAX: TimeDelta = TimeDelta::from_millis(100);
/// Buckets whose minimum is the standing queue.
const STANDING: usize = 2;

/// Standing queue, base delay and delay noise.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    base: Base,
    /// Minima of the newest complete buckets, newest first. Unused entries are `MAX`.
    buckets: [TimeDelta; STANDING],
    /// Longest delay of the report, and of late.
    longest: TimeDelta,
    top: TimeDelta,
    /// Minimum of the bucket that is being filled.
    filling: TimeDelta,
    bucket_end: Timestamp,
    /// The first arrival in it.
    filling_from: Timestamp,
    /// Mean difference of successive buckets, in milliseconds.
    noise_ms: f64,
    /// When the delay last rose by [`Parameters::noise_step_max`] or more at once.
    stepped_at: Timestamp,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            base: Base::new(),
            buckets: [TimeDelta::MAX; STANDING],
            longest: TimeDelta::from_nanos(i64::MIN),
            top: TimeDelta::ZERO,
            filling: TimeDelta::MAX,
            bucket_end: Timestamp::ZERO,
            filling_from: Timestamp::ZERO,
            noise_ms: 0.0,
            stepped_at: Timestamp::ZERO,
        }
    }

    /// A report begins.
    pub(super) fn begin_report(&mut self) {
        self.longest = TimeDelta::from_nanos(i64::MIN);
    }

    /// Adds the one-way delay of a packet of the report at `now`, which arrived at `arrived`.
    /// Returns how far it is above the base.
    pub(super) fn on_packet(
        &mut self,
        now: Timestamp,
        arrived: Timestamp,
        delay: TimeDelta,
        p: &Parameters,
    ) -> TimeDelta {
        if self.filling == TimeDelta::MAX {
            self.filling_from = arrived;
        } else if arrived - self.filling_from > BUCKET_MAX {
            self.close_bucket(now, p);
            self.filling_from = arrived;
        }
        self.filling = self.filling.min(delay);
        self.longest = self.longest.max(delay);
        self.above_base(delay)
    }

    /// The base while packets arrive in order between these times; `None` if it is unknown or may
    /// change.
    pub(super) fn base_in(&self, [first, last]: [Timestamp; 2]) -> Option<TimeDelta> {
        let from = if self.filling == TimeDelta::MAX { first } else { self.filling_from };
        let base = self.base();
        (last - from <= BUCKET_MAX && base < TimeDelta::MAX).then_some(base)
    }

    /// Adds the delays of packets, the first of which arrived at `first`, between which the base
    /// does not change.
    pub(super) fn on_delays(&mut self, first: Timestamp, shortest: TimeDelta, longest: TimeDelta) {
        if self.filling == TimeDelta::MAX {
            self.filling_from = first;
        }
        self.filling = self.filling.min(shortest);
        self.longest = self.longest.max(longest);
    }

    /// How far a delay is above the base: nothing while there is none.
    pub(super) fn above_base(&self, delay: TimeDelta) -> TimeDelta {
        let base = self.base();
        if base == TimeDelta::MAX { TimeDelta::ZERO } else { delay - base }
    }

    /// The delay that every packet of the last moments had. `None` before the first report.
    pub(super) fn usual_delay(&self) -> Option<TimeDelta> {
        let min = self.buckets.into_iter().fold(self.filling, TimeDelta::min);
        (min < TimeDelta::MAX).then_some(min)
    }

    /// A report is complete.
    pub(super) fn end_report(&mut self, now: Timestamp, p: &Parameters) {
        let above = self.longest - self.base();
        self.top = (self.top * p.top_decay).max(above);
        if now >= self.bucket_end && self.filling < TimeDelta::MAX {
            self.close_bucket(now, p);
        }
    }

    fn close_bucket(&mut self, now: Timestamp, p: &Parameters) {
        let min = core::mem::replace(&mut self.filling, TimeDelta::MAX);
        self.bucket_end = now + CLOSES;
        self.base.on_bucket(now, min, p);
        if self.buckets[0] < TimeDelta::MAX {
            if min - self.buckets[0] >= p.noise_step_max {
                self.stepped_at = now;
            }
            let step = (min - self.buckets[0]).abs().min(p.noise_step_max).as_millis_f64();
            self.noise_ms += p.noise_gain * (step - self.noise_ms);
        }
        self.buckets.rotate_right(1);
        self.buckets[0] = min;
    }

    /// Whether the longest delay of this report is in the upper half of those of late.
    pub(super) fn is_at_top(&self) -> bool {
        self.longest - self.base() > self.top / 2
    }

    /// Delay of the empty path, with the offset of the clocks.
    fn base(&self) -> TimeDelta {
        self.base.delay()
    }

    /// The queuing delay that every packet of the last moments had. `None` before the first report.
    pub(super) fn standing(&self) -> Option<TimeDelta> {
        let min = self.buckets.into_iter().fold(self.filling, TimeDelta::min);
        (min < TimeDelta::MAX && self.base() < TimeDelta::MAX).then(|| min - self.base())
    }

    /// The queuing delay of the newest complete bucket and the open one (S-29).
    pub(super) fn newest(&self) -> Option<TimeDelta> {
        let min = self.buckets[0].min(self.filling);
        (min < TimeDelta::MAX && self.base() < TimeDelta::MAX).then(|| min - self.base())
    }

    /// How much the delay varies from one bucket to the next.
    pub(super) fn noise(&self) -> TimeDelta {
        TimeDelta::from_millis_f64(self.noise_ms)
    }

    /// Whether the delay has risen at once not longer ago than this.
    pub(super) fn stepped_within(&self, now: Timestamp, time: TimeDelta) -> bool {
        self.stepped_at > Timestamp::ZERO && now - self.stepped_at < time
    }

    /// The last rise of the delay at once has been judged.
    pub(super) fn forget_step(&mut self) {
        self.stepped_at = Timestamp::ZERO;
    }

    /// The path has another base delay than before: what stands now is the base.
    pub(super) fn rebase(&mut self) {
        if let Some(delay) = self.usual_delay() {
            self.base.restart(delay);
        }
    }

    /// A base test begins.
    pub(super) fn begin_test(&mut self) {
        self.base.begin_test();
    }

    /// The smallest delay since the base test began.
    pub(super) fn lowest(&self) -> TimeDelta {
        self.base.lowest()
    }

    /// Change of the delay of the empty path, per time (S-38).
    pub(super) fn trend(&self) -> f64 {
        self.base.trend()
    }

    /// The base test has emptied the path (S-38).
    pub(super) fn prove_base(&mut self, now: Timestamp, p: &Parameters) {
        self.base.prove(now, self.noise(), p);
    }

    /// Later delays are on another clock: the standing queue is unknown, and the next delay is the
    /// base.
    pub(super) fn on_new_clock(&mut self) {
        let Self { noise_ms, mut base, .. } = *self;
        base.forget();
        *self = Self { noise_ms, base, ..Self::new() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Feeds a report each 50 ms from `from` on, with these one-way delays of one packet each.
    fn feed(queue: &mut Queue, from_ms: i64, delays_ms: impl IntoIterator<Item = i64>) {
        for (step, delay) in delays_ms.into_iter().enumerate() {
            queue.begin_report();
            let now = Timestamp::from_millis(from_ms + 50 * step as i64);
            queue.on_packet(now, now, ms(delay), &Parameters::DEFAULT);
            queue.end_report(now, &Parameters::DEFAULT);
        }
    }

    // S-1
    #[test]
    fn the_standing_queue_is_what_all_packets_of_two_buckets_waited() {
        let mut queue = Queue::new();
        assert_eq!(queue.standing(), None);
        feed(&mut queue, 0, [-3_000, -2_900, -2_950]);
        assert_eq!(queue.standing(), Some(ms(50)));
        feed(&mut queue, 150, [-2_900]);
        assert_eq!(queue.standing(), Some(ms(50)));
        feed(&mut queue, 200, [-2_900]);
        assert_eq!(queue.standing(), Some(ms(100)));
    }

    // S-1
    #[test]
    fn a_report_of_two_seconds_has_the_queue_of_its_end() {
        let mut queue = Queue::new();
        feed(&mut queue, 0, [20]);
        let now = Timestamp::from_secs(3);
        queue.begin_report();
        for packet in 0..200_i64 {
            let arrived = Timestamp::from_millis(1_000 + packet * 10);
            queue.on_packet(now, arrived, ms(20 + packet), &Parameters::DEFAULT);
        }
        queue.end_report(now, &Parameters::DEFAULT);
        let standing = queue.standing().unwrap();
        assert!(standing > ms(160), "{standing} of 199 ms");
    }

    // S-2
    #[test]
    fn the_base_is_forgotten_after_15_to_30_s() {
        let mut queue = Queue::new();
        feed(&mut queue, 0, [20]);
        feed(&mut queue, 50, [60; 298]);
        assert_eq!(queue.standing(), Some(ms(40)));
        feed(&mut queue, 15_000, [60; 500]);
        assert_eq!(queue.standing(), Some(ms(0)));
    }

    // S-3
    #[test]
    fn the_noise_is_the_buckets_mean_difference_and_a_step_30_ms_at_most() {
        let mut queue = Queue::new();
        feed(&mut queue, 0, (0..600).map(|step| 20 + step % 2 * 8));
        assert!((queue.noise() - ms(8)).abs() < ms(1), "{}", queue.noise());
        let mut queue = Queue::new();
        feed(&mut queue, 0, [20, 320]);
        assert!(queue.noise() < ms(1), "{}", queue.noise());
        assert!(queue.stepped_within(Timestamp::from_millis(900), ms(1_000)));
        assert!(!queue.stepped_within(Timestamp::from_millis(1_900), ms(1_000)));
    }
}
