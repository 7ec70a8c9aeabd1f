//! Loss model: how likely the recent losses are on a path of a given bandwidth and inherent loss.
//!
//! Implements the likelihood of [LIBWEBRTC §LossBasedBweV2].

use alloc::vec::Vec;

use crate::units::{Bitrate, DataSize};

// Parameters [LIBWEBRTC §LossBasedBweV2].
/// Number of observations in the window, and factor on the weight of each per newer observation.
const WINDOW: usize = 15;
const WEIGHT: f64 = 0.9;
/// Powers of `WEIGHT`, newest observation first.
const WEIGHTS: [f64; WINDOW] = {
    let mut weights = [1.0; WINDOW];
    let mut index = 1;
    while index < WINDOW {
        weights[index] = weights[index - 1] * WEIGHT;
        index += 1;
    }
    weights
};
/// Loss probabilities stay at least this far from 0 and 1.
const MIN_PROBABILITY: f64 = 1e-6;
/// Range of the inherent loss: the minimum, and the two terms of the maximum, which falls with the
/// bandwidth.
const MIN_INHERENT_LOSS: f64 = 1e-3;
const MAX_INHERENT_LOSS: f64 = 0.05;
const INHERENT_LOSS_BALANCE: Bitrate = Bitrate::from_kbps(100);
/// Share of a full Newton step that is taken on the inherent loss.
const NEWTON_STEP: f64 = 0.75;
/// Preference for higher bandwidth: proportional to its kbit/s, and to their logarithm. It is zero
/// at the loss threshold and reversed above it.
const BANDWIDTH_BIAS: f64 = 0.0002;
const LOG_BANDWIDTH_BIAS: f64 = 0.02;
const BIAS_LOSS_THRESHOLD: f64 = 0.2;
const BIAS_SMOOTHING: f64 = 0.002;
/// With more observations than this, the best and the worst are left out of the average loss...
const OBSERVATIONS_WITHOUT_EXTREMES: usize = 3;
/// ...unless the worst was sent at this multiple of the median rate.
const SPIKE_FACTOR: f64 = 2.0;

/// Bytes sent and lost in a span of at least 250 ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub sent: DataSize,
    pub lost: DataSize,
    pub send_rate: Bitrate,
}

impl Observation {
    fn loss_ratio(&self) -> f64 {
        if self.sent == DataSize::ZERO {
            return 0.0;
        }
        self.lost.as_bytes() as f64 / self.sent.as_bytes() as f64
    }
}

/// An observation with the values that each candidate needs.
#[derive(Clone, Copy, Debug)]
struct Sample {
    observation: Observation,
    loss_ratio: f64,
    /// Kilobytes lost and received.
    lost: f64,
    received: f64,
}

impl Sample {
    fn of(observation: Observation) -> Self {
        let kilobytes = |size: DataSize| size.as_bytes() as f64 / 1e3;
        let received = observation.sent.saturating_sub(observation.lost);
        Self {
            observation,
            loss_ratio: observation.loss_ratio(),
            lost: kilobytes(observation.lost),
            received: kilobytes(received),
        }
    }
}

/// A path in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Channel {
    /// Everything sent above this rate is lost.
    pub bandwidth: Bitrate,
    /// Share of the rest that is lost too.
    pub inherent_loss: f64,
}

impl Channel {
    /// Clamps the inherent loss to its range.
    fn feasible(self) -> Self {
        let balance = INHERENT_LOSS_BALANCE.as_bps_f64() / self.bandwidth.as_bps_f64().max(1.0);
        let most = (MAX_INHERENT_LOSS + balance).min(1.0);
        Self { inherent_loss: self.inherent_loss.max(MIN_INHERENT_LOSS).min(most), ..self }
    }

    fn loss_probability(&self, send_rate: Bitrate) -> f64 {
        let excess = send_rate.saturating_sub(self.bandwidth);
        let overflow = if excess == Bitrate::ZERO { 0.0 } else { excess / send_rate };
        let probability = self.inherent_loss + (1.0 - self.inherent_loss) * overflow;
        probability.clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    }
}

/// The last observations, newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct LossModel {
    samples: Vec<Sample>,
    average_loss: f64,
}

