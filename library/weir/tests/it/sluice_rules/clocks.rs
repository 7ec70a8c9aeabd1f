//! Clocks that step and drift, and paths that become longer (S-37, S-38).

use weir::Controller;
use weir::controller::Reason;
use weir::units::TimeDelta;

use super::feed::{Feed, kbps, ms, near};

// S-37: with a round trip of 300 ms, a step ahead of less than that may be a longer path.
#[test]
fn a_clock_that_steps_by_any_time_changes_neither_queue_nor_rate() {
    for step in [-400_000_000, -3_600_000, -5_000, -700, -200, 400, 700, 5_000, 3_600_000] {
        let mut feed = Feed::settled();
        feed.clock = ms(step);
        let after = feed.run(1_000, 14);
        near(feed.signal("queue_ms"), 14.0, 1.0);
        let delivered = feed.sluice.metrics().acknowledged_bitrate.unwrap();
        near(delivered.as_kbps_f64(), kbps(2_000).as_kbps_f64(), 100.0);
        for (target, _) in after {
            near(target, 2_000.0, 100.0);
        }
    }
}

// S-37: a receiver that is set back again and again.
#[test]
fn steps_one_after_another_add_up_to_no_queue() {
    let mut feed = Feed::settled();
    for step in 0..20 {
        feed.clock = ms(-1_000 * step);
        feed.run(300, 14);
    }
    near(feed.signal("queue_ms"), 14.0, 3.0);
}

// S-37: 15 to 30 s of S-2 alone would make 15 to 30 ms of it.
#[test]
fn a_clock_that_gains_a_millisecond_a_second_makes_no_queue() {
    let mut feed = Feed::new(2_000);
    let mut longest: f64 = 0.0;
    for report in 0..1_200 {
        feed.clock = TimeDelta::from_micros(50 * report);
        feed.run(50, 0);
        longest = longest.max(feed.signal("queue_ms"));
    }
    assert!(longest < 16.0, "{longest} ms");
    assert!(feed.signal("queue_ms") < 2.0, "{} ms at the end", feed.signal("queue_ms"));
}

// S-38: what a base test empties is a queue.
#[test]
fn a_queue_that_the_base_test_empties_stays_one() {
    let mut feed = Feed::settled();
    feed.run(2_000, 0);
    for _ in 0..6 {
        let begins = (0..400).any(|_| {
            feed.run(50, 12);
            feed.reasons.contains(&Reason::BaseTest)
        });
        assert!(begins, "no base test within 20 s: {} {:?}", feed.state(), feed.reasons);
        feed.run(300, 12);
        feed.run(400, 0);
        feed.run(3_000, 12);
    }
    near(feed.signal("queue_ms"), 12.0, 0.5);
}
