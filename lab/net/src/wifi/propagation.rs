//! Received power of a frame: distance, walls, and fading over time.
//!
//! Received power is sent power plus the gain of the path. The gain has three parts: a loss that
//! grows with the logarithm of the distance, shadowing that is drawn once per path, and fading that
//! is drawn again whenever the surroundings have changed. Both directions of a path share one gain.

use weir::units::{TimeDelta, Timestamp};

use super::phy::Band;
use crate::seed::Stream;

/// Free-space loss over the first metre at 2.4 GHz.
pub const LOSS_AT_1_M_2_4_GHZ_DB: f64 = 40.05;
/// Free-space loss over the first metre in the middle of the 5 GHz band.
pub const LOSS_AT_1_M_5_GHZ_DB: f64 = 46.68;

/// Parameters of the radio propagation between the nodes of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Propagation {
    /// Loss over the first metre, in decibels.
    pub loss_at_1_m_db: f64,
    /// Path-loss exponent beyond the first metre: 2 in free space, 3 indoors, 3.5 through many
    /// walls.
    pub exponent: f64,
    /// Standard deviation of the shadowing, in decibels.
    pub shadowing_db: f64,
    /// Changes of the gain over time, if any.
    pub fading: Option<Fading>,
}

/// Block fading: a random gain that stays constant for a while and is then drawn again.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fading {
    /// Ratio of the power of the direct path to the power of all reflections together. Zero (no
    /// direct path) is Rayleigh fading; larger values are Rician fading.
    pub k_factor: f64,
    /// How long a gain stays constant. Indoors that is 20 to 100 ms.
    pub coherence: TimeDelta,
}

impl Propagation {
    /// Indoors at 2.4 GHz, without shadowing or fading.
    pub const INDOOR: Self = Self {
        loss_at_1_m_db: LOSS_AT_1_M_2_4_GHZ_DB,
        exponent: 3.0,
        shadowing_db: 0.0,
        fading: None,
    };

    /// Indoor propagation without shadowing or fading, at the frequency of a band.
    pub fn indoor(band: Band) -> Self {
        let loss_at_1_m_db =
            if band == Band::GHZ_5 { LOSS_AT_1_M_5_GHZ_DB } else { LOSS_AT_1_M_2_4_GHZ_DB };
        Self { loss_at_1_m_db, ..Self::INDOOR }
    }

    weir::with! {
        with_loss_at_1_m_db: loss_at_1_m_db: f64,
        with_exponent: exponent: f64,
        with_shadowing_db: shadowing_db: f64,
        with_fading: fading: Option<Fading>,
    }

    /// Loss in decibels at a distance. Distances below one metre count as one metre.
    pub fn loss_db(&self, distance_m: f64) -> f64 {
        self.loss_at_1_m_db + 10.0 * self.exponent * libm::log10(distance_m.max(1.0))
    }
}

/// The path between two nodes.
#[derive(Clone, Debug)]
pub struct RadioPath {
    /// Gain from distance and shadowing, in decibels; usually negative.
    steady_db: f64,
    fading: Option<FadingState>,
}

#[derive(Clone, Debug)]
struct FadingState {
    parameters: Fading,
    stream: Stream,
    gain_db: f64,
    /// When the gain is drawn again; `None` before the first draw.
    until: Option<Timestamp>,
}

impl RadioPath {
    /// A path of this length. The stream must not be shared with another path.
    pub fn new(propagation: &Propagation, distance_m: f64, mut stream: Stream) -> Self {
        let shadowing = propagation.shadowing_db * stream.normal();
        Self {
            steady_db: shadowing - propagation.loss_db(distance_m),
            fading: propagation.fading.map(|parameters| FadingState {
                parameters,
                stream,
                gain_db: 0.0,
                until: None,
            }),
        }
    }

    /// Gain in decibels. `now` never goes backwards.
    pub fn gain_db(&mut self, now: Timestamp) -> f64 {
        self.steady_db + self.fading.as_mut().map_or(0.0, |fading| fading.gain_db(now))
    }
}

impl FadingState {
    /// Draws the gain of every block, even of blocks nobody asked for. So the gain depends on time
    /// alone.
    fn gain_db(&mut self, now: Timestamp) -> f64 {
        let mut until = self.until.unwrap_or(now);
        while now >= until {
            self.gain_db = self.parameters.draw_db(&mut self.stream);
            until += self.parameters.coherence.max(TimeDelta::from_micros(1));
        }
        self.until = Some(until);
        self.gain_db
    }
}

