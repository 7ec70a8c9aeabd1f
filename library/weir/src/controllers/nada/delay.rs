//! Estimation of one-way delay and queuing delay [NADA §5.1.1].
//!
//! The clocks of sender and receiver need not agree. The base delay and every sample contain the
//! same clock offset, so it cancels in their difference, the queuing delay. What the receiver's
//! clock gains meanwhile is taken out (NADA-D15).

use crate::controllers::clock_drift::ClockDrift;
use crate::feedback::{ArrivalTimes, FeedbackReport};
use crate::units::{TimeDelta, Timestamp};

/// Number of samples in the minimum filter of the queuing delay [NADA §5.1.1].
const FILTER_SAMPLES: usize = 15;
/// Number of periods in the minimum filter of the base delay: ten minutes in total [NADA §5.1.1].
const BASE_PERIODS: usize = 10;
/// Length of one period of the base delay.
const BASE_PERIOD: TimeDelta = TimeDelta::from_secs(60);
/// NADA-D15: twice the drift of the worst clocks, and two ticks of the arrival times of TWCC.
const DRIFT_MAX: f64 = 0.002;
const DRIFT_SEEN: TimeDelta = TimeDelta::from_micros(500);

/// Minimum of the newest [`FILTER_SAMPLES`] samples.
#[derive(Clone, Debug)]
pub(super) struct MinFilter {
    /// Ring buffer. Unused entries are `TimeDelta::MAX`.
    samples: [TimeDelta; FILTER_SAMPLES],
    next: usize,
}

impl MinFilter {
    pub(super) const fn new() -> Self {
        Self { samples: [TimeDelta::MAX; FILTER_SAMPLES], next: 0 }
    }

    pub(super) fn push(&mut self, sample: TimeDelta) {
        self.samples[self.next] = sample;
        self.next = (self.next + 1) % FILTER_SAMPLES;
    }

    /// Minimum of so many of the newest samples.
    fn min_of(&self, count: usize) -> Option<TimeDelta> {
        let mut min = TimeDelta::MAX;
        for back in 1..=count.min(FILTER_SAMPLES) {
            min = min.min(self.samples[(self.next + FILTER_SAMPLES - back) % FILTER_SAMPLES]);
        }
        (min < TimeDelta::MAX).then_some(min)
    }

    /// `None` before the first sample.
    pub(super) fn min(&self) -> Option<TimeDelta> {
        self.samples.into_iter().min().filter(|&min| min < TimeDelta::MAX)
    }
}

/// The shortest one-way delay of a time, and when it was seen.
#[derive(Clone, Copy, Debug)]
struct Shortest {
    delay: TimeDelta,
    at: Timestamp,
}

impl Shortest {
    fn or_shorter(self, other: Self) -> Self {
        if other.delay < self.delay { other } else { self }
    }
}

/// `d_base`: minimum of the one-way delay over [`BASE_PERIODS`].
#[derive(Clone, Debug)]
struct BaseDelay {
    /// Ring buffer with the minimum of each period. The delay of unused entries is
    /// `TimeDelta::MAX`.
    periods: [Shortest; BASE_PERIODS],
    current: usize,
    /// When the current period ends.
    period_end: Timestamp,
    /// Minimum of all periods.
    min: TimeDelta,
}

impl BaseDelay {
    fn new(now: Timestamp, sample: TimeDelta) -> Self {
        let mut periods = [Shortest { delay: TimeDelta::MAX, at: now }; BASE_PERIODS];
        periods[0].delay = sample;
        Self { periods, current: 0, period_end: now + BASE_PERIOD, min: sample }
    }

    fn update(&mut self, now: Timestamp, delay: TimeDelta) {
        let sample = Shortest { delay, at: now };
        if now < self.period_end {
            let period = &mut self.periods[self.current];
            *period = period.or_shorter(sample);
            self.min = self.min.min(delay);
            return;
        }
        // After a silence of several periods, only one period is dropped: the older minima are
        // still the best estimate.
        self.current = (self.current + 1) % BASE_PERIODS;
        self.periods[self.current] = sample;
        self.period_end = now + BASE_PERIOD;
        self.min = self.shortest().delay;
    }

    fn shortest(&self) -> Shortest {
        self.periods.into_iter().reduce(Shortest::or_shorter).expect("the ring has places")
    }

    /// NADA-D15: the clock has gained this share of the time more than was known.
    fn on_drift(&mut self, now: Timestamp, change: f64) {
        let Shortest { delay, at } = self.shortest();
        *self = Self::new(now, delay + (now - at) * change);
    }
}

/// `d_fwd`, `d_base` and `d_queue`.
#[derive(Clone, Debug)]
pub(super) struct OneWayDelay {
    base: Option<BaseDelay>,
    /// The newest samples. Their minimum is `d_fwd`.
    newest: MinFilter,
    /// The next sample comes from a different clock than the samples before it.
    new_clock: bool,
    /// Samples of the newest report.
    reported: usize,
    drift: ClockDrift,
    /// How far the receiver's clock is ahead of what it would be without drift.
    ahead: TimeDelta,
    last_report: Option<Timestamp>,
}

impl OneWayDelay {
    pub(super) const fn new() -> Self {
        Self {
            base: None,
            newest: MinFilter::new(),
            new_clock: false,
            reported: 0,
            drift: ClockDrift::new(),
            ahead: TimeDelta::ZERO,
            last_report: None,
        }
    }

    /// Later one-way delays come from a different clock.
    pub(super) fn on_new_clock(&mut self) {
        self.new_clock = true;
        (self.drift, self.last_report) = (ClockDrift::new(), None);
    }

