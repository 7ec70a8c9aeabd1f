//! Media rate control: the target bitrate of the media source.
//!
//! Implements [SCREAM §4.1.3]. Departs from it in SCREAM-D1 (start), SCREAM-D8 (application-limited
//! sources), SCREAM-D9 (send queue) and SCREAM-D10 (`target_bitrate_last_max`).

use super::congestion_events::Congestion;
use crate::controller::{RateLimits, Reason};
use crate::units::{Bitrate, DataSize, TimeDelta};

// Parameters [SCREAM §4.1.1.1].
/// `RATE_ADJUST_INTERVAL`: time between two adjustments.
pub(super) const RATE_ADJUST_INTERVAL: TimeDelta = TimeDelta::from_millis(200);
/// `RAMP_UP_SPEED`: maximum growth, in bit/s per second.
const RAMP_UP_SPEED: f64 = 200_000.0;
/// `PRE_CONGESTION_GUARD`: share of the current rate that is given up when the delay trend is 1.
const PRE_CONGESTION_GUARD: f64 = 0.1;
/// `TX_QUEUE_SIZE_FACTOR`: weight of the bits in the send queue.
const TX_QUEUE_SIZE_FACTOR: f64 = 1.0;
/// `RTP_QDELAY_TH`: send-queue delay above which the target shrinks, in seconds.
const RTP_QDELAY_TH: f64 = 0.02;
/// `TARGET_RATE_SCALE_RTP_QDELAY`: factor applied to the target above that delay.
const TARGET_RATE_SCALE_RTP_QDELAY: f64 = 0.95;
// Parameters of [SCREAM §4.1.3] that the RFC does not name.
/// Maximum growth per second as a share of the target, if that is below `RAMP_UP_SPEED`.
const RAMP_UP_SHARE: f64 = 0.5;
/// How fast growth increases with the distance from the last congested bitrate.
const SCALE_GAIN: f64 = 4.0;
/// Minimum scale of growth, near the last congested bitrate.
const SCALE_MIN: f64 = 0.2;
/// `target_bitrate_last_max` before the first congestion.
const INITIAL_LAST_MAX: Bitrate = Bitrate::from_bps(1);

/// Input of an adjustment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// Whether acknowledgements are missing.
    pub silent: bool,
    /// Whether the congestion window is in fast increase.
    pub fast_increase: bool,
    /// `current_rate`: bitrate that the path carried.
    pub current_rate: Bitrate,
    /// The larger of `rate_media` and `rate_media_median`.
    pub media_rate: Bitrate,
    /// Trend of the queuing delay, `qdelay_trend`.
    pub trend: f64,
    /// Recent maximum of the trend, `qdelay_trend_mem`.
    pub trend_memory: f64,
    /// Length of the send queue, `rtp_queue_size`.
    pub queued: DataSize,
}

/// `target_bitrate` and the state that bounds its growth.
#[derive(Clone, Debug)]
pub(super) struct MediaRateControl {
    limits: RateLimits,
    target: Bitrate,
    /// `target_bitrate_last_max`: the target when congestion was last detected.
    last_max: Bitrate,
    reason: Reason,
}

impl MediaRateControl {
    pub fn new(limits: RateLimits) -> Self {
        Self { limits, target: limits.start(), last_max: INITIAL_LAST_MAX, reason: Reason::Start }
    }

    /// Incipient congestion: the delay trend ended fast increase. The target stays the same, but
    /// grows slowly from now on (SCREAM-D10).
    pub fn on_incipient_congestion(&mut self) {
        self.last_max = self.target;
    }

    /// A congestion event: lowers the target at once [SCREAM §4.1.3].
    pub fn on_congestion(&mut self, congestion: Congestion) {
        self.last_max = self.target;
        self.set(self.target * congestion.rate_factor(), congestion.reason());
    }

    /// Sets the target to this flow's share of a coupled rate.
    pub fn share(&mut self, share: Bitrate) {
        self.set(share, Reason::Coupled);
    }

    /// Moves the target only as far as the new limits demand.
    pub fn set_limits(&mut self, limits: RateLimits) {
        self.limits = limits;
        self.set(self.target, Reason::Limits);
    }

    /// The target is the start bitrate again, because of a new route.
    pub fn on_new_route(&mut self) {
        self.reason = Reason::NewRoute;
    }

