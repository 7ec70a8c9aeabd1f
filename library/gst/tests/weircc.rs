//! `weircc` in the harness of GStreamer: states, flushes, events, feedback.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{
    MEDIA, Peer, element, extensions, frame, harness, header, now, packet, push_list, stat, target,
};
use gst::prelude::*;
use weir_wire::rtp::View;

#[test]
fn packets_leave_in_order_and_with_consecutive_transport_numbers() {
    let mut harness = harness(&[("algorithm", "nada"), ("start-bitrate", "2000000")]);
    push_list(&harness, frame(100, 20, 0)).unwrap();
    for index in 0..20 {
        let header = header(&harness.pull().unwrap());
        assert_eq!(header.sequence_number, 100 + index);
        assert_eq!(header.transport_sequence_number.unwrap().1, index);
        assert_eq!(header.marker, index == 19);
    }
}

#[test]
fn a_frame_is_spread_over_time() {
    // 20 packets of 1038 bytes at 400 kbit/s take 415 ms. A controller paces faster than its
    // target, but no controller at 4 times the target.
    let mut harness = harness(&[("algorithm", "nada"), ("start-bitrate", "400000")]);
    let start = gst::get_timestamp();
    push_list(&harness, frame(0, 20, 0)).unwrap();
    let queue: u64 = harness.element().unwrap().property("pacer-queue");
    assert!(queue > 50_000_000, "{queue} ns");
    for _ in 0..20 {
        harness.pull().unwrap();
    }
    let taken = gst::get_timestamp() - start;
    assert!(taken > gst::ClockTime::from_mseconds(100), "{taken}");
}

// All media waited as pictures do: speech came 400 ms late behind a frame.
#[test]
fn sound_leaves_before_the_pictures_that_wait() {
    let sound = weir_wire::rtp::PayloadType::new(111).unwrap();
    for (media, is_first) in [("audio", true), ("video", false)] {
        let mut harness = harness(&[("algorithm", "nada"), ("start-bitrate", "400000")]);
        let caps = common::CAPS.replace("payload=96", "payload=111");
        harness.set_src_caps_str(&caps.replace("media=video", &format!("media={media}")));
        harness.set_src_caps_str(common::CAPS);
        push_list(&harness, frame(0, 20, 0)).unwrap();
        assert_eq!(header(&harness.pull().unwrap()).sequence_number, 0);
        let id = weir_wire::rtp::ExtensionId::new(1).unwrap();
        let speech = weir_wire::rtp::RtpHeader::new(77, sound, 5, 0)
            .with_transport_sequence_number(Some((id, 0)));
        let mut bytes = vec![0; speech.size() + 80];
        speech.emit(&mut bytes);
        harness.push(gst::Buffer::from_mut_slice(bytes)).unwrap();
        let mut place = 0;
        while header(&harness.pull().unwrap()).payload_type != sound {
            place += 1;
        }
        // A burst of pictures may have left before it came.
        assert_eq!(place < 12, is_first, "{media}: behind {place} packets");
    }
}

#[test]
fn events_keep_their_place_and_the_end_comes_last() {
    let mut harness = harness(&[]);
    push_list(&harness, frame(0, 5, 0)).unwrap();
    let tag = gst::event::CustomDownstream::new(gst::Structure::new_empty("between"));
    assert!(harness.push_event(tag));
    push_list(&harness, frame(5, 5, 0)).unwrap();
    assert!(harness.push_event(gst::event::Eos::new()));
    for _ in 0..10 {
        harness.pull().unwrap();
    }
    let mut kinds = Vec::new();
    while kinds.last() != Some(&gst::EventType::Eos) {
        kinds.push(harness.pull_event().unwrap().type_());
    }
    assert!(kinds.contains(&gst::EventType::CustomDownstream), "{kinds:?}");
    let refused = harness.push(packet(10, 0, true));
    assert_eq!(refused, Err(gst::FlowError::Eos));
}

