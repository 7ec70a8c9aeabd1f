//! Release lateness of packets, as a histogram with logarithmic steps.

use std::time::Duration;

/// Buckets per octave. The resolution is an eighth of a value.
const STEPS: u64 = 8;
/// Larger values (about two minutes) count in the last bucket.
const LARGEST_US: u64 = 1 << 27;

/// Minimum lateness of a stall. Waking up takes less time, so the machine must have stood still.
const STALL: Duration = Duration::from_micros(500);

/// Histogram of release lateness: the time from a packet's arrival in the model to its delivery to
/// the receiving host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    counts: Vec<u64>,
    max: Duration,
    stalls: Vec<Stall>,
}

/// A time in which the emulator released no packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Due time of the first delayed packet, since the start of the run.
    pub start: Duration,
    /// Lateness of that packet.
    pub length: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; bucket(LARGEST_US) + 1], max: Duration::ZERO, stalls: Vec::new() }
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, lateness: Duration) {
        let us = u64::try_from(lateness.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(us)] += 1;
        self.max = self.max.max(lateness);
    }

    /// Records a packet that was due at `due` since the start of the run.
    pub(crate) fn record_at(&mut self, due: Duration, lateness: Duration) {
        self.record(lateness);
        // Packets delayed by the same stall have decreasing lateness. The first one gives the
        // length of the stall.
        let is_over = self.stalls.last().is_none_or(|last| due >= last.start + last.length);
        if lateness >= STALL && is_over {
            self.stalls.push(Stall { start: due, length: lateness });
        }
    }

    /// The stalls, in order of time.
    pub fn stalls(&self) -> &[Stall] {
        &self.stalls
    }

    /// Number of packets released.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The maximum lateness.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The quantile for a share of packets (0.0 to 1.0), rounded up to the edge of its bucket;
    /// `None` without packets.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let index = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_micros(upper_edge_us(index)).min(self.max))
    }

    /// The non-empty buckets in order: upper edge (exclusive, in microseconds) and count.
    pub fn buckets_us(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.counts.iter().enumerate();
        buckets
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (upper_edge_us(index), *count))
    }
}

/// Index of the bucket of a value. Buckets are 1 us wide up to 16 us, then an eighth of the lower
/// end of the octave.
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
        for value in 1..=1_000 {
            lateness.record(us(value));
        }
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

    #[test]
    fn a_stall_is_told_once_by_the_first_packet_that_it_held() {
        let mut lateness = Lateness::default();
        for (due, late) in [(1_000, 90), (2_000, 3_000), (3_000, 2_000), (4_500, 500), (5_000, 600)]
        {
            lateness.record_at(us(due), us(late));
        }
        let stall = |start, length| Stall { start: us(start), length: us(length) };
        assert_eq!(lateness.stalls(), [stall(2_000, 3_000), stall(5_000, 600)]);
        assert_eq!(lateness.count(), 5);
    }
}
