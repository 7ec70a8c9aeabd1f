//! CUBIC: the window is a cubic function of the time since the last congestion event [RFC9438].

use weir::units::{TimeDelta, Timestamp};

use super::hystart::HyStartPlusPlus;
use super::{AckEvent, CongestionControl, LEAST_WINDOW, Window};

// Parameters [RFC9438 §4].
/// `C`, in segments per second cubed.
const C: f64 = 0.4;
/// `beta_cubic`: factor on the window at a congestion event.
const BETA: f64 = 0.7;
/// `alpha_cubic`: growth of the Reno-friendly estimate in each round trip. With it, the mean window
/// equals Reno's [RFC9438 §4.3].
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Maximum growth of the window in a round trip, as a factor [RFC9438 §4.2].
const MOST_GROWTH: f64 = 1.5;

/// CUBIC. Windows are in segments. Names in backticks are the RFC's.
#[derive(Debug, Default)]
pub(crate) struct Rfc9438 {
    /// As in QUIC stacks: a loss ends slow start, and not HyStart++; a window has any number of
    /// bytes, and not whole segments.
    is_of_quic: bool,
    slow_start: HyStartPlusPlus,
    /// `W_max`: the window at the last congestion event.
    last_maximum: Option<f64>,
    /// `cwnd_prior`: the window before the last reduction.
    prior_window: f64,
    epoch: Option<Epoch>,
    /// Whether the next epoch follows a timeout. Then it starts at its plateau [RFC9438 §4.8].
    after_timeout: bool,
    /// `W_max` and `cwnd_prior` before the last congestion event, for an undo [RFC9438 §4.9].
    before: (Option<f64>, f64),
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// `t_epoch`.
    start: Timestamp,
    /// `K`, in seconds.
    k: f64,
    /// `W_max`, or the window at the start of the stage if that is larger.
    plateau: f64,
    /// `W_est`.
    reno_window: f64,
}

impl Epoch {
    fn new(start: Timestamp, window: f64, last_maximum: Option<f64>) -> Self {
        let plateau = last_maximum.map_or(window, |maximum| maximum.max(window));
        Self { start, k: k(plateau, window), plateau, reno_window: window }
    }

    /// `W_cubic` at `since_start` (Figure 1 of the RFC).
    fn cubic_window(&self, since_start: TimeDelta) -> f64 {
        let t = since_start.as_secs_f64() - self.k;
        C * t * t * t + self.plateau
    }
}

/// `K`: the time to the plateau (Figure 2 of the RFC).
fn k(plateau: f64, window: f64) -> f64 {
    libm::cbrt((plateau - window) / C)
}

impl Rfc9438 {
    /// As QUIC stacks have it.
    pub(crate) fn of_quic() -> Self {
        Self { is_of_quic: true, ..Self::default() }
    }

    /// Congestion avoidance: [RFC9438 §4.2] to [RFC9438 §4.5].
    fn avoid_congestion(&mut self, window: &mut Window, ack: &AckEvent, acknowledged: f64) {
        let cwnd = window.congestion;
        let maximum = if self.after_timeout { None } else { self.last_maximum };
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(ack.now, cwnd, maximum));
        self.after_timeout = false;
        let alpha = if epoch.reno_window >= self.prior_window { 1.0 } else { ALPHA };
        epoch.reno_window += alpha * acknowledged / cwnd;
        let since_start = ack.now - epoch.start;
        if epoch.cubic_window(since_start) < epoch.reno_window {
            window.congestion = cwnd.max(epoch.reno_window);
            return;
        }
        let ahead = epoch.cubic_window(since_start + ack.smoothed_rtt);
        let target = ahead.clamp(cwnd, MOST_GROWTH * cwnd);
        window.congestion += (target - cwnd) / cwnd * acknowledged;
    }
}