    /// The adjustment, once per `RATE_ADJUST_INTERVAL` [SCREAM §4.1.3].
    pub fn adjust(&mut self, at: &Conditions) {
        let target = self.target.as_bps_f64();
        let (adjusted, reason) = if at.fast_increase {
            (target + self.growth_limit() * self.growth_scale(), Reason::RampUp)
        } else {
            self.follow_path(at)
        };
        let carried = at.current_rate.max(at.media_rate).as_bps_f64();
        // SCREAM-D8: if the source uses less than half of the target, the target neither grows nor
        // follows the source down. SCREAM-D2: the target does not grow without feedback.
        let holds = at.silent || 2.0 * carried < target;
        let limit = if holds { target } else { carried * (2.0 - at.trend_memory) };
        let reason = if limit < target && limit < adjusted { Reason::OverUse } else { reason };
        self.set(Bitrate::from_bps_f64(adjusted.min(limit)), reason);
    }

    /// The new target outside fast increase.
    fn follow_path(&self, at: &Conditions) -> (f64, Reason) {
        let current = at.current_rate.as_bps_f64();
        let queued = at.queued.as_bits() as f64;
        let guard = 1.0 - PRE_CONGESTION_GUARD * at.trend;
        let delta = current * guard - TX_QUEUE_SIZE_FACTOR * queued;
        let before = self.target.as_bps_f64();
        if queued > RTP_QDELAY_TH * current {
            // SCREAM-D9: no growth while there is a send queue. The RFC adds up to 10 % here and
            // then subtracts 5 %, which limits the queue only above 800 kbit/s.
            let target = (before + delta.min(0.0)) * TARGET_RATE_SCALE_RTP_QDELAY;
            (target, Reason::SendQueue)
        } else {
            let growth = (delta * self.growth_scale()).min(self.growth_limit());
            (before + growth, Reason::Increase)
        }
    }

    /// `ramp_up_speed_t` times the adjustment interval, in bit/s.
    fn growth_limit(&self) -> f64 {
        let ramp = RAMP_UP_SPEED.min(RAMP_UP_SHARE * self.target.as_bps_f64());
        ramp * RATE_ADJUST_INTERVAL.as_secs_f64()
    }

    /// Scale of the growth, `scale_t`: small near the last congested bitrate.
    fn growth_scale(&self) -> f64 {
        let last_max = self.last_max.as_bps_f64();
        let distance = SCALE_GAIN * (self.target.as_bps_f64() - last_max) / last_max;
        (distance * distance).clamp(SCALE_MIN, 1.0)
    }

    fn set(&mut self, target: Bitrate, reason: Reason) {
        let target = self.limits.clamp(target);
        if target != self.target {
            self.target = target;
            self.reason = reason;
        }
    }

    /// The target bitrate, `target_bitrate`.
    pub fn target(&self) -> Bitrate {
        self.target
    }

    /// The maximum target bitrate, `TARGET_BITRATE_MAX`.
    pub fn max_bitrate(&self) -> Bitrate {
        self.limits.max()
    }

    /// Why the target last changed.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    /// A rate control at `target_kbps` with limits of 50 and 5000 kbit/s, last congested at
    /// `last_max`.
    fn control(target_kbps: u64, last_max: Bitrate) -> MediaRateControl {
        let limits = RateLimits::new(kbps(50), kbps(target_kbps), kbps(5_000)).unwrap();
        MediaRateControl { last_max, ..MediaRateControl::new(limits) }
    }

    const NORMAL: Conditions = Conditions {
        silent: false,
        fast_increase: false,
        current_rate: kbps(1_000),
        media_rate: kbps(1_000),
        trend: 0.0,
        trend_memory: 0.0,
        queued: DataSize::ZERO,
    };
    const FAST: Conditions = Conditions { fast_increase: true, ..NORMAL };

    /// Target and reason after one adjustment, from `target_kbps`.
    fn adjusted(target_kbps: u64, last_max: Bitrate, at: Conditions) -> (Bitrate, Reason) {
        let mut control = control(target_kbps, last_max);
        control.adjust(&at);
        (control.target(), control.reason())
    }

    // [SCREAM §4.1.3]
    #[test]
    fn fast_increase_adds_200_kbps_a_second_or_half_the_target() {
        let never = INITIAL_LAST_MAX;
        assert_eq!(adjusted(1_000, never, FAST), (kbps(1_040), Reason::RampUp));
        assert_eq!(adjusted(300, never, FAST), (kbps(330), Reason::RampUp));
    }

    // [SCREAM §4.1.3]
    #[test]
    fn fast_increase_is_slower_near_the_last_congested_bitrate() {
        assert_eq!(adjusted(1_000, kbps(1_000), FAST), (kbps(1_008), Reason::RampUp));
        // 4 * (1000 - 1250) / 1250 = -0.8, squared 0.64, of 40 kbit/s.
        assert_eq!(adjusted(1_000, kbps(1_250), FAST).0, Bitrate::from_bps(1_025_600));
        assert_eq!(adjusted(1_000, kbps(1_334), FAST).0, kbps(1_040));
    }

