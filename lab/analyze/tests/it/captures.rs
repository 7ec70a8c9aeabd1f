//! Captures of calls whose truth is known: what is lost, which end is this one, and which calls a
//! file has.

use weir_analyze::{Dump, answer};
use weir_record::calls::stats::Kind;

use crate::made::*;

/// What is lost by the last report of a received stream.
fn reported(dump: &Dump) -> Vec<i64> {
    let mut lost = Vec::new();
    for stream in dump.connections.iter().flat_map(|it| &it.streams) {
        let last = &stream.reports.last().unwrap().timed.report;
        lost.extend(last.inbound.as_ref().map(|it| it.packets_lost));
    }
    lost
}

#[test]
fn the_end_where_nothing_is_missing_of_what_it_sent_is_this_one() {
    // Whoever sends first.
    for later in [0, 1] {
        let mut directions = [video(NEAR, FAR, 0x3333, 20), thinned(video(FAR, NEAR, 0x1111, 20))];
        directions[later].iter_mut().for_each(|frame| frame.0 += 5.0);
        let dump = analyzed(pcap(101, &sorted(directions.concat())), None).unwrap();
        assert_eq!(counts(&dump), CALL);
        assert!(details(&dump).contains("this end is 192.0.2.7"), "{}", details(&dump));
    }
    let viewer = thinned(video(FAR, NEAR, 0x1111, 20));
    let dump = analyzed(pcap(101, &viewer), None).unwrap();
    assert_eq!(counts(&dump), [(RECEIVED, 546, 54, 0)]);
    assert_eq!(reported(&dump), [54]);
    let named = analyzed(pcap(101, &viewer), Some("198.51.100.9")).unwrap();
    assert_eq!(counts(&named), [(SENT, 546, 54, 0)]);
    // What is missing of a sent stream is lost before the capture.
    let last = named.connections[0].streams[0].reports.last().unwrap();
    let remote = last.timed.report.remote_inbound.as_ref().unwrap();
    assert_eq!((remote.packets_lost, remote.packets_received), (Some(54), Some(546)));
}

#[test]
fn a_private_address_is_this_end_even_if_the_far_end_sends_first() {
    let near = "10.0.0.5:40000";
    let mut frames = [voice(FAR, near, 81, 10), voice(near, FAR, 82, 10)].concat();
    frames.retain(|(time, packet)| *time > 0.0 || packet[12] == 198);
    let dump = analyzed(pcap(101, &sorted(frames)), None).unwrap();
    assert_eq!(counts(&dump), [(SENT, 499, 0, 0), (RECEIVED, 500, 0, 0)]);
    assert!(details(&dump).contains("its address is private"), "{}", details(&dump));
}

#[test]
fn where_nothing_tells_the_end_that_is_said() {
    let frames = sorted([voice(NEAR, FAR, 1, 10), voice(FAR, NEAR, 2, 10)].concat());
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    assert!(details(&dump).contains("nothing tells which end"), "{}", details(&dump));
    let turned = analyzed(pcap(101, &frames), Some("198.51.100.9")).unwrap();
    let ssrcs = |dump: &Dump| streams(dump).iter().map(|it| it.ssrc).collect::<Vec<_>>();
    assert_eq!((ssrcs(&dump), ssrcs(&turned)), (vec![1, 2], vec![2, 1]));
}

#[test]
fn both_ends_on_one_machine_are_told_by_their_ports() {
    let (a, b) = ("127.0.0.1:5000", "127.0.0.1:6000");
    let frames = sorted([voice(a, b, 1, 10), thinned(voice(b, a, 2, 10))].concat());
    let dump = analyzed(pcap(101, &frames), Some(b)).unwrap();
    assert_eq!(counts(&dump), [(SENT, 455, 45, 0), (RECEIVED, 500, 0, 0)]);
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    assert_eq!(counts(&dump), [(SENT, 500, 0, 0), (RECEIVED, 455, 45, 0)]);
}

#[test]
fn packets_that_were_captured_twice_count_once() {
    let twice: Vec<Frame> = call().into_iter().flat_map(|it| [it.clone(), it]).collect();
    let dump = analyzed(pcap(101, &twice), None).unwrap();
    assert_eq!(counts(&dump), [(SENT, 600, 0, 600), (RECEIVED, 546, 54, 546)]);
    assert!(details(&dump).contains("captured at two places"), "{}", details(&dump));
    let once = analyzed(pcap(101, &call()), None).unwrap();
    let bytes = |dump: &Dump| streams(dump).iter().map(|it| it.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&dump), bytes(&once));
}

