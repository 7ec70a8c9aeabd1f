use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;

const ID_3: ExtensionId = ExtensionId::new(3).unwrap();
const ID_5: ExtensionId = ExtensionId::new(5).unwrap();
const ID_15: ExtensionId = ExtensionId::new(15).unwrap();

const HEADER: RtpHeader = RtpHeader {
    marker: true,
    payload_type: PayloadType::new(96).unwrap(),
    sequence_number: 0xfffe,
    timestamp: 0x0001_5f90,
    ssrc: 0x0bad_cafe,
    transport_sequence_number: Some((ID_5, 0x1234)),
    abs_send_time: None,
};
const BYTES: [u8; 20] = [
    0x90, 0xe0, 0xff, 0xfe, // V=2, X; marker and type 96; sequence number
    0x00, 0x01, 0x5f, 0x90, // timestamp
    0x0b, 0xad, 0xca, 0xfe, // SSRC
    0xbe, 0xde, 0x00, 0x01, // one-byte form, one word
    0x51, 0x12, 0x34, 0x00, // id 5, two bytes; padding
];

/// Only the transport-wide sequence number, under this id.
fn number(id: ExtensionId) -> ExtensionIds {
    ExtensionIds { transport_sequence_number: Some(id), abs_send_time: None }
}

fn emit(header: &RtpHeader) -> Vec<u8> {
    let mut bytes = alloc::vec![0xaa; RtpHeader::MAX_SIZE];
    let size = header.emit(&mut bytes);
    assert_eq!(size, header.size());
    bytes.truncate(size);
    bytes
}

// [RFC3550 §5.1], [RFC8285 §4.2]
#[test]
fn a_header_with_a_one_byte_extension_is_written_and_read() {
    assert_eq!(emit(&HEADER), BYTES);
    let view = View::parse(&BYTES).unwrap();
    assert_eq!(view.header(number(ID_5)), HEADER);
    assert_eq!(view.payload(), []);
    assert_eq!(
        HEADER.to_string(),
        "RTP ssrc 0x0badcafe, type 96, seq 65534, time 90000, marker, transport seq 4660"
    );
    assert_eq!(
        view.to_string(),
        "RTP ssrc 0x0badcafe, type 96, seq 65534, time 90000, marker, payload 0 B"
    );
}

// [RFC8285 §4.3]
#[test]
fn an_id_above_14_takes_the_two_byte_form() {
    let header = RtpHeader { transport_sequence_number: Some((ID_15, 0x1234)), ..HEADER };
    let bytes = emit(&header);
    assert_eq!(bytes[12..], [0x10, 0x00, 0x00, 0x01, 15, 2, 0x12, 0x34]);
    assert_eq!(View::parse(&bytes).unwrap().header(number(ID_15)), header);
}

// [REMB §3]
#[test]
fn a_header_carries_when_it_was_sent_alone_or_behind_the_sequence_number() {
    let time = AbsSendTime::from_nanos(1_500_000_000);
    let header = RtpHeader { abs_send_time: Some((ID_3, time)), ..HEADER };
    let bytes = emit(&header);
    assert_eq!(bytes[12..], [0xbe, 0xde, 0, 2, 0x51, 0x12, 0x34, 0x32, 0x06, 0, 0, 0]);
    let both = ExtensionIds { transport_sequence_number: Some(ID_5), abs_send_time: Some(ID_3) };
    assert_eq!(View::parse(&bytes).unwrap().header(both), header);
    assert!(header.to_string().ends_with(", transport seq 4660, sent 1.500 s"));

    let alone = RtpHeader { transport_sequence_number: None, ..header };
    let bytes = emit(&alone);
    assert_eq!(bytes[12..], [0xbe, 0xde, 0, 1, 0x32, 0x06, 0, 0]);
    assert_eq!(View::parse(&bytes).unwrap().header(both), alone);
}

// [RFC8285 §4.2]
#[test]
fn other_extensions_are_written_behind_the_headers_and_read_as_elements() {
    let others = [
        Element::new(ID_3, b"audio").unwrap(),             // mid
        Element::new(ID_15, &[0x80, 0, 1, 0, 7]).unwrap(), // a dependency descriptor
    ];
    let mut bytes = [0xaa; 64];
    let size = HEADER.emit_with(&others, &mut bytes);
    assert_eq!(size, HEADER.size_with(&others));
    let view = View::parse(&bytes[..size]).unwrap();
    assert_eq!(view.header(number(ID_5)), HEADER);
    let read: Vec<_> = view.elements().skip(1).collect();
    assert_eq!(read, others);

    let plain = RtpHeader { transport_sequence_number: None, ..HEADER };
    let size = plain.emit_with(&others[..1], &mut bytes);
    assert!(View::parse(&bytes[..size]).unwrap().elements().eq([others[0]]));
}

