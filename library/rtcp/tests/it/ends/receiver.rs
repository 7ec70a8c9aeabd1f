use weir::feedback::Ecn;
use weir::{Algorithm, TimeDelta};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig, Reporter, ReporterConfig};
use weir_wire::report::{SenderInfo, View as ReportView};
use weir_wire::rtp::View;
use weir_wire::{ccfb, twcc};

use super::path::{BOTH, ID, Path, RECEIVER, SSRC, kbps, middle, ms, rtp};

fn receiver(feedback: Feedback) -> Receiver {
    Receiver::new(ms(0), ReceiverConfig::new(RECEIVER, BOTH, feedback), middle())
}

/// A packet with this RTP and transport-wide sequence number.
fn packet(number: u16) -> Vec<u8> {
    let mut bytes = rtp(number, 0, 10);
    // The data follows 12 bytes of RTP header, 4 of extension header and 1 of element header.
    bytes[17..19].copy_from_slice(&number.to_be_bytes());
    assert_eq!(
        View::parse(&bytes).unwrap().transport_sequence_number(ID).unwrap().sequence_number,
        number
    );
    bytes
}

fn arrive(receiver: &mut Receiver, at_ms: i64, number: u16, ecn: Ecn) {
    receiver.on_rtp(ms(at_ms), &packet(number), ecn).unwrap();
}

fn due(receiver: &mut Receiver, at_ms: i64) -> Vec<Vec<u8>> {
    receiver.on_timeout(ms(at_ms));
    taken(receiver)
}

fn taken(receiver: &mut Receiver) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    while let Some(rtcp) = receiver.next_rtcp() {
        sent.push(rtcp.to_vec());
    }
    sent
}

// [TWCC §3.1]
#[test]
fn transport_wide_feedback_comes_once_an_interval_and_only_with_news() {
    let mut receiver = receiver(Feedback::Twcc);
    arrive(&mut receiver, 10, 7, Ecn::NotEct);
    arrive(&mut receiver, 11, 9, Ecn::NotEct);
    assert_eq!(receiver.next_timeout(), ms(100));
    assert_eq!(due(&mut receiver, 99).len(), 0);
    let sent = due(&mut receiver, 100);
    let view = twcc::View::parse(&sent[0]).unwrap();
    assert_eq!((sent.len(), view.sender_ssrc(), view.media_ssrc()), (1, RECEIVER, SSRC));
    let arrivals: Vec<_> = view.arrivals().collect();
    assert_eq!(arrivals, [(7, Some(40)), (8, None), (9, Some(44))]);
    assert_eq!(receiver.next_timeout(), ms(200));
    assert_eq!(due(&mut receiver, 200).len(), 0);
    assert_eq!(receiver.next_timeout(), ms(300));
}

// [RFC8888 §3.1]
#[test]
fn congestion_control_feedback_has_arrivals_and_marks_of_each_stream() {
    let mut receiver = receiver(Feedback::Ccfb);
    arrive(&mut receiver, 50, 7, Ecn::Ect1);
    arrive(&mut receiver, 75, 9, Ecn::Ce);
    let sent = due(&mut receiver, 100);
    let view = ccfb::View::parse(&sent[0]).unwrap();
    let block = view.blocks().next().unwrap();
    assert_eq!((view.sender_ssrc(), block.ssrc()), (RECEIVER, SSRC));
    let reports: Vec<_> =
        block.reports().map(|(n, r)| (n, r.map(|r| (r.ecn, r.offset.units())))).collect();
    // 50 ms and 25 ms before the report, in 1/1024 s.
    let (first, last) = ((ccfb::Ecn::Ect1, Some(51)), (ccfb::Ecn::Ce, Some(26)));
    assert_eq!(reports, [(7, Some(first)), (8, None), (9, Some(last))]);
}

// [RFC3550 §6.4.1]
#[test]
fn receiver_reports_answer_the_newest_sender_report_of_their_stream() {
    let config = ReporterConfig::new(RECEIVER).with_report_interval(TimeDelta::from_millis(200));
    let mut reporter = Reporter::new(ms(0), Feedback::ReceiverReports, config, middle());
    for number in [0, 1, 3] {
        let bytes = packet(number);
        reporter.on_packet(ms(10), &View::parse(&bytes).unwrap(), Ecn::NotEct);
    }
    let report = |ntp_time| SenderInfo { ntp_time, rtp_time: 0, packet_count: 0, octet_count: 0 };
    reporter.on_sender_report(ms(50), SSRC, report(5 << 16));
    reporter.on_sender_report(ms(100), SSRC, report(6 << 16));
    reporter.on_sender_report(ms(150), SSRC + 1, report(7 << 16));
    reporter.on_timeout(ms(200));
    let sent = reporter.next_rtcp().unwrap();
    let block = ReportView::parse(sent).unwrap().blocks().next().unwrap();
    assert_eq!((block.ssrc, block.last_sender_report), (SSRC, 6));
    assert_eq!(block.delay_since_last_sender_report, 65_536 / 10);
    assert_eq!((block.fraction_lost, block.cumulative_lost.get()), (64, 1));
    assert_eq!(reporter.next_timeout(), ms(400));
}

