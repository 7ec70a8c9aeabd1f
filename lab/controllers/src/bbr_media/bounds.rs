//! What losses say: the long-term and the short-term bounds of the model [BBR3 §5.5.10].

use crate::measure::{PACKET, Round};
use weir::units::{Bitrate, DataSize};

// Parameters [BBR3 §2].
/// `LossThresh`: loss ratio of a round above which a probe was too much.
const LOSS_THRESHOLD: f64 = 0.02;
/// `BBRStartupFullLossCnt`: losses in a round of the start that show a full pipe.
const STARTUP_LOSSES: u64 = 6;
/// `Beta`: what a bound keeps after a loss.
const BETA: f64 = 0.7;
/// `Headroom`: share of `inflight_longterm` that a cruise leaves to others.
const HEADROOM: f64 = 0.15;

/// `inflight_longterm`, `bw_shortterm` and `inflight_shortterm`; `None` while there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    long_term: Option<DataSize>,
    short_rate: Option<Bitrate>,
    short_term: Option<DataSize>,
    /// Packets by which a probe raises `inflight_longterm` in its next round.
    step: u64,
}

impl Bounds {
    /// Whether the losses of a probe's round are too many.
    pub(super) fn is_too_much(round: &Round) -> bool {
        round.lost > 0 && round.loss_ratio > LOSS_THRESHOLD
    }

    /// Whether the losses of a round of the start show a full pipe.
    pub(super) fn fills_the_pipe(round: &Round) -> bool {
        round.lost >= STARTUP_LOSSES && Self::is_too_much(round)
    }

    /// A probe lost too much: what was in flight is the bound, at least `Beta` times the product.
    pub(super) fn probe_failed(&mut self, round: &Round, product: DataSize) {
        self.long_term = Some(round.max_in_flight.max(product * BETA));
    }

    /// Losses outside of probes.
    pub(super) fn on_loss(&mut self, round: &Round, rate: Bitrate) {
        let before = self.short_rate.unwrap_or(rate);
        self.short_rate = Some(round.rate.max(before * BETA));
        let before = self.short_term.unwrap_or(round.max_in_flight);
        self.short_term = Some(round.max_in_flight.max(before * BETA));
    }

    /// A probe begins: what short-term losses said does not count any more.
    pub(super) fn refill(&mut self) {
        (self.short_rate, self.short_term, self.step) = (None, None, 1);
    }

    /// A round of a probe without too many losses: the bound rises, twice as fast each round.
    pub(super) fn raise(&mut self) {
        if let Some(bound) = &mut self.long_term {
            *bound += PACKET * self.step as f64;
            self.step = (self.step * 2).min(1 << 10);
        }
    }

    /// The rate, at most `bw_shortterm`.
    pub(super) fn cap_rate(&self, rate: Bitrate) -> Bitrate {
        self.short_rate.map_or(rate, |bound| rate.min(bound))
    }

    /// The bytes in flight that the bounds allow; `cruises` leaves headroom.
    pub(super) fn cap_flight(&self, bytes: DataSize, cruises: bool) -> DataSize {
        let share = if cruises { 1.0 - HEADROOM } else { 1.0 };
        let long = self.long_term.map_or(bytes, |bound| bytes.min(bound * share));
        self.short_term.map_or(long, |bound| long.min(bound))
    }

    pub(super) fn long_term(&self) -> Option<DataSize> {
        self.long_term
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(kbps: u64, loss_ratio: f64, lost: u64, in_flight: u64) -> Round {
        let rate = Bitrate::from_kbps(kbps);
        let max_in_flight = DataSize::from_bytes(in_flight);
        Round { rate, sent: rate, loss_ratio, lost, max_in_flight }
    }

    // [BBR3 §5.5.10]
    #[test]
    fn two_percent_lost_are_too_much_for_a_probe_six_packets_for_the_start() {
        assert!(!Bounds::is_too_much(&round(500, 0.02, 1, 0)));
        assert!(Bounds::is_too_much(&round(500, 0.03, 1, 0)));
        assert!(!Bounds::fills_the_pipe(&round(500, 0.03, 5, 0)));
        assert!(Bounds::fills_the_pipe(&round(500, 0.03, 6, 0)));
    }

    // [BBR3 §5.5.10]
    #[test]
    fn losses_outside_of_probes_bound_the_rate_until_the_next_probe() {
        let mut bounds = Bounds::default();
        let rate = Bitrate::from_kbps(1_000);
        bounds.on_loss(&round(600, 0.5, 9, 9_000), rate);
        assert_eq!(bounds.cap_rate(rate), Bitrate::from_kbps(700), "at most 30 % less");
        bounds.on_loss(&round(650, 0.1, 9, 9_000), rate);
        assert_eq!(bounds.cap_rate(rate), Bitrate::from_kbps(650), "what was delivered");
        bounds.refill();
        assert_eq!(bounds.cap_rate(rate), rate);
    }

    // [BBR3 §5.5.10]
    #[test]
    fn a_probe_that_failed_bounds_the_flight_and_later_probes_raise_the_bound() {
        let mut bounds = Bounds::default();
        let bytes = DataSize::from_bytes;
        bounds.probe_failed(&round(500, 0.1, 9, 10_000), bytes(8_000));
        assert_eq!(bounds.cap_flight(bytes(50_000), false), bytes(10_000));
        assert_eq!(bounds.cap_flight(bytes(50_000), true), bytes(8_500));
        bounds.refill();
        for _ in 0..3 {
            bounds.raise();
        }
        assert_eq!(bounds.long_term(), Some(bytes(10_000 + 7 * 1_200)));
    }
}
