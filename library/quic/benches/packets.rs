//! What a packet costs: its sending, its ACK with another one, and its part of the reports.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use weir::{Algorithm, Bitrate, DataSize, RateLimits, TimeDelta, Timestamp};
use weir_quic::{AckEnd, Config, Congestion, Sent, Space};

const PACKETS: u64 = 1_000;

/// 1,000 packets, one in a ms, with an ACK for every second one after 50 ms.
fn run(congestion: &mut Congestion, from: u64) {
    for number in from..from + PACKETS {
        let now = Timestamp::ZERO + TimeDelta::from_millis(number as i64);
        let size = DataSize::from_bytes(1_200);
        congestion.on_packet_sent(now, Sent::new(Space::Data, number, size));
        if let Some(newest) = number.checked_sub(50).filter(|newest| newest % 2 == 1) {
            congestion.on_ack_range(Space::Data, newest - 1..=newest);
            congestion.on_ack_end(now, AckEnd::default().with_app_limited(false));
        }
        black_box((congestion.pacing_rate(), congestion.window()));
    }
}

fn packets(criterion: &mut Criterion) {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).expect("in order");
    let mut group = criterion.benchmark_group("packets");
    group.throughput(Throughput::Elements(PACKETS));
    for algorithm in [Algorithm::Sluice, Algorithm::ScreamV2] {
        let mut congestion = Congestion::new(algorithm.build(limits), Config::default());
        let mut from = 0;
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter(|| {
                run(&mut congestion, from);
                from += PACKETS;
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    packets(&mut criterion);
    criterion.final_summary();
}
