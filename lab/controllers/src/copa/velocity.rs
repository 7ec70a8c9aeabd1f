//! Velocity: how fast the window moves while its direction stays the same [COPA §2.1].

use weir::units::{TimeDelta, Timestamp};

/// Round trips in the same direction before the velocity doubles [COPA §2.1].
const SAME_ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// `v`, updated once per round trip.
#[derive(Clone, Debug)]
pub(super) struct Velocity {
    value: f64,
    direction: Option<Direction>,
    same: u32,
    round_start: Timestamp,
    window_at_start: f64,
}

impl Velocity {
    pub(super) fn new() -> Self {
        Self {
            value: 1.0,
            direction: None,
            same: 0,
            round_start: Timestamp::ZERO,
            window_at_start: 0.0,
        }
    }

    /// Compares the window, in packets, with that of a round trip ago. COPA-D4: the velocity is at
    /// most what doubles the window in a round trip.
    pub(super) fn update(&mut self, now: Timestamp, rtt: TimeDelta, window: f64, delta: f64) {
        if now - self.round_start < rtt {
            return;
        }
        let direction = if window > self.window_at_start { Direction::Up } else { Direction::Down };
        if self.direction == Some(direction) {
            self.same += 1;
            if self.same >= SAME_ROUNDS {
                self.value *= 2.0;
            }
        } else {
            self.reset();
        }
        self.direction = Some(direction);
        self.value = self.value.min((window * delta).max(1.0));
        (self.round_start, self.window_at_start) = (now, window);
    }

    pub(super) fn reset(&mut self) {
        (self.value, self.same, self.direction) = (1.0, 0, None);
    }

    pub(super) fn value(&self) -> f64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `v` after round trips with these windows.
    fn velocities(windows: &[f64]) -> Vec<f64> {
        let mut velocity = Velocity::new();
        let rtt = TimeDelta::from_millis(100);
        let mut seen = Vec::new();
        for (number, &window) in windows.iter().enumerate() {
            let now = Timestamp::from_millis(1_000 + 100 * number as i64);
            velocity.update(now, rtt, window, 0.5);
            seen.push(velocity.value());
        }
        seen
    }

    // [COPA §2.1]
    #[test]
    fn it_doubles_after_three_round_trips_one_way_and_anew_the_other_way() {
        let windows = [10.0, 11.0, 12.0, 13.0, 15.0, 14.0, 13.0];
        assert_eq!(velocities(&windows), [1.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0]);
    }

    // COPA-D4
    #[test]
    fn it_is_at_most_what_doubles_the_window() {
        assert_eq!(velocities(&[2.0, 2.1, 2.2, 2.3, 2.4, 2.5]).last(), Some(&1.25));
    }
}
