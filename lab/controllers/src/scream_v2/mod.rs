//! SCReAMv2 as others run it: the library's `scream-v2` with their values.
//!
//! Each is a set of parameters of the one implementation. `docs/reference/controllers/scream-v2.md`
//! says what is not known, or not built.

use weir::Settings;
use weir::controllers::scream_v2::{LossRule, Parameters, ScreamV2};

/// SCReAMv2 as libwebrtc has it behind the field trial `WebRTC-Bwe-ScreamV2`
/// [LIBWEBRTC §scream_v2_parameters]. Not built: LWSCREAM-D1 to LWSCREAM-D5.
pub(crate) fn webrtc(settings: Settings) -> ScreamV2 {
    let mut p = Parameters::DRAFT;
    p.mss = 1280.0;
    p.follows_packet_size = false;
    p.min_ref_wnd = 1000.0;
    p.head_room = 1.1;
    p.inflection_gain = 2.0;
    p.pacing_headroom = 1.1;
    p.media_head_room = 1.0;
    p.packet_overhead = 0.0;
    p.adjusts_to_frames = false;
    p.adapts_delay_target = false;
    p.counts_hold_time = true;
    p.losses = LossRule::RoundTrips;
    ScreamV2::with_parameters(settings, p)
}

/// SCReAMv2 with the draft's conditional reaction to losses and its guard against rate policers
/// [SCREAMV2 §4.5.2].
pub(crate) fn policer(settings: Settings) -> ScreamV2 {
    let mut p = Parameters::DRAFT;
    p.losses = LossRule::Rate;
    p.guards_against_policers = true;
    ScreamV2::with_parameters(settings, p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::RateLimits;
    use weir::controller::Controller as _;
    use weir::feedback::{FeedbackReport, PacketReport, SentPacket};
    use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

    fn settings() -> Settings {
        let kbps = Bitrate::from_kbps;
        Settings::new(RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap())
    }

    /// The target after 600 reports of ten packets, of which every `nth` report misses one.
    fn target(mut controller: ScreamV2, nth: i64) -> Bitrate {
        let size = DataSize::from_bytes(1_000);
        for number in 0..600 {
            let sent = Timestamp::from_millis(1_000 + 50 * number);
            let mut packets = Vec::new();
            for index in 0..10 {
                let sequence = 10 * number + index;
                controller.on_packet_sent(sent, &SentPacket::new(sequence, size));
                let lost = number % nth == 0 && index == 3;
                let arrival = (!lost).then_some(sent + TimeDelta::from_millis(20));
                packets.push(PacketReport::new(sequence, size, sent).with_arrival_time(arrival));
            }
            controller
                .on_feedback(sent + TimeDelta::from_millis(40), &FeedbackReport::new(packets));
        }
        controller.target().bitrate
    }

    #[test]
    fn a_loss_in_each_third_report_lowers_the_drafts_rate_and_not_webrtcs() {
        let draft = target(ScreamV2::new(settings()), 3);
        let webrtc = target(webrtc(settings()), 3);
        assert!(webrtc > draft * 1.3, "{draft} {webrtc}");
    }

    // [SCREAMV2 §4.5.2]
    #[test]
    fn ten_percent_of_loss_without_a_queue_hold_the_window_down() {
        let free = target(policer(settings()), 1_000);
        let policed = target(policer(settings()), 1);
        assert!(policed < free * 0.6, "{free} {policed}");
    }
}
