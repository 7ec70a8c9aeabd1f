//! Congestion window: how many bytes may be in flight.
//!
//! Implements [SCREAM §4.1.2.1], [SCREAM §4.1.2.2] and [SCREAM §4.1.2.7]. Departs from them in
//! SCREAM-D1 (initial window).

use super::congestion_events::Congestion;
use crate::controllers::scream_common::{Acknowledgement, INITIAL_RTT, MSS, RTT_MAX};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [SCREAM §4.1.1.1].
/// `MIN_CWND`: minimum congestion window, bytes.
const MIN_CWND: f64 = 3000.0;
/// `GAIN`: growth per round trip, in segments, at zero queuing delay.
const GAIN: f64 = 1.0;
/// `MAX_BYTES_IN_FLIGHT_HEAD_ROOM`: limit of the window, relative to the recent maximum of bytes in
/// flight.
const MAX_BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.1;
/// `QDELAY_TREND_TH`: delay trend at which fast increase ends.
const QDELAY_TREND_TH: f64 = 0.2;
/// `QDELAY_TREND_LO`: delay trend below which fast increase may resume.
const QDELAY_TREND_LO: f64 = 0.2;
/// `T_RESUME_FAST_INCREASE`: how long the trend must stay below `QDELAY_TREND_LO`.
const T_RESUME_FAST_INCREASE: TimeDelta = TimeDelta::from_secs(5);
// Parameters of [SCREAM §4.1.2.2] that the RFC does not name.
/// In fast increase, the window may grow if it is below this multiple of the bytes in flight.
const FAST_INCREASE_USE: f64 = 1.5;
/// The same multiple outside fast increase.
const NORMAL_USE: f64 = 1.25;

/// Growth mode of the window, `in_fast_increase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The window grows by the acknowledged bytes.
    FastIncrease,
    /// The window follows the queuing delay.
    Normal,
}

/// Events that may change the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// A congestion event [SCREAM §4.1.2.1].
    Congestion,
    /// The trend reached `QDELAY_TREND_TH` [SCREAM §4.1.2.2].
    Trend,
    /// The trend stayed low for `T_RESUME_FAST_INCREASE` [SCREAM §4.1.2.7].
    Abated,
}

impl Mode {
    fn next(self, signal: Signal) -> Self {
        match (self, signal) {
            (_, Signal::Congestion | Signal::Trend) => Self::Normal,
            (_, Signal::Abated) => Self::FastIncrease,
        }
    }
}

/// Delay signals at an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DelaySignals {
    /// Queuing delay relative to its target, `qdelay / qdelay_target`.
    pub fraction: f64,
    /// Trend of the queuing delay, `qdelay_trend`.
    pub trend: f64,
}

/// `cwnd` and its growth mode.
#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    /// `cwnd` in bytes. It is fractional because an acknowledgement may add less than a byte.
    cwnd: f64,
    mode: Mode,
    /// When the trend was last high; initially, the time of the first acknowledgement.
    trend_high_at: Option<Timestamp>,
}

impl CongestionWindow {
    /// The initial window of a flow with this start bitrate.
    pub fn new(start: Bitrate) -> Self {
        // SCREAM-D1: an initial window of `MIN_CWND` would keep the flow below the start bitrate
        // for the first round trips.
        let cwnd = (start * INITIAL_RTT).as_bytes() as f64;
        Self { cwnd: cwnd.max(MIN_CWND), mode: Mode::FastIncrease, trend_high_at: None }
    }

    /// Backs off at a congestion event [SCREAM §4.1.2.1].
    pub fn on_congestion(&mut self, congestion: Congestion) {
        self.mode = self.mode.next(Signal::Congestion);
        self.cwnd = (self.cwnd * congestion.window_factor()).max(MIN_CWND);
    }

