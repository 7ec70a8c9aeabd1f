//! `weirshaper` and `weirtwccparse` in the harness of GStreamer, and `weircc` with retransmissions.

mod common;

use std::sync::mpsc;

use common::{CAPS, MEDIA, frame, harness, header, now, packet, push_list, stat};
use gst::prelude::*;
use gst_check::Harness;
use weir_wire::rtp::{ExtensionId, PayloadType, RtpHeader};

const RTX: u32 = 9;

fn shaper(bitrate_bps: u64) -> Harness {
    common::init();
    let element =
        gst::ElementFactory::make("weirshaper").property("bitrate", bitrate_bps).build().unwrap();
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str(CAPS);
    harness
}

/// How long these packets take to leave.
fn time_of(harness: &mut Harness, packets: u16) -> gst::ClockTime {
    push_list(harness, frame(0, packets, 0)).unwrap();
    let start = gst::get_timestamp();
    for _ in 0..packets {
        harness.pull().unwrap();
    }
    gst::get_timestamp() - start
}

#[test]
fn the_shaper_sends_at_its_rate_and_follows_a_change() {
    // 8000 bits each: 50 packets take half a second at 800 kbit/s. The burst is ahead by 5 ms.
    let mut harness = shaper(800_000);
    let taken = time_of(&mut harness, 50);
    assert!(taken > gst::ClockTime::from_mseconds(450), "{taken}");
    harness.element().unwrap().set_property("bitrate", 80_000_000_u64);
    push_list(&harness, frame(50, 50, 0)).unwrap();
    let queue: u64 = harness.element().unwrap().property("pacer-queue");
    assert!(queue < 6_000_000, "{queue} ns");
}

#[test]
fn the_shaper_discards_frames_beyond_two_seconds_and_asks_for_a_key_frame() {
    let mut harness = shaper(800_000);
    for index in 0..30 {
        push_list(&harness, frame(index * 10, 10, 0)).unwrap();
    }
    let queue: u64 = harness.element().unwrap().property("pacer-queue");
    assert!((1_900_000_000..2_300_000_000).contains(&queue), "{queue} ns");
    harness.element().unwrap().set_property("bitrate", 80_000_000_u64);
    while harness.element().unwrap().property::<u64>("pacer-queue") > 0 {
        harness.pull().unwrap();
    }
    push_list(&harness, frame(300, 1, 0)).unwrap();
    let is_request = |event: &gst::Event| event.has_name("GstForceKeyUnit");
    assert!(std::iter::from_fn(|| harness.try_pull_upstream_event()).any(|it| is_request(&it)));
}

#[test]
fn the_parser_passes_rtcp_on_and_reports_each_feedback_once() {
    common::init();
    let mut harness = Harness::new("weirtwccparse");
    harness.set_src_caps_str("application/x-rtcp");
    let (told, reports) = mpsc::channel();
    harness.element().unwrap().connect("feedback", false, move |values| {
        let _ = told.send(values[1].get::<gst::Structure>().unwrap());
        None
    });
    // Base 7, two packets, feedback 3: the first was received 2 ticks after 1 x 64 ms, and the
    // second was not. One-bit vector chunk.
    let fci = [0, 7, 0, 2, 0, 0, 1, 3, 0xa0, 0x00, 2, 0];
    let rtcp = weir_rtcp::rtcp_from_fci(205, 15, 2, MEDIA, &fci).unwrap();
    for _ in 0..2 {
        harness.push(gst::Buffer::from_mut_slice(rtcp.clone())).unwrap();
        assert_eq!(common::bytes(&harness.pull().unwrap()), rtcp);
    }
    // Nonsense passes, too.
    harness.push(gst::Buffer::from_mut_slice(vec![1, 2, 3])).unwrap();
    let reports: Vec<_> = reports.try_iter().collect();
    assert_eq!(reports.len(), 1);
    let packets = reports[0].get::<gst::Array>("packets").unwrap();
    let packet = |index: usize| packets.as_slice()[index].get::<gst::Structure>().unwrap();
    assert_eq!(packet(0).get::<u32>("seqnum"), Ok(7));
    assert_eq!(packet(0).get::<u64>("arrival"), Ok(64_500_000));
    assert_eq!(packet(1).get::<bool>("received"), Ok(false));
}