#[test]
fn a_flush_discards_what_waits_and_the_stream_goes_on() {
    let mut harness = harness(&[("start-bitrate", "100000")]);
    push_list(&harness, frame(0, 60, 0)).unwrap();
    assert!(harness.push_event(gst::event::FlushStart::new()));
    assert_eq!(harness.push(packet(60, 0, true)), Err(gst::FlowError::Flushing));
    assert!(harness.push_event(gst::event::FlushStop::new(true)));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(harness.push_event(gst::event::Segment::new(&segment)));
    while harness.try_pull().is_some() {}
    assert_eq!(stat(&harness.element().unwrap(), "queued-bytes"), 0);
    harness.push(packet(200, 0, true)).unwrap();
    let next = header(&harness.pull().unwrap());
    assert_eq!(next.sequence_number, 200);
}

#[test]
fn a_renegotiation_changes_extension_and_stream_without_a_gap() {
    let mut harness = harness(&[("algorithm", "nada"), ("start-bitrate", "2000000")]);
    let element = harness.element().unwrap();
    let mut peer = Peer::new(&element, now());
    push_list(&harness, frame(0, 10, 0)).unwrap();
    // A new payload type and a new id, as after a second offer. Packets of the old kind still wait.
    harness
        .set_src_caps_str(&common::CAPS.replace("payload=96", "payload=98").replace("-1=", "-5="));
    let id = weir_wire::rtp::ExtensionId::new(5);
    let kind = weir_wire::rtp::PayloadType::new(98).unwrap();
    for index in 0..10 {
        let header = weir_wire::rtp::RtpHeader::new(MEDIA, kind, 10 + index, 3_000)
            .with_transport_sequence_number(id.map(|id| (id, 0)));
        let mut bytes = vec![0; common::PACKET];
        header.emit(&mut bytes);
        harness.push(gst::Buffer::from_mut_slice(bytes)).unwrap();
    }
    let new = weir_wire::rtp::ExtensionIds::NONE.with_transport_sequence_number(id);
    for index in 0..20 {
        let packet = harness.pull().unwrap();
        let bytes = common::bytes(&packet);
        let header = View::parse(&bytes).unwrap().header(new);
        assert_eq!(header.sequence_number, index);
        if index >= 10 {
            assert_eq!(header.transport_sequence_number.unwrap().1, index);
        }
        peer.receive(now(), &packet);
    }
    assert_eq!(stat(&element, "packets-sent"), 20);
    assert_eq!(stat(&element, "unpaced-packets"), 0);
}

#[test]
fn state_changes_end_at_any_time_and_the_element_starts_again() {
    let element = element(&[("start-bitrate", "100000")]);
    for _ in 0..20 {
        let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str(common::CAPS);
        push_list(&harness, frame(0, 30, 0)).unwrap();
        assert_eq!(header(&harness.pull().unwrap()).sequence_number, 0);
        drop(harness);
        assert_eq!(element.current_state(), gst::State::Null);
    }
}

#[test]
fn an_unknown_controller_is_an_error_that_lists_the_known_ones() {
    let element = element(&[("algorithm", "reno")]);
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    assert!(element.set_state(gst::State::Ready).is_err());
    let message = bus.pop_filtered(&[gst::MessageType::Error]).unwrap();
    let gst::MessageView::Error(error) = message.view() else { unreachable!("filtered") };
    let text = error.error().to_string();
    assert!(text.contains("reno") && text.contains("scream-v2"), "{text}");
}

#[test]
fn limits_that_contradict_each_other_are_an_error() {
    let element = element(&[("min-bitrate", "3000000"), ("max-bitrate", "1000000")]);
    assert!(element.set_state(gst::State::Paused).is_err());
    element.set_state(gst::State::Null).unwrap();
}

