use alloc::vec::Vec;

use super::*;

const SIZE: DataSize = DataSize::from_bytes(1200);

fn history_of(first: u16, packets: i64) -> SendHistory {
    let mut history = SendHistory::new(first);
    for number in 0..packets {
        history.on_packet_sent(Timestamp::from_millis(number), Outgoing::media(SIZE));
    }
    history
}

fn header(feedback_count: u8) -> TwccHeader {
    TwccHeader { reference_time: 0, feedback_count }
}

#[test]
fn feedback_is_joined_over_the_wrap_of_the_sequence_number() {
    let mut history = history_of(65_534, 4);
    let arrivals = [(65_534, Some(4)), (65_535, None), (0, Some(8)), (1, Some(12))];
    let report = history.on_twcc(header(0), arrivals.into_iter()).unwrap();
    let seen: Vec<_> = report.packets.iter().map(|p| (p.sequence_number, p.arrival_time)).collect();
    assert_eq!(
        seen,
        [
            (65_534, Some(Timestamp::from_millis(1))),
            (65_535, None),
            (65_536, Some(Timestamp::from_millis(2))),
            (65_537, Some(Timestamp::from_millis(3))),
        ]
    );
}

#[test]
fn a_fate_is_told_once_and_again_only_when_a_lost_packet_arrives() {
    let mut history = history_of(0, 2);
    let first = history.on_twcc(header(0), [(0, None), (1, Some(4))].into_iter()).unwrap();
    assert_eq!(
        first.loss_counts(),
        crate::feedback::LossCounts { received: 1, lost: 1, recovered: 0 }
    );
    let again = history.on_twcc(header(1), [(0, None), (1, Some(4))].into_iter());
    assert_eq!(again, None);
    let late = history.on_twcc(header(2), [(0, Some(9))].into_iter()).unwrap();
    assert_eq!(
        late.loss_counts(),
        crate::feedback::LossCounts { received: 0, lost: 0, recovered: 1 }
    );
}

#[test]
fn a_limited_history_forgets_the_oldest_packets_and_takes_no_more_memory() {
    let mut history = SendHistory::new(0);
    history.set_capacity(3);
    let memory = history.entries.capacity();
    for number in 0..1_000 {
        history.on_packet_sent(Timestamp::from_millis(number), Outgoing::media(SIZE));
    }
    assert_eq!(history.entries.capacity(), memory);
    let arrivals = [(996, Some(4)), (997, Some(4)), (999, Some(8))];
    let report = history.on_twcc(header(0), arrivals.into_iter()).unwrap();
    let numbers: Vec<_> = report.packets.iter().map(|packet| packet.sequence_number).collect();
    assert_eq!(numbers, [997, 999]);
}

#[test]
fn a_history_that_is_limited_later_keeps_the_newest_packets() {
    let mut history = history_of(0, 10);
    history.set_capacity(2);
    let arrivals = [(7, Some(4)), (8, Some(4)), (9, Some(8))];
    let report = history.on_twcc(header(0), arrivals.into_iter()).unwrap();
    assert_eq!(report.packets[0].sequence_number, 8);
    assert_eq!(history.next_sequence_number(), 10);
}

#[test]
fn packets_that_were_never_sent_or_are_forgotten_are_ignored() {
    let mut history = history_of(0, 2);
    assert_eq!(history.on_twcc(header(0), [(2, Some(1)), (40_000, Some(1))].into_iter()), None);
    history.on_packet_sent(Timestamp::from_secs(60), Outgoing::media(SIZE));
    assert_eq!(history.on_twcc(header(1), [(0, Some(1))].into_iter()), None);
}

#[test]
fn missing_feedback_is_counted_modulo_256_and_a_late_one_is_not_missing() {
    let mut history = history_of(0, 10);
    let mut missing = |count, number| {
        history.on_twcc(header(count), [(number, Some(1))].into_iter()).unwrap().missing_feedback
    };
    assert_eq!(missing(254, 0), 0);
    assert_eq!(missing(255, 1), 0);
    assert_eq!(missing(2, 2), 2);
    assert_eq!(missing(0, 3), 0);
    assert_eq!(missing(3, 4), 0);
}

