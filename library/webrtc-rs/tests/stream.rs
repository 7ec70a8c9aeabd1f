//! A stream under a controller, over a path of fixed delay, in virtual time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rtc_interceptor::{
    Attribute, AttributedPacket, Interceptor, Packet, RTPHeaderExtension, StreamInfo, TaggedPacket,
};
use rtc_rtp::header::Header;
use rtc_shared::TransportContext;
use rtc_shared::marshal::MarshalSize;
use sansio::Protocol;
use weir::{Algorithm, Bitrate, RateLimits};
use weir_webrtc_rs::{Congestion, Control};
use weir_wire::twcc::Builder;

const SSRC: u32 = 7;
const RTX_SSRC: u32 = 8;
const NUMBER_ID: u8 = 5;
const ONE_WAY: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_millis(1);
const FRAME_MS: u64 = 33;
const REPORT_MS: u64 = 50;

fn info() -> StreamInfo {
    let uri = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
    let number = RTPHeaderExtension { uri: uri.to_owned(), id: NUMBER_ID.into() };
    StreamInfo {
        ssrc: SSRC,
        ssrc_rtx: Some(RTX_SSRC),
        payload_type: 96,
        payload_type_rtx: Some(97),
        rtp_header_extensions: vec![number],
        ..StreamInfo::default()
    }
}

fn congestion(start: Instant, algorithm: Algorithm) -> (Congestion, Control) {
    let limits =
        RateLimits::new(Bitrate::from_kbps(50), Bitrate::from_kbps(300), Bitrate::from_kbps(5_000));
    let controller = algorithm.build(limits.unwrap());
    let (mut congestion, control) = Congestion::new(start, controller);
    assert!(!control.is_attached());
    congestion.bind_local_stream(&info());
    assert!(control.is_attached());
    (congestion, control)
}

fn message(now: Instant, packet: rtc_rtp::Packet) -> TaggedPacket {
    let message = AttributedPacket::new(Packet::Rtp(packet));
    TaggedPacket { now, transport: TransportContext::default(), message }
}

fn media(now: Instant, number: u16, marker: bool) -> TaggedPacket {
    let header = Header {
        version: 2,
        ssrc: SSRC,
        payload_type: 96,
        sequence_number: number,
        marker,
        ..Header::default()
    };
    message(now, rtc_rtp::Packet { header, payload: Bytes::from(vec![1; 1_000]) })
}

fn repeat(now: Instant, original: u16) -> TaggedPacket {
    let header = Header { version: 2, ssrc: RTX_SSRC, payload_type: 97, ..Header::default() };
    let mut payload = original.to_be_bytes().to_vec();
    payload.resize(1_000, 1);
    let mut repeat = message(now, rtc_rtp::Packet { header, payload: payload.into() });
    repeat.message.add(Attribute::Retransmission);
    repeat
}

fn rtp(message: TaggedPacket) -> rtc_rtp::Packet {
    match message.message.packet {
        Packet::Rtp(packet) => packet,
        _ => panic!("only RTP leaves here"),
    }
}

/// The transport-wide number of a packet.
fn number(packet: &rtc_rtp::Packet) -> u16 {
    let bytes = packet.header.get_extension(NUMBER_ID).expect("a number");
    u16::from_be_bytes([bytes[0], bytes[1]])
}

#[test]
fn packets_leave_at_the_pacing_rate_and_are_numbered_as_they_leave() {
    let start = Instant::now();
    let (mut congestion, _) = congestion(start, Algorithm::Sluice);
    for index in 0..9 {
        congestion.handle_write(media(start, index, index == 8)).unwrap();
    }
    let (mut now, mut numbers, mut at_once) = (start, Vec::new(), 0);
    while numbers.len() < 9 {
        while let Some(left) = congestion.poll_write() {
            assert_eq!(left.now, now, "the time at which it left, not that of the encoder");
            numbers.push(number(&rtp(left)));
        }
        if now == start {
            at_once = numbers.len();
        }
        now = congestion.poll_timeout().expect("packets wait");
        congestion.handle_timeout(now).unwrap();
    }
    assert!(at_once < 9, "the whole frame left at once");
    assert_eq!(numbers, (0..9).collect::<Vec<u16>>());
}

#[test]
fn a_repeat_overtakes_media_and_one_that_waits_is_not_queued_again() {
    let start = Instant::now();
    let (mut congestion, control) = congestion(start, Algorithm::Sluice);
    for index in 0..9 {
        congestion.handle_write(media(start, index, index == 8)).unwrap();
    }
    while congestion.poll_write().is_some() {}
    congestion.handle_write(repeat(start, 3)).unwrap();
    let queued = control.queued();
    congestion.handle_write(repeat(start, 3)).unwrap();
    assert_eq!(control.queued(), queued);
    let now = congestion.poll_timeout().unwrap();
    congestion.handle_timeout(now).unwrap();
    let first = rtp(congestion.poll_write().unwrap());
    assert_eq!(first.header.ssrc, RTX_SSRC);
}

