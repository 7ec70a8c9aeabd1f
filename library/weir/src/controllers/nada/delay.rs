//! Estimation of one-way delay and queuing delay [NADA §5.1.1].
//!
//! The clocks of sender and receiver need not agree. The base delay and every sample contain the
//! same clock offset, so it cancels in their difference, the queuing delay. What the receiver's
//! clock gains meanwhile is taken out (NADA-D15), and so is what larger packets take (NADA-D16).

use crate::controllers::clock_drift::ClockDrift;
use crate::feedback::{ArrivalTimes, FeedbackReport};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Number of samples in the minimum filter of the queuing delay [NADA §5.1.1].
const FILTER_SAMPLES: usize = 15;
/// NADA-D19: if so many samples take longer than the standard's analysis allows, those of `DFILT`
/// count.
const FILTER_TIME_MAX: TimeDelta = TimeDelta::from_millis(250);
const FILTER_TIME: TimeDelta = TimeDelta::from_millis(120);
/// Number of periods in the minimum filter of the base delay: ten minutes in total [NADA §5.1.1].
const BASE_PERIODS: usize = 10;
/// Length of one period of the base delay.
const BASE_PERIOD: TimeDelta = TimeDelta::from_secs(60);
/// NADA-D15: twice the drift of the worst clocks, and two ticks of the arrival times of TWCC.
const DRIFT_MAX: f64 = 0.002;
const DRIFT_SEEN: TimeDelta = TimeDelta::from_micros(500);

/// Minimum of the newest [`FILTER_SAMPLES`] samples of the round trip.
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

    /// `None` before the first sample.
    pub(super) fn min(&self) -> Option<TimeDelta> {
        self.samples.into_iter().min().filter(|&min| min < TimeDelta::MAX)
    }
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Sample {
    delay: TimeDelta,
    size: DataSize,
    sent: Timestamp,
}

/// The newest [`FILTER_SAMPLES`] packets.
#[derive(Clone, Debug)]
struct Samples {
    /// Ring buffer. The delay of unused entries is `TimeDelta::MAX`.
    samples: [Sample; FILTER_SAMPLES],
    next: usize,
}

impl Samples {
    const fn new() -> Self {
        let unused = Sample { delay: TimeDelta::MAX, size: DataSize::MAX, sent: Timestamp::ZERO };
        Self { samples: [unused; FILTER_SAMPLES], next: 0 }
    }

    fn push(&mut self, sample: Sample) {
        self.samples[self.next] = sample;
        self.next = (self.next + 1) % FILTER_SAMPLES;
    }

    /// The newest with 1, the one before it with 2.
    fn back(&self, number: usize) -> Sample {
        self.samples[(self.next + FILTER_SAMPLES - number) % FILTER_SAMPLES]
    }

    /// The time in which all of them left. Unused entries left long ago.
    fn time(&self) -> TimeDelta {
        self.back(1).sent - self.samples[self.next].sent
    }

    /// The shortest delay and the smallest size of so many of the newest packets, of which only
    /// those count that left at most this time before the newest one.
    fn least_of(&self, count: usize, time: TimeDelta) -> Option<(TimeDelta, DataSize)> {
        let newest = self.back(1);
        let (mut delay, mut size) = (newest.delay, newest.size);
        for back in 2..=count.min(FILTER_SAMPLES) {
            let sample = self.back(back);
            if newest.sent - sample.sent <= time {
                (delay, size) = (delay.min(sample.delay), size.min(sample.size));
            }
        }
        (delay < TimeDelta::MAX).then_some((delay, size))
    }
}

/// The shortest one-way delay of a time, when it was seen, and the size of its packet.
#[derive(Clone, Copy, Debug)]
struct Shortest {
    delay: TimeDelta,
    at: Timestamp,
    size: DataSize,
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
    /// Minimum of all periods, and the size of its packet.
    min: TimeDelta,
    size: DataSize,
}