impl LossModel {
    /// Adds an observation.
    pub(super) fn push(&mut self, observation: Observation) {
        self.samples.truncate(WINDOW - 1);
        self.samples.insert(0, Sample::of(observation));
        self.average_loss = self.weighted_loss();
    }

    /// Number of observations.
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// Ratio of lost bytes. Newer observations have more weight.
    pub(super) fn average_loss(&self) -> f64 {
        self.average_loss
    }

    fn weighted(&self) -> impl Iterator<Item = (f64, &Sample)> {
        WEIGHTS.iter().copied().zip(&self.samples)
    }

    fn weighted_loss(&self) -> f64 {
        let (mut sent, mut lost) = (0.0, 0.0);
        let (mut best, mut worst) = (None::<(f64, &Sample)>, None::<(f64, &Sample)>);
        for (weight, sample) in self.weighted() {
            sent += weight * sample.observation.sent.as_bytes() as f64;
            lost += weight * sample.observation.lost.as_bytes() as f64;
            if best.is_none_or(|(_, best)| sample.loss_ratio < best.loss_ratio) {
                best = Some((weight, sample));
            }
            if worst.is_none_or(|(_, worst)| sample.loss_ratio > worst.loss_ratio) {
                worst = Some((weight, sample));
            }
        }
        let is_spike =
            || worst.is_some_and(|(_, worst)| self.is_spike(worst.observation.send_rate));
        if self.len() > OBSERVATIONS_WITHOUT_EXTREMES && !is_spike() {
            // If all loss ratios are equal, the first one is both extremes and is subtracted twice.
            // That does not change the ratio.
            let extremes = [best, worst].into_iter().flatten();
            for (weight, extreme) in extremes {
                sent -= weight * extreme.observation.sent.as_bytes() as f64;
                lost -= weight * extreme.observation.lost.as_bytes() as f64;
            }
        }
        if sent > 0.0 { (lost / sent).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// True if this send rate is at least a multiple of the median send rate. That is so if it is
    /// at least this multiple of more than half of the rates, which needs no sorting.
    fn is_spike(&self, send_rate: Bitrate) -> bool {
        let spike = send_rate.as_bps_f64();
        let exceeded = self
            .samples
            .iter()
            .filter(|sample| sample.observation.send_rate.as_bps_f64() * SPIKE_FACTOR <= spike);
        exceeded.count() > self.len() / 2
    }

    /// Starts a comparison of channels.
    pub(super) fn search(&self) -> Search<'_> {
        Search { model: self, terms: None, logarithms: None }
    }

    fn bias(&self, bandwidth: Bitrate) -> f64 {
        let below = BIAS_LOSS_THRESHOLD - self.average_loss;
        let share = below / (BIAS_SMOOTHING + below.abs());
        let kbps = bandwidth.as_kbps_f64();
        share * (BANDWIDTH_BIAS * kbps + LOG_BANDWIDTH_BIAS * libm::log(1.0 + kbps))
    }
}

/// Compares channels on one set of observations.
///
/// Divisions and logarithms are expensive. All observations below a channel's bandwidth have the
/// same loss probability, and so do most candidates. The terms of that probability are therefore
/// kept for the next candidate.
#[derive(Debug)]
pub(super) struct Search<'a> {
    model: &'a LossModel,
    /// A probability, and the terms of each observation for it.
    terms: Option<(f64, [Derivatives; WINDOW])>,
    logarithms: Option<Logarithms>,
}

/// Terms of an observation in the first and second derivative of the log-likelihood.
type Derivatives = (f64, f64);

/// Logarithms for one loss probability. The one of a loss is computed only if it is needed.
#[derive(Clone, Copy, Debug)]
struct Logarithms {
    probability: f64,
    of_arrival: f64,
    of_loss: Option<f64>,
}

fn derivatives(weight: f64, sample: &Sample, p: f64) -> Derivatives {
    let &Sample { lost, received, .. } = sample;
    // Most observations have no loss.
    let (of_loss, curvature) = if lost == 0.0 { (0.0, 0.0) } else { (lost / p, lost / (p * p)) };
    let first = weight * (of_loss - received / (1.0 - p));
    (first, weight * (curvature + received / ((1.0 - p) * (1.0 - p))))
}

