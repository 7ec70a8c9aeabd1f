//! Each encoder that the element knows, in a pipeline: pictures come out at the rate of the element.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gst::prelude::*;

const TWCC: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
const TARGET: u64 = 400_000;
const LOWER: u64 = 200_000;
const FRAMES: u64 = 45;

/// Encoder with options, payloader, property of the bitrate, bit/s of its unit.
struct Case(&'static str, &'static str, &'static str, u64);

/// Runs a second and a half of video through the encoder, a payloader and `weircc`, and lowers the
/// target after half of it. Says what is missing, if something is.
fn check(case: &Case) {
    common::init();
    let Case(encoder, payloader, property, unit_bps) = case;
    let description = format!(
        "videotestsrc is-live=true num-buffers={FRAMES} pattern=smpte \
         ! video/x-raw,format=I420,width=160,height=120,framerate=30/1 ! {encoder} name=encoder \
         ! {payloader} ! application/x-rtp,extmap-1=(string){TWCC} \
         ! weircc name=weircc algorithm=nada local=true min-bitrate=50000 \
         start-bitrate={TARGET} max-bitrate={TARGET} ! fakesink name=sink sync=false"
    );
    let pipeline = match gst::parse::launch(&description) {
        Ok(pipeline) => pipeline.downcast::<gst::Pipeline>().unwrap(),
        Err(error) => return println!("skipped: {encoder}: {error}"),
    };
    let [encoder, weircc, sink] =
        ["encoder", "weircc", "sink"].map(|it| pipeline.by_name(it).unwrap());
    weircc.set_property("encoder", &encoder);
    let (raw, sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, control) = (raw.clone(), weircc.clone());
    let source = encoder.static_pad("sink").unwrap().peer().unwrap();
    source.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        if counted.fetch_add(1, Ordering::Relaxed) == FRAMES / 2 {
            control.set_property("max-bitrate", LOWER);
        }
        gst::PadProbeReturn::Ok
    });
    let counted = sent.clone();
    sink.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let is_last = info.buffer().is_some_and(|it| it.flags().contains(gst::BufferFlags::MARKER));
        counted.fetch_add(u64::from(is_last), Ordering::Relaxed);
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Playing).unwrap();
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let end = pipeline.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(60), &kinds);
    let end = end.expect("the pipeline ends");
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    let value = encoder.property_value(property);
    let value = value.transform::<u64>().unwrap().get::<u64>().unwrap();
    pipeline.set_state(gst::State::Null).unwrap();
    let limit = LOWER * 95 / 100 / unit_bps;
    // Less is for a queue that drains.
    assert!((limit / 10..=limit).contains(&value), "{value} of {limit}");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent >= FRAMES / 3, "{sent} pictures of {FRAMES}");
}

#[test]
fn vp8enc_follows_in_a_pipeline() {
    let options = "vp8enc deadline=1 cpu-used=8 end-usage=cbr lag-in-frames=0";
    check(&Case(options, "rtpvp8pay", "target-bitrate", 1));
}

#[test]
fn vp9enc_follows_in_a_pipeline() {
    let options = "vp9enc deadline=1 cpu-used=8 end-usage=cbr lag-in-frames=0";
    check(&Case(options, "rtpvp9pay", "target-bitrate", 1));
}

#[test]
fn x264enc_follows_in_a_pipeline() {
    let options = "x264enc tune=zerolatency speed-preset=ultrafast";
    check(&Case(options, "rtph264pay", "bitrate", 1_000));
}

#[test]
fn openh264enc_follows_in_a_pipeline() {
    let options = "openh264enc rate-control=bitrate complexity=low";
    check(&Case(options, "rtph264pay", "bitrate", 1));
}

/// GStreamer 1.22 has no payloader for AV1, so the general one has to do.
#[test]
fn av1enc_follows_in_a_pipeline() {
    let options = "av1enc usage-profile=realtime cpu-used=10 end-usage=cbr min-quantizer=2 \
        max-quantizer=56 threads=1";
    check(&Case(options, "rtpgstpay", "target-bitrate", 1_000));
}

/// Debian 12 has no package of it.
#[test]
fn svtav1enc_follows_in_a_pipeline() {
    check(&Case("svtav1enc preset=12", "rtpgstpay", "target-bitrate", 1_000));
}
