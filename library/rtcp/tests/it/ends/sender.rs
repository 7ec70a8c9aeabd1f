use weir::controller::{EcnMode, Reason, Settings};
use weir::feedback::Ecn;
use weir::{Algorithm, MediaSender, TimeDelta};
use weir_rtcp::{
    EnqueueError, Feedback, Message, RtcpEvent, Sender, SenderConfig, SenderReports, messages,
    rtcp_from_fci,
};
use weir_wire::header::Packet;
use weir_wire::remb::Remb;
use weir_wire::report::{
    CumulativeLost, Report, ReportBlock, View as ReportView, compact_ntp, compact_ntp_from_micros,
};
use weir_wire::rtp::View;
use weir_wire::twcc;

use super::path::{BOTH, ID, Path, RECEIVER, SSRC, TIME_ID, kbps, limits, middle, ms, rtp};

/// A TWCC packet that reports packets 0 and 1, which arrived at 20 ms.
fn twcc_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    let arrivals = [(0, 20_000), (1, 20_250)];
    twcc::Builder::new(RECEIVER, SSRC).build(&arrivals, 1_200, |packet| bytes.extend(packet));
    bytes
}

fn report_bytes(blocks: &[ReportBlock]) -> Vec<u8> {
    let report = Report::new(RECEIVER, None, blocks).unwrap();
    let mut bytes = vec![0; report.size()];
    report.emit(&mut bytes);
    bytes
}

fn block(last_sender_report: u32) -> ReportBlock {
    ReportBlock {
        ssrc: SSRC,
        fraction_lost: 0,
        cumulative_lost: CumulativeLost::clamped(0),
        extended_highest_sequence_number: 1,
        jitter: 0,
        last_sender_report,
        delay_since_last_sender_report: 0,
    }
}

fn remb_bytes(bps: u64) -> Vec<u8> {
    let remb = Remb::new(RECEIVER, bps, &[SSRC]).unwrap();
    let mut bytes = vec![0; remb.size()];
    remb.emit(&mut bytes);
    bytes
}

/// A sender that sent two packets at time zero.
fn sender() -> Sender {
    let controller = Algorithm::Nada.build(limits());
    let mut sender = Sender::new(ms(0), controller, SenderConfig::new(SSRC, BOTH), middle());
    sender.enqueue(ms(0), [rtp(0, 0, 100), rtp(1, 0, 100)]).unwrap();
    assert_eq!(std::iter::from_fn(|| sender.next_packet(ms(3))).count(), 2);
    sender
}

/// The kinds of packets in a datagram.
fn walk(bytes: &[u8]) -> Vec<String> {
    let name = |message| match message {
        Ok(Message::Twcc(_)) => "twcc".to_owned(),
        Ok(Message::Ccfb(_)) => "ccfb".to_owned(),
        Ok(Message::Report(_)) => "report".to_owned(),
        Ok(Message::Remb(_)) => "remb".to_owned(),
        Err(RtcpEvent::Retransmit(nack)) => format!("repeat of {:#x}", nack.media_ssrc()),
        Err(RtcpEvent::KeyFrame(request)) => {
            let ssrcs: Vec<_> = request.media_ssrcs().collect();
            format!("key frame of {ssrcs:?}")
        }
        Err(RtcpEvent::Other(packet)) => format!("other {}", packet.packet_type()),
        Err(RtcpEvent::Damaged(packet, _)) => format!("damaged {}", packet.packet_type()),
        Err(RtcpEvent::Malformed(_)) => "malformed".to_owned(),
        _ => "unknown".to_owned(),
    };
    messages(bytes).map(name).collect()
}

// [RFC3550 §6.1]
#[test]
fn a_compound_is_read_packet_by_packet_and_the_rest_is_handed_on_in_order() {
    let description = [0x81, 202, 0, 2, 0, 0, 0, 9, 1, 0, 0, 0];
    let picture_loss = [0x81, 206, 0, 2, 0, 0, 0, 9, 0, 0, 0, 7];
    let full_intra = [0x84, 206, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0];
    let nack = [0x81, 205, 0, 3, 0, 0, 0, 9, 0, 0, 0, 7, 0, 5, 0, 1];
    let mut bytes = report_bytes(&[]);
    for packet in [&description[..], &twcc_bytes(), &picture_loss, &full_intra, &nack] {
        bytes.extend(packet);
    }
    bytes.extend(remb_bytes(1_000_000));
    let key_frames = ["key frame of [7]", "key frame of [8]"];
    let expected =
        ["report", "other 202", "twcc", key_frames[0], key_frames[1], "repeat of 0x7", "remb"];
    assert_eq!(walk(&bytes), expected);
    assert_eq!(walk(&twcc_bytes()), ["twcc"], "of reduced size");
}

