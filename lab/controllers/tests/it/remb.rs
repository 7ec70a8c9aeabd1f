//! The receiver's half of `gcc-2013` behind its reporter: RTP in, REMB out.

use weir::{DataSize, TimeDelta, Timestamp};
use weir_controllers::{LabAlgorithm, RembReporter};
use weir_wire::remb;
use weir_wire::rtp::{AbsSendTime, ExtensionId, PayloadType, RtpHeader, View};

const SSRC: u32 = 0xcafe;
const RECEIVER: u32 = 0xbeef;
const ID: ExtensionId = ExtensionId::new(2).unwrap();
const SIZE: DataSize = DataSize::from_bytes(1_100);

/// A header with the absolute send time.
fn header(number: u16, sent: Timestamp) -> Vec<u8> {
    let payload_type = PayloadType::new(96).unwrap();
    let header = RtpHeader::new(SSRC, payload_type, number, (sent.as_millis() * 90) as u32)
        .with_abs_send_time(Some((ID, AbsSendTime::from_nanos(sent.as_nanos()))));
    let mut bytes = vec![0; header.size()];
    header.emit(&mut bytes);
    bytes
}

/// The REMB packets of 10 s with a packet each 10 ms, which arrives after 20 ms.
fn limits(media_ssrcs: &[u32]) -> Vec<Vec<u8>> {
    let estimator = LabAlgorithm::Gcc2013.build_receiver().expect("it has one");
    let mut reporter = RembReporter::new(estimator, RECEIVER, ID, media_ssrcs);
    let mut limits = Vec::new();
    for number in 0..1_000 {
        let sent = Timestamp::from_millis(i64::from(number) * 10);
        let now = sent + TimeDelta::from_millis(20);
        limits.extend(reporter.on_timeout(now).map(<[u8]>::to_vec));
        let bytes = header(number, sent);
        let view = View::parse(&bytes).unwrap();
        limits.extend(reporter.on_packet(now, &view, SIZE).map(<[u8]>::to_vec));
    }
    limits
}

// [REMB §2.2]
#[test]
fn an_estimator_at_the_receiver_sends_limits_for_the_streams_it_received() {
    let limits = limits(&[]);
    assert!(limits.len() > 4, "{}", limits.len());
    for bytes in limits {
        let remb = remb::View::parse(&bytes).unwrap();
        assert!(remb.ssrcs().eq([SSRC]) && remb.sender_ssrc() == RECEIVER);
    }
}

#[test]
fn the_streams_of_an_estimate_may_be_named() {
    let limits = limits(&[1, 2]);
    assert!(limits.iter().all(|it| remb::View::parse(it).unwrap().ssrcs().eq([1, 2])));
    assert!(!limits.is_empty());
}
