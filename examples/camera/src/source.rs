//! The media source: pictures, encoder and packetizer.

use std::error::Error;

use weir::{Bitrate, RateLimits, TimeDelta, Timestamp};

use crate::encoder::Encoder;
use crate::marks::{Part, within};
use crate::packetizer::Packetizer;
use crate::picture::Pictures;

/// Frames per second.
const FRAME_RATE: i64 = 30;
pub const FRAME_INTERVAL: TimeDelta = TimeDelta::from_nanos(1_000_000_000 / FRAME_RATE);
/// RTP units per second (RFC 6184, section 8.2.1).
const CLOCK_RATE: i64 = 90_000;

/// A picture size that the camera offers.
#[derive(Clone, Copy, Debug)]
pub struct Resolution {
    width: usize,
    height: usize,
}

impl Resolution {
    /// Finds a resolution by its name, such as `720p`.
    pub fn find(name: &str) -> Option<Self> {
        let sizes = [("480p", 848, 480), ("720p", 1280, 720), ("1080p", 1920, 1080)];
        let found = sizes.iter().find(|size| size.0 == name);
        found.map(|&(_, width, height)| Self { width, height })
    }
}

/// Makes pictures and encodes them.
pub struct Source {
    pictures: Pictures,
    encoder: Encoder,
    packetizer: Packetizer,
}

impl Source {
    /// A source of this resolution, with or without tags, whose bitrate stays within the limits.
    ///
    /// # Errors
    /// If the encoder cannot start.
    pub fn new(
        resolution: Resolution,
        is_tagged: bool,
        limits: RateLimits,
    ) -> Result<Self, openh264::Error> {
        Ok(Self {
            pictures: Pictures::new(resolution.width, resolution.height, is_tagged),
            encoder: Encoder::new(FRAME_RATE as f32, limits.start(), limits.max())?,
            packetizer: Packetizer::default(),
        })
    }

    /// The RTP packets of the next picture. There are none if the encoder leaves the picture out.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn take_picture(
        &mut self,
        now: Timestamp,
        bitrate: Bitrate,
    ) -> Result<Vec<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        let picture = within(Part::Picture, || self.pictures.next());
        let frame = within(Part::Encoder, || self.encoder.encode(now, picture, bitrate))?;
        let timestamp = (now.as_micros() * CLOCK_RATE / 1_000_000) as u32;
        let layers = (0..frame.num_layers()).filter_map(|index| frame.layer(index));
        let units: Vec<Vec<u8>> = layers
            .flat_map(|layer| {
                let unit = |index| layer.nal_unit(index).map(<[u8]>::to_vec);
                (0..layer.nal_count()).filter_map(unit).collect::<Vec<_>>()
            })
            .collect();
        let units = units.iter().map(Vec::as_slice);
        Ok(within(Part::Packetizer, || self.packetizer.packets(timestamp, units)))
    }

    /// Makes the next picture a key frame, because the receiver has asked for one.
    pub fn force_key_frame(&mut self) {
        self.encoder.force_key_frame();
    }
}
