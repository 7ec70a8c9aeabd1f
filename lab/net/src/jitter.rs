//! Delay variation that is not caused by queuing.

use weir::units::{TimeDelta, Timestamp};

use crate::seed::Stream;

/// A source of delay variation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// As in the kernel's netem: each packet's delay changes independently by a uniform amount
    /// within `±amount`. With `reorder` set, packets can overtake each other.
    Uniform {
        /// Largest deviation from the link's delay.
        amount: TimeDelta,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
    /// As in RFC 8868: adds the absolute value of a normal deviate, limited to three standard
    /// deviations [RFC8868 §4.1].
    ///
    /// [RFC8868 §4.1]: https://www.rfc-editor.org/rfc/rfc8868#section-4.1
    HalfNormal {
        /// Standard deviation.
        sd: TimeDelta,
        /// Whether packets may overtake each other (RBPDV) or not (NR-BPDV, which the RFC
        /// requires).
        reorder: bool,
    },
    /// As tc's netem with a distribution or a correlation.
    Netem(NetemJitter),
}

/// Jitter with a distribution and a correlation between packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetemJitter {
    /// Size of the variation: the largest one, or the standard deviation if it is normal.
    pub amount: TimeDelta,
    /// How it is distributed.
    pub distribution: JitterShape,
    /// Correlation of the deviates of successive packets, from 0 up to but not 1. The distribution
    /// stays what it is. netem's has no effect below a second: it makes neighbours of a random
    /// number of 32 bits alike, and then takes its remainder.
    pub correlation: f64,
    /// Whether packets may overtake each other.
    pub reorder: bool,
}

/// How jitter is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterShape {
    /// Evenly within `±amount`.
    #[default]
    Uniform,
    /// Normal, limited to four standard deviations as in iproute2's tables.
    Normal,
    /// Pareto with the shape 3, shifted so that its mean is 0, as in iproute2's tables: from -2/3
    /// of the amount up to 4 times the amount.
    Pareto,
}

/// Limit of netem's deviates: the largest entry of a table over its scale.
const NETEM_CUT: f64 = 4.0;
/// Parameters of iproute2's table of the Pareto distribution: shape, mean, and scale.
const PARETO: (f64, f64, f64) = (3.0, 1.5, 4.0 / 3.0);

/// Share of a standard normal distribution that is above a value.
fn share_above(normal: f64) -> f64 {
    0.5 * libm::erfc(normal / core::f64::consts::SQRT_2)
}

impl JitterShape {
    /// The deviate of a standard normal one, so that their order is the same.
    fn of_normal(self, normal: f64) -> f64 {
        match self {
            Self::Uniform => 1.0 - 2.0 * share_above(normal),
            Self::Normal => normal.clamp(-NETEM_CUT, NETEM_CUT),
            Self::Pareto => {
                let (shape, mean, scale) = PARETO;
                (scale * (libm::pow(share_above(normal), -1.0 / shape) - mean)).min(NETEM_CUT)
            }
        }
    }

    fn least(self) -> f64 {
        match self {
            Self::Uniform => -1.0,
            Self::Normal => -NETEM_CUT,
            Self::Pareto => PARETO.2 * (1.0 - PARETO.1),
        }
    }
}

/// The source of deviates of a link, which remembers the last one.
#[derive(Clone, Debug)]
pub(crate) struct Deviates {
    stream: Stream,
    last: f64,
}

impl Deviates {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, last: 0.0 }
    }

    /// The next normal deviate of a sequence with a correlation between neighbours.
    fn normal(&mut self, correlation: f64) -> f64 {
        let fresh = self.stream.normal();
        let share = libm::sqrt(1.0 - correlation * correlation);
        self.last = if correlation > 0.0 { correlation * self.last + share * fresh } else { fresh };
        self.last
    }
}

/// `N_STD`: limit of the normal deviate, in standard deviations [RFC8868 §4.1].
const CUT: f64 = 3.0;

impl Jitter {
    /// The smallest variation that can be added to a delay; may be negative.
    pub(crate) fn minimum(&self) -> TimeDelta {
        match *self {
            Self::None | Self::HalfNormal { .. } => TimeDelta::ZERO,
            Self::Uniform { amount, .. } => -amount,
            Self::Netem(of) => of.amount * of.distribution.least(),
        }
    }

    pub(crate) fn draw(&self, deviates: &mut Deviates) -> TimeDelta {
        let stream = &mut deviates.stream;
        match *self {
            Self::None => TimeDelta::ZERO,
            Self::Uniform { amount, .. } => amount * (2.0 * stream.uniform() - 1.0),
            Self::HalfNormal { sd, .. } => sd * stream.normal().clamp(-CUT, CUT).abs(),
            Self::Netem(of) => {
                of.amount * of.distribution.of_normal(deviates.normal(of.correlation))
            }
        }
    }

    /// Whether packets may overtake others.
    pub fn may_reorder(&self) -> bool {
        match *self {
            Self::None => false,
            Self::Uniform { reorder, .. }
            | Self::HalfNormal { reorder, .. }
            | Self::Netem(NetemJitter { reorder, .. }) => reorder,
        }
    }
}

