//! Remote rate control: a state machine turns the detector's signal into the receiver's rate `Ar`.
//!
//! In state Increase, `Ar` grows by the factor `eta`. After over-use it is `alpha` times the
//! receive rate. In state Hold it stays [BARI §remote rate controller]. `eta`, `alpha` and the
//! region around the highest known rate are computed as in [LW2013 §remote_rate_control]. Departs
//! from it in BARI-D3 and BARI-D4.

use crate::delay_signal::{BandwidthUsage, RateState as State};
use weir::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [LW2013 §remote_rate_control].
/// Range of `Ar`.
const MIN_BPS: f64 = 30e3;
const MAX_BPS: f64 = 30e6;
/// `alpha`: factor on the receive rate at over-use; the second near the highest known rate.
const ALPHA: f64 = 0.9;
const NEAR_MAX_ALPHA: f64 = 0.95;
/// Growth per second: `1.005 + B / (1 + exp(b (d response - (c1 var + c2))))`, clamped to a range.
const MIN_ETA: f64 = 1.005;
const MAX_ETA: f64 = 1.3;
const B: f64 = 0.0407;
const SMALL_B: f64 = 0.0025;
const C1: f64 = -6_700.0 / (33.0 * 33.0);
const C2: f64 = 800.0;
const D: f64 = 0.85;
/// Factors on the growth beyond 1: near the highest known rate, and if none is known.
const NEAR_MAX_GROWTH: f64 = 0.5;
const MAX_UNKNOWN_GROWTH: f64 = 3.0;
/// Added to the rate at each step of Increase.
const STEP_BPS: f64 = 1_000.0;
/// Parts of the response time in ms: mean time between updates with its initial value and weight,
/// round-trip time (BARI-D3), and detection time.
const FIRST_PERIOD_MS: f64 = 1_000.0;
const PERIOD_WEIGHT: f64 = 0.1;
const RTT_MS: f64 = 200.0;
const DETECTION_MS: f64 = 300.0;
/// Upper limit of the time between updates, BARI-D4.
const MAX_PERIOD_MS: f64 = 2_000.0;
/// A further cut may follow after `CUT_INTERVAL`, or at once while the rate is above `CUT_AGAIN`
/// times the receive rate.
const CUT_INTERVAL: TimeDelta = TimeDelta::from_millis(200);
const CUT_AGAIN: f64 = 2.05;
/// Average and variance of the highest rate, and the limits of its region in standard deviations.
const MAX_RATE_WEIGHT: f64 = 0.05;
const MIN_NORMALIZED_VARIANCE: f64 = 0.4;
const MAX_NORMALIZED_VARIANCE: f64 = 2.5;
const FORGET_DEVIATIONS: f64 = 3.0;
const ABOVE_DEVIATIONS: f64 = 2.5;
/// `Ar` grows at most to this multiple of the receive rate, unless both rates are low.
const MAX_OVER_RECEIVED: f64 = 1.5;
const LOW_RECEIVED_BPS: f64 = 100e3;
const LOW_RATE_BPS: f64 = 150e3;

/// Position of the receive rate relative to the highest known rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    MaxUnknown,
    NearMax,
    AboveMax,
}

/// Average and spread of the receive rates at over-use, in kbit/s.
#[derive(Clone, Copy, Debug)]
struct HighestRate {
    average: Option<f64>,
    normalized_variance: f64,
}

impl HighestRate {
    const fn new() -> Self {
        Self { average: None, normalized_variance: MIN_NORMALIZED_VARIANCE }
    }

    /// Distance of a rate above the average, in standard deviations; `None` without an average.
    fn deviations_above(&self, bps: f64) -> Option<f64> {
        let average = self.average?;
        Some((bps / 1e3 - average) / libm::sqrt(self.normalized_variance * average.max(1.0)))
    }

    fn on_overuse(&mut self, bps: f64) {
        if self.deviations_above(bps).is_some_and(|above| above < -FORGET_DEVIATIONS) {
            self.average = None;
        }
        let kbps = bps / 1e3;
        let average =
            self.average.map_or(kbps, |old| (1.0 - MAX_RATE_WEIGHT) * old + MAX_RATE_WEIGHT * kbps);
        self.average = Some(average);
        let square = (average - kbps) * (average - kbps) / average.max(1.0);
        self.normalized_variance = ((1.0 - MAX_RATE_WEIGHT) * self.normalized_variance
            + MAX_RATE_WEIGHT * square)
            .clamp(MIN_NORMALIZED_VARIANCE, MAX_NORMALIZED_VARIANCE);
    }
}

/// Inputs of one run of the rate control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub usage: BandwidthUsage,
    /// `R`: the receive rate of the last 500 ms.
    pub received: Bitrate,
    /// Variance of the noise in the arrival times, in ms^2.
    pub noise_variance: f64,
}

