//! The round-trip time that counts for the wait for retransmissions: the longest of late, which
//! only a lasting change replaces [LIBWEBRTC §RttFilter].

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

/// Once in this time the filter takes a sample: the longest round trip of the second time
/// [LIBWEBRTC §CallStats].
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const RECENT: TimeDelta = TimeDelta::from_millis(1_500);
/// Longest one in ms.
const MOST: f64 = 3_000.0;
/// Samples over which mean and variance are taken, at most.
const SAMPLES: u32 = 35;
/// A sample that is off the mean by so many standard deviations is part of a jump.
const JUMP_DEVIATIONS: f64 = 2.5;
/// If the longest one is off the mean by so many, the round trip has become shorter.
const DRIFT_DEVIATIONS: f64 = 3.5;
/// So many samples in a row are a lasting change. Mean and longest are then those of these.
const LASTING: usize = 5;

/// The filter. Times are in ms.
#[derive(Clone, Debug, Default)]
pub(super) struct RttFilter {
    /// Round trips of late, and when the next sample is taken.
    recent: VecDeque<(Timestamp, f64)>,
    next_sample: Option<Timestamp>,
    mean: f64,
    variance: f64,
    longest: f64,
    count: u32,
    /// Samples of a jump, and whether they are below the mean.
    jump: Vec<f64>,
    jumps_down: bool,
    drift: Vec<f64>,
}

impl RttFilter {
    /// A round-trip time became known.
    pub(super) fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        if self.next_sample.is_none() && rtt <= TimeDelta::ZERO {
            return;
        }
        self.run_until(now - TimeDelta::from_nanos(1));
        self.recent.push_back((now, rtt.as_millis_f64().min(MOST)));
        self.next_sample.get_or_insert(now);
        self.run_until(now);
    }

    /// Takes the samples that are due.
    fn run_until(&mut self, now: Timestamp) {
        while let Some(due) = self.next_sample.filter(|due| *due <= now) {
            while self.recent.front().is_some_and(|(known, _)| due - *known > RECENT) {
                self.recent.pop_front();
            }
            let longest = self.recent.iter().map(|(_, ms)| *ms).reduce(f64::max);
            if let Some(ms) = longest {
                self.update(ms);
            }
            self.next_sample = Some(due + INTERVAL);
        }
    }

    fn update(&mut self, rtt: f64) {
        self.count = (self.count + 1).min(SAMPLES);
        let kept = f64::from(self.count - 1) / f64::from(self.count);
        let before = (self.mean, self.variance);
        self.mean = kept * self.mean + (1.0 - kept) * rtt;
        let off = rtt - self.mean;
        self.variance = kept * self.variance + (1.0 - kept) * off * off;
        self.longest = self.longest.max(rtt);
        if self.is_unproven_jump(rtt) {
            (self.mean, self.variance) = before;
            return;
        }
        if self.longest - self.mean <= DRIFT_DEVIATIONS * libm::sqrt(self.variance) {
            self.drift.clear();
            return;
        }
        self.drift.push(rtt);
        if self.drift.len() == LASTING {
            let samples = std::mem::take(&mut self.drift);
            self.begin_with(&samples);
        }
    }

    /// Whether a sample is far off the mean, and too few before it were so.
    fn is_unproven_jump(&mut self, rtt: f64) -> bool {
        let below = self.mean - rtt;
        if libm::fabs(below) <= JUMP_DEVIATIONS * libm::sqrt(self.variance) {
            self.jump.clear();
            return false;
        }
        if (below >= 0.0) != self.jumps_down {
            self.jump.clear();
        }
        self.jumps_down = below >= 0.0;
        self.jump.push(rtt);
        if self.jump.len() < LASTING {
            return true;
        }
        let samples = std::mem::take(&mut self.jump);
        self.begin_with(&samples);
        false
    }

    /// The path has changed: only these samples count.
    fn begin_with(&mut self, samples: &[f64]) {
        self.mean = samples.iter().sum::<f64>() / samples.len() as f64;
        self.longest = samples.iter().copied().fold(0.0, f64::max);
        self.count = LASTING as u32;
    }

    /// The longest one in ms; 0 before the first.
    pub(super) fn longest(&mut self, now: Timestamp) -> f64 {
        self.run_until(now);
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest one after each of these samples, a second apart.
    fn after(samples: impl IntoIterator<Item = i64>) -> Vec<f64> {
        let mut filter = RttFilter::default();
        let mut longest = Vec::new();
        for (second, ms) in (0..).zip(samples) {
            let now = Timestamp::from_secs(second);
            filter.on_round_trip_time(now, TimeDelta::from_millis(ms));
            longest.push(filter.longest(now));
        }
        longest
    }

    // [LIBWEBRTC §RttFilter]
    #[test]
    fn the_longest_of_varying_round_trips_stays() {
        let samples = (0..60).map(|second| if second % 3 == 0 { 90 } else { 60 });
        assert_eq!(after(samples)[59], 90.0);
    }

    #[test]
    fn a_single_long_one_counts_until_five_others_prove_it_gone() {
        let mut samples = vec![60; 10];
        samples.push(200);
        samples.extend([60; 7]);
        let longest = after(samples);
        assert_eq!((longest[9], longest[10], longest[15]), (60.0, 200.0, 200.0));
        // Two samples have it, as it is not older than 1.5 s at the second.
        assert_eq!(longest[17], 60.0);
    }

    #[test]
    fn a_shorter_path_replaces_the_longest_after_five_samples() {
        let mut samples = vec![200; 20];
        samples.extend([60; 6]);
        let longest = after(samples);
        assert_eq!((longest[24], longest[25]), (200.0, 60.0));
    }

    /// The longest one after each sample, with a fall of the link for so many seconds.
    fn after_a_fall(seconds: usize) -> Vec<f64> {
        let before = [55, 60, 65, 60, 55, 60, 70, 60, 55, 65];
        let fall = [330, 310, 300, 290, 280, 290];
        after([&before, &fall[..seconds], &[60; 20]].concat())
    }

    // The samples of a long fall make the variance large.
    #[test]
    fn a_path_that_was_longer_is_forgotten_unless_it_was_so_for_five_samples() {
        let (short, long) = (after_a_fall(3), after_a_fall(6));
        assert_eq!((short[12], short[18]), (330.0, 60.0));
        assert_eq!(long[35], 330.0);
    }

    #[test]
    fn without_a_new_round_trip_no_sample_is_taken() {
        let mut filter = RttFilter::default();
        filter.on_round_trip_time(Timestamp::ZERO, TimeDelta::ZERO);
        assert_eq!(filter.longest(Timestamp::from_secs(5)), 0.0);
        filter.on_round_trip_time(Timestamp::from_secs(5), TimeDelta::from_millis(50));
        filter.on_round_trip_time(Timestamp::from_millis(5_900), TimeDelta::from_millis(70));
        assert_eq!(filter.longest(Timestamp::from_millis(5_999)), 50.0);
        assert_eq!(filter.longest(Timestamp::from_secs(60)), 70.0);
        assert_eq!(filter.count, 3, "at 5, 6 and 7 s");
    }
}
