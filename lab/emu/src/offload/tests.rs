use super::*;

/// A virtio header: flags, kind, bytes of a segment, start and offset of the checksum.
fn vnet(flags: u8, kind: u8, segment: u16, start: u16, offset: u16) -> Vec<u8> {
    let mut header = vec![flags, kind, 0, 0];
    for field in [segment, start, offset] {
        header.extend(field.to_ne_bytes());
    }
    header
}

/// An IPv4 packet from 10.45.0.1 to 10.45.0.2, not to be fragmented, ECT(1), with its IP checksum.
fn ipv4(protocol: u8, id: u16, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 1, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([10, 45, 0, 1, 10, 45, 0, 2]);
    packet.extend_from_slice(content);
    put(&mut packet, IDENTIFICATION, id);
    put_ip_length(&mut packet, IPV4_HEADER);
    packet
}

/// A whole UDP packet.
fn udp(id: u16, payload: &[u8]) -> Vec<u8> {
    let mut content = vec![0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0];
    content.extend_from_slice(payload);
    let length = content.len() as u16;
    put(&mut content, UDP_LENGTH, length);
    let mut packet = ipv4(UDP, id, &content);
    let checksum = not_zero(!slow_sum(&packet));
    put(&mut packet, 26..28, checksum);
    packet
}

fn tcp_header(sequence: u32, flags: u8) -> Vec<u8> {
    let mut header = vec![0x12, 0x34, 0x56, 0x78];
    header.extend(sequence.to_be_bytes());
    // An acknowledgement, a header of 32 bytes with options.
    header.extend([0, 0, 0, 9, 0x80, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
    header.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    header
}

/// The sum of the transport's words and its pseudo-header, word by word.
fn slow_sum(packet: &[u8]) -> u16 {
    let content = &packet[IPV4_HEADER..];
    let mut bytes = packet[ADDRESSES].to_vec();
    bytes.extend([0, packet[PROTOCOL]]);
    bytes.extend((content.len() as u16).to_be_bytes());
    bytes.extend_from_slice(content);
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| (*b).into()));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

fn packets_of(frame: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut packets = Vec::new();
    let mut frame = frame.to_vec();
    split(&mut frame, &mut Vec::new(), |packet| packets.push(packet.to_vec()))?;
    Ok(packets)
}

/// A frame with a UDP super-packet whose checksum field holds the sum of the pseudo-header.
fn udp_frame(id: u16, payload: &[u8], segment: u16) -> Vec<u8> {
    let mut frame = vnet(vnet::NEEDS_CHECKSUM, vnet::UDP, segment, 20, 6);
    frame.extend(udp(id, payload));
    frame
}

#[test]
fn a_udp_super_packet_is_split_into_the_packets_that_were_sent() {
    let payload: Vec<u8> = (0..250).collect();
    let packets = packets_of(&udp_frame(0xFFFE, &payload, 100)).unwrap();
    let sent = [(0xFFFE, 0..100), (0xFFFF, 100..200), (0, 200..250)];
    assert_eq!(packets, sent.map(|(id, range)| udp(id, &payload[range])));
}

#[test]
fn a_tcp_super_packet_is_split_with_sequence_numbers_and_flags() {
    const ACK: u8 = 0x10;
    let payload: Vec<u8> = (0..=255).chain(0..45).collect();
    let content = [tcp_header(0xFFFF_FFF0, TCP_CWR | ACK | TCP_FIN_PUSH), payload.clone()].concat();
    let mut frame = vnet(vnet::NEEDS_CHECKSUM, vnet::TCP_IPV4, 100, 20, 16);
    frame.extend(ipv4(TCP, 7, &content));
    let packets = packets_of(&frame).unwrap();
    let expected = [
        (7, 0xFFFF_FFF0, TCP_CWR | ACK, 0..100),
        (8, 0x54, ACK, 100..200),
        (9, 0xB8, ACK, 200..300),
        (10, 0x11C, ACK | TCP_FIN_PUSH, 300..301),
    ];
    assert_eq!(packets.len(), expected.len());
    for (packet, (id, sequence, flags, range)) in packets.iter().zip(expected) {
        assert_eq!((slow_sum(packet), fold(sum(&packet[..20]))), (0xFFFF, 0xFFFF));
        let mut packet = packet.clone();
        packet[36..38].fill(0);
        let content = [tcp_header(sequence, flags), payload[range].to_vec()].concat();
        assert_eq!(packet, ipv4(TCP, id, &content));
    }
}

#[test]
fn a_packet_that_lacks_its_checksum_gets_it_and_others_stay_as_they_are() {
    let whole = udp(1, b"odd");
    let mut partial = whole.clone();
    let pseudo = fold(pseudo_header(&whole, IPV4_HEADER));
    put(&mut partial, 26..28, pseudo);
    let frame = [vnet(vnet::NEEDS_CHECKSUM, 0, 0, 20, 6), partial.clone()].concat();
    assert_eq!(packets_of(&frame), Ok(vec![whole]));
    let frame = [vnet(0, 0, 0, 0, 0), partial.clone()].concat();
    assert_eq!(packets_of(&frame), Ok(vec![partial]));
}

#[test]
fn a_frame_whose_headers_contradict_each_other_is_refused() {
    let good = udp_frame(1, &[7; 250], 100);
    assert!(packets_of(&good).is_ok());
    for length in 0..VNET_HEADER + HEADERS {
        assert_eq!(packets_of(&good[..length]), Err(Malformed), "{length}");
    }
    let wrong = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        packets_of(&frame)
    };
    for (at, byte) in [
        (1, vnet::TCP_IPV4),
        (1, 3),
        (1, 0x85),
        (VNET_HEADER, 0x65),
        (VNET_HEADER, 0x44),
        (VNET_HEADER + 6, 0x20),
        (VNET_HEADER + 7, 1),
        (VNET_HEADER + PROTOCOL, TCP),
    ] {
        assert_eq!(wrong(at, byte), Err(Malformed), "{at} {byte}");
    }
    let without_size = [vnet(1, vnet::UDP, 0, 20, 6), udp(1, &[7; 250])].concat();
    assert_eq!(packets_of(&without_size), Err(Malformed));
    let packet = udp(1, b"payload");
    for (start, offset) in [(20, 14), (0, 6), (19, 6), (u16::MAX, 6), (20, u16::MAX), (35, 6)] {
        let frame = [vnet(vnet::NEEDS_CHECKSUM, 0, 0, start, offset), packet.clone()].concat();
        assert_eq!(packets_of(&frame), Err(Malformed), "{start} {offset}");
    }
    // A TCP header that is too short for one, and one that is longer than the packet.
    for offset in [0x40, 0xF0] {
        let mut content = tcp_header(1, 0);
        content[TCP_OFFSET] = offset;
        let frame = [vnet(1, vnet::TCP_IPV4, 100, 20, 16), ipv4(TCP, 1, &content)].concat();
        assert_eq!(packets_of(&frame), Err(Malformed));
    }
}