#[test]
#[should_panic(expected = "15 extension elements")]
fn a_header_takes_at_most_14_other_elements() {
    let element = Element::new(ID_3, &[1]).unwrap();
    HEADER.size_with(&[element; RtpHeader::MAX_ELEMENTS + 1]);
}

#[test]
fn the_largest_header_has_both_extensions_in_the_two_byte_form() {
    let time = AbsSendTime::from_ticks(0);
    let header = RtpHeader { abs_send_time: Some((ID_15, time)), ..HEADER };
    assert_eq!(header.size(), RtpHeader::MAX_SIZE);
}

#[test]
fn a_header_without_extension_is_twelve_bytes() {
    let header = RtpHeader { marker: false, transport_sequence_number: None, ..HEADER };
    let bytes = emit(&header);
    assert_eq!(bytes[..2], [0x80, 0x60]);
    assert_eq!(bytes.len(), 12);
    assert_eq!(View::parse(&bytes).unwrap().header(number(ID_5)), header);
}

#[test]
fn every_truncation_of_the_header_is_rejected() {
    for len in 0..BYTES.len() {
        assert_eq!(View::parse(&BYTES[..len]), Err(Error::Truncated), "{len}");
    }
}

#[test]
fn csrcs_lie_between_ssrc_and_extension() {
    let mut bytes = BYTES.to_vec();
    bytes[0] |= 2;
    bytes.splice(12..12, [0, 0, 0, 1, 0, 0, 0, 2]);
    let view = View::parse(&bytes).unwrap();
    assert!(view.csrcs().eq([1, 2]));
    assert_eq!(view.header(number(ID_5)), HEADER);
}

// [RFC3550 §5.1]
#[test]
fn a_contributing_source_is_written_before_the_extension() {
    let mut bytes = [0xaa; 24];
    assert_eq!(HEADER.emit_with_csrc(0x0102_0304, &mut bytes), 24);
    let mut expected = BYTES.to_vec();
    expected[0] |= 1;
    expected.splice(12..12, [1, 2, 3, 4]);
    assert_eq!(bytes[..], expected);
}

#[test]
fn padding_is_cut_from_the_payload() {
    let mut bytes = BYTES.to_vec();
    bytes[0] |= PADDING_FLAG;
    assert_eq!(View::parse(&bytes), Err(Error::Padding));
    bytes.extend([1, 2, 3, 0, 2]);
    assert_eq!(View::parse(&bytes).unwrap().payload(), [1, 2, 3]);
    for illegal in [0, 6] {
        *bytes.last_mut().unwrap() = illegal;
        assert_eq!(View::parse(&bytes), Err(Error::Padding));
    }
}

// [RFC3711 §3.1]
#[test]
fn a_header_is_read_where_the_padding_is_encrypted_or_cut_off() {
    let mut bytes = BYTES.to_vec();
    bytes[0] |= PADDING_FLAG;
    let cut = View::parse_header(&bytes).unwrap();
    assert_eq!((cut.header(number(ID_5)), cut.payload()), (HEADER, &[][..]));
    bytes.extend([1, 2, 3, 0]);
    let encrypted = View::parse_header(&bytes).unwrap();
    assert_eq!((encrypted.header_size(), encrypted.payload()), (BYTES.len(), &[1, 2, 3, 0][..]));
}

// [RFC3550 §5.1]
#[test]
fn a_packet_of_padding_alone_has_no_payload() {
    let header = RtpHeader { marker: false, transport_sequence_number: None, ..HEADER };
    let mut bytes = [0xaa; 12 + 255];
    assert_eq!(header.emit_padding(NonZeroU8::new(3).unwrap(), &mut bytes), 15);
    assert_eq!((bytes[0], &bytes[12..15]), (0xa0, &[0, 0, 3][..]));
    assert_eq!(header.emit_padding(NonZeroU8::MAX, &mut bytes), bytes.len());
    let view = View::parse(&bytes).unwrap();
    assert_eq!((view.header(number(ID_5)), view.payload()), (header, &[][..]));
}

#[test]
fn a_packet_of_another_version_is_rejected() {
    let mut bytes = BYTES;
    bytes[0] = 0x50;
    assert_eq!(View::parse(&bytes), Err(Error::Version));
}

#[test]
fn a_payload_type_has_seven_bits() {
    assert_eq!(PayloadType::new(127).map(PayloadType::get), Some(127));
    assert_eq!(PayloadType::new(128), None);
}
