//! Marks from a queue to a controller by way of CCFB, and random loss that a controller was told to bear.

use weir::controller::{EcnMode, RateLimits, Settings};
use weir::{Algorithm, Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{
    Aqm, Capacity, CoDelConfig, DualPi2Config, LinkConfig, LossModel, QueueLimit, Schedule, Seed,
};
use weir_sim::{Config, Direction, Feedback, Flow, Hop, Media, Source, Trace, Traffic, run};

const SECONDS: i64 = 80;

fn config(algorithm: Algorithm, settings: Settings, link: LinkConfig) -> Config {
    let media = Media {
        algorithm,
        settings,
        sender: None,
        source: Source::Filler { fps: 30.0, cap: None },
        feedback: vec![(Timestamp::ZERO, Feedback::Ccfb)],
        feedback_interval: TimeDelta::from_millis(50),
        repair: None,
    };
    let flow = Flow {
        name: "media-1".into(),
        direction: Direction::Up,
        hops: 0..1,
        access_delay: TimeDelta::ZERO,
        start: Timestamp::ZERO,
        stop: Timestamp::from_secs(SECONDS),
        pauses: Vec::new(),
        traffic: Traffic::Media(media),
    };
    let down = LinkConfig::unlimited(TimeDelta::from_millis(25));
    let duration = TimeDelta::from_secs(SECONDS);
    Config { duration, hops: vec![Hop { up: link, down }], flows: vec![flow] }
}

fn link(schedule: Schedule, aqm: Aqm) -> LinkConfig {
    LinkConfig {
        capacity: Capacity::Schedule(schedule),
        queue: QueueLimit::Time(TimeDelta::from_millis(300)),
        aqm,
        ..LinkConfig::unlimited(TimeDelta::from_millis(25))
    }
}

fn constant(kbps: u64) -> Schedule {
    Schedule::constant(Bitrate::from_kbps(kbps)).unwrap()
}

fn settings(ecn: EcnMode) -> Settings {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap();
    Settings { ecn, ..Settings::new(limits) }
}

/// Received kbit/s, mean queuing delay in ms and packets lost, from second 20 on.
fn late(trace: &Trace, until: i64) -> (u64, f64, u64) {
    let in_time =
        |time: Timestamp| Timestamp::from_secs(20) < time && time <= Timestamp::from_secs(until);
    let rows: Vec<_> = trace.rows.iter().filter(|row| in_time(row.time)).collect();
    let bytes: DataSize = rows.iter().map(|row| row.received).sum();
    let delays: Vec<f64> =
        rows.iter().filter_map(|row| row.queuing_delay).map(|d| d.as_millis_f64()).collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let lost = rows.iter().map(|row| row.lost_packets).sum();
    ((bytes / TimeDelta::from_secs(until - 20)).as_bps() / 1_000, mean, lost)
}

// [RFC8867 §6.2]: must not fail, should do better.
#[test]
fn classic_marks_of_codel_replace_its_drops() {
    for algorithm in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Gcc2013) {
        let with = |ecn| {
            let codel = CoDelConfig::default();
            let link = link(constant(1_000), Aqm::CoDel(codel));
            late(&run(&config(algorithm, settings(ecn), link), Seed::new(1)), SECONDS)
        };
        let (off, classic) = (with(EcnMode::Off), with(EcnMode::Classic));
        println!("{algorithm}: {off:?} without, {classic:?} with ECN");
        assert!(classic.2 <= off.2 && classic.2 <= 5, "{algorithm}");
        assert!(classic.0 >= 450, "{algorithm}");
    }
}

// [RFC9332], [SCREAMV2 §4.2.1.3]
#[test]
fn l4s_marks_hold_the_queue_far_below_what_delay_alone_does() {
    for algorithm in [Algorithm::Nada, Algorithm::ScreamV2] {
        let with = |ecn, aqm| {
            late(
                &run(&config(algorithm, settings(ecn), link(constant(1_000), aqm)), Seed::new(1)),
                80,
            )
        };
        let plain = with(EcnMode::Off, Aqm::DropTail);
        let l4s = with(EcnMode::L4s, Aqm::DualPi2(DualPi2Config::default()));
        println!("{algorithm}: {plain:?} drop-tail, {l4s:?} L4S");
        assert!(l4s.1 < plain.1 / 2.0, "{algorithm}");
        assert!(l4s.0 >= 300, "{algorithm}");
    }
}

// SCREAMV2-D8
#[test]
fn tolerance_uses_85_percent_of_2_mbps_at_5_percent_loss() {
    let tolerant = Settings { tolerate_random_loss: true, ..settings(EcnMode::Off) };
    let lossy = |settings, schedule| {
        let link = LinkConfig { loss: LossModel::Random(0.05), ..link(schedule, Aqm::DropTail) };
        run(&config(Algorithm::ScreamV2, settings, link), Seed::new(1))
    };
    let strict = late(&lossy(settings(EcnMode::Off), constant(2_000)), SECONDS);
    let borne = late(&lossy(tolerant, constant(2_000)), SECONDS);
    println!("{strict:?} without, {borne:?} with tolerance");
    assert!(strict.0 < 1_000);
    assert!(borne.0 >= 1_700);
}
