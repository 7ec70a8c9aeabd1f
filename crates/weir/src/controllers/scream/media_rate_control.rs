//! Media rate control: the target bitrate of the media source.
//!
//! Implements [SCREAM §4.1.3]. `target_bitrate` starts at the start bitrate of the limits, not at
//! zero (SCREAM-D1).

use super::congestion_events::Congestion;
use crate::controller::{RateLimits, Reason};
use crate::units::{Bitrate, DataSize, TimeDelta};

// Parameters [SCREAM §4.1.1.1].
/// `RATE_ADJUST_INTERVAL`: time between two adjustments.
pub(super) const RATE_ADJUST_INTERVAL: TimeDelta = TimeDelta::from_millis(200);
/// `RAMP_UP_SPEED`: fastest growth, bit/s each second.
const RAMP_UP_SPEED: f64 = 200_000.0;
/// `PRE_CONGESTION_GUARD`: share of the current rate given up at full delay trend.
const PRE_CONGESTION_GUARD: f64 = 0.1;
/// `TX_QUEUE_SIZE_FACTOR`: weight of the bits in the send queue.
const TX_QUEUE_SIZE_FACTOR: f64 = 1.0;
/// `RTP_QDELAY_TH`: delay in the send queue above which the target shrinks, seconds.
const RTP_QDELAY_TH: f64 = 0.02;
/// `TARGET_RATE_SCALE_RTP_QDELAY`: factor of the target then.
const TARGET_RATE_SCALE_RTP_QDELAY: f64 = 0.95;
// Parameters [SCREAM §4.1.3], without a name there.
/// Growth is limited to this share of the target a second, where that is less than the ramp.
const RAMP_UP_SHARE: f64 = 0.5;
/// How quickly growth gains speed with the distance from the last congested bitrate.
const SCALE_GAIN: f64 = 4.0;
/// Lowest growth, next to the last congested bitrate.
const SCALE_MIN: f64 = 0.2;
/// `target_bitrate_last_max` before there was any congestion.
const INITIAL_LAST_MAX: Bitrate = Bitrate::from_bps(1);

/// What an adjustment goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// Whether the congestion window is in fast increase.
    pub fast_increase: bool,
    /// `current_rate`: what the path carried.
    pub current_rate: Bitrate,
    /// The larger of `rate_media` and `rate_media_median`.
    pub media_rate: Bitrate,
    /// `qdelay_trend`.
    pub trend: f64,
    /// `qdelay_trend_mem`.
    pub trend_memory: f64,
    /// `rtp_queue_size`.
    pub queued: DataSize,
}

/// `target_bitrate` and what bounds its growth.
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

    /// Incipient congestion: the delay trend ended fast increase. The target stays, growth towards it
    /// will be careful (SCREAM-D10).
    pub fn on_incipient_congestion(&mut self) {
        self.last_max = self.target;
    }

    /// A congestion event: lowers the target at once [SCREAM §4.1.3].
    pub fn on_congestion(&mut self, congestion: Congestion) {
        self.last_max = self.target;
        self.set(self.target * congestion.rate_factor(), congestion.reason());
    }

    /// The adjustment of every `RATE_ADJUST_INTERVAL` [SCREAM §4.1.3].
    pub fn adjust(&mut self, at: &Conditions) {
        let target = self.target.as_bps_f64();
        let (adjusted, mut reason) = if at.fast_increase {
            (target + self.growth_limit() * self.growth_scale(), Reason::RampUp)
        } else {
            self.follow_path(at)
        };
        // The source's own bitrate limits the target: an application-limited flow does not grow
        // without bound.
        let carried = at.current_rate.max(at.media_rate).as_bps_f64();
        let limit = carried * (2.0 - at.trend_memory);
        if limit < adjusted && limit < target {
            let trend_alone = carried * 2.0 >= target;
            reason = if trend_alone { Reason::OverUse } else { Reason::ApplicationLimited };
        }
        self.set(Bitrate::from_bps_f64(adjusted.min(limit)), reason);
    }

    /// The new target outside fast increase.
    fn follow_path(&self, at: &Conditions) -> (f64, Reason) {
        let current = at.current_rate.as_bps_f64();
        let queued = at.queued.as_bits() as f64;
        let guard = 1.0 - PRE_CONGESTION_GUARD * at.trend;
        let mut delta = current * guard - TX_QUEUE_SIZE_FACTOR * queued;
        if delta > 0.0 {
            delta = (delta * self.growth_scale()).min(self.growth_limit());
        }
        let mut target = (self.target.as_bps_f64() + delta).max(0.0);
        // A shorter form of queued / current > threshold, right at current rate zero too.
        if queued > RTP_QDELAY_TH * current {
            target *= TARGET_RATE_SCALE_RTP_QDELAY;
        }
        let grows = target >= self.target.as_bps_f64();
        (target, if grows { Reason::Increase } else { Reason::SendQueue })
    }

    /// `ramp_up_speed_t` over an interval, bit/s.
    fn growth_limit(&self) -> f64 {
        let ramp = RAMP_UP_SPEED.min(RAMP_UP_SHARE * self.target.as_bps_f64());
        ramp * RATE_ADJUST_INTERVAL.as_secs_f64()
    }

    /// `scale_t`.
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

    /// `target_bitrate`.
    pub fn target(&self) -> Bitrate {
        self.target
    }

    /// Why the target last changed.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}