impl BaseDelay {
    fn new(now: Timestamp, sample: TimeDelta, size: DataSize) -> Self {
        let unused = Shortest { delay: TimeDelta::MAX, at: now, size: DataSize::ZERO };
        let mut periods = [unused; BASE_PERIODS];
        periods[0] = Shortest { delay: sample, at: now, size };
        Self { periods, current: 0, period_end: now + BASE_PERIOD, min: sample, size }
    }

    fn update(&mut self, now: Timestamp, delay: TimeDelta, size: DataSize) {
        let sample = Shortest { delay, at: now, size };
        if now < self.period_end {
            let period = &mut self.periods[self.current];
            *period = period.or_shorter(sample);
            if delay < self.min {
                (self.min, self.size) = (delay, size);
            }
            return;
        }
        // After a silence of several periods, only one period is dropped: the older minima are
        // still the best estimate.
        self.current = (self.current + 1) % BASE_PERIODS;
        self.periods[self.current] = sample;
        self.period_end = now + BASE_PERIOD;
        (self.min, self.size) = (self.shortest().delay, self.shortest().size);
    }

    fn shortest(&self) -> Shortest {
        self.periods.into_iter().reduce(Shortest::or_shorter).expect("the ring has places")
    }

    /// NADA-D15: the clock has gained this share of the time more than was known.
    fn on_drift(&mut self, now: Timestamp, change: f64) {
        let Shortest { delay, at, size } = self.shortest();
        *self = Self::new(now, delay + (now - at) * change, size);
    }
}

/// `d_fwd`, `d_base` and `d_queue`.
#[derive(Clone, Debug)]
pub(super) struct OneWayDelay {
    base: Option<BaseDelay>,
    /// The newest samples. Their minimum is `d_fwd`.
    newest: Samples,
    /// What a packet takes on the path by itself: the time of its bytes at this rate (NADA-D16).
    carries: Bitrate,
    /// The delays are round-trip times of receiver reports.
    is_round_trip: bool,
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
            newest: Samples::new(),
            carries: Bitrate::MAX,
            is_round_trip: false,
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

