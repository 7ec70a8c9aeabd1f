//! Congestion controllers of Weir and of a QUIC stack over the same networks, in virtual time.

use std::sync::Arc;

use weir::{Algorithm, Bitrate, RateLimits, TimeDelta};
use weir_quic::testing::run;

use crate::pair::Pair;
use crate::shim::{self, RealTime, proto};
use proto::congestion::ControllerFactory;

#[path = "cases.rs"]
mod cases;

pub type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Prints a Markdown table of our controllers and of those that the stack has.
pub fn compare(of_the_stack: impl IntoIterator<Item = (&'static str, Factory)>) {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).expect("in order");
    let mut factories: Vec<(&str, Factory)> = vec![
        ("sluice", Arc::new(RealTime::new(Algorithm::Sluice, limits))),
        ("scream-v2", Arc::new(RealTime::new(Algorithm::ScreamV2, limits))),
    ];
    factories.extend(of_the_stack);
    println!("{}", cases::HEAD);
    for case in cases::cases() {
        for (name, factory) in &factories {
            let mut transport = shim::transport();
            transport.congestion_controller_factory(factory.clone());
            let mut host = Pair::new(transport, 7);
            let (length, from) = (TimeDelta::from_secs(40), TimeDelta::from_secs(10));
            let outcome = run(&mut host, case.network.clone(), case.source, length, from);
            println!("| {} | {name} | {outcome} |", case.name);
        }
    }
}
