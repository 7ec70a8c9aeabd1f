//! Rules about what this end receives and plays, and about its sound.

use weir_record::calls::stats::Kind;

use super::*;

/// Longest delay of sound and pictures in ms that people do not notice, as in good time.
const LATE_MS: f64 = 250.0;
/// Sound below this level is digital silence. A microphone in a quiet room gives 30 times as much.
const SILENCE: f64 = 1e-5;
/// A video below this rate in bit/s is padding, or a keep-alive.
const NO_VIDEO_BPS: f64 = 20e3;
/// Fewer frames than this share of the usual ones are few.
const FEW: f64 = 0.5;
/// So few frames a second may be those of a shared page that stands still.
const STILL_PAGE: f64 = 3.0;

impl Moment<'_> {
    fn is_received(&self, kind: Kind) -> bool {
        self.stream.direction == StreamDirection::Received && self.stream.kind == kind
    }

    fn is_audio(&self) -> bool {
        self.stream.kind == Kind::Audio
    }

    /// Whether the stream has had a packet before the sample.
    fn has_begun(&self) -> bool {
        self.sample().packets_so_far > self.sample().packets
    }

    /// Packets of a video come, and none of its frames is decoded: in two reports, since a video
    /// begins within one.
    pub(super) fn is_not_decoded(&self) -> bool {
        let samples = &self.stream.samples;
        let before = self.index.checked_sub(1).and_then(|index| samples.get(index));
        self.is_received(Kind::Video)
            && is_undecoded(self.sample())
            && (before.is_some_and(is_undecoded)
                || samples.get(self.index + 1).is_some_and(is_undecoded))
    }

    /// Whole frames come, and many of them are not decoded.
    pub(super) fn is_decoder_slow(&self) -> bool {
        let sample = self.sample();
        let rates = sample.received_rate.zip(sample.decoded_rate);
        self.is_received(Kind::Video)
            && self.loss() < LOSS
            && rates.is_some_and(|(came, decoded)| decoded > 0.0 && decoded < FEW_FRAMES * came)
    }

    /// Few frames come, and nothing on the way here makes them few.
    pub(super) fn has_few_frames(&self) -> bool {
        let sample = self.sample();
        let came = sample.received_rate.or(sample.frame_rate);
        let Some((came, usual)) = came.zip(self.stream.usual_frame_rate) else { return false };
        let is_still_page = sample.is_screen || came < STILL_PAGE && sample.freezes == 0;
        self.is_received(Kind::Video)
            && !is_still_page
            && sample.packets > 0
            && came > 0.0
            && came < FEW * usual
            && !self.queues()
            && self.loss() < LOSS
    }

    /// What arrives is played later than people would notice, and no queue explains it.
    pub(super) fn is_late(&self) -> bool {
        self.stream.direction == StreamDirection::Received
            && self.sample().delay_ms().is_some_and(|ms| ms > LATE_MS)
            && !self.queues()
    }

    /// Whether no packet of the stream ever came, although the path is there. Servers and
    /// browsers announce streams before their first packet.
    fn never_came(&self) -> bool {
        let Some(last) = self.stream.samples.last() else { return false };
        last.packets_so_far == 0 && self.sample().rtt_ms.is_some()
    }

    /// A stream that has begun, or that was announced, brings nothing, and nothing of it is lost.
    pub(super) fn is_nothing_received(&self) -> bool {
        let sample = self.sample();
        self.stream.direction == StreamDirection::Received
            && sample.packets == 0
            && sample.loss.unwrap_or(0.0) == 0.0
            && (self.has_begun() || self.never_came())
    }

    /// Sound that has begun is not sent.
    pub(super) fn is_nothing_sent(&self) -> bool {
        let sample = self.sample();
        self.stream.direction == StreamDirection::Sent
            && self.is_audio()
            && sample.packets == 0
            && !sample.lacks_sent()
            && self.has_begun()
    }

    /// Packets of sound that is digital silence.
    pub(super) fn is_silence(&self, direction: StreamDirection) -> bool {
        let sample = self.sample();
        self.stream.direction == direction
            && self.is_audio()
            && sample.packets > 0
            && sample.sound.is_some_and(|level| level < SILENCE)
    }

    /// A camera gives frames, and none is encoded.
    pub(super) fn is_nothing_encoded(&self) -> bool {
        let sample = self.sample();
        let is_connected = sample.rtt_ms.is_some() || sample.estimate_bps.is_some();
        self.is_sent_video()
            // Of simulcast, a layer that is too large for the path is left out.
            && self.stream.id.rid.is_none()
            && is_connected
            && sample.active != Some(false)
            && sample.target_bps != Some(0.0)
            && sample.source_rate.is_some_and(|rate| rate >= 1.0)
            && sample.frame_rate == Some(0.0)
    }

    /// The browser says that bandwidth limits the video, and its target is all of the estimate.
    pub(super) fn is_limited_by_bandwidth(&self) -> bool {
        let sample = self.sample();
        self.is_sent_video()
            && sample.limitation == LimitationReason::Bandwidth
            && sample.active != Some(false)
            && !self.is_capped_by_the_picture()
    }
}

fn is_undecoded(sample: &Sample) -> bool {
    sample.decoded_rate == Some(0.0) && sample.packets > 0 && sample.rate_bps >= NO_VIDEO_BPS
}
