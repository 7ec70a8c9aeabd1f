//! Reference rate calculator: updates `r_ref` from the congestion signal [NADA §4.3].

use super::congestion_signal::CongestionSignal;
use super::mode::Mode;
use super::parameters::Parameters;
use crate::controller::{RateLimits, Reason};
use crate::controllers::rare_reports::{LASTED, RareSteps, beyond};
use crate::units::{Bitrate, TimeDelta, Timestamp};

/// NADA-D2: an update is due after this share of `DELTA`. Reports every 50 ms then stay aligned
/// with the updates.
const UPDATE_AFTER: f64 = 0.75;
/// NADA-D2: upper bound of `delta` in an update. The standard's stability analysis needs such a
/// bound.
pub(super) const DELTA_MAX: TimeDelta = TimeDelta::from_millis(250);
/// NADA-D14: `TAU` is at least this many intervals of reports. Up to [`DELTA_MAX`] apart it is the
/// standard's.
const TAU_INTERVALS: f64 = 2.0;
/// NADA-D14: below the rate of the full path, the ramp-up's gain grows by as much of itself as
/// reports are farther apart than [`DELTA_MAX`], in this unit. So it takes seconds at any interval.
const FIRST_RAMP: TimeDelta = TimeDelta::from_secs(1);
/// NADA-D20: the signal at which a flow is in equilibrium, whatever `RMAX` is. It is half of what
/// the signal may be (NADA-D6): above that, no signal would lower the rate.
const EQUILIBRIUM_MAX: TimeDelta = TimeDelta::from_millis(250);
/// NADA-D9: factor applied to the rate when feedback is missing.
const SILENCE_FACTOR: f64 = 0.5;

/// Input of an update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// Rate adaptation mode `rmode`.
    pub(super) mode: Mode,
    /// `x_curr`, as its terms.
    pub(super) signal: CongestionSignal,
    /// Receiving rate `r_recv`.
    pub(super) receive_rate: Bitrate,
    /// Round-trip time `rtt`.
    pub(super) rtt: TimeDelta,
    /// Usual time between two reports.
    pub(super) report_interval: TimeDelta,
    /// Queuing delay `d_queue`.
    pub(super) queuing_delay: TimeDelta,
}

impl Input {
    /// By how much reports are farther apart than the standard's analysis allows; zero otherwise.
    fn rare_by(&self) -> TimeDelta {
        beyond(self.report_interval, DELTA_MAX)
    }

    /// Whether the effect of a rate is known later than the standard's gains are made for.
    fn is_late(&self, p: &Parameters) -> bool {
        self.rare_by() > TimeDelta::ZERO || self.rtt > p.tau
    }
}

/// `r_ref` and the state that its update needs.
#[derive(Clone, Debug)]
pub(super) struct ReferenceRate {
    limits: RateLimits,
    /// `r_ref`, always within the limits.
    rate: Bitrate,
    /// Congestion signal at the previous update, `x_prev`.
    previous_signal: TimeDelta,
    /// Time of the previous update, `t_last`.
    updated: Option<Timestamp>,
    steps: RareSteps,
}

impl ReferenceRate {
    pub(super) fn new(limits: RateLimits) -> Self {
        // NADA-D1: starts at the start bitrate, not at `RMIN`.
        let rate = limits.start();
        Self {
            limits,
            rate,
            previous_signal: TimeDelta::ZERO,
            updated: None,
            steps: RareSteps::default(),
        }
    }

    /// The reference rate `r_ref`.
    pub(super) fn rate(&self) -> Bitrate {
        self.rate
    }

    /// Moves the rate only as far as the new limits demand.
    pub(super) fn set_limits(&mut self, limits: RateLimits) {
        self.limits = limits;
        self.rate = limits.clamp(self.rate);
    }

    /// Whether enough of `DELTA` has passed since the last update (NADA-D2).
    pub(super) fn is_due(&self, now: Timestamp, p: &Parameters) -> bool {
        self.updated.is_none_or(|updated| now - updated >= p.delta * UPDATE_AFTER)
    }

