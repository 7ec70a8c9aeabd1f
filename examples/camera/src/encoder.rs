//! OpenH264, with a target bitrate that changes while it runs.

use openh264::encoder::{
    BitRate, Complexity, EncodedBitStream, EncoderConfig, FrameRate, IntraFramePeriod,
    RateControlMode, UsageType,
};
use openh264::{OpenH264API, formats::YUVSource};
use openh264_sys2::{
    ENCODER_OPTION, ENCODER_OPTION_BITRATE, ENCODER_OPTION_MAX_BITRATE, LAYER_NUM, SPATIAL_LAYER_0,
    SPATIAL_LAYER_ALL, TagBitrateInfo,
};
use weir::{Bitrate, Timestamp};

/// Frames between two key frames: 10 s at 30 frames a second.
const KEY_FRAME_INTERVAL: u32 = 300;

/// An H.264 encoder for live video.
pub struct Encoder {
    inner: openh264::encoder::Encoder,
    bitrate: Bitrate,
    max_bitrate: Bitrate,
    is_started: bool,
}

impl Encoder {
    /// An encoder for this frame rate in Hz, with its first and its highest bitrate.
    pub fn new(
        frame_rate: f32,
        bitrate: Bitrate,
        max_bitrate: Bitrate,
    ) -> Result<Self, openh264::Error> {
        let config = EncoderConfig::new()
            .usage_type(UsageType::CameraVideoRealTime)
            .complexity(Complexity::Low)
            .rate_control_mode(RateControlMode::Bitrate)
            .max_frame_rate(FrameRate::from_hz(frame_rate))
            .bitrate(BitRate::from_bps(bps(bitrate) as u32))
            .intra_frame_period(IntraFramePeriod::from_num_frames(KEY_FRAME_INTERVAL))
            // Instructions are counted per thread.
            .num_threads(1);
        let inner =
            openh264::encoder::Encoder::with_api_config(OpenH264API::from_source(), config)?;
        Ok(Self { inner, bitrate, max_bitrate, is_started: false })
    }

    /// Encodes a picture. The result is empty if the encoder leaves the picture out.
    pub fn encode(
        &mut self,
        now: Timestamp,
        picture: &impl YUVSource,
        bitrate: Bitrate,
    ) -> Result<EncodedBitStream<'_>, openh264::Error> {
        if self.is_started && bitrate != self.bitrate {
            self.set(ENCODER_OPTION_BITRATE, SPATIAL_LAYER_ALL, bitrate)?;
            self.bitrate = bitrate;
        }
        if !self.is_started {
            // The encoder takes its settings from the first picture, which starts it.
            self.inner.encode(picture)?;
            self.set(ENCODER_OPTION_MAX_BITRATE, SPATIAL_LAYER_0, self.max_bitrate)?;
            self.inner.force_intra_frame();
            self.is_started = true;
        }
        let time = openh264::Timestamp::from_millis(now.as_millis() as u64);
        self.inner.encode_at(picture, time)
    }

    /// Makes the next picture a key frame, because the receiver has asked for one.
    pub fn force_key_frame(&mut self) {
        self.inner.force_intra_frame();
    }

    fn set(
        &mut self,
        option: ENCODER_OPTION,
        layer: LAYER_NUM,
        bitrate: Bitrate,
    ) -> Result<(), openh264::Error> {
        let mut info = TagBitrateInfo { iLayer: layer, iBitrate: bps(bitrate) };
        // SAFETY: the encoder is started, and both options take a `TagBitrateInfo`, which it
        // copies.
        let status = unsafe { self.inner.raw_api().set_option(option, (&raw mut info).cast()) };
        if status == 0 {
            return Ok(());
        }
        Err(openh264::Error::msg("the encoder refuses the bitrate"))
    }
}

/// Bits per second in the encoder's type; far above what a camera sends.
fn bps(bitrate: Bitrate) -> i32 {
    i32::try_from(bitrate.as_bps()).unwrap_or(i32::MAX)
}
