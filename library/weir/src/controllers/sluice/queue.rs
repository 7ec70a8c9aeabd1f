//! The standing queue of the path, and the noise of its delay.
//!
//! The clocks of sender and receiver need not agree: the base delay and every sample contain the
//! same offset, which cancels in their difference.

use super::Parameters;
use crate::units::{TimeDelta, Timestamp};

/// Time over which one minimum of the delay is taken.
const BUCKET: TimeDelta = TimeDelta::from_millis(50);
/// Buckets whose minimum is the standing queue.
const STANDING: usize = 2;

/// Standing queue, base delay and delay noise.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Minima of the one-way delay in this period and in the one before.
    base: [TimeDelta; 2],
    period_end: Timestamp,
    /// Minima of the newest complete buckets, newest first. Unused entries are `MAX`.
    buckets: [TimeDelta; STANDING],
    /// Longest delay of the report, and of late.
    longest: TimeDelta,
    top: TimeDelta,
    /// Minimum of the bucket that is being filled.
    filling: TimeDelta,
    bucket_end: Timestamp,
    /// Mean difference of successive buckets, in milliseconds.
    noise_ms: f64,
    /// When the delay last rose by [`Parameters::noise_step_max`] or more at once.
    stepped_at: Timestamp,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            base: [TimeDelta::MAX; 2],
            period_end: Timestamp::ZERO,
            buckets: [TimeDelta::MAX; STANDING],
            longest: TimeDelta::from_nanos(i64::MIN),
            top: TimeDelta::ZERO,
            filling: TimeDelta::MAX,
            bucket_end: Timestamp::ZERO,
            noise_ms: 0.0,
            stepped_at: Timestamp::ZERO,
        }
    }

    /// A report begins.
    pub(super) fn begin_report(&mut self) {
        self.longest = TimeDelta::from_nanos(i64::MIN);
    }

    /// Adds the one-way delay of a packet. Returns how far it is above the base.
    pub(super) fn on_packet(&mut self, delay: TimeDelta) -> TimeDelta {
        self.filling = self.filling.min(delay);
        self.longest = self.longest.max(delay);
        let base = self.base();
        if base == TimeDelta::MAX { TimeDelta::ZERO } else { delay - base }
    }

    /// A report is complete. The newest packet that it reports as received was sent `rtt` ago.
    pub(super) fn end_report(&mut self, now: Timestamp, rtt: TimeDelta, p: &Parameters) {
        if self.standing().is_some_and(|queue| queue > rtt) {
            // No packet can queue for longer than its feedback took to return: the receiver's
            // clock was stepped.
            self.on_new_clock();
            return;
        }
        let above = self.longest - self.base();
        self.top = (self.top * p.top_decay).max(above);
        if now < self.bucket_end || self.filling == TimeDelta::MAX {
            return;
        }
        let min = core::mem::replace(&mut self.filling, TimeDelta::MAX);
        self.bucket_end = now + BUCKET * 0.9;
        if now >= self.period_end {
            self.period_end = now + p.t_period;
            self.base = [TimeDelta::MAX, self.base[0]];
        }
        self.base[0] = self.base[0].min(min);
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
        self.base[0].min(self.base[1])
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
        let min = self.buckets.into_iter().fold(self.filling, TimeDelta::min);
        self.base = [min, TimeDelta::MAX];
    }

    /// Later delays are on another clock: the standing queue is unknown, and the next delay is the
    /// base.
    pub(super) fn on_new_clock(&mut self) {
        let noise_ms = self.noise_ms;
        *self = Self { noise_ms, ..Self::new() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(400);

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Feeds a report each 50 ms from `from` on, with these one-way delays of one packet each.
    fn feed(queue: &mut Queue, from_ms: i64, delays_ms: impl IntoIterator<Item = i64>) {
        for (step, delay) in delays_ms.into_iter().enumerate() {
            queue.begin_report();
            queue.on_packet(ms(delay));
            queue.end_report(
                Timestamp::from_millis(from_ms + 50 * step as i64),
                RTT,
                &Parameters::DEFAULT,
            );
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
    fn the_noise_is_the_mean_difference_of_buckets_and_a_step_counts_30_ms_at_most() {
        let mut queue = Queue::new();
        feed(&mut queue, 0, (0..600).map(|step| 20 + step % 2 * 8));
        assert!((queue.noise() - ms(8)).abs() < ms(1), "{}", queue.noise());
        let mut queue = Queue::new();
        feed(&mut queue, 0, [20, 320]);
        assert!(queue.noise() < ms(1), "{}", queue.noise());
        assert!(queue.stepped_within(Timestamp::from_millis(900), ms(1_000)));
        assert!(!queue.stepped_within(Timestamp::from_millis(1_900), ms(1_000)));
    }

    // S-2
    #[test]
    fn a_queue_longer_than_the_round_trip_is_a_stepped_clock() {
        let mut queue = Queue::new();
        feed(&mut queue, 0, [20, 30, 5_030, 5_030, 5_040]);
        assert!(queue.standing() < Some(ms(20)), "{:?}", queue.standing());
    }
}
