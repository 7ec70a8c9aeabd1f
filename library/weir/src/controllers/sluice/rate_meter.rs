//! Rates over the last moments, from sums in a ring of buckets.

use crate::controllers::reported_packets::Covered;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Number of buckets. With [`BUCKET`] they span 800 ms, more than the longest window asked for.
const BUCKETS: usize = 16;
/// Length of a bucket.
pub(super) const BUCKET: TimeDelta = TimeDelta::from_millis(50);

/// Sums of the data at times that mostly increase. A packet costs one addition.
#[derive(Clone, Debug, Default)]
pub(super) struct RateMeter {
    sums: [u64; BUCKETS],
    /// First and newest time; `None` before the first packet.
    span: Option<(Timestamp, Timestamp)>,
    /// The bucket that contains the newest time: from where on and how long it takes more without
    /// a look at the others, and its place.
    open_from: Timestamp,
    open_for_ns: u32,
    open_place: u32,
    /// The newest data was older than the ring.
    is_behind: bool,
    /// Whether data takes the time since what was before it.
    arrivals: bool,
}

/// Number of the bucket that contains a time.
fn bucket(time: Timestamp) -> i64 {
    time.as_nanos().div_euclid(BUCKET.as_nanos())
}

/// When a bucket begins; the first of all may begin before the first time.
fn start(bucket: i64) -> Timestamp {
    Timestamp::from_nanos(bucket.saturating_mul(BUCKET.as_nanos()))
}

fn place(bucket: i64) -> usize {
    bucket.rem_euclid(BUCKETS as i64) as usize
}

impl RateMeter {
    /// A meter of packets that arrive. Others leave, each at once.
    pub(super) fn of_arrivals() -> Self {
        Self { arrivals: true, ..Self::default() }
    }

    /// Whether packets arrive at once: an acknowledgement tells of many, and those of a late one
    /// came before it.
    pub(super) fn arrive_at_once(&mut self, at_once: bool) {
        self.arrivals = !at_once;
    }

    /// Adds data at a time. Data older than the ring is ignored, unless it is followed by more of
    /// it: then the clock was set back, and the sums begin anew.
    #[inline]
    pub(super) fn add(&mut self, at: Timestamp, size: DataSize) {
        if self.is_open(at)
            && let Some((_, newest)) = &mut self.span
        {
            // Most packets, without a division.
            let sum = &mut self.sums[self.open_place as usize % BUCKETS];
            *sum = sum.saturating_add(size.as_bytes());
            *newest = (*newest).max(at);
            return;
        }
        self.add_elsewhere(at, size);
    }

    /// Whether a time is in the bucket that contains the newest one.
    #[inline]
    fn is_open(&self, at: Timestamp) -> bool {
        // What is before the bucket wraps to a long time.
        let into = at.as_nanos().wrapping_sub(self.open_from.as_nanos()) as u64;
        into < u64::from(self.open_for_ns)
    }

    /// Adds data of this size together at times between these two. Returns false, without an
    /// effect, if they are not in the bucket that contains the newest time.
    pub(super) fn add_between(&mut self, times: [Timestamp; 2], size: DataSize) -> bool {
        let is_inside = self.span.is_some() && times.into_iter().all(|at| self.is_open(at));
        if is_inside {
            self.add(times[1], size);
        }
        is_inside
    }

    /// The same for a time outside of the bucket that contains the newest one.
    #[inline(never)]
    fn add_elsewhere(&mut self, at: Timestamp, size: DataSize) {
        let (first, newest) = self.span.unwrap_or((at, at));
        let (to, from) = (bucket(at), bucket(newest));
        let is_behind = from - to >= BUCKETS as i64;
        if to - from >= BUCKETS as i64 || is_behind && self.is_behind {
            // Nothing that the ring holds is recent.
            *self = Self { arrivals: self.arrivals, ..Self::default() };
            return self.add_elsewhere(at, size);
        }
        self.is_behind = is_behind;
        if is_behind {
            return;
        }
        (from + 1..=to).for_each(|passed| self.sums[place(passed)] = 0);
        let left = if self.arrivals { self.spread(newest, at, size) } else { size };
        let sum = &mut self.sums[place(to)];
        *sum = sum.saturating_add(left.as_bytes());
        let first = first.min(at);
        self.span = Some((first, newest.max(at)));
        let open = to.max(from);
        // The first time is known to be before what comes then.
        self.open_from = start(open).max(first);
        let left = start(open) + BUCKET - self.open_from;
        self.open_for_ns = u32::try_from(left.as_nanos()).unwrap_or(0);
        self.open_place = place(open) as u32;
    }

    /// A packet arrives over the time since the one before, so a part of its bytes belongs to the
    /// buckets between: a window that ends with a packet would have half a packet too many. Adds
    /// them, and returns those of the newest bucket.
    fn spread(&mut self, before: Timestamp, at: Timestamp, size: DataSize) -> DataSize {
        let gap = at - before;
        let mut left = size;
        for index in bucket(before)..bucket(at) {
            let within = (start(index + 1) - start(index).max(before)) / gap;
            let part = size * within;
            let sum = &mut self.sums[place(index)];
            *sum = sum.saturating_add(part.as_bytes());
            left = left.saturating_sub(part);
        }
        left
    }