    /// Updates `r_ref` and returns the reason for the change.
    pub(super) fn update(&mut self, now: Timestamp, input: &Input, p: &Parameters) -> Reason {
        let most = DELTA_MAX.max(input.report_interval);
        let delta = self.updated.map_or(p.delta, |updated| (now - updated).min(most));
        self.note_late(now, input, p);
        let (rate, reason) = match input.mode {
            Mode::RampUp => (self.ramp_up(input, p), Reason::RampUp),
            Mode::Gradual => self.gradual(delta, input, p),
        };
        self.rate = self.limits.clamp(rate); // [NADA §4.3]
        self.previous_signal = input.signal.total();
        self.updated = Some(now);
        reason
    }

    /// Accelerated ramp-up [NADA §4.3]: exceeds the receiving rate by so much that the queue stays
    /// below `QBOUND`.
    fn ramp_up(&self, input: &Input, p: &Parameters) -> Bitrate {
        let feedback_time = input.rtt + p.delta + p.dfilt;
        let gamma = p.gamma_max.min(p.qbound / feedback_time);
        if !input.is_late(p) {
            return self.rate.max(input.receive_rate * (1.0 + gamma));
        }
        // NADA-D14: the queue grows until the next report. Over a round trip above `TAU`, a rate
        // grows in the same time as over one of `TAU`: by larger steps, which are rarer.
        let rare_by = input.rare_by();
        let slow = (feedback_time / (p.tau + p.delta + p.dfilt)).max(1.0);
        let largest = gamma * (1.0 + rare_by / FIRST_RAMP) * slow * slow;
        let largest = largest.min(p.gamma_max);
        let from = if input.rtt > p.tau { input.receive_rate } else { self.rate };
        let most = self.steps.most(from, p.qbound, feedback_time + rare_by, largest);
        self.rate.max(most.min(input.receive_rate * (1.0 + largest)))
    }

    /// Gradual update [NADA §4.3]: reacts to the signal's offset from its equilibrium and to its
    /// change.
    fn gradual(&self, delta: TimeDelta, input: &Input, p: &Parameters) -> (Bitrate, Reason) {
        let signal = input.signal.total();
        let offset = signal - self.equilibrium(p); // x_offset
        let change = signal - self.previous_signal; // x_diff
        let tau = p.tau.max(input.report_interval * TAU_INTERVALS).max(input.rtt);
        let decrease = p.kappa * (delta / tau) * (offset / tau) + p.kappa * p.eta * (change / tau);
        let rate = (self.rate * (1.0 - decrease)).min(self.draining_rate(input, p));
        if rate < self.rate {
            return (rate, input.signal.main_cause());
        }
        // NADA-D8: while the source sends less than the target, feedback does not show that the
        // path can carry more. Growth is limited to what the receiving rate supports.
        let proven = self.rate.max(input.receive_rate * (1.0 + p.gamma_max));
        if rate > proven { (proven, Reason::ApplicationLimited) } else { (rate, Reason::Increase) }
    }

    /// NADA-D14: remembers what arrived on a full path, and which steps were calm.
    fn note_late(&mut self, now: Timestamp, input: &Input, p: &Parameters) {
        match input.mode {
            Mode::RampUp => {
                let step_time = input.rtt.max(input.report_interval * LASTED);
                self.steps.on_calm(now, self.rate, step_time);
            }
            Mode::Gradual if self.too_long(input, p) > TimeDelta::ZERO => {
                self.steps.on_full(now, input.receive_rate);
            }
            Mode::Gradual => {}
        }
    }

    /// How far the queuing delay is above that of the equilibrium.
    fn too_long(&self, input: &Input, p: &Parameters) -> TimeDelta {
        input.queuing_delay - self.equilibrium(p)
    }

    /// The signal at which the rate stays.
    fn equilibrium(&self, p: &Parameters) -> TimeDelta {
        (p.xref * (p.prio * (self.limits.max() / self.rate))).min(EQUILIBRIUM_MAX)
    }

