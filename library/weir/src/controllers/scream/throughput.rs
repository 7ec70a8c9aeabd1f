//! Throughput: bitrates of source, sender and receiver in each adjustment interval.
//!
//! Implements `rate_media`, `rate_media_median`, `rate_transmit`, `rate_ack`, `rtp_queue_size` of
//! [SCREAM §4.1.1.2] and [SCREAM §4.1.3].

use crate::units::{Bitrate, DataSize, TimeDelta};

/// Number of media bitrates in the median: 60 intervals of 200 ms, "more than 10 s"
/// [SCREAM §4.1.1.2].
const MEDIAN_SAMPLES: usize = 60;

/// Counts bytes in an adjustment interval and converts them to bitrates.
#[derive(Clone, Debug)]
pub(super) struct Throughput {
    media_bytes: DataSize,
    sent_bytes: DataSize,
    acked_bytes: DataSize,
    /// Length of the send queue, `rtp_queue_size`.
    queued: DataSize,
    rate_media: Bitrate,
    rate_transmit: Bitrate,
    rate_ack: Bitrate,
    /// Ring buffer of the last media bitrates. Unused entries are zero.
    media: [Bitrate; MEDIAN_SAMPLES],
    /// The same bitrates, sorted.
    sorted: [Bitrate; MEDIAN_SAMPLES],
    next: usize,
}

impl Default for Throughput {
    fn default() -> Self {
        Self {
            media_bytes: DataSize::ZERO,
            sent_bytes: DataSize::ZERO,
            acked_bytes: DataSize::ZERO,
            queued: DataSize::ZERO,
            rate_media: Bitrate::ZERO,
            rate_transmit: Bitrate::ZERO,
            rate_ack: Bitrate::ZERO,
            media: [Bitrate::ZERO; MEDIAN_SAMPLES],
            sorted: [Bitrate::ZERO; MEDIAN_SAMPLES],
            next: 0,
        }
    }
}

impl Throughput {
    pub fn on_media(&mut self, added: DataSize, queued: DataSize) {
        self.media_bytes += added;
        self.queued = queued;
    }

    pub fn on_sent(&mut self, size: DataSize, queued: DataSize) {
        self.sent_bytes += size;
        self.queued = queued;
    }

    pub fn on_acknowledged(&mut self, received: DataSize) {
        self.acked_bytes += received;
    }

    /// Ends an interval that lasted `elapsed`.
    pub fn end_interval(&mut self, elapsed: TimeDelta) {
        self.rate_media = core::mem::take(&mut self.media_bytes) / elapsed;
        self.rate_transmit = core::mem::take(&mut self.sent_bytes) / elapsed;
        self.rate_ack = core::mem::take(&mut self.acked_bytes) / elapsed;
        let oldest = core::mem::replace(&mut self.media[self.next], self.rate_media);
        self.next = (self.next + 1) % MEDIAN_SAMPLES;
        self.replace_sorted(oldest, self.rate_media);
    }

    fn replace_sorted(&mut self, old: Bitrate, new: Bitrate) {
        let from = self.sorted.partition_point(|&rate| rate < old);
        let to = self.sorted.partition_point(|&rate| rate < new);
        if from < to {
            self.sorted[from..to].rotate_left(1);
            self.sorted[to - 1] = new;
        } else {
            self.sorted[to..=from].rotate_right(1);
            self.sorted[to] = new;
        }
    }

    /// `current_rate`: bitrate that the path carried [SCREAM §4.1.3].
    pub fn current_rate(&self) -> Bitrate {
        self.rate_transmit.max(self.rate_ack)
    }

    /// Bitrate of the source: the larger of `rate_media` and its median.
    pub fn media_rate(&self) -> Bitrate {
        self.rate_media.max(self.sorted[MEDIAN_SAMPLES / 2])
    }

    /// Acknowledged bitrate, `rate_ack`.
    pub fn rate_ack(&self) -> Bitrate {
        self.rate_ack
    }

    /// Length of the send queue, `rtp_queue_size`.
    pub fn queued(&self) -> DataSize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: TimeDelta = TimeDelta::from_millis(200);

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    // [SCREAM §4.1.3]
    #[test]
    fn the_current_rate_is_the_larger_of_sent_and_acknowledged() {
        let mut rates = Throughput::default();
        rates.on_media(bytes(30_000), bytes(30_000));
        rates.on_sent(bytes(5_000), bytes(25_000));
        rates.on_acknowledged(bytes(10_000));
        rates.end_interval(INTERVAL);
        assert_eq!(rates.current_rate(), Bitrate::from_kbps(400));
        assert_eq!(rates.rate_ack(), Bitrate::from_kbps(400));
        assert_eq!(rates.media_rate(), Bitrate::from_kbps(1_200));
        assert_eq!(rates.queued(), bytes(25_000));
        rates.on_sent(bytes(25_000), bytes(0));
        rates.end_interval(INTERVAL);
        assert_eq!(rates.current_rate(), Bitrate::from_kbps(1_000));
    }

    // [SCREAM §4.1.1.2]
    #[test]
    fn the_media_rate_does_not_fall_below_its_median_of_12_s() {
        let mut rates = Throughput::default();
        let mut interval = |media| {
            rates.on_media(bytes(media), bytes(media));
            rates.end_interval(INTERVAL);
            rates.media_rate()
        };
        (0..60).for_each(|_| assert_eq!(interval(25_000), Bitrate::from_kbps(1_000)));
        (0..29).for_each(|_| assert_eq!(interval(5_000), Bitrate::from_kbps(1_000)));
        interval(5_000);
        assert_eq!(interval(5_000), Bitrate::from_kbps(200));
    }

    #[test]
    fn the_sorted_rates_are_those_of_the_ring() {
        let mut rates = Throughput::default();
        let mut random = 1_u32;
        for _ in 0..500 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            rates.on_media(bytes(u64::from(random >> 28)), DataSize::ZERO);
            rates.end_interval(INTERVAL);
            let mut ring = rates.media;
            ring.sort_unstable();
            assert_eq!(rates.sorted, ring);
        }
    }
}
