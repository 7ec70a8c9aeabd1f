//! Rate control: a state machine turns the detector's signal into the delay-based estimate `A_hat`.
//!
//! Implements [GCC §5.5]. Departs from it in GCC-D9 to GCC-D13.

use super::convergence::{Convergence, Growth};
use crate::delay_signal::{BandwidthUsage, RateState as State};
use weir::controller::{RateLimits, Reason};
use weir::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [GCC §5.5], [GCC §5.6]. Names in backticks are the draft's.
/// `beta`: factor on the incoming bitrate at over-use; the draft allows 0.8 to 0.95.
pub(super) const BETA: f64 = 0.85;
/// Base of `eta`: multiplicative increase per second.
const INCREASE_PER_SECOND: f64 = 1.08;
/// Upper limit of the time between updates in the multiplicative increase.
const MAX_UPDATE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// Reaction time of the detector. The `response_time` is this plus the round-trip time.
const REACTION_TIME: TimeDelta = TimeDelta::from_millis(100);
/// Additive increase per response time, in packets.
const PACKETS_PER_RESPONSE: f64 = 0.5;
/// Minimum additive increase per response time, in bit/s.
const MIN_ADDITIVE_BPS: f64 = 1_000.0;
/// Assumed frame rate and largest packet, from which `expected_packet_size_bits` is computed.
const FRAMES_PER_SECOND: f64 = 30.0;
const MAX_PACKET_BITS: f64 = 1_200.0 * 8.0;
/// The estimate grows only up to this multiple of the incoming bitrate.
const MAX_OVER_ACKNOWLEDGED: f64 = 1.5;

/// Runs the rate control and stores `A_hat`.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    limits: RateLimits,
    state: State,
    /// `A_hat`, within the limits.
    estimate_bps: f64,
    convergence: Convergence,
    last_update: Option<Timestamp>,
}

/// Inputs of one run of the rate control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub usage: BandwidthUsage,
    /// `R_hat`.
    pub acknowledged: Option<Bitrate>,
    /// Round-trip time.
    pub rtt: TimeDelta,
}

impl RateControl {
    /// Starts in state Increase [GCC §5.5].
    pub(super) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            state: State::Increase,
            estimate_bps: limits.start().as_bps_f64(),
            convergence: Convergence::default(),
            last_update: None,
        }
    }

    /// Runs one update. Returns the reason that applies if the estimate changed.
    pub(super) fn update(&mut self, now: Timestamp, update: &Update) -> Reason {
        let elapsed = self.last_update.map_or(TimeDelta::ZERO, |last| now - last);
        self.last_update = Some(now);
        let entered = self.state != State::Decrease;
        self.state = self.state.next(update.usage);
        match self.state {
            State::Hold => Reason::Increase,
            State::Increase => self.increase(elapsed, update),
            State::Decrease => self.decrease(entered, update.acknowledged),
        }
    }

    /// Follows the loss-based estimate while there is no gradient, GCC-D18. The bound by the
    /// incoming bitrate still applies, GCC-D9.
    pub(super) fn follow(&mut self, estimate: Bitrate, acknowledged: Option<Bitrate>) -> Reason {
        let before = self.estimate_bps;
        let bound = self.bound(acknowledged);
        let estimate = estimate.as_bps_f64();
        self.set(estimate.min(bound));
        match estimate > bound {
            true => Reason::ApplicationLimited,
            false if estimate < before => Reason::Loss,
            false => Reason::Increase,
        }
    }

    /// Adopts this flow's share of a coupled rate.
    pub(super) fn set_estimate(&mut self, share: Bitrate) {
        self.set(share.as_bps_f64());
    }

    /// Cuts the estimate because feedback is missing, GCC-D13.
    pub(super) fn back_off(&mut self) {
        self.set(BETA * self.estimate_bps);
    }

    fn increase(&mut self, elapsed: TimeDelta, update: &Update) -> Reason {
        let (grown, reason) = match self.convergence.growth(update.acknowledged) {
            Growth::Multiplicative => (self.grown_multiplicatively(elapsed), Reason::RampUp),
            Growth::Additive => (self.grown_additively(elapsed, update.rtt), Reason::Increase),
        };
        let bound = self.bound(update.acknowledged);
        self.set(grown.min(bound));
        if grown > bound { Reason::ApplicationLimited } else { reason }
    }

    /// Upper bound of growth, because the estimate must not run away from a source that sends less
    /// than it may [GCC §5.5]. GCC-D9: the bound stops growth, but does not cut.
    fn bound(&self, acknowledged: Option<Bitrate>) -> f64 {
        acknowledged.map_or(f64::INFINITY, |acknowledged| {
            (MAX_OVER_ACKNOWLEDGED * acknowledged.as_bps_f64()).max(self.estimate_bps)
        })
    }

    /// Multiplicative increase, `eta * A_hat` [GCC §5.5].
    fn grown_multiplicatively(&self, elapsed: TimeDelta) -> f64 {
        let seconds = elapsed.min(MAX_UPDATE_INTERVAL).as_secs_f64();
        libm::pow(INCREASE_PER_SECOND, seconds) * self.estimate_bps
    }

    /// Additive increase: at most half a packet per response time [GCC §5.5].
    fn grown_additively(&self, elapsed: TimeDelta, rtt: TimeDelta) -> f64 {
        let share = (elapsed / (REACTION_TIME + rtt)).min(1.0);
        let packet = expected_packet_bits(self.estimate_bps);
        // GCC-D10: the draft adds the minimum increase at each update, however frequent updates
        // are.
        self.estimate_bps + share * (PACKETS_PER_RESPONSE * packet).max(MIN_ADDITIVE_BPS)
    }

    /// `beta * R_hat` [GCC §5.5].
    fn decrease(&mut self, entered: bool, acknowledged: Option<Bitrate>) -> Reason {
        match acknowledged {
            Some(acknowledged) => {
                if entered {
                    self.convergence.on_decrease(acknowledged);
                }
                // GCC-D11: over-use never raises the estimate.
                self.set(self.estimate_bps.min(BETA * acknowledged.as_bps_f64()));
            }
            // GCC-D12: without a measurement, cut from the estimate instead, but only once.
            None if entered => self.set(BETA * self.estimate_bps),
            None => {}
        }
        Reason::OverUse
    }

    /// Moves the estimate only as far as the new limits demand.
    pub(super) fn set_limits(&mut self, limits: RateLimits) {
        self.limits = limits;
        self.set(self.estimate_bps);
    }

    fn set(&mut self, bps: f64) {
        let (min, max) = (self.limits.min().as_bps_f64(), self.limits.max().as_bps_f64());
        self.estimate_bps = bps.clamp(min, max);
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// `A_hat`.
    pub(super) fn estimate(&self) -> Bitrate {
        self.limits.clamp(Bitrate::from_bps_f64(self.estimate_bps))
    }
}