    /// Takes an acknowledgement without congestion event [SCREAM §4.1.2.2]. `in_flight` is what
    /// remains in flight after it; `max_in_flight` is the recent maximum.
    pub fn on_acknowledged(
        &mut self,
        now: Timestamp,
        ack: &Acknowledgement,
        delay: DelaySignals,
        in_flight: DataSize,
        max_in_flight: DataSize,
    ) {
        let newly_acked = ack.newly_acked.as_bytes() as f64;
        let in_flight = in_flight.as_bytes() as f64;
        if self.mode == Mode::FastIncrease && delay.trend >= QDELAY_TREND_TH {
            self.mode = self.mode.next(Signal::Trend);
        }
        match self.mode {
            Mode::FastIncrease => {
                if FAST_INCREASE_USE * in_flight + newly_acked > self.cwnd {
                    self.cwnd += newly_acked;
                }
            }
            Mode::Normal => {
                let off_target = 1.0 - delay.fraction;
                let used = NORMAL_USE * in_flight + newly_acked > self.cwnd;
                if off_target <= 0.0 || used {
                    self.cwnd += GAIN * off_target * newly_acked * MSS / self.cwnd;
                }
                let limit = MAX_BYTES_IN_FLIGHT_HEAD_ROOM * max_in_flight.as_bytes() as f64;
                self.cwnd = self.cwnd.min(limit).max(MIN_CWND);
            }
        }
        self.resume_fast_increase(now, delay.trend);
    }

    /// [SCREAM §4.1.2.7]: only the trend counts. After a loss without a queue, fast increase
    /// resumes at the next acknowledgement.
    fn resume_fast_increase(&mut self, now: Timestamp, trend: f64) {
        let since = *self.trend_high_at.get_or_insert(now);
        if trend >= QDELAY_TREND_LO {
            self.trend_high_at = Some(now);
        } else if self.mode == Mode::Normal && now - since >= T_RESUME_FAST_INCREASE {
            self.mode = self.mode.next(Signal::Abated);
        }
    }

    /// Scales the window when the coupled flows assign a new share of their rate.
    pub fn scale(&mut self, factor: f64) {
        self.cwnd = (self.cwnd * factor).max(MIN_CWND);
    }

    /// Lowers the window to what this bitrate can need over any round-trip time, if it is larger.
    pub fn limit(&mut self, max: Bitrate) {
        let most = (max * RTT_MAX).as_bytes() as f64;
        self.cwnd = self.cwnd.min(most.max(MIN_CWND));
    }

