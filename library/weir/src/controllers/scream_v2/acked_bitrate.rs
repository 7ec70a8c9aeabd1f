//! `acked_bitrate`: receive rate over about one round trip [SCREAMV2 §4.5.3].

use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Minimum measuring interval (SCREAMV2-D6). Over a shorter time, single frames dominate the
/// result.
const INTERVAL_MIN: TimeDelta = TimeDelta::from_millis(100);

/// Counts bytes from report to report.
#[derive(Clone, Debug, Default)]
pub(super) struct AckedBitrate {
    bytes: DataSize,
    since: Option<Timestamp>,
    bitrate: Option<Bitrate>,
}

impl AckedBitrate {
    /// Takes the bytes reported as received.
    pub fn on_report(&mut self, now: Timestamp, rtt: TimeDelta, received: DataSize) {
        // The first report covers an unknown time.
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        self.bytes += received;
        if now - since >= rtt.max(INTERVAL_MIN) {
            self.bitrate = Some(core::mem::take(&mut self.bytes) / (now - since));
            self.since = Some(now);
        }
    }

    /// `acked_bitrate`; `None` before the first round trip.
    pub fn value(&self) -> Option<Bitrate> {
        self.bitrate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [SCREAMV2 §4.5.3]
    #[test]
    fn it_is_what_arrived_in_a_round_trip_and_at_least_100_ms() {
        let mut acked = AckedBitrate::default();
        let mut report = |millis: i64, rtt| {
            let now = Timestamp::from_millis(5_000 + millis);
            acked.on_report(now, TimeDelta::from_millis(rtt), DataSize::from_bytes(6_250));
            acked.value().map(|bitrate| bitrate.as_bps() / 1_000)
        };
        assert_eq!([report(0, 20), report(50, 20)], [None, None]);
        assert_eq!(report(100, 20), Some(1_000));
        assert_eq!([report(150, 150), report(200, 150)], [Some(1_000); 2]);
        assert_eq!(report(300, 150), Some(750));
    }
}
