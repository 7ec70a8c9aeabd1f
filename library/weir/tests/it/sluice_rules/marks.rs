use weir::controller::{EcnMode, RateLimits, Settings};
use weir::feedback::Ecn;

use super::feed::{Feed, kbps, ms, near};

// S-8, S-21: half a packet in a round trip of 20 ms, the least that counts, is 7.5 / s at 2 Mbit/s.
#[test]
fn after_a_mark_on_a_short_path_level_and_rate_grow_by_6_a_second_at_most() {
    let limits = RateLimits::new(kbps(150), kbps(2_000), kbps(20_000)).unwrap();
    let mut feed = Feed::with(Settings::new(limits).with_ecn(EcnMode::L4s));
    (feed.rtt, feed.ecn) = (ms(20), Ecn::Ect1);
    feed.run(1_000, 0);
    assert_eq!(feed.state(), "start");
    feed.ecn = Ecn::Ce;
    let [first] = feed.run(50, 0)[..] else { panic!("one report") };
    // The mark ends the start at the rate that arrives, 2 Mbit/s.
    near((first.1 / 2_000.0).ln() / 0.05, 6.0, 0.4);
    feed.ecn = Ecn::Ect1;
    let [next] = feed.run(50, 0)[..] else { panic!("one report") };
    assert!((next.0 / first.0).ln() / 0.05 > 1.0, "more than the 0.9 of a path without marks");
}