#[test]
fn viewers_of_a_server_are_calls_of_their_own() {
    let server = "192.0.2.7:7000";
    let mut frames = video("198.51.100.1:5001", server, 0x1111, 20);
    for viewer in ["198.51.100.2:5002", "198.51.100.3:5003", "198.51.100.4:5004"] {
        frames.extend(video(server, viewer, 0x1111, 20));
    }
    let dump = analyzed(pcap(101, &sorted(frames)), None).unwrap();
    assert_eq!(dump.connections.len(), 4);
    let names: Vec<&str> = dump.connections.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"198.51.100.3"), "{names:?}");
    for facts in streams(&dump) {
        assert_eq!((facts.packets, facts.lost), (600, 0));
        let kbps = facts.bytes as f64 * 8.0 / 20.0 / 1e3;
        assert!((240.0..250.0).contains(&kbps), "{kbps}");
    }
    assert_eq!(streams(&dump).iter().filter(|it| it.direction == RECEIVED).count(), 1);
}

#[test]
fn audio_and_video_of_two_ports_are_one_call_and_two_of_audio_are_two() {
    let (near, far) = ("192.0.2.7:40002", "198.51.100.9:50002");
    let both = sorted([voice(NEAR, FAR, 1, 10), video(near, far, 2, 10)].concat());
    assert_eq!(analyzed(pcap(101, &both), None).unwrap().connections.len(), 1);
    let two = sorted([voice(NEAR, FAR, 1, 10), voice(near, far, 2, 10)].concat());
    assert_eq!(analyzed(pcap(101, &two), None).unwrap().connections.len(), 2);
}

