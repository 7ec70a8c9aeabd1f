//! Round-trip-time back-off: cuts the target while feedback is missing or very late.
//!
//! Implements [LIBWEBRTC §RttBasedBackoff].

use crate::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §RttBasedBackoff].
/// A path with a longer round-trip time counts as broken.
const LIMIT: TimeDelta = TimeDelta::from_secs(3);
/// Factor of each cut, time between cuts, and the rate at which cuts end.
const CUT: f64 = 0.8;
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const FLOOR: Bitrate = Bitrate::from_kbps(5);

/// The round-trip time, and the time spent waiting for feedback since.
#[derive(Clone, Debug, Default)]
pub(super) struct RttBackoff {
    rtt: TimeDelta,
    /// Time of the measurement; before the first one, of the first packet sent.
    measured: Option<Timestamp>,
    last_sent: Option<Timestamp>,
    last_cut: Option<Timestamp>,
}

impl RttBackoff {
    pub(super) fn on_packet_sent(&mut self, now: Timestamp) {
        self.measured.get_or_insert(now);
        self.last_sent = Some(now);
    }

    pub(super) fn on_rtt(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.rtt = rtt;
        self.measured = Some(now);
    }

    /// True while the path counts as broken. A sender that pauses is not waiting for feedback.
    #[inline]
    pub(super) fn is_above_limit(&self) -> bool {
        let waits = self.last_sent.zip(self.measured);
        let waited = waits.map_or(TimeDelta::ZERO, |(sent, measured)| sent - measured);
        self.rtt + waited.max(TimeDelta::ZERO) > LIMIT
    }

    /// The target after a cut, if one is due.
    pub(super) fn cut(&mut self, now: Timestamp, target: Bitrate) -> Option<Bitrate> {
        let waited = self.last_cut.is_none_or(|last| now - last >= INTERVAL);
        if !self.is_above_limit() || !waited || target <= FLOOR {
            return None;
        }
        self.last_cut = Some(now);
        Some((target * CUT).max(FLOOR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [LIBWEBRTC §RttBasedBackoff]
    #[test]
    fn silence_of_more_than_3_s_costs_a_fifth_each_second() {
        let mut backoff = RttBackoff::default();
        let mut target = Bitrate::from_kbps(1_000);
        let mut cuts = alloc::vec::Vec::new();
        for ms in (0..6_000).step_by(10) {
            let now = Timestamp::from_millis(ms);
            backoff.on_packet_sent(now);
            if let Some(cut) = backoff.cut(now, target) {
                target = cut;
                cuts.push((ms, cut.as_bps() / 1_000));
            }
        }
        assert_eq!(cuts, [(3_010, 800), (4_010, 640), (5_010, 512)]);
    }

    // [LIBWEBRTC §RttBasedBackoff]
    #[test]
    fn feedback_or_a_pause_of_the_sender_ends_it() {
        let mut backoff = RttBackoff::default();
        let at = Timestamp::from_secs;
        backoff.on_packet_sent(at(0));
        assert_eq!(backoff.cut(at(60), Bitrate::from_kbps(1_000)), None, "nothing is sent");
        backoff.on_packet_sent(at(60));
        assert!(backoff.is_above_limit());
        backoff.on_rtt(at(60), TimeDelta::from_millis(100));
        assert!(!backoff.is_above_limit());
        backoff.on_rtt(at(61), TimeDelta::from_millis(3_001));
        assert!(backoff.is_above_limit(), "feedback that comes too late is as good as none");
    }
}
