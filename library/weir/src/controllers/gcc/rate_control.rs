//! Rate control: additive increase near the known capacity, multiplicative increase elsewhere,
//! multiplicative decrease at over-use.
//!
//! Implements [LIBWEBRTC §AimdRateControl].

use super::delay_signal::{BandwidthUsage, RateState};
use super::link_capacity::LinkCapacity;
use crate::controller::{RateLimits, Reason};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §AimdRateControl].
/// `beta`: factor on the acknowledged bitrate at over-use, and the margin subtracted after it.
const BETA: f64 = 0.85;
const BETA_MARGIN: Bitrate = Bitrate::from_kbps(5);
/// Multiplicative increase per second, upper limit of the time between updates, and minimum step.
const INCREASE_PER_SECOND: f64 = 1.08;
const MAX_UPDATE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const MIN_INCREASE: Bitrate = Bitrate::from_bps(1_000);
/// Additive increase in bit/s per second: one packet of an assumed frame per two response times.
const FRAMES_PER_SECOND: f64 = 30.0;
const MAX_PACKET: DataSize = DataSize::from_bytes(1_200);
const REACTION_TIME: TimeDelta = TimeDelta::from_millis(100);
const RESPONSES_PER_PACKET: f64 = 2.0;
const MIN_ADDITIVE_BPS: f64 = 4_000.0;
/// The estimate grows up to this multiple of the acknowledged bitrate plus a margin.
const MAX_OVER_ACKNOWLEDGED: f64 = 1.5;
const MAX_OVER_MARGIN: Bitrate = Bitrate::from_kbps(10);
/// Cuts are at least a round-trip time apart, clamped to this range.
const MIN_CUT_INTERVAL: TimeDelta = TimeDelta::from_millis(10);
const MAX_CUT_INTERVAL: TimeDelta = TimeDelta::from_millis(200);
/// If the acknowledged bitrate is below this share of the estimate, another cut need not wait.
const DEEP_OVERUSE: f64 = 0.5;
/// Factor of the cut at over-use before the first acknowledged bitrate.
const INITIAL_CUT: f64 = 0.5;
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);

/// Runs the rate control and stores the delay-based estimate.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    state: RateState,
    estimate: Bitrate,
    min: Bitrate,
    /// The last acknowledged bitrate, or the start bitrate.
    acknowledged: Bitrate,
    link_capacity: LinkCapacity,
    rtt: TimeDelta,
    last_change: Option<Timestamp>,
}

impl RateControl {
    /// Begins at the start bitrate in state Hold.
    pub(super) fn new(limits: RateLimits) -> Self {
        Self {
            state: RateState::Hold,
            estimate: limits.start(),
            min: limits.min(),
            acknowledged: limits.start(),
            link_capacity: LinkCapacity::default(),
            rtt: DEFAULT_RTT,
            last_change: None,
        }
    }

    pub(super) fn estimate(&self) -> Bitrate {
        self.estimate
    }

    pub(super) fn state(&self) -> RateState {
        self.state
    }

