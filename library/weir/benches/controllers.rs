//! Cost of a controller per packet: sending the packet and receiving feedback on it.
//!
//! The packets are those of a 2 Mbit/s flow with feedback every 50 ms and 1 % loss. The joined
//! reports are made in advance, so that only the controller is timed.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use weir::controller::RateLimits;
use weir::feedback::SentPacket;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{Algorithm, FeedbackReport, PacketReport};

const PACKETS: i64 = 10_000;
const BATCH: i64 = 10;
const SIZE: DataSize = DataSize::from_bytes(1_250);
/// 1250 B at 2 Mbit/s.
const SPACING: TimeDelta = TimeDelta::from_millis(5);

fn reports() -> Vec<FeedbackReport> {
    let report = |batch: i64| {
        let packets = (batch * BATCH..(batch + 1) * BATCH).map(|number| {
            let send_time = Timestamp::ZERO + SPACING * number;
            let wobble = TimeDelta::from_micros((number * 7_919) % 900);
            let arrival = send_time + TimeDelta::from_millis(25) + wobble;
            PacketReport::new(number, SIZE, send_time)
                .with_arrival_time((number % 100 != 37).then_some(arrival))
        });
        FeedbackReport::new(packets.collect())
    };
    (0..PACKETS / BATCH).map(report).collect()
}

fn controllers(criterion: &mut Criterion) {
    let reports = reports();
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order");
    let mut group = criterion.benchmark_group("packet, send and feedback");
    group.throughput(Throughput::Elements(PACKETS as u64));
    for algorithm in Algorithm::all() {
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter_batched_ref(
                || algorithm.build(limits),
                |controller| {
                    for report in &reports {
                        for packet in &report.packets {
                            let sent = SentPacket::new(packet.sequence_number, packet.size);
                            controller.on_packet_sent(packet.send_time, &sent);
                        }
                        let last = report.packets.last().expect("a batch has packets");
                        let now = last.send_time + TimeDelta::from_millis(50);
                        if controller.next_timeout().is_some_and(|due| due <= now) {
                            controller.on_timeout(now);
                        }
                        controller.on_feedback(now, report);
                        black_box(controller.target());
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    controllers(&mut criterion);
    criterion.final_summary();
}
