//! When reports are due that no packet asks for.

use alloc::boxed::Box;

use weir::units::TimeDelta;

/// A source of random numbers, each at least 0.0 and below 1.0, all equally likely. It spreads the
/// times of regular reports, so their quality matters little.
pub type Random = Box<dyn FnMut() -> f64 + Send>;

/// Mean time between regular reports unless a configuration says otherwise. RTP/AVPF has no least
/// interval of its own [RFC4585 §3.4]; a second is what endpoints use for video.
pub(crate) const DEFAULT_MEAN: TimeDelta = TimeDelta::from_secs(1);

/// Intervals of regular RTCP reports. They vary at random, so that the reports of several ends do not
/// fall together [RFC3550 §6.3.1].
pub(crate) struct Interval {
    mean: TimeDelta,
    random: Random,
}

impl Interval {
    pub(crate) const fn new(mean: TimeDelta, random: Random) -> Self {
        Self { mean, random }
    }

    /// The next interval: between half and one and a half times the mean.
    pub(crate) fn draw(&mut self) -> TimeDelta {
        self.mean * (0.5 + (self.random)().clamp(0.0, 1.0))
    }
}
