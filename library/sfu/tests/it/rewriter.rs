//! Any order of switches, losses, reorderings and wraps gives a stream that can be decoded.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir::Timestamp;
use weir_sfu::{PayloadDescriptor, Rewriter, Verdict};
use weir_wire::rtp::{PayloadType, RtpHeader, View};

const PACKETS_PER_FRAME: u16 = 2;

/// An encoder's stream of VP8: frames of two packets, every other one in temporal layer 1.
#[derive(Clone, Debug)]
struct Stream {
    ssrc: u32,
    sequence_number: u16,
    timestamp: u32,
    picture_id: u16,
    base_index: u8,
    frames: u32,
}

/// A packet on its way in.
#[derive(Clone, Debug)]
struct Incoming {
    bytes: Vec<u8>,
    source: u8,
    temporal: u8,
    starts_key_frame: bool,
}

impl Stream {
    fn frame(&mut self, source: u8, is_key: bool) -> Vec<Incoming> {
        let temporal = if is_key { 0 } else { (self.frames % 2) as u8 };
        self.frames = if is_key { 1 } else { self.frames + 1 };
        self.timestamp = self.timestamp.wrapping_add(3_000);
        self.picture_id = (self.picture_id + 1) & 0x7fff;
        if temporal == 0 {
            self.base_index = self.base_index.wrapping_add(1);
        }
        let mut packets = Vec::new();
        for part in 0..PACKETS_PER_FRAME {
            let header = RtpHeader::new(
                self.ssrc,
                PayloadType::new(96).unwrap(),
                self.sequence_number,
                self.timestamp,
            )
            .with_marker(part + 1 == PACKETS_PER_FRAME);
            self.sequence_number = self.sequence_number.wrapping_add(1);
            let mut bytes = vec![0; header.size()];
            header.emit(&mut bytes);
            let start = if part == 0 { 0x90 } else { 0x80 };
            let id = [0x80 | (self.picture_id >> 8) as u8, self.picture_id as u8];
            bytes.extend_from_slice(&[start, 0xe0, id[0], id[1], self.base_index, temporal << 6]);
            bytes.extend_from_slice(&[u8::from(!is_key), source, part as u8]);
            let starts_key_frame = is_key && part == 0;
            packets.push(Incoming { bytes, source, temporal, starts_key_frame });
        }
        packets
    }
}

/// What a script does to a frame.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Another stream is wanted from here on.
    switch_to: Option<u8>,
    is_key: bool,
    lose: Option<u16>,
    delay: Option<u16>,
    keep_temporal: bool,
    pause: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        prop::option::weighted(0.1, 0_u8..3),
        prop::bool::weighted(0.15),
        prop::option::weighted(0.1, 0..PACKETS_PER_FRAME),
        prop::option::weighted(0.2, 1_u16..9),
        any::<bool>(),
        prop::bool::weighted(0.02),
    );
    let step = step.prop_map(|(switch_to, is_key, lose, delay, keep_temporal, pause)| Step {
        switch_to,
        is_key,
        lose,
        delay,
        keep_temporal,
        pause,
    });
    prop::collection::vec(step, 1..200)
}

fn streams(start: [u16; 3], time: u32) -> Vec<Stream> {
    let stream = |index: usize| Stream {
        ssrc: index as u32,
        sequence_number: start[index],
        timestamp: time.wrapping_mul(index as u32 + 1),
        picture_id: start[index] & 0x7fff,
        base_index: start[index] as u8,
        frames: 0,
    };
    (0..3).map(stream).collect()
}

/// A packet on its way out, by its unwrapped number.
struct Outgoing {
    timestamp: i64,
    picture_id: u16,
    is_fill: bool,
}

struct Run {
    rewriter: Rewriter,
    wanted: u8,
    active: Option<u8>,
    keep_temporal: bool,
    out: BTreeMap<i64, Outgoing>,
    /// Last unwrapped number and time.
    last: Option<(i64, i64)>,
    lost_any: bool,
}

impl Run {
    /// What a subscriber does with a packet.
    fn on_packet(&mut self, now: Timestamp, packet: &Incoming) -> Result<(), TestCaseError> {
        if packet.starts_key_frame && packet.source == self.wanted {
            self.active = Some(self.wanted);
        }
        if self.active != Some(packet.source) {
            return Ok(());
        }
        let mut bytes = packet.bytes.clone();
        let keep = packet.temporal == 0 || self.keep_temporal;
        match self.rewriter.rewrite(now, &mut bytes, packet.source, keep) {
            Verdict::Forward { sequence_number } => self.sent(&bytes, sequence_number, false)?,
            Verdict::Fill { sequence_number } => self.sent(&bytes, sequence_number, true)?,
            Verdict::Lost => self.active = None,
            _ => {}
        }
        Ok(())
    }

