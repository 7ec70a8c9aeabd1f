//! Publishers and subscribers that begin anew, under every controller.

use weir::{Algorithm, Bitrate, TimeDelta};

use super::link::{Room, kbps};
use super::{DELAY, speaker};

const HOUR: TimeDelta = TimeDelta::from_secs(3_600);

/// One camera whose best layer is watched.
fn watched(algorithm: Algorithm) -> Room {
    let mut room = Room::new(algorithm, kbps(8_000), DELAY);
    room.add_camera(0, speaker());
    room.run_until(12.0);
    assert_eq!(room.level(0), Some(2), "{algorithm}\n{}", room.log());
    room.longest_gap = TimeDelta::ZERO;
    room
}

// [RFC3550 §A.1]
#[test]
fn a_publisher_that_begins_anew_with_its_clock_costs_one_key_frame() {
    for algorithm in Algorithm::all() {
        for (numbers, ticks) in [(0, 1 << 31), (33_000, 90), (65_000, 1 << 30), (50, 0x8000_1000)] {
            let mut room = watched(algorithm);
            let asked = room.key_frames();
            room.jump(0, numbers);
            room.jump_in_time(0, ticks);
            room.run_until(17.0);
            let case = format!("{algorithm}: {numbers}, {ticks}");
            let gap = room.longest_gap;
            assert!(gap <= TimeDelta::from_millis(500), "{case}: {gap}\n{}", room.log());
            assert!(room.key_frames() - asked <= 1, "{case}\n{}", room.log());
            assert_eq!(room.level(0), Some(2), "{case}\n{}", room.log());
        }
    }
}

#[test]
fn a_publisher_that_begins_anew_while_it_is_hidden_returns_at_once() {
    for (numbers, ticks) in [(33_000, 1 << 31), (65_000, 0), (100, 0xFFFF_0000), (65_400, 90_000)] {
        let mut room = watched(Algorithm::Sluice);
        room.show(0, speaker().with_shown(0, 0));
        room.run_until(14.0);
        room.jump(0, numbers);
        room.jump_in_time(0, ticks);
        room.run_until(14.5);
        room.show(0, speaker());
        room.run_until(15.5);
        room.longest_gap = TimeDelta::ZERO;
        room.run_until(20.0);
        let (case, gap) = (format!("{numbers}, {ticks}"), room.longest_gap);
        assert!(gap <= TimeDelta::from_millis(200), "{case}: {gap}\n{}", room.log());
        assert_eq!(room.level(0), Some(2), "{case}\n{}", room.log());
    }
}

#[test]
fn a_subscriber_whose_receiver_begins_anew_keeps_its_layers() {
    for algorithm in Algorithm::all() {
        for (before, after) in [(HOUR, TimeDelta::ZERO), (TimeDelta::ZERO, HOUR)] {
            let mut room = Room::new(algorithm, kbps(3_000), DELAY);
            room.restart_receiver(before);
            room.add_camera(0, speaker());
            room.run_until(15.0);
            assert_eq!(room.level(0), Some(2), "{algorithm}\n{}", room.log());
            room.restart_receiver(after);
            room.run_until(20.0);
            assert_eq!(room.switches(15.0), 0, "{algorithm}\n{}", room.log());
            // The link falls by a clock of which nothing is known.
            room.capacity = kbps(800);
            room.run_until(23.0);
            assert!(room.level(0) <= Some(1), "{algorithm}\n{}", room.log());
        }
    }
}

// mediasoup 1821, janus 2231: a layer that ends, comes back and ends.
#[test]
fn a_layer_that_ends_twice_is_replaced_within_a_second_under_every_controller() {
    for algorithm in Algorithm::all() {
        let mut room = watched(algorithm);
        for round in 0..2 {
            let start = 12.0 + 15.0 * f64::from(round);
            room.longest_gap = TimeDelta::ZERO;
            room.set_bitrate(0, 2, Bitrate::ZERO);
            room.run_until(start + 3.0);
            let gap = room.longest_gap;
            assert!(gap <= TimeDelta::from_secs(1), "{algorithm}: {gap}\n{}", room.log());
            room.set_bitrate(0, 2, kbps(1_500));
            room.run_until(start + 15.0);
            assert_eq!(room.level(0), Some(2), "{algorithm} {round}\n{}", room.log());
        }
    }
}
