//! The eight cases of `library/noq` and `library/quinn` over simulated connections, for a table
//! beside those of the real stacks.

use weir::controller::{RateLimits, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::{Capacity, Hop, LinkConfig, LossModel, QueueLimit, Schedule, Seed};
use weir_sim::trace::Row;
use weir_sim::{
    Config, Congestion, Direction, FlowConfig, FlowKind, Media, Quic, QuicCongestion, QuicSource,
    QuicStack, Source, Tcp, run,
};

const LENGTH: TimeDelta = TimeDelta::from_secs(40);
const SETTLED: Timestamp = Timestamp::from_secs(10);
const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

fn link(steps: &[(i64, u64)], delay: TimeDelta) -> LinkConfig {
    let mut schedule = Vec::new();
    for &(s, kbps) in steps {
        schedule.push((Timestamp::from_secs(s), Bitrate::from_kbps(kbps)));
    }
    let capacity = Schedule::new(schedule).expect("in order");
    LinkConfig::unlimited(delay)
        .with_capacity(Capacity::Schedule(capacity))
        .with_queue(QueueLimit::Time(MS(500)))
}

struct Case {
    name: &'static str,
    source: QuicSource,
    up: LinkConfig,
    down: LinkConfig,
    rival: Option<Direction>,
}

fn cases() -> Vec<Case> {
    let rate = Bitrate::from_kbps;
    let adaptive = QuicSource::Adaptive { start: rate(1_000), max: rate(10_000), headroom: 0.9 };
    let fixed = QuicSource::Fixed(rate(10_000));
    let moq = link(&[(0, 5_000)], MS(50));
    let wide = link(&[(0, 100_000)], MS(50));
    let lossy = moq.clone().with_loss(LossModel::Random(0.02));
    let steps = link(&[(0, 5_000), (20, 1_000), (30, 3_000)], MS(50));
    let outage = link(&[(0, 5_000), (20, 0), (23, 5_000)], MS(50));
    let near = (link(&[(0, 1_000)], MS(10)), link(&[(0, 100_000)], MS(10)));
    let case = |name, source, up: &LinkConfig, down: &LinkConfig, rival| Case {
        name,
        source,
        up: up.clone(),
        down: down.clone(),
        rival,
    };
    vec![
        case("moq's case, fixed source", fixed, &moq, &wide, None),
        case("moq's case, adaptive source", adaptive, &moq, &wide, None),
        case("full way back", adaptive, &moq, &moq, Some(Direction::Down)),
        case("2 % loss", adaptive, &lossy, &wide, None),
        case("5, 1, 3 Mbit/s", adaptive, &steps, &wide, None),
        case("outage of 3 s", adaptive, &outage, &wide, None),
        case("1 Mbit/s, 20 ms", adaptive, &near.0, &near.1, None),
        case("beside a Reno flow", adaptive, &moq, &wide, Some(Direction::Up)),
    ]
}

fn row(case: &Case, name: &str, quic: Quic) {
    let mut flows = vec![FlowConfig::new("quic-1", LENGTH, FlowKind::Quic(quic))];
    if let Some(direction) = case.rival {
        let tcp = FlowKind::Tcp(Tcp::new(Congestion::Reno));
        flows.push(FlowConfig::new("tcp-1", LENGTH, tcp).with_direction(direction));
    }
    let hops = vec![Hop::new(case.up.clone(), case.down.clone())];
    let trace = run(&Config::wired(LENGTH, hops, flows), Seed::new(1));
    let rows: Vec<&Row> =
        trace.rows.iter().filter(|row| row.flow == 0 && row.time > SETTLED).collect();
    let (mut carried, mut got, mut good) = (DataSize::ZERO, DataSize::ZERO, DataSize::ZERO);
    let (mut sent, mut lost, mut frames) = (0, 0, 0);
    let (mut waits, mut delays) = (Vec::new(), Vec::new());
    for row in rows {
        carried += row.capacity_over_it().unwrap_or_default() * MS(50);
        got += row.received;
        good += row.transfer.map_or(DataSize::ZERO, |transfer| transfer.goodput);
        (sent, lost) = (sent + row.sent_packets, lost + row.lost_packets);
        frames += row.video.map_or(0, |video| video.frames);
        waits.extend(row.queuing_delay.map(TimeDelta::as_millis_f64));
        delays.extend(row.video.and_then(|video| video.frame_delay).map(TimeDelta::as_millis_f64));
    }
    waits.sort_by(f64::total_cmp);
    delays.sort_by(f64::total_cmp);
    let part = |values: &[f64], part: f64| {
        values.get((values.len() as f64 * part) as usize).copied().unwrap_or(0.0)
    };
    println!(
        "| {} | {name} | {:.3} | {:.3} | {:.0} / {:.0} | {:.0} / {:.0} | {:.0} % | {:.2} % |",
        case.name,
        got.as_bytes() as f64 / carried.as_bytes() as f64,
        good.as_bytes() as f64 / carried.as_bytes() as f64,
        part(&waits, 0.5),
        part(&waits, 0.95),
        part(&delays, 0.5),
        part(&delays, 0.95),
        frames as f64 / 9.0,
        lost as f64 / f64::from(u32::try_from(sent.max(1)).unwrap_or(u32::MAX)) * 100.0,
    );
}

fn main() {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).expect("in order");
    let media = |algorithm| {
        let none = Source::Filler { fps: 30.0, cap: None };
        Media::new(algorithm, Settings::new(limits), none)
    };
    println!(
        "| case | controller | utilization | goodput / capacity | queue p50 / p95 ms | frame \
         delay p50 / p95 ms | frames whole | lost in the network |\n|---|---|---|---|---|---|---|---|"
    );
    for case in cases() {
        for (stack, of) in [(QuicStack::Noq, "noq"), (QuicStack::Quinn, "quinn")] {
            for algorithm in [LabAlgorithm::Sluice, LabAlgorithm::ScreamV2] {
                let quic = Quic::new(media(algorithm), case.source).with_stack(stack);
                row(&case, &format!("{} as on {of}", algorithm.name()), quic);
            }
        }
        for (congestion, name) in [
            (QuicCongestion::Cubic, "CUBIC"),
            (QuicCongestion::NewReno, "NewReno"),
            (QuicCongestion::Bbr3, "BBRv3"),
        ] {
            let quic = Quic::new(media(LabAlgorithm::Sluice), case.source);
            row(&case, name, quic.with_congestion(congestion));
        }
    }
}
