use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::Error;

/// Two sources; the first has an odd number of reports.
const BYTES: [u8; 40] = [
    0x8b, 205, 0, 9, // format 11, ten words
    0, 0, 0, 7, // sender
    0x0b, 0xad, 0xca, 0xfe, // first source
    0xff, 0xfe, 0, 3, // from 65534 on, three reports
    0x84, 0x00, 0x00, 0x00, // received, Not-ECT, 1 s ago; not received
    0xe0, 0x05, 0x00, 0x00, // received, CE, 5/1024 s ago; padding
    0, 0, 0, 9, // second source
    0x00, 0x10, 0, 2, // from 16 on, two reports
    0xbf, 0xfe, 0xdf, 0xff, // ECT(1), too long ago; ECT(0), unknown
    0x00, 0x02, 0x80, 0x00, // 2.5 s
];

fn received(ecn: Ecn, offset: ArrivalOffset) -> Option<Reception> {
    Some(Reception { ecn, offset })
}

type Reports = Vec<(u16, Option<Reception>)>;

fn read(view: View<'_>) -> Vec<(u32, Reports)> {
    view.blocks().map(|block| (block.ssrc(), block.reports().collect())).collect()
}

fn first_source() -> Reports {
    alloc::vec![
        (65_534, received(Ecn::NotEct, ArrivalOffset::from_units(1024))),
        (65_535, None),
        (0, received(Ecn::Ce, ArrivalOffset::from_units(5))),
    ]
}

/// A feedback packet with the given bytes as blocks.
fn with_blocks(blocks: &[u8]) -> Vec<u8> {
    let words = (blocks.len() / 4 + 2) as u8;
    let mut bytes = alloc::vec![0x8b, 205, 0, words, 0, 0, 0, 7];
    bytes.extend_from_slice(blocks);
    bytes.extend([0; 4]);
    bytes
}

/// A stream's packets in a slice.
type Slice<'a> = Stream<&'a [Option<(i64, Ecn)>]>;

fn build(now_us: i64, streams: &[Slice<'_>], max_size: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let streams = streams.iter().map(|stream| Stream {
        ssrc: stream.ssrc,
        begin_sequence_number: stream.begin_sequence_number,
        packets: stream.packets.iter().copied(),
    });
    Builder::new(7).build(now_us, streams, max_size, |packet| {
        assert!(packet.len() <= max_size);
        packets.push(packet.to_vec());
    });
    packets
}

// [RFC8888 §3.1]
#[test]
fn the_reports_of_two_sources_are_read() {
    let view = View::parse(&BYTES).unwrap();
    assert_eq!((view.sender_ssrc(), view.timestamp()), (7, 0x0002_8000));
    let second = alloc::vec![
        (16, received(Ecn::Ect1, ArrivalOffset::TOO_LONG)),
        (17, received(Ecn::Ect0, ArrivalOffset::UNKNOWN)),
    ];
    assert_eq!(read(view), [(0x0bad_cafe, first_source()), (9, second)]);
    let line = "CCFB sender 0x00000007, time 0x00028000; \
                ssrc 0x0badcafe, begin seq 65534, received 2 of 3; \
                ssrc 0x00000009, begin seq 16, received 2 of 2";
    assert_eq!(view.to_string(), line);
}

// [RFC8888 §3.1]
#[test]
fn arrivals_are_written_as_offsets_from_the_timestamp() {
    let first = [Some((1_500_000, Ecn::NotEct)), None, Some((2_495_117, Ecn::Ce))];
    // The first packet of the second source arrived 9 s before the report, the second after it.
    let second = [Some((-6_500_000, Ecn::Ect1)), Some((2_500_001, Ecn::Ect0))];
    let streams = [
        Stream { ssrc: 0x0bad_cafe, begin_sequence_number: 65_534, packets: &first[..] },
        Stream { ssrc: 9, begin_sequence_number: 16, packets: &second[..] },
    ];
    assert_eq!(build(2_500_000, &streams, 1_200), [BYTES.to_vec()]);
}

#[test]
fn every_truncation_is_rejected() {
    for len in 0..BYTES.len() {
        assert_eq!(View::parse(&BYTES[..len]), Err(Error::Truncated), "{len}");
    }
    // A packet cut short is rejected too if the length in its header matches the cut.
    for words in 1..BYTES.len() / 4 {
        let mut bytes = BYTES[..words * 4].to_vec();
        bytes[3] = words as u8 - 1;
        // The cut is accepted only where a block could end, so that the next word is the timestamp.
        assert_eq!(View::parse(&bytes).is_ok(), [3, 7].contains(&words), "{words} words");
    }
}

// [RFC8888 §3.1]
#[test]
fn offsets_beyond_8_s_and_after_the_timestamp_have_their_own_values() {
    let units = |offset: i64| ArrivalOffset::from_units(offset);
    assert_eq!(units(8_189).units(), Some(8_189));
    assert_eq!((units(8_190), units(i64::MAX)), (ArrivalOffset::TOO_LONG, ArrivalOffset::TOO_LONG));
    assert_eq!(units(-1), ArrivalOffset::UNKNOWN);
    assert_eq!((ArrivalOffset::TOO_LONG.units(), ArrivalOffset::UNKNOWN.units()), (None, None));
}