    /// The size of the window, `cwnd`.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.cwnd as u64)
    }

    /// Whether the window is in fast increase.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: DelaySignals = DelaySignals { fraction: 0.0, trend: 0.0 };

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn window(cwnd: f64, mode: Mode) -> CongestionWindow {
        CongestionWindow { cwnd, mode, trend_high_at: None }
    }

    /// Returns the window after an acknowledgement of 1000 bytes at 1 s.
    fn acknowledged(cwnd: f64, mode: Mode, delay: DelaySignals, flight: u64, max: u64) -> f64 {
        let mut window = window(cwnd, mode);
        let ack = Acknowledgement { newly_acked: bytes(1000), ..Acknowledgement::default() };
        window.on_acknowledged(at(1), &ack, delay, bytes(flight), bytes(max));
        window.cwnd
    }

    // [SCREAM §4.1.2.1], [SCREAM §4.1.2.2], [SCREAM §4.1.2.7]
    #[test]
    fn congestion_and_trend_end_fast_increase_and_calm_resumes_it() {
        for mode in [Mode::FastIncrease, Mode::Normal] {
            assert_eq!(mode.next(Signal::Congestion), Mode::Normal);
            assert_eq!(mode.next(Signal::Trend), Mode::Normal);
            assert_eq!(mode.next(Signal::Abated), Mode::FastIncrease);
        }
    }

    // [SCREAM §4.1.1.1], SCREAM-D1
    #[test]
    fn the_first_window_carries_the_start_over_333_ms_and_3000_bytes_or_more() {
        assert_eq!(CongestionWindow::new(Bitrate::from_kbps(300)).size(), bytes(12_487));
        assert_eq!(CongestionWindow::new(Bitrate::from_kbps(50)).size(), bytes(3_000));
    }

    // [SCREAM §4.1.2.1]
    #[test]
    fn an_event_or_a_share_scales_the_window_down_to_3000_bytes_at_least() {
        let mut shared = window(10_000.0, Mode::Normal);
        shared.scale(0.4);
        assert_eq!(shared.size(), bytes(4_000));
        shared.scale(0.4);
        assert_eq!(shared.size(), bytes(3_000));
        let after = |cwnd, congestion| {
            let mut window = window(cwnd, Mode::FastIncrease);
            window.on_congestion(congestion);
            (window.cwnd, window.mode)
        };
        assert_eq!(after(10_000.0, Congestion::Loss), (8_000.0, Mode::Normal));
        assert_eq!(after(10_000.0, Congestion::Ecn), (9_000.0, Mode::Normal));
        assert_eq!(after(3_100.0, Congestion::Loss), (3_000.0, Mode::Normal));
    }

    // [SCREAM §4.1.2.2]
    #[test]
    fn fast_increase_adds_what_is_acknowledged_if_the_window_is_used() {
        let fast = |flight| acknowledged(10_000.0, Mode::FastIncrease, CALM, flight, 99_999);
        assert_eq!(fast(6_001), 11_000.0);
        assert_eq!(fast(6_000), 10_000.0);
    }

    // [SCREAM §4.1.2.2]
    #[test]
    fn fast_increase_ends_at_a_trend_of_0_2_and_the_delay_decides_at_once() {
        let delay = DelaySignals { fraction: 0.5, trend: 0.2 };
        assert_eq!(acknowledged(10_000.0, Mode::FastIncrease, delay, 9_000, 99_999), 10_050.0);
    }

    // [SCREAM §4.1.2.2]
    #[test]
    fn growth_is_a_segment_a_round_trip_by_the_distance_from_the_target() {
        let normal = |fraction, flight| {
            let delay = DelaySignals { fraction, trend: 0.0 };
            acknowledged(10_000.0, Mode::Normal, delay, flight, 99_999)
        };
        assert_eq!(normal(0.0, 9_000), 10_100.0);
        assert_eq!(normal(0.5, 9_000), 10_050.0);
        assert_eq!(normal(1.0, 9_000), 10_000.0);
        assert_eq!(normal(3.0, 9_000), 9_800.0);
        // A window that is not used does not grow, but it may shrink.
        assert_eq!(normal(0.5, 7_200), 10_000.0);
        assert_eq!(normal(0.5, 7_201), 10_050.0);
        assert_eq!(normal(3.0, 0), 9_800.0);
    }

    // [SCREAM §4.1.2.2]
    #[test]
    fn normal_mode_keeps_the_window_within_110_percent_of_the_recent_flight() {
        assert_eq!(acknowledged(10_000.0, Mode::Normal, CALM, 7_000, 8_000), 8_800.0);
        assert_eq!(acknowledged(10_000.0, Mode::Normal, CALM, 0, 0), 3_000.0);
        assert_eq!(acknowledged(10_000.0, Mode::FastIncrease, CALM, 7_000, 8_000), 11_000.0);
    }

    // [SCREAM §4.1.2.7]
    #[test]
    fn fast_increase_resumes_5_s_after_the_last_high_trend() {
        let mut window = window(10_000.0, Mode::FastIncrease);
        let high = DelaySignals { fraction: 0.0, trend: 0.2 };
        let times = [(11, high), (13, high), (17, CALM), (18, CALM)];
        let modes = times.map(|(secs, delay)| {
            window.on_acknowledged(
                at(secs),
                &Acknowledgement::default(),
                delay,
                bytes(0),
                bytes(0),
            );
            window.mode
        });
        assert_eq!(modes, [Mode::Normal, Mode::Normal, Mode::Normal, Mode::FastIncrease]);
        window.on_congestion(Congestion::Loss);
        assert_eq!(window.mode, Mode::Normal);
        window.on_acknowledged(at(18), &Acknowledgement::default(), CALM, bytes(0), bytes(0));
        assert_eq!(window.mode, Mode::FastIncrease, "the trend stayed low");
    }
}