#[test]
fn feedback_moves_the_target_and_is_told_with_a_reason() {
    for algorithm in ["gcc", "nada", "scream", "scream-v2"] {
        let mut harness = harness(&[("algorithm", algorithm), ("start-bitrate", "300000")]);
        let element = harness.element().unwrap();
        let (told, changes) = std::sync::mpsc::channel();
        element.connect("target-changed", false, move |values| {
            let structure = values[1].get::<gst::Structure>().unwrap();
            let _ = told.send((
                structure.get::<u64>("target").unwrap(),
                structure.get::<String>("reason").unwrap(),
            ));
            None
        });
        let mut peer = Peer::new(&element, now());
        let end = now() + weir::TimeDelta::from_millis(1_500);
        let (mut number, mut timestamp) = (0, 0);
        while now() < end {
            push_list(&harness, frame(number, 2, timestamp)).unwrap();
            (number, timestamp) = (number + 2, timestamp + 1_800);
            std::thread::sleep(Duration::from_millis(20));
            while let Some(packet) = harness.try_pull() {
                peer.receive(now(), &packet);
            }
            peer.on_timeout(now());
        }
        assert!(stat(&element, "feedback-packets") > 5, "{algorithm}");
        assert!(target(&element) > 310_000, "{algorithm}: {}", target(&element));
        let (last, reason) = changes.try_iter().last().unwrap();
        assert_eq!(last, target(&element), "{algorithm}");
        assert!(!reason.is_empty());
    }
}

#[test]
fn raw_feedback_by_the_action_signal_counts() {
    let mut harness = harness(&[("algorithm", "nada")]);
    let element = harness.element().unwrap();
    push_list(&harness, frame(0, 1, 0)).unwrap();
    harness.pull().unwrap();
    // One packet, number 0, received 0 ticks after the reference time.
    let fci = [0, 0, 0, 1, 0, 0, 1, 0, 0x20, 1, 0, 0];
    let fci = gst::Buffer::from_mut_slice(fci.to_vec());
    element.emit_by_name::<()>("feedback-rtcp", &[&205_u32, &15_u32, &2_u32, &MEDIA, &fci]);
    assert_eq!(stat(&element, "feedback-packets"), 1);
    // Nonsense is ignored.
    let junk = gst::Buffer::from_mut_slice(vec![0xff; 3]);
    element.emit_by_name::<()>("feedback-rtcp", &[&205_u32, &15_u32, &2_u32, &MEDIA, &junk]);
    element.emit_by_name::<()>("feedback-rtcp", &[&999_u32, &99_u32, &2_u32, &MEDIA, &junk]);
    assert_eq!(stat(&element, "feedback-packets"), 1);
}

#[test]
fn the_sessions_event_is_feedback_if_no_rtcp_arrives() {
    let mut harness = harness(&[("algorithm", "nada")]);
    let element = harness.element().unwrap();
    push_list(&harness, frame(0, 2, 0)).unwrap();
    harness.pull().unwrap();
    harness.pull().unwrap();
    let packet = |number: u32, lost: bool| {
        gst::Structure::builder("RTPTWCCPacket")
            .field("seqnum", number)
            .field("local-ts", 0_u64)
            .field("remote-ts", if lost { u64::MAX } else { 64_000_000 })
            .field("lost", lost)
            .build()
            .to_value()
    };
    let packets = gst::glib::ValueArray::new([packet(0, false), packet(1, true)]);
    use gst::glib::translate::UnsafeFrom;
    // SAFETY: the array has one owner, and it contains structures, which may be sent to threads.
    let packets = unsafe { gst::glib::SendValue::unsafe_from(packets.to_value().into_raw()) };
    let mut structure = gst::Structure::new_empty("RTPTWCCPackets");
    structure.set_value("packets", packets);
    harness.push_upstream_event(gst::event::CustomUpstream::new(structure));
    assert_eq!(stat(&element, "feedback-packets"), 1);
    assert_eq!(stat(&element, "packets-lost"), 1);
}

#[test]
fn a_probe_is_filled_with_padding_that_has_numbers_of_its_own() {
    let mut harness = harness(&[("algorithm", "gcc"), ("start-bitrate", "300000")]);
    let element = harness.element().unwrap();
    let mut peer = Peer::new(&element, now());
    let (mut number, mut expected) = (0, None::<u16>);
    let mut padding = 0;
    // 208 kbit/s, less than the start bitrate: a probe finds the queue empty.
    for round in 0..40 {
        push_list(&harness, frame(number, 1, round * 3_600)).unwrap();
        number += 1;
        std::thread::sleep(Duration::from_millis(40));
        while let Some(packet) = harness.try_pull() {
            let bytes = common::bytes(&packet);
            let view = View::parse(&bytes).unwrap();
            padding += u32::from(view.is_padded());
            let header = view.header(extensions());
            // Padding takes numbers of the media's stream, which stays without a gap.
            assert!(expected.is_none_or(|next| next == header.sequence_number));
            expected = Some(header.sequence_number.wrapping_add(1));
            peer.receive(now(), &packet);
        }
        peer.on_timeout(now());
    }
    assert!(padding > 0);
    assert_eq!(u64::from(padding), stat(&element, "padding-packets-sent"));
    assert!(stat(&element, "probes") >= 1);
}

