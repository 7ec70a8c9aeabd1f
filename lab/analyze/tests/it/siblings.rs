//! Captures like those that people attached: what one of them shows must be seen in all of its
//! kind.

use weir_analyze::{Dump, answer};

use crate::made::*;

const INSIDE: &str = "10.0.0.5:40000";

fn read(frames: &[Frame]) -> Dump {
    analyzed(pcap(101, frames), None).unwrap()
}

fn verdict(frames: Vec<Frame>) -> String {
    answer(&read(&sorted(frames))).verdict
}

/// Voice each way for 30 s, of which a packet is received if this says so of its index.
fn voices(comes: impl Fn(usize) -> bool) -> Vec<Frame> {
    let received = voice(FAR, INSIDE, 2, 30).into_iter().enumerate();
    let came = received.filter(|(index, _)| comes(*index)).map(|(_, frame)| frame);
    voice(INSIDE, FAR, 1, 30).into_iter().chain(came).collect()
}

/// Whether a number is drawn of so many in a thousand; without a pattern in time.
fn drawn(index: usize, of_1000: u32) -> bool {
    let mixed = (index as u32).wrapping_mul(0x9E37_79B9);
    (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA6B) >> 12 & 1023 < of_1000 * 1024 / 1000
}

// --- Losses ---

#[test]
fn a_share_of_packets_is_that_of_the_span_that_is_printed() {
    // From 10.2 to 13.2 s all is lost: 150 of the 175 packets between 10 and 13.5 s.
    let verdict = verdict(voices(|index| !(510..660).contains(&index)));
    let words = "Downlink lost 85.7 % of the packets from 10 to 13.5 s";
    assert!(verdict.starts_with(words), "{verdict}");
}

#[test]
fn losses_by_chance_have_the_share_of_the_whole_call() {
    for of_1000 in [25, 40, 80, 200] {
        let frames = voices(|index| !drawn(index, of_1000));
        let dump = read(&sorted(frames));
        let received = streams(&dump)[1];
        let share = 100.0 * received.lost as f64 / received.expected as f64;
        let words = format!("Downlink lost {share:.1} % of the packets from 0 to 30 s");
        let verdict = answer(&dump).verdict;
        assert!(verdict.starts_with(&words), "{words}: {verdict}");
    }
}

#[test]
fn losses_of_a_part_of_the_call_are_not_thinned() {
    let frames = voices(|index| !(400..700).contains(&index) || !drawn(index, 200));
    let verdict = verdict(frames);
    let missing = (400..700).filter(|index| drawn(*index, 200)).count();
    let words = format!("Downlink lost {:.1} %", missing as f64 / 3.0);
    assert!(verdict.starts_with(&words) && verdict.contains("from 8 to 14 s"), "{verdict}");
}

#[test]
fn an_outage_is_a_loss_however_short() {
    for (packets, words) in [(25, "% of the packets from 10 to 1"), (50, "from 10 to 1")] {
        let verdict = verdict(voices(|index| !(505..505 + packets).contains(&index)));
        assert!(verdict.starts_with("Downlink lost") && verdict.contains(words), "{verdict}");
    }
    // A few packets in a row are what a receiver conceals.
    let verdict = verdict(voices(|index| !(505..510).contains(&index)));
    assert!(verdict.starts_with("Nothing limited"), "{verdict}");
}

#[test]
fn a_stream_is_one_however_much_of_it_is_lost() {
    let shares: [fn(usize) -> bool; 4] = [
        |index| index.is_multiple_of(2),
        |index| index.is_multiple_of(3),
        |index| !drawn(index, 930),
        // Heavy at the begin alone.
        |index| index > 50 || index.is_multiple_of(2),
    ];
    for (number, comes) in shares.into_iter().enumerate() {
        // The first and the last packet say how many were sent.
        let comes = |index: usize| index == 0 || index == 1_499 || comes(index);
        let dump = read(&sorted(voices(comes)));
        let lost = (0..1_500).filter(|index| !comes(*index)).count() as u64;
        let expected = [(SENT, 1_500, 0, 0), (RECEIVED, 1_500 - lost, lost, 0)];
        assert_eq!(counts(&dump), expected, "share {number}");
    }
}