    /// NADA-D14: the rate at which the queue drains to its equilibrium until this is reported, if
    /// that is late. What arrived while there was a queue is what the path carries.
    fn draining_rate(&self, input: &Input, p: &Parameters) -> Bitrate {
        let too_long = self.too_long(input, p);
        if !input.is_late(p) || too_long <= TimeDelta::ZERO {
            return Bitrate::MAX;
        }
        let feedback_time = input.rtt + DELTA_MAX + p.dfilt + input.rare_by();
        input.receive_rate * (1.0 - too_long / feedback_time).max(SILENCE_FACTOR)
    }

    /// Sets `r_ref` to this flow's share of a coupled rate [RFC8699 §6.1].
    pub(super) fn set_rate(&mut self, rate: Bitrate) {
        self.rate = self.limits.clamp(rate);
    }

    /// NADA-D18: the path is longer than before, when this was the rate. Its delay was no queue.
    pub(super) fn on_new_path(&mut self, rate: Bitrate) {
        self.rate = self.limits.clamp(rate);
        self.previous_signal = TimeDelta::ZERO;
    }

    /// NADA-D9: lowers `r_ref` because feedback is missing.
    pub(super) fn on_silence(&mut self) {
        self.rate = self.limits.clamp(self.rate * SILENCE_FACTOR);
    }
}

#[cfg(test)]
mod tests {
    use super::super::congestion_signal::Measurements;
    use super::*;

