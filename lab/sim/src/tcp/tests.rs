//! Connections through a simulated bottleneck of 10 Mbit/s with a round-trip time of 100 ms.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{
    Aqm, Capacity, DualPi2Config, Hop, LinkConfig, LossModel, QueueLimit, Schedule, Seed,
};

use super::segment::MSS;
use super::{Congestion, Cubic, ShortTransfers, Tcp};
use crate::trace::{Row, Trace};
use crate::{Config, Direction, FlowConfig, FlowKind, run};

const CUBIC: Congestion = Congestion::Cubic(Cubic::Rfc9438);
const ALL: [Congestion; 4] =
    [CUBIC, Congestion::Cubic(Cubic::Linux), Congestion::Reno, Congestion::Bbr];
/// Maximum payload rate of the link, in Mbit/s.
const MOST: f64 = 10.0 * MSS as f64 / 1_500.0;

fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

/// Flows that start ten seconds apart.
fn config(secs: i64, queue: TimeDelta, loss: LossModel, flows: &[Tcp]) -> Config {
    let schedule = Schedule::constant(Bitrate::from_kbps(10_000)).unwrap();
    let capacity = Capacity::Schedule(schedule);
    let queue = QueueLimit::Time(queue);
    let down = LinkConfig::unlimited(ms(50));
    let up = down.clone().with_capacity(capacity).with_queue(queue).with_loss(loss);
    let flow = |(index, tcp): (usize, &Tcp)| FlowConfig {
        name: format!("tcp-{}", index + 1),
        direction: Direction::Up,
        attachment: None,
        hops: 0..1,
        access_delay: TimeDelta::ZERO,
        start: Timestamp::from_secs(10 * index as i64),
        stop: Timestamp::from_secs(secs),
        pauses: Vec::new(),
        call: None,
        quality: false,
        traffic: FlowKind::Tcp(tcp.clone()),
    };
    let flows = flows.iter().enumerate().map(flow).collect();
    Config::wired(TimeDelta::from_secs(secs), vec![Hop::new(up, down)], flows)
}

fn endless(secs: i64, queue: TimeDelta, loss: LossModel, controls: &[Congestion]) -> Trace {
    let flows: Vec<Tcp> = controls.iter().map(|&control| Tcp::new(control)).collect();
    run(&config(secs, queue, loss, &flows), Seed::new(1))
}

/// Rows of a flow from `from_secs` on.
fn rows(trace: &Trace, flow: usize, from_secs: i64) -> impl Iterator<Item = &Row> {
    let from = Timestamp::from_secs(from_secs);
    trace.rows.iter().filter(move |row| row.flow == flow && row.time > from)
}

fn delivered(row: &Row) -> DataSize {
    row.transfer.unwrap().goodput
}

/// Goodput of a flow from `from_secs` on, in Mbit/s.
fn goodput(trace: &Trace, flow: usize, from_secs: i64) -> f64 {
    let sizes = rows(trace, flow, from_secs).map(delivered);
    let secs = rows(trace, flow, from_secs).count() as f64 / 20.0;
    sizes.sum::<DataSize>().as_bits() as f64 / secs / 1e6
}

/// Mean queuing delay from `from_secs` on, in milliseconds.
fn mean_wait_ms(trace: &Trace, from_secs: i64) -> f64 {
    let waits: Vec<f64> = rows(trace, 0, from_secs)
        .filter_map(|row| row.queuing_delay.map(TimeDelta::as_millis_f64))
        .collect();
    waits.iter().sum::<f64>() / waits.len() as f64
}

/// The window grows from one half to all of the capacity of link and queue, 83 + 8 segments. While
/// it is below 83 the link is not full. The expected utilization is (37.5 * 0.774 + 8) / 45.5.
#[test]
fn renos_sawtooth_has_its_textbook_mean() {
    let trace = endless(220, ms(10), LossModel::None, &[Congestion::Reno]);
    let share = goodput(&trace, 0, 20) / MOST;
    assert!((0.79..0.83).contains(&share), "{share}");
}

