//! Simulcast: three layers of one picture, each with an encoder of its own.
//!
//! ```text
//! target -> headers off -> push-back -> allocation -+-> encoder, 1/4 of the sides -+-> frame
//!                                                   +-> encoder, 1/2 of the sides -+
//!                                                   +-> encoder, full size --------+
//! ```
//!
//! The frames of a picture leave together. Here they are one frame, whose size is their sum, so a
//! lost packet is one of all layers.

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_net::seed::Stream;

use super::encoder::{Camera, Encoder, media_rate};
use super::push_back::PushBack;
use crate::config::EncoderVideo;

const fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

/// The rates of a layer of a picture of this many pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    pixels: f64,
    /// Below this the layer is off.
    least: Bitrate,
    /// What the layer gets while a larger one is on.
    usual: Bitrate,
    /// What it gets at most as the largest.
    most: Bitrate,
}

const fn rates(width: u32, height: u32, least: u64, usual: u64, most: u64) -> Rates {
    let pixels = width as f64 * height as f64;
    Rates { pixels, least: kbps(least), usual: kbps(usual), most: kbps(most) }
}

/// The rates by the size of the picture [LIBWEBRTC §SimulcastFormat].
const FORMATS: [Rates; 6] = [
    rates(1920, 1080, 800, 4_000, 5_000),
    rates(1280, 720, 600, 2_500, 2_500),
    rates(960, 540, 350, 1_200, 1_200),
    rates(640, 360, 150, 500, 700),
    rates(480, 270, 150, 350, 450),
    rates(320, 180, 30, 150, 200),
];
/// A layer that is off begins at this multiple of its least rate [LIBWEBRTC
/// §StableTargetRateExperiment].
const HYSTERESIS: f64 = 1.2;
/// Divisors of the picture's sides.
const DIVISORS: [u32; 3] = [4, 2, 1];

/// The rate up to which a sender of simulcast pads, so that its estimate can grow until the largest
/// layer begins [LIBWEBRTC §VideoSendStreamImpl].
pub(crate) fn padding(video: EncoderVideo) -> Bitrate {
    let of =
        |divisor| rates_of(f64::from(video.width / divisor) * f64::from(video.height / divisor));
    let below = of(4).usual + of(2).usual;
    let top = of(1);
    below + (top.least * HYSTERESIS).min(top.usual)
}

/// The rates of a picture of this many pixels: those of the next smaller format. libwebrtc
/// interpolates between two formats; here sizes in between are not measured.
fn rates_of(pixels: f64) -> Rates {
    let smaller = FORMATS.iter().find(|format| pixels >= format.pixels);
    *smaller.unwrap_or(&FORMATS[FORMATS.len() - 1])
}

#[derive(Clone, Debug)]
struct Layer {
    rates: Rates,
    is_on: bool,
    encoder: Encoder,
}

/// The layers, the smallest picture first.
#[derive(Clone, Debug)]
pub(super) struct Simulcast {
    layers: Vec<Layer>,
    push_back: PushBack,
    has_begun: bool,
}

impl Simulcast {
    pub(super) fn new(stream: &Stream, video: EncoderVideo) -> Self {
        let layers = DIVISORS.map(|divisor| {
            let (width, height) = (video.width / divisor, video.height / divisor);
            let video = EncoderVideo { width, height, ..video };
            let rates = rates_of(f64::from(width) * f64::from(height));
            let encoder = Encoder::layer(stream.clone(), video, rates.least);
            Layer { rates, is_on: false, encoder }
        });
        Self { layers: layers.into(), push_back: PushBack::default(), has_begun: false }
    }

    pub(super) fn begin_key_frame(&mut self) {
        for layer in &mut self.layers {
            layer.encoder.begin_key_frame();
        }
    }

    /// Returns the size on the wire of the frames of all layers that are due now, or `None` if all
    /// are dropped.
    pub(super) fn frame(
        &mut self,
        now: Timestamp,
        camera: Camera,
        target: Bitrate,
        share: f64,
    ) -> Option<DataSize> {
        let media = media_rate(target);
        let (asked, is_thrown_away) = self.push_back.divide(media, share);
        let allocated = self.allocate(asked, camera.cap);
        let sum = allocated.iter().fold(Bitrate::ZERO, |sum, rate| sum + *rate);
        let headroom = media.saturating_sub(sum);
        let mut size = None;
        for (layer, rate) in self.layers.iter_mut().zip(allocated) {
            if rate == Bitrate::ZERO {
                continue;
            }
            let share = headroom * (rate / sum);
            let frame = layer.encoder.encode(now, camera.fps, rate, share, is_thrown_away);
            if let Some(frame) = frame {
                size = Some(size.unwrap_or(DataSize::ZERO) + frame);
            }
        }
        size
    }