#[test]
fn a_datagram_with_a_sender_report_is_answered() {
    let mut path = Path::new(Algorithm::Gcc, Feedback::ReceiverReports);
    path.run(TimeDelta::from_secs(4));
    assert!((3..=4).contains(&path.sender_reports), "{}", path.sender_reports);
    let reports = path.feedback.iter().filter_map(|bytes| ReportView::parse(bytes).ok());
    let answers = reports.flat_map(|view| view.blocks().collect::<Vec<_>>());
    assert!(answers.filter(|block| block.last_sender_report > 0).count() >= 2);
}

#[test]
fn what_arrived_before_a_change_of_format_is_reported_in_the_old_one() {
    let mut receiver = receiver(Feedback::Twcc);
    arrive(&mut receiver, 10, 0, Ecn::NotEct);
    receiver.set_feedback(ms(50), Feedback::Ccfb);
    let sent = taken(&mut receiver);
    assert_eq!(twcc::View::parse(&sent[0]).unwrap().arrivals().count(), 1);
    arrive(&mut receiver, 60, 1, Ecn::NotEct);
    assert_eq!(receiver.next_timeout(), ms(150));
    let sent = due(&mut receiver, 150);
    assert_eq!(ccfb::View::parse(&sent[0]).unwrap().blocks().next().unwrap().reports().len(), 1);
}

#[test]
fn a_call_goes_on_over_changes_of_format() {
    let mut path = Path::new(Algorithm::Nada, Feedback::Twcc);
    path.run(TimeDelta::from_secs(10));
    path.switch(Feedback::Ccfb);
    path.run(TimeDelta::from_secs(10));
    let target = path.sender.target().bitrate;
    assert!(target > kbps(1_500), "{target}");
    assert!(path.loss_ratio() < 0.05, "a change invents no loss: {}", path.loss_ratio());
}

#[test]
fn packets_without_the_extension_do_not_count_in_transport_wide_feedback() {
    let mut receiver = receiver(Feedback::Twcc);
    let bare = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0xca, 0xfe, 1, 2, 3];
    receiver.on_rtp(ms(1), &bare, Ecn::NotEct).unwrap();
    assert_eq!(due(&mut receiver, 100).len(), 0);
    assert!(receiver.on_rtp(ms(1), &bare[..11], Ecn::NotEct).is_err());
}

#[test]
fn a_peer_that_makes_up_streams_fills_no_memory() {
    for feedback in [Feedback::Ccfb, Feedback::ReceiverReports] {
        let mut receiver = receiver(feedback);
        for ssrc in 0..10_000_u32 {
            let mut bytes = packet(0);
            bytes[8..12].copy_from_slice(&ssrc.to_be_bytes());
            receiver.on_rtp(ms(1), &bytes, Ecn::NotEct).unwrap();
        }
        let sent = due(&mut receiver, 1_000);
        let bytes: usize = sent.iter().map(Vec::len).sum();
        assert!(bytes > 0 && bytes < 256 * 40, "{feedback:?}: {bytes} bytes");
    }
}

// The 65th stream of a transport was never reported, nor was any after it.
#[test]
fn streams_that_come_after_many_others_are_reported() {
    let mut receiver = receiver(Feedback::Ccfb);
    for ssrc in 0..1_000_u32 {
        let now = i64::from(ssrc) * 100;
        let mut bytes = packet(0);
        bytes[8..12].copy_from_slice(&ssrc.to_be_bytes());
        receiver.on_rtp(ms(now + 10), &bytes, Ecn::NotEct).unwrap();
        let sent = due(&mut receiver, now + 100);
        let view = ccfb::View::parse(&sent[0]).unwrap();
        let blocks: Vec<_> = view.blocks().map(|block| block.ssrc()).collect();
        assert_eq!(blocks, [ssrc]);
    }
}
