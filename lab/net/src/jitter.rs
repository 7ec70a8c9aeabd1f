//! Delay variation that is not caused by queuing.

use weir::units::{TimeDelta, Timestamp};

use crate::seed::Stream;

/// A source of delay variation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

/// `N_STD`: limit of the normal deviate, in standard deviations [RFC8868 §4.1].
const CUT: f64 = 3.0;

impl Jitter {
    /// The smallest variation that can be added to a delay; may be negative.
    pub(crate) fn minimum(&self) -> TimeDelta {
        match *self {
            Self::None | Self::HalfNormal { .. } => TimeDelta::ZERO,
            Self::Uniform { amount, .. } => -amount,
        }
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> TimeDelta {
        match *self {
            Self::None => TimeDelta::ZERO,
            Self::Uniform { amount, .. } => amount * (2.0 * stream.uniform() - 1.0),
            Self::HalfNormal { sd, .. } => sd * stream.normal().clamp(-CUT, CUT).abs(),
        }
    }

    /// Whether packets may overtake others.
    pub fn may_reorder(&self) -> bool {
        match *self {
            Self::None => false,
            Self::Uniform { reorder, .. } | Self::HalfNormal { reorder, .. } => reorder,
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
        let mut stream = Seed::new(1).stream("jitter");
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
        let mut stream = Seed::new(1).stream("jitter");
        let draws: Vec<TimeDelta> = (0..10_000).map(|_| jitter.draw(&mut stream)).collect();
        assert!(draws.iter().all(|x| x.abs() <= amount));
        assert!(draws.iter().any(|&x| x > amount * 0.99));
        assert!(draws.iter().any(|&x| x < amount * -0.99));
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
