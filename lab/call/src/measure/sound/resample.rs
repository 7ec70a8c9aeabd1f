//! Brings a recording to 16,000 samples a second, the rate of wideband speech.

use std::f64::consts::PI;

/// Samples a second.
pub(crate) const RATE: f64 = 16_000.0;
/// Speech above this frequency in Hz is left out, below half of [`RATE`].
const CUTOFF: f64 = 7_200.0;
/// Zeros of the kernel on each side.
const LOBES: f64 = 8.0;
/// Steps of the kernel's table for each sample of the recording.
const STEPS: usize = 32;

/// A windowed sinc: the low-pass filter between two rates.
pub(crate) struct Resampler {
    /// Samples of the recording for each one of the result.
    ratio: f64,
    /// Samples of the recording on each side of a result.
    reach: usize,
    /// One side of the kernel.
    kernel: Vec<f32>,
}

impl Resampler {
    /// From this rate.
    pub(crate) fn of(rate: u32) -> Self {
        let rate = f64::from(rate);
        // In cycles a sample.
        let cutoff = CUTOFF.min(0.45 * rate) / rate;
        let reach = (LOBES / (2.0 * cutoff)).ceil();
        let mut kernel = Vec::new();
        for step in 0..=reach as usize * STEPS {
            let x = step as f64 / STEPS as f64;
            let angle = 2.0 * PI * cutoff * x;
            let sinc = if step == 0 { 1.0 } else { libm::sin(angle) / angle };
            let window = 0.5 + 0.5 * libm::cos(PI * x / reach);
            kernel.push((2.0 * cutoff * sinc * window) as f32);
        }
        Self { ratio: rate / RATE, reach: reach as usize, kernel }
    }

    /// Adds the recording to `result`, its first sample at this place, which may be between two.
    pub(crate) fn add(&self, recorded: &[f32], offset: f64, result: &mut [f32]) {
        let end = offset + recorded.len() as f64 / self.ratio;
        let first = offset.ceil().max(0.0) as usize;
        let last = (end.floor().max(0.0) as usize).min(result.len());
        for (index, sample) in result.iter_mut().enumerate().take(last).skip(first) {
            *sample += self.at(recorded, (index as f64 - offset) * self.ratio);
        }
    }

    /// The value at a place of the recording.
    fn at(&self, recorded: &[f32], place: f64) -> f32 {
        let middle = place as usize;
        let first = middle.saturating_sub(self.reach - 1);
        let last = (middle + self.reach).min(recorded.len());
        let mut sum = 0.0;
        for (index, sample) in recorded.iter().enumerate().take(last).skip(first) {
            let step = ((index as f64 - place).abs() * STEPS as f64).round() as usize;
            sum += sample * self.kernel.get(step).copied().unwrap_or(0.0);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(rate: f64, hertz: f64, seconds: f64) -> Vec<f32> {
        let count = (rate * seconds) as usize;
        (0..count).map(|n| libm::sin(2.0 * PI * hertz * n as f64 / rate) as f32).collect()
    }

    fn resampled(rate: u32, hertz: f64, offset: f64) -> Vec<f32> {
        let mut result = vec![0.0; 1_700];
        Resampler::of(rate).add(&tone(rate.into(), hertz, 0.1), offset, &mut result);
        result
    }

    #[test]
    fn a_tone_keeps_its_phase_at_any_place_and_rate() {
        for rate in [16_000, 44_100, 48_000] {
            for offset in [0.0, 0.25, 10.7] {
                let result = resampled(rate, 1_000.0, offset);
                for (index, found) in result.iter().enumerate().take(1_400).skip(200) {
                    let time = (index as f64 - offset) / RATE;
                    let wanted = libm::sin(2.0 * PI * 1_000.0 * time) as f32;
                    let error = (found - wanted).abs();
                    assert!(error < 0.01, "{rate} Hz, {offset}, {index}: {error}");
                }
            }
        }
    }

    #[test]
    fn what_is_above_half_the_rate_is_left_out() {
        let result = resampled(48_000, 10_000.0, 0.0);
        let most = result[200..1_400].iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        assert!(most < 0.01, "{most}");
    }
}