#[test]
fn damage_does_not_hide_the_next_packet_a_bad_length_ends_the_datagram() {
    let mut bytes = twcc_bytes();
    bytes[14..16].copy_from_slice(&[0, 0]); // No packet is reported.
    bytes.extend(remb_bytes(1_000_000));
    assert_eq!(walk(&bytes), ["damaged 205", "remb"]);
    let mut bytes = remb_bytes(1_000_000);
    bytes.extend(&twcc_bytes()[..8]);
    assert_eq!(walk(&bytes), ["remb", "malformed"]);
    assert_eq!(walk(&[]), [""; 0]);
}

// [RFC4585 §6.1]
#[test]
fn content_without_its_header_reads_as_the_packet_does() {
    let whole = twcc_bytes();
    let bytes = rtcp_from_fci(205, 15, RECEIVER, SSRC, &whole[12..]).unwrap();
    let view = |bytes| twcc::View::parse(bytes).unwrap().to_string();
    assert_eq!(view(&bytes), view(&whole));
    let remb = remb_bytes(1_000_000);
    assert_eq!(rtcp_from_fci(206, 15, RECEIVER, 0, &remb[12..]).unwrap(), remb);
    // Content whose length is not a multiple of four bytes is padded.
    let odd = rtcp_from_fci(205, 15, RECEIVER, SSRC, &whole[12..whole.len() - 1]).unwrap();
    assert_eq!(odd.len(), whole.len());
    assert_eq!(rtcp_from_fci(205, 32, 1, 2, &[]), None);
    assert_eq!(rtcp_from_fci(205, 15, 1, 2, &vec![0; 1 << 18]), None);
}

// [REMB §2.2]
#[test]
fn a_receivers_limit_caps_the_target() {
    let mut sender = sender();
    sender.on_rtcp(ms(50), &remb_bytes(200_000));
    assert_eq!(sender.target().bitrate, kbps(200));
    let change = sender.take_change().unwrap();
    assert_eq!((change.from, change.metrics.reason), (kbps(500), Reason::ReceiverLimit));
}

#[test]
fn packets_leave_with_their_extensions_filled_in() {
    let config = SenderConfig::new(SSRC, BOTH);
    let mut sender = Sender::new(ms(0), Algorithm::Nada.build(limits()), config, middle());
    sender.enqueue(ms(0), [rtp(9, 77, 100), rtp(10, 77, 100)]).unwrap();
    for (number, due) in [(0, ms(1_500)), (1, ms(1_500))] {
        let packet = sender.next_packet(due).unwrap();
        let view = View::parse(&packet.content).unwrap();
        let read = view.transport_sequence_number(ID).unwrap().sequence_number;
        assert_eq!((read, view.sequence_number()), (number, 9 + number));
        assert_eq!(view.abs_send_time(TIME_ID).unwrap().to_bytes(), [6, 0, 0]);
        // 12 bytes of header, 12 of extensions, 28 of IPv4 and UDP.
        assert_eq!(packet.size.as_bytes(), 100 + 24 + 28);
    }
}

#[test]
fn a_packet_without_room_for_an_extension_is_refused_with_its_frame() {
    let mut sender = sender();
    let without = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0xca, 0xfe, 1, 2, 3];
    let refused = sender.enqueue(ms(10), [rtp(2, 0, 100), without.to_vec()]);
    assert_eq!(refused, Err(EnqueueError::NoExtension(ID)));
    assert!(matches!(sender.enqueue(ms(10), [vec![0; 40]]), Err(EnqueueError::NotRtp(_))));
    assert!(sender.enqueue_urgent(ms(10), [vec![]]).is_err());
    assert_eq!(sender.media().queued().as_bytes(), 0);
}

#[test]
fn retransmissions_overtake_media_and_a_cleared_queue_is_empty() {
    let mut sender = sender();
    sender.enqueue(ms(100), [rtp(2, 0, 100), rtp(3, 0, 100)]).unwrap();
    sender.enqueue_urgent(ms(100), [rtp(0, 0, 100)]).unwrap();
    let packet = sender.next_packet(ms(100)).unwrap();
    assert_eq!(View::parse(&packet.content).unwrap().sequence_number(), 0);
    sender.clear_queue(ms(100));
    assert_eq!(sender.next_packet(ms(1_000)), None);
}