/// Caps as `webrtcbin` gives them when streams share a transport: they name no SSRC.
const BUNDLED_CAPS: &str = "application/x-rtp,media=video,extmap-1=(string)\
    http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// `weircc` behind an `rtprtxsend` in an `rtpbin`, as in `webrtcbin`; `None` with a line that says
/// what is missing.
fn with_retransmissions(
    caps: &str,
    properties: &[(&str, &str)],
) -> Option<(Harness, gst::Element)> {
    common::init();
    let Ok(rtx) = gst::ElementFactory::make("rtprtxsend").build() else {
        println!("skipped: no rtprtxsend (apt-get install gstreamer1.0-plugins-good)");
        return None;
    };
    let types = gst::Structure::builder("application/x-rtp-pt-map").field("96", 97_u32).build();
    let ssrcs = gst::Structure::builder("application/x-rtp-ssrc-map").field("1", RTX).build();
    rtx.set_property("payload-type-map", types);
    rtx.set_property("ssrc-map", ssrcs);
    let weircc = common::element(properties);
    let rtpbin = gst::ElementFactory::make("rtpbin").build().unwrap();
    let bin = rtpbin.downcast_ref::<gst::Bin>().unwrap();
    bin.add_many([&rtx, &weircc]).unwrap();
    rtx.link(&weircc).unwrap();
    for (element, name) in [(&rtx, "sink"), (&weircc, "src")] {
        let ghost = gst::GhostPad::with_target(&element.static_pad(name).unwrap()).unwrap();
        ghost.set_active(true).unwrap();
        bin.add_pad(&ghost).unwrap();
    }
    let mut harness = Harness::with_element(&rtpbin, Some("sink"), Some("src"));
    harness.set_src_caps_str(caps);
    Some((harness, weircc))
}

/// Sends video for a second. Returns the number of padding packets.
fn padding_beside_video(caps: &str) -> Option<u32> {
    let properties = [("algorithm", "gcc"), ("local", "true")];
    let (mut harness, weircc) = with_retransmissions(caps, &properties)?;
    let mut peer = common::Peer::new(&weircc, now());
    let (mut number, mut padding) = (0, 0);
    // 208 kbit/s, less than the start bitrate: a probe finds the queue empty.
    for round in 0..30 {
        push_list(&harness, frame(number, 1, round * 3_600)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(40));
        while let Some(packet) = harness.try_pull() {
            let header = header(&packet);
            padding += u32::from(header.ssrc == RTX);
            assert!(header.ssrc == RTX || header.sequence_number <= number);
            peer.receive(now(), &packet);
        }
        number += 1;
        peer.on_timeout(now());
    }
    Some(padding)
}

#[test]
fn padding_goes_into_the_retransmission_stream_if_there_is_one() {
    assert!(padding_beside_video(CAPS).is_none_or(|padding| padding > 0));
}

#[test]
fn the_retransmission_stream_of_a_bundle_is_found_without_its_ssrc() {
    assert!(padding_beside_video(BUNDLED_CAPS).is_none_or(|padding| padding > 0));
}

/// Asks for these packets again.
fn request_again(harness: &mut Harness, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let request = gst::Structure::builder("GstRTPRetransmissionRequest");
        let request = request.field("seqnum", number).field("ssrc", MEDIA).build();
        harness.push_upstream_event(gst::event::CustomUpstream::new(request));
    }
}

