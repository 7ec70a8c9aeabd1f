//! Multipath fading: a tapped delay line whose taps move as in Jakes' model.
//!
//! Each tap is a sum of waves that arrive from all sides with random phases, so its power is that
//! of Rayleigh fading and its spectrum that of a moving terminal. The gain is a function of time
//! alone: it can be asked for at any time, in any order.

use weir::units::{TimeDelta, Timestamp};

use crate::seed::{Seed, Stream};

/// Waves of a tap. From about ten on, the sum is close to the normal distribution.
const WAVES: usize = 16;
/// The gain is computed this many times in the time that a wave takes for one turn.
const STEPS_PER_TURN: f64 = 64.0;
/// Longest time between two values of the gain, for a terminal that stands still.
const STEP_MAX: TimeDelta = TimeDelta::from_secs(10);
/// Speed of light in metres a second.
const LIGHT_MPS: f64 = 299_792_458.0;

/// Delay profiles (3GPP TS 36.104 Annex B.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Extended pedestrian A: delays up to 0.41 us.
    Epa,
    /// Extended vehicular A: delays up to 2.51 us.
    Eva,
    /// Extended typical urban: delays up to 5 us.
    Etu,
}

impl Profile {
    /// Delay in nanoseconds and power in decibels of each tap.
    const fn taps(self) -> &'static [(f64, f64)] {
        match self {
            Self::Epa => &[
                (0.0, 0.0),
                (30.0, -1.0),
                (70.0, -2.0),
                (90.0, -3.0),
                (110.0, -8.0),
                (190.0, -17.2),
                (410.0, -20.8),
            ],
            Self::Eva => &[
                (0.0, 0.0),
                (30.0, -1.5),
                (150.0, -1.4),
                (310.0, -3.6),
                (370.0, -0.6),
                (710.0, -9.1),
                (1_090.0, -7.0),
                (1_730.0, -12.0),
                (2_510.0, -16.9),
            ],
            Self::Etu => &[
                (0.0, -1.0),
                (50.0, -1.0),
                (120.0, -1.0),
                (200.0, 0.0),
                (230.0, 0.0),
                (500.0, 0.0),
                (1_600.0, -3.0),
                (2_300.0, -5.0),
                (5_000.0, -7.0),
            ],
        }
    }
}

/// Parameters of the fading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// Delay profile.
    pub profile: Profile,
    /// Speed of the terminal in kilometres an hour.
    pub speed_kmh: f64,
    /// Frequency of the carrier in hertz.
    pub carrier_hz: f64,
    /// Where the fading of a link comes from.
    pub origin: Origin,
}

/// Frequency of the carrier if none is given, in hertz.
const CARRIER_HZ: f64 = 1.8e9;

impl Fading {
    /// Fading of a profile at a speed, on a carrier of 1.8 GHz.
    pub const fn new(profile: Profile, speed_kmh: f64) -> Self {
        Self { profile, speed_kmh, carrier_hz: CARRIER_HZ, origin: Origin::Own }
    }
}

/// Where the fading of a link comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Each link has its own, which never repeats.
    #[default]
    Own,
    /// All links play one recording of ten seconds, each in windows of half a second that begin at
    /// random places. The recording is computed as that of ns-3: on a grid of 50 ns, with 200 kHz
    /// per resource block.
    Recording {
        /// Seed of the recording.
        seed: u64,
    },
}

/// Length of a recording.
const RECORDING: TimeDelta = TimeDelta::from_secs(10);
/// Length of the windows in which it is played.
const WINDOW: TimeDelta = TimeDelta::from_millis(500);
/// Time between two values of a recording.
const RECORDING_STEP: TimeDelta = TimeDelta::from_millis(1);
/// Sampling frequency of a recording in hertz.
const SAMPLING_HZ: f64 = 20e6;
/// Resource blocks of a recording: its bandwidth is divided among them.
const RECORDING_PRBS: f64 = 100.0;
/// Samples before the first and after the last tap that belong to the channel filter.
const FILTER_MARGIN: i32 = 4;

/// A complex number.
type Complex = (f64, f64);

/// Steps of a stretch: within it, one turn leads from its start to any step.
const STRETCH: i64 = 16;
/// Stretches after which the waves are computed anew. It bounds the rounding errors of turning
/// them.
const STRETCHES: i64 = 16;

/// The resource blocks and the time intervals of a carrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Number of resource blocks.
    pub(super) prbs: u16,
    /// Bandwidth of a resource block in hertz.
    pub(super) prb_hz: f64,
    /// Transmission time interval. Within it the signal does not change.
    pub(super) tti: TimeDelta,
}