#[test]
fn the_reference_time_counts_on_over_its_24_bits() {
    let mut history = history_of(0, 2);
    let before = TwccHeader { reference_time: 0xFF_FFFF, feedback_count: 0 };
    let after = TwccHeader { reference_time: 0, feedback_count: 1 };
    let a = history.on_twcc(before, [(0, Some(0))].into_iter()).unwrap().packets[0];
    let b = history.on_twcc(after, [(1, Some(0))].into_iter()).unwrap().packets[0];
    assert_eq!(b.arrival_time.unwrap() - a.arrival_time.unwrap(), TimeDelta::from_millis(64));
}

#[test]
fn memory_is_bounded_by_half_the_number_space() {
    let mut history = SendHistory::new(0);
    for _ in 0..100_000 {
        history.on_packet_sent(Timestamp::ZERO, Outgoing::media(SIZE));
    }
    assert_eq!(history.entries.len(), MAX_PACKETS);
    assert_eq!(history.next_sequence_number(), 100_000);
}

const SSRC: u32 = 0x0bad_cafe;
const REPAIR: u32 = 9;

fn rtp(ssrc: u32, sequence_number: u16) -> Option<RtpNumber> {
    Some(RtpNumber { ssrc, sequence_number })
}

/// `packets` of one stream, sent 1 ms apart: numbered from `first` in the stream, from 0 overall.
fn stream_of(first: u16, packets: u16) -> SendHistory {
    let mut history = SendHistory::default();
    send(&mut history, first, packets);
    history
}

fn send(history: &mut SendHistory, first: u16, packets: u16) {
    for index in 0..packets {
        let now = Timestamp::from_millis(history.next_sequence_number());
        let number = rtp(SSRC, first.wrapping_add(index));
        history.on_packet_sent(now, Outgoing { rtp: number, ..Outgoing::media(SIZE) });
    }
}

/// An entry for a packet that arrived this many units of 1/1024 s before the timestamp, or is
/// missing.
fn ccfb(sequence_number: u16, offset: Option<u16>) -> CcfbPacket {
    CcfbPacket {
        rtp: RtpNumber { ssrc: SSRC, sequence_number },
        reception: offset.map(|offset| CcfbReception { ecn: Ecn::NotEct, offset }),
    }
}

/// Congestion control feedback on these packets, all received.
fn ccfb_range(numbers: core::ops::Range<u16>) -> impl Iterator<Item = CcfbPacket> {
    numbers.map(|number| ccfb(number, Some(0)))
}

fn block(highest: u32, cumulative_lost: i32) -> ReceiverReport {
    ReceiverReport {
        ssrc: SSRC,
        extended_highest_sequence_number: highest,
        fraction_lost: 0,
        cumulative_lost,
        rtt: Some(TimeDelta::from_millis(80)),
    }
}

fn report_block(history: &mut SendHistory, block: ReceiverReport) -> Option<&FeedbackReport> {
    let now = Timestamp::from_millis(history.next_sequence_number() + 79);
    history.on_receiver_report(now, core::iter::once(block))
}

fn lost(report: &FeedbackReport) -> Vec<i64> {
    let lost = report.packets.iter().filter(|packet| packet.arrival_time.is_none());
    lost.map(|packet| packet.sequence_number).collect()
}

// [RFC8888 §3.1]
#[test]
fn ccfb_counts_arrivals_back_from_its_timestamp_over_the_wrap_of_both() {
    let mut history = stream_of(65_534, 3);
    // 0.5 s before the 32-bit timestamp wraps, then 0.5 s after.
    let early = [ccfb(65_534, Some(512)), ccfb(65_535, None)];
    let report = history.on_ccfb(0xffff_8000, early.into_iter()).unwrap();
    assert_eq!((report.packets.len(), lost(report)), (2, alloc::vec![1]));
    let first = report.packets[0].arrival_time.unwrap();
    let report = history.on_ccfb(0x0000_8000, [ccfb(0, Some(512))].into_iter()).unwrap();
    assert_eq!(report.packets[0].sequence_number, 2);
    assert_eq!(report.packets[0].arrival_time.unwrap() - first, TimeDelta::from_secs(1));
    assert_eq!(report.arrival_times, ArrivalTimes::Measured);
}

