//! A source that sends less than it may.

use super::feed::{Feed, PACKETS, near};

// Found in a call through LiveKit: on 250 kbit/s the level fell to the 65 that were sent.
// S-10
#[test]
fn the_level_does_not_follow_a_source_that_sends_much_less() {
    let mut feed = Feed::settled();
    let before = feed.signal("level_kbps");
    feed.packets = PACKETS / 2;
    feed.run(5_000, 14);
    // The rate falls past eight tenths within the window.
    near(feed.signal("level_kbps"), before, before * 0.3);
    let stays = feed.signal("level_kbps");
    feed.run(5_000, 14);
    assert!(feed.signal("level_kbps") >= stays, "{}", feed.signal("level_kbps"));
    // Of what is sent now half is lost: that is the path.
    feed.packets = PACKETS;
    feed.is_lost = |number| number % 5 < 3;
    feed.run(3_000, 14);
    assert!(feed.signal("level_kbps") < before * 0.6, "{}", feed.signal("level_kbps"));
}