    /// Adds a packet, and those before it on which no report came: evenly since the newest data.
    #[inline]
    pub(super) fn add_covered(&mut self, at: Timestamp, size: DataSize, covered: Covered) {
        match covered {
            Covered::New { missing: DataSize::ZERO } => self.add(at, size),
            Covered::New { missing } => self.add_with_missing(at, size, missing),
            Covered::Counted => {}
        }
    }

    #[inline(never)]
    fn add_with_missing(&mut self, at: Timestamp, size: DataSize, missing: DataSize) {
        let newest = self.span.map_or(at, |span| span.1);
        let (passed, buckets) = ((at - newest).max(TimeDelta::ZERO), BUCKETS as i64);
        for part in 1..=buckets {
            self.add(newest + passed / buckets * part, missing * (1.0 / buckets as f64));
        }
        self.add(at, size);
    }

    /// The rate over about this time, which ends with the newest packet. `None` until the packets
    /// span half of it.
    pub(super) fn rate(&self, window: TimeDelta) -> Option<Bitrate> {
        let (first, newest) = self.span?;
        let count = (window.as_nanos() / BUCKET.as_nanos()).clamp(1, BUCKETS as i64 - 1);
        let last = bucket(newest);
        let begin = start(last - count).max(first);
        let span = newest - begin;
        if span < window / 2 {
            return None;
        }
        let sums = (last - count..=last).map(|index| self.sums[place(index)]);
        let bytes: DataSize = sums.map(DataSize::from_bytes).sum();
        Some(bytes / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1_250);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_rate_is_that_of_the_window() {
        let mut meter = RateMeter::default();
        (0..100).for_each(|step| meter.add(at(step * 10), SIZE)); // 1 Mbit/s
        (100..200).for_each(|step| meter.add(at(step * 10), SIZE * 2.0));
        let rate = meter.rate(TimeDelta::from_millis(500)).unwrap();
        assert!((rate.as_mbps_f64() - 2.0).abs() < 0.05, "{rate}");
    }

    // Packets of 1,250 bytes at 20 kbit/s to 100 Mbit/s.
    #[test]
    fn a_window_that_ends_with_a_packet_has_no_half_packet_too_many() {
        for kbps in [20, 60, 140, 500, 3_000, 100_000] {
            let rate = Bitrate::from_kbps(kbps);
            for window in [200, 300, 500] {
                let mut meter = RateMeter::of_arrivals();
                let (mut sum, mut count) = (0.0, 0);
                for packet in 0..20_000 {
                    meter.add(Timestamp::ZERO + SIZE / rate * packet, SIZE);
                    if let Some(rate) = meter.rate(TimeDelta::from_millis(window)) {
                        (sum, count) = (sum + rate.as_kbps_f64(), count + 1);
                    }
                }
                let mean = sum / f64::from(count) / kbps as f64;
                assert!((0.98..1.02).contains(&mean), "{kbps} kbit/s, {window} ms: {mean}");
            }
        }
    }

    #[test]
    fn there_is_no_rate_before_half_of_the_window() {
        let mut meter = RateMeter::default();
        assert_eq!(meter.rate(TimeDelta::from_millis(500)), None);
        meter.add(at(0), SIZE);
        meter.add(at(240), SIZE);
        assert_eq!(meter.rate(TimeDelta::from_millis(500)), None);
        meter.add(at(260), SIZE);
        assert!(meter.rate(TimeDelta::from_millis(500)).is_some());
    }

    #[test]
    fn a_late_packet_counts_in_its_own_time_and_a_very_late_one_not_at_all() {
        let mut meter = RateMeter::default();
        meter.add(at(0), SIZE);
        meter.add(at(500), SIZE);
        let before = meter.rate(TimeDelta::from_millis(500)).unwrap();
        meter.add(at(400), SIZE);
        assert!(meter.rate(TimeDelta::from_millis(500)).unwrap() > before);
        meter.add(at(2_000), SIZE);
        meter.add(at(2_400), SIZE);
        let before = meter.rate(TimeDelta::from_millis(500));
        meter.add(at(0), SIZE);
        assert_eq!(meter.rate(TimeDelta::from_millis(500)), before);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_the_sums_anew() {
        for back in [900, 1_000, 60_000, 3_600_000] {
            let mut meter = RateMeter::default();
            (0..100).for_each(|step| meter.add(at(step * 10), SIZE));
            (100..180).for_each(|step| meter.add(at(step * 10 - back), SIZE * 2.0));
            let rate = meter.rate(TimeDelta::from_millis(500)).unwrap();
            assert!((rate.as_mbps_f64() - 2.0).abs() < 0.1, "{rate} after {back} ms");
        }
    }
}
