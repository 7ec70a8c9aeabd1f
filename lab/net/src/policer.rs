//! A policer: a token bucket in front of the queue that drops what exceeds its rate
//! [RFC2697 §3].
//!
//! It delays nothing. A packet that finds enough tokens passes at once; any other one is dropped.
//! So a sender sees losses without a queue, which is what makes policers hard for controllers that
//! follow the delay.
//!
//! [RFC2697 §3]: https://www.rfc-editor.org/rfc/rfc2697#section-3

use weir::units::{Bitrate, DataSize, Timestamp};

/// Rate and size of the token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicerConfig {
    /// Rate at which tokens arrive.
    pub rate: Bitrate,
    /// Size of the bucket: bytes that pass at once after a pause.
    pub burst: DataSize,
}

impl PolicerConfig {
    /// A policer of this rate whose bucket holds `burst`.
    pub const fn new(rate: Bitrate, burst: DataSize) -> Self {
        Self { rate, burst }
    }
}

/// The token bucket, full at first. It stores when it will be full again, which is exact: the
/// tokens that are missing now are those that arrive until then.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    config: PolicerConfig,
    full_at: Timestamp,
}

impl Policer {
    pub(crate) fn new(config: PolicerConfig) -> Self {
        Self { config, full_at: Timestamp::ZERO }
    }

    /// Whether a packet passes. It takes its tokens if it does.
    pub(crate) fn passes(&mut self, now: Timestamp, size: DataSize) -> bool {
        let PolicerConfig { rate, burst } = self.config;
        let full_at = self.full_at.max(now) + size / rate;
        let passes = full_at - now <= burst / rate;
        if passes {
            self.full_at = full_at;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1_000);

    fn policer() -> Policer {
        Policer::new(PolicerConfig::new(Bitrate::from_kbps(800), DataSize::from_bytes(5_000)))
    }

    // [RFC2697 §3]
    #[test]
    fn a_burst_passes_until_the_bucket_is_empty() {
        let mut policer = policer();
        let now = Timestamp::from_secs(1);
        let passed = (0..10).filter(|_| policer.passes(now, SIZE)).count();
        assert_eq!(passed, 5);
        assert!(policer.passes(now + SIZE / Bitrate::from_kbps(800), SIZE), "10 ms fill a packet");
    }

    // [RFC2697 §3]
    #[test]
    fn over_time_the_rate_passes_whatever_is_offered() {
        let mut policer = policer();
        // 1.6 Mbit/s for ten seconds, and 0.8 after that.
        let fast = (0..2_000).filter(|n| policer.passes(Timestamp::from_millis(n * 5), SIZE));
        assert_eq!(fast.count(), 1_004, "the rate, and the bucket at the start");
        let slow =
            (0..100).filter(|n| policer.passes(Timestamp::from_millis(20_000 + n * 10), SIZE));
        assert_eq!(slow.count(), 100);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_never_passes() {
        let mut policer = policer();
        assert!(!policer.passes(Timestamp::from_secs(9), DataSize::from_bytes(5_001)));
        assert!(policer.passes(Timestamp::from_secs(9), DataSize::from_bytes(5_000)));
    }
}