    fn sent(&mut self, bytes: &[u8], number: u16, is_fill: bool) -> Result<(), TestCaseError> {
        let view = View::parse(bytes).expect("it stays RTP");
        prop_assert_eq!(view.sequence_number(), number);
        let (number, time) = match self.last {
            None => (i64::from(number), i64::from(view.timestamp())),
            Some((last, time)) => (
                last + i64::from(number.wrapping_sub(last as u16) as i16),
                time + i64::from(view.timestamp().wrapping_sub(time as u32) as i32),
            ),
        };
        self.last = self.last.max(Some((number, time)));
        let picture = PayloadDescriptor::parse(view.payload()).unwrap_or_default();
        prop_assert_eq!(is_fill, view.payload().is_empty());
        let picture_id = picture.picture_id.unwrap_or(0);
        let sent = Outgoing { timestamp: time, picture_id, is_fill };
        prop_assert!(self.out.insert(number, sent).is_none(), "number {} twice", number);
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let mut before: Option<(&i64, &Outgoing)> = None;
        for (number, packet) in &self.out {
            if let Some((last, earlier)) = before {
                prop_assert!(packet.timestamp >= earlier.timestamp, "time goes back at {}", number);
                let step = packet.picture_id.wrapping_sub(earlier.picture_id) & 0x7fff;
                if !packet.is_fill && !earlier.is_fill {
                    prop_assert!(step < 1 << 14, "picture goes back at {}", number);
                    let same_time = packet.timestamp == earlier.timestamp;
                    prop_assert_eq!(step == 0, same_time, "a frame has one picture id: {}", number);
                }
                if !self.lost_any {
                    prop_assert_eq!(*number, last + 1);
                    prop_assert!(step <= 1, "a picture is missing at {}", number);
                }
            }
            before = Some((number, packet)).filter(|(_, packet)| !packet.is_fill).or(before);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_order_of_events_gives_a_stream_that_can_be_decoded(
        steps in steps(),
        start in any::<[u16; 3]>(),
        time in any::<u32>(),
    ) {
        let mut streams = streams(start, time);
        let mut run = Run {
            rewriter: Rewriter::new(90_000, true),
            wanted: 0,
            active: None,
            keep_temporal: true,
            out: BTreeMap::new(),
            last: None,
            lost_any: false,
        };
        // Packets with the step at which they arrive; a delay moves both packets of a frame apart.
        let mut flying: Vec<(usize, usize, Incoming)> = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let now = Timestamp::from_millis(index as i64 * 33);
            if let Some(wanted) = step.switch_to {
                run.wanted = wanted;
            }
            if step.pause {
                run.active = None;
                run.rewriter.pause();
            }
            for source in 0..3_u8 {
                let is_key = step.is_key || index == 0;
                let packets = streams[usize::from(source)].frame(source, is_key);
                for (part, packet) in packets.into_iter().enumerate() {
                    let is_late = step.delay.is_some() && part == 0;
                    if step.lose == Some(part as u16) || is_late {
                        run.lost_any = true;
                    }
                    if step.lose != Some(part as u16) {
                        let delay = if is_late { usize::from(step.delay.unwrap_or(0)) } else { 0 };
                        flying.push((index + delay, flying.len(), packet));
                    }
                }
            }
            // The choice of temporal layers holds for whole frames, so it changes after arrivals.
            let mut rest = Vec::new();
            for (due, order, packet) in flying.drain(..) {
                if due <= index {
                    run.on_packet(now, &packet)?;
                } else {
                    rest.push((due, order, packet));
                }
            }
            flying = rest;
            run.keep_temporal = step.keep_temporal;
        }
        run.check()?;
    }

    #[test]
    fn malformed_packets_never_panic(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..60), 0_u8..3, any::<bool>()), 0..100,
        ),
        is_rtp in any::<bool>(),
    ) {
        let mut rewriter = Rewriter::new(90_000, true);
        for (mut bytes, source, keep) in packets {
            if let Some(first) = bytes.first_mut().filter(|_| is_rtp) {
                *first = *first & 0x3f | 0x80;
            }
            rewriter.rewrite(Timestamp::ZERO, &mut bytes, source, keep);
        }
    }
}

#[test]
fn a_missing_packet_is_known_by_the_publishers_number() {
    let mut stream = streams([65_530, 0, 0], 0).remove(0);
    let mut rewriter = Rewriter::new(90_000, true);
    let mut packets = stream.frame(0, true);
    packets.extend(stream.frame(0, false));
    let mut first = packets[0].bytes.clone();
    rewriter.rewrite(Timestamp::ZERO, &mut first, 0, true);
    let mut third = packets[2].bytes.clone();
    let verdict = rewriter.rewrite(Timestamp::ZERO, &mut third, 0, true);
    assert_eq!(verdict, Verdict::Forward { sequence_number: 65_532 });
    assert_eq!(rewriter.missing(65_531), Some(65_531));
    let mut second = packets[1].bytes.clone();
    let verdict = rewriter.rewrite(Timestamp::ZERO, &mut second, 0, false);
    assert_eq!(verdict, Verdict::Fill { sequence_number: 65_531 });
    assert_eq!(rewriter.missing(65_531), None);
    assert_eq!(rewriter.rewrite(Timestamp::ZERO, &mut second, 0, true), Verdict::Drop);
}

