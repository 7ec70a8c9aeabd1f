//! One seed per run, and one random stream per source of chance. A new source does not change the
//! others.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The seed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// A seed with this number.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed of a part of the run with this name, whose sources have streams of their own.
    #[must_use]
    pub fn of_part(self, name: &str) -> Self {
        Self(self.stream(name).bits())
    }

    /// The random stream of the source with this name, for example `up/loss`.
    pub fn stream(self, name: &str) -> Stream {
        // FNV-1a hash of the name: short code, and the same result on every machine.
        let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Stream(Pcg64Mcg::seed_from_u64(self.0.rotate_left(32) ^ hash))
    }
}

/// A stream of random numbers. Equal seeds and names give equal streams.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// Uniformly distributed in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniformly distributed 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Standard normal distribution, by the Box-Muller method.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// Laplace distribution with mean zero and this scale, by inversion.
    pub fn laplace(&mut self, scale: f64) -> f64 {
        let u = self.uniform() - 0.5;
        // For |u| = 0.5 the logarithm would be that of zero, so the smallest positive float is
        // used.
        -scale * libm::copysign(1.0, u) * libm::log((1.0 - 2.0 * u.abs()).max(f64::MIN_POSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_name_and_on_nothing_else() {
        let draw = |seed: u64, name: &str| Seed::new(seed).stream(name).uniform();
        assert_eq!(draw(1, "up/loss"), draw(1, "up/loss"));
        assert_ne!(draw(1, "up/loss"), draw(2, "up/loss"));
        assert_ne!(draw(1, "up/loss"), draw(1, "up/jitter"));
    }

    #[test]
    fn the_numbers_are_these_on_every_machine() {
        let mut stream = Seed::new(7).stream("golden");
        let draws: Vec<String> = (0..3).map(|_| format!("{:.12}", stream.uniform())).collect();
        assert_eq!(draws, GOLDEN);
    }
    const GOLDEN: [&str; 3] = ["0.705995522054", "0.419679046409", "0.482990837263"];

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut stream = Seed::new(3).stream("moments");
        let n = 200_000;
        let moments = |draws: Vec<f64>| {
            let mean = draws.iter().sum::<f64>() / n as f64;
            let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
            (mean, variance)
        };
        let (mean, variance) = moments((0..n).map(|_| stream.normal()).collect());
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01, "{mean} {variance}");
        let (mean, variance) = moments((0..n).map(|_| stream.laplace(0.15)).collect());
        assert!(mean.abs() < 0.002 && (variance - 2.0 * 0.15 * 0.15).abs() < 0.001);
    }
}