#[test]
fn what_is_missing_of_what_was_sent_is_missing_when_it_was() {
    // A hole of the capture: numbers of both directions went on for 5 s.
    let mut frames = [voice(INSIDE, FAR, 1, 40), voice(FAR, INSIDE, 2, 40)].concat();
    frames.retain(|(time, _)| !(15e3..20e3).contains(time));
    let verdict = verdict(frames);
    assert!(verdict.starts_with("Uplink lost "), "{verdict}");
    assert!(verdict.matches("of the packets from 15 to 20 s").count() == 2, "{verdict}");
    assert!(!verdict.contains("No sound was sent"), "{verdict}");
}

#[test]
fn streams_of_one_direction_have_one_share() {
    let mut frames = voices(|index| index % 20 != 7);
    let received = video(FAR, INSIDE, 4, 30).into_iter().enumerate();
    frames.extend(received.filter(|(index, _)| index % 10 != 3).map(|(_, frame)| frame));
    let verdict = verdict(frames);
    // 75 of 1500 and 90 of 900.
    assert!(verdict.starts_with("Downlink lost 6.9 %"), "{verdict}");
}

// --- Silence ---

/// Voice of which only the packets of some times are sent, as behind a detector of speech.
fn speaking(from: &str, to: &str, ssrc: u32, speaks: impl Fn(f64) -> bool) -> Vec<Frame> {
    let mut frames = voice(from, to, ssrc, 40);
    frames.retain(|(time_ms, _)| speaks(*time_ms / 1e3));
    for (number, (_, packet)) in frames.iter_mut().enumerate() {
        packet[30..32].copy_from_slice(&(number as u16).to_be_bytes());
    }
    frames
}

#[test]
fn pauses_between_words_are_no_findings() {
    for pause_s in [1.0, 3.0, 6.0] {
        let period = pause_s + 2.0;
        let near = speaking(INSIDE, FAR, 1, |time_s| time_s % period < 2.0);
        let far = speaking(FAR, INSIDE, 2, |time_s| (time_s + 2.0) % period < 2.0);
        let verdict = verdict([near, far].concat());
        assert!(verdict.starts_with("Nothing limited"), "{pause_s} s: {verdict}");
    }
}

#[test]
fn one_long_pause_is_said() {
    let far = speaking(FAR, INSIDE, 2, |time_s| !(10.0..25.0).contains(&time_s));
    let verdict = verdict([voice(INSIDE, FAR, 1, 40), far].concat());
    assert!(verdict.starts_with("No audio was received from 10 to 25 s"), "{verdict}");
}

#[test]
fn sound_that_comes_only_in_the_second_half_went_one_way_before() {
    let late = voice(FAR, INSIDE, 2, 20);
    let late: Vec<Frame> = late.into_iter().map(|(at, packet)| (at + 15e3, packet)).collect();
    let words = "Sound went one way only: nothing was received in the first 15 s.";
    let verdict_of = verdict([voice(INSIDE, FAR, 1, 35), late].concat());
    assert!(verdict_of.starts_with(words), "{verdict_of}");
    let early = voice(FAR, INSIDE, 2, 12);
    let verdict = verdict([voice(INSIDE, FAR, 1, 35), early].concat());
    assert!(verdict.starts_with("Received audio ended at 12.0 s"), "{verdict}");
}

#[test]
fn a_stall_is_found_whatever_its_length_and_medium() {
    for stall_s in [0.6, 1.0, 3.0, 8.0] {
        let held = |(at, packet): Frame| match at {
            at if (10e3..10e3 + stall_s * 1e3).contains(&at) => (10e3 + stall_s * 1e3, packet),
            at => (at, packet),
        };
        for (name, sent, received) in [
            ("audio", voice(INSIDE, FAR, 1, 30), voice(FAR, INSIDE, 2, 30)),
            ("video", video(INSIDE, FAR, 1, 30), video(FAR, INSIDE, 2, 30)),
        ] {
            let received: Vec<Frame> = received.into_iter().map(held).collect();
            let words = format!("Received {name} stood still for {stall_s:.1} s");
            let verdict = verdict([sent, received].concat());
            assert!(verdict.starts_with(&words), "{words}: {verdict}");
        }
    }
}

