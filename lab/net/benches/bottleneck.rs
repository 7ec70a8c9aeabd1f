//! Cost of a bottleneck per packet: enqueue, wait and delivery.
//!
//! The packets have 1250 B. The link has 10 Mbit/s. The load is 10 % below the capacity (each
//! packet finds the link idle) or 10 % above (the queue is full most of the time).

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{
    Aqm, Bottleneck, Capacity, CoDelConfig, DualPi2Config, Header, LinkConfig, PieConfig,
    QueueLimit, RedConfig, Schedule, Seed,
};

const PACKETS: i64 = 10_000;
const HEADER: Header = Header::new(DataSize::from_bytes(1_250));
/// Size of a simulated media packet's data.
type Payload = [u64; 8];

fn run(link: &mut Bottleneck<Payload>, spacing: TimeDelta) {
    let mut now = Timestamp::ZERO;
    for _ in 0..PACKETS {
        while let Some(next) = link.next_event().filter(|&next| next <= now) {
            while let Some(outcome) = link.poll(next) {
                black_box(outcome);
            }
        }
        link.enqueue(now, HEADER, [0; 8]);
        now += spacing;
    }
}

fn bottlenecks(criterion: &mut Criterion) {
    let capacity = Schedule::constant(Bitrate::from_kbps(10_000)).expect("above zero");
    let config = LinkConfig::unlimited(TimeDelta::from_millis(25))
        .with_capacity(Capacity::Schedule(capacity))
        .with_queue(QueueLimit::Time(TimeDelta::from_millis(300)));
    let aqms = [
        ("drop-tail", Aqm::DropTail),
        ("codel", Aqm::CoDel(CoDelConfig::default())),
        ("fq-codel", Aqm::FqCoDel(CoDelConfig::default())),
        ("pie", Aqm::Pie(PieConfig::default())),
        ("red", Aqm::Red(RedConfig::default())),
        ("dualpi2", Aqm::DualPi2(DualPi2Config::default())),
    ];
    let loads = [("idle", TimeDelta::from_micros(1_100)), ("queued", TimeDelta::from_micros(900))];
    let mut group = criterion.benchmark_group("packet through the bottleneck");
    group.throughput(Throughput::Elements(PACKETS.cast_unsigned()));
    for (aqm_name, aqm) in aqms {
        for (load_name, spacing) in loads {
            let config = config.clone().with_aqm(aqm);
            group.bench_function(format!("{aqm_name}, {load_name}"), |bencher| {
                bencher.iter_batched_ref(
                    || Bottleneck::new(&config, Seed::new(1), "up"),
                    |link| run(link, spacing),
                    BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    bottlenecks(&mut criterion);
    criterion.final_summary();
}
