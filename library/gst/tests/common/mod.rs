//! An element in a harness, made-up video, and a receiver that answers with feedback.

#![allow(dead_code, reason = "each test program uses a part of this")]

use gst::prelude::*;
use gst_check::Harness;
use weir::Timestamp;
use weir::feedback::Ecn;
use weir_rtcp::{Feedback, Receiver, ReceiverConfig};
use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader, View};

pub const MEDIA: u32 = 1;
pub const CAPS: &str = "application/x-rtp,media=video,payload=96,clock-rate=90000,\
    encoding-name=VP8,ssrc=(uint)1,extmap-1=(string)\
    http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/// Bytes of an RTP packet of the made-up video.
pub const PACKET: usize = 1_000;

pub fn init() {
    use std::sync::Once;
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        gst::init().unwrap();
        gstweir::plugin_register_static().expect("the plugin registers once");
    });
}

pub fn extensions() -> ExtensionIds {
    ExtensionIds::NONE.with_transport_sequence_number(ExtensionId::new(1))
}

pub fn element(properties: &[(&str, &str)]) -> gst::Element {
    init();
    let element = gst::ElementFactory::make("weircc").build().unwrap();
    for (name, value) in properties {
        element.set_property_from_str(name, value);
    }
    element
}

/// A harness around an element that is playing.
pub fn harness(properties: &[(&str, &str)]) -> Harness {
    let element = element(properties);
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str(CAPS);
    harness
}

/// An RTP packet of a frame.
pub fn packet(number: u16, timestamp: u32, is_last: bool) -> gst::Buffer {
    let id = ExtensionId::new(1).unwrap();
    let header = RtpHeader::new(MEDIA, PayloadType::new(96).unwrap(), number, timestamp)
        .with_marker(is_last)
        .with_transport_sequence_number(Some((id, 0)));
    let mut bytes = vec![0; PACKET];
    header.emit(&mut bytes);
    gst::Buffer::from_mut_slice(bytes)
}

/// A frame of some packets, the first of which has this number.
pub fn frame(first: u16, packets: u16, timestamp: u32) -> gst::BufferList {
    let mut list = gst::BufferList::new();
    let content = list.get_mut().unwrap();
    for index in 0..packets {
        content.add(packet(first.wrapping_add(index), timestamp, index + 1 == packets));
    }
    list
}

pub fn bytes(buffer: &gst::Buffer) -> Vec<u8> {
    buffer.map_readable().unwrap().to_vec()
}

/// The header of a packet that left the element.
pub fn header(buffer: &gst::Buffer) -> RtpHeader {
    View::parse(&bytes(buffer)).unwrap().header(extensions())
}

/// A receiver of the element's packets, which answers through the pad `rtcp_sink`.
pub struct Peer {
    receiver: Receiver,
    rtcp: gst::Pad,
}

impl Peer {
    pub fn new(element: &gst::Element, now: Timestamp) -> Self {
        Self::with_feedback(element, now, Feedback::Twcc)
    }

    pub fn with_feedback(element: &gst::Element, now: Timestamp, feedback: Feedback) -> Self {
        let config = ReceiverConfig::new(2, extensions(), feedback);
        let receiver = Receiver::new(now, config, Box::new(|| 0.5));
        let rtcp = element.request_pad_simple("rtcp_sink").unwrap();
        let start = gst::event::StreamStart::new("rtcp");
        let caps = gst::Caps::new_empty_simple("application/x-rtcp");
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        rtcp.send_event(start);
        rtcp.send_event(gst::event::Caps::new(&caps));
        rtcp.send_event(gst::event::Segment::new(&segment));
        Self { receiver, rtcp }
    }

    /// A second receiver, which answers through the same pad.
    pub fn other(&self, now: Timestamp, feedback: Feedback) -> Self {
        let config = ReceiverConfig::new(3, extensions(), feedback);
        Self { receiver: Receiver::new(now, config, Box::new(|| 0.5)), rtcp: self.rtcp.clone() }
    }

    /// A packet arrives at the receiver.
    pub fn receive(&mut self, now: Timestamp, packet: &gst::Buffer) {
        self.receiver.on_rtp(now, &bytes(packet), Ecn::NotEct).unwrap();
    }

    /// A sender report of the media's session arrives, without which a receiver report tells no
    /// round-trip time [RFC3550 §6.4.1].
    pub fn receive_sender_report(&mut self, now: Timestamp) {
        const NTP_EPOCH_US: u64 = 2_208_988_800 * 1_000_000;
        let micros = gst::glib::real_time() as u64 + NTP_EPOCH_US;
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        let ntp = (seconds << 32) | ((rest << 32) / 1_000_000);
        let mut report = vec![0x80, 200, 0, 6];
        report.extend(MEDIA.to_be_bytes());
        report.extend(ntp.to_be_bytes());
        report.extend([0; 12]); // RTP timestamp, packets, bytes: a receiver does not need them.
        self.receiver.on_rtcp(now, &report);
    }

    /// The receiver's timer.
    pub fn on_timeout(&mut self, now: Timestamp) {
        self.receiver.on_timeout(now);
        while let Some(bytes) = self.receiver.next_rtcp() {
            chain(&self.rtcp, bytes);
        }
    }
}

fn chain(pad: &gst::Pad, rtcp: &[u8]) {
    pad.chain(gst::Buffer::from_mut_slice(rtcp.to_vec())).unwrap();
}

pub fn now() -> Timestamp {
    Timestamp::from_nanos(gst::get_timestamp().nseconds() as i64)
}

pub fn stat(element: &gst::Element, name: &str) -> u64 {
    element.property::<gst::Structure>("stats").get(name).unwrap()
}

pub fn target(element: &gst::Element) -> u64 {
    element.property("target-bitrate")
}

pub fn push_list(
    harness: &Harness,
    list: gst::BufferList,
) -> Result<gst::FlowSuccess, gst::FlowError> {
    harness.srcpad().expect("a harness around a sink pad").push_list(list)
}