#[test]
fn a_stream_that_ends_leaves_nothing_behind() {
    let start = Instant::now();
    let (mut congestion, control) = congestion(start, Algorithm::Sluice);
    for index in 0..9 {
        congestion.handle_write(media(start, index, index == 7)).unwrap();
    }
    congestion.handle_write(repeat(start, 3)).unwrap();
    while congestion.poll_write().is_some() {}
    congestion.unbind_local_stream(&info());
    assert_eq!((congestion.poll_timeout(), control.queued().as_bytes()), (None, 0));
    // The next one begins without packets and repeats of the last.
    congestion.bind_local_stream(&info());
    congestion.handle_write(repeat(start, 3)).unwrap();
    assert!(control.queued().as_bytes() > 0 || congestion.poll_write().is_some());
}

#[test]
fn a_queue_that_is_cleared_is_empty_and_takes_the_same_repeat_again() {
    let start = Instant::now();
    let (mut congestion, control) = congestion(start, Algorithm::Sluice);
    for index in 0..9 {
        congestion.handle_write(media(start, index, index == 8)).unwrap();
    }
    while congestion.poll_write().is_some() {}
    congestion.handle_write(repeat(start, 3)).unwrap();
    control.clear_queue(start);
    assert_eq!(control.queued().as_bytes(), 0);
    congestion.handle_write(repeat(start, 3)).unwrap();
    assert!(control.queued().as_bytes() > 0);
}

#[test]
fn a_frame_without_its_last_packet_leaves_with_the_next() {
    let start = Instant::now();
    let (mut congestion, control) = congestion(start, Algorithm::Sluice);
    congestion.handle_write(media(start, 0, false)).unwrap();
    assert_eq!(control.queued().as_bytes(), 0);
    let mut next = media(start, 1, false);
    if let Packet::Rtp(packet) = &mut next.message.packet {
        packet.header.timestamp = 3_000;
    }
    congestion.handle_write(next).unwrap();
    assert!(control.queued().as_bytes() > 0 || congestion.poll_write().is_some());
}

#[test]
fn a_stream_without_feedback_or_repeats_and_rtcp_pass_at_once() {
    let start = Instant::now();
    let limits =
        RateLimits::new(Bitrate::from_kbps(50), Bitrate::from_kbps(50), Bitrate::from_kbps(50));
    let (mut congestion, control) = Congestion::new(start, Algorithm::Gcc.build(limits.unwrap()));
    congestion.bind_local_stream(&StreamInfo { ssrc_rtx: None, ..info() });
    congestion.bind_local_stream(&StreamInfo { rtp_header_extensions: Vec::new(), ..info() });
    assert!(!control.is_attached());
    for index in 0..9 {
        congestion.handle_write(media(start, index, false)).unwrap();
        assert_eq!(rtp(congestion.poll_write().unwrap()).header.sequence_number, index);
    }
}

#[test]
fn feedback_raises_the_target_with_probes_padded_on_the_repeats_stream() {
    let start = Instant::now();
    let (mut congestion, control) = congestion(start, Algorithm::Gcc);
    let mut builder = Builder::new(1, SSRC);
    let (mut on_the_way, mut arrived) = (VecDeque::new(), Vec::new());
    let (mut number_of_media, mut padding) = (0_u16, 0);
    for ms in 0..5_000_u64 {
        let now = start + STEP * ms as u32;
        if ms % FRAME_MS == 0 {
            congestion.handle_write(media(now, number_of_media, true)).unwrap();
            number_of_media += 1;
        }
        if congestion.poll_timeout().is_some_and(|due| due <= now) {
            congestion.handle_timeout(now).unwrap();
        }
        while let Some(left) = congestion.poll_write() {
            let packet = rtp(left);
            if packet.payload.is_empty() {
                assert_eq!(packet.header.ssrc, RTX_SSRC);
                assert!(packet.marshal_size() > 255);
                padding += 1;
            }
            on_the_way.push_back((now + ONE_WAY, i64::from(number(&packet))));
        }
        while on_the_way.front().is_some_and(|&(arrival, _)| arrival <= now) {
            let (arrival, number) = on_the_way.pop_front().unwrap();
            arrived.push((number, (arrival - start).as_micros() as i64));
        }
        if ms % REPORT_MS == 0 {
            let mut reports = Vec::new();
            builder.build(&arrived, 1_200, |bytes| reports.push(Bytes::copy_from_slice(bytes)));
            arrived.clear();
            for mut bytes in reports {
                let packets = rtc_rtcp::packet::unmarshal(&mut bytes).unwrap();
                let message = AttributedPacket::new(Packet::Rtcp(packets));
                let transport = TransportContext::default();
                congestion.handle_read(TaggedPacket { now, transport, message }).unwrap();
                assert!(congestion.poll_read().is_some(), "the application hears of it, too");
            }
        }
    }
    assert!(padding > 10, "{padding} packets of padding");
    assert!(control.target() > Bitrate::from_kbps(1_000), "{}", control.target());
    assert!(control.take_change().is_some());
}