#[test]
fn a_probe_begins_with_padding_unless_that_would_break_a_frame() {
    let settings = [("algorithm", "gcc"), ("start-bitrate", "300000")];
    let is_padded = |buffer| View::parse(&common::bytes(&buffer)).unwrap().is_padded();
    // The first probe ends before the second packet, with which the second probe begins.
    let mut frames = harness(&settings);
    let begins_padded = [0, 1].map(|number| {
        frames.push(packet(number, 0, true)).unwrap();
        let first = frames.pull().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        while frames.try_pull().is_some() {}
        is_padded(first)
    });
    assert_eq!(begins_padded, [false, true]);
    // Here the second probe begins within the frame.
    let mut whole = harness(&settings);
    push_list(&whole, frame(0, 20, 0)).unwrap();
    assert!((0..20).all(|_| !is_padded(whole.pull().unwrap())));
    assert!(stat(&whole.element().unwrap(), "probes") >= 2);
}

#[test]
fn packets_without_the_extension_are_not_paced() {
    let mut harness = harness(&[("start-bitrate", "100000")]);
    push_list(&harness, frame(0, 40, 0)).unwrap();
    let audio =
        weir_wire::rtp::RtpHeader::new(77, weir_wire::rtp::PayloadType::new(111).unwrap(), 1, 0);
    let mut bytes = vec![0; 100];
    audio.emit(&mut bytes);
    harness.push(gst::Buffer::from_mut_slice(bytes)).unwrap();
    let position = (0..41).position(|_| header(&harness.pull().unwrap()).ssrc == 77).unwrap();
    assert!(position < 20, "after {position} packets");
}

/// A session numbers only packets with the extension, and so does the element: otherwise the
/// feedback would be about other packets.
#[test]
fn packets_before_caps_with_the_extension_take_no_transport_number() {
    let element = element(&[]);
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str("application/x-rtp");
    let audio = weir_wire::rtp::PayloadType::new(111).unwrap();
    for number in 0..3 {
        let mut bytes = vec![0; 100];
        weir_wire::rtp::RtpHeader::new(77, audio, number, 0).emit(&mut bytes);
        harness.push(gst::Buffer::from_mut_slice(bytes)).unwrap();
        assert_eq!(header(&harness.pull().unwrap()).ssrc, 77);
    }
    harness.set_src_caps_str(common::CAPS);
    push_list(&harness, frame(0, 3, 0)).unwrap();
    let numbers = (0..3).map(|_| header(&harness.pull().unwrap()).transport_sequence_number);
    assert_eq!(numbers.map(|it| it.unwrap().1).collect::<Vec<_>>(), [0, 1, 2]);
}

/// A packet that is not paced overtakes those that wait, but not the stream's first events.
#[test]
fn audio_in_front_of_the_video_leaves_after_the_first_events() {
    let element = common::element(&[]);
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    let src = element.static_pad("src").unwrap();
    // The task waits for the first event until the packet is queued, too.
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().unwrap();
    let entrance = gate.clone();
    src.add_probe(kinds, move |_, info| {
        drop(entrance.lock().unwrap());
        let name = info.event().map_or("packet".into(), |event| event.type_().name().to_string());
        seen.lock().unwrap().push(name);
        gst::PadProbeReturn::Ok
    });
    harness.set_src_caps_str(common::CAPS);
    let audio =
        weir_wire::rtp::RtpHeader::new(77, weir_wire::rtp::PayloadType::new(111).unwrap(), 1, 0);
    let mut bytes = vec![0; 100];
    audio.emit(&mut bytes);
    harness.push(gst::Buffer::from_mut_slice(bytes)).unwrap();
    drop(held);
    while !order.lock().unwrap().iter().any(|name| name == "packet") {
        std::thread::yield_now();
    }
    let order = order.lock().unwrap();
    assert_eq!(*order, ["stream-start", "caps", "segment", "packet"]);
}

