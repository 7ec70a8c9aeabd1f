//! Prints a hash of one simulated call for each controller.
//!
//! The hashes are the same on every processor. `scripts/test/test-arm.sh` compares those of ARM
//! with those of this machine.
//!
//! ```text
//! cargo run --package weir-sim --example fingerprint
//! ```

use weir::controller::{RateLimits, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::{Capacity, Hop, Jitter, LinkConfig, LossModel, QueueLimit, Schedule, Seed};
use weir_sim::{Config, FlowConfig, FlowKind, Media, Source, run};

const DURATION: TimeDelta = TimeDelta::from_secs(60);

/// FNV-1a with 64 bits: short, and the same on every machine.
fn hash(text: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A path with steps of the capacity, jitter and loss, so that the result also depends on the
/// random numbers and on the functions of `libm`.
fn path() -> Hop {
    let step = |s, kbps| (Timestamp::from_secs(s), Bitrate::from_kbps(kbps));
    let steps = vec![step(0, 2_000), step(20, 500), step(40, 1_500)];
    let capacity = Schedule::new(steps).expect("the steps are in order");
    let delay = TimeDelta::from_millis(25);
    let up = LinkConfig::unlimited(delay)
        .with_capacity(Capacity::Schedule(capacity))
        .with_queue(QueueLimit::Bytes(DataSize::from_bytes(75_000)))
        .with_jitter(Jitter::HalfNormal { sd: TimeDelta::from_millis(3), reorder: false })
        .with_loss(LossModel::Random(0.005));
    Hop::new(up, LinkConfig::unlimited(delay))
}

fn main() {
    let kbps = Bitrate::from_kbps;
    let limits =
        RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("the limits are in order");
    for algorithm in LabAlgorithm::all() {
        let source = Source::Filler { fps: 30.0, cap: None };
        let media = Media::new(algorithm, Settings::from(limits), source);
        let flow = FlowConfig::new("media-1", DURATION, FlowKind::Media(media));
        let trace = run(&Config::wired(DURATION, vec![path()], vec![flow]), Seed::new(1));
        println!("{} {:016x}", algorithm.name(), hash(&format!("{trace:?}")));
    }
}