/// Keeps packets in order if the jitter may not reorder them. No packet arrives earlier than its
/// predecessor's arrival plus its own transmission time.
///
/// [RFC8868 §4.1, NR-BPDV] adds the transmission time of the predecessor instead. That is the same
/// rule for the arrival of first bits; the times here are those of last bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// Arrival time of the previous packet.
    last: Option<Timestamp>,
}

impl Order {
    /// Returns the arrival time of a packet that would be due at `due` without this rule.
    pub(crate) fn hold(&mut self, due: Timestamp, transmission: TimeDelta) -> Timestamp {
        let due = self.last.map_or(due, |last| due.max(last + transmission));
        self.last = Some(due);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    const SD: TimeDelta = TimeDelta::from_millis(5);

    #[test]
    fn half_normal_jitter_is_never_negative_and_ends_at_three_deviations() {
        let jitter = Jitter::HalfNormal { sd: SD, reorder: false };
        let mut stream = Deviates::new(Seed::new(1).stream("jitter"));
        let draws: Vec<TimeDelta> = (0..10_000).map(|_| jitter.draw(&mut stream)).collect();
        assert!(draws.iter().all(|&x| x >= TimeDelta::ZERO && x <= SD * 3));
        let mean = draws.iter().map(|x| x.as_millis_f64()).sum::<f64>() / draws.len() as f64;
        // The mean of |N(0, sd)| is sd * sqrt(2/pi) = 3.989 ms.
        assert!((mean - 3.989).abs() < 0.05, "{mean}");
    }

    #[test]
    fn uniform_jitter_reaches_both_ends_and_no_further() {
        let amount = TimeDelta::from_millis(80);
        let jitter = Jitter::Uniform { amount, reorder: true };
        let mut stream = Deviates::new(Seed::new(1).stream("jitter"));
        let draws: Vec<TimeDelta> = (0..10_000).map(|_| jitter.draw(&mut stream)).collect();
        assert!(draws.iter().all(|x| x.abs() <= amount));
        assert!(draws.iter().any(|&x| x > amount * 0.99));
        assert!(draws.iter().any(|&x| x < amount * -0.99));
    }

    /// Deviates in ms of an amount of 10 ms.
    fn drawn(distribution: JitterShape, correlation: f64) -> Vec<f64> {
        let amount = TimeDelta::from_millis(10);
        let jitter =
            Jitter::Netem(NetemJitter { amount, distribution, correlation, reorder: true });
        let mut deviates = Deviates::new(Seed::new(3).stream("jitter"));
        let draws: Vec<f64> =
            (0..200_000).map(|_| jitter.draw(&mut deviates).as_millis_f64()).collect();
        assert!(draws.iter().all(|&draw| draw >= jitter.minimum().as_millis_f64() - 1e-6));
        draws
    }

    /// Mean, standard deviation, and the correlation of neighbours.
    fn moments(draws: &[f64]) -> [f64; 3] {
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let together = draws.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
        [mean, variance.sqrt(), together.sum::<f64>() / count / variance]
    }

    /// A mean of correlated deviates is uncertain by 0.1 ms.
    fn assert_near(found: [f64; 3], expected: [f64; 3]) {
        let is_near = (found[0] - expected[0]).abs() < 0.3
            && (found[1] / expected[1] - 1.0).abs() < 0.02
            && (found[2] - expected[2]).abs() < 0.01;
        assert!(is_near, "{found:?}, not {expected:?}");
    }

    #[test]
    fn each_distribution_has_its_moments_whatever_the_correlation() {
        for correlation in [0.0, 0.25, 0.9] {
            let of = |distribution| moments(&drawn(distribution, correlation));
            assert_near(of(JitterShape::Normal), [0.0, 10.0, correlation]);
            // Half of the width over the root of 3. The ranks are correlated a little less.
            let [mean, sd, _] = of(JitterShape::Uniform);
            assert_near([mean, sd, 0.0], [0.0, 10.0 / 3.0_f64.sqrt(), 0.0]);
            // Without the cut: 4/3 times the root of 3/4. With it, the tail of 1 % is shorter.
            let [mean, sd, _] = of(JitterShape::Pareto);
            assert!((-0.6..0.0).contains(&mean) && (7.5..10.0).contains(&sd), "{mean}, {sd}");
        }
        let tail = drawn(JitterShape::Pareto, 0.0);
        let late = tail.iter().filter(|&&draw| draw > 20.0).count() as f64 / tail.len() as f64;
        // (1.5 + 1.5)^-3: the share beyond twice the amount.
        assert!((late - 1.0 / 27.0).abs() < 0.002, "{late}");
        assert!(tail.iter().all(|&draw| draw <= 40.0));
    }

    // [RFC8868 §4.1]
    #[test]
    fn a_held_packet_arrives_its_own_transmission_time_after_its_predecessor() {
        let mut order = Order::default();
        let ms = Timestamp::from_millis;
        assert_eq!(order.hold(ms(100), TimeDelta::from_millis(6)), ms(100));
        assert_eq!(order.hold(ms(90), TimeDelta::from_millis(2)), ms(102));
        assert_eq!(order.hold(ms(150), TimeDelta::from_millis(6)), ms(150));
    }
}
