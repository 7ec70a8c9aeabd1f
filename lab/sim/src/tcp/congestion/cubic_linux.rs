//! CUBIC as in Linux (`net/ipv4/tcp_cubic.c`): the standard's function in whole segments.
//!
//! It departs from the standard in four points. The window grows by whole segments; the number of
//! acknowledged segments for each is updated at most 32 times a second. The target is the window
//! after one minimum round-trip time, not after a smoothed one. The slope of the Reno-friendly
//! estimate stays the same above the last maximum. Before the first loss the window grows by at
//! least a twentieth in each round trip.

use weir::units::{TimeDelta, Timestamp};

use super::hystart::HyStart;
use super::{AckEvent, CongestionControl, LEAST_WINDOW, Window};

/// `bic_scale`: `C` of the standard, 0.4 segments per second cubed.
const C: f64 = 410.0 / 1_024.0;
/// `beta`: factor on the window at a congestion event.
const BETA: f64 = 717.0 / 1_024.0;
/// `beta_scale`: number of eighths of a window that must be acknowledged for the Reno-friendly
/// estimate to grow by a segment.
const RENO_EIGHTHS: u64 = 15;
/// The growth is computed again after this time, or when the window has changed.
const UPDATE_INTERVAL: TimeDelta = TimeDelta::from_micros(31_250);
/// Acknowledged segments per segment of growth: the maximum before the first loss; the number of
/// windows when the function is flat; the minimum.
const MOST_BEFORE_LOSS: u64 = 20;
const FLAT_WINDOWS: u64 = 100;
const LEAST_COUNT: u64 = 2;

/// CUBIC in whole segments. Names in backticks are Linux's.
#[derive(Debug, Default)]
pub(super) struct CubicLinux {
    slow_start: HyStart,
    /// `last_max_cwnd`; zero before the first loss.
    last_maximum: u64,
    /// `epoch_start`, `bic_K` in seconds, `bic_origin_point`.
    epoch: Option<Epoch>,
    /// `ack_cnt` and `tcp_cwnd`: the Reno-friendly estimate.
    reno_acknowledged: u64,
    reno_window: u64,
    /// `last_cwnd` and `last_time`: window and time of the last computation of `cnt`.
    updated: Option<(u64, Timestamp)>,
    /// `cnt`: acknowledged segments per segment of growth. `snd_cwnd_cnt`: acknowledged segments
    /// since the last growth.
    count: u64,
    acknowledged: u64,
    min_rtt: Option<TimeDelta>,
    before: u64,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Timestamp,
    k: f64,
    origin: u64,
}

impl CubicLinux {
    /// `bictcp_update`.
    fn update(&mut self, now: Timestamp, cwnd: u64, acknowledged: u64) {
        self.reno_acknowledged += acknowledged;
        let is_fresh =
            |(window, at): (u64, Timestamp)| window == cwnd && now - at <= UPDATE_INTERVAL;
        if self.updated.is_some_and(is_fresh) {
            return;
        }
        self.updated = Some((cwnd, now));
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.reno_acknowledged = acknowledged;
                self.reno_window = cwnd;
                let origin = self.last_maximum.max(cwnd);
                let k = libm::cbrt((origin - cwnd) as f64 / C);
                *self.epoch.insert(Epoch { start: now, k, origin })
            }
        };
        let ahead = now - epoch.start + self.min_rtt.unwrap_or_default();
        let t = ahead.as_secs_f64() - epoch.k;
        // The distance from the origin is truncated to whole segments.
        let distance = libm::trunc(C * t * t * t);
        let target = (epoch.origin as f64 + distance) as u64;
        self.count = if target > cwnd { cwnd / (target - cwnd) } else { FLAT_WINDOWS * cwnd };
        if self.last_maximum == 0 {
            self.count = self.count.min(MOST_BEFORE_LOSS);
        }
        self.grow_as_reno(cwnd);
        self.count = self.count.max(LEAST_COUNT);
    }

    fn grow_as_reno(&mut self, cwnd: u64) {
        let per_segment = cwnd * RENO_EIGHTHS / 8;
        while self.reno_acknowledged > per_segment {
            self.reno_acknowledged -= per_segment;
            self.reno_window += 1;
        }
        if self.reno_window > cwnd {
            self.count = self.count.min(cwnd / (self.reno_window - cwnd));
        }
    }

    /// `tcp_cong_avoid_ai`.
    fn grow(&mut self, window: &mut Window, acknowledged: u64) {
        if self.acknowledged >= self.count {
            self.acknowledged = 0;
            window.congestion += 1.0;
        }
        self.acknowledged += acknowledged;
        let grown = self.acknowledged / self.count;
        self.acknowledged -= grown * self.count;
        window.congestion += grown as f64;
    }
}

impl CongestionControl for CubicLinux {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        }
        self.slow_start.on_ack(window, ack);
        if !ack.is_window_limited || !ack.has_advanced {
            return;
        }
        let left = window.slow_start(ack.delivered as f64) as u64;
        if left > 0 {
            self.update(ack.now, window.congestion as u64, left);
            self.grow(window, left);
        }
    }

    fn on_congestion(&mut self, _: Timestamp, window: &Window) -> f64 {
        let cwnd = window.congestion as u64;
        self.before = self.last_maximum;
        let gives_way = cwnd < self.last_maximum;
        self.last_maximum =
            if gives_way { (cwnd as f64 * (1.0 + BETA) / 2.0) as u64 } else { cwnd };
        self.epoch = None;
        libm::floor(window.congestion * BETA).max(LEAST_WINDOW)
    }

    /// Resets all state, including the maximum.
    fn on_timeout(&mut self) {
        *self = Self::default();
    }

    fn on_undo(&mut self) {
        self.last_maximum = self.before;
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ack;
    use super::*;

    /// Acknowledges a full window in each of `count` round trips. Returns the window after each.
    fn rounds(cubic: &mut CubicLinux, window: &mut Window, count: i64) -> Vec<u64> {
        (0..count)
            .map(|round| {
                for _ in 0..window.congestion as u64 / 2 {
                    cubic.on_ack(window, &ack(round * 100, 2));
                }
                window.congestion as u64
            })
            .collect()
    }

    #[test]
    fn before_the_first_loss_a_twentieth_is_added_a_round_trip_at_least() {
        let mut window = Window { congestion: 40.0, threshold: 40.0 };
        let grown = rounds(&mut CubicLinux::default(), &mut window, 3);
        assert_eq!(grown, [42, 44, 46]);
    }

    #[test]
    fn a_small_window_grows_by_eight_fifteenths_of_a_segment_a_round_trip() {
        let mut cubic = CubicLinux::default();
        let mut window = Window { congestion: 20.0, threshold: 20.0 };
        let threshold = cubic.on_congestion(Timestamp::ZERO, &window);
        window = Window { congestion: threshold, threshold };
        assert_eq!(threshold, 14.0);
        let grown = rounds(&mut cubic, &mut window, 10);
        assert!((18..=20).contains(&grown[9]), "{grown:?}");
    }

    #[test]
    fn a_timeout_forgets_the_maximum() {
        let mut cubic = CubicLinux::default();
        cubic.on_congestion(Timestamp::ZERO, &Window { congestion: 50.0, threshold: 50.0 });
        assert_eq!(cubic.last_maximum, 50);
        cubic.on_timeout();
        assert_eq!(cubic.last_maximum, 0);
    }
}
