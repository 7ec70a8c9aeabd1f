//! The aggregate congestion signal `x_curr`: delay, loss and marking as one equivalent delay
//! [NADA §4.2].
//!
//! ```text
//! x_curr = d_tilde + DMARK * (p_mark / PMRREF)^2 + DLOSS * (p_loss / PLRREF)^2
//! ```

use super::parameters::Parameters;
use crate::controller::Reason;
use crate::units::TimeDelta;

/// NADA-D6: upper bound of `x_curr`. The authors' simulator calls it `XMAX`.
const SIGNAL_MAX: TimeDelta = TimeDelta::from_millis(500);

/// `x_curr`, split into its three terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CongestionSignal {
    /// `d_tilde`: the queuing delay, warped while losses are live.
    pub(super) warped_delay: TimeDelta,
    loss_penalty: TimeDelta,
    marking_penalty: TimeDelta,
}

/// Measurements that the standard assigns to the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measurements {
    /// Queuing delay `d_queue`.
    pub(super) queuing_delay: TimeDelta,
    /// Weight of the warped delay: 1.0 until the last loss expires, then falling to 0.0.
    pub(super) warping_share: f64,
    /// Smoothed loss ratio `p_loss`.
    pub(super) loss_ratio: f64,
    /// Smoothed marking ratio `p_mark`.
    pub(super) marking_ratio: f64,
}

impl CongestionSignal {
    pub(super) fn new(measured: &Measurements, p: &Parameters) -> Self {
        let plain = measured.queuing_delay;
        let share = measured.warping_share;
        Self {
            warped_delay: warp(plain, p) * share + plain * (1.0 - share),
            loss_penalty: p.dloss * square(measured.loss_ratio / p.plrref),
            marking_penalty: p.dmark * square(measured.marking_ratio / p.pmrref),
        }
    }

    /// The aggregate congestion signal `x_curr`.
    pub(super) fn total(&self) -> TimeDelta {
        (self.warped_delay + self.loss_penalty + self.marking_penalty).min(SIGNAL_MAX)
    }

    /// The cause of the largest term. If terms are equal, loss comes before ECN, and ECN before
    /// delay.
    pub(super) fn main_cause(&self) -> Reason {
        if self.loss_penalty >= self.warped_delay.max(self.marking_penalty) {
            Reason::Loss
        } else if self.marking_penalty >= self.warped_delay {
            Reason::Ecn
        } else {
            Reason::QueuingDelay
        }
    }
}

/// Warping [NADA §4.2]: above `QTH`, a longer queuing delay counts for less. A flow that sees
/// losses from a full drop-tail queue then reacts to loss instead of delay, so it can compete with
/// loss-based flows.
fn warp(queuing_delay: TimeDelta, p: &Parameters) -> TimeDelta {
    if queuing_delay < p.qth {
        return queuing_delay;
    }
    p.qth * libm::exp(-p.lambda * ((queuing_delay - p.qth) / p.qth))
}

fn square(value: f64) -> f64 {
    value * value
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Parameters = Parameters::DEFAULT;
    const QUIET: Measurements = Measurements {
        queuing_delay: TimeDelta::ZERO,
        warping_share: 0.0,
        loss_ratio: 0.0,
        marking_ratio: 0.0,
    };

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }
    fn total(measured: Measurements) -> TimeDelta {
        CongestionSignal::new(&measured, &P).total()
    }

    // [NADA §4.2]
    #[test]
    fn the_penalties_grow_with_the_square_of_the_ratios() {
        assert_eq!(total(Measurements { loss_ratio: 0.01, ..QUIET }), ms(10));
        assert_eq!(total(Measurements { loss_ratio: 0.05, ..QUIET }), ms(250));
        assert_eq!(total(Measurements { marking_ratio: 0.01, ..QUIET }), ms(2));
        assert_eq!(total(Measurements { marking_ratio: 0.1, ..QUIET }), ms(200));
    }

    // [NADA §4.2]
    #[test]
    fn delay_loss_and_marks_add_up() {
        let measured = Measurements {
            queuing_delay: ms(30),
            warping_share: 1.0,
            loss_ratio: 0.02,
            marking_ratio: 0.01,
        };
        assert_eq!(total(measured), ms(30 + 40 + 2));
    }

    // [NADA §4.2]
    #[test]
    fn warping_starts_at_50_ms_and_falls_by_e_each_100_ms() {
        for (delay, warped) in [(0, 0), (49, 49), (50, 50)] {
            assert_eq!(warp(ms(delay), &P), ms(warped));
        }
        // Exact to the nanosecond: 50 ms * exp(-1) and 50 ms * exp(-2).
        assert_eq!(warp(ms(150), &P), TimeDelta::from_nanos(18_393_972));
        assert_eq!(warp(ms(250), &P), TimeDelta::from_nanos(6_766_764));
    }

    // [NADA §4.2]
    #[test]
    fn an_expired_loss_leaves_the_delay_as_it_is_and_a_fading_one_half_of_it() {
        let measured = Measurements { queuing_delay: ms(150), ..QUIET };
        assert_eq!(total(measured), ms(150));
        let half = total(Measurements { warping_share: 0.5, ..measured });
        assert_eq!(half, TimeDelta::from_nanos((18_393_972 + 150_000_000) / 2));
    }

    // NADA-D6
    #[test]
    fn the_signal_is_at_most_500_ms() {
        assert_eq!(total(Measurements { loss_ratio: 1.0, ..QUIET }), SIGNAL_MAX);
        assert_eq!(total(Measurements { queuing_delay: TimeDelta::MAX, ..QUIET }), SIGNAL_MAX);
    }

    #[test]
    fn the_largest_part_is_the_cause() {
        let cause = |measured| CongestionSignal::new(&measured, &P).main_cause();
        let delayed = Measurements { queuing_delay: ms(20), ..QUIET };
        assert_eq!(cause(delayed), Reason::QueuingDelay);
        assert_eq!(cause(Measurements { loss_ratio: 0.02, ..delayed }), Reason::Loss);
        assert_eq!(cause(Measurements { marking_ratio: 0.04, ..delayed }), Reason::Ecn);
    }
}