    /// A report begins.
    pub(super) fn begin_report(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.reported = 0;
        // Receiver reports alone have no clock.
        if report.arrival_times == ArrivalTimes::RoundTrip {
            return;
        }
        let Some(newest) = report.packets.iter().rev().find_map(|packet| packet.arrival_time)
        else {
            return;
        };
        let passed = now - self.last_report.replace(now).unwrap_or(now);
        self.ahead += passed.max(TimeDelta::ZERO) * self.drift.share();
        let return_time = now - newest + self.ahead;
        let change = self.drift.learn(now, return_time, DRIFT_MAX, DRIFT_SEEN);
        if let Some(base) = &mut self.base
            && change != 0.0
        {
            base.on_drift(now, change);
        }
    }

    /// Adds the one-way delay of a packet.
    pub(super) fn on_packet(&mut self, now: Timestamp, send_time: Timestamp, delay: TimeDelta) {
        let delay = delay - self.ahead;
        if core::mem::take(&mut self.new_clock) {
            // NADA-D12: the queuing delay does not depend on the clock, so it is kept.
            let queuing_delay = self.queuing_delay().unwrap_or(TimeDelta::ZERO);
            self.base = Some(BaseDelay::new(now, delay - queuing_delay));
            self.newest = MinFilter::new();
        }
        let base = self.base.get_or_insert_with(|| BaseDelay::new(now, delay));
        // NADA-D7: a packet cannot queue for longer than its feedback took to return. If it seems
        // to, the clock was stepped.
        if delay - base.min > now - send_time {
            *base = BaseDelay::new(now, delay);
            self.newest = MinFilter::new();
        }
        base.update(now, delay);
        self.newest.push(delay);
        self.reported += 1;
    }

    /// `d_queue` from the samples of the newest report alone: what earlier ones say is too old if
    /// reports are rare (NADA-D14).
    pub(super) fn reported_queuing_delay(&self) -> Option<TimeDelta> {
        Some(self.newest.min_of(self.reported)? - self.base.as_ref()?.min)
    }

    /// `d_queue`: minimum of the newest samples minus the base delay. `None` before the first
    /// packet.
    pub(super) fn queuing_delay(&self) -> Option<TimeDelta> {
        Some(self.newest.min()? - self.base.as_ref()?.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(200);

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Adds a delay sample at `at` seconds; its feedback took `RTT`. Returns the queuing delay.
    fn feed(delay: &mut OneWayDelay, at: i64, sample: TimeDelta) -> TimeDelta {
        let now = Timestamp::from_secs(at);
        delay.on_packet(now, now - RTT, sample);
        delay.queuing_delay().expect("a packet was seen")
    }

    /// Adds the same sample until the filter contains nothing else.
    fn fill(delay: &mut OneWayDelay, at: i64, sample: TimeDelta) -> TimeDelta {
        (0..FILTER_SAMPLES).map(|_| feed(delay, at, sample)).last().expect("some samples")
    }

    // [NADA §5.1.1]
    #[test]
    fn the_queuing_delay_is_the_minimum_of_15_samples_above_the_base() {
        let mut delay = OneWayDelay::new();
        assert_eq!(delay.queuing_delay(), None);
        assert_eq!(feed(&mut delay, 0, ms(20)), ms(0));
        for sample in 0..14 {
            assert_eq!(feed(&mut delay, 0, ms(60 + sample)), ms(0), "the first is among the 15");
        }
        assert_eq!(feed(&mut delay, 0, ms(80)), ms(40));
    }

    #[test]
    fn clocks_may_disagree_by_any_offset() {
        for offset in [ms(-7_200_000), ms(0), ms(7_200_000)] {
            let mut delay = OneWayDelay::new();
            feed(&mut delay, 0, offset);
            assert_eq!(fill(&mut delay, 0, offset + ms(33)), ms(33));
        }
    }

    // [NADA §5.1.1]
    #[test]
    fn the_base_delay_is_forgotten_after_ten_minutes() {
        let mut delay = OneWayDelay::new();
        feed(&mut delay, 0, ms(20));
        for second in 1..600 {
            assert_eq!(fill(&mut delay, second, ms(120)), ms(100), "at {second} s");
        }
        assert_eq!(fill(&mut delay, 600, ms(120)), ms(0));
    }

    #[test]
    fn the_least_delay_of_a_period_counts_not_its_first() {
        let mut delay = OneWayDelay::new();
        feed(&mut delay, 0, ms(20));
        feed(&mut delay, 1, ms(10));
        feed(&mut delay, 2, ms(30));
        assert_eq!(fill(&mut delay, 61, ms(120)), ms(110));
    }

    // NADA-D7
    #[test]
    fn a_delay_beyond_the_feedback_time_is_a_stepped_clock() {
        let mut delay = OneWayDelay::new();
        feed(&mut delay, 0, ms(20));
        assert_eq!(fill(&mut delay, 1, ms(220)), ms(200));
        assert_eq!(feed(&mut delay, 2, ms(3_600_000)), ms(0));
        assert_eq!(feed(&mut delay, 3, ms(20)), ms(0), "a step back is a new minimum");
        assert_eq!(fill(&mut delay, 3, ms(50)), ms(30));
    }

    // NADA-D12
    #[test]
    fn a_new_clock_keeps_the_queuing_delay() {
        let mut delay = OneWayDelay::new();
        feed(&mut delay, 0, ms(20));
        assert_eq!(fill(&mut delay, 1, ms(60)), ms(40));
        delay.on_new_clock();
        assert_eq!(feed(&mut delay, 2, ms(-7_000)), ms(40));
        assert_eq!(feed(&mut delay, 2, ms(-6_990)), ms(40), "the filter starts anew");
        assert_eq!(fill(&mut delay, 2, ms(-6_990)), ms(50));
        assert_eq!(feed(&mut delay, 2, ms(-7_040)), ms(0));
    }
}
