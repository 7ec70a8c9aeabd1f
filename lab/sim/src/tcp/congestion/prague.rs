//! Prague: an answer to marks in proportion to their share, for queues of L4S [PRAGUE §2].
//!
//! ```text
//! counted marks -> share of a round -> moving average, alpha --+
//!                                                              v
//! first mark of a round ------------------------> window * (1 - alpha / 2)
//! segments without a mark ----------------------> window + growth / window
//! loss -----------------------------------------> Reno's half
//! ```
//!
//! A round lasts one virtual round-trip time, so that flows with short paths do not take more than
//! others. What it leaves out is PRAGUE-D1 to PRAGUE-D5 (docs/reference/tcp.md).

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::super::segment::MSS;
use super::{AckEvent, CongestionControl, LEAST_WINDOW, Pacing, Window};

// Parameters [PRAGUE §2.3], [PRAGUE §2.4]. Names in backticks are the draft's.
/// `g`: weight of a round in the moving average.
const GAIN: f64 = 1.0 / 16.0;
/// `alpha` before the first mark, so that this mark halves the window [RFC8257 §4.2].
const FIRST_ALPHA: f64 = 1.0;
/// `RTT_virt` is at least this long.
const LEAST_VIRTUAL_RTT: TimeDelta = TimeDelta::from_millis(25);
/// Factor on the window at a loss.
const BETA: f64 = 0.5;
/// Pacing rate over window per round-trip time while slow start doubles the window.
const SLOW_START_PACING: f64 = 2.0;
/// At high rates, a burst is the data of this time [PRAGUE §2.5].
const BURST_TIME: TimeDelta = TimeDelta::from_micros(250);

/// Segments of the current round.
#[derive(Clone, Copy, Debug)]
struct Round {
    end: Timestamp,
    delivered: u64,
    marked: u64,
}

/// The last reduction for a mark: until when it counts, and the window before.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    until: Timestamp,
    window_before: f64,
}

/// Prague. Windows are in segments.
#[derive(Debug)]
pub(super) struct Prague {
    alpha: f64,
    has_seen_mark: bool,
    round: Option<Round>,
    reduction: Option<Reduction>,
    pacing: Option<Pacing>,
}

impl Default for Prague {
    fn default() -> Self {
        Self {
            alpha: FIRST_ALPHA,
            has_seen_mark: false,
            round: None,
            reduction: None,
            pacing: None,
        }
    }
}

/// `RTT_virt`: the round-trip time as which a flow with a shorter one behaves [PRAGUE §2.4].
fn virtual_rtt(ack: &AckEvent) -> TimeDelta {
    ack.smoothed_rtt.max(LEAST_VIRTUAL_RTT)
}

impl Prague {
    /// Reduces the window for marks, at most once in a round [PRAGUE §2.4].
    fn reduce(&mut self, window: &mut Window, ack: &AckEvent) {
        if self.reduction.is_some_and(|last| ack.now < last.until) {
            return;
        }
        let window_before = window.congestion;
        self.reduction = Some(Reduction { until: ack.now + virtual_rtt(ack), window_before });
        // PRAGUE-D4: no window below two segments.
        window.congestion = (window_before * (1.0 - self.alpha / 2.0)).max(LEAST_WINDOW);
        window.threshold = window.congestion;
    }

    /// Adds a segment in a virtual round-trip time to the window that a flow of that round-trip
    /// time would have. Marked segments do not count, and a reduction does not stop the growth
    /// [PRAGUE §2.4].
    fn grow(window: &mut Window, ack: &AckEvent) {
        if !ack.is_window_limited || !ack.has_advanced {
            return;
        }
        let unmarked = ack.delivered.saturating_sub(ack.marked) as f64;
        let left = window.slow_start(unmarked);
        let shorter = ack.smoothed_rtt.as_secs_f64() / virtual_rtt(ack).as_secs_f64();
        window.congestion += left * shorter * shorter / window.congestion;
    }

    /// Paces the window over a round-trip time [PRAGUE §2.5].
    fn pace(&mut self, window: &Window, ack: &AckEvent) {
        if ack.smoothed_rtt <= TimeDelta::ZERO {
            return;
        }
        let gain = if window.is_slow_start() { SLOW_START_PACING } else { 1.0 };
        let in_flight = window.congestion.max(ack.in_flight as f64);
        let data = DataSize::from_bytes(libm::round(in_flight * gain * MSS as f64) as u64);
        let rate = data / ack.smoothed_rtt;
        let burst = (rate * BURST_TIME).as_bytes() / MSS;
        self.pacing = Some(Pacing { rate, burst: burst.max(1) });
    }
}

impl CongestionControl for Prague {
    /// Updates `alpha` at the end of a round [PRAGUE §2.3], [RFC8257 §3.3].
    fn count_marks(&mut self, ack: &AckEvent) {
        self.has_seen_mark |= ack.marked > 0;
        let end = ack.now + virtual_rtt(ack);
        let round = self.round.get_or_insert(Round { end, delivered: 0, marked: 0 });
        round.delivered += ack.delivered;
        round.marked += ack.marked;
        if ack.now < round.end || round.delivered == 0 {
            return;
        }
        // PRAGUE-D3: without a mark so far, the first one finds the highest `alpha`.
        if self.has_seen_mark {
            let share = (round.marked as f64 / round.delivered as f64).min(1.0);
            self.alpha += GAIN * (share - self.alpha);
        }
        self.round = None;
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if ack.marked > 0 {
            self.reduce(window, ack);
        }
        Self::grow(window, ack);
        self.pace(window, ack);
    }