// [RFC8888 §3.1], erratum 8166
#[test]
fn the_number_of_reports_is_their_count() {
    let two = with_blocks(&[0, 0, 0, 9, 0, 16, 0, 2, 0x80, 1, 0x80, 2]);
    assert_eq!(read(View::parse(&two).unwrap())[0].1.len(), 2);
    let none = with_blocks(&[0, 0, 0, 9, 0, 16, 0, 0]);
    assert_eq!(read(View::parse(&none).unwrap()), [(9, Vec::new())]);
}

#[test]
fn a_number_of_the_last_report_is_known_where_it_cannot_be_the_count() {
    // An even number of reports, but the block has room for one more.
    let three = with_blocks(&[0, 0, 0, 9, 0, 16, 0, 2, 0x80, 1, 0x80, 2, 0x80, 3, 0, 0]);
    let numbers = |bytes: &[u8]| -> Vec<u16> {
        let view = View::parse(bytes).unwrap();
        read(view)[0].1.iter().map(|report| report.0).collect()
    };
    assert_eq!(numbers(&three), [16, 17, 18]);
    // An odd number of reports, but the padding is not zero.
    let two = with_blocks(&[0, 0, 0, 9, 0, 16, 0, 1, 0x80, 1, 0x80, 2]);
    assert_eq!(numbers(&two), [16, 17]);
    // An odd number of reports and zero padding: both meanings fit, and the count wins.
    let one = with_blocks(&[0, 0, 0, 9, 0, 16, 0, 1, 0x80, 1, 0, 0]);
    assert_eq!(numbers(&one), [16]);
}

#[test]
fn a_packet_holds_one_meaning_of_the_number_throughout() {
    let mixed = with_blocks(&[
        0, 0, 0, 9, 0, 16, 0, 1, 0x80, 1, 0x80, 2, // fits only as the last report
        0, 0, 0, 8, 0, 16, 0, 2, 0x80, 1, 0x80, 2, // fits only as the count
    ]);
    assert_eq!(View::parse(&mixed), Err(Error::Padding));
}

#[test]
fn other_bits_of_a_packet_that_was_not_received_say_nothing() {
    let bytes = with_blocks(&[0, 0, 0, 9, 0, 16, 0, 2, 0x7f, 0xff, 0x80, 0]);
    assert_eq!(read(View::parse(&bytes).unwrap())[0].1[0], (16, None));
}

// [RFC8888 §3.1]
#[test]
fn more_reports_than_16384_are_rejected() {
    let block = |count: u16| {
        let mut blocks = alloc::vec![0, 0, 0, 9, 0, 16];
        blocks.extend(count.to_be_bytes());
        blocks.resize(8 + 2 * usize::from(count), 0);
        let mut bytes = with_blocks(&blocks);
        let words = (bytes.len() / 4 - 1) as u16;
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
        bytes
    };
    assert!(View::parse(&block(16_384)).is_ok());
    assert_eq!(View::parse(&block(16_386)), Err(Error::TooManyReports));
}

#[test]
fn feedback_too_large_for_a_packet_is_split_and_loses_nothing() {
    let packets: Vec<_> = (0..700).map(|n: i64| (n % 7 != 0).then_some((n, Ecn::Ect1))).collect();
    let streams = [
        Stream { ssrc: 1, begin_sequence_number: 65_400, packets: &packets[..] },
        Stream { ssrc: 2, begin_sequence_number: 5, packets: &[] },
        Stream { ssrc: 3, begin_sequence_number: 5, packets: &packets[..9] },
    ];
    for max_size in [Builder::MIN_PACKET_SIZE, 27, 28, 100, 1_200] {
        let mut read_back: Vec<(u32, u16, bool)> = Vec::new();
        for packet in build(1_000, &streams, max_size) {
            let view = View::parse(&packet).unwrap();
            for (ssrc, reports) in read(view) {
                read_back.extend(reports.iter().map(|(n, r)| (ssrc, *n, r.is_some())));
            }
        }
        let expected = streams.iter().flat_map(|stream| {
            stream.packets.iter().zip(0_u16..).map(|(packet, index)| {
                let number = stream.begin_sequence_number.wrapping_add(index);
                (stream.ssrc, number, packet.is_some())
            })
        });
        assert!(expected.eq(read_back), "{max_size}");
    }
}

#[test]
fn nothing_to_report_is_no_packet() {
    assert_eq!(build(0, &[], 1_200), [[0; 0]; 0]);
}

#[test]
fn a_packet_of_another_type_is_rejected() {
    let mut bytes = BYTES;
    bytes[0] = 0x8f;
    assert_eq!(View::parse(&bytes), Err(Error::PacketType));
}