    /// Divides the rate among the layers, from the smallest picture on, and begins and ends layers
    /// [LIBWEBRTC §SimulcastRateAllocator]. `cap` is the maximum of the largest picture.
    fn allocate(&mut self, rate: Bitrate, cap: Option<Bitrate>) -> Vec<Bitrate> {
        let mut left = rate.max(self.layers[0].rates.least);
        let mut allocated = vec![Bitrate::ZERO; self.layers.len()];
        let mut top = 0;
        for (index, layer) in self.layers.iter().enumerate() {
            let Rates { least, usual, .. } = layer.rates;
            let is_new = self.has_begun && !layer.is_on;
            let needed = if is_new { (least * HYSTERESIS).min(usual) } else { least };
            if left < needed {
                break;
            }
            allocated[index] = left.min(usual);
            left = left.saturating_sub(usual);
            top = index;
        }
        let mut most = self.layers[top].rates.most;
        if top + 1 == self.layers.len() {
            most = cap.map_or(most, |cap| most.min(cap));
        }
        allocated[top] = (allocated[top] + left).min(most);
        self.switch(&allocated);
        allocated
    }

    /// A layer that begins makes all layers begin with a key frame [LIBWEBRTC §LibvpxVp8Encoder].
    fn switch(&mut self, allocated: &[Bitrate]) {
        let is_on = |index: usize| allocated[index] > Bitrate::ZERO;
        let changed: Vec<usize> = (0..self.layers.len())
            .filter(|&index| self.layers[index].is_on != is_on(index))
            .collect();
        self.has_begun = true;
        if changed.is_empty() {
            return;
        }
        for (index, layer) in self.layers.iter_mut().enumerate() {
            layer.is_on = is_on(index);
            layer.encoder.on_new_layout();
        }
        if changed.iter().any(|&index| is_on(index)) {
            self.begin_key_frame();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::Seed;

    fn simulcast() -> Simulcast {
        let video = EncoderVideo { layers: 3, ..EncoderVideo::DEFAULT };
        Simulcast::new(&Seed::new(1).stream("source"), video)
    }

    fn allocated(simulcast: &mut Simulcast, kbps: u64) -> [u64; 3] {
        let rates = simulcast.allocate(Bitrate::from_kbps(kbps), None);
        [0, 1, 2].map(|index| rates[index].as_bps() / 1_000)
    }

    // [LIBWEBRTC §SimulcastRateAllocator]
    #[test]
    fn a_rate_fills_the_small_layers_first_and_the_rest_goes_to_the_largest() {
        let mut simulcast = simulcast();
        assert_eq!(allocated(&mut simulcast, 20), [30, 0, 0], "the first layer is always on");
        assert_eq!(allocated(&mut simulcast, 320), [200, 0, 0], "the second begins at 330");
        assert_eq!(allocated(&mut simulcast, 330), [150, 180, 0]);
        assert_eq!(allocated(&mut simulcast, 310), [150, 160, 0], "and stays until 300");
        assert_eq!(allocated(&mut simulcast, 1_300), [150, 700, 0], "the third begins at 1,370");
        assert_eq!(allocated(&mut simulcast, 1_370), [150, 500, 720]);
        assert_eq!(allocated(&mut simulcast, 5_000), [150, 500, 2_500]);
        assert_eq!(allocated(&mut simulcast, 299), [200, 0, 0]);
    }

    #[test]
    fn the_first_allocation_has_no_hysteresis() {
        assert_eq!(allocated(&mut simulcast(), 300), [150, 150, 0]);
    }

    #[test]
    fn the_layers_together_meet_a_target_and_a_new_one_begins_with_key_frames() {
        let mut simulcast = simulcast();
        let camera = Camera { fps: 30.0, cap: None };
        let mut run = |from: i64, to: i64, kbps| -> Vec<u64> {
            let frames = (from..to).map(|picture| {
                let now = Timestamp::from_nanos(picture * 1_000_000_000 / 30);
                let frame = simulcast.frame(now, camera, Bitrate::from_kbps(kbps), 1.0);
                frame.map_or(0, DataSize::as_bytes)
            });
            frames.collect()
        };
        let kbps_of = |bytes: &[u64]| bytes.iter().sum::<u64>() as f64 * 0.24 / bytes.len() as f64;
        run(0, 300, 2_000);
        let share = kbps_of(&run(300, 900, 2_000)) / 2_000.0;
        assert!((0.85..1.0).contains(&share), "{share}");
        let two = kbps_of(&run(900, 1_200, 800));
        assert!((500.0..800.0).contains(&two), "{two} kbit/s");
        let three = run(1_200, 1_260, 2_000);
        let mean = three.iter().sum::<u64>() / 60;
        assert!(three[0] > 2 * mean, "{} B for {mean}", three[0]);
    }
}