/// `expected_packet_size_bits`: a frame split into equal packets of at most 1200 bytes [GCC §5.5].
fn expected_packet_bits(bps: f64) -> f64 {
    let frame = bps / FRAMES_PER_SECOND;
    frame / libm::ceil(frame / MAX_PACKET_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use BandwidthUsage::{Normal, Overuse, Underuse};

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn control(start_kbps: u64) -> RateControl {
        RateControl::new(RateLimits::new(kbps(50), kbps(start_kbps), kbps(10_000)).unwrap())
    }

    fn update(usage: BandwidthUsage, acknowledged_kbps: Option<u64>) -> Update {
        Update { usage, acknowledged: acknowledged_kbps.map(kbps), rtt: RTT }
    }

    fn run(control: &mut RateControl, ms: i64, usage: BandwidthUsage, kbps: u64) -> Reason {
        control.update(Timestamp::from_millis(ms), &update(usage, Some(kbps)))
    }

    // [GCC §5.5]
    #[test]
    fn the_subsystem_starts_in_the_increase_state_at_the_start_bitrate() {
        assert_eq!(control(300).state(), State::Increase);
        assert_eq!(control(300).estimate(), kbps(300));
    }

    // [GCC §5.5]
    #[test]
    fn increase_is_8_percent_a_second_and_an_update_counts_for_one_at_most() {
        let mut control = control(1_000);
        run(&mut control, 0, Normal, 1_000);
        assert_eq!(control.estimate(), kbps(1_000));
        assert_eq!(run(&mut control, 1_000, Normal, 1_000), Reason::RampUp);
        assert_eq!(control.estimate(), kbps(1_080));
        run(&mut control, 61_000, Normal, 1_000);
        assert_eq!(control.estimate(), Bitrate::from_bps(1_166_400));
        for update in 1..=20 {
            run(&mut control, 61_000 + 50 * update, Normal, 1_000);
        }
        assert_eq!(control.estimate(), Bitrate::from_bps(1_259_712), "20 updates make the same");
    }

    // [GCC §5.5]: 900 kbit/s are frames of 30,000 bits in 4 packets of 7500; response time 200 ms.
    #[test]
    fn additive_increase_is_half_a_packet_in_a_response_time() {
        assert_eq!(expected_packet_bits(900e3), 7_500.0);
        assert_eq!(expected_packet_bits(288e3), 9_600.0, "a full packet is not split");
        let mut control = control(900);
        control.convergence.on_decrease(kbps(900));
        run(&mut control, 0, Normal, 900);
        assert_eq!(run(&mut control, 100, Normal, 900), Reason::Increase);
        assert_eq!(control.estimate(), Bitrate::from_bps(900_000 + 1_875));
        let before = control.estimate();
        run(&mut control, 60_100, Normal, 900);
        let grown = control.estimate().saturating_sub(before).as_bps();
        assert_eq!(grown, 3_758, "no more than one response time counts");
    }

    // GCC-D10: as written, 2 s of updates every 5 ms would add 400 times 1000 bit/s.
    #[test]
    fn additive_increase_does_not_depend_on_how_often_feedback_comes() {
        for interval in [5, 50, 100] {
            let mut control = control(50);
            control.convergence.on_decrease(kbps(50));
            for ms in (0..=2_000).step_by(interval) {
                run(&mut control, ms, Normal, 50);
            }
            // At 50 kbit/s half a packet is 833 bits, below the minimum of 1000 bits in 200 ms.
            let grown = control.estimate().as_bps() - 50_000;
            assert_eq!(grown, 10_000, "feedback each {interval} ms");
        }
    }

    // [GCC §5.5]
    #[test]
    fn over_use_cuts_to_0_85_of_the_incoming_bitrate_while_it_lasts() {
        let mut control = control(2_000);
        assert_eq!(run(&mut control, 0, Overuse, 1_000), Reason::OverUse);
        assert_eq!(control.estimate(), kbps(850));
        run(&mut control, 50, Overuse, 600);
        assert_eq!(control.estimate(), kbps(510));
        run(&mut control, 100, Normal, 500);
        assert_eq!((control.state(), control.estimate()), (State::Hold, kbps(510)));
        run(&mut control, 150, Underuse, 500);
        assert_eq!((control.state(), control.estimate()), (State::Hold, kbps(510)));
    }

    // GCC-D11
    #[test]
    fn over_use_never_raises_the_estimate() {
        let mut control = control(500);
        run(&mut control, 0, Overuse, 1_000);
        assert_eq!(control.estimate(), kbps(500));
    }

    // GCC-D12
    #[test]
    fn over_use_without_a_measurement_cuts_the_estimate_once() {
        let mut control = control(1_000);
        for ms in [0, 50, 100] {
            control.update(Timestamp::from_millis(ms), &update(Overuse, None));
        }
        assert_eq!(control.estimate(), kbps(850));
    }

    // [GCC §5.5]
    #[test]
    fn a_limited_source_holds_the_estimate_below_1_5_times_its_bitrate() {
        let mut control = control(1_000);
        let mut last = Reason::Start;
        for second in 0..600 {
            last = run(&mut control, second * 1_000, Normal, 1_000);
        }
        assert_eq!((control.estimate(), last), (kbps(1_500), Reason::ApplicationLimited));
    }

    // GCC-D9: as written, a source that falls from 1000 to 100 kbit/s would lower it to 150.
    #[test]
    fn a_source_that_falls_silent_does_not_pull_the_estimate_down() {
        let mut control = control(1_000);
        run(&mut control, 0, Normal, 1_000);
        run(&mut control, 1_000, Normal, 100);
        assert_eq!(control.estimate(), kbps(1_000));
    }

    // GCC-D18
    #[test]
    fn where_the_loss_based_estimate_leads_its_cause_is_told() {
        let mut control = control(1_000);
        assert_eq!(control.follow(kbps(900), Some(kbps(800))), Reason::Loss);
        assert_eq!(control.follow(kbps(950), Some(kbps(800))), Reason::Increase);
        assert_eq!(control.follow(kbps(1_300), Some(kbps(800))), Reason::ApplicationLimited);
        assert_eq!(control.estimate(), kbps(1_200));
    }

    #[test]
    fn the_estimate_stays_within_the_limits() {
        let limits = RateLimits::new(kbps(400), kbps(500), kbps(600)).unwrap();
        let mut control = RateControl::new(limits);
        for second in 0..100 {
            run(&mut control, second * 1_000, Normal, 5_000);
        }
        assert_eq!(control.estimate(), kbps(600));
        run(&mut control, 100_000, Overuse, 1);
        assert_eq!(control.estimate(), kbps(400));
    }
}
