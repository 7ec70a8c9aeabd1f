//! What tc's users expect of a link, measured packet by packet against theory. No bound is a matter
//! of taste: each mean may be [`DEVIATIONS`] standard errors off. They follow from the distribution
//! and the number of packets.

use std::f64::consts::PI;

use super::*;
use crate::jitter::{JitterShape, NetemJitter};
use crate::loss::GilbertElliott;

/// Packets of a run, one a millisecond.
const PACKETS: usize = 50_000;
const SEEDS: u64 = 3;
const CORRELATIONS: [f64; 3] = [0.0, 0.25, 0.9];
/// A normal deviate is further off once in 16,000 times.
const DEVIATIONS: f64 = 4.0;
const DELAY: TimeDelta = TimeDelta::from_millis(100);
const AMOUNT: TimeDelta = TimeDelta::from_millis(10);

fn sent(packet: usize) -> Timestamp {
    Timestamp::from_millis(packet as i64)
}

/// When each packet arrives; `None` if it is lost.
fn arrivals(config: &LinkConfig, seed: u64) -> Vec<Option<Timestamp>> {
    let mut link = Bottleneck::new(config, Seed::new(seed), "up");
    let mut arrived = vec![None; PACKETS];
    for packet in 0..=PACKETS {
        let now = if packet < PACKETS { sent(packet) } else { Timestamp::from_secs(1_000) };
        while let Some(outcome) = link.poll(now) {
            if let Outcome::Delivered(delivery) = outcome {
                arrived[delivery.payload] = Some(delivery.due);
            }
        }
        if packet < PACKETS {
            link.enqueue(now, Header::new(DataSize::from_bytes(1_000)), packet);
        }
    }
    arrived
}

/// Draws of a statistic.
struct Draws<'a> {
    values: &'a [f64],
    /// How much more uncertain their mean is than that of as many independent draws, as a factor of
    /// the variance.
    inflation: f64,
}

impl Draws<'_> {
    /// The mean is this, if one draw has this standard deviation.
    fn assert_mean(&self, what: &str, expected: f64, sd: f64) {
        let count = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / count;
        let error = sd * (self.inflation / count).sqrt();
        assert!(
            (mean - expected).abs() <= DEVIATIONS * error,
            "{what}: {mean}, not {expected} with a standard error of {error}"
        );
    }

    /// The mean of zeros and ones is this share.
    fn assert_share(&self, what: &str, share: f64) {
        self.assert_mean(what, share, (share * (1.0 - share)).sqrt());
    }
}

/// Of a value of each packet. Nothing that depends on one state of a normal or a two-state chain is
/// correlated more with that of the k-th next than the states are, which is the k-th power.
fn of_one(correlation: f64) -> f64 {
    (1.0 + correlation) / (1.0 - correlation)
}

/// Of a value of each pair of neighbours, which shares a packet with the next.
fn of_two(correlation: f64) -> f64 {
    1.0 + 2.0 / (1.0 - correlation)
}

fn shares(of: impl Iterator<Item = bool>) -> Vec<f64> {
    of.map(|is_so| f64::from(u8::from(is_so))).collect()
}

/// What a distribution of jitter is, for an amount of 1.
struct Theory {
    shape: JitterShape,
    mean: f64,
    variance: f64,
    /// The fourth central moment.
    fourth: f64,
    median: f64,
    /// A value, and the share above it.
    tail: (f64, f64),
}

impl Theory {
    fn uniform() -> Self {
        let shape = JitterShape::Uniform;
        let (variance, fourth) = (1.0 / 3.0, 1.0 / 5.0);
        Self { shape, mean: 0.0, variance, fourth, median: 0.0, tail: (0.5, 0.25) }
    }

    /// The cut at 4 changes no digit that can be measured here.
    fn normal() -> Self {
        let (shape, tail) = (JitterShape::Normal, (2.0, 0.022_750));
        Self { shape, mean: 0.0, variance: 1.0, fourth: 3.0, median: 0.0, tail }
    }

    /// 4/3 (V - 3/2), where V is above v with the probability v^-3, and cut at 4. `pareto.dist` of
    /// iproute2 has 4,096 values with a mean of -0.0335 and a deviation of 0.8197.
    fn pareto() -> Self {
        let (scale, middle) = (4.0 / 3.0, 1.5);
        let cut: f64 = 4.0 / scale + middle;
        // Raw moments of V: 1 and the integral of n v^(n - 1) v^-3 from 1 to the cut.
        let first = 1.0 + (1.0 - cut.powi(-2)) / 2.0;
        let second = 1.0 + 2.0 * (1.0 - 1.0 / cut);
        let third = 1.0 + 3.0 * cut.ln();
        let fourth = 1.0 + 4.0 * (cut - 1.0);
        let central_fourth =
            fourth - 4.0 * first * third + 6.0 * first * first * second - 3.0 * first.powi(4);
        Self {
            shape: JitterShape::Pareto,
            mean: scale * (first - middle),
            variance: scale * scale * (second - first * first),
            fourth: scale.powi(4) * central_fourth,
            median: scale * (0.5_f64.powf(-1.0 / 3.0) - middle),
            tail: (2.0, 1.0 / 27.0),
        }
    }

