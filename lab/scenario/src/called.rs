//! A scenario as `weir call` plays it: what really sends, in place of the scenario's source.

use weir::RateLimits;
use weir::units::{Bitrate, TimeDelta};
use weir_sim::{EncoderDriver, Repair, Source};

use super::{Scenario, Traffic, call};

/// What sends the video of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSender {
    /// Chromium under its own congestion control, which the controller `gcc` stands for.
    Chromium,
    /// A pipeline of GStreamer under a controller.
    Pipeline,
}

// What a page of `weir call` does, whatever the scenario says.
/// Chromium's bitrate before the first feedback.
const START: Bitrate = Bitrate::from_kbps(300);
/// The limit of the page is that of the encoder. The estimate may go to this factor of it, where
/// libwebrtc's probes end.
const ESTIMATE_FACTOR: f64 = 2.0;
/// Time from the start of a call to Chromium's first packet, in calls 11 to 30 ms.
const FIRST_PACKET: TimeDelta = TimeDelta::from_millis(20);
/// Chromium's interval of transport-wide feedback, as measured in calls.
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_micros(62_500);

impl Scenario {
    /// The scenario as `weir call` plays it with this sender: the source of its media is the
    /// sender's encoder, with the picture of `[call] video`. Chromium's sender also has its own
    /// start, limits, feedback and repair, and does not probe while it is application-limited.
    ///
    /// # Errors
    /// One line, if there is no model of the sender's encoder with this codec and content.
    pub fn as_called(&self, sender: CallSender) -> Result<Self, String> {
        let picture = self.call.video;
        let driver = match sender {
            CallSender::Chromium => EncoderDriver::Browser,
            CallSender::Pipeline => EncoderDriver::Pipeline,
        };
        let video = call::encoder(&picture, driver).map_err(|why| format!("{}: {why}", self.id))?;
        let mut called = self.clone();
        for flow in &mut called.flows {
            let Traffic::Media(media) = &mut flow.traffic else { continue };
            let (limits, most) = (media.settings.limits, media.encoder_limit());
            media.source = Source::Encoder { fps: picture.fps.into(), cap: Some(most), video };
            if sender == CallSender::Chromium {
                media.settings.limits = estimate_limits(limits.min(), most);
                media.settings.probe_when_limited = false;
                media.repair = Some(Repair::NONE.with_nack(true).with_fec(true));
                media.feedback_interval = FEEDBACK_INTERVAL;
                flow.start = (flow.start + FIRST_PACKET).min(flow.stop);
            }
        }
        Ok(called)
    }
}

/// Limits of Chromium's estimate for an encoder with this limit.
fn estimate_limits(min: Bitrate, most: Bitrate) -> RateLimits {
    let max = most * ESTIMATE_FACTOR;
    let min = min.min(max);
    RateLimits::new(min, START.max(min).min(max), max).expect("the start lies between")
}

#[cfg(test)]
mod tests {
    use weir_sim::Codec;

    use super::*;
    use crate::parse;

    const HEAD: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                        [network.up]\ncapacity = \"2Mbps\"\n";

    fn scenario(rest: &str) -> Scenario {
        parse("x", &format!("{HEAD}{rest}"), None).unwrap()
    }

    fn called(rest: &str, sender: CallSender) -> crate::Media {
        let called = scenario(rest).as_called(sender).unwrap();
        called.flows[0].traffic.media().unwrap().clone()
    }

    const FILM: &str = "[call.video]\nwidth = 640\nheight = 360\ncontent = \"film\"\n[[flow]]\n\
                        max_bitrate = \"2Mbps\"\nsource = { kind = \"filler\" }\n";

    #[test]
    fn a_pipeline_keeps_the_limits_and_has_its_own_encoder() {
        let media = called(FILM, CallSender::Pipeline);
        let Source::Encoder { cap, video, .. } = media.source else { panic!("another source") };
        assert_eq!((video.driver, video.width), (EncoderDriver::Pipeline, 640));
        let most = Bitrate::from_kbps(2_000);
        assert_eq!((cap, media.settings.limits.max()), (Some(most), most));
        assert_eq!(media.repair, None);
    }

    #[test]
    fn chromiums_page_limits_the_encoder_and_the_estimate_may_be_twice_that() {
        let media = called(FILM, CallSender::Chromium);
        let Source::Encoder { cap, video, .. } = media.source else { panic!("another source") };
        assert_eq!(video.driver, EncoderDriver::Browser);
        assert_eq!(cap, Some(Bitrate::from_kbps(2_000)));
        let limits = media.settings.limits;
        assert_eq!((limits.start(), limits.max()), (START, Bitrate::from_kbps(4_000)));
        assert!(!media.settings.probe_when_limited);
    }

    #[test]
    fn limits_below_chromiums_start_are_its_start() {
        let low = FILM.replace("max_bitrate", "min_bitrate = \"50kbps\"\nmax_bitrate");
        let low = low.replace("2Mbps", "100kbps");
        let limits = called(&low, CallSender::Chromium).settings.limits;
        assert_eq!((limits.start(), limits.max()), (limits.max(), Bitrate::from_kbps(200)));
    }

    #[test]
    fn an_encoder_without_a_model_is_refused_in_a_line() {
        let noise = scenario("[[flow]]\n").as_called(CallSender::Pipeline).unwrap_err();
        assert!(noise.contains("x: the encoder of a pipeline was measured with VP8"), "{noise}");
        let mut h264 = scenario("[[flow]]\n");
        h264.call.video.codec = Codec::H264;
        let h264 = h264.as_called(CallSender::Chromium).unwrap_err();
        assert!(h264.contains("but no H.264"), "{h264}");
    }
}
