use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::Error;

const MAX_SIZE: usize = 1200;
/// The reference time of the literal packets: 0x010203 units.
const REFERENCE_US: i64 = 0x01_0203 * ReferenceTime::UNIT_US;

/// All packets that `builder` writes for these arrivals.
fn build(builder: &mut Builder, arrivals: &[(i64, i64)], max_size: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    builder.build(arrivals, max_size, |packet| packets.push(packet.to_vec()));
    packets
}

/// The only packet that a new builder writes for arrivals at ticks after `REFERENCE_US`.
fn build_one(arrivals: &[(i64, i64)]) -> Vec<u8> {
    let arrivals: Vec<_> =
        arrivals.iter().map(|&(number, tick)| (number, REFERENCE_US + tick * TICK_US)).collect();
    let mut packets = build(&mut Builder::new(0x0a0b_0c0d, 0x0102_0304), &arrivals, MAX_SIZE);
    assert_eq!(packets.len(), 1);
    packets.remove(0)
}

/// A packet with the fields that all literals below share: SSRCs, reference time, feedback count 0.
fn packet(flags: u8, words: u8, base: u16, status_count: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![flags, 205, 0, words - 1];
    bytes.extend([0x0a, 0x0b, 0x0c, 0x0d, 0x01, 0x02, 0x03, 0x04]);
    bytes.extend(base.to_be_bytes());
    bytes.extend(status_count.to_be_bytes());
    bytes.extend([0x01, 0x02, 0x03, 0]);
    bytes.extend(body);
    assert_eq!(bytes.len(), usize::from(words) * 4);
    bytes
}

/// The received packets with their arrival in ticks.
fn received(bytes: &[u8]) -> Vec<(u16, i32)> {
    let view = View::parse(bytes).unwrap();
    view.arrivals().filter_map(|(number, arrival)| Some((number, arrival?))).collect()
}

/// Checks that writing and reading one literal agree. Every number between two arrivals is lost.
fn assert_both_ways(arrivals: &[(i64, i64)], bytes: &[u8]) {
    assert_eq!(build_one(arrivals), bytes);
    let expected: Vec<_> =
        arrivals.iter().map(|&(number, tick)| (number as u16, tick as i32)).collect();
    assert_eq!(received(bytes), expected);
    let view = View::parse(bytes).unwrap();
    let (first, last) = (arrivals[0].0, arrivals.last().unwrap().0);
    assert!(view.arrivals().map(|(number, _)| number).eq((first..=last).map(|n| n as u16)));
}

// [TWCC]: 9 small deltas of 4 ticks. A run: 0, symbol 01, length 9.
#[test]
fn a_run_of_equal_symbols_is_a_run_length_chunk() {
    let arrivals: Vec<_> = (0..9).map(|n| (100 + n, 4 + 4 * n)).collect();
    let bytes = packet(0xaf, 8, 100, 9, &[0x20, 9, 4, 4, 4, 4, 4, 4, 4, 4, 4, /* padding */ 1]);
    assert_both_ways(&arrivals, &bytes);
    assert_eq!(
        View::parse(&bytes).unwrap().to_string(),
        "TWCC sender 0x0a0b0c0d, media 0x01020304, count 0, base seq 100, received 9 of 9, \
         reference 4227.264 s"
    );
}

// [TWCC]: 14 packets, of which the second and the last but one are lost: 1, 0, 10111111111101.
#[test]
fn fourteen_mixed_symbols_are_a_one_bit_vector() {
    let arrivals: Vec<_> = (0..14).filter(|n| ![1, 12].contains(n)).map(|n| (100 + n, n)).collect();
    let body = [0xaf, 0xfd, 0, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 2];
    assert_both_ways(&arrivals, &packet(0xaf, 9, 100, 14, &body));
}

// [TWCC]: small, lost, large (300), large (-1), small, lost, small: 1, 1, 01 00 10 10 01 00 01.
#[test]
fn large_and_negative_deltas_make_a_two_bit_vector() {
    let arrivals = [(100, 7), (102, 307), (103, 306), (104, 306), (106, 561)];
    let body = [0xd2, 0x91, 7, 0x01, 0x2c, 0xff, 0xff, 0, 255, 0, 0, 3];
    assert_both_ways(&arrivals, &packet(0xaf, 8, 100, 7, &body));
}

