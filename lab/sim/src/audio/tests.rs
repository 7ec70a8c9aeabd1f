//! The player with packets of given delays.

use super::*;

fn millis(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

/// Plays packets that come with these delays in ms; `None` is lost. Returns what was heard after
/// the first ten seconds.
fn heard(delays: impl Iterator<Item = Option<i64>>) -> Heard {
    heard_by(Player::default(), delays)
}

fn heard_by(mut player: Player, delays: impl Iterator<Item = Option<i64>>) -> Heard {
    let mut arrivals: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (number, delay) in (1..).zip(delays) {
        let end = Timestamp::ZERO + PACKET * number;
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
fn with_a_constant_delay_nothing_is_made_up_and_the_delay_is_the_path_and_the_target() {
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
fn with_fec_a_single_lost_packet_is_not_made_up_and_the_target_waits_for_its_copy() {
    let lossy = (0..PACKETS).map(|number| (number % 10 != 0).then_some(40));
    let heard = heard_by(Player::new(true), lossy);
    let share = heard.concealed.as_secs_f64() / heard.played.as_secs_f64();
    assert!(share < 0.005, "{share}");
    assert_eq!(heard.target, Some(millis(40)));
}

#[test]
fn with_fec_only_the_last_of_successive_lost_packets_has_a_copy() {
    let lossy = (0..PACKETS).map(|number| (number % 40 >= 4).then_some(40));
    let heard = heard_by(Player::new(true), lossy);
    let share = heard.concealed.as_secs_f64() / heard.played.as_secs_f64();
    assert!((share - 0.075).abs() < 0.01, "{share}");
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
