//! Loss-based control: finds the bandwidth that makes the observed losses most likely.
//!
//! Implements [LIBWEBRTC §LossBasedBweV2]; the path model is in `loss_model`. Departs from it in
//! GOOGCC-D2.

use super::loss_model::{Channel, LossModel, Observation};
use crate::controller::{RateLimits, Reason};
use crate::feedback::{Ecn, FeedbackReport};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §LossBasedBweV2].
/// Minimum send span of an observation, and number of observations needed for an estimate.
const OBSERVATION: TimeDelta = TimeDelta::from_millis(250);
const MIN_OBSERVATIONS: usize = 3;
const INITIAL_INHERENT_LOSS: f64 = 0.01;
/// Candidates as factors on the best estimate. The acknowledged bitrate and the delay-based
/// estimate are candidates too.
const CANDIDATE_FACTORS: [f64; 3] = [1.02, 1.0, 0.95];
/// Upper bound of the estimate: the balance divided by the excess of the average loss over the
/// offset.
const UPPER_BOUND_BALANCE: Bitrate = Bitrate::from_kbps(100);
const UPPER_BOUND_OFFSET: f64 = 0.05;
/// While limited by loss, the estimate grows up to `RAMP_UP_FACTOR` times the acknowledged bitrate.
/// While that is below `HOLD_THRESHOLD` times the held rate, the limit is `RAMP_UP_FACTOR_IN_HOLD`.
const RAMP_UP_FACTOR: f64 = 1.5;
const RAMP_UP_FACTOR_IN_HOLD: f64 = 1.2;
const HOLD_THRESHOLD: f64 = 1.3;
/// While limited by loss, the estimate grows at most by this factor per `INCREASE_WINDOW`.
const MAX_INCREASE: f64 = 1.3;
const INCREASE_WINDOW: TimeDelta = TimeDelta::from_millis(300);
/// After a decrease the estimate is held for `HOLD`. Each further decrease multiplies this time by
/// `HOLD_FACTOR`, up to `MAX_HOLD`.
const HOLD: TimeDelta = TimeDelta::from_millis(300);
const HOLD_FACTOR: f64 = 2.0;
const MAX_HOLD: TimeDelta = TimeDelta::from_secs(60);
/// While the estimate grows, padding fills up the source's rate for this time.
const PADDING: TimeDelta = TimeDelta::from_secs(2);

/// What limits the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossState {
    /// The delay-based estimate.
    DelayBased,
    /// Loss. The estimate grows, and padding fills the rate that the source does not use.
    IncreaseUsingPadding,
    /// Loss. The estimate falls or is held.
    Decreasing,
}

/// The delay-based estimate and related inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub delay_based: Bitrate,
    pub acknowledged: Option<Bitrate>,
    /// The source is application-limited.
    pub in_alr: bool,
}

/// An observation that is not yet complete.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    sent: DataSize,
    /// Lost or ECN-marked bytes.
    lost: DataSize,
    marked: DataSize,
}

/// Caps the estimate at `rate` until `until`.
#[derive(Clone, Copy, Debug)]
struct Held {
    until: Option<Timestamp>,
    duration: TimeDelta,
    rate: Bitrate,
}

impl Held {
    const NONE: Self = Self { until: None, duration: HOLD, rate: Bitrate::MAX };
}

/// Runs the loss-based control and stores its estimate.
#[derive(Clone, Debug)]
pub(super) struct LossBased {
    limits: RateLimits,
    model: LossModel,
    partial: Partial,
    /// Most losses in the latest observation were ECN marks.
    is_marked: bool,
    /// Send time of the last packet of the newest observation.
    last_send: Option<Timestamp>,
    best: Option<Channel>,
    /// The last known acknowledged bitrate.
    acknowledged: Option<Bitrate>,
    state: LossState,
    result: Bitrate,
    held: Held,
    /// Start time and rate of the padding, while it is requested.
    padding: Option<(Timestamp, Bitrate)>,
    /// Start of the current growth window, and its limit.
    window: Option<(Timestamp, Bitrate)>,
}