// [TWCC]: a run has 13 bits, 8191.
#[test]
fn a_loss_of_20000_takes_several_runs() {
    let body = [
        0xa0, 0x00, // small delta, then 13 lost: 1, 0, 1 0000000000000
        0x1f, 0xff, 0x1f, 0xff, // 8191 lost, twice
        0x0e, 0x15, // 3605 lost: 13 + 2 * 8191 + 3605 = 20000
        0x20, 0x01, // a run of one small delta
        0, 9,
    ];
    let bytes = packet(0x8f, 8, 100, 20002, &body);
    assert_both_ways(&[(100, 0), (20101, 9)], &bytes);
}

// [TWCC]: ten one-bit symbols are open when a large delta arrives, which needs two-bit symbols.
#[test]
fn a_large_delta_after_ten_mixed_symbols_closes_seven_and_carries_three() {
    let mut arrivals: Vec<_> = (0..10).filter(|&n| n != 1).map(|n| (100 + n, 0)).collect();
    arrivals.push((110, 256));
    let body = [
        0xd1, 0x55, // 1, 1, 01 00 01 01 01 01 01
        0xd5, 0x80, // 1, 1, 01 01 01 10, then nothing
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x00, 1,
    ];
    assert_both_ways(&arrivals, &packet(0xaf, 9, 100, 11, &body));
}

