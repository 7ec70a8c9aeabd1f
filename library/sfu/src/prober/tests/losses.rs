//! Probes that lose something, new routes, and what pays for probes.

use super::*;

// Found in simulation: one of 128 packets came late, and a path of 17 Mbit/s was taken for full.
#[test]
fn a_probe_that_loses_a_packet_of_many_has_arrived() {
    for (lost, has_arrived) in [(0, true), (1, true), (2, true), (5, false), (20, false)] {
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(50_000)).unwrap();
        let mut prober = Probing::new(Fixed(kbps(7_000), Reason::Increase), limits);
        prober.on_feedback(at(100), &report(0, 100, kbps(9_000), kbps(9_000), None));
        assert!(!prober.loss.is_unknown());
        prober.allowance = 150_000.0;
        prober.set_desired_bitrate(at(110), Some(kbps(12_000)));
        let probe = started(&prober).expect("it is paid for");
        let all = report(200, 120, probe.rate, probe.rate, Some(probe.id));
        let missing: Vec<usize> = (0..lost).map(|number| 30 + number * 3).collect();
        prober.on_feedback(at(400), &without(all, &missing));
        heartbeat(&mut prober, 500);
        let result = prober.last_outcome().unwrap().result;
        assert_eq!(matches!(result, ProbeResult::Arrived(_)), has_arrived, "{lost}: {result:?}");
    }
}

// Found in simulation: the report on its end was lost, and the probe was for nothing.
#[test]
fn what_was_heard_of_a_probe_counts() {
    let mut prober = prober();
    heartbeat(&mut prober, 0);
    prober.set_desired_bitrate(at(10), Some(kbps(1_400)));
    let probe = started(&prober).unwrap();
    let heard = report(100, 9, probe.rate, probe.rate, Some(probe.id));
    assert!(heard.packets.len() < probe.size.as_bytes() as usize / 1_000);
    prober.on_feedback(at(200), &heard);
    for ms in (300..4_000).step_by(100) {
        prober.on_timeout(at(ms));
    }
    let result = prober.last_outcome().unwrap().result;
    assert!(matches!(result, ProbeResult::Arrived(_)), "{result:?}");
}

// Found in simulation: after a told change of the route nothing was probed for, for ever, because
// the climb on the old one was not paid for.
#[test]
fn a_new_route_begins_as_a_subscriber_that_joins() {
    for owed in [0.0, 60_000.0, 5_000_000.0] {
        let mut prober = prober();
        heartbeat(&mut prober, 0);
        prober.allowance = -owed;
        prober.not_before = at(60_000);
        prober.on_route_change(at(5_000));
        heartbeat(&mut prober, 5_000);
        prober.set_desired_bitrate(at(5_010), Some(kbps(1_400)));
        assert!(started(&prober).is_some(), "{owed}");
    }
}

#[test]
fn what_is_owed_falls_with_what_is_known_to_fit() {
    for known in [200, 750, 3_000] {
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(900_000)).unwrap();
        let mut prober = Probing::new(Fixed(kbps(known), Reason::Increase), limits);
        heartbeat(&mut prober, 0);
        prober.allowance = -40_000_000.0;
        heartbeat(&mut prober, 100);
        let most = 60_000.0_f64.max(known as f64 * 60.0);
        assert!(prober.allowance >= -most - 1.0, "{known}: {}", prober.allowance);
    }
}

// Found in simulation: six of seven pictures were paused for 20 s on 15 Mbit/s, because the only
// one that was sent paid for the probes.
#[test]
fn where_most_pictures_are_paused_what_is_known_pays() {
    for (wanted, soonest, latest) in [(10_000, 500, 3_000), (1_500, 9_000, 60_000)] {
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(50_000)).unwrap();
        let mut prober = Probing::new(Fixed(kbps(400), Reason::Increase), limits);
        heartbeat(&mut prober, 0);
        prober.allowance = 0.0;
        prober.set_wanted(Some(kbps(wanted)));
        prober.set_desired_bitrate(at(20), Some(kbps(700)));
        let mut first = None;
        for ms in (100..60_000).step_by(100) {
            // 100 kbit/s of media.
            prober.on_packet_sent(at(ms), &SentPacket::new(ms, DataSize::from_bytes(1_250)));
            heartbeat(&mut prober, ms);
            first = first.or(started(&prober).map(|_| ms));
        }
        let is_right = first.is_some_and(|ms| (soonest..latest).contains(&ms));
        assert!(is_right, "{wanted} kbit/s are wanted: {first:?}");
    }
}