impl CongestionControl for Rfc9438 {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        let growth = if self.is_of_quic { 1.0 } else { self.slow_start.on_ack(window, ack) };
        if !ack.is_window_limited || !ack.has_advanced {
            return;
        }
        if window.is_slow_start() {
            let grown = ack.delivered as f64 * growth;
            let left = window.slow_start(grown);
            if left > 0.0 {
                self.avoid_congestion(window, ack, left / growth);
            }
        } else {
            self.avoid_congestion(window, ack, ack.delivered as f64);
        }
    }

    /// Multiplicative decrease [RFC9438 §4.6], with fast convergence [RFC9438 §4.7].
    fn on_congestion(&mut self, _: Timestamp, window: &Window) -> f64 {
        let cwnd = window.congestion;
        self.before = (self.last_maximum, self.prior_window);
        let gives_way = self.last_maximum.is_some_and(|maximum| cwnd < maximum);
        self.last_maximum = Some(if gives_way { cwnd * (1.0 + BETA) / 2.0 } else { cwnd });
        self.prior_window = cwnd;
        self.epoch = None;
        let reduced = cwnd * BETA;
        let whole = if self.is_of_quic { reduced } else { libm::floor(reduced) };
        whole.max(LEAST_WINDOW)
    }

    fn on_timeout(&mut self) {
        self.after_timeout = true;
        self.slow_start = HyStartPlusPlus::default();
    }

    fn on_undo(&mut self) {
        (self.last_maximum, self.prior_window) = self.before;
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{RTT, ack};
    use super::*;

    /// The control and its window after a loss at a window of this many segments.
    fn after_loss(cubic: &mut Rfc9438, congestion: f64) -> Window {
        let before = Window { congestion, threshold: f64::INFINITY };
        let threshold = cubic.on_congestion(Timestamp::ZERO, &before);
        Window { congestion: threshold, threshold }
    }

    /// Acknowledges a full window in each round trip for `secs` seconds. Returns the window at the
    /// end.
    fn grow(cubic: &mut Rfc9438, window: &mut Window, from_ms: i64, secs: f64) -> f64 {
        let mut ms = from_ms as f64;
        while ms < from_ms as f64 + secs * 1e3 {
            cubic.on_ack(window, &ack(ms as i64, 1));
            ms += RTT.as_millis_f64() / window.congestion;
        }
        window.congestion
    }

    // [RFC9438 §4.2]: from 70 of 100 segments, K = cbrt(30 / 0.4) = 4.217 s.
    #[test]
    fn the_window_is_at_its_maximum_after_k_and_as_far_beyond_after_twice_k() {
        let epoch = Epoch::new(Timestamp::ZERO, 70.0, Some(100.0));
        assert!((epoch.k - 4.217).abs() < 0.001, "{}", epoch.k);
        let at = |secs| libm::round(epoch.cubic_window(TimeDelta::from_secs_f64(secs)));
        assert_eq!([0.0, 4.217, 8.434].map(at), [70.0, 100.0, 130.0]);
        // First concave, then convex.
        assert_eq!([0.87, 7.56].map(at), [85.0, 115.0]);
    }

    #[test]
    fn acknowledgements_follow_the_cubic_function_one_round_trip_ahead() {
        let mut cubic = Rfc9438::default();
        // A window so large that the Reno-friendly estimate stays below the cubic function.
        let mut window = after_loss(&mut cubic, 1_000.0);
        assert_eq!(window.congestion, 700.0);
        let k = k(1_000.0, 700.0);
        let grown = grow(&mut cubic, &mut window, 0, k);
        assert!((995.0..=1_001.0).contains(&grown), "{grown}");
    }

    // [RFC9438 §4.3]
    #[test]
    fn a_small_window_grows_as_reno_would() {
        let mut cubic = Rfc9438::default();
        let mut window = after_loss(&mut cubic, 10.0);
        assert_eq!(window.congestion, 7.0);
        // The estimate grows by 0.529 segments in each round trip, and by one above the window
        // before the loss: 6 rounds to 10, then 14 more. The cubic function alone would reach 10.0
        // after its K of 1.96 s.
        let grown = grow(&mut cubic, &mut window, 0, 2.0);
        assert!((23.0..25.5).contains(&grown), "{grown}");
    }

    // [RFC9438 §4.7]
    #[test]
    fn a_flow_that_lost_before_its_last_maximum_gives_way() {
        let mut cubic = Rfc9438::default();
        after_loss(&mut cubic, 100.0);
        assert_eq!(cubic.last_maximum, Some(100.0));
        after_loss(&mut cubic, 80.0);
        assert_eq!(cubic.last_maximum, Some(80.0 * 0.85));
        after_loss(&mut cubic, 90.0);
        assert_eq!(cubic.last_maximum, Some(90.0));
    }

    // [RFC9438 §4.8]
    #[test]
    fn after_a_timeout_avoidance_starts_on_the_convex_side() {
        let mut cubic = Rfc9438::default();
        after_loss(&mut cubic, 100.0);
        cubic.on_timeout();
        let mut window = Window { congestion: 70.0, threshold: 70.0 };
        cubic.on_ack(&mut window, &ack(0, 1));
        let epoch = cubic.epoch.unwrap();
        assert_eq!((epoch.k, epoch.plateau), (0.0, 70.0));
    }

    // [RFC9438 §4.9]
    #[test]
    fn an_undone_congestion_event_leaves_the_maximum_as_it_was() {
        let mut cubic = Rfc9438::default();
        after_loss(&mut cubic, 100.0);
        after_loss(&mut cubic, 80.0);
        cubic.on_undo();
        assert_eq!(cubic.last_maximum, Some(100.0));
    }

    #[test]
    fn as_in_quic_a_window_is_no_whole_number_and_only_a_loss_ends_slow_start() {
        let odd = Window { congestion: 11.5, ..Window::INITIAL };
        assert_eq!(Rfc9438::default().on_congestion(Timestamp::ZERO, &odd), 8.0);
        assert_eq!(Rfc9438::of_quic().on_congestion(Timestamp::ZERO, &odd), 11.5 * BETA);
        let mut window = Window::INITIAL;
        let mut cubic = Rfc9438::of_quic();
        for round in 0..10 {
            // The round-trip time grows by 30 ms each time.
            let rtt = RTT + TimeDelta::from_millis(30 * round);
            let sent = window.congestion as u64;
            let ack = AckEvent { rtt: Some(rtt), next: 100, ..ack(round * 100, sent) };
            cubic.on_ack(&mut window, &ack);
        }
        assert_eq!(window.congestion, 10.0 * 1_024.0);
    }
}
