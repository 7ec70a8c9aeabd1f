//! The player with packets of given delays.

use super::*;

fn millis(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

const PLAIN: Speech = Speech::plain(TimeDelta::from_millis(20));
const WITH_COPIES: Speech = Speech { copied: PLAIN.length, ..PLAIN };

/// Whether the speech of a packet of 20 ms is taken for a voice, and so copied.
fn has_copy(number: i64) -> bool {
    recording::has_copy(Timestamp::ZERO + PLAIN.length * number, PLAIN.length)
}

/// Plays packets that come with these delays in ms; `None` is lost. Returns what was heard after
/// the first ten seconds.
fn heard(delays: impl Iterator<Item = Option<i64>>) -> Heard {
    heard_of(PLAIN, delays)
}

fn heard_of(speech: Speech, delays: impl Iterator<Item = Option<i64>>) -> Heard {
    let mut player = Player::new(speech);
    let mut arrivals: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (number, delay) in (1..).zip(delays) {
        let end = Timestamp::ZERO + speech.length * number;
        arrivals.extend(delay.map(|delay| (end + millis(delay), end)));
    }
    arrivals.sort();
    let mut at_ten = false;
    for (now, end) in arrivals {
        while let Some(due) = player.next_deadline().filter(|due| *due < now) {
            player.on_deadline(due);
        }
        if !at_ten && now > Timestamp::from_secs(10) {
            at_ten = true;
            player.take_heard();
        }
        player.on_packet(now, end);
    }
    player.take_heard()
}

const PACKETS: i64 = 3_000;

#[test]
fn with_a_constant_delay_nothing_is_made_up_and_the_delay_is_the_paths() {
    let heard = heard((0..PACKETS).map(|_| Some(40)));
    assert_eq!((heard.concealed, heard.concealments), (TimeDelta::ZERO, 0));
    // Packet 20 ms, path 40 ms, target 20 ms and up to the granularity.
    let delay = heard.delay.unwrap();
    assert!((millis(60)..=millis(110)).contains(&delay), "{delay}");
    assert_eq!(heard.target, Some(millis(20)));
}

#[test]
fn lost_packets_are_made_up_one_for_one_and_do_not_change_the_delay() {
    let clean = heard((0..PACKETS).map(|_| Some(40)));
    let lossy = heard((0..PACKETS).map(|number| (number % 20 != 0).then_some(40)));
    let share = lossy.concealed.as_secs_f64() / lossy.played.as_secs_f64();
    assert!((share - 0.05).abs() < 0.01, "{share}");
    let events = lossy.concealments as f64 / lossy.played.as_secs_f64();
    assert!((events - 2.5).abs() < 0.3, "{events}");
    assert!((lossy.delay.unwrap() - clean.delay.unwrap()).abs() < millis(25));
}

// [LIBWEBRTC §AudioDecoderOpus]
#[test]
fn with_fec_a_single_lost_packet_is_restored_as_the_target_waits_for_it() {
    let lossy = (0..PACKETS).map(|number| (number % 10 != 0 || !has_copy(number)).then_some(40));
    let heard = heard_of(WITH_COPIES, lossy);
    let share = heard.concealed.as_secs_f64() / heard.played.as_secs_f64();
    assert!(share < 0.005, "{share}");
    assert_eq!(heard.target, Some(millis(40)));
}

#[test]
fn with_fec_what_is_no_voice_has_no_copy() {
    let lossy = (0..PACKETS).map(|number| (number % 10 != 0 || has_copy(number)).then_some(40));
    let heard = heard_of(WITH_COPIES, lossy);
    // One packet in ten, of the 15 % that are no voice.
    let share = heard.concealed.as_secs_f64() / heard.played.as_secs_f64();
    assert!((0.013..0.017).contains(&share), "{share}");
}

#[test]
fn with_fec_only_the_last_of_successive_lost_packets_has_a_copy() {
    let is_lost =
        |number: i64| number % 40 < 4 && (0..4).all(|more| has_copy(number / 40 * 40 + more));
    let lost = (500..PACKETS).filter(|number| is_lost(*number)).count() as f64;
    let lossy = (0..PACKETS).map(|number| (!is_lost(number)).then_some(40));
    let heard = heard_of(WITH_COPIES, lossy);
    let share = heard.concealed.as_secs_f64() / (0.02 * lost);
    assert!((share - 0.75).abs() < 0.05, "{share}");
}

// [RFC2198]
#[test]
fn with_red_two_lost_in_a_row_have_copies_and_the_target_waits_for_both() {
    let lossy =
        (0..PACKETS).map(|number| (number % 10 >= 2 || !has_copy(number / 10 * 10)).then_some(40));
    let heard = heard_of(Speech { red: true, ..WITH_COPIES }, lossy);
    let share = heard.concealed.as_secs_f64() / heard.played.as_secs_f64();
    assert!(share < 0.01, "{share}");
    assert_eq!(heard.target, Some(millis(60)));
}

#[test]
fn a_lost_packet_of_60_ms_is_made_up_for_60_ms_and_a_copy_adds_a_packet() {
    let long = Speech { length: millis(60), ..PLAIN };
    let is_voice =
        |number: i64| recording::has_copy(Timestamp::ZERO + long.length * number, long.length);
    let lossy = |number: i64| (number % 10 != 0 || !is_voice(number)).then_some(40);
    let plain = heard_of(long, (0..1_000).map(lossy));
    let share = plain.concealed.as_secs_f64() / plain.played.as_secs_f64();
    assert!((share - 0.09).abs() < 0.01, "{share}");
    let copies = heard_of(Speech { copied: long.length, ..long }, (0..1_000).map(lossy));
    let share = copies.concealed.as_secs_f64() / copies.played.as_secs_f64();
    assert!(share < 0.01, "{share}");
    assert_eq!(copies.target, Some(millis(80)));
}

// [RFC6716 §3.1]: hybrid frames have 20 ms at most.
#[test]
fn of_a_lost_packet_with_short_copies_only_the_end_is_not_made_up() {
    let long = Speech { length: millis(60), ..PLAIN };
    let is_voice = |number: i64| {
        recording::has_copy(Timestamp::ZERO + long.length * (number + 1) - millis(20), millis(20))
    };
    let lossy = |number: i64| (number % 10 != 0 || !is_voice(number)).then_some(40);
    let plain = heard_of(long, (0..1_000).map(lossy));
    let short = heard_of(Speech { copied: millis(20), ..long }, (0..1_000).map(lossy));
    let share = short.concealed.as_secs_f64() / plain.concealed.as_secs_f64();
    assert!((share - 2.0 / 3.0).abs() < 0.05, "{share}");
}

#[test]
fn jitter_raises_the_target_and_the_delay_and_so_little_is_made_up() {
    let jitter = |number: i64| Some(40 + number * 7_919 % 80);
    let heard = heard((0..PACKETS).map(jitter));
    let share = heard.concealed.as_secs_f64() / heard.played.as_secs_f64();
    assert!(share < 0.02, "{share}");
    assert!(heard.target.unwrap() >= millis(60), "{:?}", heard.target);
    assert!(heard.delay.unwrap() >= millis(100), "{:?}", heard.delay);
}

#[test]
fn after_a_jump_of_the_path_the_delay_comes_back() {
    // Half a second of the path's delay rises by 300 ms, in the first ten seconds.
    let delay = |number: i64| Some(if (200..225).contains(&number) { 340 } else { 40 });
    let heard = heard((0..PACKETS).map(delay));
    assert!(heard.delay.unwrap() < millis(300), "{:?}", heard.delay);
    assert!(heard.shortened > TimeDelta::ZERO || heard.delay.unwrap() < millis(150));
}

#[test]
fn whatever_the_delays_no_moment_is_heard_before_it_came() {
    for seed in 0..20 {
        let delay = |number: i64| {
            let wild = number * (7_919 + seed) % 97;
            (wild != 5).then_some(20 + wild * 2)
        };
        let heard = heard((0..PACKETS).map(delay));
        assert!(heard.delay.unwrap() >= millis(40), "{:?}", heard.delay);
        assert!(heard.concealed <= heard.played);
    }
}

// docs/reference/quality.md, NETEQ-D5
#[test]
fn with_dtx_a_pause_is_made_up_and_the_delay_stays() {
    let speech = Speech { dtx: true, ..WITH_COPIES };
    let starts = (0..PACKETS).map(|number| Timestamp::ZERO + speech.length * number);
    let sent = starts.map(|start| (!recording::is_left_out(start, speech.length)).then_some(40));
    let with = heard_of(speech, sent);
    let without = heard_of(WITH_COPIES, (0..PACKETS).map(|_| Some(40)));
    // Five pauses of 140 ms in 50 s.
    let share = with.concealed.as_secs_f64() / with.played.as_secs_f64();
    assert!((share - 0.014).abs() < 0.004, "{share}");
    assert_eq!((with.concealments, without.concealments), (5, 0));
    assert!((with.delay.unwrap() - without.delay.unwrap()).abs() < millis(15));
}