// --- The clock of the capture ---

#[test]
fn a_clock_that_is_set_is_no_stall_and_moves_no_packet() {
    for by_s in [0.6, 3.0, 20.0, 86_400.0, 1.7e9, -0.6, -3.0, -20.0, -4_000.0] {
        let mut frames = call();
        frames.extend(voice(NEAR, FAR, 0x4444, 20));
        let mut frames = sorted(frames);
        for (index, (time, _)) in frames.iter_mut().enumerate() {
            *time += if index >= 1_000 { 5e6 + 1e3 * by_s } else { 5e6 };
        }
        let dump = read(&frames);
        let counted = counts(&dump);
        assert_eq!(counted, [(SENT, 600, 0, 0), (SENT, 1_000, 0, 0), (RECEIVED, 546, 54, 0)]);
        let answer = answer(&dump);
        let told = format!("{by_s} s: {} {}", answer.verdict, answer.details.join("; "));
        assert!(!answer.verdict.contains("stood still"), "{told}");
        let way = if by_s > 0.0 { "forward" } else { "back" };
        let words = format!("was set {way} by {:.1} s at 9.", by_s.abs());
        assert!(told.contains(&words), "{words}: {told}");
        assert!((19.0..21.0).contains(&answer.network.duration_s), "{told}");
    }
}

#[test]
fn a_clock_that_is_set_twice_is_corrected_twice() {
    let mut frames = sorted([voice(INSIDE, FAR, 1, 60), voice(FAR, INSIDE, 2, 60)].concat());
    for (index, (time, _)) in frames.iter_mut().enumerate() {
        *time += if index >= 2_000 { 5e3 } else { 0.0 };
        *time -= if index >= 4_000 { 2e3 } else { 0.0 };
    }
    let answer = answer(&read(&frames));
    let lines = answer.details.join("; ");
    assert!(answer.verdict.starts_with("Nothing limited this call in 60 s"), "{}", answer.verdict);
    assert!(lines.contains("forward by 5.0 s at 20.0 s"), "{lines}");
    assert!(lines.contains("back by 2.0 s at 40.0 s"), "{lines}");
}

#[test]
fn a_path_that_stands_still_in_both_directions_is_no_step_of_the_clock() {
    let mut frames = sorted([voice(INSIDE, FAR, 1, 30), voice(FAR, INSIDE, 2, 30)].concat());
    for (time, _) in &mut frames {
        *time = if (10e3..13e3).contains(time) { 13e3 } else { *time };
    }
    let answer = answer(&read(&frames));
    assert!(answer.verdict.contains("stood still for 3.0 s"), "{}", answer.verdict);
    assert!(!answer.details.join("; ").contains("clock"), "{:?}", answer.details);
}

// --- Ends and calls ---