#[test]
fn a_key_frame_takes_the_place_of_retransmissions_that_need_too_long() {
    let properties = [("local", "true"), ("max-bitrate", "300000")];
    let Some((mut harness, weircc)) = with_retransmissions(BUNDLED_CAPS, &properties) else {
        return;
    };
    push_list(&harness, frame(0, 60, 0)).unwrap();
    for _ in 0..60 {
        harness.pull().unwrap();
    }
    let is_key_frame_request = |event: &gst::Event| event.has_name("GstForceKeyUnit");
    assert!(
        !std::iter::from_fn(|| harness.try_pull_upstream_event())
            .any(|it| is_key_frame_request(&it))
    );
    // 60 packets of 8000 bits are more than 500 ms, whatever the factor of the pacer.
    request_again(&mut harness, 0..60);
    // rtprtxsend's thread may need a moment for its answers.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(
        std::iter::from_fn(|| harness.try_pull_upstream_event())
            .any(|it| is_key_frame_request(&it))
    );
    assert!(stat(&weircc, "repairs-given-up") >= 1);
    // The receiver repeats its requests. The next frame leaves, and can be repaired.
    request_again(&mut harness, 0..60);
    push_list(&harness, frame(60, 2, 3_600)).unwrap();
    let media: Vec<_> = std::iter::from_fn(|| harness.pull().ok())
        .map(|packet| header(&packet))
        .filter(|header| header.ssrc == MEDIA)
        .take(2)
        .collect();
    assert_eq!(media.iter().map(|it| it.sequence_number).collect::<Vec<_>>(), [60, 61]);
    while harness.try_pull().is_some() {}
    request_again(&mut harness, 0..61);
    assert_eq!(header(&harness.pull().unwrap()).ssrc, RTX);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(harness.try_pull().is_none());
}

#[test]
fn a_repeated_request_does_not_queue_a_packet_twice() {
    let properties = [("local", "true"), ("start-bitrate", "100000"), ("max-bitrate", "100000")];
    let Some((mut harness, weircc)) = with_retransmissions(BUNDLED_CAPS, &properties) else {
        return;
    };
    push_list(&harness, frame(0, 30, 0)).unwrap();
    for _ in 0..10 {
        request_again(&mut harness, 5..6);
    }
    let packets: Vec<_> = (0..31).map(|_| header(&harness.pull().unwrap())).collect();
    // rtprtxsend's thread may need a moment for its answers.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let repeated = packets.iter().filter(|packet| packet.ssrc == RTX).count();
    assert_eq!(repeated, 1);
    assert!(harness.try_pull().is_none());
    assert_eq!(stat(&weircc, "retransmissions-discarded"), 9);
    // Those that wait are sent first.
    assert!(packets[..29].iter().any(|packet| packet.ssrc == RTX));
}

#[test]
fn requests_for_a_key_frame_pass_one_at_a_time() {
    let mut harness = harness(&[]);
    push_list(&harness, frame(0, 1, 0)).unwrap();
    let request = || gst::event::CustomUpstream::new(gst::Structure::new_empty("GstForceKeyUnit"));
    for _ in 0..5 {
        assert!(harness.push_upstream_event(request()));
    }
    std::thread::sleep(std::time::Duration::from_millis(350));
    harness.push_upstream_event(request());
    let passed = std::iter::from_fn(|| harness.try_pull_upstream_event());
    assert_eq!(passed.filter(|event| event.has_name("GstForceKeyUnit")).count(), 2);
    assert_eq!(stat(&harness.element().unwrap(), "key-frame-requests-ignored"), 4);
}

#[test]
fn the_absolute_send_time_is_filled_in() {
    let mut harness = harness(&[]);
    let id = ExtensionId::new(3).unwrap();
    harness.set_src_caps_str(&format!(
        "{CAPS},extmap-3=(string)http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    ));
    let header = RtpHeader::new(MEDIA, PayloadType::new(96).unwrap(), 1, 0)
        .with_transport_sequence_number(Some((ExtensionId::new(1).unwrap(), 0)))
        .with_abs_send_time(Some((id, weir_wire::rtp::AbsSendTime::from_ticks(0))));
    let mut bytes = vec![0; 500];
    header.emit(&mut bytes);
    harness.push(gst::Buffer::from_mut_slice(bytes)).unwrap();
    let sent = common::bytes(&harness.pull().unwrap());
    let time = weir_wire::rtp::View::parse(&sent).unwrap().abs_send_time(id).unwrap();
    assert!(time.ticks() > 0);
    harness.push(packet(2, 0, true)).unwrap();
}
