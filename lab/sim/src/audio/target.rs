//! The delay that NetEq aims at: the 95th percentile of how late packets come [LIBWEBRTC
//! §DelayManager, §UnderrunOptimizer].
//!
//! NETEQ-D4: a second optimizer, for reordered packets, is left out.

use weir::units::{TimeDelta, Timestamp};

/// Before anything is known.
const START: TimeDelta = TimeDelta::from_millis(80);
/// Of each such interval, the largest delay counts.
const INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// Width and number of the histogram's buckets.
const BUCKET_MS: i64 = 20;
const BUCKETS: usize = 100;
/// Share of the intervals that the target covers.
const QUANTILE: f64 = 0.95;
/// What is kept of the histogram at each new value: less at the start.
const KEEP: f64 = 0.983;
const START_WEIGHT: f64 = 2.0;

/// The histogram of delays.
#[derive(Clone, Debug)]
pub(super) struct Target {
    shares: [f64; BUCKETS],
    count: u32,
    interval_start: Option<Timestamp>,
    largest: TimeDelta,
    delay: TimeDelta,
}

impl Default for Target {
    fn default() -> Self {
        let mut shares = [0.0; BUCKETS];
        let mut share = 0.5;
        for each in &mut shares {
            *each = share;
            share /= 2.0;
        }
        Self { shares, count: 0, interval_start: None, largest: TimeDelta::ZERO, delay: START }
    }
}

impl Target {
    /// The target.
    pub(super) fn delay(&self) -> TimeDelta {
        self.delay
    }

    /// A packet came so much later than the fastest.
    pub(super) fn on_arrival(&mut self, now: Timestamp, delay: TimeDelta) {
        let start = *self.interval_start.get_or_insert(now);
        if now - start > INTERVAL {
            self.add(self.largest);
            self.largest = TimeDelta::ZERO;
            self.interval_start = Some(now);
        }
        self.largest = self.largest.max(delay);
    }

    fn add(&mut self, delay: TimeDelta) {
        let keep = (1.0 - START_WEIGHT / f64::from(self.count + 1)).clamp(0.0, KEEP);
        let bucket = usize::try_from(delay.as_millis() / BUCKET_MS).unwrap_or(0).min(BUCKETS - 1);
        for share in &mut self.shares {
            *share *= keep;
        }
        self.shares[bucket] += 1.0 - keep;
        self.count = self.count.saturating_add(1);
        let mut sum = 0.0;
        let mut last = 0;
        for (index, share) in self.shares.iter().enumerate() {
            sum += share;
            last = index as i64;
            if sum >= QUANTILE {
                break;
            }
        }
        self.delay = TimeDelta::from_millis((last + 1) * BUCKET_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Target after a minute of packets with these delays in ms.
    fn after(delay: fn(i64) -> i64) -> i64 {
        let mut target = Target::default();
        for number in 0..3_000 {
            let delay = TimeDelta::from_millis(delay(number));
            target.on_arrival(Timestamp::from_millis(number * 20), delay);
        }
        target.delay().as_millis()
    }

    #[test]
    fn it_covers_the_95th_percentile_of_the_largest_delays_of_half_seconds() {
        assert_eq!(Target::default().delay(), START);
        assert_eq!(after(|_| 0), 20);
        assert_eq!(after(|_| 45), 60);
        // One packet in 25 is late: so is one in each half second.
        assert_eq!(after(|number| if number % 25 == 0 { 130 } else { 10 }), 140);
        // One half second in forty.
        assert_eq!(after(|number| if number % 1_000 == 0 { 130 } else { 10 }), 20);
    }
}
