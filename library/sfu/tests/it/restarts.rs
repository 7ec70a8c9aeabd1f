//! Publishers that begin their RTP numbers anew, repeats at any rate, and layers that end.

use weir::{TimeDelta, Timestamp};
use weir_sfu::{Rewriter, Verdict};
use weir_wire::rtp::{PayloadType, RtpHeader, View};

fn packet(number: u16, now: Timestamp) -> Vec<u8> {
    let video = PayloadType::new(96).unwrap();
    let header = RtpHeader::new(1, video, number, (now.as_micros() * 9 / 100) as u32);
    let mut bytes = vec![0; header.size() + 100];
    header.emit(&mut bytes);
    bytes
}

/// A stream of one source, a packet each interval.
struct Stream {
    rewriter: Rewriter,
    now: Timestamp,
    interval: TimeDelta,
    number: u16,
}

impl Stream {
    fn new(packets_per_second: i64, number: u16) -> Self {
        let interval = TimeDelta::from_secs(1) / packets_per_second;
        let rewriter = Rewriter::new(90_000, false);
        Self { rewriter, now: Timestamp::ZERO, interval, number }
    }

    fn next(&mut self) -> Verdict {
        self.now += self.interval;
        self.number = self.number.wrapping_add(1);
        self.rewriter.rewrite(self.now, &mut packet(self.number, self.now), 0, true)
    }

    /// The time until the first packet is sent again, and the verdicts before it.
    fn until_sent(&mut self) -> (TimeDelta, Vec<Verdict>) {
        let (from, mut before) = (self.now, Vec::new());
        loop {
            match self.next() {
                Verdict::Forward { .. } => return (self.now - from, before),
                other => before.push(other),
            }
            assert!(before.len() < 70_000, "never");
        }
    }
}

// livekit/media-sdk 95: audio was dropped for 630 s, video for 185 to 1,051 s.
// [RFC3550 §A.1]
#[test]
fn numbers_that_begin_anew_cost_two_packets() {
    for per_second in [10, 30, 50, 170, 1_000, 5_000, 50_000] {
        for new in [0, 500, 900, 999, 5_000, 20_000, 33_000, 40_000, 60_000, 65_500] {
            let mut stream = Stream::new(per_second, 1_000);
            for _ in 0..6_000 {
                stream.next();
            }
            stream.number = new;
            let (time, before) = stream.until_sent();
            let most = stream.interval * 3;
            assert!(time <= most, "{per_second} a second to {new}: {time}");
            assert_eq!(before, [Verdict::Drop, Verdict::Lost], "{per_second} a second to {new}");
        }
    }
}

#[test]
fn one_damaged_number_changes_nothing() {
    let mut stream = Stream::new(100, 65_000);
    for step in 0..5_000_u16 {
        let number = step.wrapping_mul(24_593);
        // A number near the newest cannot be told from one after a loss.
        let is_near = (number.wrapping_sub(stream.number) as i16).unsigned_abs() <= 200;
        if step % 7 == 3 && !is_near {
            let mut stray = packet(number, stream.now);
            let verdict = stream.rewriter.rewrite(stream.now, &mut stray, 0, true);
            assert_eq!(verdict, Verdict::Drop, "at {step}");
        }
        assert!(matches!(stream.next(), Verdict::Forward { .. }), "at {step}");
    }
}

// Repeats of repeats are in order, and as late as they were.
#[test]
fn a_run_of_packets_that_come_twice_is_no_restart() {
    for per_second in [50, 500, 5_000, 50_000] {
        let mut stream = Stream::new(per_second, 3);
        for _ in 0..per_second {
            stream.next();
        }
        let late = TimeDelta::from_millis(200).as_nanos() / stream.interval.as_nanos();
        for back in (1..late.min(16_000)).rev() {
            let at = stream.now - stream.interval * back;
            let number = stream.number.wrapping_sub(back as u16);
            let verdict = stream.rewriter.rewrite(stream.now, &mut packet(number, at), 0, true);
            assert_eq!(verdict, Verdict::Drop, "{per_second} a second, {back} back");
        }
        assert!(matches!(stream.next(), Verdict::Forward { .. }));
    }
}

// licode 1008, Haivision/srt 911: 0 of 199 repeats were forwarded from 20 Mbit/s on.
#[test]
fn repeats_of_the_publisher_are_forwarded_at_any_rate() {
    let cases =
        [(10, 1_500), (170, 1_500), (2_000, 1_500), (6_000, 900), (50_000, 150), (100_000, 60)];
    for (per_second, late_ms) in cases {
        let mut stream = Stream::new(per_second, 60_000);
        let (mut missing, mut sent, mut waits) = (0, 0, std::collections::VecDeque::new());
        for step in 0..40_000 {
            let is_due = |&(due, _, _): &(Timestamp, _, _)| due <= stream.now;
            if waits.front().is_some_and(is_due) {
                let (_, number, mut late): (Timestamp, u16, Vec<u8>) = waits.pop_front().unwrap();
                let verdict = stream.rewriter.rewrite(stream.now, &mut late, 0, true);
                let Verdict::Forward { sequence_number } = verdict else {
                    panic!("{per_second} a second: {number} is {verdict:?}");
                };
                assert_eq!(sequence_number, number, "the numbers are as they were");
                assert_eq!(View::parse(&late).unwrap().sequence_number(), number);
                sent += 1;
            }
            if step % 100 == 50 {
                stream.now += stream.interval;
                stream.number = stream.number.wrapping_add(1);
                let due = stream.now + TimeDelta::from_millis(late_ms);
                waits.push_back((due, stream.number, packet(stream.number, stream.now)));
                missing += 1;
            } else {
                let verdict = stream.next();
                assert!(matches!(verdict, Verdict::Forward { .. }), "{verdict:?} at {step}");
            }
        }
        assert!(
            sent >= (missing - waits.len()).max(1),
            "{per_second} a second: {sent} of {missing}"
        );
    }
}