#[test]
fn the_limits_can_be_changed_while_playing() {
    let harness = harness(&[("algorithm", "gcc"), ("start-bitrate", "1000000")]);
    let element = harness.element().unwrap();
    push_list(&harness, frame(0, 1, 0)).unwrap();
    assert_eq!(target(&element), 1_000_000);
    element.set_property("max-bitrate", 600_000_u64);
    assert_eq!(target(&element), 600_000);
    element.set_property("max-bitrate", 5_000_000_u64);
    element.set_property("min-bitrate", 800_000_u64);
    assert_eq!(target(&element), 800_000);
    element.emit_by_name::<()>("new-route", &[]);
    assert_eq!(target(&element), 1_000_000, "the start bitrate");
}

#[test]
fn elements_of_one_group_share_their_rate_by_priority() {
    let first = harness(&[("group", "both"), ("priority", "2"), ("start-bitrate", "600000")]);
    let second = harness(&[("group", "both"), ("priority", "1"), ("start-bitrate", "600000")]);
    let (one, other) = (first.element().unwrap(), second.element().unwrap());
    // A lower maximum of one moves the sum.
    other.set_property("max-bitrate", 300_000_u64);
    let (one, other) = (target(&one), target(&other));
    assert!(one > 500_000 && other <= 300_000, "{one} and {other}");
}

#[test]
fn an_encoder_gets_its_part_of_the_target_before_its_next_frame() {
    common::init();
    let Ok(encoder) = gst::ElementFactory::make("vp8enc").build() else {
        println!("skipped: no vp8enc (apt-get install gstreamer1.0-plugins-good)");
        return;
    };
    let element = element(&[("start-bitrate", "1000000")]);
    element.set_property("encoder", &encoder);
    let mut video = gst_check::Harness::with_element(&encoder, Some("sink"), Some("src"));
    video.set_src_caps_str("video/x-raw,format=I420,width=64,height=64,framerate=25/1");
    let mut raw = gst::Buffer::with_size(64 * 64 * 3 / 2).unwrap();
    raw.get_mut().unwrap().set_pts(gst::ClockTime::ZERO);
    video.push(raw).unwrap();
    assert_eq!(encoder.property::<i32>("target-bitrate"), 950_000);
}

#[test]
fn raw_frames_are_left_out_while_the_queue_is_long() {
    common::init();
    let Ok(encoder) = gst::ElementFactory::make("vp8enc").property("deadline", 1_i64).build()
    else {
        println!("skipped: no vp8enc (apt-get install gstreamer1.0-plugins-good)");
        return;
    };
    let mut sender = harness(&[("start-bitrate", "300000"), ("max-bitrate", "300000")]);
    let element = sender.element().unwrap();
    element.set_property("encoder", &encoder);
    let mut video = gst_check::Harness::with_element(&encoder, Some("sink"), Some("src"));
    video.set_src_caps_str("video/x-raw,format=I420,width=64,height=64,framerate=25/1");
    let mut push_raw = |milliseconds| {
        let mut raw = gst::Buffer::with_size(64 * 64 * 3 / 2).unwrap();
        raw.get_mut().unwrap().set_pts(gst::ClockTime::from_mseconds(milliseconds));
        video.push(raw).unwrap();
        video.buffers_received()
    };
    assert_eq!(push_raw(0), 1);
    push_list(&sender, frame(0, 60, 0)).unwrap();
    assert!(element.property::<u64>("pacer-queue") > 300_000_000);
    assert_eq!(push_raw(40), 1);
    for _ in 0..60 {
        sender.pull().unwrap();
    }
    assert_eq!(push_raw(80), 2);
}

#[test]
fn an_element_that_is_no_known_encoder_is_an_error() {
    let element = element(&[]);
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let stranger = gst::ElementFactory::make("identity").build().unwrap();
    assert!(!element.emit_by_name::<bool>("add-encoder", &[&stranger, &1.0_f64]));
    let message = bus.pop_filtered(&[gst::MessageType::Error]).unwrap();
    let gst::MessageView::Error(error) = message.view() else { unreachable!("filtered") };
    assert!(error.error().to_string().contains("x264enc"));
}