/// Runs the rate control and stores `Ar`.
#[derive(Clone, Debug)]
pub(super) struct RemoteRate {
    state: State,
    region: Region,
    highest: HighestRate,
    /// `Ar`; `None` before the first receive rate.
    rate_bps: Option<f64>,
    /// Highest receive rate in Hold: the rate that the path carried while its queue drained.
    held_bps: f64,
    last_change: Timestamp,
    last_update: Option<Timestamp>,
    /// Mean time between updates.
    period_ms: f64,
}

impl RemoteRate {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Hold,
            region: Region::MaxUnknown,
            highest: HighestRate::new(),
            rate_bps: None,
            held_bps: 0.0,
            last_change: Timestamp::ZERO,
            last_update: None,
            period_ms: FIRST_PERIOD_MS,
        }
    }

    /// Runs one update.
    pub(super) fn update(&mut self, now: Timestamp, update: &Update) {
        let received = update.received.as_bps_f64();
        let rate = *self.rate_bps.get_or_insert(received);
        self.count_period(now);
        let was_increasing = self.state == State::Increase;
        self.state = self.state.next(update.usage);
        let mut recovered = false;
        let changed = match self.state {
            State::Hold => {
                self.held_bps = self.held_bps.max(received);
                rate
            }
            State::Increase => {
                if !was_increasing {
                    self.last_change = now;
                }
                let (grown, found) = self.increase(now, rate, update);
                recovered = found;
                grown
            }
            State::Decrease => {
                self.last_change = now;
                self.decrease(rate, received)
            }
        };
        let is_low = received <= LOW_RECEIVED_BPS && changed <= LOW_RATE_BPS;
        let refused = !recovered && !is_low && changed > MAX_OVER_RECEIVED * received;
        if refused {
            self.last_change = now;
        } else {
            self.rate_bps = Some(changed.clamp(MIN_BPS, MAX_BPS));
        }
    }

    fn count_period(&mut self, now: Timestamp) {
        let last = self.last_update.replace(now);
        let period = last.map_or(0.0, |last| (now - last).as_millis_f64());
        // BARI-D4: otherwise a pause of hours would slow growth for minutes.
        let period = period.min(MAX_PERIOD_MS);
        self.period_ms += PERIOD_WEIGHT * (period - self.period_ms);
    }

    /// The grown rate `eta Ar`, or the rate that the path carried in Hold; true for the latter.
    fn increase(&mut self, now: Timestamp, rate: f64, update: &Update) -> (f64, bool) {
        match self.highest.deviations_above(update.received.as_bps_f64()) {
            Some(above) if above > FORGET_DEVIATIONS => {
                self.region = Region::MaxUnknown;
                self.highest.average = None;
            }
            Some(above) if above > ABOVE_DEVIATIONS => self.region = Region::AboveMax,
            _ => {}
        }
        let grown = self.eta(now - self.last_change, update.noise_variance) * rate + STEP_BPS;
        self.last_change = now;
        let carried = self.alpha() * core::mem::take(&mut self.held_bps);
        if carried <= grown {
            return (grown, false);
        }
        self.highest.average = Some(carried / 1e3);
        self.region = Region::NearMax;
        (carried, true)
    }

    /// Growth factor over the time since the last change.
    fn eta(&self, elapsed: TimeDelta, noise_variance: f64) -> f64 {
        let response_ms = self.period_ms + RTT_MS + DETECTION_MS;
        let exponent = SMALL_B * (D * response_ms - (C1 * noise_variance + C2));
        let eta = (MIN_ETA + B / (1.0 + libm::exp(exponent))).clamp(MIN_ETA, MAX_ETA);
        let share = match self.region {
            Region::NearMax => NEAR_MAX_GROWTH,
            Region::AboveMax => 1.0,
            Region::MaxUnknown => MAX_UNKNOWN_GROWTH,
        };
        1.0 + share * (libm::pow(eta, elapsed.as_secs_f64()) - 1.0)
    }

    /// `alpha R`, but at most the present rate.
    fn decrease(&mut self, rate: f64, received: f64) -> f64 {
        if received < MIN_BPS {
            return MIN_BPS;
        }
        let mut cut = self.alpha() * received;
        if cut > rate {
            // The source did not use the rate: cut from the highest known rate instead.
            let highest = self.highest.average.filter(|_| self.region != Region::MaxUnknown);
            cut = highest.map_or(cut, |kbps| self.alpha() * kbps * 1e3).min(rate);
        }
        self.region = Region::NearMax;
        self.highest.on_overuse(received);
        cut
    }

    const fn alpha(&self) -> f64 {
        match self.region {
            Region::NearMax => NEAR_MAX_ALPHA,
            Region::AboveMax | Region::MaxUnknown => ALPHA,
        }
    }

    /// True if over-use that lasts may cut again.
    pub(super) fn may_cut_again(&self, now: Timestamp, received: Bitrate) -> bool {
        let far = |rate: f64| rate > CUT_AGAIN * received.as_bps_f64();
        now - self.last_change >= CUT_INTERVAL || self.rate_bps.is_some_and(far)
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// `Ar`.
    pub(super) fn rate(&self) -> Option<Bitrate> {
        self.rate_bps.map(Bitrate::from_bps_f64)
    }
}