    pub(super) fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt;
    }

    /// Sets the estimate, for instance to a probe's result.
    pub(super) fn set_estimate(&mut self, now: Timestamp, bitrate: Bitrate) {
        self.estimate = bitrate.max(self.min);
        self.last_change = Some(now);
    }

    /// The lowest estimate from now on.
    pub(super) fn set_min(&mut self, min: Bitrate) {
        self.min = min;
        self.estimate = self.estimate.max(min);
    }

    /// Adopts this flow's share of a coupled rate. That is not a change by this flow's own control,
    /// so the next cut need not wait.
    pub(super) fn share(&mut self, share: Bitrate) {
        self.estimate = share.max(self.min);
    }

    /// True if over-use that lasts may cut again.
    pub(super) fn may_cut(&self, now: Timestamp, acknowledged: Option<Bitrate>) -> bool {
        let interval = self.rtt.clamp(MIN_CUT_INTERVAL, MAX_CUT_INTERVAL);
        let waited = self.last_change.is_none_or(|last| now - last >= interval);
        waited || acknowledged.is_some_and(|rate| rate < self.estimate * DEEP_OVERUSE)
    }

    /// Halves the estimate, for over-use before the first acknowledged bitrate.
    pub(super) fn halve(&mut self, now: Timestamp) -> Reason {
        self.set_estimate(now, self.estimate * INITIAL_CUT);
        Reason::OverUse
    }

    /// Runs one update. Returns the reason that applies if the estimate changed.
    pub(super) fn update(
        &mut self,
        now: Timestamp,
        usage: BandwidthUsage,
        acknowledged: Option<Bitrate>,
    ) -> Reason {
        self.acknowledged = acknowledged.unwrap_or(self.acknowledged);
        let before = self.state;
        self.state = before.next(usage);
        match self.state {
            RateState::Hold => Reason::Increase,
            RateState::Increase => {
                if before == RateState::Hold {
                    self.last_change = Some(now);
                }
                self.increase(now)
            }
            RateState::Decrease => {
                self.decrease();
                // Hold at once: the rest of the queue drains without a second cut.
                self.state = RateState::Hold;
                self.last_change = Some(now);
                Reason::OverUse
            }
        }
    }

    fn increase(&mut self, now: Timestamp) -> Reason {
        self.link_capacity.on_increase(self.acknowledged);
        let elapsed = self.last_change.replace(now).map_or(TimeDelta::ZERO, |last| now - last);
        let limit = self.acknowledged * MAX_OVER_ACKNOWLEDGED + MAX_OVER_MARGIN;
        // An estimate above the limit stays, so a source that falls silent does not lower it.
        if self.estimate >= limit {
            return Reason::ApplicationLimited;
        }
        let (step, reason) = if self.link_capacity.estimate().is_some() {
            (self.additive_step(elapsed), Reason::Increase)
        } else {
            (self.multiplicative_step(elapsed), Reason::RampUp)
        };
        self.estimate = (self.estimate + step).min(limit);
        reason
    }

    fn multiplicative_step(&self, elapsed: TimeDelta) -> Bitrate {
        let seconds = elapsed.min(MAX_UPDATE_INTERVAL).as_secs_f64();
        let growth = libm::pow(INCREASE_PER_SECOND, seconds) - 1.0;
        (self.estimate * growth).max(MIN_INCREASE)
    }

    fn additive_step(&self, elapsed: TimeDelta) -> Bitrate {
        let frame_bits = self.estimate.as_bps_f64() / FRAMES_PER_SECOND;
        let packets = libm::ceil(frame_bits / MAX_PACKET.as_bits() as f64).max(1.0);
        let response = (self.rtt + REACTION_TIME).as_secs_f64() * RESPONSES_PER_PACKET;
        let bps_per_second = (frame_bits / packets / response).max(MIN_ADDITIVE_BPS);
        Bitrate::from_bps_f64(bps_per_second * elapsed.as_secs_f64())
    }

    fn decrease(&mut self) {
        let below = |rate: Bitrate| {
            if rate > BETA_MARGIN { rate.saturating_sub(BETA_MARGIN) } else { rate }
        };
        let mut cut = below(self.acknowledged * BETA);
        if cut > self.estimate
            && let Some(capacity) = self.link_capacity.estimate()
        {
            cut = capacity * BETA;
        }
        // Over-use never raises the estimate.
        self.estimate = self.estimate.min(cut).max(self.min);
        self.link_capacity.on_overuse(self.acknowledged);
    }
}

#[cfg(test)]
mod tests {
    use super::BandwidthUsage::{Normal, Overuse, Underuse};
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn control(start_kbps: u64) -> RateControl {
        RateControl::new(RateLimits::new(kbps(50), kbps(start_kbps), kbps(10_000)).unwrap())
    }

    fn run(control: &mut RateControl, ms: i64, usage: BandwidthUsage, acked_kbps: u64) -> Reason {
        control.update(Timestamp::from_millis(ms), usage, Some(kbps(acked_kbps)))
    }

    // [LIBWEBRTC §AimdRateControl]: the first update leaves Hold and counts no elapsed time.
    #[test]
    fn growth_is_8_percent_a_second_and_an_update_counts_for_one_at_most() {
        let mut control = control(1_000);
        assert_eq!(control.state(), RateState::Hold);
        assert_eq!(run(&mut control, 0, Normal, 1_000), Reason::RampUp);
        assert_eq!(control.estimate(), kbps(1_001));
        run(&mut control, 1_000, Normal, 1_000);
        assert_eq!(control.estimate(), Bitrate::from_bps(1_081_080));
        run(&mut control, 61_000, Normal, 1_000);
        assert_eq!(control.estimate(), Bitrate::from_bps(1_167_566));
    }

    // [LIBWEBRTC §AimdRateControl]
    #[test]
    fn growth_is_at_least_1_kbps_an_update() {
        let mut control = control(100);
        run(&mut control, 0, Normal, 100);
        (1..=20).for_each(|update| {
            run(&mut control, 50 * update, Normal, 100);
        });
        assert_eq!(control.estimate(), kbps(121));
    }

    // [LIBWEBRTC §AimdRateControl]: frames of 33,333 bits are 4 packets of 8333; 0.6 s for one.
    #[test]
    fn near_the_known_capacity_growth_is_a_packet_in_twice_the_response_time() {
        let mut control = control(1_000);
        run(&mut control, 0, Overuse, 1_190);
        let before = control.estimate().as_bps();
        assert_eq!(before, 1_000_000, "over-use never raises the estimate");
        run(&mut control, 0, Normal, 1_180);
        assert_eq!(run(&mut control, 1_000, Normal, 1_180), Reason::Increase);
        assert_eq!(control.estimate().as_bps() - before, 13_889);
        control.set_rtt(TimeDelta::from_secs(10));
        let before = control.estimate().as_bps();
        run(&mut control, 2_000, Normal, 1_180);
        assert_eq!(control.estimate().as_bps() - before, 4_000, "at least 4 kbit/s a second");
    }