// [RFC3550 §6.4.1]
#[test]
fn sender_reports_count_the_media_and_carry_the_time_of_its_clock() {
    let mut sender = sender();
    // Half the first interval.
    let due = sender.next_timeout().unwrap();
    assert!(due <= ms(500));
    let mut reports = Vec::new();
    for at_ms in [499, 500, 1_499] {
        sender.on_timeout(ms(at_ms));
        while let Some(bytes) = sender.next_rtcp() {
            reports.push(bytes.to_vec());
        }
    }
    assert_eq!(reports.len(), 1);
    let view = ReportView::parse(&reports[0]).unwrap();
    let info = view.sender_info().unwrap();
    assert_eq!((view.sender_ssrc(), info.packet_count, info.octet_count), (SSRC, 2, 200));
    assert_eq!(info.rtp_time, 45_000, "half a second after a packet with timestamp 0");
    assert_eq!(info.ntp_time, 1 << 31);
}

#[test]
fn a_sender_without_media_has_nothing_to_report() {
    let controller = Algorithm::Nada.build(limits());
    let mut sender = Sender::new(ms(0), controller, SenderConfig::new(SSRC, BOTH), middle());
    sender.on_timeout(ms(5_000));
    assert_eq!(sender.next_rtcp(), None);
    assert!(sender.next_timeout().is_none_or(|due| due > ms(5_000)), "it would be asked for ever");
    sender.enqueue(ms(5_000), [rtp(0, 0, 100)]).unwrap();
    sender.on_timeout(ms(5_000));
    assert!(sender.next_rtcp().is_some());
}

// [RFC3550 §6.4.1]
#[test]
fn round_trip_times_come_only_from_answers_to_own_reports() {
    let mut reports = SenderReports::new(ms(0), SSRC, middle());
    let mut times = Vec::new();
    for second in 0..20 {
        let bytes = reports.on_timeout(ms(500 + 1_000 * second), 0).unwrap();
        let view = ReportView::parse(&bytes).unwrap();
        times.push(compact_ntp(view.sender_info().unwrap().ntp_time));
    }
    assert_eq!(times.len(), 20);
    let now = ms(19_560);
    let newest = times[19];
    // The field has a resolution of 15 us.
    let is_near = |rtt: Option<TimeDelta>, ms| {
        (rtt.unwrap() - TimeDelta::from_millis(ms)).abs() < TimeDelta::from_micros(50)
    };
    assert!(is_near(reports.round_trip_time(now, &block(newest)), 60));
    // The 30 ms spent at the receiver are subtracted.
    let delayed = ReportBlock {
        delay_since_last_sender_report: compact_ntp_from_micros(30_000),
        ..block(newest)
    };
    assert!(is_near(reports.round_trip_time(now, &delayed), 30));
    for foreign in [0, newest + 1, times[3]] {
        assert_eq!(reports.round_trip_time(now, &block(foreign)), None, "{foreign:#x}");
    }
    assert!(reports.round_trip_time(now, &block(times[4])).is_some(), "sixteen are remembered");
}

/// The intervals lie within the range of [RFC3550 §6.3.1].
#[test]
fn sender_reports_follow_each_other_after_half_a_second_to_one_and_a_half() {
    let draws = [0.0, 0.999, 0.25].into_iter().cycle();
    let mut draws = Box::new(draws);
    let mut reports =
        SenderReports::new(ms(0), SSRC, Box::new(move || draws.next().expect("it cycles")));
    assert_eq!(reports.next_timeout(), ms(250));
    let mut last = reports.next_timeout();
    let gaps = [1_499, 750, 500].map(|gap| {
        reports.on_timeout(last, 0);
        let is = (reports.next_timeout() - last).as_millis();
        last = reports.next_timeout();
        (is, gap)
    });
    assert!(gaps.iter().all(|(is, gap)| is == gap), "{gaps:?}");
}