// [RFC8888 §3.1]
#[test]
fn an_offset_that_says_no_time_bounds_the_arrival() {
    let mut history = stream_of(0, 2);
    let packets = [ccfb(0, Some(0x1ffe)), ccfb(1, Some(0x1fff))];
    let report = history.on_ccfb(20 << 16, packets.into_iter()).unwrap();
    let arrivals: Vec<_> = report.packets.iter().map(|p| p.arrival_time.unwrap()).collect();
    assert_eq!(arrivals[0], Timestamp::from_micros(20_000_000 - 8_190 * 1_000_000 / 1_024));
    assert_eq!(arrivals[1], Timestamp::from_secs(20));
}

#[test]
fn ecn_bits_come_with_ccfb_and_not_with_twcc() {
    let mut history = stream_of(0, 2);
    let marked =
        CcfbPacket { reception: Some(CcfbReception { ecn: Ecn::Ce, offset: 0 }), ..ccfb(0, None) };
    let report = history.on_ccfb(0, [marked].into_iter()).unwrap();
    assert_eq!(report.packets[0].ecn, Ecn::Ce);
    let report = history.on_twcc(header(0), [(1, Some(1))].into_iter()).unwrap();
    assert_eq!(report.packets[0].ecn, Ecn::NotEct);
}

#[test]
fn reports_on_several_streams_come_in_the_order_of_sending() {
    let mut history = SendHistory::default();
    for (ssrc, number) in [(SSRC, 5), (REPAIR, 700), (SSRC, 6), (REPAIR, 701)] {
        let outgoing = Outgoing { rtp: rtp(ssrc, number), ..Outgoing::media(SIZE) };
        history.on_packet_sent(Timestamp::ZERO, outgoing);
    }
    let repair = |number| CcfbPacket {
        rtp: RtpNumber { ssrc: REPAIR, sequence_number: number },
        ..ccfb(0, Some(0))
    };
    let packets = [ccfb(5, Some(0)), ccfb(6, None), repair(700), repair(701)];
    let report = history.on_ccfb(0, packets.into_iter()).unwrap();
    let numbers: Vec<_> = report.packets.iter().map(|packet| packet.sequence_number).collect();
    assert_eq!((numbers, lost(report)), (alloc::vec![0, 1, 2, 3], alloc::vec![2]));
}

// [RFC8888 §3.1]
#[test]
fn a_packet_once_received_stays_received_and_a_lost_one_may_turn_up() {
    let mut history = stream_of(0, 3);
    let first = [ccfb(0, Some(0)), ccfb(1, None), ccfb(2, Some(0))];
    history.on_ccfb(1 << 16, first.into_iter()).unwrap();
    let late = [ccfb(0, None), ccfb(1, Some(0)), ccfb(2, Some(0))];
    let report = history.on_ccfb(2 << 16, late.into_iter()).unwrap();
    assert_eq!(report.packets.len(), 1);
    assert_eq!((report.packets[0].sequence_number, report.packets[0].recovered), (1, true));
}

#[test]
fn packets_of_unknown_streams_or_never_sent_are_ignored() {
    let mut history = stream_of(0, 2);
    let unknown = CcfbPacket { rtp: RtpNumber { ssrc: 1, sequence_number: 0 }, ..ccfb(0, Some(0)) };
    let packets = [unknown, ccfb(2, Some(0)), ccfb(30_000, None)];
    assert_eq!(history.on_ccfb(0, packets.into_iter()), None);
    // Such packets do not move the range that counts as reported either.
    let report = history.on_ccfb(1 << 16, [ccfb(0, Some(0))].into_iter()).unwrap();
    assert_eq!(report.missing_feedback, 0);
    let stranger = ReceiverReport { ssrc: 1, ..block(0, 0) };
    assert_eq!(report_block(&mut history, stranger), None);
    assert_eq!(report_block(&mut history, block(30_000, 9)), None);
}