    fn assert_holds_for(&self, values: &[f64], correlation: f64) {
        let inflation = of_one(correlation);
        let draws = |values| Draws { values, inflation };
        let what = |of: &str| format!("{of} of {:?} at {correlation}", self.shape);
        draws(values).assert_mean(&what("mean"), self.mean, self.variance.sqrt());
        let mut squares = Vec::new();
        for value in values {
            squares.push((value - self.mean) * (value - self.mean));
        }
        let sd = (self.fourth - self.variance * self.variance).sqrt();
        draws(&squares).assert_mean(&what("variance"), self.variance, sd);
        let above = shares(values.iter().map(|value| *value > self.tail.0));
        draws(&above).assert_share(&what("tail"), self.tail.1);
        // The share of two correlated normal deviates that are both positive.
        let both = values.windows(2).map(|pair| pair[0] > self.median && pair[1] > self.median);
        let together = Draws { values: &shares(both), inflation: of_two(correlation) };
        let expected = 0.25 + correlation.asin() / (2.0 * PI);
        together.assert_share(&what("neighbours above the median"), expected);
    }
}

fn jittery(distribution: JitterShape, correlation: f64, reorder: bool) -> LinkConfig {
    let jitter = NetemJitter { amount: AMOUNT, distribution, correlation, reorder };
    LinkConfig::unlimited(DELAY).with_jitter(Jitter::Netem(jitter))
}

#[test]
fn jitter_has_the_moments_the_tail_and_the_correlation_of_its_distribution() {
    for theory in [Theory::uniform(), Theory::normal(), Theory::pareto()] {
        for correlation in CORRELATIONS {
            for seed in 0..SEEDS {
                let mut values = Vec::new();
                for (packet, at) in arrivals(&jittery(theory.shape, correlation, true), seed)
                    .into_iter()
                    .enumerate()
                {
                    values.push((at.unwrap() - sent(packet) - DELAY) / AMOUNT);
                }
                theory.assert_holds_for(&values, correlation);
            }
        }
    }
}

#[test]
fn jitter_in_order_makes_each_packet_wait_for_the_one_before_it_and_no_longer() {
    for shape in [JitterShape::Uniform, JitterShape::Normal, JitterShape::Pareto] {
        for correlation in CORRELATIONS {
            let free = arrivals(&jittery(shape, correlation, true), 1);
            let held = arrivals(&jittery(shape, correlation, false), 1);
            let mut latest = Timestamp::ZERO;
            for (free, held) in free.into_iter().zip(held) {
                latest = latest.max(free.unwrap());
                assert_eq!(held, Some(latest));
            }
        }
    }
}

#[test]
fn a_share_skips_the_delay_whatever_the_packet_before_did() {
    for share in [0.01, 0.25, 0.9] {
        for seed in 0..SEEDS {
            let arrived = arrivals(&LinkConfig::unlimited(DELAY).with_reorder(share), seed);
            let mut skipped = Vec::new();
            for (packet, at) in arrived.into_iter().enumerate() {
                let took = at.unwrap() - sent(packet);
                assert!(took == TimeDelta::ZERO || took == DELAY, "{took:?}");
                skipped.push(took == TimeDelta::ZERO);
            }
            let all = shares(skipped.iter().copied());
            Draws { values: &all, inflation: 1.0 }.assert_share("share", share);
            let both = shares(skipped.windows(2).map(|pair| pair[0] && pair[1]));
            Draws { values: &both, inflation: of_two(0.0) }.assert_share("both", share * share);
        }
    }
}

/// Lengths of the runs of equal values, but for the first and the last, which are cut.
fn runs(values: &[bool], of: bool) -> Vec<usize> {
    let mut lengths = Vec::new();
    for run in values.chunk_by(|a, b| a == b) {
        lengths.push((run[0], run.len()));
    }
    let inner = 1..lengths.len().saturating_sub(1).max(1);
    let lengths = lengths.get(inner).unwrap_or_default().iter();
    lengths.filter(|(value, _)| *value == of).map(|(_, length)| *length).collect()
}

