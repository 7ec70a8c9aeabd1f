//! Hand-overs: a path that becomes longer, and a path that was away (S-19).

use super::feed::{Feed, near};
use weir::controller::Reason;

// S-19: the delay rises by 32 ms and stays, within the reference of a slow flow.
#[test]
fn a_small_step_that_a_base_test_does_not_drain_is_a_longer_path() {
    let mut feed = slow();
    feed.run(1_900, 32);
    assert!(feed.reasons.contains(&Reason::BaseTest), "after 1 s and not after 10 s");
    feed.run(700, 32);
    near(feed.signal("queue_ms"), 0.0, 0.1);
}

// S-19: as before, but the test drains the queue.
#[test]
fn a_small_step_that_a_base_test_drains_is_a_queue() {
    let mut feed = slow();
    feed.run(1_300, 32);
    feed.run(1_000, 12);
    near(feed.signal("queue_ms"), 12.0, 0.1);
}

/// In track at 200 kbit/s, where a packet takes 50 ms and the reference is 35 ms.
fn slow() -> Feed {
    let mut feed = Feed::new(200);
    feed.packets = 1;
    feed.run(600, 0);
    feed.run(300, 60);
    feed.run(1_500, 0);
    assert_eq!(feed.state(), "track");
    feed.reasons.clear();
    feed
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
