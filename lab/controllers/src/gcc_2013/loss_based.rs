//! Loss-based control at the sender: the rate `As` from the loss ratio
//! [BARI §sender-side control, equation 1]. Departs from it in BARI-D5.

use alloc::collections::VecDeque;

use super::tfrc::tcp_friendly_rate;
use weir::controller::RateLimits;
use weir::feedback::LossCounts;
use weir::units::{Bitrate, TimeDelta, Timestamp};

// Parameters [BARI §sender-side control, equation 1].
/// The rate is cut at a loss ratio above this.
const HIGH_LOSS: f64 = 0.10;
/// The rate grows at a loss ratio below this.
const LOW_LOSS: f64 = 0.02;
/// A cut takes this share of the loss ratio.
const CUT: f64 = 0.5;
/// Constant of both increase rules, in bit/s.
const STEP_BPS: f64 = 1_000.0;
/// Factor of [`IncreaseRule::EachReport`].
const EACH_REPORT: f64 = 1.05;
/// Factor of [`IncreaseRule::LastSecond`], and the time over which it takes the lowest rate
/// [LW2013 §send_side_bandwidth_estimation].
const LAST_SECOND: f64 = 1.08;
const LOOK_BACK: TimeDelta = TimeDelta::from_secs(1);
/// Minimum number of packets for a loss ratio [LW2013 §send_side_bandwidth_estimation].
const MIN_PACKETS: u64 = 20;
/// Minimum time between two updates from per-packet feedback, BARI-D5.
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// Growth of `As` after a report without loss: two rules were published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncreaseRule {
    /// `1.05 (As + 1 kbit/s)` at each report [BARI §sender-side control, equation 1].
    ///
    /// [BARI §sender-side control, equation 1]: https://doi.org/10.1145/2491172.2491182
    #[default]
    EachReport,
    /// 1.08 times the lowest rate of the last second, plus 1 kbit/s
    /// [LW2013 §send_side_bandwidth_estimation].
    ///
    /// [LW2013 §send_side_bandwidth_estimation]: https://webrtc.googlesource.com/src
    LastSecond,
}

/// Runs the loss-based control and stores `As`.
#[derive(Clone, Debug)]
pub(super) struct LossBased {
    limits: RateLimits,
    rule: IncreaseRule,
    /// `As`, within the limits and not above `ceiling_bps`.
    rate_bps: f64,
    /// `Ar`.
    ceiling_bps: f64,
    /// Candidates for the lowest rate of the last second: increasing in both time and rate.
    recent: VecDeque<(Timestamp, f64)>,
    /// Start of the interval that is being counted.
    interval_start: Option<Timestamp>,
    counts: LossCounts,
    /// `f` of the last interval.
    loss_ratio: f64,
    /// `X` at the last cut.
    floor: Bitrate,
}

impl LossBased {
    pub(super) fn new(limits: RateLimits, rule: IncreaseRule) -> Self {
        Self {
            limits,
            rule,
            rate_bps: limits.start().as_bps_f64(),
            ceiling_bps: f64::INFINITY,
            recent: VecDeque::new(),
            interval_start: None,
            counts: LossCounts::default(),
            loss_ratio: 0.0,
            floor: Bitrate::ZERO,
        }
    }

    /// Takes the counts of a report. `each_packet` is true for per-packet feedback, false for a
    /// receiver report.
    pub(super) fn on_counts(
        &mut self,
        now: Timestamp,
        counts: LossCounts,
        each_packet: bool,
        rtt: Option<TimeDelta>,
    ) {
        self.counts.received += counts.received;
        self.counts.lost += counts.lost;
        self.counts.recovered += counts.recovered;
        let start = *self.interval_start.get_or_insert(now);
        let expected = self.counts.received + self.counts.lost;
        // BARI-D5: the rules assume about one report per second.
        if expected < MIN_PACKETS || each_packet && now - start < INTERVAL {
            return;
        }
        let lost = self.counts.lost.saturating_sub(self.counts.recovered);
        self.loss_ratio = lost as f64 / expected as f64;
        self.counts = LossCounts::default();
        self.interval_start = Some(now);
        self.update(now, rtt);
    }