impl LossBased {
    pub(super) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            model: LossModel::default(),
            partial: Partial::default(),
            is_marked: false,
            last_send: None,
            best: None,
            acknowledged: None,
            state: LossState::DelayBased,
            result: Bitrate::MAX,
            held: Held::NONE,
            padding: None,
            window: None,
        }
    }

    /// The range of the estimate from now on.
    pub(super) fn set_limits(&mut self, limits: RateLimits) {
        self.limits = limits;
    }

    /// The estimate; `None` until there are enough observations.
    pub(super) fn estimate(&self) -> Option<Bitrate> {
        (self.model.len() >= MIN_OBSERVATIONS && self.best.is_some()).then_some(self.result)
    }

    pub(super) fn state(&self) -> LossState {
        self.state
    }

    pub(super) fn loss_ratio(&self) -> f64 {
        self.model.average_loss()
    }

    /// Reason of a decrease.
    pub(super) fn decrease_reason(&self) -> Reason {
        if self.is_marked { Reason::Ecn } else { Reason::Loss }
    }

    /// Takes the outcomes of packets.
    pub(super) fn on_report(&mut self, report: &FeedbackReport, conditions: &Conditions) {
        self.acknowledged = conditions.acknowledged.or(self.acknowledged);
        let conditions = &Conditions { acknowledged: self.acknowledged, ..*conditions };
        if !self.observe(report) {
            return;
        }
        let Some(now) = self.last_send else { return };
        let inherent_loss = INITIAL_INHERENT_LOSS;
        let best =
            *self.best.get_or_insert(Channel { bandwidth: conditions.delay_based, inherent_loss });
        let mut found = self.likeliest(now, best, conditions);
        if self.model.average_loss() > found.inherent_loss && found.bandwidth > best.bandwidth {
            // More is lost than the path's inherent loss: do not grow.
            found.bandwidth = best.bandwidth;
        }
        if self.is_limited() {
            found.bandwidth = self.bound_growth(now, best.bandwidth, found.bandwidth, conditions);
        }
        let lower = conditions.acknowledged.unwrap_or(Bitrate::ZERO).max(self.limits.min());
        let upper = self.upper_bound().min(conditions.delay_based);
        let bounded = found.bandwidth.min(upper).max(lower);
        self.best = Some(if bounded < found.bandwidth {
            Channel { bandwidth: bounded, inherent_loss: 0.0 }
        } else {
            Channel { bandwidth: found.bandwidth.max(lower), ..found }
        });
        self.decide(now, bounded, conditions.delay_based);
    }

    /// Adds a report to the current observation. Returns true if that completes it.
    fn observe(&mut self, report: &FeedbackReport) -> bool {
        let Some(packet) = report.packets.first() else { return false };
        let (mut oldest, mut newest) = (packet.send_time, packet.send_time);
        for packet in &report.packets {
            oldest = oldest.min(packet.send_time);
            newest = newest.max(packet.send_time);
            if packet.recovered {
                self.partial.lost = self.partial.lost.saturating_sub(packet.size);
            } else {
                self.partial.sent += packet.size;
            }
            // GOOGCC-D2: a mark counts as a loss.
            let is_marked = packet.ecn == Ecn::Ce;
            if packet.arrival_time.is_none() || is_marked {
                self.partial.lost += packet.size;
            }
            if is_marked {
                self.partial.marked += packet.size;
            }
        }
        let last = *self.last_send.get_or_insert(oldest);
        let span = newest - last;
        if span < OBSERVATION || self.partial.sent == DataSize::ZERO {
            return false;
        }
        self.last_send = Some(newest);
        let Partial { sent, lost, marked } = core::mem::take(&mut self.partial);
        self.is_marked = marked > lost * 0.5;
        self.model.push(Observation { sent, lost: lost.min(sent), send_rate: sent / span });
        true
    }

    /// The most likely of the candidates.
    fn likeliest(&self, now: Timestamp, best: Channel, conditions: &Conditions) -> Channel {
        let pads = self.padding.is_some_and(|(since, _)| since + PADDING >= now);
        let acknowledged = conditions.acknowledged.filter(|_| !conditions.in_alr || pads);
        let delay_based = Some(conditions.delay_based).filter(|rate| *rate > best.bandwidth);
        let [higher, same, lower] = CANDIDATE_FACTORS.map(|factor| Some(best.bandwidth * factor));
        let window = self.window.filter(|_| self.is_limited());
        let most = window.map_or(Bitrate::MAX, |(_, limit)| limit).max(best.bandwidth);
        let channels = [higher, same, lower, acknowledged, delay_based].map(|bandwidth| {
            bandwidth.map(|bandwidth| Channel { bandwidth: bandwidth.min(most), ..best })
        });
        self.model.search().likeliest(channels).unwrap_or(best)
    }

    fn bound_growth(
        &self,
        now: Timestamp,
        best: Bitrate,
        found: Bitrate,
        conditions: &Conditions,
    ) -> Bitrate {
        let within = |(since, limit): (Timestamp, Bitrate)| {
            if since + INCREASE_WINDOW > now { found.min(limit) } else { found }
        };
        let mut found = self.window.map_or(found, within);
        if let Some(acknowledged) = conditions.acknowledged
            && self.is_increase(best, found)
        {
            let is_held = acknowledged < self.held.rate * HOLD_THRESHOLD;
            let is_held = is_held && self.held.rate < Bitrate::MAX;
            let factor = if is_held { RAMP_UP_FACTOR_IN_HOLD } else { RAMP_UP_FACTOR };
            found = found.min(acknowledged * factor).max(best);
            if self.state == LossState::Decreasing && found == best {
                // The smallest step counts as an increase, so that padding can show whether there
                // is more.
                found = best + Bitrate::from_bps(1);
            }
        }
        found
    }

    /// Sets the next estimate and the state that limits it [LIBWEBRTC §LossBasedBweV2].
    fn decide(&mut self, now: Timestamp, bounded: Bitrate, delay_based: Bitrate) {
        let is_lower = bounded < delay_based;
        if self.state == LossState::Decreasing
            && self.held.until.is_some_and(|until| until > now)
            && is_lower
        {
            self.result = bounded.min(self.held.rate);
            return;
        }
        let is_limiting = is_lower && bounded < self.limits.max();
        if is_limiting
            && self.is_increase(self.result, bounded)
            && self.may_keep_growing(now, bounded)
        {
            if self.padding.is_none_or(|(_, rate)| bounded > rate) {
                self.padding = Some((now, bounded));
            }
            self.state = LossState::IncreaseUsingPadding;
        } else if is_limiting {
            if self.state != LossState::Decreasing {
                let Held { duration, .. } = self.held;
                let longer = (duration * HOLD_FACTOR).min(MAX_HOLD);
                self.held = Held { until: Some(now + duration), duration: longer, rate: bounded };
            }
            self.padding = None;
            self.state = LossState::Decreasing;
        } else {
            self.held = Held::NONE;
            self.padding = None;
            self.state = LossState::DelayBased;
        }
        self.result = bounded;
        let window_is_over = self.window.is_none_or(|(since, _)| since + INCREASE_WINDOW < now);
        if self.is_limited() && window_is_over {
            let best = self.best.map_or(bounded, |best| best.bandwidth);
            self.window = Some((now, (best * MAX_INCREASE).max(self.limits.min())));
        }
    }

    fn is_limited(&self) -> bool {
        self.state != LossState::DelayBased
    }

    fn is_increase(&self, old: Bitrate, new: Bitrate) -> bool {
        let goes_on = old == new && self.state == LossState::IncreaseUsingPadding;
        self.is_limited() && (old < new || goes_on)
    }

    /// Growth without progress ends when its padding ends.
    fn may_keep_growing(&self, now: Timestamp, bounded: Bitrate) -> bool {
        self.state != LossState::IncreaseUsingPadding
            || self.padding.is_none_or(|(since, rate)| since + PADDING >= now || rate < bounded)
    }

    fn upper_bound(&self) -> Bitrate {
        let beyond = self.model.average_loss() - UPPER_BOUND_OFFSET;
        if beyond <= 0.0 {
            return Bitrate::MAX;
        }
        Bitrate::from_bps_f64(UPPER_BOUND_BALANCE.as_bps_f64() / beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::PacketReport;
    use alloc::vec::Vec;

    const SIZE: DataSize = DataSize::from_bytes(1_250);

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn loss_based() -> LossBased {
        LossBased::new(RateLimits::new(kbps(50), kbps(300), kbps(10_000)).unwrap())
    }

    fn conditions(delay_based: u64, acknowledged: u64) -> Conditions {
        let acknowledged = Some(kbps(acknowledged));
        Conditions { delay_based: kbps(delay_based), acknowledged, in_alr: false }
    }

    /// An observation of 1 Mbit/s: 25 packets, one every 10 ms, of which the first `lost` are lost.
    fn observe(loss_based: &mut LossBased, number: i64, lost: i64, conditions: &Conditions) {
        let packet = |index: i64| PacketReport {
            sequence_number: number * 25 + index,
            size: SIZE,
            send_time: Timestamp::from_millis((number * 25 + index) * 10),
            arrival_time: (index >= lost).then_some(Timestamp::ZERO),
            ecn: Ecn::NotEct,
            recovered: false,
            probe: None,
        };
        let packets: Vec<_> = (0..25).map(packet).collect();
        loss_based.on_report(&FeedbackReport { packets, ..FeedbackReport::default() }, conditions);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn it_says_nothing_before_three_observations_of_250_ms() {
        let mut loss_based = loss_based();
        // The first report only starts the first span, so it does not complete an observation.
        for number in 0..3 {
            observe(&mut loss_based, number, 0, &conditions(1_200, 1_000));
            assert_eq!(loss_based.estimate(), None, "{number}");
        }
        observe(&mut loss_based, 3, 0, &conditions(1_200, 1_000));
        assert_eq!(loss_based.estimate(), Some(kbps(1_200)));
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn without_loss_the_delay_based_estimate_is_taken_over() {
        let mut loss_based = loss_based();
        for number in 0..20 {
            observe(&mut loss_based, number, 0, &conditions(1_000 + 50 * number as u64, 1_000));
        }
        assert_eq!(loss_based.estimate(), Some(kbps(1_950)));
        assert_eq!(loss_based.state(), LossState::DelayBased);
    }

    // [LIBWEBRTC §LossBasedBweV2]: the upper bound is 100 kbit/s over 0.4 - 0.05.
    #[test]
    fn heavy_loss_cuts_to_what_arrived() {
        for (acknowledged, expect) in [(200, 200_000), (600, 600_000)] {
            let mut loss_based = loss_based();
            for number in 0..20 {
                observe(&mut loss_based, number, 10, &conditions(1_000, acknowledged));
            }
            assert_eq!(loss_based.state(), LossState::Decreasing);
            assert_eq!(loss_based.estimate(), Some(Bitrate::from_bps(expect)));
            assert_eq!(loss_based.upper_bound(), Bitrate::from_bps(285_714));
        }
    }

    // [LIBWEBRTC §LossBasedBweV2]: the inherent loss explains 4 %.
    #[test]
    fn a_little_loss_that_does_not_depend_on_the_rate_costs_nothing() {
        let mut loss_based = loss_based();
        for number in 0..40 {
            observe(&mut loss_based, number, 1, &conditions(1_100, 960));
        }
        assert_eq!(loss_based.estimate(), Some(kbps(1_100)));
        assert!((loss_based.loss_ratio() - 0.04).abs() < 1e-9);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn a_decrease_is_held_300_ms_and_each_next_one_twice_as_long() {
        let mut loss_based = loss_based();
        (0..8).for_each(|number| observe(&mut loss_based, number, 0, &conditions(1_000, 900)));
        observe(&mut loss_based, 8, 15, &conditions(1_000, 400));
        observe(&mut loss_based, 9, 15, &conditions(1_000, 400));
        assert_eq!(loss_based.state(), LossState::Decreasing);
        let (until, now) = (loss_based.held.until.unwrap(), loss_based.last_send.unwrap());
        assert!(until - now <= HOLD && until > now);
        assert_eq!(loss_based.held.duration, TimeDelta::from_millis(600));
        let held = loss_based.held.rate;
        observe(&mut loss_based, 10, 0, &conditions(1_000, 400));
        assert!(loss_based.estimate().unwrap() <= held);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn after_the_loss_padding_lets_the_estimate_grow_to_the_delay_based_one() {
        let mut loss_based = loss_based();
        (0..8).for_each(|number| observe(&mut loss_based, number, 0, &conditions(1_000, 900)));
        (8..12).for_each(|number| observe(&mut loss_based, number, 15, &conditions(1_000, 400)));
        let cut = loss_based.estimate().unwrap();
        assert!(cut < kbps(700), "{cut}");
        let mut states = Vec::new();
        for number in 12..80 {
            let acknowledged = loss_based.estimate().unwrap().as_bps() / 1_000;
            observe(&mut loss_based, number, 0, &conditions(1_000, acknowledged));
            states.push(loss_based.state());
        }
        assert!(states.contains(&LossState::IncreaseUsingPadding));
        assert_eq!(states.last(), Some(&LossState::DelayBased));
        assert_eq!(loss_based.estimate(), Some(kbps(1_000)));
    }

    // GOOGCC-D2
    #[test]
    fn a_mark_counts_as_a_loss_and_a_recovered_packet_takes_its_loss_back() {
        let mut loss_based = loss_based();
        let packet = |number: i64, ecn, arrived: bool, recovered| PacketReport {
            sequence_number: number,
            size: SIZE,
            send_time: Timestamp::from_millis(number),
            arrival_time: arrived.then_some(Timestamp::ZERO),
            ecn,
            recovered,
            probe: None,
        };
        let packets = Vec::from([
            packet(0, Ecn::Ce, true, false),
            packet(1, Ecn::NotEct, false, false),
            packet(2, Ecn::NotEct, true, false),
        ]);
        loss_based.observe(&FeedbackReport { packets, ..FeedbackReport::default() });
        assert_eq!((loss_based.partial.sent, loss_based.partial.lost), (SIZE * 3.0, SIZE * 2.0));
        let packets = Vec::from([packet(1, Ecn::NotEct, true, true)]);
        loss_based.observe(&FeedbackReport { packets, ..FeedbackReport::default() });
        assert_eq!((loss_based.partial.sent, loss_based.partial.lost), (SIZE * 3.0, SIZE));
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A control that loss limits to 500 kbit/s, held until 1 s.
    fn limited(state: LossState) -> LossBased {
        let held = Held { until: Some(at(1_000)), duration: HOLD, rate: kbps(500) };
        LossBased { state, held, result: kbps(500), ..loss_based() }
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn while_a_decrease_is_held_the_estimate_stays_below_the_rate_held() {
        for (ms, bounded, result, state) in [
            (999, 800, 500, LossState::Decreasing),
            (999, 400, 400, LossState::Decreasing),
            (999, 1_000, 1_000, LossState::DelayBased),
            (1_000, 800, 800, LossState::IncreaseUsingPadding),
            (1_000, 400, 400, LossState::Decreasing),
        ] {
            let mut loss_based = limited(LossState::Decreasing);
            loss_based.decide(at(ms), kbps(bounded), kbps(1_000));
            assert_eq!(
                (loss_based.result, loss_based.state),
                (kbps(result), state),
                "{ms} {bounded}"
            );
            let holds = (loss_based.held.until, loss_based.held.duration, loss_based.held.rate);
            let expected = match state {
                LossState::DelayBased => (None, HOLD, Bitrate::MAX),
                _ => (Some(at(1_000)), HOLD, kbps(500)),
            };
            assert_eq!(holds, expected, "{ms} {bounded}: only a new decrease holds anew");
        }
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn growth_that_does_not_get_further_for_two_seconds_is_a_decrease_again() {
        let mut loss_based = limited(LossState::Decreasing);
        for (ms, bounded, padding, state) in [
            (1_000, 800, Some((1_000, 800)), LossState::IncreaseUsingPadding),
            (3_000, 800, Some((1_000, 800)), LossState::IncreaseUsingPadding),
            (3_001, 801, Some((3_001, 801)), LossState::IncreaseUsingPadding),
            (5_002, 801, None, LossState::Decreasing),
        ] {
            loss_based.decide(at(ms), kbps(bounded), kbps(1_000));
            let pads = loss_based.padding.map(|(since, rate)| (since.as_millis(), rate));
            let padding = padding.map(|(since, rate)| (since, kbps(rate)));
            assert_eq!((pads, loss_based.state), (padding, state), "{ms}");
        }
        assert_eq!(loss_based.held.until, Some(at(5_302)));
        assert_eq!((loss_based.held.duration, loss_based.held.rate), (HOLD * 2, kbps(801)));
        loss_based.decide(at(6_000), kbps(1_000), kbps(1_000));
        assert_eq!((loss_based.padding, loss_based.state), (None, LossState::DelayBased));
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn a_window_of_growth_lasts_300_ms_and_ends_at_1_3_times_the_estimate() {
        let mut loss_based = limited(LossState::Decreasing);
        loss_based.held.until = None;
        loss_based.best = Some(Channel { bandwidth: kbps(400), inherent_loss: 0.0 });
        for (ms, since) in [(0, 0), (300, 0), (301, 301)] {
            loss_based.decide(at(ms), kbps(400), kbps(1_000));
            assert_eq!(loss_based.window, Some((at(since), kbps(520))), "{ms}");
        }
        // Found 900 kbit/s with 2000 acknowledged: the growth window limits it while it lasts.
        let (best, conditions) = (kbps(400), conditions(3_000, 2_000));
        for (ms, expect) in [(600, 520), (601, 900)] {
            let found = loss_based.bound_growth(at(ms), best, kbps(900), &conditions);
            assert_eq!(found, kbps(expect), "{ms}");
        }
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn growth_ends_at_1_5_times_what_arrives_and_at_1_2_near_the_rate_held() {
        let grow = |state, held, best, found, acknowledged| {
            let mut loss_based = limited(state);
            loss_based.held.rate = held;
            let conditions = conditions(9_000, acknowledged);
            loss_based.bound_growth(at(2_000), kbps(best), kbps(found), &conditions)
        };
        let padding = LossState::IncreaseUsingPadding;
        // Below 1.3 * 500 kbit/s, the rate is near the held rate.
        assert_eq!(grow(padding, kbps(500), 400, 5_000, 649), Bitrate::from_bps(778_800));
        assert_eq!(grow(padding, kbps(500), 400, 5_000, 650), kbps(975));
        assert_eq!(grow(padding, Bitrate::MAX, 400, 5_000, 600), kbps(900), "none is held");
        assert_eq!(grow(padding, kbps(500), 400, 5_000, 200), kbps(400), "never a cut");
        assert_eq!(grow(padding, kbps(500), 400, 410, 200), kbps(400));
        assert_eq!(grow(padding, kbps(500), 400, 390, 200), kbps(390), "no growth");
        let least = Bitrate::from_bps(400_001);
        assert_eq!(grow(LossState::Decreasing, kbps(500), 400, 410, 200), least);
        assert_eq!(grow(LossState::DelayBased, kbps(500), 400, 5_000, 200), kbps(5_000));
    }

    // [LIBWEBRTC §LossBasedBweV2]: for an application-limited source, only if padding fills its
    // rate.
    #[test]
    fn what_arrives_is_a_candidate_unless_an_unpadded_source_limits_itself() {
        let best = Channel { bandwidth: kbps(500), inherent_loss: INITIAL_INHERENT_LOSS };
        let likeliest = |in_alr, padding: Option<i64>| {
            let mut loss_based = loss_based();
            let observation =
                Observation { sent: SIZE, lost: DataSize::ZERO, send_rate: kbps(500) };
            (0..3).for_each(|_| loss_based.model.push(observation));
            loss_based.padding = padding.map(|since| (at(since), kbps(500)));
            let conditions = Conditions { in_alr, ..conditions(400, 900) };
            loss_based.likeliest(at(5_000), best, &conditions).bandwidth
        };
        assert_eq!(likeliest(false, None), kbps(900));
        assert_eq!(likeliest(true, None), kbps(510));
        assert_eq!(likeliest(true, Some(3_000)), kbps(900));
        assert_eq!(likeliest(true, Some(2_999)), kbps(510));
    }
}
