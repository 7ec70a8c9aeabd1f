//! A host's timers: set in ticks, they go off at a tick, and late rather than early.
//!
//! As the timer wheel of Linux has it: a timer may be set just before a tick, so one tick more than
//! its own passes, and the longer it runs, the coarser the times at which it may go off.

use weir::units::{TimeDelta, Timestamp};
use weir_net::seed::Stream;

/// `1 / CONFIG_HZ`, as Debian builds its kernels.
const TICK: TimeDelta = TimeDelta::from_millis(4);
/// `LVL_START(1)`: from so many ticks on a timer goes off at every eighth tick only, from eight times
/// as many on at every 64th, and so on.
const COARSE_FROM: i64 = 63;
/// `LVL_CLK_DIV`
const COARSER: i64 = 8;
/// What the longest timers of TCP, two minutes, go off at.
const COARSEST: i64 = COARSER * COARSER * COARSER;

/// The ticks of a host, which nothing else keeps time with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// How long the host had run at time zero.
    uptime: TimeDelta,
}

impl Timers {
    /// Of a host that started at time zero.
    #[cfg(test)]
    pub(super) const FROM_ZERO: Self = Self { uptime: TimeDelta::ZERO };

    /// Those of a host that was started at any time.
    pub(super) fn new(chance: &mut Stream) -> Self {
        Self { uptime: TICK * COARSEST * chance.uniform() }
    }

    /// When a timer goes off that is set now to run for so long.
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

    /// How long a timer runs that is set so long after a tick, the host's eighth.
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

    // Ticks are counted from the host's start, eight before.
    #[test]
    fn a_long_timer_goes_off_at_every_eighth_tick() {
        assert_eq!(runs(ms(0), ms(62 * 4)), ms(63 * 4));
        assert_eq!(runs(ms(0), ms(63 * 4)), ms(64 * 4));
        assert_eq!(runs(ms(4), ms(63 * 4)), ms(71 * 4));
        assert_eq!(runs(ms(4), ms(1_000)), ms(1_020));
    }
}
