//! Every door through which packets come: links, tunnels, files, streams of TCP.

use weir_analyze::answer;

use crate::made::*;

/// Whether an IP packet is one of the near end.
fn is_sent(packet: &[u8]) -> bool {
    packet[12..16] == [192, 0, 2, 7]
}

/// Puts an IP packet behind the headers of a link or tunnel.
type Wrap = Box<dyn Fn(&[u8]) -> Vec<u8>>;
/// Puts an RTP packet into a stream of TCP.
type Framing = fn(&[u8]) -> Vec<u8>;

#[test]
fn a_call_is_read_behind_every_link_and_tunnel() {
    let call = call();
    let vlan = |kind: u16, inner: u16, packet: &[u8]| {
        ethernet(kind, &[&[0, 5][..], &inner.to_be_bytes(), packet].concat())
    };
    let outer = |protocol: u8, rest: &[u8]| {
        let [from, to] = ["203.0.113.1:0", "203.0.113.2:0"].map(|it| it.parse().unwrap());
        ethernet(0x0800, &ip(protocol, from, to, 0, rest))
    };
    let over_udp = |port: u16, rest: &[u8]| {
        let to = format!("203.0.113.2:{port}");
        ethernet(0x0800, &udp("203.0.113.1:4999", &to, 0, rest))
    };
    let doors: [(&str, u32, Wrap); 38] = [
        ("raw", 101, Box::new(|it| it.to_vec())),
        ("Ethernet", 1, Box::new(|it| ethernet(0x0800, it))),
        ("VLAN", 1, Box::new(move |it| vlan(0x8100, 0x0800, it))),
        (
            "VLAN twice",
            1,
            Box::new(|it| ethernet(0x88A8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], it].concat())),
        ),
        (
            "VLAN twice, old",
            1,
            Box::new(|it| ethernet(0x9100, &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], it].concat())),
        ),
        (
            "cooked with VLAN",
            113,
            Box::new(|it| {
                let direction = if is_sent(it) { 4 } else { 0 };
                let heading =
                    [0, direction, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x81, 0, 0, 5, 8, 0];
                [&heading[..], it].concat()
            }),
        ),
        (
            "cooked 2",
            276,
            Box::new(|it| {
                let direction = if is_sent(it) { 4 } else { 0 };
                let heading = [8, 0, 0, 0, 0, 0, 0, 1, 0, 1, direction, 6, 2, 0, 0, 0, 0, 1, 0, 0];
                [&heading[..], it].concat()
            }),
        ),
        ("PPP", 9, Box::new(|it| [&[0xFF, 3, 0, 0x21][..], it].concat())),
        (
            "PPPoE",
            1,
            Box::new(|it| ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 0, 0, 0x21][..], it].concat())),
        ),
        (
            "MPLS",
            1,
            Box::new(|it| ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], it].concat())),
        ),
        (
            "radiotap",
            127,
            Box::new(|it| {
                let mut frame = vec![0, 0, 8, 0, 0, 0, 0, 0, 0x88, 1, 0, 0];
                frame.extend([2; 20]);
                frame.extend([0, 0, 0xAA, 0xAA, 3, 0, 0, 0, 8, 0]);
                [&frame[..], it].concat()
            }),
        ),
        (
            "NFLOG",
            239,
            Box::new(|it| {
                let length = (it.len() as u16 + 4).to_le_bytes();
                [&[2, 0, 0, 5, 6, 0, 10, 0, b'w', 0, 0, 0][..], &length, &[9, 0], it].concat()
            }),
        ),
        ("GRE", 1, Box::new(move |it| outer(47, &[&[0, 0, 8, 0][..], it].concat()))),
        (
            "GRE with a key",
            1,
            Box::new(move |it| outer(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 7][..], it].concat())),
        ),
        (
            "ERSPAN",
            1,
            Box::new(move |it| {
                let heading = [0x10, 0, 0x88, 0xBE, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0];
                outer(47, &[&heading[..], &ethernet(0x0800, it)].concat())
            }),
        ),
        ("IP in IP", 1, Box::new(move |it| outer(4, it))),
        (
            "VXLAN",
            1,
            Box::new(move |it| {
                let heading = [8, 0, 0, 0, 0, 0, 42, 0];
                over_udp(4_789, &[&heading[..], &ethernet(0x0800, it)].concat())
            }),
        ),
        (
            "Geneve",
            1,
            Box::new(move |it| {
                over_udp(
                    6_081,
                    &[&[0, 0, 0x65, 0x58, 0, 0, 1, 0][..], &ethernet(0x0800, it)].concat(),
                )
            }),
        ),
        (
            "GTP-U",
            1,
            Box::new(move |it| {
                over_udp(2_152, &[&[0x30, 0xFF, 0, 0, 0, 0, 0, 9][..], it].concat())
            }),
        ),
        (
            "GTP-U with an extension",
            1,
            Box::new(move |it| {
                let heading = [0x34, 0xFF, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 0, 9, 0];
                over_udp(2_152, &[&heading[..], it].concat())
            }),
        ),
        (
            "VXLAN in a VLAN",
            1,
            Box::new(move |it| {
                let inner = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &vlan(0x8100, 0x0800, it)].concat();
                over_udp(8_472, &inner)
            }),
        ),
        (
            "L2TP",
            1,
            Box::new(move |it| {
                over_udp(1_701, &[&[0, 2, 0, 1, 0, 2, 0xFF, 3, 0, 0x21][..], it].concat())
            }),
        ),
        (
            "L2TP with a length and an offset",
            1,
            Box::new(move |it| {
                let heading = [0x42, 2, 0, 99, 0, 1, 0, 2, 0, 2, 9, 9, 0, 0x21];
                over_udp(1_701, &[&heading[..], it].concat())
            }),
        ),
        (
            "tap of macOS",
            258,
            Box::new(|it| {
                let mut heading = [108_u32, 1, 1].map(u32::to_le_bytes).concat();
                heading.resize(36, 0);
                heading.extend([if is_sent(it) { 2 } else { 1 }, 0, 0, 0]);
                heading.resize(108, 0);
                [&heading[..], &ethernet(0x0800, it)].concat()
            }),
        ),
        (
            "PPI",
            192,
            Box::new(|it| [&[0, 0, 8, 0, 1, 0, 0, 0][..], &ethernet(0x0800, it)].concat()),
        ),
        (
            "cooked, of others",
            113,
            Box::new(|it| {
                let heading = [0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
                [&heading[..], it].concat()
            }),
        ),
        ("frame relay", 107, Box::new(|it| [&[0x18, 0x41, 3, 0xCC][..], it].concat())),
        (
            "VXLAN with a group",
            1,
            Box::new(move |it| {
                let heading = [0x88, 0, 0, 5, 0, 0, 9, 0];
                over_udp(4_789, &[&heading[..], &ethernet(0x0800, it)].concat())
            }),
        ),
        ("log of pf", 117, Box::new(|it| [&[61, 2, 0, 0][..], &[0; 60], it].concat())),
        (
            "frames in frames",
            1,
            Box::new(|it| ethernet(0x88E7, &[&[0, 0, 0, 9][..], &ethernet(0x0800, it)].concat())),
        ),
        (
            "VNTag in MACsec without encryption",
            1,
            Box::new(|it| {
                let tags = [0x20, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 1, 0x89, 0x26, 0, 1, 0, 2];
                ethernet(0x88E5, &[&tags[..], &[8, 0], it].concat())
            }),
        ),
        (
            "EtherIP",
            1,
            Box::new(move |it| outer(97, &[&[0x30, 0][..], &ethernet(0x0800, it)].concat())),
        ),
        ("MPLS in IP", 1, Box::new(move |it| outer(137, &[&[0, 1, 1, 64][..], it].concat()))),
        ("MPLS in UDP", 1, Box::new(move |it| over_udp(6_635, &[&[0, 1, 1, 64][..], it].concat()))),
        ("GRE in UDP", 1, Box::new(move |it| over_udp(4_754, &[&[0, 0, 8, 0][..], it].concat()))),
        (
            "LISP",
            1,
            Box::new(move |it| over_udp(4_341, &[&[0x80, 0, 0, 1, 0, 0, 0, 1][..], it].concat())),
        ),
        (
            "NSH in VXLAN",
            1,
            Box::new(move |it| {
                let mut heading = vec![0x0C, 0, 0, 4, 0, 0, 9, 0, 0x0F, 0xC6, 1, 1];
                heading.resize(8 + 24, 0);
                over_udp(4_790, &[&heading[..], it].concat())
            }),
        ),
        ("loopback of BSD", 0, Box::new(|it| [&[2, 0, 0, 0][..], it].concat())),
    ];
    for (door, link, wrap) in doors {
        let frames = wrapped(&call, &wrap);
        let dump = analyzed(pcap(link, &frames), None).unwrap();
        assert_eq!(counts(&dump), CALL, "{door}");
        let frame = &frames[0].1;
        for end in 0..frame.len().min(200) {
            let _ = weir_capture::inner(link, &frame[..end]);
        }
    }
}