#[test]
fn receiver_reports_are_feedback_until_feedback_on_packets_comes() {
    let mut sender = sender();
    sender.on_timeout(ms(500));
    let report = ReportView::parse(sender.next_rtcp().unwrap()).unwrap();
    let answered = compact_ntp(report.sender_info().unwrap().ntp_time);
    let acknowledged = |sender: &Sender| sender.media().controller().metrics().acknowledged_bitrate;
    assert_eq!(acknowledged(&sender), None);
    sender.on_rtcp(ms(540), &report_bytes(&[block(answered)]));
    assert!(sender.media().controller().metrics().rtt.is_some(), "the report told of two packets");
    // A later receiver report does not hide later TWCC feedback.
    sender.enqueue(ms(600), [rtp(2, 54_000, 100)]).unwrap();
    sender.next_packet(ms(600)).unwrap();
    let mut bytes = Vec::new();
    twcc::Builder::new(RECEIVER, SSRC).build(&[(2, 620_000)], 1_200, |rtcp| bytes.extend(rtcp));
    sender.on_rtcp(ms(650), &bytes);
    let told = sender.media().controller().metrics();
    sender.on_rtcp(ms(700), &report_bytes(&[block(answered)]));
    assert_eq!(sender.media().controller().metrics().loss_ratio, told.loss_ratio);
}

#[test]
fn a_host_joins_messages_with_a_media_sender_of_its_own() {
    let mut sender = MediaSender::new(Algorithm::Scream.build(limits()));
    sender.enqueue(ms(0), [(weir::DataSize::from_bytes(1_000), "a buffer")]);
    assert_eq!(sender.next_packet(ms(0)).unwrap().content, Some("a buffer"));
    let bytes = twcc_bytes();
    let message = Message::read(Packet::parse(&bytes).unwrap()).unwrap();
    let report = sender.on_feedback(ms(40), |history| message.join(ms(40), history)).unwrap();
    // Packet 1 was never sent.
    assert_eq!((report.packets.len(), report.packets[0].arrival_time), (1, Some(ms(20))));
}

// [RFC3550 §5.1]
#[test]
fn padding_leaves_in_a_stream_of_its_own_and_counts_as_what_it_is() {
    let mut path = Path::new(Algorithm::Gcc, Feedback::Twcc);
    path.run(TimeDelta::from_secs(2));
    let views = path.sent.iter().map(|bytes| View::parse(bytes).unwrap());
    let padding: Vec<_> = views.filter(|view| view.ssrc() != SSRC).collect();
    assert!(padding.len() > 3, "its probes need some");
    for (number, view) in (0..).zip(&padding) {
        assert!(view.is_padded() && view.payload().is_empty());
        assert_eq!((view.ssrc(), view.sequence_number()), (SSRC + 1, number));
        assert!(view.transport_sequence_number(ID).is_some());
    }
    let numbers = path.sent.iter().map(|bytes| {
        let number = View::parse(bytes).unwrap().transport_sequence_number(ID);
        number.unwrap().sequence_number
    });
    assert!(numbers.eq(0..path.sent.len() as u16), "one counter for all streams");
}

#[test]
fn every_controller_finds_the_capacity_by_each_format() {
    for algorithm in Algorithm::all() {
        for format in [Feedback::Twcc, Feedback::Ccfb] {
            let mut path = Path::new(algorithm, format);
            path.run(TimeDelta::from_secs(20));
            let target = path.sender.target().bitrate;
            assert!(target > kbps(900) && target < kbps(5_000), "{algorithm} {format:?}: {target}");
        }
    }
}

#[test]
fn losses_and_marks_reach_the_controller() {
    let mut path = Path::new(Algorithm::Nada, Feedback::Twcc);
    path.lose_each = 5;
    path.run(TimeDelta::from_secs(5));
    assert!(path.loss_ratio() > 0.1, "{}", path.loss_ratio());
    let marked = |ecn| {
        let mut settings = Settings::new(limits());
        settings.ecn = EcnMode::L4s;
        let mut path = Path::with_settings(Algorithm::ScreamV2, settings, Feedback::Ccfb);
        path.ecn = ecn;
        path.run(TimeDelta::from_secs(10));
        path.sender.target().bitrate
    };
    assert!(marked(Ecn::Ce) < marked(Ecn::Ect1) * 0.5);
}

#[test]
fn equal_calls_give_equal_bytes() {
    let run = || {
        let mut path = Path::new(Algorithm::Gcc, Feedback::Twcc);
        path.run(TimeDelta::from_secs(5));
        (path.sent, path.feedback, path.changes)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_recycled_packet_gives_its_memory_to_the_next_one() {
    let mut sender = sender();
    let bytes = rtp(2, 0, 100);
    let memory = bytes.as_ptr();
    sender.enqueue(ms(20), [bytes]).unwrap();
    let packet = sender.next_packet(ms(1_000)).unwrap();
    sender.recycle(packet.content);
    let buffer = sender.buffer();
    assert!(buffer.is_empty());
    assert_eq!(buffer.as_ptr(), memory);
}