/// Runs that end after each packet with a probability have the geometric distribution.
fn assert_geometric(what: &str, lengths: &[usize], ends: f64) {
    let mut values = Vec::new();
    for length in lengths {
        values.push(*length as f64);
    }
    let draws = Draws { values: &values, inflation: 1.0 };
    draws.assert_mean(what, 1.0 / ends, (1.0 - ends).sqrt() / ends);
    for length in 1..=6 {
        let share = (1.0 - ends).powi(length - 1) * ends;
        let such = shares(lengths.iter().map(|it| *it == length as usize));
        // Fewer than ten are no normal deviate.
        if share * lengths.len() as f64 >= 10.0 {
            Draws { values: &such, inflation: 1.0 }.assert_share(what, share);
        }
    }
}

#[test]
fn losses_have_their_ratio_and_their_correlation_and_come_in_geometric_bursts() {
    for ratio in [0.01, 0.1, 0.5] {
        for correlation in CORRELATIONS {
            for seed in 0..SEEDS {
                let model = GilbertElliott::correlated(ratio, correlation);
                let config =
                    LinkConfig::unlimited(DELAY).with_loss(LossModel::GilbertElliott(model));
                let arrived = arrivals(&config, seed);
                let lost: Vec<bool> = arrived.iter().map(Option::is_none).collect();
                let all = shares(lost.iter().copied());
                let draws = Draws { values: &all, inflation: of_one(correlation) };
                draws.assert_share("ratio", ratio);
                let both = shares(lost.windows(2).map(|pair| pair[0] && pair[1]));
                let expected = ratio * (ratio + correlation * (1.0 - ratio));
                let draws = Draws { values: &both, inflation: of_two(correlation) };
                draws.assert_share("both lost", expected);
                let leave = 1.0 - correlation;
                assert_geometric("burst", &runs(&lost, true), (1.0 - ratio) * leave);
                assert_geometric("gap", &runs(&lost, false), ratio * leave);
            }
        }
    }
}

/// A bucket of tokens in bits, as tc's tbf: full at the start, it fills at the rate, and a packet
/// leaves when it holds enough for it.
struct Bucket {
    rate: f64,
    size: f64,
    tokens: f64,
    /// When it held them.
    at: f64,
}

impl Bucket {
    /// When a packet leaves that is at the head of the queue at `now`, in seconds.
    fn pass(&mut self, now: f64, bits: f64) -> f64 {
        let now = now.max(self.at);
        self.tokens = (self.tokens + (now - self.at) * self.rate).min(self.size);
        let leaves = now + ((bits - self.tokens) / self.rate).max(0.0);
        self.tokens += (leaves - now) * self.rate - bits;
        self.at = leaves;
        leaves
    }
}

#[test]
fn a_bucket_passes_what_tokens_there_are_and_never_more() {
    let mut stream = Seed::new(5).stream("arrivals");
    for (kbps, burst) in [(10, 1_500), (1_000, 10_000), (1_000, 1_500), (100_000, 300_000)] {
        let (rate, size) = (Bitrate::from_kbps(kbps), DataSize::from_bytes(burst));
        let capacity = Capacity::Schedule(Schedule::constant(rate).unwrap());
        let config = LinkConfig::unlimited(TimeDelta::ZERO).with_capacity(capacity);
        let mut link = Bottleneck::new(&config.with_burst(Some(size)), Seed::new(1), "up");
        let bits = size.as_bits() as f64;
        let mut bucket = Bucket { rate: rate.as_bps_f64(), size: bits, tokens: bits, at: 0.0 };
        let (mut now, mut expected) = (Timestamp::ZERO, Vec::new());
        let mut left = Vec::new();
        for packet in 0..5_000 {
            // Three in ten packets come after a pause that lets the bucket fill, more or less.
            if stream.chance(0.3) {
                now += (size / rate) * (2.0 * stream.uniform());
            }
            let length = 40 + (1_461.0 * stream.uniform()) as u64;
            expected.push(bucket.pass(now.as_secs_f64(), length as f64 * 8.0));
            while let Some(Outcome::Delivered(delivery)) = link.poll(now) {
                left.push(delivery.due.as_secs_f64());
            }
            link.enqueue(now, Header::new(DataSize::from_bytes(length)), packet);
        }
        while let Some(Outcome::Delivered(delivery)) = link.poll(Timestamp::from_secs(100_000)) {
            left.push(delivery.due.as_secs_f64());
        }
        assert_eq!(left.len(), expected.len());
        // Tokens are bytes, and times are nanoseconds.
        let of_byte = 8.0 / rate.as_bps_f64() + 1e-9 * expected.len() as f64;
        for (left, expected) in left.into_iter().zip(expected) {
            let off = (left - expected).abs();
            assert!(off <= of_byte, "{kbps} kbit/s: {left}, not {expected}");
        }
    }
}
