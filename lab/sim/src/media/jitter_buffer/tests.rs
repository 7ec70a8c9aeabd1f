//! The buffer with frames of given delays.

use weir::units::DataSize;

use super::*;

const INTERVAL: TimeDelta = TimeDelta::from_nanos(1_000_000_000 / 30);

fn millis(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

/// A frame by its number and its delay until it is complete.
fn frame(number: i64, delay: TimeDelta) -> Frame {
    let captured = Timestamp::ZERO + INTERVAL * number;
    Frame {
        captured,
        received: captured + delay,
        key: number == 0,
        size: DataSize::from_bytes(4_000),
        ..Frame::default()
    }
}

/// Plays frames as they are complete, but none before those captured earlier. Returns what is on
/// the screen: when, and with which delay.
fn play(frames: &[Frame]) -> (Vec<(Timestamp, Rendered)>, JitterBuffer) {
    let mut buffer = JitterBuffer::new(Timestamp::ZERO);
    let mut shown = Vec::new();
    let mut free = Timestamp::ZERO;
    for frame in frames {
        free = free.max(frame.received);
        run_until(&mut buffer, free, &mut shown);
        buffer.on_frame(free, *frame);
    }
    run_until(&mut buffer, free + TimeDelta::from_secs(5), &mut shown);
    (shown, buffer)
}

fn run_until(buffer: &mut JitterBuffer, end: Timestamp, shown: &mut Vec<(Timestamp, Rendered)>) {
    while let Some(due) = buffer.next_deadline().filter(|due| *due <= end) {
        shown.extend(buffer.render(due).map(|rendered| (due, rendered)));
    }
}

/// Delays in ms on the way, in which neighbours are alike and some frames are very late.
fn wild(seed: i64) -> impl Iterator<Item = i64> {
    (0..900).map(move |number| {
        let wave = (number * (7 + seed % 5) % 90 - 45).abs();
        let late = if (number * 7_919 + seed * 104_729) % 97 == 0 { 400 } else { 0 };
        20 + wave + late
    })
}

#[test]
fn with_a_constant_delay_frames_are_shown_evenly_and_soon() {
    let frames: Vec<Frame> = (0..300).map(|number| frame(number, millis(40))).collect();
    let (shown, _) = play(&frames);
    assert_eq!(shown.len(), 300);
    let delays = shown[60..].iter().map(|(_, rendered)| rendered.delay);
    let (least, most) = (delays.clone().min().unwrap(), delays.max().unwrap());
    // Path 40 ms, jitter 11 ms, decoder 2 ms, and a tick may come 5 ms after the time.
    assert!(least >= millis(50) && most <= millis(58), "{least} to {most}");
    assert!(shown.iter().all(|(_, rendered)| rendered.freeze.is_none()));
}

#[test]
fn no_picture_is_shown_before_it_came_or_before_an_older_one() {
    for seed in 0..20 {
        let frames: Vec<Frame> =
            (0..).zip(wild(seed)).map(|(number, delay)| frame(number, millis(delay))).collect();
        let (shown, _) = play(&frames);
        assert!(shown.len() > 700, "{} of 900", shown.len());
        for (at, rendered) in &shown {
            assert_eq!(*at - rendered.captured, rendered.delay);
            assert!(rendered.delay >= millis(20) + DECODE, "{}", rendered.delay);
        }
        for pair in shown.windows(2) {
            assert!(pair[0].0 <= pair[1].0 && pair[0].1.captured < pair[1].1.captured);
        }
    }
}

#[test]
fn jitter_makes_the_delay_longer_and_its_end_makes_it_shorter() {
    let delay = |number: i64| match number {
        300..900 => 40 + number * 7_919 % 60,
        _ => 40,
    };
    let frames: Vec<Frame> =
        (0..3_000).map(|number| frame(number, millis(delay(number)))).collect();
    let (shown, _) = play(&frames);
    let mean = |range: std::ops::Range<usize>| {
        let part = &shown[range];
        let sum = part.iter().map(|(_, rendered)| rendered.delay.as_millis_f64()).sum::<f64>();
        sum / part.len() as f64
    };
    let (before, during, after) = (mean(100..300), mean(600..900), mean(2_800..2_900));
    assert!(during > before + 30.0, "{before}, {during}");
    assert!(after < before + 25.0, "{before}, {after}");
}

// [WEBRTC-STATS §8]
#[test]
fn a_frame_that_is_half_a_second_late_is_a_stall() {
    let delay = |number: i64| millis(if number == 150 { 540 } else { 40 });
    let frames: Vec<Frame> = (0..300).map(|number| frame(number, delay(number))).collect();
    let (shown, _) = play(&frames);
    let stalls: Vec<_> = shown.iter().filter_map(|(_, rendered)| rendered.freeze).collect();
    assert_eq!(stalls.len(), 1);
    assert!((millis(450)..millis(560)).contains(&stalls[0]), "{}", stalls[0]);
}

// [LIBWEBRTC §VideoStreamBufferController]
#[test]
fn a_key_frame_makes_late_frames_before_it_needless() {
    let mut frames: Vec<Frame> = (0..300).map(|number| frame(number, millis(40))).collect();
    let burst = frames[119].received + millis(400);
    for frame in &mut frames[120..132] {
        frame.received = burst;
    }
    frames[131].key = true;
    let (shown, _) = play(&frames);
    let skipped = 300 - shown.len();
    assert!((9..=11).contains(&skipped), "{skipped}");
}

#[test]
fn frames_completed_by_retransmissions_say_nothing_of_the_jitter() {
    let mut frames: Vec<Frame> = (0..600).map(|number| frame(number, millis(40))).collect();
    for frame in frames.iter_mut().skip(200).step_by(20) {
        frame.received += millis(90);
        frame.repeated = true;
    }
    let (_, mut buffer) = play(&frames);
    assert!(buffer.jitter_delay < millis(13), "{}", buffer.jitter_delay);
    buffer.on_round_trip_time(Timestamp::from_secs(19), millis(50));
    let estimate = buffer.jitter.estimate(Timestamp::from_secs(20));
    assert!((millis(55)..millis(58)).contains(&estimate), "{estimate}");
}

fn at(ms: f64) -> Timestamp {
    Timestamp::ZERO + TimeDelta::from_secs_f64(ms / 1e3)
}

// [LIBWEBRTC §DecodeSynchronizer]
#[test]
fn a_frame_goes_to_the_decoder_at_the_last_tick_before_its_time() {
    // Ticks are at 15.625, 31.25, 46.875 ms.
    assert_eq!(tick_before(at(50.0), at(3.0)), at(46.875));
    assert_eq!(tick_before(at(46.9), at(3.0)), at(46.875));
    assert_eq!(tick_before(at(12.0), at(3.0)), at(15.625), "less than 5 ms late");
    assert_eq!(tick_before(at(10.0), at(3.0)), at(3.0), "at once, and not too late");
    assert_eq!(tick_before(at(1.0), at(3.0)), at(3.0), "late already");
}
