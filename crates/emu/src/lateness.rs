//! How late packets were released: a histogram with fine steps where it matters.

use std::time::Duration;

/// Buckets an octave. A value is known to an eighth of itself.
const STEPS: u64 = 8;
/// From here on (about two minutes) everything is in the last bucket.
const LARGEST_US: u64 = 1 << 27;

/// Histogram of release lateness: the time from when the model says that a packet arrives to when it
/// was handed to the receiving host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    counts: Vec<u64>,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; bucket(LARGEST_US) + 1], max: Duration::ZERO }
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, lateness: Duration) {
        let us = u64::try_from(lateness.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(us)] += 1;
        self.max = self.max.max(lateness);
    }

    /// Packets released.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The largest lateness.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The lateness that the given share (0.0 to 1.0) of packets did not exceed, rounded up to the
    /// edge of its bucket; `None` without packets.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let index = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_micros(upper_edge_us(index)).min(self.max))
    }

    /// The buckets that hold packets, in order: upper edge (exclusive, microseconds) and count.
    pub fn buckets_us(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.counts.iter().enumerate();
        buckets
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (upper_edge_us(index), *count))
    }
}

/// Steps of 1 us up to 16 us, then of an eighth of the octave's lower end.
fn bucket(us: u64) -> usize {
    let us = us.min(LARGEST_US);
    let octave = us.max(STEPS).ilog2() - STEPS.ilog2();
    (u64::from(octave) * STEPS + (us >> octave)) as usize
}

fn upper_edge_us(bucket: usize) -> u64 {
    let next = bucket as u64 + 1;
    let octave = (next / STEPS).saturating_sub(1);
    (next - octave * STEPS) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn every_value_is_below_the_edge_of_its_bucket_and_above_the_one_before() {
        for us in (0..5_000).chain([65_535, 65_536, 1_000_000, LARGEST_US - 1]) {
            let bucket = bucket(us);
            assert!(us < upper_edge_us(bucket), "{us}");
            assert!(bucket == 0 || us >= upper_edge_us(bucket - 1), "{us}");
        }
    }

    #[test]
    fn a_quantile_is_at_most_an_eighth_too_large() {
        let mut lateness = Lateness::default();
        (1..=1_000).for_each(|value| lateness.record(us(value)));
        let median = lateness.quantile(0.5).unwrap();
        assert!(median >= us(500) && median <= us(563), "{median:?}");
        assert_eq!(lateness.quantile(1.0), Some(us(1_000)));
        assert_eq!(lateness.count(), 1_000);
    }

    #[test]
    fn without_packets_there_is_no_quantile() {
        assert_eq!(Lateness::default().quantile(0.5), None);
        assert_eq!(Lateness::default().buckets_us().count(), 0);
    }

    #[test]
    fn what_is_later_than_the_last_bucket_counts_in_it() {
        let mut lateness = Lateness::default();
        lateness.record(Duration::from_secs(100_000));
        assert_eq!(lateness.count(), 1);
        assert_eq!(lateness.max(), Duration::from_secs(100_000));
    }
}