/// The fading of one link. Real and imaginary parts lie in arrays of their own, so that the
/// compiler computes several waves, or several resource blocks, at once.
#[derive(Clone, Debug)]
pub(super) struct Multipath {
    taps: Vec<Tap>,
    /// The step for which the waves of the taps were computed, and the first step of the stretch to
    /// which they are turned.
    anchor: Option<i64>,
    start: i64,
    /// Turns of each tap's phase at the resource blocks, because of its delay: those of all taps at
    /// the first block of resource blocks, then at the next one. These and the sums have single
    /// precision: an error of 1e-6 is far below what the model leaves out.
    rotations: Vec<Turns>,
    /// Number of resource blocks.
    prbs: usize,
    /// Each tap as it was asked for last, kept for reuse.
    sums: Vec<(f32, f32)>,
    step: TimeDelta,
    /// Random number that decides where the windows of a recording begin.
    windows: Option<u64>,
}

/// Resource blocks whose sums over the taps stay in registers.
const BLOCK: usize = 8;

/// Turns of one tap at [`BLOCK`] resource blocks.
#[derive(Clone, Debug)]
struct Turns {
    cos: [f32; BLOCK],
    sin: [f32; BLOCK],
}

/// The turns of all taps, by blocks of resource blocks. `of_taps` has those of each tap.
fn in_blocks(of_taps: &[Vec<Complex>]) -> Vec<Turns> {
    let prbs = of_taps.first().map_or(0, Vec::len);
    let mut blocks = Vec::new();
    for first in (0..prbs).step_by(BLOCK) {
        for turns in of_taps {
            let mut block = Turns { cos: [0.0; BLOCK], sin: [0.0; BLOCK] };
            for (prb, (cos, sin)) in turns[first..].iter().take(BLOCK).enumerate() {
                (block.cos[prb], block.sin[prb]) = (*cos as f32, *sin as f32);
            }
            blocks.push(block);
        }
    }
    blocks
}

#[derive(Clone, Debug)]
struct Tap {
    amplitude: f64,
    /// Angular frequency and phase of each wave, in radians a second and radians.
    waves: [(f64, f64); WAVES],
    /// Each wave at the anchor and at the start of the stretch.
    anchor: Waves,
    start: Waves,
    /// By what each wave turns in 0, 1, 2, ... steps, and in as many stretches.
    steps: Vec<Waves>,
    stretches: Vec<Waves>,
}

/// Real and imaginary parts of the waves of a tap.
#[derive(Clone, Debug)]
struct Waves {
    re: [f64; WAVES],
    im: [f64; WAVES],
}

impl Waves {
    /// Waves of length one with these angles.
    fn of(angles: [f64; WAVES]) -> Self {
        let (mut re, mut im) = ([0.0; WAVES], [0.0; WAVES]);
        for wave in 0..WAVES {
            (im[wave], re[wave]) = libm::sincos(angles[wave]);
        }
        Self { re, im }
    }

    /// Each wave, turned once.
    fn turned(&self, turns: &Self) -> Self {
        let (mut re, mut im) = ([0.0; WAVES], [0.0; WAVES]);
        for wave in 0..WAVES {
            re[wave] = self.re[wave] * turns.re[wave] - self.im[wave] * turns.im[wave];
            im[wave] = self.re[wave] * turns.im[wave] + self.im[wave] * turns.re[wave];
        }
        Self { re, im }
    }

    /// The sum of the waves, each turned once.
    fn turned_sum(&self, turns: &Self) -> Complex {
        // Several sums side by side do not wait for each other.
        const LANES: usize = 4;
        let (mut re, mut im) = ([0.0; LANES], [0.0; LANES]);
        for wave in (0..WAVES).step_by(LANES) {
            for lane in 0..LANES {
                let at = wave + lane;
                re[lane] += self.re[at] * turns.re[at] - self.im[at] * turns.im[at];
                im[lane] += self.re[at] * turns.im[at] + self.im[at] * turns.re[at];
            }
        }
        ((re[0] + re[1]) + (re[2] + re[3]), (im[0] + im[1]) + (im[2] + im[3]))
    }
}

