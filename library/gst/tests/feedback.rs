//! `weircc` with each kind of feedback, as raw RTCP of a receiver: RFC 8888, and receiver reports
//! alone. The tests of `weircc.rs` have transport-wide feedback.

mod common;

use std::time::Duration;

use common::{CAPS, Peer, frame, harness, now, push_list, stat, target};
use gst::prelude::*;
use gst_check::Harness;
use weir::TimeDelta;
use weir_rtcp::Feedback;

/// Neither kind needs the transport-wide number.
const CAPS_WITHOUT_EXTENSION: &str =
    "application/x-rtp,media=video,payload=96,clock-rate=90000,encoding-name=VP8,ssrc=(uint)1";

struct Call {
    harness: Harness,
    element: gst::Element,
    peers: Vec<Peer>,
    frames: u16,
    arrived: u64,
}

impl Call {
    fn new(properties: &[(&str, &str)], caps: &str, feedback: &[Feedback]) -> Self {
        let mut harness = harness(properties);
        harness.set_src_caps_str(caps);
        let element = harness.element().unwrap();
        let first = Peer::with_feedback(&element, now(), feedback[0]);
        let others = feedback[1..].iter().map(|&kind| first.other(now(), kind));
        let mut peers: Vec<_> = others.collect();
        peers.insert(0, first);
        Self { harness, element, peers, frames: 0, arrived: 0 }
    }

    /// 50 frames a second; one of so many packets is lost.
    fn run(&mut self, time: TimeDelta, one_lost_of: u64) {
        let end = now() + time;
        while now() < end {
            push_list(&self.harness, frame(2 * self.frames, 2, u32::from(self.frames) * 1_800))
                .unwrap();
            self.frames += 1;
            std::thread::sleep(Duration::from_millis(20));
            while let Some(packet) = self.harness.try_pull() {
                self.arrived += 1;
                if !self.arrived.is_multiple_of(one_lost_of) {
                    self.peers.iter_mut().for_each(|peer| peer.receive(now(), &packet));
                }
            }
            for peer in &mut self.peers {
                peer.receive_sender_report(now());
                peer.on_timeout(now());
            }
        }
    }

    fn kind(&self) -> String {
        self.element.property::<gst::Structure>("stats").get("feedback").unwrap()
    }
}

const NEVER: u64 = u64::MAX;

#[test]
fn feedback_of_rfc_8888_moves_every_controllers_target() {
    for algorithm in ["gcc", "nada", "scream", "scream-v2"] {
        let properties = [("algorithm", algorithm), ("feedback", "ccfb")];
        let mut call = Call::new(&properties, CAPS_WITHOUT_EXTENSION, &[Feedback::Ccfb]);
        call.run(TimeDelta::from_millis(1_500), NEVER);
        assert_eq!(call.kind(), "ccfb");
        assert!(stat(&call.element, "feedback-packets") > 5, "{algorithm}");
        assert_eq!(stat(&call.element, "packets-lost"), 0);
        assert!(target(&call.element) > 310_000, "{algorithm}: {}", target(&call.element));
    }
}

#[test]
fn receiver_reports_alone_lower_the_target_when_packets_are_lost() {
    let properties = [("algorithm", "gcc"), ("start-bitrate", "1500000")];
    let mut call = Call::new(&properties, CAPS_WITHOUT_EXTENSION, &[Feedback::ReceiverReports]);
    call.run(TimeDelta::from_millis(4_500), 4);
    assert_eq!(call.kind(), "rr");
    let stats = call.element.property::<gst::Structure>("stats");
    let lost = stats.get::<f64>("loss_ratio").unwrap();
    assert!((0.2..0.3).contains(&lost), "{lost}");
    assert!(target(&call.element) < 1_200_000, "{}", target(&call.element));
}

#[test]
fn the_most_precise_feedback_that_arrives_is_used() {
    let all = [Feedback::ReceiverReports, Feedback::Ccfb, Feedback::Twcc];
    let mut call = Call::new(&[("algorithm", "nada")], CAPS, &all);
    call.run(TimeDelta::from_millis(1_500), NEVER);
    assert_eq!(call.kind(), "ccfb");
    let mut call = Call::new(&[("algorithm", "nada"), ("feedback", "twcc")], CAPS, &all);
    call.run(TimeDelta::from_millis(500), NEVER);
    assert_eq!(call.kind(), "twcc");
}