// [RFC8888 §3.1, §5]
#[test]
fn a_gap_between_ccfb_reports_is_lost_feedback_and_time_says_how_much() {
    const INTERVAL: u32 = 3_277; // 50 ms
    let mut history = stream_of(0, 100);
    let mut missing = |at: u32, numbers| {
        history.on_ccfb(at * INTERVAL, ccfb_range(numbers)).unwrap().missing_feedback
    };
    assert_eq!(missing(1, 3..10), 0);
    assert_eq!(missing(2, 10..20), 0);
    assert_eq!(missing(3, 15..30), 0); // begins earlier because a packet arrived late
    assert_eq!(missing(7, 50..60), 3);
    assert_eq!(missing(6, 45..50), 0); // overtaken by the previous one
    assert_eq!(missing(8, 60..70), 0);
}

#[test]
fn packets_of_one_ccfb_report_miss_nothing_between_them() {
    let mut history = stream_of(0, 100);
    let mut missing =
        |at: u32, numbers| history.on_ccfb(at, ccfb_range(numbers)).unwrap().missing_feedback;
    assert_eq!(missing(10_000, 0..10), 0);
    assert_eq!(missing(13_277, 10..20), 0);
    assert_eq!(missing(13_277, 20..30), 0);
    assert_eq!(missing(19_831, 60..70), 1);
}

#[test]
fn a_stream_that_jumps_begins_anew() {
    let mut history = stream_of(0, 5);
    send(&mut history, 1_000, 2);
    assert_eq!(history.on_ccfb(0, ccfb_range(0..5)), None);
    let report = history.on_ccfb(1, ccfb_range(1_000..1_002)).unwrap();
    let numbers: Vec<_> = report.packets.iter().map(|packet| packet.sequence_number).collect();
    assert_eq!(numbers, [5, 6]);
}

#[test]
fn numbers_that_were_not_sent_keep_the_feedback_on_those_before() {
    let mut history = stream_of(65_530, 5);
    send(&mut history, 3, 2);
    let reports = (65_530..=65_534).map(|number| ccfb(number, Some(0)));
    // The receiver reports on the gap, too.
    let reports = reports.chain([65_535, 0, 1, 2].map(|number| ccfb(number, None)));
    let report = history.on_ccfb(0, reports.chain(ccfb_range(3..5))).unwrap();
    let numbers: Vec<_> = report.packets.iter().map(|packet| packet.sequence_number).collect();
    assert_eq!((numbers, lost(report)), (alloc::vec![0, 1, 2, 3, 4, 5, 6], alloc::vec![]));
    assert_eq!(report.missing_feedback, 0);
}

/// The round-trip times in ms of the packets in a report at this time.
fn round_trips(history: &mut SendHistory, now_ms: i64, block: ReceiverReport) -> Vec<i64> {
    let blocks = core::iter::once(block);
    let report = history.on_receiver_report(Timestamp::from_millis(now_ms), blocks).unwrap();
    report.received().map(|packet| packet.one_way_delay().unwrap().as_millis()).collect()
}

// The sender report that a block answers may be a second old.
#[test]
fn a_report_shows_the_round_trip_of_the_newest_packet_that_arrived() {
    for (now_ms, expected) in [(130, 80), (200, 150), (100, 51)] {
        let mut history = stream_of(0, 100);
        // Packet 49 was sent at 49 ms, and the next one a millisecond later.
        let times = round_trips(&mut history, now_ms, block(49, 0));
        assert_eq!(times, alloc::vec![expected; 50], "at {now_ms} ms");
    }
    // Nothing was sent after it: the report may have waited for the next packet.
    let mut history = stream_of(0, 50);
    assert_eq!(round_trips(&mut history, 900, block(49, 0)), [80; 50]);
}

