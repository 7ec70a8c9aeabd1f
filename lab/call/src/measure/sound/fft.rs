//! Cross-correlation by the fast Fourier transform: Cooley and Tukey's, of powers of two.
//!
//! A crate for it would bring six others; this is all that is needed.

use std::f64::consts::PI;

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn times(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    fn minus(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }

    fn conjugate(self) -> Self {
        Self { re: self.re, im: -self.im }
    }
}

/// Transforms values in place. Their number is a power of two.
fn transform(values: &mut [Complex]) {
    let count = values.len();
    debug_assert!(count.is_power_of_two());
    let bits = count.trailing_zeros();
    for index in 0..count {
        let other = if bits == 0 { 0 } else { index.reverse_bits() >> (usize::BITS - bits) };
        if index < other {
            values.swap(index, other);
        }
    }
    let mut half = 1;
    while half < count {
        let mut turns = Vec::with_capacity(half);
        for index in 0..half {
            let angle = -PI * index as f64 / half as f64;
            turns.push(Complex { re: libm::cos(angle), im: libm::sin(angle) });
        }
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((low, high), turn) in low.iter_mut().zip(high).zip(&turns) {
                let turned = high.times(*turn);
                (*low, *high) = (low.plus(turned), low.minus(turned));
            }
        }
        half *= 2;
    }
}

/// For each place at which `pattern` fits into `signal`: the sum of the products of both.
pub(super) fn correlation(signal: &[f32], pattern: &[f32]) -> Vec<f64> {
    let Some(places) = (signal.len() + 1).checked_sub(pattern.len()) else { return Vec::new() };
    // Wrapped sums are of places that do not count.
    let count = signal.len().next_power_of_two();
    let [mut values, mut other] = [signal, pattern].map(|part| {
        let mut values = vec![Complex::default(); count];
        for (value, &sample) in values.iter_mut().zip(part) {
            value.re = f64::from(sample);
        }
        transform(&mut values);
        values
    });
    for (value, other) in values.iter_mut().zip(&mut other) {
        // Conjugated, the transform is its own inverse.
        *value = value.times(other.conjugate()).conjugate();
    }
    transform(&mut values);
    values[..places].iter().map(|value| value.re / count as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize) -> f32 {
        ((n * 7_919 + n * n * 104_729) % 1_009) as f32 / 1_009.0 - 0.5
    }

    #[test]
    fn a_correlation_has_the_sums_of_its_definition() {
        for (length, own) in [(1, 1), (7, 3), (64, 64), (100, 33)] {
            let signal: Vec<f32> = (0..length).map(noise).collect();
            let pattern: Vec<f32> = (0..own).map(|n| noise(n + 500)).collect();
            let fast = correlation(&signal, &pattern);
            assert_eq!(fast.len(), length - own + 1);
            for (place, value) in fast.iter().enumerate() {
                let pairs = signal[place..].iter().zip(&pattern);
                let sum: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                assert!((value - sum).abs() < 1e-6, "{length} {own} {place}");
            }
        }
        assert!(correlation(&[1.0], &[1.0, 2.0]).is_empty());
    }
}