impl Fading {
    /// Fading with this power ratio and this coherence time.
    pub const fn new(k_factor: f64, coherence: TimeDelta) -> Self {
        Self { k_factor, coherence }
    }

    /// Draws a gain in decibels whose mean power is one. It adds a direct path and the sum of the
    /// reflections, which has two normally distributed parts at right angles.
    fn draw_db(&self, stream: &mut Stream) -> f64 {
        let direct = libm::sqrt(self.k_factor / (self.k_factor + 1.0));
        let spread = libm::sqrt(0.5 / (self.k_factor + 1.0));
        let (x, y) = (direct + spread * stream.normal(), spread * stream.normal());
        10.0 * libm::log10((x * x + y * y).max(f64::MIN_POSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    const COHERENCE: TimeDelta = TimeDelta::from_millis(50);

    fn faded(k_factor: f64) -> RadioPath {
        let fading = Some(Fading { k_factor, coherence: COHERENCE });
        let propagation = Propagation { fading, ..Propagation::INDOOR };
        RadioPath::new(&propagation, 1.0, Seed::new(1).stream("path"))
    }

    fn at(block: i64) -> Timestamp {
        Timestamp::ZERO + COHERENCE * block
    }

    #[test]
    fn twenty_dbm_arrive_at_five_metres_as_minus_41() {
        let mut path = RadioPath::new(&Propagation::INDOOR, 5.0, Seed::new(1).stream("path"));
        let received = 20.0 + path.gain_db(Timestamp::ZERO);
        assert!((received - -41.02).abs() < 0.01, "{received}");
    }

    #[test]
    fn ten_times_the_distance_costs_ten_times_the_exponent() {
        let indoor = Propagation::INDOOR;
        assert!((indoor.loss_db(30.0) - indoor.loss_db(3.0) - 30.0).abs() < 1e-9);
        assert_eq!(indoor.loss_db(0.0), indoor.loss_db(1.0));
    }

    #[test]
    fn shadowing_is_drawn_once_for_a_path_and_has_its_deviation() {
        let propagation = Propagation { shadowing_db: 5.0, ..Propagation::INDOOR };
        let draws: Vec<f64> = (0..4000)
            .map(|k| {
                let mut path = RadioPath::new(&propagation, 1.0, Seed::new(k).stream("path"));
                assert_eq!(path.gain_db(at(0)), path.gain_db(at(1_000)));
                path.gain_db(at(2_000)) + LOSS_AT_1_M_2_4_GHZ_DB
            })
            .collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        let deviation = libm::sqrt(draws.iter().map(|x| x * x).sum::<f64>() / 4000.0);
        assert!(mean.abs() < 0.3 && (deviation - 5.0).abs() < 0.2, "{mean} {deviation}");
    }

    #[test]
    fn a_gain_lasts_for_its_coherence_time() {
        let mut path = faded(0.0);
        let first = path.gain_db(at(0));
        assert_eq!(path.gain_db(at(1) - TimeDelta::from_nanos(1)), first);
        assert_ne!(path.gain_db(at(1)), first);
    }

    #[test]
    fn the_gain_does_not_depend_on_who_asked_before() {
        let (mut often, mut rarely) = (faded(3.0), faded(3.0));
        let gains: Vec<f64> = (0..100).map(|block| often.gain_db(at(block))).collect();
        assert_eq!(rarely.gain_db(at(0)), gains[0]);
        assert_eq!(rarely.gain_db(at(99)), gains[99]);
    }

    #[test]
    fn fading_keeps_the_mean_power_and_rayleigh_is_as_deep_as_exponential() {
        for k_factor in [0.0, 4.0] {
            let mut path = faded(k_factor);
            let powers: Vec<f64> = (0..50_000)
                .map(|block| path.gain_db(at(block)) + LOSS_AT_1_M_2_4_GHZ_DB)
                .map(|db| libm::pow(10.0, db / 10.0))
                .collect();
            let mean = powers.iter().sum::<f64>() / 50_000.0;
            assert!((mean - 1.0).abs() < 0.02, "{mean}");
            let deep = powers.iter().filter(|&&power| power < 0.1).count() as f64 / 50_000.0;
            // 1 - exp(-0.1) = 0.095 without a direct path. With one, such fades are five times as
            // rare.
            let range = if k_factor == 0.0 { 0.090..0.100 } else { 0.015..0.019 };
            assert!(range.contains(&deep), "{k_factor}: {deep}");
        }
    }
}