/// A fitted channel in a comparison.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    channel: Channel,
    /// Preference for its bandwidth.
    bias: f64,
    /// Upper bound of its objective.
    bound: f64,
}

/// Upper bound of `log(1 - p)`: the first two terms of its series. For `p` of at least
/// `MIN_INHERENT_LOSS`, what is left out (`p^3 / 3` and more) is far above the rounding errors.
fn log_of_arrival_bound(p: f64) -> f64 {
    -p - p * p / 2.0
}

impl Search<'_> {
    /// The channel of this bandwidth after a Newton step of its inherent loss to a higher
    /// likelihood.
    fn fit(&mut self, channel: Channel) -> Channel {
        let channel = channel.feasible();
        let model = self.model;
        let within = channel.loss_probability(Bitrate::ZERO);
        let terms = match &mut self.terms {
            Some((probability, terms)) if *probability == within => terms,
            kept => {
                let mut terms = [(0.0, 0.0); WINDOW];
                for (term, (weight, sample)) in terms.iter_mut().zip(model.weighted()) {
                    *term = derivatives(weight, sample, within);
                }
                &mut kept.insert((within, terms)).1
            }
        };
        let (mut first, mut second) = (0.0, 0.0);
        for ((weight, sample), &term) in model.weighted().zip(terms.iter()) {
            let rate = sample.observation.send_rate;
            let (of_first, of_second) = if rate <= channel.bandwidth {
                term
            } else {
                derivatives(weight, sample, channel.loss_probability(rate))
            };
            first += of_first;
            second -= of_second;
        }
        if second == 0.0 {
            return channel;
        }
        let inherent_loss = channel.inherent_loss - NEWTON_STEP * first / second;
        Channel { inherent_loss, ..channel }.feasible()
    }

    /// The first of the fitted channels that has the highest objective: the log-likelihood of the
    /// observations on this channel, plus the bias for higher bandwidth.
    ///
    /// A bound of the objective needs far fewer logarithms. The channel with the highest bound is
    /// nearly always the best one, and then no other one needs its objective.
    pub(super) fn likeliest<const N: usize>(
        &mut self,
        channels: [Option<Channel>; N],
    ) -> Option<Channel> {
        let candidates = channels.map(|channel| {
            let channel = self.fit(channel?);
            let bias = self.model.bias(channel.bandwidth);
            let bound = self.objective(&channel, bias, log_of_arrival_bound);
            Some(Candidate { channel, bias, bound })
        });
        let of_candidates = candidates.iter().flatten();
        let leader =
            of_candidates.clone().max_by(|one, other| one.bound.total_cmp(&other.bound))?;
        let least = self.exact_objective(leader);
        let mut found = (f64::NEG_INFINITY, None);
        for candidate in of_candidates.filter(|candidate| candidate.bound >= least) {
            let is_leader = core::ptr::eq(candidate, leader);
            let objective = if is_leader { least } else { self.exact_objective(candidate) };
            if objective > found.0 {
                found = (objective, Some(candidate.channel));
            }
        }
        found.1
    }

    fn exact_objective(&mut self, candidate: &Candidate) -> f64 {
        self.objective(&candidate.channel, candidate.bias, |p| libm::log(1.0 - p))
    }

    /// The objective, with this logarithm of the probability that a packet arrives which was sent
    /// above the bandwidth. Sums and products of floating-point numbers are monotone, so a bound of
    /// the logarithm gives a bound of the objective.
    fn objective(
        &mut self,
        channel: &Channel,
        bias: f64,
        log_of_arrival: impl Fn(f64) -> f64,
    ) -> f64 {
        let probability = channel.loss_probability(Bitrate::ZERO);
        let within = match &mut self.logarithms {
            Some(kept) if kept.probability == probability => kept,
            kept => {
                let of_arrival = libm::log(1.0 - probability);
                kept.insert(Logarithms { probability, of_arrival, of_loss: None })
            }
        };
        let terms = self.model.weighted().map(|(weight, sample)| {
            let &Sample { observation, lost, received, .. } = sample;
            let (of_loss, of_arrival) = if observation.send_rate <= channel.bandwidth {
                let of_loss = match lost {
                    0.0 => 0.0,
                    _ => *within.of_loss.get_or_insert_with(|| libm::log(probability)),
                };
                (of_loss, within.of_arrival)
            } else {
                let p = channel.loss_probability(observation.send_rate);
                (if lost == 0.0 { 0.0 } else { libm::log(p) }, log_of_arrival(p))
            };
            weight * (lost * of_loss + received * of_arrival + bias * (lost + received))
        });
        terms.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl LossModel {
        fn fit(&self, channel: Channel) -> Channel {
            self.search().fit(channel)
        }

        fn objective(&self, channel: &Channel) -> f64 {
            let bias = self.bias(channel.bandwidth);
            self.search().objective(channel, bias, |p| libm::log(1.0 - p))
        }
    }

    #[test]
    fn what_a_search_keeps_changes_no_result() {
        let model = model(&[(3, 900), (0, 500), (12, 1_400), (0, 1_100), (1, 1_000)]);
        let mut search = model.search();
        for kbps in [1_020, 1_000, 950, 2_000, 300, 1_500, 1_600] {
            for inherent_loss in [0.02, 0.02, 0.5] {
                let fitted = search.fit(channel(kbps, inherent_loss));
                assert_eq!(fitted, model.fit(channel(kbps, inherent_loss)));
                let (bias, exact) = (model.bias(fitted.bandwidth), |p| libm::log(1.0 - p));
                assert_eq!(search.objective(&fitted, bias, exact), model.objective(&fitted));
            }
        }
    }

    // The bounds decide only which objectives are computed.
    #[test]
    fn the_likeliest_channel_is_the_first_with_the_highest_objective() {
        for seed in 0..2_000_u64 {
            let number =
                |index: u64, below: u64| (seed * 7_919 + index * 104_729 + seed * seed) % below;
            let observations: Vec<_> =
                (0..15).map(|at| (number(at, 1 + seed % 20), 800 + number(3 * at, 500))).collect();
            let model = model(&observations);
            let channels = [1_020, 1_000, 950, 1_000, 700 + number(50, 700)]
                .map(|kbps| Some(channel(kbps, 0.01)));
            let mut expect = (f64::NEG_INFINITY, None);
            for fitted in channels.map(|channel| model.fit(channel.unwrap())) {
                let objective = model.objective(&fitted);
                if objective > expect.0 {
                    expect = (objective, Some(fitted));
                }
            }
            assert_eq!(model.search().likeliest(channels), expect.1, "{seed}");
        }
    }

    #[test]
    fn the_bound_of_the_logarithm_is_above_it_for_each_channel_probability() {
        for step in 0..=10_000 {
            let p = MIN_INHERENT_LOSS + f64::from(step) / 1e4 * (1.0 - 2.0 * MIN_INHERENT_LOSS);
            assert!(log_of_arrival_bound(p) > libm::log(1.0 - p), "{p}");
        }
    }

    fn observation(lost_percent: u64, kbps: u64) -> Observation {
        let sent = Bitrate::from_kbps(kbps) * crate::units::TimeDelta::from_millis(250);
        let lost = DataSize::from_bytes(sent.as_bytes() * lost_percent / 100);
        Observation { sent, lost, send_rate: Bitrate::from_kbps(kbps) }
    }

    fn model(observations: &[(u64, u64)]) -> LossModel {
        let mut model = LossModel::default();
        observations.iter().for_each(|&(loss, kbps)| model.push(observation(loss, kbps)));
        model
    }

    fn channel(kbps: u64, inherent_loss: f64) -> Channel {
        Channel { bandwidth: Bitrate::from_kbps(kbps), inherent_loss }
    }

    // [LIBWEBRTC §LossBasedBweV2]: inherent + (1 - inherent) * (1 - bandwidth / rate).
    #[test]
    fn what_is_sent_beyond_the_bandwidth_is_lost_beside_the_inherent_loss() {
        let p = |kbps| channel(1_000, 0.1).loss_probability(Bitrate::from_kbps(kbps));
        assert_eq!((p(500), p(1_000)), (0.1, 0.1));
        assert!((p(2_000) - 0.55).abs() < 1e-12);
        assert_eq!(channel(0, 0.1).loss_probability(Bitrate::from_kbps(1)), 1.0 - 1e-6);
    }

    // [LIBWEBRTC §LossBasedBweV2]: 0.05 + 100 / 1000 and 0.05 + 100 / 100.
    #[test]
    fn the_inherent_loss_stays_between_its_bounds() {
        assert_eq!(channel(1_000, 0.5).feasible().inherent_loss, 0.05 + 0.1);
        assert_eq!(channel(1_000, 0.0).feasible().inherent_loss, 1e-3);
        assert_eq!(channel(100, 5.0).feasible().inherent_loss, 1.0);
    }

    // [LIBWEBRTC §LossBasedBweV2]: losses below the bandwidth can only be inherent.
    #[test]
    fn newton_steps_lead_to_the_loss_that_was_seen() {
        let model = model(&[(5, 1_000); 15]);
        let mut fitted = channel(2_000, 0.01);
        for _ in 0..20 {
            fitted = model.fit(fitted);
        }
        assert!((fitted.inherent_loss - 0.05).abs() < 1e-3, "{}", fitted.inherent_loss);
    }

    // [LIBWEBRTC §LossBasedBweV2]: of 10 kB, 1 kB is lost, at p = 0.02. The first derivative is
    // 1 / 0.02 - 9 / 0.98, the second -(1 / 0.02^2 + 9 / 0.98^2). The step is three quarters.
    #[test]
    fn a_newton_step_is_that_of_the_log_likelihood() {
        let fitted = model(&[(10, 320)]).fit(channel(1_000, 0.02));
        assert!((fitted.inherent_loss - 0.032_199_2).abs() < 1e-6, "{}", fitted.inherent_loss);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn loss_at_high_rates_alone_is_likelier_on_a_narrow_path() {
        let model = model(&[(0, 500), (0, 500), (50, 2_000), (50, 2_000)]);
        let (narrow, wide) = (model.fit(channel(1_000, 0.01)), model.fit(channel(3_000, 0.01)));
        assert!(model.objective(&narrow) > model.objective(&wide));
    }

    // [LIBWEBRTC §LossBasedBweV2]: (0.2 - 0) / 0.202 * (0.0002 * 1000 + 0.02 * ln(1001)).
    #[test]
    fn the_bias_prefers_bandwidth_until_a_fifth_is_lost() {
        let bias = model(&[(0, 1_000); 4]).bias(Bitrate::from_kbps(1_000));
        assert!((bias - 0.2 / 0.202 * (0.2 + 0.02 * 6.908_754_779)).abs() < 1e-9, "{bias}");
        assert!(model(&[(40, 1_000); 4]).bias(Bitrate::from_kbps(1_000)) < 0.0);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn the_average_loss_is_without_the_best_and_the_worst_of_more_than_three() {
        assert!(model(&[(0, 1_000), (40, 1_000), (10, 1_000)]).average_loss() > 0.1);
        let four = model(&[(0, 1_000), (40, 1_000), (10, 1_000), (10, 1_000)]);
        assert!((four.average_loss() - 0.1).abs() < 1e-9);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn the_worst_is_the_one_of_the_highest_loss_ratio_not_of_the_most_bytes() {
        let model = model(&[(0, 1_000), (50, 100), (20, 1_000), (10, 1_000)]);
        let expected = (0.1 + WEIGHT * 0.2) / (1.0 + WEIGHT);
        assert!((model.average_loss() - expected).abs() < 1e-9, "{}", model.average_loss());
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn the_median_is_of_the_rates_in_order() {
        let spike = model(&[(0, 500), (0, 500), (0, 1_100), (0, 500), (40, 1_000)]);
        assert!(spike.average_loss() > 0.1);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn a_worst_one_that_was_sent_at_twice_the_median_rate_counts() {
        let spike = model(&[(0, 500), (0, 500), (0, 500), (0, 500), (40, 1_000)]);
        assert!(spike.average_loss() > 0.1);
        let none = model(&[(0, 500), (0, 500), (0, 500), (0, 500), (40, 900)]);
        assert_eq!(none.average_loss(), 0.0);
    }

    // [LIBWEBRTC §LossBasedBweV2]
    #[test]
    fn fifteen_observations_are_kept() {
        let mut model = model(&[(100, 1_000); 4]);
        (0..15).for_each(|_| model.push(observation(0, 1_000)));
        assert_eq!((model.len(), model.average_loss()), (15, 0.0));
    }
}
