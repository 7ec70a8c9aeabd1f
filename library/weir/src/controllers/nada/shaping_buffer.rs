//! Rate-shaping buffer: the queue between encoder and network. Its length splits the reference rate
//! into a lower video target rate `r_vin` and a higher sending rate `r_send` [NADA §5.2.2].

use super::parameters::Parameters;
use crate::controller::RateLimits;
use crate::units::{Bitrate, DataSize};

/// Largest adjustment of either rate, as a share of `r_ref` [NADA §5.2.2].
const ADJUSTMENT_MAX: f64 = 0.05;

/// `buffer_len`: the length of the pacer's queue.
#[derive(Clone, Debug, Default)]
pub(super) struct ShapingBuffer {
    length: DataSize,
}

impl ShapingBuffer {
    pub(super) fn set_length(&mut self, length: DataSize) {
        self.length = length;
    }

    /// `r_vin`: video target rate calculator.
    pub(super) fn video_rate(
        &self,
        r_ref: Bitrate,
        limits: &RateLimits,
        p: &Parameters,
    ) -> Bitrate {
        limits.clamp(r_ref.saturating_sub(self.adjustment(r_ref, p.beta_v, p)))
    }

    /// `r_send`: sending rate calculator.
    pub(super) fn sending_rate(
        &self,
        r_ref: Bitrate,
        limits: &RateLimits,
        p: &Parameters,
    ) -> Bitrate {
        limits.clamp(r_ref + self.adjustment(r_ref, p.beta_s, p))
    }

    /// Adjustment of a rate, `r_diff_v` or `r_diff_s`.
    fn adjustment(&self, r_ref: Bitrate, beta: f64, p: &Parameters) -> Bitrate {
        let by_length = Bitrate::from_bps_f64(beta * self.length.as_bits() as f64 * p.fps);
        by_length.min(r_ref * ADJUSTMENT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }
    /// `r_vin` and `r_send`.
    fn rates(buffer_bytes: u64, r_ref: u64) -> (Bitrate, Bitrate) {
        let limits = RateLimits::new(kbps(150), kbps(300), kbps(1500)).unwrap();
        let mut buffer = ShapingBuffer::default();
        buffer.set_length(DataSize::from_bytes(buffer_bytes));
        let p = Parameters::DEFAULT;
        (buffer.video_rate(kbps(r_ref), &limits, &p), buffer.sending_rate(kbps(r_ref), &limits, &p))
    }

    // [NADA §5.2.2]
    #[test]
    fn an_empty_buffer_leaves_both_rates_at_the_reference_rate() {
        assert_eq!(rates(0, 1000), (kbps(1000), kbps(1000)));
    }

    // [NADA §5.2.2]: 0.1 * 8 * 2000 * 30 = 48 kbit/s.
    #[test]
    fn two_thousand_bytes_move_the_rates_by_48_kbps() {
        assert_eq!(rates(2000, 1000), (kbps(952), kbps(1048)));
    }

    // [NADA §5.2.2]
    #[test]
    fn a_long_buffer_moves_the_rates_by_at_most_5_percent() {
        assert_eq!(rates(1_000_000, 1000), (kbps(950), kbps(1050)));
    }

    // [NADA §5.2.2]
    #[test]
    fn both_rates_stay_within_the_limits() {
        assert_eq!(rates(1_000_000, 150).0, kbps(150));
        assert_eq!(rates(1_000_000, 1500).1, kbps(1500));
    }
}