#[test]
fn dns_is_no_call() {
    let mut frames = Vec::new();
    for number in 0..600_u32 {
        let mut message = (number as u16).wrapping_mul(40_503).to_be_bytes().to_vec();
        message.extend([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        message.resize(60, 7);
        let (from, to) = ("203.0.113.53:53", "192.0.2.7:41000");
        frames.push((f64::from(number) * 100.0, udp(from, to, 0, &message)));
        // The same from a port of nobody.
        let other = udp("203.0.113.53:6000", to, 0, &message);
        frames.push((f64::from(number) * 100.0, other));
    }
    let error = analyzed(pcap(101, &frames), None).unwrap_err().to_string();
    assert!(error.ends_with("no RTP in this capture"), "{error}");
    // Beside a call it changes nothing.
    let both = sorted([frames, call()].concat());
    assert_eq!(counts(&analyzed(pcap(101, &both), None).unwrap()), CALL);
}

#[test]
fn kind_and_clock_come_from_payload_type_and_timestamps() {
    let packet = |index: u32, kind: u8, step: u32, ms: f64, size: usize| {
        let rtp = rtp(kind, index as u16, index * step, 5, size);
        (f64::from(index) * ms, udp(NEAR, FAR, 0, &rtp))
    };
    // G.711 of 60 ms, large frames of 48 kHz under a dynamic type, small ones of video.
    for (kind, step, ms, size, is, clock) in [
        (0, 480, 60.0, 480, Kind::Audio, 8_000),
        (111, 2_880, 60.0, 700, Kind::Audio, 48_000),
        (96, 6_000, 66.667, 90, Kind::Video, 90_000),
        (99, 320, 20.0, 600, Kind::Audio, 16_000),
    ] {
        let frames: Vec<Frame> = (0..300).map(|at| packet(at, kind, step, ms, size)).collect();
        let dump = analyzed(pcap(101, &frames), None).unwrap();
        let facts = streams(&dump)[0];
        assert_eq!((facts.kind, facts.clock_hz), (is, Some(clock)), "{kind}");
    }
}

#[test]
fn late_packets_are_not_lost_and_an_outage_weighs() {
    let mut late = [voice(NEAR, FAR, 1, 20), voice(FAR, NEAR, 2, 20)].concat();
    for (at, (time, packet)) in late.iter_mut().enumerate() {
        if packet[12] == 198 {
            *time += (at % 5) as f64 * 17.0;
        }
    }
    let dump = analyzed(pcap(101, &sorted(late)), Some("192.0.2.7")).unwrap();
    assert_eq!(reported(&dump), [0]);
    let received = streams(&dump)[1];
    assert!(received.reordered > 100 && received.lost == 0, "{received:?}");
    let mut out = [voice(NEAR, FAR, 1, 20), voice(FAR, NEAR, 2, 20)].concat();
    out.retain(|(time, packet)| packet[12] != 198 || !(8_000.0..11_000.0).contains(time));
    let dump = analyzed(pcap(101, &sorted(out)), None).unwrap();
    assert_eq!((reported(&dump), streams(&dump)[1].bursts), (vec![150], (1, 150)));
    let stream = dump.connections[0].streams.iter().find(|it| it.direction == RECEIVED).unwrap();
    // The seconds without a packet lost all of them.
    let lost_by = |seconds: f64| {
        let reports = stream.reports.iter().rev();
        let mut until = reports.filter(|it| it.timed.time.as_secs_f64() <= seconds);
        until.next().unwrap().timed.report.inbound.as_ref().unwrap().packets_lost
    };
    assert!(lost_by(8.0) <= 1 && lost_by(11.0) >= 145, "{} {}", lost_by(8.0), lost_by(11.0));
}

#[test]
fn new_numbers_after_a_hold_are_no_loss() {
    let mut frames = voice(NEAR, FAR, 1, 10);
    for index in 0..500_u32 {
        let rtp = rtp(0, 30_000 + index as u16, 77_000_000 + index * 160, 1, 160);
        frames.push((15_000.0 + f64::from(index) * 20.0, udp(NEAR, FAR, 0, &rtp)));
    }
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    assert_eq!(counts(&dump), [(SENT, 1_000, 0, 0)]);
    assert_eq!(streams(&dump)[0].restarts, 1);
}

/// A sender report, or a receiver report with one block.
fn report(kind: u8, sender: u32, words: &[u32]) -> Vec<u8> {
    let mut packet = vec![0x80 | u8::from(kind == 201), kind];
    packet.extend((words.len() as u16 + 1).to_be_bytes());
    packet.extend(sender.to_be_bytes());
    packet.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    packet
}

/// A voice of 30 s each way with reports each 5 s: 20 % of what is sent are lost, and the round
/// trip takes 25 ms. The sender pauses for 4 s of 12.
fn reported_voice(pauses: bool) -> Vec<Frame> {
    voice_between(["10.0.0.5:40000", "10.0.0.5:40001"], [FAR, "198.51.100.9:50001"], pauses)
}

/// The same between these sockets, of RTP and of RTCP.
fn voice_between(
    [near, near_rtcp]: [&str; 2],
    [far, far_rtcp]: [&str; 2],
    pauses: bool,
) -> Vec<Frame> {
    let mut frames = voice(far, near, 81, 30);
    let (mut number, mut lost) = (0_u32, 0_u32);
    for index in 0..1_500_u32 {
        let time = f64::from(index) * 20.0;
        if index % 250 == 249 {
            let ntp = [index * 3, index << 16, index * 160, number, number * 160];
            frames.push((time, udp(near_rtcp, far_rtcp, 0, &report(200, 82, &ntp))));
            // It was held for 2 s: 131072 of 65536 a second.
            let sent = (ntp[0] << 16) | (ntp[1] >> 16);
            let fraction = 51_u32 << 24;
            let block = [82, fraction | lost, number.saturating_sub(1), 0, sent, 131_072];
            frames.push((time + 2_025.0, udp(far_rtcp, near_rtcp, 0, &report(201, 81, &block))));
        }
        if pauses && index % 600 >= 400 {
            continue;
        }
        let rtp = rtp(0, number as u16, index * 160, 82, 160);
        frames.push((time, udp(near, far, 0, &rtp)));
        number += 1;
        lost = number / 5;
    }
    sorted(frames)
}

#[test]
fn reports_each_5_s_fill_the_time_between_them() {
    let dump = analyzed(pcap(101, &reported_voice(false)), None).unwrap();
    let stream = &dump.connections[0].streams[0];
    assert_eq!((stream.direction, stream.ssrc), (SENT, 82));
    let mut known = Vec::new();
    for pair in stream.reports.windows(2) {
        let lost = [0, 1].map(|at| pair[at].timed.report.remote_inbound.as_ref()?.packets_lost);
        let [Some(before), Some(after)] = lost else { continue };
        known.push(after - before);
    }
    // Each half second has 25 packets.
    assert!(known.len() > 40, "{known:?}");
    assert!(known.iter().all(|lost| (4..=6).contains(lost)), "{known:?}");
}

#[test]
fn reports_tell_of_all_numbers_until_the_last_one() {
    // The last one comes at the end, and knows of all packets but one.
    let rows = answer(&analyzed(pcap(101, &reported_voice(false)), None).unwrap()).streams;
    let row = rows.iter().find(|it| it.direction == SENT).unwrap();
    assert_eq!((row.expected, row.lost), (1_499, Some(300)));
}

#[test]
fn the_share_that_is_reported_is_of_all_numbers_and_not_of_what_was_captured() {
    let mut frames = reported_voice(false);
    // Every tenth packet was lost before the place of the capture.
    let mut sent = 0;
    frames.retain(|(_, packet)| {
        let is_sent = packet[12] == 10 && packet.len() > 100;
        sent += u32::from(is_sent);
        !is_sent || sent % 10 != 3
    });
    let verdict = answer(&analyzed(pcap(101, &frames), None).unwrap()).verdict;
    let share = verdict.split("Uplink lost ").nth(1).and_then(|it| it.split(' ').next());
    let share: f64 = share.unwrap_or_default().parse().unwrap_or_default();
    assert!((share - 20.0).abs() < 0.3, "{verdict}");
}

#[test]
fn reports_on_ports_of_their_own_tell_the_end_on_one_machine() {
    let near = ["127.0.0.1:5000", "127.0.0.1:5001"];
    let far = ["127.0.0.1:6000", "127.0.0.1:6001"];
    for (near, far) in [(near, far), (far, near)] {
        let words = format!("this end is {}, the other one {}", near[0], far[0]);
        // An address that both have names neither of them.
        for local in [None, Some("127.0.0.1")] {
            let dump = analyzed(pcap(101, &voice_between(near, far, false)), local).unwrap();
            assert!(details(&dump).contains(&words), "{words}: {}", details(&dump));
            assert!(answer(&dump).verdict.starts_with("Uplink lost 20.0 %"), "{words}");
        }
    }
}

#[test]
fn round_trips_come_from_sender_reports_and_not_from_pauses() {
    for pauses in [false, true] {
        let dump = analyzed(pcap(101, &reported_voice(pauses)), None).unwrap();
        let mut rtts = Vec::new();
        for report in &dump.connections[0].streams[0].reports {
            let remote = report.timed.report.remote_inbound.as_ref();
            rtts.extend(remote.and_then(|it| it.round_trip_time));
        }
        assert!(rtts.len() > 20, "{rtts:?}");
        assert!(rtts.iter().all(|rtt| (rtt - 0.025).abs() < 0.001), "{rtts:?}");
        let verdict = answer(&dump).verdict;
        assert!(!verdict.contains("fell"), "{verdict}");
    }
}

#[test]
fn a_stall_with_nothing_lost_is_found() {
    let mut frames = voice(NEAR, FAR, 1, 20);
    for index in 0..850_u32 {
        // What was to come at 8 s comes at 11 s.
        let late = if index >= 400 { 3_000.0 } else { 0.0 };
        let rtp = rtp(0, index as u16, index * 160, 2, 160);
        frames.push((f64::from(index) * 20.0 + late, udp(FAR, NEAR, 0, &rtp)));
    }
    let answer = answer(&analyzed(pcap(101, &sorted(frames)), Some("192.0.2.7")).unwrap());
    let found = answer.findings.iter().find(|it| it.0.rule == "stall").unwrap();
    assert!((found.0.from_s - 8.0).abs() < 0.1 && (found.0.to_s - 11.0).abs() < 0.1, "{found}");
    assert!(answer.verdict.contains("stood still for 3.0 s"), "{}", answer.verdict);
}

#[test]
fn silence_between_words_is_no_stall() {
    let mut frames = voice(NEAR, FAR, 1, 20);
    let spoken = (0..1_000_u32).filter(|index| index % 200 < 100);
    for (number, index) in (0..).zip(spoken) {
        // The timestamps go on, the numbers do not.
        let rtp = rtp(0, number, index * 160, 2, 160);
        frames.push((f64::from(index) * 20.0, udp(FAR, NEAR, 0, &rtp)));
    }
    let answer = answer(&analyzed(pcap(101, &sorted(frames)), Some("192.0.2.7")).unwrap());
    assert!(answer.findings.is_empty(), "{:?}", answer.findings);
}

#[test]
fn sound_that_goes_one_way_or_ends_is_found() {
    let one = answer(&analyzed(pcap(101, &voice(NEAR, FAR, 1, 20)), None).unwrap());
    assert!(one.verdict.contains("nothing was received in 20 s"), "{}", one.verdict);
    let frames = sorted([voice(NEAR, FAR, 1, 20), voice(FAR, NEAR, 2, 8)].concat());
    let ended = answer(&analyzed(pcap(101, &frames), Some("192.0.2.7")).unwrap());
    assert!(ended.verdict.contains("eceived audio ended at 8.0 s"), "{}", ended.verdict);
}

#[test]
fn super_packets_are_split() {
    let mut frames = Vec::new();
    let mut cut = Vec::new();
    for index in 0..60_u32 {
        let mut whole = Vec::new();
        for part in 0..10_u32 {
            whole.extend(rtp(96, (index * 10 + part) as u16, index * 3_000, 9, 1_188));
        }
        whole.truncate(whole.len() - 300);
        let packet = udp(NEAR, FAR, 0, &whole);
        frames.push((f64::from(index) * 33.3, packet));
    }
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    assert_eq!(counts(&dump), [(SENT, 600, 0, 0)]);
    assert!(details(&dump).contains("segmentation offload"), "{}", details(&dump));
    // Of each, 160 bytes were kept.
    let whole = pcap(101, &frames);
    cut.extend(&whole[..24]);
    let mut at = 24;
    while at < whole.len() {
        let length = u32::from_le_bytes(*whole[at + 8..].first_chunk().unwrap()) as usize;
        cut.extend(&whole[at..at + 8]);
        cut.extend(160_u32.to_le_bytes());
        cut.extend(&whole[at + 12..at + 16 + 160]);
        at += 16 + length;
    }
    let dump = analyzed(cut, None).unwrap();
    let [facts] = &streams(&dump)[..] else { panic!("one stream") };
    assert!(facts.lost == 0 && facts.packets >= 590, "{facts:?}");
}

#[test]
fn jitter_and_gaps_are_those_of_rfc_3550() {
    // Each second packet is 8 ms late: the jitter goes to 8 ms.
    let mut frames = voice(NEAR, FAR, 1, 20);
    for (at, frame) in frames.iter_mut().enumerate() {
        frame.0 += if at % 2 == 1 { 8.0 } else { 0.0 };
    }
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    let facts = streams(&dump)[0];
    let (mean, largest) = facts.jitter_ms.unwrap();
    assert!((7.8..8.0).contains(&mean) && (7.99..8.01).contains(&largest), "{mean} {largest}");
    assert!((facts.longest_gap.0 - 28.0).abs() < 0.01, "{facts:?}");
}

// [RFC4733 §2.2.1]
#[test]
fn dialled_digits_are_no_jitter_of_the_voice_and_no_stall() {
    let mut frames = voice(NEAR, FAR, 1, 20);
    let begin: [u8; 4] = frames[100].1[32..36].try_into().unwrap();
    for (_, packet) in &mut frames[100..120] {
        packet[29] = 101;
        packet[32..36].copy_from_slice(&begin);
    }
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    let facts = streams(&dump)[0];
    assert_eq!((facts.packets, facts.lost), (1_000, 0));
    assert!(facts.jitter_ms.unwrap().1 < 0.1, "{facts:?}");
    assert!(facts.longest_stall.0 < 1.0, "{facts:?}");
}

#[test]
fn timestamps_that_begin_anew_are_no_jitter() {
    let mut frames = voice(NEAR, FAR, 1, 20);
    for (at, (_, packet)) in frames.iter_mut().enumerate().skip(500) {
        let anew = 3_000_000_000 + 160 * at as u32;
        packet[32..36].copy_from_slice(&anew.to_be_bytes());
    }
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    let facts = streams(&dump)[0];
    assert!(facts.jitter_ms.unwrap().1 < 0.1 && facts.longest_stall.0 < 1.0, "{facts:?}");
}

#[test]
fn dtls_hellos_that_nobody_answers_are_a_connection_that_never_was() {
    let mut frames = Vec::new();
    for second in 0..10_u32 {
        let mut check = vec![0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42];
        check.resize(20, second as u8);
        frames.push((f64::from(second) * 1e3, udp(NEAR, FAR, 0, &check)));
        check[0] = 1;
        frames.push((f64::from(second) * 1e3 + 30.0, udp(FAR, NEAR, 0, &check)));
        let mut hello = vec![22, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60, 1];
        hello.resize(73, 0);
        frames.push((f64::from(second) * 1e3 + 500.0, udp(NEAR, FAR, 0, &hello)));
    }
    let dump = analyzed(pcap(101, &frames), None).unwrap();
    let verdict = answer(&dump).verdict;
    assert!(verdict.contains("never established") && verdict.contains("DTLS"), "{verdict}");
    assert!(dump.warnings[0].contains("10 DTLS hellos"), "{:?}", dump.warnings);
}
