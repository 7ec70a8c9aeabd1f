//! The round-trip time that counts for the wait for retransmissions: the longest of late, which
//! only a lasting change replaces [LIBWEBRTC §RttFilter].

use weir::units::{TimeDelta, Timestamp};

/// Round-trip times come once in this time [LIBWEBRTC §CallStats].
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
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
    updated: Option<Timestamp>,
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
    /// Takes the round-trip time that is known now, unless one was taken less than a second ago.
    pub(super) fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        let is_known = self.count > 0 || rtt > TimeDelta::ZERO;
        if !is_known || self.updated.is_some_and(|last| now - last < INTERVAL) {
            return;
        }
        self.updated = Some(now);
        self.update(rtt.as_millis_f64().min(MOST));
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
    pub(super) fn longest(&self) -> f64 {
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
            filter.on_round_trip_time(Timestamp::from_secs(second), TimeDelta::from_millis(ms));
            longest.push(filter.longest());
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
        samples.extend([60; 6]);
        let longest = after(samples);
        assert_eq!((longest[9], longest[10], longest[13]), (60.0, 200.0, 200.0));
        assert_eq!(longest[16], 60.0);
    }

    #[test]
    fn a_shorter_path_replaces_the_longest_after_five_samples() {
        let mut samples = vec![200; 20];
        samples.extend([60; 5]);
        let longest = after(samples);
        assert_eq!((longest[23], longest[24]), (200.0, 60.0));
    }

    #[test]
    fn within_a_second_only_the_first_counts() {
        let mut filter = RttFilter::default();
        for (at_ms, ms) in [(0, 0), (100, 50), (900, 90), (1_100, 70)] {
            let rtt = TimeDelta::from_millis(ms);
            filter.on_round_trip_time(Timestamp::from_millis(at_ms), rtt);
        }
        assert_eq!(filter.longest(), 70.0);
    }
}
