//! Two pipelines that talk over UDP on the loopback, without an RTP session: `weircc` at the
//! sender, `weirfeedback` at the receiver.

mod common;

use std::time::Duration;

use common::{stat, target};
use gst::prelude::*;

const EXTENSIONS: &str = "extmap-1=(string)\
    http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01,\
    extmap-3=(string)http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time";
const START: u64 = 300_000;

struct Call {
    sender: gst::Pipeline,
    receiver: gst::Pipeline,
    weircc: gst::Element,
}

fn pipeline(description: &str) -> Result<gst::Pipeline, gst::glib::Error> {
    Ok(gst::parse::launch(description)?.downcast::<gst::Pipeline>().unwrap())
}

fn by_name(pipeline: &gst::Pipeline, name: &str) -> gst::Element {
    pipeline.by_name(name).unwrap()
}

impl Call {
    fn new(weircc: &str, feedback: &str) -> Result<Self, gst::glib::Error> {
        common::init();
        let sender = pipeline(&format!(
            "videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1 \
             ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 \
             ! x264enc name=encoder tune=zerolatency speed-preset=ultrafast ! rtph264pay mtu=1100 \
             ! application/x-rtp,{EXTENSIONS} \
             ! weircc name=weircc local=true overhead=28 start-bitrate={START} {weircc} \
             ! udpsink name=rtp host=127.0.0.1 sync=false async=false \
             udpsrc name=rtcp address=127.0.0.1 port=0 caps=application/x-rtcp ! weircc.rtcp_sink"
        ))?;
        let receiver = pipeline(&format!(
            "udpsrc name=rtp address=127.0.0.1 port=0 \
             caps=\"application/x-rtp,media=video,encoding-name=H264,clock-rate=90000,\
             {EXTENSIONS}\" \
             ! weirfeedback name=feedback interval=50000000 {feedback} \
             ! fakesink sync=false async=false \
             feedback.rtcp_src ! udpsink name=rtcp host=127.0.0.1 sync=false async=false"
        ))?;
        // The sockets are open from here on.
        for pipeline in [&sender, &receiver] {
            pipeline.set_state(gst::State::Ready).unwrap();
        }
        for (from, to, name) in [(&receiver, &sender, "rtp"), (&sender, &receiver, "rtcp")] {
            by_name(to, name).set_property("port", by_name(from, name).property::<i32>("port"));
        }
        let weircc = by_name(&sender, "weircc");
        weircc.set_property("encoder", by_name(&sender, "encoder"));
        for pipeline in [&receiver, &sender] {
            pipeline.set_state(gst::State::Playing).unwrap();
        }
        Ok(Self { sender, receiver, weircc })
    }

    fn kind(&self) -> String {
        self.weircc.property::<gst::Structure>("stats").get("feedback").unwrap()
    }

    /// An error or a warning of one of the pipelines.
    fn problem(&self) -> Option<String> {
        let kinds = [gst::MessageType::Error, gst::MessageType::Warning];
        [&self.sender, &self.receiver]
            .iter()
            .find_map(|it| it.bus().unwrap().pop_filtered(&kinds))
            .map(|message| format!("{message:?}"))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        for pipeline in [&self.sender, &self.receiver] {
            pipeline.set_state(gst::State::Null).unwrap();
        }
    }
}

/// Three seconds of a call on a path without a bottleneck: the feedback arrives, and the target
/// rises.
fn check(weircc: &str, feedback: &str, kind: &str) {
    let call = match Call::new(weircc, feedback) {
        Ok(call) => call,
        Err(error) => return println!("skipped: {error}"),
    };
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(call.problem(), None);
    assert_eq!(call.kind(), kind);
    assert!(stat(&call.weircc, "packets-sent") > 50);
    assert!(stat(&call.weircc, "feedback-packets") > 30);
    assert!(target(&call.weircc) > START * 21 / 20, "{} bit/s", target(&call.weircc));
}

#[test]
fn transport_wide_feedback_of_weirfeedback_moves_the_target() {
    check("algorithm=nada", "feedback=twcc", "twcc");
}

#[test]
fn feedback_of_rfc_8888_of_weirfeedback_moves_the_target() {
    check("algorithm=scream feedback=ccfb", "feedback=ccfb", "ccfb");
}

#[test]
fn an_end_of_the_media_ends_the_feedback_too_and_the_element_starts_again() {
    common::init();
    let element = gst::ElementFactory::make("weirfeedback").build().unwrap();
    let media = gst::ElementFactory::make("fakesink").property("async", false).build().unwrap();
    element.link_pads(Some("src"), &media, Some("sink")).unwrap();
    for _ in 0..5 {
        media.set_state(gst::State::Playing).unwrap();
        let mut rtcp = gst_check::Harness::with_element(&element, Some("sink"), Some("rtcp_src"));
        rtcp.set_src_caps_str(common::CAPS);
        rtcp.push(common::packet(0, 0, true)).unwrap();
        // Transport-wide feedback on one packet, which has the number 0.
        let feedback = common::bytes(&rtcp.pull().unwrap());
        assert_eq!((feedback[0] & 0x1f, feedback[1]), (15, 205));
        assert_eq!(feedback[12..16], [0, 0, 0, 1]);
        assert!(rtcp.push_event(gst::event::FlushStart::new()));
        assert!(rtcp.push_event(gst::event::FlushStop::new(true)));
        assert!(rtcp.push_event(gst::event::Eos::new()));
        let mut events = std::iter::from_fn(|| rtcp.try_pull_event());
        assert!(events.any(|event| event.type_() == gst::EventType::Eos));
        drop(rtcp);
        assert_eq!(element.current_state(), gst::State::Null);
        media.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn caps_without_the_transport_wide_number_are_a_warning() {
    common::init();
    let element = gst::ElementFactory::make("weirfeedback").build().unwrap();
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    harness.set_src_caps_str("application/x-rtp,media=video");
    let message = bus.pop_filtered(&[gst::MessageType::Warning]).unwrap();
    let gst::MessageView::Warning(warning) = message.view() else { unreachable!("filtered") };
    let text = warning.debug().unwrap_or_default().to_string() + &warning.error().to_string();
    assert!(text.contains("extmap"), "{text}");
}
