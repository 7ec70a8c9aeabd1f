//! Sends video from webrtcbin at the rate of a controller of Weir: sender CONTROLLER SECONDS FOLDER
//!
//! The offer goes to FOLDER/offer.sdp, and the answer is awaited in FOLDER/answer.sdp. See README.md.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst_webrtc::{WebRTCICEGatheringState, WebRTCSDPType, WebRTCSessionDescription};

// Without the header extension the receiver sends no feedback per packet. With a buffer of one
// second instead of six, the encoder follows a lower target sooner.
const PIPELINE: &str = "
    videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1
    ! video/x-raw,width=640,height=360,framerate=30/1
    ! videoconvert ! queue
    ! vp8enc name=encoder deadline=1 cpu-used=8 end-usage=cbr lag-in-frames=0
        buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600 overshoot=15
    ! rtpvp8pay mtu=1200 picture-id-mode=15-bit
    ! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,extmap-1=(string)\
      http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
    ! webrtcbin name=webrtc bundle-policy=max-bundle";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [controller, seconds, folder] = &words[..] else {
        return Err("write: sender CONTROLLER SECONDS FOLDER".into());
    };
    let end = Duration::from_secs_f64(seconds.parse()?);
    let offer = Path::new(folder).join("offer.sdp");
    let answer = Path::new(folder).join("answer.sdp");
    gst::init()?;
    let start = Instant::now();
    let pipeline =
        gst::parse::launch(PIPELINE)?.downcast::<gst::Pipeline>().expect("several elements");
    let [webrtc, encoder] =
        ["webrtc", "encoder"].map(|name| pipeline.by_name(name).expect("named in the pipeline"));
    let weircc = gst::ElementFactory::make("weircc")
        .property("algorithm", controller)
        .property("encoder", encoder)
        .build()
        .map_err(|_| "no element weircc: run `make install-gst`, or set GST_PLUGIN_PATH")?;
    // Retransmissions; without them a lost packet freezes the picture until the next key frame.
    let transceiver = webrtc.emit_by_name::<glib::Object>("get-transceiver", &[&0_i32]);
    transceiver.set_property("do-nack", true);

    let sender = weircc.clone();
    webrtc.connect("request-aux-sender", false, move |_| Some(sender.to_value()));
    webrtc.connect("on-negotiation-needed", false, |values| {
        let webrtc = values[0].get::<gst::Element>().expect("the emitter");
        let set_offer = {
            let webrtc = webrtc.clone();
            move |reply: Result<Option<&gst::StructureRef>, gst::PromiseError>| {
                let offer = reply.ok().flatten().and_then(|reply| reply.value("offer").ok());
                let offer = offer.and_then(|offer| offer.get::<WebRTCSessionDescription>().ok());
                webrtc
                    .emit_by_name::<()>("set-local-description", &[&offer, &None::<gst::Promise>]);
            }
        };
        let promise = gst::Promise::with_change_func(set_offer);
        webrtc.emit_by_name::<()>("create-offer", &[&None::<gst::Structure>, &promise]);
        None
    });
    pipeline.set_state(gst::State::Playing)?;

    let bus = pipeline.bus().expect("a pipeline has a bus");
    let (mut is_offered, mut is_answered, mut lines) = (false, false, 0);
    while start.elapsed() < end {
        let state = webrtc.property::<WebRTCICEGatheringState>("ice-gathering-state");
        if !is_offered && state == WebRTCICEGatheringState::Complete {
            is_offered = true;
            let description = webrtc.property::<WebRTCSessionDescription>("local-description");
            let part = offer.with_extension("part");
            fs::write(&part, description.sdp().as_text()?)?;
            fs::rename(part, &offer)?;
        }
        if !is_answered && answer.exists() {
            is_answered = true;
            let sdp = gst_sdp::SDPMessage::parse_buffer(&fs::read(&answer)?)?;
            let answer = WebRTCSessionDescription::new(WebRTCSDPType::Answer, sdp);
            webrtc.emit_by_name::<()>("set-remote-description", &[&answer, &None::<gst::Promise>]);
        }
        if start.elapsed().as_secs() > lines {
            lines += 1;
            let target: u64 = weircc.property("target-bitrate");
            println!("time_s {lines} target_kbps {:.0}", target as f64 / 1000.0);
        }
        let wait = gst::ClockTime::from_mseconds(50);
        if let Some(error) = bus.timed_pop_filtered(wait, &[gst::MessageType::Error]) {
            return Err(format!("{error:?}").into());
        }
    }
    pipeline.set_state(gst::State::Null)?;
    Ok(())
}
