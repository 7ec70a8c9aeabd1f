//! Random intervals between regular RTCP reports.

use alloc::boxed::Box;

use weir::units::TimeDelta;

/// A source of random numbers, uniformly distributed in 0.0..1.0. They only spread the times of
/// regular reports, so their quality matters little.
pub type Random = Box<dyn FnMut() -> f64 + Send>;

/// Default mean time between regular reports. RTP/AVPF has no minimum interval of its own
/// [RFC4585 §3.4]; one second is what endpoints use for video.
pub(crate) const DEFAULT_MEAN: TimeDelta = TimeDelta::from_secs(1);

/// Intervals of regular RTCP reports. They are random, so that several ends do not report at the
/// same time [RFC3550 §6.3.1].
pub(crate) struct Interval {
    mean: TimeDelta,
    random: Random,
}

impl Interval {
    pub(crate) const fn new(mean: TimeDelta, random: Random) -> Self {
        Self { mean, random }
    }

    /// Returns the next interval, 0.5 to 1.5 times the mean.
    pub(crate) fn draw(&mut self) -> TimeDelta {
        self.mean * (0.5 + (self.random)().clamp(0.0, 1.0))
    }
}
