//! Sends video from webrtcbin at the rate of a controller of Weir: sender CONTROLLER SECONDS FOLDER
//! The offer goes to FOLDER/offer.sdp, and the answer is awaited in FOLDER/answer.sdp. See
//! README.md.

use std::time::Instant;
use std::{env, fs};

use gst::prelude::*;
use gst_webrtc::{WebRTCICEGatheringState, WebRTCSDPType, WebRTCSessionDescription};

// Without the header extension the receiver sends no feedback per packet. With a buffer of one
// second instead of six, the encoder follows a lower target sooner.
const PIPELINE: &str = "
    videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1
    ! video/x-raw,width=640,height=360,framerate=30/1 ! videoconvert ! queue
    ! vp8enc name=encoder deadline=1 cpu-used=-8 end-usage=cbr lag-in-frames=0
        keyframe-max-dist=3000 buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600
        overshoot=15
    ! rtpvp8pay mtu=1200 picture-id-mode=15-bit
    ! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,extmap-1=(string)\
      http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
    ! webrtcbin name=webrtc bundle-policy=max-bundle";

fn on_negotiation_needed(values: &[gst::glib::Value]) -> Option<gst::glib::Value> {
    let webrtc = values[0].get::<gst::Element>().unwrap();
    let emitter = webrtc.clone();
    let promise = gst::Promise::with_change_func(move |reply| {
        let offer = reply.unwrap().unwrap().get::<WebRTCSessionDescription>("offer").unwrap();
        webrtc.emit_by_name::<()>("set-local-description", &[&offer, &None::<gst::Promise>]);
    });
    emitter.emit_by_name::<()>("create-offer", &[&None::<gst::Structure>, &promise]);
    None
}

/// Writes the offer, if it has all addresses.
fn write_offer(webrtc: &gst::Element, path: &str) -> Result<bool, Box<dyn std::error::Error>> {
    let state = webrtc.property::<WebRTCICEGatheringState>("ice-gathering-state");
    if state == WebRTCICEGatheringState::Complete {
        let offer = webrtc.property::<WebRTCSessionDescription>("local-description");
        fs::write(format!("{path}.part"), offer.sdp().as_text()?)?;
        fs::rename(format!("{path}.part"), path)?;
    }
    Ok(state == WebRTCICEGatheringState::Complete)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, controller, seconds, folder] = &env::args().collect::<Vec<_>>()[..] else {
        return Err("write: sender CONTROLLER SECONDS FOLDER".into());
    };
    gst::init()?;
    let pipeline = gst::parse::launch(PIPELINE)?.downcast::<gst::Pipeline>().unwrap();
    let [webrtc, encoder] = ["webrtc", "encoder"].map(|name| pipeline.by_name(name).unwrap());
    let weircc = gst::ElementFactory::make("weircc").property("algorithm", controller);
    let weircc = weircc.property("encoder", encoder).build()?;
    // Retransmissions; without them a lost packet freezes the picture until the next key frame.
    let transceiver = webrtc.emit_by_name::<gst::glib::Object>("get-transceiver", &[&0_i32]);
    transceiver.set_property("do-nack", true);
    let sender = weircc.clone();
    webrtc.connect("request-aux-sender", false, move |_| Some(sender.to_value()));
    webrtc.connect("on-negotiation-needed", false, on_negotiation_needed);
    pipeline.set_state(gst::State::Playing)?;
    let (start, seconds) = (Instant::now(), seconds.parse()?);
    let (mut is_offered, mut is_answered, mut lines) = (false, false, 0);
    while start.elapsed().as_secs_f64() < seconds {
        is_offered = is_offered || write_offer(&webrtc, &format!("{folder}/offer.sdp"))?;
        if let (false, Ok(text)) = (is_answered, fs::read(format!("{folder}/answer.sdp"))) {
            is_answered = true;
            let sdp = gst_sdp::SDPMessage::parse_buffer(&text)?;
            let answer = WebRTCSessionDescription::new(WebRTCSDPType::Answer, sdp);
            webrtc.emit_by_name::<()>("set-remote-description", &[&answer, &None::<gst::Promise>]);
        }
        if start.elapsed().as_secs() > lines {
            lines += 1;
            let target_kbps = weircc.property::<u64>("target-bitrate") / 1000;
            println!("time_s {lines} target_kbps {target_kbps}");
        }
        let wait = Some(gst::ClockTime::from_mseconds(50));
        let error = pipeline.bus().unwrap().timed_pop_filtered(wait, &[gst::MessageType::Error]);
        error.map_or(Ok(()), |error| Err(format!("{error:?}")))?;
    }
    Ok(pipeline.set_state(gst::State::Null).map(|_| ())?)
}
