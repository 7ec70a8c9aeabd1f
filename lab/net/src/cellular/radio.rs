//! The signal of a terminal in one direction, as a function of time.

use std::ops::Range;
use std::sync::LazyLock;

use weir::units::{TimeDelta, Timestamp};

use super::config::{Handover, MovingTerminal, Signal, SignalChange};
use super::errors::{CONTROL_SAFE_DB, Modulation, control_error};
use super::fading::{Grid, Multipath};
use crate::seed::Stream;

/// Waves that make up the shadowing.
const SHADOW_WAVES: usize = 32;
/// Values kept: those since the last report, and those of the blocks that are prepared.
const KEPT: usize = 16;
/// Time for which a moving terminal's distance and shadowing count as unchanged. At 120 km/h it
/// moves by 0.3 m meanwhile, and shadowing changes over tens of metres.
const MEAN_STEP: TimeDelta = TimeDelta::from_millis(10);
/// Means kept: that of the last report and that of the blocks that are prepared.
const KEPT_MEANS: usize = 4;

/// SINR of the resource blocks at one time, as factors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sinr<'a> {
    /// The mean over the carrier, without fading.
    pub(super) mean: f64,
    /// Factor of each resource block; empty without fading.
    pub(super) gains: &'a [f64],
}

impl Sinr<'_> {
    /// Whether all resource blocks are equal.
    pub(super) fn is_flat(&self) -> bool {
        self.gains.is_empty()
    }

    /// Smallest and largest SINR of these resource blocks.
    pub(super) fn bounds(&self, prbs: impl Iterator<Item = Range<u16>>) -> (f64, f64) {
        if self.is_flat() {
            return (self.mean, self.mean);
        }
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for range in prbs {
            for gain in self.gains_of(range) {
                // Gains are numbers, so this is a minimum without the care for others.
                least = if *gain < least { *gain } else { least };
                most = if *gain > most { *gain } else { most };
            }
        }
        (self.mean * least, self.mean * most)
    }

    /// Mean mutual information over these resource blocks, with all signals scaled by a factor.
    pub(super) fn information(
        &self,
        modulation: Modulation,
        prbs: impl Iterator<Item = Range<u16>>,
        factor: f64,
    ) -> f64 {
        let curve = modulation.information();
        if self.is_flat() {
            return curve.at(self.mean * factor);
        }
        let (mut sum, mut count) = (0.0, 0);
        for range in prbs {
            let gains = self.gains_of(range);
            count += gains.len();
            sum += curve.sum(gains, self.mean * factor);
        }
        sum / count.max(1) as f64
    }

    fn gains_of(&self, range: Range<u16>) -> &[f64] {
        &self.gains[usize::from(range.start)..usize::from(range.end)]
    }

    /// Probability that a terminal misses the control channel, which is spread over the first
    /// `prbs` resource blocks.
    pub(super) fn control_error(&self, prbs: u16) -> f64 {
        if self.is_flat() {
            return control_error(10.0 * libm::log10(self.mean));
        }
        let all = || std::iter::once(0..prbs);
        if self.bounds(all()).0 > *CONTROL_SAFE {
            return 0.0;
        }
        let information = self.information(Modulation::Qpsk, all(), 1.0);
        let curve = Modulation::Qpsk.information();
        if information > curve.at(*CONTROL_SAFE) {
            return 0.0;
        }
        // The flat signal that would give QPSK the same mutual information, to 0.001 dB.
        let (mut low, mut high) = (-20.0, 5.0);
        for _ in 0..15 {
            let middle = 0.5 * (low + high);
            if curve.at(db_to_factor(middle)) < information {
                low = middle;
            } else {
                high = middle;
            }
        }
        control_error(high)
    }
}