    /// Loss: as Reno, and together with a reduction for marks in the same round no more than that
    /// [PRAGUE §2.4], [RFC9331 §4.3].
    fn on_congestion(&mut self, now: Timestamp, window: &Window) -> f64 {
        let before = match self.reduction {
            Some(Reduction { until, window_before }) if now < until => window_before,
            _ => window.congestion,
        };
        libm::floor(before * BETA).min(window.congestion).max(LEAST_WINDOW)
    }

    fn pacing(&self) -> Option<Pacing> {
        self.pacing
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{RTT, ack};
    use super::*;

    fn at(congestion: f64) -> Window {
        Window { congestion, threshold: congestion }
    }

    fn all_marked(ms: i64) -> AckEvent {
        AckEvent { marked: 2, ..ack(ms, 2) }
    }

    fn answer(prague: &mut Prague, window: &mut Window, ack: &AckEvent) {
        prague.count_marks(ack);
        prague.on_ack(window, ack);
    }

    // [PRAGUE §2.3]
    #[test]
    fn alpha_moves_by_a_sixteenth_to_the_share_of_each_round() {
        let mut prague = Prague::default();
        prague.count_marks(&AckEvent { marked: 2, ..ack(0, 8) });
        assert_eq!(prague.alpha, 1.0);
        prague.count_marks(&ack(100, 2));
        assert_eq!(prague.alpha, 1.0 - 0.8 / 16.0);
    }

    #[test]
    fn alpha_stays_highest_until_the_first_mark_which_halves_the_window() {
        let (mut prague, mut window) = (Prague::default(), Window::INITIAL);
        for round in 0..20 {
            answer(&mut prague, &mut window, &ack(round * 101, 1));
        }
        assert_eq!((prague.alpha, window.congestion), (1.0, 30.0));
        answer(&mut prague, &mut window, &AckEvent { marked: 1, ..ack(2_020, 1) });
        assert_eq!((window.congestion, window.threshold), (15.0, 15.0));
    }

    // [PRAGUE §2.4]
    #[test]
    fn marks_of_one_round_reduce_the_window_once_by_half_of_alpha() {
        let mut prague = Prague { alpha: 0.2, ..Prague::default() };
        let mut window = at(100.0);
        prague.on_ack(&mut window, &all_marked(0));
        prague.on_ack(&mut window, &all_marked(99));
        assert_eq!(window.congestion, 90.0);
        prague.on_ack(&mut window, &all_marked(100));
        assert_eq!(window.congestion, 81.0);
    }

    /// Growth of a window of 1000 segments in 25 ms of such round trips.
    fn growth_in_25_ms(rtt_ms: i64) -> f64 {
        let mut window = at(1_000.0);
        let smoothed_rtt = TimeDelta::from_millis(rtt_ms);
        let delivered = 25_000 / rtt_ms as u64;
        Prague::grow(&mut window, &AckEvent { smoothed_rtt, ..ack(0, delivered) });
        window.congestion - 1_000.0
    }

    // [PRAGUE §2.4]
    #[test]
    fn a_short_round_trip_adds_in_a_virtual_one_what_keeps_the_rates_equal() {
        assert!((growth_in_25_ms(25) - 1.0).abs() < 1e-9);
        // The window of a fifth of the round trip is a fifth, and so is its growth.
        assert!((growth_in_25_ms(5) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn marked_segments_do_not_grow_the_window() {
        let mut window = at(10.0);
        Prague::grow(&mut window, &AckEvent { marked: 2, ..ack(0, 2) });
        assert_eq!(window.congestion, 10.0);
    }

    // [RFC9331 §4.3]
    #[test]
    fn a_loss_halves_the_window_and_counts_the_marks_of_its_round() {
        let mut prague = Prague { alpha: 0.2, ..Prague::default() };
        assert_eq!(prague.on_congestion(Timestamp::ZERO, &at(100.0)), 50.0);
        let mut window = at(100.0);
        prague.on_ack(&mut window, &AckEvent { marked: 1, ..ack(0, 1) });
        assert_eq!(window.congestion, 90.0);
        assert_eq!(prague.on_congestion(Timestamp::from_millis(50), &window), 50.0);
        assert_eq!(prague.on_congestion(Timestamp::from_millis(150), &window), 45.0);
    }

    fn rate(window: Window) -> weir::units::Bitrate {
        let mut prague = Prague::default();
        prague.pace(&window, &ack(0, 1));
        prague.pacing.unwrap().rate
    }

    // [PRAGUE §2.5]
    #[test]
    fn the_window_is_paced_over_a_round_trip_and_twice_as_fast_in_slow_start() {
        let one = DataSize::from_bytes(20 * MSS) / RTT;
        assert_eq!(rate(at(20.0)), one);
        assert_eq!(rate(Window { congestion: 20.0, ..Window::INITIAL }), one * 2.0);
    }
}