    // [SCREAM §4.1.3]
    #[test]
    fn loss_and_marks_take_a_tenth_and_stop_at_the_minimum() {
        let mut control = control(1_000, INITIAL_LAST_MAX);
        control.on_congestion(Congestion::Loss);
        assert_eq!((control.target(), control.reason()), (kbps(900), Reason::Loss));
        control.on_congestion(Congestion::Ecn);
        assert_eq!((control.target(), control.reason()), (kbps(810), Reason::Ecn));
        assert_eq!(control.last_max, kbps(900));
        (0..50).for_each(|_| control.on_congestion(Congestion::Loss));
        assert_eq!(control.target(), kbps(50));
    }

    // [SCREAM §4.1.3]
    #[test]
    fn normal_growth_is_the_scaled_current_rate_up_to_the_ramp() {
        assert_eq!(adjusted(1_000, kbps(1_000), NORMAL), (kbps(1_040), Reason::Increase));
        // 100 kbit/s * (1 - 0.1 * 0.5) * 0.2.
        let slow = Conditions { current_rate: kbps(100), trend: 0.5, ..NORMAL };
        assert_eq!(adjusted(1_000, kbps(1_000), slow), (kbps(1_019), Reason::Increase));
    }

    // [SCREAM §4.1.3], SCREAM-D9
    #[test]
    fn more_than_20_ms_in_the_send_queue_takes_5_percent() {
        let queued = |bytes| Conditions { queued: DataSize::from_bytes(bytes), ..NORMAL };
        assert_eq!(adjusted(1_000, kbps(1_000), queued(2_500)).1, Reason::Increase);
        assert_eq!(adjusted(1_000, kbps(1_000), queued(2_501)), (kbps(950), Reason::SendQueue));
        // The queue contains 1200 kbit, 200 kbit more than the path carries in a second.
        assert_eq!(adjusted(1_000, kbps(1_000), queued(150_000)).0, kbps(760));
        let dead = Conditions { current_rate: Bitrate::ZERO, ..queued(1) };
        assert_eq!(adjusted(1_000, kbps(1_000), dead).1, Reason::SendQueue);
    }

    // [SCREAM §4.1.3]
    #[test]
    fn a_remembered_trend_brings_the_target_down_to_what_is_carried() {
        let trend = Conditions { trend_memory: 1.0, media_rate: kbps(980), ..NORMAL };
        assert_eq!(adjusted(1_100, kbps(1_000), trend), (kbps(1_000), Reason::OverUse));
        assert_eq!(adjusted(1_000, INITIAL_LAST_MAX, trend), (kbps(1_000), Reason::Start));
    }

    // SCREAM-D8
    #[test]
    fn a_source_below_half_of_its_target_neither_raises_nor_lowers_it() {
        let idle = Conditions { current_rate: kbps(400), media_rate: kbps(400), ..FAST };
        assert_eq!(adjusted(1_000, INITIAL_LAST_MAX, idle), (kbps(1_000), Reason::Start));
        let half = Conditions { current_rate: kbps(500), media_rate: kbps(505), ..FAST };
        assert_eq!(adjusted(1_000, INITIAL_LAST_MAX, half), (kbps(1_010), Reason::RampUp));
    }

    // SCREAM-D10
    #[test]
    fn after_incipient_congestion_the_target_stays_and_grows_least() {
        let mut control = control(1_000, INITIAL_LAST_MAX);
        control.on_incipient_congestion();
        assert_eq!(control.target(), kbps(1_000));
        assert_eq!(control.growth_scale(), SCALE_MIN);
    }

    // SCREAM-D2
    #[test]
    fn in_silence_the_target_does_not_grow() {
        let silent = Conditions { silent: true, ..NORMAL };
        assert_eq!(adjusted(1_000, INITIAL_LAST_MAX, silent), (kbps(1_000), Reason::Start));
        let queued = Conditions { queued: DataSize::from_bytes(9_000), ..silent };
        assert_eq!(adjusted(1_000, INITIAL_LAST_MAX, queued), (kbps(950), Reason::SendQueue));
    }

    #[test]
    fn the_limits_hold() {
        assert_eq!(adjusted(4_990, INITIAL_LAST_MAX, NORMAL).0, kbps(4_990));
        let rich = Conditions { current_rate: kbps(9_000), ..FAST };
        assert_eq!(adjusted(4_990, INITIAL_LAST_MAX, rich), (kbps(5_000), Reason::RampUp));
    }
}
