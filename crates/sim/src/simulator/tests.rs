use weir::Algorithm;
use weir::controller::RateLimits;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{Capacity, LinkConfig, LossModel, QueueLimit, Schedule, Seed};

use crate::{Config, Direction, Flow, Source, Trace, run};

fn secs(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn flow(name: &str, algorithm: Algorithm, start: i64, stop: i64) -> Flow {
    let kbps = Bitrate::from_kbps;
    Flow {
        name: name.into(),
        direction: Direction::Up,
        start: secs(start),
        stop: secs(stop),
        algorithm,
        limits: RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap(),
        source: Source::Filler { fps: 30.0, cap: None },
    }
}

fn one_mbps(flows: Vec<Flow>) -> Config {
    let delay = TimeDelta::from_millis(25);
    let capacity = Capacity::Schedule(Schedule::constant(Bitrate::from_kbps(1_000)).unwrap());
    let queue = QueueLimit::Time(TimeDelta::from_millis(300));
    Config {
        duration: TimeDelta::from_secs(20),
        up: LinkConfig { capacity, queue, ..LinkConfig::unlimited(delay) },
        down: LinkConfig::unlimited(delay),
        feedback_interval: TimeDelta::from_millis(50),
        flows,
    }
}

fn received(trace: &Trace, flow: usize) -> DataSize {
    trace.rows.iter().filter(|row| row.flow == flow).map(|row| row.received).sum()
}

#[test]
fn equal_seeds_give_equal_traces_and_another_seed_another() {
    let mut config = one_mbps(vec![flow("media-1", Algorithm::GccDraft, 0, 20)]);
    config.up.loss = LossModel::Random(0.02);
    let first = run(&config, Seed::new(1));
    assert_eq!(first, run(&config, Seed::new(1)));
    assert_ne!(first, run(&config, Seed::new(2)));
}

#[test]
fn the_link_never_carries_more_than_its_capacity() {
    for algorithm in Algorithm::ALL {
        let flows = vec![flow("media-1", algorithm, 0, 20), flow("media-2", algorithm, 0, 20)];
        let trace = run(&one_mbps(flows), Seed::new(1));
        let total = received(&trace, 0) + received(&trace, 1);
        assert!(total <= DataSize::from_bytes(2_500_000), "{algorithm}: {total}");
        assert!(total >= DataSize::from_bytes(500_000), "{algorithm}: {total}");
    }
}

#[test]
fn a_flow_has_rows_from_its_start_to_its_stop_and_nothing_is_sent_outside() {
    let flows = vec![flow("media-1", Algorithm::Nada, 2, 5)];
    let trace = run(&one_mbps(flows), Seed::new(1));
    let times: Vec<i64> = trace.rows.iter().map(|row| row.time.as_millis()).collect();
    assert_eq!(times, (2_050..=5_000).step_by(50).collect::<Vec<i64>>());
    assert!(trace.events.iter().all(|event| event.time >= secs(2) && event.time <= secs(5)));
    assert!(trace.rows[1].sent > DataSize::ZERO);
}

#[test]
fn packets_are_sent_lost_or_on_their_way_and_the_capacity_stands_in_every_row() {
    let mut config = one_mbps(vec![flow("media-1", Algorithm::Nada, 0, 20)]);
    config.up.loss = LossModel::Random(0.05);
    let trace = run(&config, Seed::new(1));
    let (sent, lost) = trace
        .rows
        .iter()
        .fold((0, 0), |(sent, lost), row| (sent + row.sent_packets, lost + row.lost_packets));
    let ratio = lost as f64 / sent as f64;
    assert!((0.03..0.08).contains(&ratio), "{ratio}");
    assert!(trace.rows.iter().all(|row| row.capacity == Some(Bitrate::from_kbps(1_000))));
}

#[test]
fn lost_feedback_does_not_stop_the_simulation() {
    for algorithm in Algorithm::ALL {
        let mut config = one_mbps(vec![flow("media-1", algorithm, 0, 20)]);
        config.down.loss = LossModel::Random(1.0);
        let trace = run(&config, Seed::new(1));
        assert_eq!(trace.rows.len(), 400, "{algorithm}");
        assert!(trace.rows.iter().all(|row| row.rtt.is_none()));
    }
}

#[test]
fn the_shortest_round_trip_is_propagation_serialisation_and_feedback_wait() {
    let trace = run(&one_mbps(vec![flow("media-1", Algorithm::GccDraft, 0, 20)]), Seed::new(1));
    let least = trace.rows.iter().filter_map(|row| row.rtt).min().unwrap();
    assert!(least >= TimeDelta::from_millis(50), "{least}");
    assert!(least < TimeDelta::from_millis(110), "{least}");
}