    /// The three cases of [BARI §sender-side control, equation 1].
    fn update(&mut self, now: Timestamp, rtt: Option<TimeDelta>) {
        if self.loss_ratio > HIGH_LOSS {
            self.floor = tcp_friendly_rate(self.loss_ratio, rtt);
            let cut = self.rate_bps * (1.0 - CUT * self.loss_ratio);
            self.set(now, cut.max(self.floor.as_bps_f64()));
        } else if self.loss_ratio < LOW_LOSS {
            let grown = match self.rule {
                IncreaseRule::EachReport => EACH_REPORT * (self.rate_bps + STEP_BPS),
                IncreaseRule::LastSecond => {
                    LAST_SECOND * self.lowest_of_last_second(now) + STEP_BPS
                }
            };
            self.set(now, grown);
        }
    }

    fn lowest_of_last_second(&mut self, now: Timestamp) -> f64 {
        while self.recent.front().is_some_and(|&(since, _)| now - since > LOOK_BACK) {
            self.recent.pop_front();
        }
        self.recent.front().map_or(self.rate_bps, |&(_, lowest)| lowest.min(self.rate_bps))
    }

    /// Sets the receiver's rate: `As` is at most `Ar` [BARI §sender-side control].
    pub(super) fn set_ceiling(&mut self, now: Timestamp, ceiling: Option<Bitrate>) {
        self.ceiling_bps = ceiling.map_or(f64::INFINITY, Bitrate::as_bps_f64);
        self.set(now, self.rate_bps);
    }