// As much arrives in a second as the path carries, and not as much as was sent in it.
#[test]
fn between_two_reports_the_round_trip_changes_evenly() {
    let mut history = stream_of(0, 201);
    round_trips(&mut history, 180, block(99, 0));
    let times = round_trips(&mut history, 300, block(199, 0));
    assert_eq!([times[0], times[49], times[99]], [80, 90, 100]);
}

#[test]
fn a_receiver_report_counts_what_was_not_sent_as_no_loss() {
    // The gap is after what was reported before, or inside of the first report.
    for reported in [10, 0] {
        let mut history = stream_of(0, 10);
        if reported > 0 {
            report_block(&mut history, block(9, 0)).unwrap();
        }
        send(&mut history, 13, 7);
        // Three were not sent, and two are lost.
        let report = report_block(&mut history, block(19, 5)).unwrap();
        assert_eq!((report.packets.len(), lost(report).len()), (17 - reported, 2));
    }
    let mut history = stream_of(0, 10);
    send(&mut history, 13, 7);
    report_block(&mut history, block(19, 5)).unwrap();
    // One of the two arrives.
    let report = report_block(&mut history, block(19, 4)).unwrap();
    assert_eq!((report.packets.len(), report.packets[0].recovered), (1, true));
}

#[test]
fn gaps_take_no_more_memory_than_packets() {
    let mut history = SendHistory::default();
    for packet in 0..1_000_u16 {
        send(&mut history, packet.wrapping_mul(200), 1);
    }
    let stream = history.streams.get(SSRC).unwrap();
    assert!(stream.next_number() - stream.first_number() <= MAX_PACKETS as i64);
    // The newest of them fit into the space of numbers, and older ones were given up.
    let newest = 999_u16.wrapping_mul(200);
    let before = newest.wrapping_sub(200);
    let reports = [ccfb(before, Some(0)), ccfb(newest, Some(0))];
    assert_eq!(history.on_ccfb(0, reports.into_iter()).unwrap().packets.len(), 2);
}

// [RFC3550 §6.4.1]
#[test]
fn a_receiver_report_spreads_its_losses_and_ends_on_a_packet_that_arrived() {
    let mut history = stream_of(65_530, 20);
    // 13 packets from 65530 to 6, in the receiver's second cycle; three are lost.
    let blocks = core::iter::once(block(65_536 + 6, 3));
    let report = history.on_receiver_report(Timestamp::from_millis(92), blocks).unwrap();
    assert_eq!(lost(report), [2, 6, 10]);
    assert_eq!((report.packets.len(), report.arrival_times), (13, ArrivalTimes::RoundTrip));
    assert!(report.received().all(|p| p.one_way_delay() == Some(TimeDelta::from_millis(80))));
    // The remaining packets, of which one is lost.
    let report = report_block(&mut history, block(65_536 + 13, 4)).unwrap();
    assert_eq!((report.packets.len(), lost(report)), (7, alloc::vec![16]));
}

#[test]
fn every_loss_of_a_receiver_report_is_told_whatever_their_number() {
    for (packets, count) in (2..40_u16).flat_map(|packets| (0..packets).map(move |c| (packets, c)))
    {
        let mut history = stream_of(0, packets);
        let highest = block(u32::from(packets) - 1, count.into());
        let report = report_block(&mut history, highest).unwrap();
        assert_eq!(lost(report).len(), usize::from(count), "{count} of {packets}");
        assert!(report.packets.last().unwrap().arrival_time.is_some());
    }
}

#[test]
fn a_lost_or_late_receiver_report_leaves_nothing_untold() {
    let mut history = stream_of(0, 30);
    report_block(&mut history, block(9, 1)).unwrap();
    // The report after ten more packets is late. The next one includes its losses.
    let report = report_block(&mut history, block(29, 4)).unwrap();
    assert_eq!((report.packets.len(), lost(report).len()), (20, 3));
    assert_eq!(report_block(&mut history, block(19, 2)), None);
    send(&mut history, 30, 10);
    let report = report_block(&mut history, block(39, 5)).unwrap();
    assert_eq!((report.packets.len(), lost(report).len()), (10, 1));
}