    /// A report begins, while the path is known to carry this rate at least.
    pub(super) fn begin_report(
        &mut self,
        now: Timestamp,
        report: &FeedbackReport,
        carries: Bitrate,
    ) {
        self.reported = 0;
        self.carries = carries;
        self.is_round_trip = report.arrival_times == ArrivalTimes::RoundTrip;
        // Receiver reports alone have no clock.
        if self.is_round_trip {
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

    /// Adds the one-way delay of a packet of this size.
    pub(super) fn on_packet(
        &mut self,
        now: Timestamp,
        send_time: Timestamp,
        delay: TimeDelta,
        size: DataSize,
    ) {
        let delay = delay - self.ahead;
        if core::mem::take(&mut self.new_clock) {
            // NADA-D12: the queuing delay does not depend on the clock, so it is kept.
            let queuing_delay = self.queuing_delay().unwrap_or(TimeDelta::ZERO);
            self.base = Some(BaseDelay::new(now, delay - queuing_delay, size));
            self.newest = Samples::new();
        }
        let base = self.base.get_or_insert_with(|| BaseDelay::new(now, delay, size));
        // NADA-D7: a packet cannot queue for longer than its feedback took to return. If it seems
        // to, the clock was stepped.
        if delay - base.min > now - send_time {
            *base = BaseDelay::new(now, delay, size);
            self.newest = Samples::new();
        }
        base.update(now, delay, size);
        self.newest.push(Sample { delay, size, sent: send_time });
        self.reported += 1;
    }

    /// NADA-D18: the path is another one. The next sample is its base.
    pub(super) fn on_new_path(&mut self) {
        (self.base, self.newest) = (None, Samples::new());
    }

    /// NADA-D16: how much longer these packets take than the one that gave the base, without a
    /// queue. While there is one, what arrives is what the path carries.
    fn own_time(&self, smallest: DataSize, base: &BaseDelay) -> TimeDelta {
        smallest.saturating_sub(base.size) / self.carries
    }

    /// `d_queue`, if the shortest delay of some packets is this, and the smallest has this size.
    fn above_base(&self, (shortest, smallest): (TimeDelta, DataSize)) -> Option<TimeDelta> {
        let base = self.base.as_ref()?;
        let above = shortest - base.min;
        if above <= TimeDelta::ZERO {
            return Some(above);
        }
        Some((above - self.own_time(smallest, base)).max(TimeDelta::ZERO))
    }

    /// `d_queue` from the samples of the newest report alone: what earlier ones say is too old if
    /// reports are rare (NADA-D14).
    pub(super) fn reported_queuing_delay(&self) -> Option<TimeDelta> {
        self.above_base(self.newest.least_of(self.reported, TimeDelta::MAX)?)
    }

    /// `d_queue`: minimum of the newest samples minus the base delay. `None` before the first
    /// packet.
    pub(super) fn queuing_delay(&self) -> Option<TimeDelta> {
        // A round-trip time contains waits, of which only many samples hold the shortest.
        let is_slow = !self.is_round_trip && self.newest.time() > FILTER_TIME_MAX;
        let time = if is_slow { FILTER_TIME } else { TimeDelta::MAX };
        self.above_base(self.newest.least_of(FILTER_SAMPLES, time)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(200);
    const SIZE: DataSize = DataSize::from_bytes(1_000);

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Adds a delay sample at `at` seconds; its feedback took `RTT`. Returns the queuing delay.
    fn feed(delay: &mut OneWayDelay, at: i64, sample: TimeDelta) -> TimeDelta {
        let now = Timestamp::from_secs(at);
        delay.on_packet(now, now - RTT, sample, SIZE);
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

    // NADA-D16: at 100 kbit/s 500 bytes more take 40 ms.
    #[test]
    fn larger_packets_than_that_of_the_base_wait_for_no_queue() {
        let mut delay = OneWayDelay::new();
        delay.begin_report(Timestamp::ZERO, &FeedbackReport::default(), Bitrate::from_kbps(100));
        let mut feed = |sample, bytes| {
            let now = Timestamp::from_secs(1);
            delay.on_packet(now, now - RTT, sample, DataSize::from_bytes(bytes));
            delay.queuing_delay()
        };
        assert_eq!(feed(ms(60), 500), Some(ms(0)));
        let mut fill = |sample, bytes| (0..FILTER_SAMPLES).map(|_| feed(sample, bytes)).last();
        assert_eq!(fill(ms(100), 1_000), Some(Some(ms(0))));
        assert_eq!(fill(ms(130), 1_000), Some(Some(ms(30))), "the queue");
        assert_eq!(fill(ms(130), 500), Some(Some(ms(70))));
        assert_eq!(fill(ms(80), 1_000), Some(Some(ms(0))), "what the path carries is not exact");
    }

    // NADA-D19
    #[test]
    fn of_packets_that_are_rare_those_of_120_ms_count() {
        for (gap_ms, counts) in [(17, 15), (18, 7), (33, 4), (121, 1)] {
            let mut delay = OneWayDelay::new();
            let mut feed = |number: i64, sample| {
                let sent = Timestamp::from_millis(1_000 + gap_ms * number);
                delay.on_packet(sent + RTT, sent, ms(sample), SIZE);
                delay.queuing_delay()
            };
            for number in 0..20 {
                feed(number, 20);
            }
            for later in 0..20 {
                let queue = if later + 1 < counts { 0 } else { 40 };
                assert_eq!(feed(20 + later, 60), Some(ms(queue)), "{gap_ms} ms, {later}");
            }
        }
    }

    // NADA-D18
    #[test]
    fn the_first_delay_of_a_new_path_is_its_base() {
        let mut delay = OneWayDelay::new();
        feed(&mut delay, 0, ms(20));
        assert_eq!(fill(&mut delay, 1, ms(160)), ms(140));
        delay.on_new_path();
        assert_eq!(delay.queuing_delay(), None);
        assert_eq!(feed(&mut delay, 2, ms(160)), ms(0));
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