    /// Moves the rate only as far as the new limits demand.
    pub(super) fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.limits = limits;
        self.set(now, self.rate_bps);
    }

    /// Adopts this flow's share of a coupled rate.
    pub(super) fn set_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.set(now, share.as_bps_f64());
    }

    /// Halves the rate because feedback is missing, BARI-D6.
    pub(super) fn halve(&mut self, now: Timestamp) {
        self.set(now, 0.5 * self.rate_bps);
    }

    fn set(&mut self, now: Timestamp, bps: f64) {
        let (min, max) = (self.limits.min().as_bps_f64(), self.limits.max().as_bps_f64());
        self.rate_bps = bps.min(self.ceiling_bps).clamp(min, max);
        if self.rule == IncreaseRule::LastSecond {
            self.lowest_of_last_second(now);
            while self.recent.back().is_some_and(|&(_, rate)| rate >= self.rate_bps) {
                self.recent.pop_back();
            }
            self.recent.push_back((now, self.rate_bps));
        }
    }

    /// `min(As, Ar)`.
    pub(super) fn rate(&self) -> Bitrate {
        self.limits.clamp(Bitrate::from_bps_f64(self.rate_bps))
    }

    pub(super) fn loss_ratio(&self) -> f64 {
        self.loss_ratio
    }

    /// `X` at the last cut.
    pub(super) fn floor(&self) -> Bitrate {
        self.floor
    }

    /// Effect of the last loss ratio, as a word for the traces.
    pub(super) fn state(&self) -> &'static str {
        if self.loss_ratio > HIGH_LOSS {
            "decrease"
        } else if self.loss_ratio < LOW_LOSS {
            "increase"
        } else {
            "hold"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<TimeDelta> = Some(TimeDelta::from_millis(100));

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn counts(received: u64, lost: u64) -> LossCounts {
        LossCounts::default().with_received(received).with_lost(lost)
    }

    fn control(rule: IncreaseRule) -> LossBased {
        let limits = RateLimits::new(kbps(50), kbps(1_000), kbps(10_000)).unwrap();
        LossBased::new(limits, rule)
    }

    fn report(control: &mut LossBased, ms: i64, counts: LossCounts) -> u64 {
        control.on_counts(Timestamp::from_millis(ms), counts, false, RTT);
        control.rate().as_bps()
    }

    // [BARI §sender-side control, equation 1]
    #[test]
    fn less_than_2_percent_grow_by_5_percent_and_5_percent_of_a_kbps() {
        let mut control = control(IncreaseRule::EachReport);
        assert_eq!(report(&mut control, 1_000, counts(100, 0)), 1_051_050);
        assert_eq!(report(&mut control, 2_000, counts(99, 1)), 1_104_653);
        assert_eq!(control.state(), "increase");
    }

    // [LW2013 §send_side_bandwidth_estimation]
    #[test]
    fn the_other_rule_grows_from_the_lowest_rate_of_the_last_second() {
        let mut control = control(IncreaseRule::LastSecond);
        assert_eq!(report(&mut control, 0, counts(100, 0)), 1_081_000);
        assert_eq!(report(&mut control, 500, counts(100, 0)), 1_168_480, "1.08 of 1081, plus 1");
        let third = report(&mut control, 900, counts(100, 0));
        assert_eq!(third, 1_168_480, "the lowest is still that of 0 ms");
        assert_eq!(report(&mut control, 1_200, counts(100, 0)), 1_262_958);
    }

    // [BARI §sender-side control, equation 1]
    #[test]
    fn between_2_and_10_percent_the_rate_stays() {
        let mut control = control(IncreaseRule::EachReport);
        for (second, stays) in (1..).zip([counts(98, 2), counts(95, 5), counts(90, 10)]) {
            assert_eq!(report(&mut control, second * 1_000, stays), 1_000_000);
            assert_eq!(control.state(), "hold");
        }
    }

    // [BARI §sender-side control, equation 1]
    #[test]
    fn more_than_10_percent_cut_by_half_the_loss_ratio() {
        let mut control = control(IncreaseRule::EachReport);
        assert_eq!(report(&mut control, 1_000, counts(80, 20)), 900_000);
        assert_eq!(report(&mut control, 2_000, counts(0, 100)), 450_000);
        assert_eq!(control.state(), "decrease");
    }

    // [BARI §sender-side control, equation 1]: 20 % at 4 ms would give a TCP flow 1073 kbit/s.
    #[test]
    fn a_cut_ends_at_what_tcp_would_have_even_if_that_is_more() {
        let mut control = control(IncreaseRule::EachReport);
        let rtt = Some(TimeDelta::from_millis(4));
        control.on_counts(Timestamp::from_secs(1), counts(80, 20), false, rtt);
        assert_eq!(control.rate(), tcp_friendly_rate(0.2, rtt));
        assert!(control.rate() > kbps(1_000), "{}", control.rate());
    }

    // [BARI §sender-side control]
    #[test]
    fn the_receivers_rate_cuts_at_once_and_bounds_growth() {
        let mut control = control(IncreaseRule::EachReport);
        control.set_ceiling(Timestamp::ZERO, Some(kbps(600)));
        assert_eq!(control.rate(), kbps(600));
        assert_eq!(report(&mut control, 1_000, counts(100, 0)), 600_000);
        control.set_ceiling(Timestamp::from_secs(2), Some(kbps(700)));
        assert_eq!(control.rate(), kbps(600), "a higher limit raises nothing");
        assert_eq!(report(&mut control, 3_000, counts(100, 0)), 631_050);
        control.set_ceiling(Timestamp::from_secs(4), None);
        assert_eq!(report(&mut control, 5_000, counts(100, 0)), 663_653);
    }

    // [LW2013 §send_side_bandwidth_estimation]
    #[test]
    fn reports_of_fewer_than_20_packets_are_added_up() {
        let mut control = control(IncreaseRule::EachReport);
        assert_eq!(report(&mut control, 1_000, counts(8, 2)), 1_000_000);
        assert_eq!(report(&mut control, 2_000, counts(8, 2)), 900_000);
    }

    // BARI-D5: as written, 20 reports a second would grow by 165 %.
    #[test]
    fn per_packet_feedback_counts_once_a_second() {
        let mut control = control(IncreaseRule::EachReport);
        for ms in (0..=1_000).step_by(50) {
            control.on_counts(Timestamp::from_millis(ms), counts(10, 0), true, RTT);
        }
        assert_eq!(control.rate(), Bitrate::from_bps(1_051_050));
    }

    // [RFC3550 §6.4.1]
    #[test]
    fn packets_that_arrive_late_are_not_lost() {
        let mut control = control(IncreaseRule::EachReport);
        let late = counts(80, 20).with_recovered(30);
        assert_eq!(report(&mut control, 1_000, late), 1_051_050);
    }
}