#[test]
fn a_count_of_losses_that_falls_takes_back_the_newest() {
    let mut history = stream_of(0, 10);
    assert_eq!(lost(report_block(&mut history, block(9, 2)).unwrap()), [3, 7]);
    let report = report_block(&mut history, block(9, 1)).unwrap();
    assert_eq!((report.packets.len(), report.packets[0].sequence_number), (1, 7));
    assert!(report.packets[0].recovered);
    // Duplicates lower the count further, but no more losses can be taken back than were reported.
    let report = report_block(&mut history, block(9, -40)).unwrap();
    assert_eq!((report.packets.len(), report.packets[0].sequence_number), (1, 3));
}

#[test]
fn a_receiver_report_that_answers_no_sender_report_waits_for_one() {
    let mut history = stream_of(0, 10);
    assert_eq!(report_block(&mut history, ReceiverReport { rtt: None, ..block(4, 1) }), None);
    let report = report_block(&mut history, block(9, 2)).unwrap();
    assert_eq!((report.packets.len(), lost(report).len()), (10, 2));
}

#[test]
fn each_change_of_format_is_a_new_clock_told_once() {
    let mut history = stream_of(0, 60);
    let clock = |report: Option<&FeedbackReport>| report.map(|report| report.new_clock);
    assert_eq!(clock(history.on_twcc(header(0), [(0, Some(1))].into_iter())), Some(false));
    // A report without news cannot mark the new clock.
    assert_eq!(clock(history.on_ccfb(0, ccfb_range(0..1))), None);
    assert_eq!(clock(history.on_ccfb(1, ccfb_range(0..10))), Some(true));
    assert_eq!(clock(history.on_ccfb(2, ccfb_range(10..20))), Some(false));
    assert_eq!(clock(report_block(&mut history, block(29, 0))), Some(true));
    assert_eq!(clock(report_block(&mut history, block(39, 0))), Some(false));
    assert_eq!(clock(history.on_twcc(header(9), [(40, Some(1))].into_iter())), Some(true));
    // While nothing is sent, only receiver reports come, and they have no news.
    assert_eq!(clock(report_block(&mut history, block(39, 0))), None);
    assert_eq!(clock(history.on_twcc(header(10), [(41, Some(1))].into_iter())), Some(false));
}

#[test]
fn a_change_of_format_tells_no_fate_twice_and_invents_no_loss() {
    let mut history = stream_of(0, 40);
    // Five of the first ten are lost, and feedback reports it.
    let arrivals = (0..10).map(|number| (number, (number % 2 == 1).then_some(4)));
    assert_eq!(lost(history.on_twcc(header(7), arrivals).unwrap()).len(), 5);
    // The receiver's count includes these five. Of the next ten, a fifth is lost.
    let first = ReceiverReport { fraction_lost: 51, ..block(19, 7) };
    let report = report_block(&mut history, first).unwrap();
    assert_eq!((report.packets.len(), lost(report).len()), (10, 2));
    let report = report_block(&mut history, block(29, 8)).unwrap();
    assert_eq!((report.packets.len(), lost(report).len()), (10, 1));
    // Twcc again: feedback counted while the other format was used is not missing feedback.
    let arrivals = (0..40).map(|number| (number, Some(4)));
    let report = history.on_twcc(header(90), arrivals).unwrap();
    assert_eq!((report.missing_feedback, lost(report).len()), (0, 0));
    assert_eq!(report.loss_counts().recovered, 8);
}

// A receiver's feedback may arrive after the sender has forgotten the packets.
#[test]
fn feedback_of_any_format_on_forgotten_packets_is_ignored() {
    let mut history = stream_of(0, 5);
    let later = Outgoing { rtp: rtp(SSRC, 5), ..Outgoing::media(SIZE) };
    history.on_packet_sent(Timestamp::from_secs(60), later);
    assert_eq!(history.on_ccfb(0, ccfb_range(0..5)), None);
    assert_eq!(report_block(&mut history, block(4, 2)), None);
    let report = report_block(&mut history, block(5, 2)).unwrap();
    assert_eq!((report.packets.len(), report.packets[0].sequence_number), (1, 5));
}