/// The frames that a host gets when these packets are due together.
fn frames_of(packets: &[Vec<u8>], grow: bool) -> Vec<Vec<u8>> {
    let (mut batch, mut frames) = (Batch::default(), Vec::new());
    for packet in packets {
        if !batch.push(Instant::now(), packet, grow) {
            frames.push(batch.frame().unwrap().to_vec());
            batch.take_due().count();
            assert!(batch.push(Instant::now(), packet, grow));
        }
    }
    frames.extend(batch.frame().map(<[u8]>::to_vec));
    frames
}

#[test]
fn what_is_batched_and_split_again_is_what_it_was() {
    let packets: Vec<_> =
        [100, 100, 100, 40].iter().zip(5..).map(|(size, id)| udp(id, &vec![9; *size])).collect();
    let frames = frames_of(&packets, true);
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0][..2], [vnet::NEEDS_CHECKSUM, vnet::UDP]);
    assert_eq!(packets_of(&frames[0]).unwrap(), packets);
    assert_eq!(frames_of(&packets, false).len(), 4);
}

#[test]
fn a_batch_holds_packets_of_one_flow_with_equal_marks_and_sizes() {
    let first = udp(5, &[9; 100]);
    let next = udp(6, &[9; 100]);
    let frames = |other: &Vec<u8>| frames_of(&[first.clone(), other.clone()], true).len();
    assert_eq!(frames(&next), 1);
    let changed = |at: usize, by: u8| {
        let mut packet = next.clone();
        packet[at] ^= by;
        put_ip_length(&mut packet, IPV4_HEADER);
        put(&mut packet, 26..28, 0);
        let checksum = not_zero(!slow_sum(&packet));
        put(&mut packet, 26..28, checksum);
        packet
    };
    // ECN, the time to live, the addresses, the ports, and the flag that forbids fragments.
    for at in [1, 8, 15, 19, 21, 23] {
        assert_eq!(frames(&changed(at, 2)), 2, "{at}");
    }
    assert_eq!(frames(&changed(6, 0x40)), 2);
    assert_eq!(frames(&udp(6, &[9; 101])), 2);
    assert_eq!(frames(&udp(6, &[])), 2);
    // What follows a smaller packet, and the packet after the last that fits.
    let smaller = [first.clone(), udp(6, &[9; 99]), udp(7, &[9; 99])];
    assert_eq!(frames_of(&smaller, true).len(), 2);
    let many: Vec<_> = (0..=MOST_SEGMENTS).map(|id| udp(id as u16, &[9; 100])).collect();
    assert_eq!(frames_of(&many, true).len(), 2);
    let large: Vec<_> = (0..50).map(|id| udp(id, &[9; 1_472])).collect();
    assert!(frames_of(&large, true).iter().all(|frame| frame.len() <= LARGEST_FRAME));
}

#[test]
fn a_packet_with_a_wrong_or_no_checksum_stays_alone() {
    let good = udp(5, &[9; 100]);
    for checksum in [0, 1] {
        let mut packet = udp(6, &[9; 100]);
        put(&mut packet, 26..28, checksum);
        assert_eq!(frames_of(&[good.clone(), packet.clone()], true).len(), 2);
        let frames = frames_of(&[packet.clone(), good.clone()], true);
        assert_eq!((frames.len(), packets_of(&frames[0])), (2, Ok(vec![packet])));
    }
}