impl Multipath {
    /// The fading of a link. The stream must not be shared with another link.
    pub(super) fn new(fading: &Fading, grid: Grid, stream: &mut Stream) -> Self {
        let Grid { prbs, prb_hz, tti } = grid;
        let shift_hz = fading.speed_kmh / 3.6 / LIGHT_MPS * fading.carrier_hz;
        let profile = fading.profile.taps();
        let Origin::Recording { seed } = fading.origin else {
            let mut rotations = Vec::new();
            for (delay_ns, _) in profile {
                let of_prbs = (0..prbs).map(|prb| rotation(prb, prb_hz, delay_ns * 1e-9));
                rotations.push(of_prbs.collect::<Vec<_>>());
            }
            let step = TimeDelta::from_secs_f64((1.0 / (STEPS_PER_TURN * shift_hz)).min(1e3));
            let step = step.min(STEP_MAX).max(tti);
            return Self {
                taps: taps(profile, (shift_hz, step), stream),
                anchor: None,
                start: 0,
                rotations: in_blocks(&rotations),
                prbs: usize::from(prbs),
                sums: Vec::new(),
                step,
                windows: None,
            };
        };
        let mut recorded = Seed::new(seed).stream("cellular/recording");
        let mut filters = Vec::new();
        for (delay_ns, _) in profile {
            filters.push(filter(*delay_ns, profile, prbs));
        }
        Self {
            taps: taps(profile, (shift_hz, RECORDING_STEP), &mut recorded),
            anchor: None,
            start: 0,
            rotations: in_blocks(&filters),
            prbs: usize::from(prbs),
            sums: Vec::new(),
            step: RECORDING_STEP,
            windows: Some(stream.bits()),
        }
    }

    /// Number of the value of the gain that holds at a time.
    pub(super) fn step(&self, at: Timestamp) -> i64 {
        let since = (at - Timestamp::ZERO).as_nanos();
        let Some(windows) = self.windows else { return since / self.step.as_nanos() };
        let (number, within) = (since / WINDOW.as_nanos(), since % WINDOW.as_nanos());
        let places = (RECORDING - WINDOW).as_nanos() / self.step.as_nanos();
        let place = (mixed(windows ^ number as u64) % places as u64) as i64;
        place + within / self.step.as_nanos()
    }

    /// Writes the gain of each resource block, as a factor whose mean over time is one.
    pub(super) fn gains(&mut self, step: i64, gains: &mut Vec<f64>) {
        let ahead = self.turn_to(step);
        self.sums.clear();
        for tap in &self.taps {
            let (re, im) = tap.start.turned_sum(&tap.steps[ahead]);
            self.sums.push(((tap.amplitude * re) as f32, (tap.amplitude * im) as f32));
        }
        gains.clear();
        for rotations in self.rotations.chunks_exact(self.sums.len()) {
            let (mut re, mut im) = ([0.0_f32; BLOCK], [0.0_f32; BLOCK]);
            for ((tap_re, tap_im), Turns { cos, sin }) in self.sums.iter().zip(rotations) {
                for prb in 0..BLOCK {
                    re[prb] += tap_re * cos[prb] - tap_im * sin[prb];
                    im[prb] += tap_re * sin[prb] + tap_im * cos[prb];
                }
            }
            for prb in 0..BLOCK {
                gains.push(f64::from(re[prb] * re[prb] + im[prb] * im[prb]));
            }
        }
        gains.truncate(self.prbs);
    }

    /// Turns the waves to the start of the stretch of a step: from the last anchor before it, in
    /// one turn. So the result does not depend on which steps were asked for before. Returns the
    /// steps from there.
    fn turn_to(&mut self, step: i64) -> usize {
        let ahead = step.rem_euclid(STRETCH);
        let start = step - ahead;
        let within = start.rem_euclid(STRETCH * STRETCHES);
        let anchor = start - within;
        if self.anchor == Some(anchor) && self.start == start {
            return ahead as usize;
        }
        let seconds = (self.step * anchor).as_secs_f64();
        for tap in &mut self.taps {
            if self.anchor != Some(anchor) {
                tap.anchor = Waves::of(tap.waves.map(|(speed, phase)| speed * seconds + phase));
            }
            tap.start = tap.anchor.turned(&tap.stretches[(within / STRETCH) as usize]);
        }
        self.anchor = Some(anchor);
        self.start = start;
        ahead as usize
    }
}

/// The taps of a profile, each with waves from all sides. The mean power of all is one.
fn taps(
    profile: &[(f64, f64)],
    (shift_hz, step): (f64, TimeDelta),
    stream: &mut Stream,
) -> Vec<Tap> {
    let power = |db: f64| libm::pow(10.0, db / 10.0);
    let total: f64 = profile.iter().map(|(_, db)| power(*db)).sum();
    let mut taps = Vec::new();
    for (_, db) in profile {
        let first = core::f64::consts::TAU * stream.uniform();
        let waves = core::array::from_fn(|wave| {
            let angle = (core::f64::consts::TAU * wave as f64 + first) / WAVES as f64;
            let start = core::f64::consts::TAU * stream.uniform();
            (core::f64::consts::TAU * shift_hz * libm::cos(angle), start)
        });
        let amplitude = libm::sqrt(power(*db) / total / WAVES as f64);
        let steps = (0..STRETCH).map(|count| turned(&waves, step * count)).collect();
        let stretches =
            (0..STRETCHES).map(|count| turned(&waves, step * (count * STRETCH))).collect();
        let still = turned(&waves, TimeDelta::ZERO);
        taps.push(Tap { amplitude, waves, anchor: still.clone(), start: still, steps, stretches });
    }
    taps
}

