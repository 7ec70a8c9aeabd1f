//! A host's timers. They have a resolution of ticks and fire late rather than early.
//!
//! This is a model of Linux's timer wheel. A timer may be set just before a tick, so one extra tick
//! is added. The longer the timer, the coarser its resolution.

use weir::units::{TimeDelta, Timestamp};
use weir_net::seed::Stream;

/// `1 / CONFIG_HZ` in Debian's kernels.
const TICK: TimeDelta = TimeDelta::from_millis(4);
/// `LVL_START(1)`: timers of at least this many ticks fire at every eighth tick only, timers of at
/// least eight times as many at every 64th, and so on.
const COARSE_FROM: i64 = 63;
/// `LVL_CLK_DIV`
const COARSER: i64 = 8;
/// Resolution in ticks of TCP's longest timers (two minutes).
const COARSEST: i64 = COARSER * COARSER * COARSER;

/// The timers of one host. Its ticks are not aligned with those of other hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// Uptime of the host at time zero.
    uptime: TimeDelta,
}

impl Timers {
    /// Timers of a host that started at time zero.
    #[cfg(test)]
    pub(super) const FROM_ZERO: Self = Self { uptime: TimeDelta::ZERO };

    /// Timers of a host with a random uptime.
    pub(super) fn new(chance: &mut Stream) -> Self {
        Self { uptime: TICK * COARSEST * chance.uniform() }
    }

    /// Time at which a timer fires that is set now to `wait`.
    pub(super) fn expiry(self, now: Timestamp, wait: TimeDelta) -> Timestamp {
        let tick = TICK.as_nanos();
        let ticks = (now - Timestamp::ZERO + self.uptime).as_nanos() / tick;
        let wait = (wait.as_nanos() + tick - 1) / tick;
        let mut step = 1;
        while wait >= COARSE_FROM * step {
            step *= COARSER;
        }
        let expiry = ((ticks + wait) / step + 1) * step;
        Timestamp::ZERO + TICK * expiry - self.uptime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Duration of a timer of `wait` that is set this long after the host's eighth tick.
    fn runs(after: TimeDelta, wait: TimeDelta) -> TimeDelta {
        let timers = Timers { uptime: ms(32) };
        timers.expiry(Timestamp::ZERO + after, wait) - (Timestamp::ZERO + after)
    }

    #[test]
    fn a_timer_runs_for_its_whole_ticks_and_what_is_left_of_one() {
        assert_eq!(runs(ms(0), ms(4)), ms(8));
        assert_eq!(runs(ms(1), ms(4)), ms(7));
        assert_eq!(runs(TimeDelta::from_micros(3_999), ms(4)), TimeDelta::from_micros(4_001));
        assert_eq!(runs(ms(1), ms(5)), ms(11));
        assert_eq!(runs(ms(0), ms(40)), ms(44));
    }

    // Ticks are counted from the start of the host, eight ticks earlier.
    #[test]
    fn a_long_timer_goes_off_at_every_eighth_tick() {
        assert_eq!(runs(ms(0), ms(62 * 4)), ms(63 * 4));
        assert_eq!(runs(ms(0), ms(63 * 4)), ms(64 * 4));
        assert_eq!(runs(ms(4), ms(63 * 4)), ms(71 * 4));
        assert_eq!(runs(ms(4), ms(1_000)), ms(1_020));
    }
}
