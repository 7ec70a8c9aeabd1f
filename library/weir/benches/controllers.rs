//! Cost of a controller per packet: sending the packet and receiving feedback on it; and feedback
//! alone at 500 Mbit/s, where a report has thousands of packets.
//!
//! The flows have feedback every 50 ms and 1 % loss. The joined reports are made in advance, so
//! that only the controller is timed.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use weir::controller::RateLimits;
use weir::feedback::SentPacket;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{Algorithm, FeedbackReport, PacketReport};

const INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// A flow of this many reports, with so many packets each.
struct Flow {
    reports: i64,
    batch: i64,
    size: DataSize,
}

/// 2 Mbit/s.
const CALL: Flow = Flow { reports: 1_000, batch: 10, size: DataSize::from_bytes(1_250) };
/// 500 Mbit/s.
const FAST: Flow = Flow { reports: 40, batch: 2_100, size: DataSize::from_bytes(1_488) };

impl Flow {
    const fn packets(&self) -> i64 {
        self.reports * self.batch
    }

    fn rate(&self) -> Bitrate {
        self.size * self.batch as f64 / INTERVAL
    }

    fn limits(&self) -> RateLimits {
        let rate = self.rate();
        RateLimits::new(rate * 0.075, rate * 0.15, rate * 1.25).expect("in order")
    }

    fn reports(&self) -> Vec<FeedbackReport> {
        (0..self.reports).map(|report| self.report(report)).collect()
    }

    fn report(&self, report: i64) -> FeedbackReport {
        let packet = |number: i64| {
            let send_time = Timestamp::ZERO + INTERVAL / self.batch * number;
            // In steps of 250 us, as TWCC has it.
            let wobble_us = 25_000 + (number / 8 * 7_919) % 900 / 250 * 250;
            let arrival = send_time.as_micros() / 250 * 250 + wobble_us;
            PacketReport::new(number, self.size, send_time)
                .with_arrival_time((number % 100 != 37).then_some(Timestamp::from_micros(arrival)))
        };
        let numbers = report * self.batch..(report + 1) * self.batch;
        FeedbackReport::new(numbers.map(packet).collect())
    }
}

/// When a report comes.
fn time_of(report: &FeedbackReport) -> Timestamp {
    report.packets.last().expect("a batch has packets").send_time + INTERVAL
}

fn controllers(criterion: &mut Criterion) {
    let reports = CALL.reports();
    let mut group = criterion.benchmark_group("packet, send and feedback");
    group.throughput(Throughput::Elements(CALL.packets() as u64));
    for algorithm in Algorithm::all() {
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter_batched_ref(
                || algorithm.build(CALL.limits()),
                |controller| {
                    for report in &reports {
                        for packet in &report.packets {
                            let sent = SentPacket::new(packet.sequence_number, packet.size);
                            controller.on_packet_sent(packet.send_time, &sent);
                        }
                        let now = time_of(report);
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

fn feedback(criterion: &mut Criterion) {
    let reports = FAST.reports();
    let mut group = criterion.benchmark_group("packet, feedback on 2,100 at once");
    group.throughput(Throughput::Elements(FAST.packets() as u64));
    for algorithm in Algorithm::all() {
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter_batched_ref(
                || algorithm.build(FAST.limits()),
                |controller| {
                    for report in &reports {
                        controller.on_feedback(time_of(report), report);
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
    feedback(&mut criterion);
    criterion.final_summary();
}