/// Each packet behind a cooked header with this type.
fn cooked(frames: &[Frame], kind: impl Fn(&[u8]) -> u8) -> Vec<u8> {
    let wrap = |it: &[u8]| {
        let heading = [0, kind(it), 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
        [&heading[..], it].concat()
    };
    pcap(113, &wrapped(frames, wrap))
}

#[test]
fn a_mirror_that_received_all_packets_does_not_say_which_end_it_is() {
    for kind in [0, 3] {
        let dump = analyzed(cooked(&call(), |_| kind), None).unwrap();
        assert_eq!(counts(&dump), CALL);
        assert!(!details(&dump).contains("says which packets"), "{}", details(&dump));
    }
    // The other way round, it does.
    let far = |it: &[u8]| if it[12..16] == [198, 51, 100, 9] { 4 } else { 0 };
    let dump = analyzed(cooked(&call(), far), None).unwrap();
    assert_eq!(counts(&dump), [(SENT, 546, 54, 0), (RECEIVED, 600, 0, 0)]);
}

#[test]
fn a_router_is_known_by_the_others_behind_it() {
    let mut frames = [voice(FAR, NEAR, 2, 10), voice(NEAR, FAR, 1, 10)].concat();
    for second in 0..9 {
        let answer = udp("203.0.113.53:53", NEAR, 0, &[0, 1, 0x81, 0x80, 0, 0, 0, 0]);
        frames.push((f64::from(second) * 1e3, answer));
    }
    let with_addresses = |packet: &[u8]| {
        let is_near = packet[12..16] == [192, 0, 2, 7];
        let (own, other) = if is_near { (0xAA, 0xBB) } else { (0xBB, 0xAA) };
        [&[2, 0, 0, 0, 0, other, 2, 0, 0, 0, 0, own, 8, 0][..], packet].concat()
    };
    let dump = analyzed(pcap(1, &wrapped(&sorted(frames), with_addresses)), None).unwrap();
    assert!(details(&dump).contains("this end is 192.0.2.7"), "{}", details(&dump));
}

#[test]
fn what_a_server_forwards_with_holes_was_lost_before_it() {
    let (a, in_port) = ("192.0.2.10:4000", "192.0.2.1:10000");
    let (out_port, b) = ("192.0.2.1:10002", "192.0.2.20:6000");
    let forwarded = thinned(voice(out_port, b, 1, 20));
    let legs = [thinned(voice(a, in_port, 1, 20)), forwarded, voice(b, out_port, 2, 20)];
    let dump = read(&sorted([legs.concat(), voice(in_port, a, 2, 20)].concat()));
    assert_eq!(dump.connections.len(), 2);
    let lines = details(&dump);
    assert_eq!(lines.matches("this end is 192.0.2.1,").count(), 2, "{lines}");
    // The way to the next one lost nothing that this capture shows.
    let verdict = answer(&dump).verdict;
    assert!(verdict.starts_with("Downlink of 192.0.2.10 lost 9.1 %"), "{verdict}");
    assert!(!verdict.to_lowercase().contains("uplink"), "{verdict}");
    // An SSRC that both ends use is not sent on.
    let both = [thinned(voice(INSIDE, FAR, 1, 20)), voice(FAR, INSIDE, 1, 20)].concat();
    let verdict = answer(&analyzed(pcap(101, &sorted(both)), Some("10.0.0.5")).unwrap()).verdict;
    assert!(verdict.starts_with("Uplink lost 9.1 %"), "{verdict}");
}

#[test]
fn a_call_may_have_any_large_port() {
    // Those of SSDP, WS-Discovery, multicast DNS, LLMNR, WireGuard, and of tunnels.
    let ports = [1_900, 3_702, 5_353, 5_355, 51_820, 4_789, 6_081, 4_341, 6_635, 4_754, 2_152];
    for port in ports {
        let near = format!("10.0.0.5:{port}");
        // Sources, begins and times of all kinds.
        for ssrc in [0x4500_0054_u32, 0x6000_0000, 0x0800_4500, 7] {
            let received = thinned(voice(FAR, &near, ssrc, 10));
            let frames = sorted([voice(&near, FAR, ssrc + 1, 10), received].concat());
            let expected = [(SENT, 500, 0, 0), (RECEIVED, 455, 45, 0)];
            assert_eq!(counts(&read(&frames)), expected, "{port}, {ssrc:x}");
        }
    }
}

#[test]
fn a_call_of_a_few_packets_is_too_short_and_is_one() {
    let short = |frames: Vec<Frame>| frames.into_iter().take(15).collect::<Vec<Frame>>();
    let both = [short(voice(INSIDE, FAR, 1, 1)), short(voice(FAR, INSIDE, 2, 1))].concat();
    let verdict = verdict(both);
    assert!(verdict.contains("too short to say"), "{verdict}");
    // Among others that are longer, or with numbers that do not follow each other, it is noise.
    let strays = short(voice(FAR, "10.0.0.5:7000", 3, 1));
    let dump = read(&sorted([voice(INSIDE, FAR, 1, 10), strays.clone()].concat()));
    assert_eq!(streams(&dump).len(), 1);
    assert!(analyzed(pcap(101, &thinned(strays)), None).is_err());
}

#[test]
fn both_sides_of_an_address_translation_are_one_call() {
    let outside = "203.0.113.77:61000";
    let numbered = |frames: Vec<Frame>, first: u16| {
        let mut frames = frames;
        for (at, (_, packet)) in frames.iter_mut().enumerate() {
            packet[4..6].copy_from_slice(&(first + at as u16).to_be_bytes());
        }
        frames
    };
    let sides = [INSIDE, outside].map(|near| {
        let received = numbered(thinned(voice(FAR, near, 2, 20)), 30_000);
        [numbered(voice(near, FAR, 1, 20), 1), received].concat()
    });
    let mut frames = sides.concat();
    // Who is first differs from packet to packet.
    for (time, packet) in &mut frames {
        let is_second = packet[12] == 203 || packet[16] == 10;
        *time += if is_second { 0.2 } else { 0.0 };
    }
    let dump = read(&sorted(frames));
    assert_eq!(dump.connections.len(), 1, "{}", details(&dump));
    let mut lost: Vec<u64> = streams(&dump).iter().map(|it| it.lost).collect();
    lost.sort_unstable();
    assert_eq!(lost, [0, 91]);
}

#[test]
fn a_call_goes_on_between_other_sockets() {
    // Another port of a NAT, another network, and the way without the relay.
    let relay = "203.0.113.3:3478";
    for (near, far) in [("10.0.0.5:61000", FAR), ("10.9.0.8:45454", FAR), (INSIDE, relay)] {
        let mut frames = Vec::new();
        for (sent, received) in [((INSIDE, FAR), (FAR, INSIDE)), ((near, far), (far, near))] {
            let is_first = frames.is_empty();
            let direction = |(from, to), ssrc| voice(from, to, ssrc, 40);
            let all = [direction(sent, 1), thinned(direction(received, 2))].concat();
            frames.extend(all.into_iter().filter(|(at, _)| (*at < 20e3) == is_first));
        }
        let dump = read(&sorted(frames));
        assert_eq!(counts(&dump), [(SENT, 2_000, 0, 0), (RECEIVED, 1_818, 182, 0)], "{near}");
        let lines = details(&dump);
        let words = format!("from 20.0 s on, the call went between {near} and {far}");
        assert!(lines.contains(&words), "{words}: {lines}");
        assert!(lines.contains("this end is 10.0.0.5"), "{lines}");
    }
    // A stream that comes from two places at once has not moved.
    let twice = [voice(INSIDE, FAR, 1, 20), voice("10.9.0.8:45454", FAR, 1, 20)].concat();
    assert_eq!(streams(&read(&sorted(twice))).len(), 2);
}

#[test]
fn who_calls_again_from_the_same_ports_has_two_calls() {
    let later = |frames: Vec<Frame>| {
        let moved = frames.into_iter().map(|(at, packet)| (at + 90e3, packet));
        moved.collect::<Vec<Frame>>()
    };
    let first = [voice(INSIDE, FAR, 1, 10), voice(FAR, INSIDE, 2, 10)].concat();
    let again = [voice(INSIDE, FAR, 3, 10), thinned(voice(FAR, INSIDE, 4, 10))].concat();
    let dump = read(&sorted([first, later(again)].concat()));
    assert_eq!(dump.connections.len(), 2);
    // The same streams after a hold are the same call.
    let held = |ssrc: u32, frames: Vec<Frame>| {
        let mut frames = later(frames);
        frames.iter_mut().for_each(|(_, it)| it[36..40].copy_from_slice(&ssrc.to_be_bytes()));
        frames
    };
    let again = [held(1, voice(INSIDE, FAR, 1, 10)), held(2, voice(FAR, INSIDE, 2, 10))];
    let first = [voice(INSIDE, FAR, 1, 10), voice(FAR, INSIDE, 2, 10)].concat();
    let dump = read(&sorted([first, again.concat()].concat()));
    assert_eq!(dump.connections.len(), 1);
}

#[test]
fn numbers_that_count_up_without_a_clock_are_no_call() {
    let packet = |index: u32| {
        let bytes = rtp(1, index as u16, 12_345, 0, 48);
        (f64::from(index) * 20.0, udp(NEAR, FAR, 0, &bytes))
    };
    let frames: Vec<Frame> = (0..1_500).map(packet).collect();
    let error = analyzed(pcap(101, &frames), None).unwrap_err().to_string();
    assert!(error.contains("no RTP"), "{error}");
}

// --- Super-packets and copies ---

/// Datagrams of so many packets of this size, each a frame of video.
fn offloaded(from: &str, to: &str, ssrc: u32, (count, size): (u16, usize)) -> Vec<Frame> {
    let frame = |index: u32| {
        let parts = (0..count).map(|part| {
            let number = (index as u16).wrapping_mul(count).wrapping_add(part);
            rtp(96, number, index * 3_000, ssrc, size - 12)
        });
        let datagram: Vec<u8> = parts.flatten().collect();
        (f64::from(index) * 100.0 / 3.0, udp(from, to, 0, &datagram))
    };
    (0..600).map(frame).collect()
}

#[test]
fn datagrams_of_any_size_that_were_to_be_split_are() {
    let small = [(2, 606), (4, 300), (3, 60)];
    for shape in [(2, 999), (2, 800), (4, 500), (10, 1_200), (40, 1_440)].into_iter().chain(small) {
        let received = offloaded(FAR, INSIDE, 8, shape).into_iter().enumerate();
        let received = received.filter(|(index, _)| index % 10 != 3).map(|(_, frame)| frame);
        let sent = offloaded(INSIDE, FAR, 7, shape);
        let frames = sorted(sent.into_iter().chain(received).collect());
        let all = u64::from(shape.0) * 600;
        let expected = [(SENT, all, 0, 0), (RECEIVED, all * 9 / 10, all / 10, 0)];
        assert_eq!(counts(&read(&frames)), expected, "{shape:?}");
    }
}

#[test]
fn datagrams_that_were_cut_hide_no_loss() {
    let received = offloaded(FAR, INSIDE, 8, (10, 1_200)).into_iter().enumerate();
    let received = received.filter(|(index, _)| index % 10 != 3).map(|(_, frame)| frame);
    let whole = pcap(101, &received.collect::<Vec<Frame>>());
    let mut cut = whole[..24].to_vec();
    let mut at = 24;
    while at < whole.len() {
        let length = u32::from_le_bytes(*whole[at + 8..].first_chunk().unwrap()) as usize;
        cut.extend(&whole[at..at + 8]);
        cut.extend(128_u32.to_le_bytes());
        cut.extend(&whole[at + 12..at + 16 + 128]);
        at += 16 + length;
    }
    let dump = analyzed(cut, None).unwrap();
    let [facts] = &streams(&dump)[..] else { panic!("one stream") };
    // The last datagram has as many packets as its size allows.
    let all = facts.packets + facts.lost;
    assert_eq!((all, facts.lost), (6_000, 600), "{facts:?}");
}

#[test]
fn copies_of_the_network_are_in_the_jitter_and_those_of_the_capture_are_not() {
    let jitter = |later_ms: f64, is_same: bool, every: usize| {
        let mut frames = Vec::new();
        for (at, (time, mut packet)) in voice(FAR, INSIDE, 2, 20).into_iter().enumerate() {
            packet[4..6].copy_from_slice(&(1 + at as u16).to_be_bytes());
            frames.push((time, packet.clone()));
            if !is_same {
                packet[4] ^= 0x80;
            }
            if at % every == 0 {
                frames.push((time + later_ms, packet));
            }
        }
        streams(&read(&sorted(frames)))[0].jitter_ms.unwrap().0
    };
    assert!(jitter(3.0, true, 1) < 0.01);
    // RFC 3550 counts each packet as it comes: a step of 3 ms forth, and one back.
    assert!((2.9..3.0).contains(&jitter(3.0, false, 1)));
    assert!(jitter(3.0, false, 10) > 0.3);
}
