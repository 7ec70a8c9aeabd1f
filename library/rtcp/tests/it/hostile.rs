//! The network may deliver any bytes. Nothing panics, and rejected packets change nothing.

use proptest::prelude::*;
use weir::feedback::Ecn;
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_rtcp::{Feedback, Random, Receiver, ReceiverConfig, Sender, SenderConfig, rtcp_from_fci};
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader};
use weir_wire::{ccfb, remb, report, twcc};

const SSRC: u32 = 7;
const ID: ExtensionId = ExtensionId::new(1).unwrap();
const TIME_ID: ExtensionId = ExtensionId::new(2).unwrap();
const BOTH: ExtensionIds =
    ExtensionIds::NONE.with_transport_sequence_number(Some(ID)).with_abs_send_time(Some(TIME_ID));

fn middle() -> Random {
    Box::new(|| 0.5)
}

fn limits() -> RateLimits {
    let kbps = Bitrate::from_kbps;
    RateLimits::new(kbps(150), kbps(500), kbps(5_000)).unwrap()
}

fn rtp(number: u16) -> Vec<u8> {
    let header = RtpHeader::new(SSRC, PayloadType::new(96).unwrap(), number, 0)
        .with_transport_sequence_number(Some((ID, number)))
        .with_abs_send_time(Some((TIME_ID, AbsSendTime::from_ticks(0))));
    let mut bytes = vec![0; header.size() + 1_000];
    header.emit(&mut bytes);
    bytes
}

/// A sender that has sent fifty packets in one second, and a sender report.
fn sender(algorithm: Algorithm) -> Sender {
    let config = SenderConfig::new(SSRC, BOTH);
    let mut sender = Sender::new(Timestamp::ZERO, algorithm.build(limits()), config, middle());
    for number in 0..50 {
        let now = Timestamp::from_millis(20 * i64::from(number));
        sender.enqueue(now, [rtp(number)]).unwrap();
        sender.on_timeout(now);
        while sender.next_packet(now).is_some() {}
    }
    sender
}

fn check(sender: &Sender) {
    let target = sender.target();
    assert_eq!(limits().clamp(target.bitrate), target.bitrate);
    let metrics = sender.media().controller().metrics();
    assert!((0.0..=1.0).contains(&metrics.loss_ratio));
}

/// One packet of each kind that a sender reads.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let arrivals: Vec<(i64, i64)> = (0..50).map(|n| (n, 20_000 * n + 700)).collect();
    twcc::Builder::new(9, SSRC).build(&arrivals, 1_200, |packet| packets.push(packet.to_vec()));
    let streams = [ccfb::Stream {
        ssrc: SSRC,
        begin_sequence_number: 0,
        packets: (0..50).map(|n: i32| Some((20_000 * i64::from(n), ccfb::Ecn::Ce))),
    }];
    ccfb::Builder::new(9).build(1_000_000, streams, 1_200, |packet| packets.push(packet.to_vec()));
    let block = report::ReportBlock {
        ssrc: SSRC,
        fraction_lost: 3,
        cumulative_lost: report::CumulativeLost::clamped(4),
        extended_highest_sequence_number: 49,
        jitter: 1,
        last_sender_report: report::compact_ntp_from_micros(500_000),
        delay_since_last_sender_report: 0,
    };
    let blocks = [block; 3];
    let info =
        report::SenderInfo { ntp_time: 1 << 32, rtp_time: 2, packet_count: 3, octet_count: 4 };
    let report = report::Report::new(9, Some(info), &blocks).unwrap();
    packets.push(vec![0; report.size()]);
    report.emit(packets.last_mut().unwrap());
    let remb = remb::Remb::new(9, 1_000_000, &[SSRC]).unwrap();
    packets.push(vec![0; remb.size()]);
    remb.emit(packets.last_mut().unwrap());
    packets
}

#[test]
fn a_whole_packet_is_taken_and_every_truncation_of_it_is_told_as_ignored() {
    let all = packets();
    assert_eq!(all.len(), 4);
    for packet in all {
        let now = Timestamp::from_secs(1);
        assert!(sender(Algorithm::Nada).on_rtcp(now, &packet).is_empty());
        for length in 1..packet.len() {
            let mut sender = sender(Algorithm::Nada);
            let before = *sender.target();
            let ignored = sender.on_rtcp(now, &packet[..length]).len();
            assert_eq!((ignored, *sender.target()), (1, before), "{length} bytes");
        }
    }
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(Algorithm::all().collect::<Vec<_>>())
}

/// A packet with some bytes overwritten, or random bytes.
fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    let damaged = (prop::sample::select(packets()), damage).prop_map(|(mut packet, damage)| {
        for (index, byte) in damage {
            let at = index.index(packet.len());
            packet[at] = byte;
        }
        packet
    });
    prop_oneof![damaged, prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_datagram_breaks_a_sender(
        algorithm in algorithms(),
        datagrams in prop::collection::vec(datagrams(), 1..12),
        step_ms in 0..2_000_i64,
    ) {
        let mut sender = sender(algorithm);
        let mut now = Timestamp::from_secs(1);
        for (number, datagram) in (50..).zip(datagrams) {
            sender.on_rtcp(now, &datagram);
            check(&sender);
            now += TimeDelta::from_millis(step_ms);
            sender.enqueue(now, [rtp(number)]).unwrap();
            sender.on_timeout(now);
            for _ in 0..1_000 {
                if sender.next_packet(now).is_none() {
                    break;
                }
            }
            check(&sender);
        }
    }

    #[test]
    fn no_content_without_a_header_breaks_a_sender(
        packet_type in 200..=207_u8,
        format in any::<u8>(),
        fci in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut sender = sender(Algorithm::Scream);
        if let Some(bytes) = rtcp_from_fci(packet_type, format, 1, SSRC, &fci) {
            sender.on_rtcp(Timestamp::from_secs(1), &bytes);
        }
        check(&sender);
    }

    #[test]
    fn no_datagram_breaks_a_receiver(
        format in prop::sample::select(
            vec![Feedback::Twcc, Feedback::Ccfb, Feedback::ReceiverReports],
        ),
        datagrams in prop::collection::vec(datagrams(), 1..40),
        numbers in prop::collection::vec(any::<u16>(), 1..40),
    ) {
        let config = ReceiverConfig::new(9, BOTH, format);
        let mut receiver = Receiver::new(Timestamp::ZERO, config, middle());
        let mut now = Timestamp::ZERO;
        for (datagram, number) in datagrams.iter().zip(numbers.iter().cycle()) {
            now += TimeDelta::from_millis(30);
            receiver.on_rtcp(now, datagram);
            let _ = receiver.on_rtp(now, datagram, Ecn::NotEct);
            receiver.on_rtp(now, &rtp(*number), Ecn::Ce).unwrap();
            receiver.on_timeout(now);
            // The RTCP it sends must be valid.
            while let Some(rtcp) = receiver.next_rtcp() {
                let mut sender = sender(Algorithm::Nada);
                prop_assert!(sender.on_rtcp(Timestamp::from_secs(1), rtcp).is_empty());
            }
            prop_assert!(receiver.next_timeout() > now);
        }
    }
}