/// Timestamps that leave, in units of frames, of frames that are shown in this order.
fn shown(rewriter: &mut Rewriter, from: u16, order: &[u32]) -> Vec<i64> {
    let mut out = Vec::new();
    for (index, &frame) in order.iter().enumerate() {
        let number = from.wrapping_add(index as u16);
        let header = RtpHeader::new(1, PayloadType::new(96).unwrap(), number, frame * 3_000);
        let mut bytes = vec![0; header.size() + 10];
        header.emit(&mut bytes);
        let now = Timestamp::from_millis(i64::from(number) * 33);
        assert!(matches!(rewriter.rewrite(now, &mut bytes, 0, true), Verdict::Forward { .. }));
        let time = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        out.push(i64::from(time.cast_signed()) / 3_000);
    }
    out
}

// H.264 of cameras and of broadcasters: their timestamps ran at twice the speed.
#[test]
fn pictures_that_are_shown_before_others_keep_their_times() {
    for between in 0..16 {
        let mut order = vec![0];
        for group in 0..40 {
            let reference = (group + 1) * (between + 1);
            order.push(reference);
            for frame in reference - between..reference {
                order.push(frame);
            }
        }
        let mut rewriter = Rewriter::new(90_000, false);
        let expected: Vec<i64> = order.iter().map(|&frame| i64::from(frame)).collect();
        assert_eq!(shown(&mut rewriter, 0, &order), expected, "{between} between");
        assert_eq!(
            rewriter.newest_timestamp().unwrap().0 / 3_000,
            order.iter().copied().max().unwrap()
        );
    }
}

#[test]
fn a_clock_that_goes_back_goes_on_where_it_was() {
    for back in [1, 20, 50, 70, 3_000, 100_000] {
        let start = 200_000;
        let mut order: Vec<u32> = (start..start + 100).collect();
        order.extend(start + 100 - back..start + 200 - back);
        for (clock_rate, is_vp8) in [(90_000, false), (90_000, true), (48_000, false)] {
            let mut rewriter = Rewriter::new(clock_rate, is_vp8);
            let out = shown(&mut rewriter, 0, &order);
            let before = out[99];
            let late = out[100..].iter().filter(|&&time| time < before).count();
            assert!(late <= 16, "{back} at {clock_rate}: {late}");
            let end = out[199] - before;
            assert!((83..=100).contains(&end), "{back} at {clock_rate}: {end}");
        }
    }
}

/// A packet of a picture of VP8, whose number has 7 bits or 15.
fn picture(number: u16, picture: u16, is_long: bool) -> Vec<u8> {
    let header =
        RtpHeader::new(1, PayloadType::new(96).unwrap(), number, u32::from(picture) * 3_000);
    let mut bytes = vec![0; header.size()];
    header.emit(&mut bytes);
    bytes.extend_from_slice(&[0x90, 0x80]);
    let high = if is_long { Some(0x80 | (picture >> 8) as u8) } else { None };
    bytes.extend(high);
    bytes.push(if is_long { picture as u8 } else { picture as u8 & 0x7f });
    bytes.extend_from_slice(&[1, 2, 3]);
    bytes
}

// Numbers of 7 bits come again after 4 s: what came late of a picture was taken for a part of one
// that was left out 17 s before, and lost its payload. [RFC7741 §4.2]
#[test]
fn a_picture_that_comes_late_is_sent_whatever_was_left_out_under_its_number() {
    for (is_long, left_out) in [(false, 30), (false, 200), (false, 1_000), (true, 1_000)] {
        let mut rewriter = Rewriter::new(90_000, true);
        let (mut number, mut now) = (0, Timestamp::ZERO);
        let mut send = |id: u16, number: u16, keep: bool| {
            now += weir::TimeDelta::from_millis(33);
            let mut bytes = picture(number, id, is_long);
            let verdict = rewriter.rewrite(now, &mut bytes, 0, keep);
            let sent = PayloadDescriptor::parse(View::parse(&bytes).unwrap().payload());
            (verdict, sent.ok().and_then(|sent| sent.picture_id))
        };
        // Every other picture is left out, and then none for longer than what is remembered.
        for id in 0..left_out {
            send(id, number, id % 2 == 0);
            number += 1;
        }
        let mask = if is_long { 0x7fff } else { 0x7f };
        let (mut last, mut id) = (None, left_out);
        while id < left_out + 600 {
            let is_late = id > left_out + 70 && id % 5 == 0;
            let after = if is_late { send(id + 1, number + 1, true).1 } else { None };
            let (verdict, own) = send(id, number, true);
            assert!(matches!(verdict, Verdict::Forward { .. }), "{is_long}: {id}, {verdict:?}");
            if let Some(last) = last {
                assert_eq!(own, Some((last + 1) & mask), "{is_long}: {id}");
            }
            last = after.or(own);
            id += if is_late { 2 } else { 1 };
            number += if is_late { 2 } else { 1 };
        }
        // A part of a picture of which another part was left out stays out.
        send(id, number, false);
        send(id + 1, number + 2, true);
        let (verdict, _) = send(id, number + 1, true);
        assert!(matches!(verdict, Verdict::Fill { .. }), "{is_long}: {verdict:?}");
    }
}
