//! Congestion controllers of Weir and of moq-noq over the same networks, in virtual time. Prints a
//! Markdown table.

#[path = "../tests/it/pair.rs"]
mod pair;
#[path = "../tests/moq/shim.rs"]
#[allow(dead_code, unused_imports, reason = "the tests need more of it")]
mod shim;

use std::sync::Arc;

use moq_noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta};
use weir_quic::testing::run;

use shim::RealTime;

#[path = "../tests/it/cases.rs"]
mod cases;

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

fn factories() -> Vec<(&'static str, Factory)> {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).expect("in order");
    vec![
        ("sluice", Arc::new(RealTime::new(Algorithm::Sluice, limits))),
        ("scream-v2", Arc::new(RealTime::new(Algorithm::ScreamV2, limits))),
        ("moq-noq's CUBIC", Arc::new(CubicConfig::default())),
        ("moq-noq's NewReno", Arc::new(NewRenoConfig::default())),
        ("moq-noq's BBRv3", Arc::new(Bbr3Config::default())),
    ]
}

fn main() {
    println!("{}", cases::HEAD);
    for case in cases::cases() {
        for (name, factory) in factories() {
            let mut transport = shim::transport();
            transport.congestion_controller_factory(factory);
            let mut host = pair::Pair::new(transport, 7);
            let (length, from) = (TimeDelta::from_secs(40), TimeDelta::from_secs(10));
            let outcome = run(&mut host, case.network.clone(), case.source, length, from);
            println!("| {} | {name} | {outcome} |", case.name);
        }
    }
}
