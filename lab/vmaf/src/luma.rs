//! The luma of a picture.

use core::f64::consts::PI;

/// PSNR of pictures that are equal, or nearly.
const PSNR_MAX: f64 = 60.0;
const PEAK: f64 = 255.0;
/// Reach of the filter for other sizes, in pixels of the coarser grid.
const LOBES: f64 = 3.0;

/// Brightness of each pixel, 0 to 255, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Luma {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Luma {
    /// `None` if the number of pixels is another, or zero.
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Option<Self> {
        let count = width.checked_mul(height)?;
        (count > 0 && count == pixels.len()).then_some(Self { width, height, pixels })
    }

    /// Width and height.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// The pixels, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The picture without its first rows. `None` if none is left.
    pub fn below(&self, rows: usize) -> Option<Self> {
        let pixels = self.pixels.get(self.width.checked_mul(rows)?..)?.to_vec();
        Self::new(self.width, self.height.checked_sub(rows)?, pixels)
    }

    /// The same picture in another size, by a Lanczos filter of three lobes. A player that fills a
    /// window does the same with a simpler filter.
    pub fn scaled(&self, width: usize, height: usize) -> Self {
        if self.size() == (width, height) || width == 0 || height == 0 {
            return self.clone();
        }
        let columns = filters(self.width, width);
        let rows = filters(self.height, height);
        let mut narrow = vec![0.0; width * self.height];
        for row in 0..self.height {
            let from = &self.pixels[row * self.width..][..self.width];
            for (column, filter) in columns.iter().enumerate() {
                narrow[row * width + column] = filter.sum(|at| f64::from(from[at]));
            }
        }
        let mut pixels = Vec::with_capacity(width * height);
        for filter in &rows {
            for column in 0..width {
                let value = filter.sum(|at| narrow[at * width + column]);
                pixels.push(value.round().clamp(0.0, PEAK) as u8);
            }
        }
        Self { width, height, pixels }
    }

    /// Peak signal to noise ratio in dB. Both have the same size.
    pub(crate) fn psnr_db(&self, other: &Self) -> f64 {
        let mut sum = 0_u64;
        for (&a, &b) in self.pixels.iter().zip(&other.pixels) {
            let difference = u64::from(a.abs_diff(b));
            sum += difference * difference;
        }
        let mean = sum as f64 / self.pixels.len() as f64;
        if mean == 0.0 { PSNR_MAX } else { (10.0 * (PEAK * PEAK / mean).log10()).min(PSNR_MAX) }
    }
}

/// Weights of the pixels around a new pixel.
struct Filter {
    first: usize,
    weights: Vec<f64>,
}

impl Filter {
    fn sum(&self, pixel: impl Fn(usize) -> f64) -> f64 {
        let mut sum = 0.0;
        for (offset, weight) in self.weights.iter().enumerate() {
            sum += weight * pixel(self.first + offset);
        }
        sum
    }
}

/// One filter for each new pixel of a row of `to` pixels that had `from`.
fn filters(from: usize, to: usize) -> Vec<Filter> {
    let step = from as f64 / to as f64;
    let coarse = step.max(1.0);
    let mut filters = Vec::with_capacity(to);
    for index in 0..to {
        let centre = (index as f64 + 0.5) * step - 0.5;
        let first = (centre - LOBES * coarse).ceil().max(0.0) as usize;
        let last = ((centre + LOBES * coarse).floor() as usize).min(from - 1);
        let mut weights = Vec::with_capacity(last - first + 1);
        for at in first..=last {
            weights.push(lanczos((at as f64 - centre) / coarse));
        }
        let sum: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= sum;
        }
        filters.push(Filter { first, weights });
    }
    filters
}

fn lanczos(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    if x.abs() >= LOBES {
        return 0.0;
    }
    LOBES * (PI * x).sin() * (PI * x / LOBES).sin() / (PI * PI * x * x)
}
