//! Reno: the window grows by a segment each round trip and is halved at a loss [RFC5681 §3.1].

use weir::units::Timestamp;

use super::{AckEvent, CongestionControl, LEAST_WINDOW, Window};

/// Factor on the window at a loss.
const BETA: f64 = 0.5;

/// Reno. Its only state is the window.
#[derive(Debug)]
pub(crate) struct Reno;

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if !ack.is_window_limited || !ack.has_advanced {
            return;
        }
        let left = window.slow_start(ack.delivered as f64);
        window.congestion += left / window.congestion;
    }

    /// Half of the window. If the sender fills the window, this is half of the data in flight.
    fn on_congestion(&mut self, _: Timestamp, window: &Window) -> f64 {
        libm::floor(window.congestion * BETA).max(LEAST_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ack;
    use super::*;

    // [RFC5681 §3.1]
    #[test]
    fn slow_start_doubles_in_a_round_and_avoidance_adds_one() {
        let mut window = Window::INITIAL;
        for _ in 0..5 {
            Reno.on_ack(&mut window, &ack(0, 2));
        }
        assert_eq!(window.congestion, 20.0);
        window.threshold = 20.0;
        for _ in 0..10 {
            Reno.on_ack(&mut window, &ack(0, 2));
        }
        assert!((20.9..=21.0).contains(&window.congestion), "{}", window.congestion);
    }

    #[test]
    fn a_loss_halves_the_window_but_leaves_two_segments() {
        let at = |congestion| Window { congestion, ..Window::INITIAL };
        assert_eq!(Reno.on_congestion(Timestamp::ZERO, &at(21.9)), 10.0);
        assert_eq!(Reno.on_congestion(Timestamp::ZERO, &at(2.0)), 2.0);
    }

    #[test]
    fn a_window_that_limits_nothing_does_not_grow() {
        let mut window = Window::INITIAL;
        let idle = AckEvent { is_window_limited: false, ..ack(0, 2) };
        Reno.on_ack(&mut window, &idle);
        assert_eq!(window, Window::INITIAL);
    }
}