/// How far the waves turn in a time.
fn turned(waves: &[(f64, f64); WAVES], time: TimeDelta) -> Waves {
    Waves::of(waves.map(|(speed, _)| speed * time.as_secs_f64()))
}

fn rotation(prb: u16, hz: f64, seconds: f64) -> Complex {
    let (sin, cos) = libm::sincos(-core::f64::consts::TAU * f64::from(prb) * hz * seconds);
    (cos, sin)
}

/// Turns of a tap at each resource block of a recording: its delay is interpolated between the
/// samples of a grid, by a filter that ends a few samples beyond the taps.
fn filter(delay_ns: f64, profile: &[(f64, f64)], prbs: u16) -> Vec<Complex> {
    let longest = profile.iter().map(|(delay, _)| delay * 1e-9 * SAMPLING_HZ).fold(0.0, f64::max);
    let last = libm::ceil(longest) as i32 + FILTER_MARGIN;
    let delay = delay_ns * 1e-9 * SAMPLING_HZ;
    let of_prbs = (0..prbs).map(|prb| {
        let mut sum: Complex = (0.0, 0.0);
        for sample in -FILTER_MARGIN..=last {
            let distance = core::f64::consts::PI * (f64::from(sample) - delay);
            let weight = if distance.abs() < 1e-9 { 1.0 } else { libm::sin(distance) / distance };
            let angle = -core::f64::consts::TAU * f64::from(prb) * f64::from(sample);
            let (sin, cos) = libm::sincos(angle / RECORDING_PRBS);
            sum = (sum.0 + weight * cos, sum.1 + weight * sin);
        }
        sum
    });
    of_prbs.collect()
}

/// A number that depends on all bits of another one (the finalizer of SplitMix64).
const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn multipath(profile: Profile, seed: u64) -> Multipath {
        let fading = Fading { profile, speed_kmh: 3.0, carrier_hz: 1.93e9, origin: Origin::Own };
        let grid = Grid { prbs: 50, prb_hz: 180e3, tti: TimeDelta::from_millis(1) };
        Multipath::new(&fading, grid, &mut Seed::new(seed).stream("fading"))
    }

    /// Gains of all resource blocks at many independent times and seeds.
    fn samples(profile: Profile) -> Vec<Vec<f64>> {
        (0..400)
            .flat_map(|seed| {
                let mut multipath = multipath(profile, seed);
                (0..10).map(move |second| {
                    let mut gains = Vec::new();
                    multipath.gains(second * 1_000, &mut gains);
                    gains
                })
            })
            .collect()
    }

    #[test]
    fn the_mean_gain_is_one_and_deep_fades_are_as_rare_as_rayleigh_says() {
        for profile in [Profile::Epa, Profile::Eva, Profile::Etu] {
            let gains: Vec<f64> = samples(profile).iter().map(|gains| gains[20]).collect();
            let mean = gains.iter().sum::<f64>() / gains.len() as f64;
            assert!((mean - 1.0).abs() < 0.05, "{profile:?}: {mean}");
            let deep = gains.iter().filter(|gain| **gain < 0.1).count() as f64;
            // 1 - exp(-0.1) = 0.095.
            assert!((deep / gains.len() as f64 - 0.095).abs() < 0.015, "{profile:?}: {deep}");
        }
    }

    #[test]
    fn long_delays_make_neighbouring_resource_blocks_differ() {
        let spread = |profile| {
            let samples = samples(profile);
            let differences = samples.iter().map(|gains| (gains[25] - gains[20]).abs());
            differences.sum::<f64>() / samples.len() as f64
        };
        assert!(spread(Profile::Epa) < 0.5 * spread(Profile::Etu));
    }

    #[test]
    fn the_gain_changes_with_the_doppler_shift() {
        let mut multipath = multipath(Profile::Epa, 1);
        let mut at = |millis| {
            let mut gains = Vec::new();
            multipath.gains(multipath.step(Timestamp::from_millis(millis)), &mut gains);
            gains[0]
        };
        // 5.4 Hz: nearly the same after 4 ms, another one after 200 ms.
        assert!((at(1_004) / at(1_000) - 1.0).abs() < 0.2);
        assert!((at(1_200) / at(1_000) - 1.0).abs() > 0.2);
    }
}