#[cfg(test)]
mod tests {
    use super::BandwidthUsage::{Normal, Overuse, Underuse};
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn run(control: &mut RemoteRate, ms: i64, usage: BandwidthUsage, received_kbps: u64) -> u64 {
        let update = Update { usage, received: kbps(received_kbps), noise_variance: 1.0 };
        control.update(Timestamp::from_millis(ms), &update);
        control.rate().unwrap().as_bps()
    }

    /// A control in state Increase after a first update at this rate.
    fn started(rate_kbps: u64) -> RemoteRate {
        let mut control = RemoteRate::new();
        run(&mut control, 0, Normal, rate_kbps);
        control
    }

    #[test]
    fn the_first_receive_rate_is_where_it_starts() {
        let mut control = RemoteRate::new();
        assert_eq!(control.rate(), None);
        assert_eq!(run(&mut control, 0, Normal, 500), 501_000);
    }

    // [LW2013 §remote_rate_control]: response 1400 to 1500 ms, eta 1.0144, tripled while the
    // maximum is unknown.
    #[test]
    fn an_unknown_maximum_lets_it_grow_by_4_percent_a_second() {
        let mut control = started(500);
        let mut last = 501_000;
        for second in 1..=5 {
            let rate = run(&mut control, second * 1_000, Normal, 500);
            let growth = (rate - 1_000) as f64 / last as f64;
            assert!((1.042..1.048).contains(&growth), "{growth}");
            last = rate;
        }
    }

    // [BARI §remote rate controller]: alpha is within 0.8 and 0.95.
    #[test]
    fn over_use_cuts_to_0_9_of_the_receive_rate_and_0_95_near_the_maximum() {
        let mut control = started(1_000);
        assert_eq!(run(&mut control, 500, Overuse, 1_000), 900_000);
        assert_eq!(control.region, Region::NearMax);
        assert_eq!(run(&mut control, 1_000, Overuse, 900), 855_000);
        assert_eq!(control.state(), State::Decrease);
        assert_eq!(run(&mut control, 2_000, Normal, 850), 855_000, "held");
        assert_eq!(control.state(), State::Hold);
    }