    // [LIBWEBRTC §AimdRateControl]
    #[test]
    fn over_use_cuts_to_85_percent_of_what_arrives_less_5_kbps_and_holds() {
        let mut control = control(2_000);
        assert_eq!(run(&mut control, 0, Overuse, 1_000), Reason::OverUse);
        assert_eq!((control.estimate(), control.state()), (kbps(845), RateState::Hold));
        run(&mut control, 50, Underuse, 1_000);
        assert_eq!((control.estimate(), control.state()), (kbps(845), RateState::Hold));
    }

    // [LIBWEBRTC §AimdRateControl]: the packets that arrive were sent at an older, higher rate.
    #[test]
    fn a_cut_that_would_be_none_goes_to_85_percent_of_the_link_capacity() {
        let mut control = control(2_000);
        run(&mut control, 0, Overuse, 1_000);
        run(&mut control, 300, Overuse, 1_050);
        assert_eq!(control.estimate(), kbps(845).min(kbps(850)));
        run(&mut control, 600, Overuse, 1_000);
        assert_eq!(control.estimate(), kbps(845));
    }

    // [LIBWEBRTC §AimdRateControl]
    #[test]
    fn cuts_are_a_round_trip_of_10_to_200_ms_apart_unless_half_is_gone() {
        for (rtt_ms, interval_ms) in [(1, 10), (100, 100), (900, 200)] {
            let mut control = control(1_000);
            control.set_rtt(TimeDelta::from_millis(rtt_ms));
            run(&mut control, 0, Overuse, 1_000);
            let may_cut = |ms, acknowledged| {
                control.may_cut(Timestamp::from_millis(ms), Some(kbps(acknowledged)))
            };
            assert!(!may_cut(interval_ms - 1, 1_000) && may_cut(interval_ms, 1_000));
            assert!(!may_cut(1, 423) && may_cut(1, 422), "half of 845");
        }
    }

    // [LIBWEBRTC §AimdRateControl]: complaint 1 of the field.
    #[test]
    fn a_limited_source_holds_the_estimate_at_1_5_times_its_rate_and_10_kbps() {
        let mut control = control(300);
        let reasons: alloc::vec::Vec<_> =
            (0..600).map(|second| run(&mut control, second * 1_000, Normal, 300)).collect();
        assert_eq!(control.estimate(), kbps(460));
        assert_eq!(reasons.last(), Some(&Reason::ApplicationLimited));
        run(&mut control, 600_000, Normal, 50);
        assert_eq!(control.estimate(), kbps(460), "and does not pull it down");
    }

    /// What libwebrtc's unit tests expect of its rate control (`aimd_rate_control_unittest.cc`):
    /// the estimate and the round-trip time, and the growth in bit/s a second near the capacity.
    #[test]
    fn near_the_capacity_the_growth_is_what_libwebrtcs_unit_tests_expect() {
        let cases = [(30, 200, 4_000), (90, 200, 5_000), (60, 100, 5_000)];
        for (estimate_kbps, rtt_ms, expected) in cases {
            let limits = RateLimits::new(kbps(5), kbps(estimate_kbps), kbps(10_000)).unwrap();
            let mut control = RateControl::new(limits);
            control.set_rtt(TimeDelta::from_millis(rtt_ms));
            let step = control.additive_step(TimeDelta::from_secs(1));
            assert_eq!(step.as_bps(), expected, "{estimate_kbps} kbit/s, {rtt_ms} ms");
        }
        let mut control = control(300);
        run(&mut control, 0, Overuse, 300);
        let step = control.additive_step(TimeDelta::from_secs(1)).as_bps();
        assert!(step.abs_diff(14_000) <= 1_000, "{step}");
    }

    /// The same source: 10 kbit/s arrive for 20 s, and then half of it.
    #[test]
    fn the_bound_by_what_arrives_is_what_libwebrtcs_unit_tests_expect() {
        let mut control = RateControl::new(RateLimits::new(kbps(5), kbps(10), kbps(100)).unwrap());
        for update in 0..200 {
            run(&mut control, 100 * update, Normal, 10);
        }
        assert_eq!(control.estimate(), kbps(25));
        run(&mut control, 20_000, Normal, 5);
        assert_eq!(control.estimate(), kbps(25));
    }

    // [LIBWEBRTC §AimdRateControl]
    #[test]
    fn the_estimate_is_never_below_the_minimum() {
        let mut control = control(100);
        run(&mut control, 0, Overuse, 10);
        assert_eq!(control.estimate(), kbps(50));
    }
}
