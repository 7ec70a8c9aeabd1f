//! One seed a run, and from it one stream of chance a source, so that a new source shifts no other.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The seed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// A seed by number.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of the source that has this name, e.g. `up/loss`.
    pub fn stream(self, name: &str) -> Stream {
        // FNV-1a over the name: short, and the same on every machine.
        let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Stream(Pcg64Mcg::seed_from_u64(self.0.rotate_left(32) ^ hash))
    }
}

/// A stream of random numbers, the same for equal seeds and names.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// Uniform in [0, 1), with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform over all numbers of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// Laplace with mean zero and this scale, by inversion.
    pub fn laplace(&mut self, scale: f64) -> f64 {
        let u = self.uniform() - 0.5;
        // The argument stays above zero: |u| <= 0.5, and 0.5 itself gives the smallest float.
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