    #[test]
    fn over_use_never_raises_the_rate() {
        let mut control = started(500);
        assert_eq!(run(&mut control, 500, Overuse, 2_000), 501_000);
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn near_the_maximum_it_grows_by_less_than_1_percent_a_second() {
        let mut control = started(1_000);
        run(&mut control, 500, Overuse, 1_000);
        run(&mut control, 1_500, Normal, 900);
        let before = run(&mut control, 2_500, Normal, 900);
        let rate = run(&mut control, 3_500, Normal, 900);
        let growth = (rate - 1_000) as f64 / before as f64;
        assert!((1.006..1.009).contains(&growth), "{growth}");
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn what_the_path_carried_while_it_drained_is_taken_up_again() {
        let mut control = started(1_000);
        run(&mut control, 500, Overuse, 600);
        assert_eq!(control.rate(), Some(kbps(540)));
        run(&mut control, 1_500, Underuse, 1_000);
        assert_eq!(run(&mut control, 2_500, Normal, 540), 950_000);
        assert_eq!(control.highest.average, Some(950.0));
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn the_highest_rate_and_its_variance_are_averages_of_weight_a_twentieth() {
        let mut highest = HighestRate::new();
        assert_eq!(highest.deviations_above(1e6), None);
        highest.on_overuse(1_000e3);
        // sqrt(0.4 * 1000) kbit/s are one deviation.
        assert!((highest.deviations_above(1_050e3).unwrap() - 2.5).abs() < 1e-12);
        highest.on_overuse(1_100e3);
        assert_eq!(highest.average, Some(1_005.0));
        let variance = 0.95 * 0.4 + 0.05 * 95.0 * 95.0 / 1_005.0;
        assert!((highest.normalized_variance - variance).abs() < 1e-12);
        highest.on_overuse(3_000e3);
        assert_eq!(highest.normalized_variance, 2.5);
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn the_rate_stays_between_30_kbps_and_30_mbps() {
        let mut control = started(40_000);
        assert_eq!(control.rate(), Some(kbps(30_000)));
        assert_eq!(run(&mut control, 500, Overuse, 40), 36_000);
        assert_eq!(run(&mut control, 1_000, Overuse, 20), 30_000);
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn a_rate_three_deviations_below_the_highest_one_takes_its_place() {
        let average_after = |kbps: f64| {
            let mut highest = HighestRate::new();
            highest.on_overuse(1_000e3);
            highest.on_overuse(kbps * 1e3);
            highest.average.unwrap()
        };
        assert_eq!(average_after(930.0), 930.0);
        assert_eq!(average_after(950.0), 0.95 * 1_000.0 + 0.05 * 950.0);
    }

    // [LW2013 §remote_rate_control]: 55 kbit/s are 2.75 deviations.
    #[test]
    fn a_receive_rate_somewhat_above_the_maximum_is_above_it() {
        let mut control = started(1_000);
        run(&mut control, 500, Overuse, 1_000);
        run(&mut control, 1_500, Normal, 900);
        run(&mut control, 2_500, Normal, 1_050);
        assert_eq!(control.region, Region::NearMax);
        run(&mut control, 3_500, Normal, 1_055);
        assert_eq!(control.region, Region::AboveMax);
    }

    // [LW2013 §remote_rate_control]: as over 2.75 deviations, with the exponent 0.0025
    // (0.85 * 1500 - 492.4).
    #[test]
    fn noise_and_a_slow_response_make_the_growth_slower() {
        let mut control = RemoteRate { region: Region::AboveMax, ..RemoteRate::new() };
        let second = TimeDelta::from_secs(1);
        assert!((control.eta(second, 50.0) - 1.010_04).abs() < 1e-5);
        assert!((control.eta(second, 1.0) - 1.014_40).abs() < 1e-5);
        control.period_ms = 2_000.0;
        assert!((control.eta(second, 1.0) - 1.006_40).abs() < 1e-5);
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn the_time_between_updates_is_an_average_with_a_weight_of_a_tenth() {
        let mut control = started(500);
        assert_eq!(control.period_ms, 900.0, "the first one follows none");
        run(&mut control, 500, Normal, 500);
        assert_eq!(control.period_ms, 860.0);
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn over_use_is_answered_again_after_200_ms_or_at_once_far_above_arrivals() {
        let mut control = started(1_000);
        run(&mut control, 500, Overuse, 1_000);
        let may_cut =
            |ms, received| control.may_cut_again(Timestamp::from_millis(ms), kbps(received));
        assert!(!may_cut(699, 800));
        assert!(may_cut(700, 800));
        assert!(!may_cut(501, 440), "900 are 2.05 times 439");
        assert!(may_cut(501, 439));
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn a_rate_that_was_not_used_is_cut_from_the_highest_one_known() {
        let mut control = started(1_000);
        run(&mut control, 500, Overuse, 1_000);
        control.rate_bps = Some(980e3);
        assert_eq!(run(&mut control, 1_500, Overuse, 1_040), 950_000, "0.95 * 1040 would be more");
    }

    // [LW2013 §remote_rate_control]: 5 deviations above the average.
    #[test]
    fn a_receive_rate_far_above_the_maximum_makes_it_unknown_again() {
        let mut control = started(1_000);
        run(&mut control, 500, Overuse, 1_000);
        run(&mut control, 1_500, Normal, 900);
        run(&mut control, 2_500, Normal, 1_100);
        assert_eq!(control.region, Region::MaxUnknown);
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn a_source_that_sends_less_does_not_let_it_grow_without_bound() {
        let mut control = started(400);
        for second in 1..200 {
            run(&mut control, second * 1_000, Normal, 400);
        }
        assert!((500_000..=600_000).contains(&control.rate().unwrap().as_bps()));
    }

    // [LW2013 §remote_rate_control]
    #[test]
    fn a_low_rate_may_grow_to_150_kbps_whatever_arrives() {
        let mut control = started(60);
        for second in 1..200 {
            run(&mut control, second * 1_000, Normal, 60);
        }
        assert!((140_000..=150_000).contains(&control.rate().unwrap().as_bps()));
    }

    // BARI-D4: as written, a tenth of an hour would enter the mean period.
    #[test]
    fn an_hour_without_updates_does_not_slow_the_growth() {
        let mut control = started(500);
        run(&mut control, 3_600_000, Normal, 500);
        let before = control.rate().unwrap().as_bps();
        let rate = run(&mut control, 3_601_000, Normal, 500);
        let growth = (rate - 1_000) as f64 / before as f64;
        assert!(growth > 1.035, "{growth}");
        // 900 ms, then 2000 and 1000 ms with a weight of a tenth each.
        assert!((control.period_ms - 1_009.0).abs() < 1e-9);
    }
}
