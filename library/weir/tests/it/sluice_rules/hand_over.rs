//! Hand-overs: a path that becomes longer, and a path that was away (S-19).

use super::feed::{Feed, ms, near};
use weir::controller::Reason;

// S-19: both ways become longer at once.
#[test]
fn a_path_that_is_longer_both_ways_has_the_level_of_before() {
    for longer_ms in [40, 80, 300] {
        let mut feed = Feed::settled();
        feed.rtt += ms(longer_ms);
        // With its queue of 14 ms.
        feed.run(2_500, 14 + longer_ms);
        near(feed.signal("queue_ms"), 0.0, 0.1);
        assert!(feed.signal("level_kbps") > 1_900.0, "{}", feed.signal("level_kbps"));
    }
}

// S-19: two flows that keep their references make both ways longer, too.
#[test]
fn ways_that_are_longer_by_less_than_the_reference_are_queues() {
    let mut feed = Feed::new(200);
    feed.packets = 1;
    feed.run(2_000, 0);
    assert!(feed.signal("reference_ms") > 33.0, "{}", feed.signal("reference_ms"));
    feed.rtt += ms(32);
    feed.run(2_500, 32);
    near(feed.signal("queue_ms"), 32.0, 0.1);
}

/// Loses everything from packet 2,000 to 2,199: 1 s.
fn cut(number: i64) -> bool {
    (2_000..2_200).contains(&number)
}

/// A flow of 200 packets a second up to the end of the cut, with a queue of `before` until then.
fn after_a_cut(before: i64) -> Feed {
    let mut feed = Feed::settled();
    feed.is_lost = cut;
    feed.number = 1_900;
    feed.run(800, before);
    feed.run(1_500, 40);
    feed
}

// S-19
#[test]
fn after_a_path_was_away_its_delay_is_the_base_and_losses_do_not_count() {
    let feed = after_a_cut(14);
    near(feed.signal("queue_ms"), 0.0, 0.1);
    near(feed.signal("scale_ratio"), 1.0, 0.001);
    assert!(!feed.reasons.contains(&Reason::Loss));
    assert!(feed.target() > 1_000.0, "{}", feed.target());
}

// S-19: the packets before had waited for a link that stood still.
#[test]
fn what_a_full_queue_lost_counts() {
    let feed = after_a_cut(200);
    assert!(feed.signal("queue_ms") > 30.0, "{}", feed.signal("queue_ms"));
}
