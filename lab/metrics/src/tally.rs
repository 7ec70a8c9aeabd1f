//! A distribution of times, stored as counts: memory grows with the number of distinct times, not
//! with the number of times.

use weir::units::TimeDelta;

use super::Distribution;

/// Number of times collected before they are counted.
const FRESH: usize = 16_384;

/// Number of occurrences of each time.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    fresh: Vec<TimeDelta>,
    /// By rising time.
    counts: Vec<(TimeDelta, u32)>,
    total: usize,
}

impl Tally {
    pub(super) fn push(&mut self, time: TimeDelta) {
        self.fresh.push(time);
        self.total += 1;
        if self.fresh.len() == FRESH {
            self.count();
        }
    }

    /// The shortest time.
    pub(super) fn least(&mut self) -> Option<TimeDelta> {
        self.count();
        self.counts.first().map(|(time, _)| *time)
    }

    /// Distribution of the differences between the times and `origin`, in ms.
    pub(super) fn above(&mut self, origin: TimeDelta) -> Option<Distribution> {
        self.count();
        let ms = |time: TimeDelta| (time - origin).as_millis_f64();
        let (largest, _) = *self.counts.last()?;
        // Add the times one by one in rising order: the sum then equals that of the sorted list, to
        // the last bit.
        let mut sum = 0.0;
        for (time, count) in &self.counts {
            for _ in 0..*count {
                sum += ms(*time);
            }
        }
        Some(Distribution {
            mean: sum / self.total as f64,
            p25: self.percentile(0.25, ms),
            p50: self.percentile(0.5, ms),
            p90: self.percentile(0.9, ms),
            p95: self.percentile(0.95, ms),
            max: ms(largest),
        })
    }

    /// Like [`super::percentile`], for a tally that is not empty.
    fn percentile(&self, q: f64, ms: impl Fn(TimeDelta) -> f64) -> f64 {
        let position = q * (self.total - 1) as f64;
        let below = position.floor();
        let [low, high] = [below, position.ceil()].map(|rank| ms(self.at(rank as usize)));
        low + (high - low) * (position - below)
    }

    /// The time at a rank; ranks begin at zero.
    fn at(&self, rank: usize) -> TimeDelta {
        let mut ranks = 0;
        let found = self.counts.iter().find(|(_, count)| {
            ranks += *count as usize;
            rank < ranks
        });
        found.expect("a rank is below the total").0
    }

    /// Counts the collected times.
    fn count(&mut self) {
        self.fresh.sort_unstable();
        let mut known = std::mem::take(&mut self.counts).into_iter().peekable();
        let differ = self.fresh.chunk_by(|a, b| a == b);
        let mut counts = Vec::with_capacity(known.len() + differ.clone().count());
        for equal in differ {
            let (time, mut count) = (equal[0], equal.len() as u32);
            while let Some(lesser) = known.next_if(|(other, _)| *other < time) {
                counts.push(lesser);
            }
            if let Some((_, before)) = known.next_if(|(other, _)| *other == time) {
                count += before;
            }
            counts.push((time, count));
        }
        counts.extend(known);
        counts.shrink_to_fit();
        self.counts = counts;
        self.fresh.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{mean, percentile};

    #[test]
    fn a_tally_has_the_distribution_of_the_sorted_list_to_the_last_bit() {
        // More times than are collected before counting, many of them equal, unsorted.
        let micros = (0..40_000_i64).map(|index| index * 7_919 % 1_013 + 250);
        let times: Vec<TimeDelta> = micros.map(TimeDelta::from_micros).collect();
        let mut tally = Tally::default();
        for time in &times {
            tally.push(*time);
        }
        let mut sorted: Vec<f64> =
            times.iter().map(|time| (*time - times[0]).as_millis_f64()).collect();
        sorted.sort_by(f64::total_cmp);
        let found = tally.above(times[0]).unwrap();
        assert_eq!(Some(found.mean), mean(sorted.clone()));
        for (value, q) in [(found.p25, 0.25), (found.p50, 0.5), (found.p90, 0.9), (found.p95, 0.95)]
        {
            assert_eq!(Some(value), percentile(&sorted, q));
        }
        assert_eq!(Some(&found.max), sorted.last());
        assert_eq!(tally.least(), times.iter().min().copied());
        assert!(tally.counts.len() <= 1_013);
        assert_eq!(Tally::default().above(TimeDelta::ZERO), None);
    }
}