    const P: Parameters = Parameters::DEFAULT;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }
    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }
    fn limits(min: u64, start: u64, max: u64) -> RateLimits {
        RateLimits::new(kbps(min), kbps(start), kbps(max)).unwrap()
    }
    fn delayed(queuing_delay: TimeDelta) -> CongestionSignal {
        let measured =
            Measurements { queuing_delay, warping_share: 0.0, loss_ratio: 0.0, marking_ratio: 0.0 };
        CongestionSignal::new(&measured, &P)
    }
    fn gradual(signal_ms: i64, receive_kbps: u64) -> Input {
        Input {
            mode: Mode::Gradual,
            signal: delayed(ms(signal_ms)),
            receive_rate: kbps(receive_kbps),
            rtt: ms(100),
            report_interval: ms(100),
            queuing_delay: ms(signal_ms),
        }
    }
    fn ramp_up(rtt_ms: i64, receive_kbps: u64) -> Input {
        Input { mode: Mode::RampUp, rtt: ms(rtt_ms), ..gradual(0, receive_kbps) }
    }
    /// Applies updates every 100 ms and returns the last reason.
    fn run(rate: &mut ReferenceRate, inputs: &[Input]) -> Reason {
        let start = rate.updated.unwrap_or(Timestamp::ZERO);
        let mut reason = Reason::Start;
        for (step, input) in (1..).zip(inputs) {
            reason = rate.update(start + ms(100) * step, input, &P);
        }
        reason
    }

    // NADA-D1
    #[test]
    fn it_starts_at_the_start_bitrate() {
        assert_eq!(ReferenceRate::new(limits(150, 300, 1500)).rate(), kbps(300));
    }

    // [NADA §4.3]: 50 / (100 + 100 + 120) = 0.15625.
    #[test]
    fn ramp_up_at_100_ms_sets_15_6_percent_above_the_receiving_rate() {
        let mut rate = ReferenceRate::new(limits(150, 300, 1500));
        assert_eq!(run(&mut rate, &[ramp_up(100, 640)]), Reason::RampUp);
        assert_eq!(rate.rate(), kbps(740));
    }

    // [NADA §4.3]
    #[test]
    fn ramp_up_never_lowers_the_rate() {
        let mut rate = ReferenceRate::new(limits(150, 900, 1500));
        run(&mut rate, &[ramp_up(100, 640)]);
        assert_eq!(rate.rate(), kbps(900));
    }

    // [NADA §4.3]: with the default DELTA and DFILT, gamma is below GAMMA_MAX even at rtt = 0.
    #[test]
    fn the_ramp_up_gain_is_bounded_by_gamma_max() {
        let mut rate = ReferenceRate::new(limits(150, 300, 1500));
        run(&mut rate, &[ramp_up(0, 440)]);
        assert_eq!(rate.rate(), kbps(540), "50 / 220");
        let quick = Parameters { delta: ms(10), dfilt: ms(10), ..P };
        rate.update(Timestamp::from_secs(9), &ramp_up(0, 440), &quick);
        assert_eq!(rate.rate(), kbps(660), "GAMMA_MAX");
    }

    // [NADA §4.3]: x_curr = PRIO * XREF * RMAX / r_ref, for weights 1 and 2.
    #[test]
    fn at_equilibrium_the_rate_stands_still() {
        for (prio, signal_ms) in [(1.0, 20), (2.0, 40)] {
            let weighted = Parameters { prio, ..P };
            let mut rate = ReferenceRate::new(limits(150, 750, 1500));
            rate.previous_signal = ms(signal_ms);
            rate.update(Timestamp::ZERO, &gradual(signal_ms, 750), &weighted);
            assert_eq!(rate.rate(), kbps(750));
        }
    }

    // NADA-D20: with RMAX 50 times the rate and more, no signal lowered it.
    #[test]
    fn a_full_path_lowers_the_rate_however_far_below_the_maximum() {
        for max in [1_500, 50_000, 1_000_000, 100_000_000] {
            let mut rate = ReferenceRate::new(limits(50, 1_000, max));
            run(&mut rate, &[gradual(500, 200); 50]);
            assert!(rate.rate() < kbps(200), "{max}: {}", rate.rate());
        }
    }

    // [NADA §4.3]: 0.5 * (100/500) * (25 - 10*1500/1000)/500 + 0.5 * 2 * (25 - 15)/500 = 0.022.
    #[test]
    fn the_gradual_update_adds_a_tenth_of_the_offset_to_the_change() {
        let mut rate = ReferenceRate::new(limits(150, 1000, 1500));
        rate.previous_signal = ms(15);
        assert_eq!(run(&mut rate, &[gradual(25, 1000)]), Reason::QueuingDelay);
        assert_eq!(rate.rate(), kbps(978));
    }

    // [NADA §4.3]: 0.5 * (100/500) * (0 - 15)/500 = -0.003.
    #[test]
    fn a_signal_below_equilibrium_raises_the_rate() {
        let mut rate = ReferenceRate::new(limits(150, 1000, 1500));
        assert_eq!(run(&mut rate, &[gradual(0, 1000)]), Reason::Increase);
        assert_eq!(rate.rate(), kbps(1003));
    }

    // [NADA §4.3], NADA-D6
    #[test]
    fn the_largest_swing_of_the_signal_ends_at_the_limits() {
        let mut rate = ReferenceRate::new(limits(150, 1000, 1500));
        run(&mut rate, &[gradual(500, 1000)]);
        assert_eq!(rate.rate(), kbps(150));
        run(&mut rate, &[gradual(0, 9000)]);
        assert_eq!(rate.rate(), kbps(150) * (1.0 + 1.0 + 0.02), "at most about a doubling");
    }

    // NADA-D2
    #[test]
    fn an_update_is_due_75_ms_after_the_last() {
        let mut rate = ReferenceRate::new(limits(150, 300, 1500));
        assert!(rate.is_due(Timestamp::ZERO, &P));
        run(&mut rate, &[ramp_up(100, 300)]);
        assert!(!rate.is_due(Timestamp::from_millis(174), &P));
        assert!(rate.is_due(Timestamp::from_millis(175), &P));
    }

    // NADA-D2
    #[test]
    fn a_gap_of_an_hour_counts_as_250_ms() {
        let after = |gap| {
            let mut rate = ReferenceRate::new(limits(150, 1000, 1500));
            run(&mut rate, &[gradual(115, 1000)]);
            rate.update(rate.updated.unwrap() + gap, &gradual(115, 1000), &P);
            rate.rate()
        };
        // 750 kbit/s * (1 - 0.5 * (250/500) * (115 - 20)/500).
        assert_eq!(after(TimeDelta::from_secs(3600)), Bitrate::from_bps(714_375));
        assert_eq!(after(ms(250)), Bitrate::from_bps(714_375));
        assert_eq!(after(ms(100)), Bitrate::from_bps(735_750));
    }

    // NADA-D8
    #[test]
    fn gradual_growth_ends_at_one_and_a_half_times_what_arrives() {
        let mut rate = ReferenceRate::new(limits(150, 149 + 1, 1500));
        let reason = run(&mut rate, &[gradual(0, 120); 1000]);
        assert_eq!((rate.rate(), reason), (kbps(180), Reason::ApplicationLimited));
    }

    // NADA-D9
    #[test]
    fn a_silence_halves_the_rate_down_to_the_minimum() {
        let mut rate = ReferenceRate::new(limits(150, 400, 1500));
        rate.on_silence();
        assert_eq!(rate.rate(), kbps(200));
        rate.on_silence();
        assert_eq!(rate.rate(), kbps(150));
    }

    /// As the input, with reports each 2 s.
    fn rare(input: Input) -> Input {
        Input { report_interval: ms(2_000), ..input }
    }

    // NADA-D14: TAU is 4 s, delta 2 s: 0.5 * (2/4) * (25 - 15)/4000 + 0.5 * 2 * (25 - 15)/4000.
    #[test]
    fn where_reports_are_rare_the_gains_are_those_of_twice_their_interval() {
        let mut rate = ReferenceRate::new(limits(150, 1000, 1500));
        rate.previous_signal = ms(15);
        rate.updated = Some(Timestamp::ZERO);
        rate.update(Timestamp::from_secs(2), &rare(gradual(25, 2000)), &P);
        assert_eq!(rate.rate(), Bitrate::from_bps(996_875));
    }

    // NADA-D14: 300 ms above 15 ms must drain in 100 + 250 + 120 + 1750 ms.
    #[test]
    fn where_reports_are_rare_a_queue_drains_until_the_next_one() {
        let mut rate = ReferenceRate::new(limits(150, 1000, 1500));
        rate.update(Timestamp::from_secs(2), &rare(gradual(315, 1000)), &P);
        assert_eq!(rate.rate(), Bitrate::from_bps(864_865));
    }

    // NADA-D14: 50 / 1220 * (1220 / 720)^2 = 0.1177, in place of 0.041.
    #[test]
    fn over_a_round_trip_of_a_second_the_ramp_up_takes_the_time_of_half_a_second() {
        let mut rate = ReferenceRate::new(limits(150, 300, 9000));
        run(&mut rate, &[ramp_up(1_000, 1_000)]);
        assert_eq!(rate.rate().as_bps() / 1_000, 1_117);
        let mut rate = ReferenceRate::new(limits(150, 300, 9000));
        run(&mut rate, &[ramp_up(500, 1_000)]);
        assert_eq!(rate.rate().as_bps() / 1_000, 1_069, "TAU: as the standard has it");
    }

    // NADA-D14: 50 / (100 + 100 + 120 + 1750) after a queue, and then twice as much.
    #[test]
    fn where_reports_are_rare_the_ramp_up_goes_on_by_small_steps() {
        let mut rate = ReferenceRate::new(limits(150, 1000, 9000));
        rate.update(Timestamp::from_secs(2), &rare(gradual(315, 1000)), &P);
        let mut rates = [0; 3];
        for (step, kbps) in rates.iter_mut().enumerate() {
            rate.update(Timestamp::from_secs(4 + 2 * step as i64), &rare(ramp_up(100, 1000)), &P);
            *kbps = rate.rate().as_bps() / 1_000;
        }
        assert_eq!(rates, [1_024, 1_073, 1_177]);
    }
}
