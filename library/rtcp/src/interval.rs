//! Random intervals between regular RTCP reports.

use alloc::boxed::Box;

use weir::units::TimeDelta;

/// A source of random numbers, uniformly distributed in 0.0..1.0. They only spread the times of
/// regular reports, so their quality matters little.
pub type Random = Box<dyn FnMut() -> f64 + Send>;

/// Random numbers from a seed, for hosts that have no generator of their own. Give each end another
/// seed, such as its SSRC.
///
/// ```
/// let (mut one, mut same) = (weir_rtcp::seeded(7), weir_rtcp::seeded(7));
/// assert_eq!(one(), same());
/// assert!((0.0..1.0).contains(&one()));
/// ```
pub fn seeded(seed: u64) -> Random {
    // SplitMix64 (Steele, Lea and Flood, 2014).
    let mut state = seed;
    Box::new(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    })
}

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
