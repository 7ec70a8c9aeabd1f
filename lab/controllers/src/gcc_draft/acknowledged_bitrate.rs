//! Acknowledged bitrate: the incoming bitrate `R_hat`, measured from feedback over a window.
//!
//! Implements the measurement of [GCC §5.5]. Departs from it in GCC-D7.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [GCC §5.6].
/// `T`: window of the measurement; the draft recommends 0.5 to 1 s.
const WINDOW: TimeDelta = TimeDelta::from_millis(500);
/// Packets are summed up in buckets of this duration.
const BUCKET: TimeDelta = TimeDelta::from_millis(5);
/// Number of buckets that cover the window, plus the one being filled.
const BUCKETS: usize = (WINDOW.as_nanos() / BUCKET.as_nanos()) as usize + 1;
/// If an arrival is older than the newest one by more than this, the receiver's clock jumped.
const MAX_REORDERING: TimeDelta = TimeDelta::from_secs(3);

/// Sums up the arrivals of the last 500 ms on the receiver's clock.
///
/// Memory and cost do not depend on the packet rate.
#[derive(Clone, Debug)]
pub(crate) struct AcknowledgedBitrate {
    buckets: [DataSize; BUCKETS],
    total: DataSize,
    measured: Option<Measured>,
}

/// Time range that the buckets cover.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Arrival after which bytes are counted.
    since: Timestamp,
    newest: Timestamp,
}

impl AcknowledgedBitrate {
    pub(crate) fn new() -> Self {
        Self { buckets: [DataSize::ZERO; BUCKETS], total: DataSize::ZERO, measured: None }
    }

    /// Adds a packet that arrived.
    pub(crate) fn on_packet(&mut self, arrival: Timestamp, size: DataSize) {
        let Some(measured) = &mut self.measured else {
            self.measured = Some(Measured { since: arrival, newest: arrival });
            return;
        };
        let ahead = arrival - measured.newest;
        if ahead > WINDOW || ahead < -MAX_REORDERING {
            // GCC-D7: bytes from before a silence do not reflect the rate after it.
            *self = Self::new();
            self.measured = Some(Measured { since: arrival, newest: arrival });
            return;
        }
        let (bucket, newest) = (bucket_number(arrival), bucket_number(measured.newest));
        if bucket <= newest - BUCKETS as i64 {
            return;
        }
        for skipped in newest + 1..=bucket {
            let expired = core::mem::take(&mut self.buckets[slot(skipped)]);
            self.total = self.total.saturating_sub(expired);
        }
        measured.newest = measured.newest.max(arrival);
        self.buckets[slot(bucket)] += size;
        self.total += size;
    }

    /// `R_hat`; `None` until a whole window has been measured.
    pub(crate) fn bitrate(&self) -> Option<Bitrate> {
        let measured = self.measured?;
        let oldest = bucket_number(measured.newest) - (BUCKETS as i64 - 1);
        let start = Timestamp::from_nanos(oldest.saturating_mul(BUCKET.as_nanos()));
        if start >= measured.since { Some(self.total / (measured.newest - start)) } else { None }
    }
}

fn bucket_number(arrival: Timestamp) -> i64 {
    arrival.as_nanos().div_euclid(BUCKET.as_nanos())
}

fn slot(bucket: i64) -> usize {
    bucket.rem_euclid(BUCKETS as i64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1250);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn receive(acknowledged: &mut AcknowledgedBitrate, ms: impl Iterator<Item = i64>) {
        for ms in ms {
            acknowledged.on_packet(at(ms), SIZE);
        }
    }

    // [GCC §5.5]: 1250 B each 10 ms are 1 Mbit/s.
    #[test]
    fn a_steady_stream_measures_its_bitrate_once_the_window_is_full() {
        let mut acknowledged = AcknowledgedBitrate::new();
        receive(&mut acknowledged, (0..=490).step_by(10));
        assert_eq!(acknowledged.bitrate(), None);
        receive(&mut acknowledged, (500..=2_000).step_by(10));
        // Packets fall on the edges of buckets, so the first one of the window counts too.
        let expect = DataSize::from_bytes(51 * 1250) / TimeDelta::from_millis(500);
        assert_eq!(acknowledged.bitrate(), Some(expect));
    }

    // [GCC §5.5]
    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let mut acknowledged = AcknowledgedBitrate::new();
        receive(&mut acknowledged, 0..1_000);
        receive(&mut acknowledged, (1_002..1_600).step_by(20));
        let in_window = (1_002..1_600).step_by(20).filter(|ms| *ms >= 1_080).count() as u64;
        let last = 1_582;
        let expect = DataSize::from_bytes(in_window * 1250) / TimeDelta::from_millis(last - 1_080);
        assert_eq!(acknowledged.bitrate(), Some(expect));
    }

    #[test]
    fn the_order_of_feedback_within_the_window_does_not_matter() {
        let mut in_order = AcknowledgedBitrate::new();
        let mut swapped = AcknowledgedBitrate::new();
        receive(&mut in_order, (0..=1_000).step_by(10));
        let pairs = (10..=1_000).step_by(20);
        receive(&mut swapped, core::iter::once(0).chain(pairs.flat_map(|ms| [ms + 10, ms])));
        in_order.on_packet(at(1_010), SIZE);
        swapped.on_packet(at(1_010), SIZE);
        assert_eq!(in_order.bitrate(), swapped.bitrate());
        let before = in_order.bitrate();
        in_order.on_packet(at(400), SIZE);
        assert_eq!(in_order.bitrate(), before, "older than the window");
    }

    // GCC-D7
    #[test]
    fn the_measurement_restarts_after_a_silence_or_a_jump_of_the_clock() {
        for resumed in [1_501, -2_100, 3_600_000, -3_600_000] {
            let mut acknowledged = AcknowledgedBitrate::new();
            receive(&mut acknowledged, (0..=1_000).step_by(10));
            receive(&mut acknowledged, (resumed..resumed + 400).step_by(10));
            assert_eq!(acknowledged.bitrate(), None);
            receive(&mut acknowledged, (resumed + 400..resumed + 600).step_by(10));
            assert!(acknowledged.bitrate().is_some());
        }
    }

    #[test]
    fn a_steady_stream_after_absurd_arrivals_measures_as_ever() {
        let mut clean = AcknowledgedBitrate::new();
        let mut acknowledged = AcknowledgedBitrate::new();
        for nanos in [i64::MAX, i64::MIN, i64::MIN + 1, i64::MAX, i64::MIN] {
            acknowledged.on_packet(Timestamp::from_nanos(nanos), DataSize::MAX);
        }
        for measured in [&mut clean, &mut acknowledged] {
            receive(measured, (0..=1_000).step_by(10));
        }
        assert_eq!(acknowledged.bitrate(), clean.bitrate());
    }
}
