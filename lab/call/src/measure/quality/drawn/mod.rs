//! Pictures that are drawn in place of a clip: a person who talks, and slides. They are the same on
//! every machine, and repeat without a cut.

mod head;
mod slides;

use std::io::{self, Write};

use weir_scenario::call::{Content, Picture};

/// Chroma without colour.
const GREY: f64 = 128.0;
/// Luma of black and white.
const BLACK: f64 = 16.0;
const WHITE: f64 = 235.0;

/// A colour: luma and the two chromas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour {
    y: f64,
    u: f64,
    v: f64,
}

impl Colour {
    const fn new(y: f64, u: f64, v: f64) -> Self {
        Self { y, u, v }
    }

    const fn grey(y: f64) -> Self {
        Self::new(y, GREY, GREY)
    }

    /// A share of the way to another colour.
    fn towards(self, other: Self, share: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        Self {
            y: self.y + share * (other.y - self.y),
            u: self.u + share * (other.u - self.u),
            v: self.v + share * (other.v - self.v),
        }
    }
}

/// What draws the content; `None` if a clip or a pattern of ffmpeg shows it.
pub fn painter(content: Content) -> Option<Painter> {
    match content {
        Content::Head => Some(head::colour),
        Content::Slides => Some(slides::colour),
        _ => None,
    }
}

/// The colour of a point. Points are in heights of the picture, from its middle to the right and
/// down. The moment is a share of the loop.
pub type Painter = fn(Point) -> Colour;

/// A point of a picture in time.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    x: f64,
    y: f64,
    /// Width of a pixel.
    pixel: f64,
    /// Share of the loop that has passed.
    moment: f64,
}

/// Writes frames as YUV4MPEG2. The loop has `seconds`.
///
/// # Errors
/// If they cannot be written.
pub fn write(
    out: &mut impl Write,
    video: &Picture,
    seconds: u32,
    painter: Painter,
) -> io::Result<()> {
    let Picture { width, height, fps, .. } = *video;
    writeln!(out, "YUV4MPEG2 W{width} H{height} F{fps}:1 Ip A1:1 C420jpeg")?;
    let (width, height, frames) = (width as usize, height as usize, fps * seconds);
    let mut planes = Planes::new(width, height);
    for number in 0..frames {
        planes.paint(painter, f64::from(number) / f64::from(frames), number);
        out.write_all(b"FRAME\n")?;
        for plane in [&planes.y, &planes.u, &planes.v] {
            out.write_all(plane)?;
        }
    }
    out.flush()
}

/// A picture with chroma of half width and height.
struct Planes {
    width: usize,
    height: usize,
    y: Vec<u8>,
    u: Vec<u8>,
    v: Vec<u8>,
}

impl Planes {
    fn new(width: usize, height: usize) -> Self {
        let quarter = width / 2 * (height / 2);
        Self { width, height, y: vec![0; width * height], u: vec![0; quarter], v: vec![0; quarter] }
    }

    fn paint(&mut self, painter: Painter, moment: f64, frame: u32) {
        let pixel = 1.0 / self.height as f64;
        for row in 0..self.height {
            for column in 0..self.width {
                let x = (column as f64 + 0.5 - self.width as f64 / 2.0) * pixel;
                let y = (row as f64 + 0.5) * pixel - 0.5;
                let colour = painter(Point { x, y, pixel, moment });
                let place = row * self.width + column;
                let grain = grain(place as u32, frame);
                self.y[place] = (colour.y + grain).clamp(BLACK, WHITE) as u8;
                if row % 2 == 0 && column % 2 == 0 {
                    let place = row / 2 * (self.width / 2) + column / 2;
                    if place < self.u.len() {
                        (self.u[place], self.v[place]) = (colour.u as u8, colour.v as u8);
                    }
                }
            }
        }
    }
}

/// Noise of a camera's sensor, which also makes steps of one level invisible: -0.5 to 1.5.
fn grain(place: u32, frame: u32) -> f64 {
    let bits = hash(place.wrapping_add(frame.wrapping_mul(0x9E37_79B9)));
    2.0 * f64::from(bits) / f64::from(u32::MAX) - 0.5
}

/// Mixes the bits of a number.
fn hash(number: u32) -> u32 {
    let mut bits = number ^ (number >> 16);
    bits = bits.wrapping_mul(0x7FEB_352D);
    bits ^= bits >> 15;
    bits = bits.wrapping_mul(0x846C_A68B);
    bits ^ (bits >> 16)
}

/// How much of a pixel lies inside an edge at this distance, which is negative inside.
fn inside(distance: f64, pixel: f64) -> f64 {
    (0.5 - distance / pixel).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(content: Content) -> Vec<u8> {
        let mut out = Vec::new();
        let video = Picture { width: 64, height: 36, fps: 5, ..Picture::default() };
        write(&mut out, &video, 4, painter(content).unwrap()).unwrap();
        out
    }

    /// The luma of a frame.
    fn luma(video: &[u8], number: usize) -> &[u8] {
        let header = video.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let pixels = 64 * 36;
        &video[header + number * (6 + pixels * 3 / 2) + 6..][..pixels]
    }

    fn difference(a: &[u8], b: &[u8]) -> f64 {
        let sum: i64 = a.iter().zip(b).map(|(a, b)| i64::from(a.abs_diff(*b))).sum();
        sum as f64 / a.len() as f64
    }

    #[test]
    fn a_drawn_video_is_the_same_each_time_and_has_all_its_frames() {
        for content in [Content::Head, Content::Slides] {
            let video = drawn(content);
            assert_eq!(video, drawn(content));
            let text = "YUV4MPEG2 W64 H36 F5:1 Ip A1:1 C420jpeg\n";
            assert_eq!(video.len(), text.len() + 20 * (6 + 64 * 36 * 3 / 2));
        }
    }

    #[test]
    fn the_picture_moves_and_the_loop_has_no_cut() {
        for content in [Content::Head, Content::Slides] {
            let video = drawn(content);
            let mut steps = Vec::new();
            for number in 0..19 {
                steps.push(difference(luma(&video, number), luma(&video, number + 1)));
            }
            let largest = steps.iter().copied().fold(0.0, f64::max);
            let seam = difference(luma(&video, 19), luma(&video, 0));
            assert!(largest > 1.0, "{content:?}: {steps:?}");
            assert!(seam <= largest * 1.05, "{content:?}: {seam} after {largest}");
        }
    }

    #[test]
    fn other_contents_are_not_drawn() {
        assert!(painter(Content::Film).is_none() && painter(Content::Noise).is_none());
    }
}