// [TWCC]: eight symbols, 1, 0, 10111111, and six unused zeros.
#[test]
fn a_short_one_bit_vector_may_end_a_packet() {
    let arrivals: Vec<_> = (0..8).filter(|&n| n != 1).map(|n| (65534 + n, 0)).collect();
    let body = [0xaf, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_both_ways(&arrivals, &packet(0xaf, 8, 65534, 8, &body));
}

#[test]
fn every_truncation_is_rejected() {
    // 20 bytes of header, two one-bit vectors and 16 deltas need no padding.
    let arrivals: Vec<_> = (0..24).filter(|n| n % 3 != 1).map(|n| (n, n * 80)).collect();
    let bytes = build_one(&arrivals);
    assert_eq!((bytes[0], bytes.len()), (0x8f, 40));
    for len in 0..bytes.len() {
        assert_eq!(View::parse(&bytes[..len]), Err(Error::Truncated), "{len}");
    }
    // Shorter packets with a matching length in the header.
    for words in 1..bytes.len() / 4 {
        let mut short = bytes[..words * 4].to_vec();
        short[3] = words as u8 - 1;
        assert_eq!(View::parse(&short), Err(Error::Truncated), "{words}");
    }
}

#[test]
fn symbols_beyond_the_status_count_say_nothing() {
    // Two statuses, then an unused rest: ones in a one-bit vector, reserved symbols in a two-bit
    // vector, or a run.
    for chunk in [[0xbf, 0xff], [0xd7, 0xff], [0x3f, 0xff]] {
        let bytes = packet(0x8f, 6, 65535, 2, &[chunk[0], chunk[1], 5, 6]);
        assert_eq!(received(&bytes), [(65535, 5), (0, 11)]);
    }
}

#[test]
fn the_reserved_symbol_is_rejected() {
    let run = packet(0x8f, 6, 0, 2, &[0x60, 2, 0, 0]);
    assert_eq!(View::parse(&run), Err(Error::ReservedSymbol));
    let vector = packet(0x8f, 6, 0, 2, &[0xdc, 0, 0, 0]);
    assert_eq!(View::parse(&vector), Err(Error::ReservedSymbol));
}

#[test]
fn a_packet_without_status_is_rejected() {
    assert_eq!(View::parse(&packet(0x8f, 5, 0, 0, &[])), Err(Error::NoStatus));
}

#[test]
fn an_empty_run_covers_nothing() {
    let bytes = packet(0x8f, 7, 0, 1, &[0x20, 0, 0, 0, 0x20, 1, 8, 0]);
    assert_eq!(received(&bytes), [(0, 8)]);
}

#[test]
fn another_format_is_not_transport_wide_feedback() {
    let mut bytes = build_one(&[(0, 0)]);
    bytes[0] = bytes[0] & 0xe0 | 11;
    assert_eq!(View::parse(&bytes), Err(Error::PacketType));
}

#[test]
fn padding_without_the_flag_is_at_most_three_bytes() {
    assert_eq!(received(&packet(0x8f, 6, 0, 1, &[0x20, 1, 8, 0])), [(0, 8)]);
    let surplus = packet(0x8f, 7, 0, 2, &[0x20, 2, 8, 8, 0, 0, 0, 0]);
    assert_eq!(View::parse(&surplus), Err(Error::Surplus));
}

#[test]
fn more_padding_than_fits_is_truncation_of_the_deltas() {
    let bytes = packet(0xaf, 6, 0, 1, &[0x20, 1, 8, 2]);
    assert_eq!(View::parse(&bytes), Err(Error::Truncated));
}

// Truncated to ticks of 250 us, deltas of 200 us would all read as zero.
#[test]
fn rounding_does_not_accumulate() {
    let arrivals: Vec<_> = (0..1000).map(|n| (n, n * 200)).collect();
    let packets = build(&mut Builder::new(1, 2), &arrivals, 65536);
    let read = received(&packets[0]);
    for (&(_, arrival_us), (_, ticks)) in arrivals.iter().zip(read) {
        assert!((arrival_us - i64::from(ticks) * TICK_US).abs() <= TICK_US / 2);
    }
}

#[test]
fn a_time_between_ticks_goes_to_the_nearer() {
    for (arrival_us, ticks) in [(124, 0), (125, 1), (374, 1), (375, 2)] {
        let packets = build(&mut Builder::new(1, 2), &[(0, arrival_us)], MAX_SIZE);
        assert_eq!(received(&packets[0]), [(0, ticks)]);
    }
}

// A receiver that masks the reference time to 23 bits sees a jump every 6.2 days.
#[test]
fn reference_time_keeps_all_24_bits_and_wraps() {
    let mut builder = Builder::new(1, 2);
    for (units, on_wire) in
        [(0x7f_ffff, 0x7f_ffff), (0x80_0000, 0x80_0000), (0x100_0001, 1), (-1, 0xff_ffff)]
    {
        let arrivals = [(0, units * ReferenceTime::UNIT_US)];
        let packets = build(&mut builder, &arrivals, MAX_SIZE);
        assert_eq!(View::parse(&packets[0]).unwrap().reference_time().units(), on_wire);
    }
}

#[test]
fn reference_times_differ_by_the_nearer_way_round() {
    let time = ReferenceTime::from_units;
    assert_eq!(time(5).units_since(time(3)), 2);
    assert_eq!(time(3).units_since(time(5)), -2);
    assert_eq!(time(0x100_0001).units_since(time(0xff_ffff)), 2);
    assert_eq!(time(0xff_ffff).units_since(time(1)), -2);
    assert_eq!(time(0x80_0000).units_since(time(0)), -0x80_0000);
}

#[test]
fn a_time_before_the_origin_rounds_as_one_after_it() {
    let packets = build(&mut Builder::new(1, 2), &[(0, -1000), (1, 1000)], MAX_SIZE);
    // The reference time is one unit, 256 ticks, before the origin.
    assert_eq!(received(&packets[0]), [(0, 252), (1, 260)]);
}

// A small delta of 0..=255 takes one unsigned byte; a signed reading would stop at 127.
#[test]
fn a_small_delta_reaches_255_ticks() {
    assert_both_ways(&[(0, 0), (1, 255)], &packet(0x8f, 6, 0, 2, &[0x20, 2, 0, 255]));
}

#[test]
fn a_delta_beyond_16_bits_starts_a_new_packet() {
    for (delta_ticks, packet_count) in [(32767, 1), (32768, 2), (-32768, 1), (-32769, 2)] {
        let arrivals = [(0, 0), (1, delta_ticks * TICK_US)];
        let packets = build(&mut Builder::new(1, 2), &arrivals, MAX_SIZE);
        assert_eq!(packets.len(), packet_count, "{delta_ticks}");
        let last = View::parse(packets.last().unwrap()).unwrap();
        let units = ReferenceTime::from_units(0).units_since(last.reference_time());
        let (_, ticks) = received(packets.last().unwrap()).pop().unwrap();
        let reference_ticks = -i64::from(units) * TICKS_PER_REFERENCE_UNIT;
        assert_eq!(reference_ticks + i64::from(ticks), delta_ticks);
    }
}

#[test]
fn the_feedback_count_wraps_after_256_packets() {
    let mut builder = Builder::new(1, 2);
    for n in 0..=256 {
        let packets = build(&mut builder, &[(n, 0)], MAX_SIZE);
        let view = View::parse(&packets[0]).unwrap();
        assert_eq!(view.feedback_packet_count(), (n % 256) as u8);
    }
}

#[test]
fn feedback_larger_than_the_limit_is_split_without_a_gap() {
    let arrivals: Vec<_> = (0..500).filter(|n| n % 5 != 0).map(|n| (n, n * 9000)).collect();
    let mut expected = 1;
    for bytes in build(&mut Builder::new(1, 2), &arrivals, 100) {
        assert!(bytes.len() <= 100);
        for (number, arrival) in View::parse(&bytes).unwrap().arrivals() {
            assert_eq!((number, arrival.is_some()), (expected, expected % 5 != 0));
            expected += 1;
        }
    }
    assert_eq!(expected, 500);
}

#[test]
fn one_arrival_after_the_longest_loss_fits_the_least_packet() {
    let mut builder = Builder::new(1, 2);
    build(&mut builder, &[(0, 0)], Builder::MIN_PACKET_SIZE);
    let packets = build(&mut builder, &[(1 + 0x7ffe, 0)], Builder::MIN_PACKET_SIZE);
    assert_eq!(packets[0].len(), Builder::MIN_PACKET_SIZE);
    assert_eq!(View::parse(&packets[0]).unwrap().base_sequence_number(), 1);
}

#[test]
fn a_loss_that_confuses_sequence_numbers_starts_a_new_packet() {
    let bases = |second| -> Vec<_> {
        build(&mut Builder::new(1, 2), &[(0, 0), (second, 0)], MAX_SIZE)
            .iter()
            .map(|bytes| View::parse(bytes).unwrap().base_sequence_number())
            .collect()
    };
    assert_eq!(bases(1 + 0x7ffe), [0]);
    assert_eq!(bases(1 + 0x7fff), [0, 0x8000]);
}

#[test]
fn a_packet_reports_at_most_65535_packets() {
    let arrivals = [(0, 0), (30_000, 0), (60_000, 0), (65_535, 0)];
    let packets = build(&mut Builder::new(1, 2), &arrivals, MAX_SIZE);
    let counts: Vec<_> =
        packets.iter().map(|bytes| View::parse(bytes).unwrap().packet_status_count()).collect();
    assert_eq!(counts, [60_001, 5_535]);
}

#[test]
fn a_loss_between_two_reports_is_reported() {
    let mut builder = Builder::new(1, 2);
    build(&mut builder, &[(10, 0)], MAX_SIZE);
    let packets = build(&mut builder, &[(13, 0)], MAX_SIZE);
    let statuses: Vec<_> = View::parse(&packets[0]).unwrap().arrivals().collect();
    assert_eq!(statuses, [(11, None), (12, None), (13, Some(0))]);
}

// If feedback always started after the last number reported, a late packet would stay lost forever.
#[test]
fn a_late_packet_is_reported_from_its_own_number_on() {
    let mut builder = Builder::new(1, 2);
    build(&mut builder, &[(10, 0), (13, 0)], MAX_SIZE);
    let packets = build(&mut builder, &[(12, 250), (13, 0)], MAX_SIZE);
    let statuses: Vec<_> = View::parse(&packets[0]).unwrap().arrivals().collect();
    assert_eq!(statuses, [(12, Some(1)), (13, Some(0))]);
}

#[test]
fn a_late_packet_reported_alone_does_not_reopen_what_follows_it() {
    let mut builder = Builder::new(1, 2);
    build(&mut builder, &[(10, 0), (13, 0)], MAX_SIZE);
    build(&mut builder, &[(12, 0)], MAX_SIZE);
    let packets = build(&mut builder, &[(14, 0)], MAX_SIZE);
    assert_eq!(View::parse(&packets[0]).unwrap().base_sequence_number(), 14);
}

#[test]
fn no_arrival_makes_no_packet() {
    assert!(build(&mut Builder::new(1, 2), &[], MAX_SIZE).is_empty());
}