/// `MSS / RTT * sqrt(3/2) / sqrt(p)`: 1.42 Mbit/s at 1 % and 100 ms.
#[test]
fn reno_obeys_the_square_root_law() {
    let trace = endless(320, ms(100), LossModel::Random(0.01), &[Congestion::Reno]);
    let law = MSS as f64 * 8.0 / 0.1 * libm::sqrt(1.5 / 0.01) / 1e6;
    let ratio = goodput(&trace, 0, 20) / law;
    assert!((0.85..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn every_control_fills_a_link_whose_queue_is_its_bandwidth_delay_product() {
    for control in ALL {
        let trace = endless(60, ms(100), LossModel::None, &[control]);
        let share = goodput(&trace, 0, 10) / MOST;
        assert!((0.97..1.001).contains(&share), "{control:?}: {share}");
    }
}

#[test]
fn two_flows_of_one_control_share_fairly() {
    for control in [CUBIC, Congestion::Reno] {
        let trace = endless(300, ms(100), LossModel::None, &[control, control]);
        let ratio = goodput(&trace, 0, 60) / goodput(&trace, 1, 60);
        assert!((0.75..1.33).contains(&ratio), "{control:?}: {ratio}");
    }
}

#[test]
fn bbr_keeps_the_queue_short_where_cubic_fills_it_despite_random_loss() {
    let wait = |control| mean_wait_ms(&endless(60, ms(300), LossModel::None, &[control]), 0);
    let (cubic, bbr) = (wait(CUBIC), wait(Congestion::Bbr));
    assert!(cubic > 150.0 && bbr < 25.0, "{cubic} {bbr}");
    let trace = endless(60, ms(300), LossModel::Random(0.02), &[Congestion::Bbr]);
    let share = goodput(&trace, 0, 10) / MOST;
    assert!(share > 0.9, "{share}");
}

// [RFC6298 §2.1], then as in Linux.
#[test]
fn a_syn_that_is_not_answered_is_sent_again() {
    let trace = endless(40, ms(100), LossModel::Random(1.0), &[CUBIC]);
    let sent = rows(&trace, 0, 0).filter(|row| row.sent_packets > 0);
    let secs: Vec<i64> = sent.map(|row| row.time.as_millis() / 1_000).collect();
    assert_eq!(secs, [0, 1, 2, 3, 4, 6, 10, 18, 34]);
}

#[test]
fn a_timer_that_is_due_in_a_stall_goes_off_at_its_end() {
    let stall = Timestamp::from_millis(700)..Timestamp::from_millis(1_420);
    let flow = Tcp { timer_stalls: vec![stall], ..Tcp::new(CUBIC) };
    let trace = run(&config(2, ms(100), LossModel::Random(1.0), &[flow]), Seed::new(1));
    let sent = rows(&trace, 0, 0).filter(|row| row.sent_packets > 0);
    // Ends of the 50 ms rows in which a SYN leaves. Without the stall, the second would leave at 1
    // s.
    assert_eq!(sent.map(|row| row.time.as_millis()).collect::<Vec<_>>(), [50, 1_450]);
}

// [RFC8868 §4.4]
#[test]
fn short_transfers_have_their_sizes_and_their_times_apart() {
    let short = ShortTransfers {
        min_size: DataSize::from_bytes(30_000),
        max_size: DataSize::from_bytes(50_000),
        mean_idle: TimeDelta::from_secs(10),
        starts_idle: false,
    };
    let flow = Tcp { short: Some(short), ..Tcp::new(CUBIC) };
    let trace = run(&config(2_000, ms(100), LossModel::None, &[flow]), Seed::new(1));
    // Transfers are far apart, so each sequence of rows with arrivals is one transfer.
    let mut sizes = Vec::new();
    let mut quiet_rows = i32::MAX;
    for row in rows(&trace, 0, 0) {
        if delivered(row) == DataSize::ZERO {
            quiet_rows = quiet_rows.saturating_add(1);
            continue;
        }
        if quiet_rows > 4 {
            sizes.push(0);
        }
        quiet_rows = 0;
        *sizes.last_mut().unwrap() += delivered(row).as_bytes();
    }
    let alone: Vec<u64> = sizes.iter().copied().filter(|&size| size <= 50_000).collect();
    assert!(alone.iter().all(|&size| size >= 30_000), "{alone:?}");
    let mean = alone.iter().sum::<u64>() / alone.len() as u64;
    assert!((38_500..41_500).contains(&mean), "{mean}");
    // They are 10 s apart on average, and each takes half a second.
    assert!((160..220).contains(&sizes.len()), "{}", sizes.len());
}

#[test]
fn a_pause_ends_a_connection_and_a_new_one_follows() {
    let mut config = config(30, ms(100), LossModel::None, &[Tcp::new(CUBIC)]);
    config.flows[0].pauses = vec![Timestamp::from_secs(10)..Timestamp::from_secs(20)];
    let trace = run(&config, Seed::new(1));
    let sent = |from: i64, to: i64| -> u64 {
        let until = Timestamp::from_secs(to);
        rows(&trace, 0, from).filter(|row| row.time <= until).map(|row| row.sent_packets).sum()
    };
    assert!(sent(1, 10) > 7_000);
    assert_eq!(sent(10, 19), 0);
    assert!(sent(21, 30) > 7_000);
    let windows: Vec<Option<DataSize>> =
        rows(&trace, 0, 20).map(|row| row.congestion_window).collect();
    assert_eq!(windows[..3], [None, None, Some(DataSize::from_bytes(10 * MSS))]);
}

/// Flows through a DualPI2 of 40 Mbit/s with a round-trip time of 25 ms.
fn dual_queue(secs: i64, controls: &[Congestion]) -> Trace {
    let flows: Vec<Tcp> = controls.iter().map(|&control| Tcp::new(control)).collect();
    let mut config = config(secs, ms(200), LossModel::None, &flows);
    let schedule = Schedule::constant(Bitrate::from_kbps(40_000)).unwrap();
    let down = LinkConfig::unlimited(TimeDelta::from_micros(12_500));
    let up = down
        .clone()
        .with_capacity(Capacity::Schedule(schedule))
        .with_queue(QueueLimit::Time(ms(200)))
        .with_aqm(Aqm::DualPi2(DualPi2Config::default()));
    config = Config::wired(TimeDelta::from_secs(secs), vec![Hop::new(up, down)], config.flows);
    run(&config, Seed::new(1))
}

// [RFC9332 §1]: low delay without a loss of rate.
#[test]
fn prague_alone_fills_a_dual_queue_with_a_millisecond_of_delay() {
    let trace = dual_queue(40, &[Congestion::Prague]);
    let (share, wait) = (goodput(&trace, 0, 10) / (4.0 * MOST), mean_wait_ms(&trace, 10));
    assert!(share > 0.93 && wait < 1.5, "{share} {wait}");
}

#[test]
fn two_flows_of_prague_share_a_dual_queue_fairly() {
    let trace = dual_queue(80, &[Congestion::Prague; 2]);
    let ratio = goodput(&trace, 0, 30) / goodput(&trace, 1, 30);
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

// [RFC9332 §2.1]: the coupling makes the rates about equal.
#[test]
fn prague_and_cubic_have_about_equal_rates_in_a_dual_queue() {
    let trace = dual_queue(120, &[Congestion::Prague, CUBIC]);
    let ratio = goodput(&trace, 0, 30) / goodput(&trace, 1, 30);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}
