//! Cost of the C border per packet: the same calls of a controller from Rust and through the C
//! functions, in one run.
//!
//! The packets are those of a 2 Mbit/s flow with feedback every 50 ms and 1 % loss. The reports are
//! made in advance on both sides, as a host has them from its RTP stack. The C functions are called
//! through pointers that the compiler cannot see through, as a C program calls a library.

#[path = "../tests/it/common/mod.rs"]
mod common;

use std::ffi::CString;
use std::hint::black_box;
use std::ptr::null_mut;

use common::{ok, raw_report, raw_settings, sized};
use criterion::{BatchSize, Criterion, Throughput};
use weir::controller::Settings;
use weir::feedback::SentPacket;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{Algorithm, Controller, FeedbackReport, PacketReport, RateLimits};
use weir_capi::*;

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

/// Sends all packets and reports them, from Rust.
fn run_rust(controller: &mut (dyn Controller + Send), reports: &[FeedbackReport]) {
    for (index, report) in reports.iter().enumerate() {
        for packet in &report.packets {
            let sent = SentPacket::new(packet.sequence_number, packet.size);
            controller.on_packet_sent(packet.send_time, &sent);
            black_box(controller.target());
        }
        // A batch takes 50 ms. Then the feedback on the one before it arrives.
        let now = report.packets[report.packets.len() - 1].send_time;
        if controller.next_timeout().is_some_and(|due| due <= now) {
            controller.on_timeout(now);
        }
        controller.on_feedback(now, &reports[index.saturating_sub(1)]);
        black_box(controller.target());
    }
}

/// The C functions, as a program has them after linking.
struct Functions {
    on_packet_sent:
        unsafe extern "C" fn(*mut weir_controller, i64, *const weir_sent_packet) -> weir_status,
    on_feedback:
        unsafe extern "C" fn(*mut weir_controller, i64, *const weir_feedback) -> weir_status,
    on_timeout: unsafe extern "C" fn(*mut weir_controller, i64) -> weir_status,
    target: unsafe extern "C" fn(*const weir_controller, *mut weir_target) -> weir_status,
}

/// The same as [`run_rust`], through the border.
fn run_c(
    functions: &Functions,
    controller: *mut weir_controller,
    reports: &[Vec<weir_packet_report>],
) {
    let mut sent: weir_sent_packet = sized();
    sent.size_bytes = SIZE.as_bytes();
    let mut target: weir_target = sized();
    for (index, report) in reports.iter().enumerate() {
        for packet in report {
            sent.sequence_number = packet.sequence_number;
            // SAFETY: the handle and the structs live.
            unsafe {
                (functions.on_packet_sent)(controller, packet.send_time_ns, &sent);
                (functions.target)(controller, &mut target);
            }
            black_box(&target);
        }
        let mut feedback: weir_feedback = sized();
        let before = &reports[index.saturating_sub(1)];
        feedback.packets = before.as_ptr();
        feedback.packet_count = before.len();
        let now_ns = report[report.len() - 1].send_time_ns;
        // SAFETY: the handle, the array and the structs live.
        unsafe {
            (functions.on_timeout)(controller, now_ns);
            ok((functions.on_feedback)(controller, now_ns, &feedback));
            (functions.target)(controller, &mut target);
        }
        black_box(&target);
    }
}

/// A handle that is freed at the end.
struct Handle(*mut weir_controller);

impl Handle {
    fn new(algorithm: Algorithm, limits: RateLimits) -> Self {
        let name = CString::new(algorithm.name()).expect("names have no NUL");
        let mut controller = null_mut();
        let settings = raw_settings(&Settings::new(limits));
        // SAFETY: all pointers are valid.
        ok(unsafe { weir_controller_new(name.as_ptr(), &settings, &mut controller) });
        Self(controller)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: it came from `weir_controller_new` and is freed once.
        unsafe { weir_controller_free(self.0) };
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let reports = reports();
    let raw = |report: &FeedbackReport| report.packets.iter().map(raw_report).collect();
    let raw_reports: Vec<Vec<weir_packet_report>> = reports.iter().map(raw).collect();
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order");
    let functions = black_box(Functions {
        on_packet_sent: weir_controller_on_packet_sent,
        on_feedback: weir_controller_on_feedback,
        on_timeout: weir_controller_on_timeout,
        target: weir_controller_target,
    });
    let mut group = criterion.benchmark_group("packet, send and feedback");
    group.throughput(Throughput::Elements(PACKETS as u64));
    for algorithm in Algorithm::all() {
        group.bench_function(format!("{algorithm}/Rust"), |bencher| {
            let run =
                |controller: &mut Box<dyn Controller + Send>| run_rust(&mut **controller, &reports);
            bencher.iter_batched_ref(|| algorithm.build(limits), run, BatchSize::SmallInput);
        });
        group.bench_function(format!("{algorithm}/C"), |bencher| {
            let run = |handle: &mut Handle| run_c(&functions, handle.0, &raw_reports);
            bencher.iter_batched_ref(|| Handle::new(algorithm, limits), run, BatchSize::SmallInput);
        });
    }
    group.finish();
    criterion.final_summary();
}
