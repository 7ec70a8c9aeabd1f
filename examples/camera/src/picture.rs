//! A generated camera: a picture that pans over a texture, with an object that moves and the noise
//! of a sensor.

use openh264::formats::YUVSource;

/// Width and height of the texture in pixels. It repeats.
const TEXTURE: usize = 256;
/// Pixels per frame by which the camera pans.
const PAN: usize = 1;
/// Pixels per frame by which the object moves.
const STEP: usize = 4;
/// Length of the table of sensor noise. A prime number, so that no column has the same noise twice.
const NOISE: usize = 65_521;
/// Highest deviation of the sensor noise from its mean, of 255.
const AMPLITUDE: u32 = 3;
/// Mid grey, for both components of the colour.
const GREY: u8 = 128;

/// Pictures in YUV 4:2:0. Each call of [`Pictures::next`] makes the next one.
pub struct Pictures {
    width: usize,
    height: usize,
    frame: usize,
    luma: Vec<u8>,
    chroma: Vec<u8>,
    texture: Vec<u8>,
    noise: Vec<u8>,
}

/// A generator of reproducible pseudo-random numbers (xorshift of 32 bits).
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// Squares of eight pixels in random shades, twice as wide as the texture: a row can be copied from
/// any start without wrapping.
fn texture(random: &mut Random) -> Vec<u8> {
    let squares: Vec<u8> =
        (0..TEXTURE * TEXTURE / 64).map(|_| 60 + (random.next() % 130) as u8).collect();
    let shade = |x: usize, y: usize| squares[y / 8 * (TEXTURE / 8) + x / 8];
    (0..TEXTURE)
        .flat_map(|y| (0..2 * TEXTURE).map(move |x| (x % TEXTURE, y)))
        .map(|(x, y)| shade(x, y))
        .collect()
}

impl Pictures {
    /// Pictures of this size in pixels; both numbers are even.
    pub fn new(width: usize, height: usize) -> Self {
        let mut random = Random(1);
        let texture = texture(&mut random);
        let noise = (0..NOISE).map(|_| (random.next() % (2 * AMPLITUDE + 1)) as u8).collect();
        let chroma = vec![GREY; width / 2 * (height / 2)];
        Self { width, height, frame: 0, luma: vec![0; width * height], chroma, texture, noise }
    }

    /// Makes the next picture.
    pub fn next(&mut self) -> &Self {
        self.frame += 1;
        let pan = self.frame * PAN % TEXTURE;
        let size = self.height / 4;
        let left = self.frame * STEP % (self.width - size);
        for (y, row) in self.luma.chunks_exact_mut(self.width).enumerate() {
            let from = &self.texture[y % TEXTURE * 2 * TEXTURE + pan..][..TEXTURE];
            row.chunks_mut(TEXTURE).for_each(|part| part.copy_from_slice(&from[..part.len()]));
            if (size..2 * size).contains(&y) {
                row[left..left + size].fill((y % 8 * 20) as u8 + 40);
            }
            let offset = (self.frame * 7919 + y * 104_729) % (NOISE - self.width);
            let noise = &self.noise[offset..];
            row.iter_mut().zip(noise).for_each(|(pixel, noise)| *pixel += noise);
        }
        self
    }
}

impl YUVSource for Pictures {
    fn dimensions(&self) -> (usize, usize) {
        (self.width, self.height)
    }
    fn strides(&self) -> (usize, usize, usize) {
        (self.width, self.width / 2, self.width / 2)
    }
    fn y(&self) -> &[u8] {
        &self.luma
    }
    fn u(&self) -> &[u8] {
        &self.chroma
    }
    fn v(&self) -> &[u8] {
        &self.chroma
    }
}