#[test]
fn frames_of_wifi_that_have_several_are_taken_apart() {
    const SNAP: [u8; 8] = [0xAA, 0xAA, 3, 0, 0, 0, 8, 0];
    let call = call();
    let mut frames = Vec::new();
    // Two packets of any direction at a time, and one at the end.
    for several in call.chunks(2) {
        let mut frame = vec![0, 0, 8, 0, 0, 0, 0, 0, 0x88, 1, 0, 0];
        frame.extend([2; 18]);
        frame.extend([0, 0, 0x80, 0]);
        for (_, packet) in several {
            frame.resize((frame.len() - 34).next_multiple_of(4) + 34, 0);
            frame.extend([2; 12]);
            frame.extend((SNAP.len() as u16 + packet.len() as u16).to_be_bytes());
            frame.extend(SNAP);
            frame.extend(packet);
        }
        // The check sum of the frame.
        frame.extend([9; 4]);
        frames.push((several[0].0, frame));
    }
    assert_eq!(counts(&analyzed(pcap(127, &frames), None).unwrap()), CALL);
    let frame = &frames[0].1;
    for end in 0..frame.len() {
        let _ = weir_capture::subframes(127, &frame[..end]);
    }
}

#[test]
fn a_call_is_read_from_every_file() {
    let call = wrapped(&call(), |it| ethernet(0x0800, it));
    let plain = pcap(1, &call);
    let mut turned =
        plain[..24].chunks(4).flat_map(|it| it.iter().rev().copied()).collect::<Vec<_>>();
    turned.splice(4..8, [0, 2, 0, 4]);
    let (mut simple, mut modified, mut snoop) = (section(), Vec::<u8>::new(), Vec::<u8>::new());
    modified.extend([0xA1B2_CD34_u32, 2 | 4 << 16, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat());
    snoop.extend(b"snoop\0\0\0");
    snoop.extend([2_u32, 4].map(u32::to_be_bytes).concat());
    for (time_ms, frame) in &call {
        let us = (time_ms * 1e3) as u32;
        let (seconds, rest, length) = (us / 1_000_000, us % 1_000_000, frame.len() as u32);
        let padding = vec![0; frame.len().next_multiple_of(4) - frame.len()];
        turned.extend([seconds, rest, length, length].map(u32::to_be_bytes).concat());
        turned.extend(frame);
        modified.extend([seconds, rest, length, length, 1, 0x0800].map(u32::to_le_bytes).concat());
        modified.extend(frame);
        let record = 24 + length + padding.len() as u32;
        snoop.extend([length, length, record, 0, seconds, rest].map(u32::to_be_bytes).concat());
        snoop.extend([&frame[..], &padding].concat());
        let block = 16 + length + padding.len() as u32;
        simple.extend([3, block, length].map(u32::to_le_bytes).concat());
        simple.extend([&frame[..], &padding, &block.to_le_bytes()].concat());
    }
    for (name, file) in [("big", turned), ("modified", modified), ("snoop", snoop)] {
        assert_eq!(counts(&analyzed(file, None).unwrap()), CALL, "{name}");
    }
    let dump = analyzed(simple, None).unwrap();
    assert_eq!(counts(&dump), CALL);
    assert!(dump.warnings[0].contains("without times"), "{:?}", dump.warnings);
    let span_s = streams(&dump)[0].span_s;
    assert!((span_s.1 - span_s.0 - 19.97).abs() < 0.1, "{span_s:?}");
}

/// The begin of a pcapng of Ethernet.
fn section() -> Vec<u8> {
    let section = [0x0A0D_0D0A_u32, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28];
    let interface = [1_u32, 20, 1, 262_144, 20];
    [section.map(u32::to_le_bytes).concat(), interface.map(u32::to_le_bytes).concat()].concat()
}

#[test]
fn the_time_offset_of_an_interface_counts_and_old_blocks_are_read() {
    let mut file = [0x0A0D_0D0A_u32, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28].to_vec();
    // An interface with an offset of 1,700,000,000 s.
    file.extend([1, 32, 1, 262_144, 14 | 8 << 16, 1_700_000_000, 0, 32]);
    let mut file = file.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    for (time_ms, packet) in call() {
        let frame = ethernet(0x0800, &packet);
        let (us, length) = ((time_ms * 1e3) as u32, frame.len() as u32);
        let block = 32 + length.next_multiple_of(4);
        file.extend([2, block, 0, 0, us, length, length].map(u32::to_le_bytes).concat());
        file.extend(&frame);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(block.to_le_bytes());
    }
    assert_eq!(counts(&analyzed(file, None).unwrap()), CALL);
}

#[test]
fn recordings_of_servers_are_read() {
    let (mut dumped, mut janus) = (b"#!rtpplay1.0 192.0.2.7/50000\n".to_vec(), Vec::<u8>::new());
    dumped.extend([0; 16]);
    let heading = br#"{"t":"v","c":"vp8","u":1700000000000000}"#;
    janus.extend(b"MJR00002");
    janus.extend((heading.len() as u16).to_be_bytes());
    janus.extend(heading);
    for (time_ms, packet) in thinned(video(FAR, NEAR, 7, 20)) {
        let (rtp, ms) = (&packet[28..], time_ms as u32);
        dumped.extend((rtp.len() as u16 + 8).to_be_bytes());
        dumped.extend((rtp.len() as u16).to_be_bytes());
        dumped.extend(ms.to_be_bytes());
        dumped.extend(rtp);
        janus.extend(b"MEET");
        janus.extend(ms.to_be_bytes());
        janus.extend((rtp.len() as u16).to_be_bytes());
        janus.extend(rtp);
    }
    for file in [dumped, janus] {
        let dump = analyzed(file, None).unwrap();
        assert_eq!(counts(&dump), [(RECEIVED, 546, 54, 0)]);
        assert!(details(&dump).contains("a recording of what a server received"));
    }
    // Of one sound, nothing says what went the other way.
    let mut sound = b"#!rtpplay1.0 192.0.2.7/50000\n".to_vec();
    sound.extend([0; 16]);
    for (time_ms, packet) in voice(FAR, NEAR, 7, 20) {
        let rtp = &packet[28..];
        sound.extend([rtp.len() as u16 + 8, rtp.len() as u16].map(u16::to_be_bytes).concat());
        sound.extend((time_ms as u32).to_be_bytes());
        sound.extend(rtp);
    }
    let verdict = answer(&analyzed(sound, None).unwrap()).verdict;
    assert!(verdict.starts_with("Nothing limited"), "{verdict}");
}

#[test]
fn recordings_without_a_packet_are_named_for_what_they_are() {
    let janus = b"MJR00002\0\x11{\"t\":\"v\",\"c\":\"8\"}";
    let dumped = [&b"#!rtpplay1.0 192.0.2.7/50000\n"[..], &[0; 16]].concat();
    for whole in [&janus[..], &dumped] {
        let error = analyzed(whole.to_vec(), None).unwrap_err().to_string();
        assert!(error.ends_with("the recording has a heading and no packets"), "{error}");
        let begun = [whole, b"MEE"].concat();
        let error = analyzed(begun, None).unwrap_err().to_string();
        assert!(error.contains("the recording has no whole packet"), "{error}");
        for end in 9..whole.len() {
            let error = analyzed(whole[..end].to_vec(), None).unwrap_err().to_string();
            assert!(error.contains("the recording has"), "{end}: {error}");
        }
    }
    for old in ["MJR00001\0\x02{}", "MEETECHO\0\x05audio"] {
        let error = analyzed(old.into(), None).unwrap_err().to_string();
        assert!(error.contains("a recording of Janus of an older format"), "{error}");
    }
}

#[test]
fn media_in_tcp_is_read_whatever_frames_it() {
    let frames: [(&str, Framing); 3] = [
        ("length", |rtp| [&(rtp.len() as u16).to_be_bytes()[..], rtp].concat()),
        ("relay", |rtp| {
            let mut data = [&[0x40, 0][..], &(rtp.len() as u16).to_be_bytes(), rtp].concat();
            data.resize(data.len().next_multiple_of(4), 0);
            data
        }),
        ("RTSP", |rtp| [&[b'$', 0][..], &(rtp.len() as u16).to_be_bytes(), rtp].concat()),
    ];
    for (name, frame) in frames {
        let mut next = [1_u32, 1];
        let mut packets = Vec::new();
        for (time, packet) in call() {
            let data = frame(&packet[28..]);
            let (from, to) = if is_sent(&packet) { (NEAR, FAR) } else { (FAR, NEAR) };
            let sequence = &mut next[usize::from(is_sent(&packet))];
            packets.push((time, segment(from, to, *sequence, &data)));
            *sequence += data.len() as u32;
        }
        let dump = analyzed(pcap(101, &packets), None).unwrap();
        assert_eq!(counts(&dump), CALL, "{name}");
        assert!(details(&dump).contains("1146 packets of media came in TCP"), "{name}");
    }
}

#[test]
fn what_is_not_read_is_named() {
    let arp: Vec<Frame> = (0..9).map(|at| (f64::from(at), ethernet(0x0806, &[0; 40]))).collect();
    let error = analyzed(pcap(1, &arp), None).unwrap_err().to_string();
    assert!(error.contains("EtherType 0x0806"), "{error}");
    let error = analyzed(pcap(187, &arp), None).unwrap_err().to_string();
    assert!(error.contains("link type 187 (Bluetooth)"), "{error}");
    let tls: Vec<Frame> = (0..9_u32)
        .map(|at| (f64::from(at), segment(NEAR, FAR, at * 9, &[0x17, 3, 3, 0, 4, 1, 2, 3, 4])))
        .collect();
    let error = analyzed(pcap(101, &tls), None).unwrap_err().to_string();
    assert!(error.contains("its streams of TLS"), "{error}");
}
