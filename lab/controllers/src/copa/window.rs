//! The congestion window: towards the target rate, or doubled in slow start [COPA §2.1].

use crate::measure::PACKET;
use weir::units::{DataSize, TimeDelta};

/// What moved the window last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Slow start.
    Double,
    /// The rate was below its target.
    Up,
    /// The rate was above its target.
    Down,
    /// The rate was below its target, but not all of it was used.
    Stay,
}

/// What a report says about the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// `dq`.
    pub queue: TimeDelta,
    /// `RTTstanding`.
    pub standing_rtt: TimeDelta,
    pub delta: f64,
    pub velocity: f64,
    /// Whether the window may grow: COPA-D3.
    pub may_grow: bool,
}

/// `cwnd`.
#[derive(Clone, Debug)]
pub(super) struct Window {
    bytes: f64,
    slow_start: bool,
}

impl Window {
    pub(super) fn new(bytes: f64) -> Self {
        Self { bytes, slow_start: true }
    }

    /// Moves the window for bytes that were acknowledged.
    pub(super) fn on_acknowledged(&mut self, acked: DataSize, path: &Path) -> Move {
        let packet = PACKET.as_bytes() as f64;
        let acked = acked.as_bytes() as f64;
        // `1 / (delta dq)` packets a second, compared without a division by an empty queue.
        let rate = self.bytes / packet / path.standing_rtt.as_secs_f64();
        let below = rate * path.delta * path.queue.as_secs_f64() <= 1.0;
        self.slow_start &= below;
        if below && !path.may_grow {
            return Move::Stay;
        }
        if self.slow_start {
            self.bytes += acked;
            return Move::Double;
        }
        // `v / (delta cwnd)` packets for each packet.
        let step = path.velocity * acked * packet / (path.delta * self.bytes);
        if below {
            self.bytes += step.min(acked);
            return Move::Up;
        }
        self.bytes = (self.bytes - step).max(self.bytes * 0.5);
        Move::Down
    }

    /// Keeps the window between these sizes.
    pub(super) fn clamp(&mut self, least: f64, most: f64) {
        self.bytes = self.bytes.clamp(least, most.max(least));
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.bytes *= factor;
    }

    pub(super) fn end_slow_start(&mut self) {
        self.slow_start = false;
    }

    pub(super) fn bytes(&self) -> f64 {
        self.bytes
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.slow_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        queue: TimeDelta::from_millis(10),
        standing_rtt: TimeDelta::from_millis(100),
        delta: 0.5,
        velocity: 1.0,
        may_grow: true,
    };

    fn moved(packets: f64, path: &Path) -> (f64, Move) {
        let mut window = Window { bytes: packets * 1_200.0, slow_start: false };
        let moved = window.on_acknowledged(PACKET, path);
        (window.bytes / 1_200.0, moved)
    }

    // [COPA §2.1]: 1 / (0.5 * 10 ms) is 200 packets a second, which are 20 in 100 ms.
    #[test]
    fn the_window_moves_towards_one_over_delta_and_queue() {
        assert_eq!(moved(16.0, &PATH), (16.125, Move::Up));
        assert_eq!(moved(25.0, &PATH), (24.92, Move::Down));
        let fast = Path { velocity: 4.0, ..PATH };
        assert_eq!(moved(16.0, &fast), (16.5, Move::Up));
        let empty = Path { queue: TimeDelta::ZERO, ..PATH };
        assert_eq!(moved(1_000.0, &empty).1, Move::Up);
    }

    // [COPA §2.1]
    #[test]
    fn slow_start_doubles_until_the_rate_is_above_its_target() {
        let mut window = Window::new(15.0 * 1_200.0);
        assert_eq!(window.on_acknowledged(PACKET, &PATH), Move::Double);
        assert_eq!(window.bytes(), 16.0 * 1_200.0);
        window.scale(2.0);
        assert_eq!(window.on_acknowledged(PACKET, &PATH), Move::Down);
        window.scale(0.1);
        assert_eq!(window.on_acknowledged(PACKET, &PATH), Move::Up);
    }

    // COPA-D3
    #[test]
    fn a_window_that_is_not_used_does_not_grow_but_shrinks() {
        let idle = Path { may_grow: false, ..PATH };
        assert_eq!(moved(16.0, &idle), (16.0, Move::Stay));
        assert_eq!(moved(25.0, &idle).1, Move::Down);
    }
}
