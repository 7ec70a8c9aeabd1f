//! The size of a segment where a link is so narrow that the draft's takes long (SCREAMV2-D11).
//!
//! 1,000 bytes are 27 ms at 300 kbit/s and 133 ms at 60 kbit/s, and the smallest window is three of
//! them. So a segment is what the target carries until virtual marks begin, but at least the
//! largest packet of late.

use super::parameters::Parameters;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Time of a segment at the target at least.
const SEGMENT_TIME: TimeDelta = TimeDelta::from_millis(30);
/// The smallest segment, as a part of the draft's. With less, a rate of 1 kbit/s stays there.
const SEGMENT_MIN: f64 = 0.25;
/// Smallest part of a segment by which a window grows: a rate far below the path must return.
const GROWTH_MIN: f64 = 0.2;
/// A longer round trip leaves more time to see the effect of a segment.
const SHORT_RTT: TimeDelta = TimeDelta::from_millis(100);
/// The largest packet of this time and of the one before counts.
const PERIOD: TimeDelta = TimeDelta::from_secs(1);

/// The largest packets of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    largest: [DataSize; 2],
    period_begin: Timestamp,
}

impl Segment {
    pub fn on_packet_sent(&mut self, now: Timestamp, size: DataSize) {
        if now - self.period_begin >= PERIOD {
            self.largest = [DataSize::ZERO, self.largest[0]];
            self.period_begin = now;
        }
        self.largest[0] = self.largest[0].max(size);
    }

    /// The part of that by which windows grow. Where a segment takes [`SEGMENT_TIME`], a short
    /// round trip shows its effect too late.
    pub fn growth(target: Bitrate, rtt: TimeDelta, p: &Parameters) -> f64 {
        let whole = DataSize::from_bytes(p.mss as u64) / SEGMENT_TIME;
        let part = target / whole * (rtt / SHORT_RTT).max(1.0);
        if p.follows_packet_size { part.clamp(GROWTH_MIN, 1.0) } else { 1.0 }
    }

    /// `MSS` at this target, in bytes: at most the one of the parameters.
    pub fn size(&self, target: Bitrate, p: &Parameters) -> f64 {
        let largest = self.largest[0].max(self.largest[1]);
        let size = largest.max(target * SEGMENT_TIME).as_bytes() as f64;
        if p.follows_packet_size { size.clamp(p.mss * SEGMENT_MIN, p.mss) } else { p.mss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SCREAMV2-D11
    #[test]
    fn a_segment_takes_30_ms_of_the_target_but_is_not_below_a_packet() {
        let mut segment = Segment::default();
        let size =
            |segment: &Segment, kbps| segment.size(Bitrate::from_kbps(kbps), &Parameters::DRAFT);
        assert_eq!([size(&segment, 300), size(&segment, 200)], [1_000.0, 750.0]);
        for second in 0..3 {
            let bytes = [600, 250, 250][second];
            let now = Timestamp::from_secs(1 + second as i64);
            segment.on_packet_sent(now, DataSize::from_bytes(bytes));
            // The largest of this second and of the one before.
            assert_eq!(size(&segment, 60), [600.0, 600.0, 250.0][second]);
        }
        let fixed = Parameters { follows_packet_size: false, ..Parameters::DRAFT };
        assert_eq!(segment.size(Bitrate::from_kbps(60), &fixed), 1_000.0);
        let growth = |kbps, ms| {
            let (rate, rtt) = (Bitrate::from_kbps(kbps), TimeDelta::from_millis(ms));
            libm::round(Segment::growth(rate, rtt, &Parameters::DRAFT) * 100.0) / 100.0
        };
        assert_eq!([growth(267, 50), growth(80, 50)], [1.0, 0.3]);
        assert_eq!([growth(80, 200), growth(80, 400)], [0.6, 1.0]);
    }
}
