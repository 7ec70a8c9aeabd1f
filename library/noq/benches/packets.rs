//! What noq's calls for a packet cost: its sending, its ACK with another one, what noq's pacer
//! reads, and for one in 100 its loss. Beside the controllers that noq brings.

#[path = "../tests/it/calls.rs"]
mod calls;
#[path = "../tests/it/pair.rs"]
mod pair;
#[path = "../tests/it/shim.rs"]
#[allow(dead_code, unused_imports, reason = "the tests need more of it")]
mod shim;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, CubicConfig, NewRenoConfig,
};
use weir::{Algorithm, Bitrate, RateLimits};
use weir_noq::RealTime;

use calls::Calls;

const PACKETS: u64 = 1_000;

fn factories() -> Vec<(&'static str, Arc<dyn ControllerFactory + Send + Sync>)> {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).expect("in order");
    let mut all: Vec<(_, Arc<dyn ControllerFactory + Send + Sync>)> = vec![
        ("noq's CUBIC", Arc::new(CubicConfig::default())),
        ("noq's NewReno", Arc::new(NewRenoConfig::default())),
        ("noq's BBRv3", Arc::new(Bbr3Config::default())),
    ];
    for algorithm in [Algorithm::Sluice, Algorithm::ScreamV2, Algorithm::Gcc, Algorithm::Nada] {
        all.push((algorithm.name(), Arc::new(RealTime::new(algorithm, limits))));
    }
    all
}

fn thousand(calls: &mut Calls, controller: &mut dyn Controller) {
    for _ in 0..PACKETS {
        black_box(calls.packet(controller));
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("packets");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, factory) in factories() {
        let began = Instant::now();
        let (mut controller, mut calls) = (factory.build(began, 1_200), Calls::new(began));
        group.bench_function(name, |bencher| {
            bencher.iter(|| thousand(&mut calls, &mut *controller));
        });
    }
    group.finish();
    criterion.final_summary();
}