/// A ratio from decibels.
pub(super) fn db_to_factor(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

/// The SINR, as a factor, from which the control channel never fails.
static CONTROL_SAFE: LazyLock<f64> = LazyLock::new(|| db_to_factor(CONTROL_SAFE_DB));

/// The signal of a link.
#[derive(Debug)]
pub(super) struct Channel {
    mean: SignalChange,
    shadowing: Vec<(f64, f64)>,
    multipath: Option<Multipath>,
    /// Times from which the mean differs, and the sums of the changes in decibels.
    shifts: Vec<(Timestamp, f64)>,
    /// Gains of the latest steps of the fading, each at the place of its step modulo their number.
    gains: [(Option<i64>, Vec<f64>); KEPT],
    /// Mean of a moving terminal at the latest steps, each at the place of its step modulo their
    /// number.
    means: [Option<(i64, f64)>; KEPT_MEANS],
    /// The last mean in decibels, and as a factor.
    factor: (f64, f64),
}

impl Channel {
    /// The signal of a link.
    pub(super) fn new(
        signal: &Signal,
        handovers: &[Handover],
        grid: Grid,
        mut stream: Stream,
    ) -> Self {
        let multipath = signal.fading.map(|fading| Multipath::new(&fading, grid, &mut stream));
        let shadowing = match &signal.mean {
            SignalChange::Moving(moving) => shadow_waves(moving, &mut stream),
            SignalChange::Constant(_) | SignalChange::Trace { .. } => Vec::new(),
        };
        let mut total = 0.0;
        let shifts = handovers.iter().map(|handover| {
            total += handover.change_db;
            (handover.at, total)
        });
        Self {
            mean: signal.mean.clone(),
            shadowing,
            multipath,
            shifts: shifts.collect(),
            gains: [const { (None, Vec::new()) }; KEPT],
            means: [None; KEPT_MEANS],
            factor: (0.0, 1.0),
        }
    }

    /// The mean SINR at a time, in decibels.
    pub(super) fn mean_db(&self, at: Timestamp) -> f64 {
        let db = match &self.mean {
            SignalChange::Constant(db) => *db,
            SignalChange::Trace { values, period } => traced(values, *period, at),
            SignalChange::Moving(moving) => self.moving_db(moving, mean_step(at)),
        };
        self.shift_db(at) + db
    }

    /// What handovers have changed by a time, in decibels.
    fn shift_db(&self, at: Timestamp) -> f64 {
        let shifts = self.shifts.partition_point(|(from, _)| *from <= at);
        shifts.checked_sub(1).map_or(0.0, |last| self.shifts[last].1)
    }

    /// The mean of a moving terminal in a step, in decibels.
    fn moving_db(&self, moving: &MovingTerminal, step: i64) -> f64 {
        let seconds = (MEAN_STEP * step).as_secs_f64();
        let travelled = moving.speed_mps.abs() * seconds;
        let waves = self.shadowing.iter();
        let shadow: f64 = waves.map(|(k, phase)| libm::cos(k * travelled + phase)).sum();
        let spread = libm::sqrt(2.0 / SHADOW_WAVES as f64) * moving.shadowing_db;
        let kilometres = (distance_m(moving, seconds) / 1e3).max(1e-3);
        moving.sinr_at_1_km_db - moving.slope_db * libm::log10(kilometres) + spread * shadow
    }

    /// The SINR at a time.
    pub(super) fn at(&mut self, at: Timestamp) -> Sinr<'_> {
        let mean = self.mean_at(at);
        let Some(multipath) = &mut self.multipath else { return Sinr { mean, gains: &[] } };
        let step = multipath.step(at);
        let (of, gains) = &mut self.gains[step.rem_euclid(KEPT as i64) as usize];
        if *of != Some(step) {
            multipath.gains(step, gains);
            *of = Some(step);
        }
        Sinr { mean, gains }
    }

    /// The mean SINR at a time, as a factor.
    fn mean_at(&mut self, at: Timestamp) -> f64 {
        let mean_db = match &self.mean {
            SignalChange::Moving(moving) => {
                let step = mean_step(at);
                let place = step.rem_euclid(KEPT_MEANS as i64) as usize;
                let known = self.means[place].filter(|(of, _)| *of == step);
                let (_, db) = known.unwrap_or_else(|| (step, self.moving_db(moving, step)));
                self.means[place] = Some((step, db));
                self.shift_db(at) + db
            }
            SignalChange::Constant(_) | SignalChange::Trace { .. } => self.mean_db(at),
        };
        if mean_db.to_bits() != self.factor.0.to_bits() {
            self.factor = (mean_db, db_to_factor(mean_db));
        }
        self.factor.1
    }
}

/// Number of the step of the mean that holds at a time.
fn mean_step(at: Timestamp) -> i64 {
    (at - Timestamp::ZERO).as_nanos() / MEAN_STEP.as_nanos()
}

