//! Marks from end to end: the sender's codepoint, a queue that marks, the receiver's CCFB, the
//! controller's answer.

use weir::Algorithm;
use weir::controller::{EcnMode, RateLimits, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{Aqm, Capacity, CoDelConfig, DualPi2Config, LinkConfig, QueueLimit, Schedule, Seed};
use weir_sim::{Config, Direction, Feedback, Flow, Hop, Media, Source, Trace, Traffic, run};

/// Ramp-up, which is not judged.
const SETTLED: Timestamp = Timestamp::from_secs(10);
const END: Timestamp = Timestamp::from_secs(40);

/// One flow alone on a link of this rate, with a round trip of 50 ms.
fn simulate(algorithm: Algorithm, ecn: EcnMode, mbps: u64, aqm: Aqm) -> Trace {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(1_000), kbps(2_000 * mbps)).unwrap();
    let media = Media {
        algorithm,
        settings: Settings { ecn, ..limits.into() },
        source: Source::Filler { fps: 60.0, cap: None },
        feedback: vec![(Timestamp::ZERO, Feedback::Ccfb)],
        feedback_interval: TimeDelta::from_millis(20),
        repair: None,
        sender: None,
    };
    let flow = Flow {
        name: "media-1".into(),
        direction: Direction::Up,
        hops: 0..1,
        access_delay: TimeDelta::ZERO,
        start: Timestamp::ZERO,
        stop: END,
        pauses: Vec::new(),
        traffic: Traffic::Media(media),
    };
    let capacity = Schedule::constant(kbps(1_000 * mbps)).unwrap();
    let unlimited = LinkConfig::unlimited(TimeDelta::from_millis(25));
    let up = LinkConfig {
        capacity: Capacity::Schedule(capacity),
        queue: QueueLimit::Time(TimeDelta::from_millis(300)),
        aqm,
        ..unlimited.clone()
    };
    let hops = vec![Hop { up, down: unlimited }];
    run(&Config { duration: END - Timestamp::ZERO, hops, flows: vec![flow] }, Seed::new(1))
}

/// A flow once it has settled.
#[derive(Debug)]
struct Settled {
    delay_ms_p95: f64,
    rate_mbps: f64,
    lost_packets: u64,
    /// Times that it changed its target because of marks.
    answers_to_marks: usize,
}

fn settled(trace: &Trace) -> Settled {
    let rows: Vec<_> = trace.rows.iter().filter(|row| row.time > SETTLED).collect();
    let mut delays: Vec<f64> =
        rows.iter().filter_map(|row| row.queuing_delay).map(TimeDelta::as_millis_f64).collect();
    delays.sort_by(f64::total_cmp);
    let received: DataSize = rows.iter().map(|row| row.received).sum();
    let events = trace.events.iter().filter(|event| event.time > SETTLED);
    Settled {
        delay_ms_p95: delays[delays.len() * 95 / 100],
        rate_mbps: (received / (END - SETTLED)).as_mbps_f64(),
        lost_packets: rows.iter().map(|row| row.lost_packets).sum(),
        answers_to_marks: events.filter(|event| event.reason == "ECN").count(),
    }
}

// [RFC9331 §4.1], [RFC9332 §2]
#[test]
fn an_l4s_flow_uses_the_link_with_next_to_no_queue() {
    let dualpi2 = Aqm::DualPi2(DualPi2Config::default());
    for mbps in [5, 10, 20, 40] {
        let marked = settled(&simulate(Algorithm::ScreamV2, EcnMode::L4s, mbps, dualpi2));
        assert!(marked.delay_ms_p95 < 2.0, "{mbps} Mbit/s: {marked:?}");
        assert!(marked.rate_mbps > 0.65 * mbps as f64, "{mbps} Mbit/s: {marked:?}");
        assert_eq!(marked.lost_packets, 0);
        let dropped = settled(&simulate(Algorithm::ScreamV2, EcnMode::Off, mbps, Aqm::DropTail));
        assert!(dropped.delay_ms_p95 > 15.0 * marked.delay_ms_p95, "{mbps} Mbit/s: {dropped:?}");
    }
}

// [RFC3168 §5]
#[test]
fn marks_take_the_place_of_losses() {
    let codel = Aqm::CoDel(CoDelConfig::default());
    for algorithm in [Algorithm::Nada, Algorithm::Scream, Algorithm::ScreamV2] {
        let marked = settled(&simulate(algorithm, EcnMode::Classic, 2, codel));
        assert_eq!(marked.lost_packets, 0, "{algorithm}");
        assert!(marked.answers_to_marks > 0, "{algorithm}");
        assert!(marked.rate_mbps > 1.5, "{algorithm}: {marked:?}");
        let dropped = settled(&simulate(algorithm, EcnMode::Off, 2, codel));
        assert!(dropped.lost_packets > 0, "{algorithm}");
        assert_eq!(dropped.answers_to_marks, 0, "{algorithm}");
    }
}
