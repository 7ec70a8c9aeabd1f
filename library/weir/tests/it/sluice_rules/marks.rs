use weir::controller::{EcnMode, RateLimits, Settings};
use weir::feedback::Ecn;

use super::feed::{Feed, kbps, ms, near};

// S-8, S-21: half a packet in a round trip of 25 ms, the least that counts, is 4.8 / s at 2 Mbit/s.
#[test]
fn after_a_mark_level_and_rate_grow_by_half_a_packet_in_a_round_trip() {
    let limits = RateLimits::new(kbps(150), kbps(2_000), kbps(20_000)).unwrap();
    let mut feed = Feed::with(Settings::new(limits).with_ecn(EcnMode::L4s));
    (feed.rtt, feed.ecn) = (ms(20), Ecn::Ect1);
    feed.run(1_000, 0);
    assert_eq!(feed.state(), "start");
    feed.ecn = Ecn::Ce;
    let [first] = feed.run(50, 0)[..] else { panic!("one report") };
    // The mark ends the start at the rate that arrives, 2 Mbit/s.
    near((first.1 / 2_000.0).ln() / 0.05, 4.8, 0.3);
    feed.ecn = Ecn::Ect1;
    let [next] = feed.run(50, 0)[..] else { panic!("one report") };
    // From here on one and a half times what is sent is the limit.
    near(next.1, 3_000.0, 60.0);
}
