//! A generated camera: a picture that pans over a texture, with an object that moves and the noise
//! of a sensor.

use openh264::formats::YUVSource;
use weir_vmaf::tag::Tag;

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
    is_tagged: bool,
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
    /// Pictures of this size in pixels; both numbers are even. A tagged one has its number, from 1
    /// on, in a row of blocks along its top edge, for a receiver that wants to know how old it is.
    pub fn new(width: usize, height: usize, is_tagged: bool) -> Self {
        let mut random = Random(1);
        let texture = texture(&mut random);
        let noise = (0..NOISE).map(|_| (random.next() % (2 * AMPLITUDE + 1)) as u8).collect();
        let chroma = vec![GREY; width / 2 * (height / 2)];
        let luma = vec![0; width * height];
        Self { width, height, frame: 0, is_tagged, luma, chroma, texture, noise }
    }

    /// Makes the next picture.
    pub fn next(&mut self) -> &Self {
        self.frame += 1;
        let pan = self.frame * PAN % TEXTURE;
        let size = self.height / 4;
        let left = self.frame * STEP % (self.width - size);
        for (y, row) in self.luma.chunks_exact_mut(self.width).enumerate() {
            let from = &self.texture[y % TEXTURE * 2 * TEXTURE + pan..][..TEXTURE];
            for part in row.chunks_mut(TEXTURE) {
                part.copy_from_slice(&from[..part.len()]);
            }
            if (size..2 * size).contains(&y) {
                row[left..left + size].fill((y % 8 * 20) as u8 + 40);
            }
            let offset = (self.frame * 7919 + y * 104_729) % (NOISE - self.width);
            let noise = &self.noise[offset..];
            for (pixel, noise) in row.iter_mut().zip(noise) {
                *pixel += noise;
            }
        }
        if self.is_tagged {
            let tag = Tag { number: self.frame as u16, stream: 0 };
            let rows = tag.rows(self.width);
            self.luma[..rows.len()].copy_from_slice(&rows);
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

#[cfg(test)]
mod tests {
    use openh264::decoder::Decoder;
    use openh264::formats::YUVSource as _;
    use weir::{Bitrate, TimeDelta, Timestamp};
    use weir_vmaf::tag::measure;

    use super::*;
    use crate::encoder::Encoder;

    #[test]
    fn every_tag_of_a_small_picture_survives_the_encoder_at_150_kbit_s() {
        const WIDTH: usize = 320;
        let rate = Bitrate::from_kbps(150);
        let mut pictures = Pictures::new(WIDTH, 180, true);
        let mut encoder = Encoder::new(30.0, rate, rate).unwrap();
        let mut decoder = Decoder::new().unwrap();
        let (mut shown, mut bytes) = (0, 0);
        for frame in 1..=300 {
            let now = Timestamp::ZERO + TimeDelta::from_millis(33) * frame;
            let coded = encoder.encode(now, pictures.next(), rate).unwrap().to_vec();
            bytes += coded.len();
            // The encoder may leave a picture out.
            let Some(picture) = decoder.decode(&coded).unwrap() else { continue };
            let blocks = measure(picture.y(), WIDTH, picture.strides().0).unwrap();
            assert_eq!(Tag::read(&blocks).map(|tag| i64::from(tag.number)), Some(frame));
            shown += 1;
        }
        assert!(shown > 100, "{shown} pictures");
        // 150 kbit/s for 9.9 s.
        assert!(bytes < 2 * 186_000, "{bytes} bytes");
    }
}