/// The value of a trace at a time.
fn traced(values: &[(Timestamp, f64)], period: Option<TimeDelta>, at: Timestamp) -> f64 {
    let at = match period {
        Some(period) if period > TimeDelta::ZERO => {
            let nanos = (at - Timestamp::ZERO).as_nanos() % period.as_nanos();
            Timestamp::from_nanos(nanos)
        }
        _ => at,
    };
    let after = values.partition_point(|(from, _)| *from <= at);
    values.get(after.saturating_sub(1)).map_or(f64::NEG_INFINITY, |(_, db)| *db)
}

/// Distance of a moving terminal: it goes back and forth within its range.
fn distance_m(moving: &MovingTerminal, seconds: f64) -> f64 {
    let (near, far) = moving.range_m;
    let length = far - near;
    if moving.speed_mps == 0.0 || length <= 0.0 {
        return moving.distance_m;
    }
    let ahead = moving.distance_m - near + moving.speed_mps * seconds;
    let phase = ahead.rem_euclid(2.0 * length);
    near + if phase < length { phase } else { 2.0 * length - phase }
}

/// Spatial frequency and phase of the waves of the shadowing. Its correlation falls exponentially
/// with distance, so the frequencies have a Cauchy distribution.
fn shadow_waves(moving: &MovingTerminal, stream: &mut Stream) -> Vec<(f64, f64)> {
    if moving.shadowing_db == 0.0 {
        return Vec::new();
    }
    (0..SHADOW_WAVES)
        .map(|_| {
            let turn = core::f64::consts::PI * (stream.uniform() - 0.5);
            let frequency = libm::tan(turn) / moving.correlation_m.max(1e-3);
            (frequency, core::f64::consts::TAU * stream.uniform())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    const STANDING: MovingTerminal = MovingTerminal {
        distance_m: 100.0,
        speed_mps: 0.0,
        range_m: (50.0, 200.0),
        sinr_at_1_km_db: 0.0,
        slope_db: 37.6,
        shadowing_db: 0.0,
        correlation_m: 50.0,
    };

    const GRID: Grid = Grid { prbs: 25, prb_hz: 180e3, tti: TimeDelta::from_millis(1) };

    fn channel(mean: SignalChange, seed: u64) -> Channel {
        let stream = Seed::new(seed).stream("channel");
        Channel::new(&Signal::new(mean, None), &[], GRID, stream)
    }

    #[test]
    fn a_tenth_of_the_distance_gains_one_slope() {
        let channel = channel(SignalChange::Moving(STANDING), 1);
        assert!((channel.mean_db(Timestamp::ZERO) - 37.6).abs() < 1e-9);
    }

    #[test]
    fn a_moving_terminal_turns_round_at_the_ends_of_its_range() {
        let moving = MovingTerminal { speed_mps: 10.0, ..STANDING };
        let distances = [0.0, 10.0, 12.0, 25.0, 27.0].map(|t| distance_m(&moving, t));
        assert_eq!(distances, [100.0, 200.0, 180.0, 50.0, 70.0]);
    }

    #[test]
    fn shadowing_has_its_deviation() {
        let moving = MovingTerminal { shadowing_db: 8.0, ..STANDING };
        let draws: Vec<f64> = (0..2_000)
            .map(|seed| channel(SignalChange::Moving(moving), seed).mean_db(Timestamp::ZERO) - 37.6)
            .collect();
        let square = draws.iter().map(|db| db * db).sum::<f64>() / draws.len() as f64;
        assert!((libm::sqrt(square) - 8.0).abs() < 0.5, "{square}");
    }

    #[test]
    fn a_trace_holds_its_values_and_starts_again() {
        let values = vec![(Timestamp::from_secs(1), 5.0), (Timestamp::from_secs(2), 9.0)];
        let period = Some(TimeDelta::from_secs(3));
        let channel = channel(SignalChange::Trace { values, period }, 1);
        let at = |millis| channel.mean_db(Timestamp::from_millis(millis));
        assert_eq!([at(0), at(1_500), at(2_500), at(3_500), at(4_500)], [5.0, 5.0, 9.0, 5.0, 5.0]);
    }

    #[test]
    fn a_handover_changes_the_mean() {
        let handover =
            Handover { at: Timestamp::from_secs(1), gap: TimeDelta::ZERO, change_db: -3.0 };
        let stream = Seed::new(1).stream("channel");
        let channel = Channel::new(&Signal::constant(10.0), &[handover], GRID, stream);
        assert_eq!(channel.mean_db(Timestamp::ZERO), 10.0);
        assert_eq!(channel.mean_db(Timestamp::from_secs(1)), 7.0);
    }
}
