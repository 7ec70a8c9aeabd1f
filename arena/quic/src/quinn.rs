//! Calls over quinn.

#[path = "../../../library/quinn/tests/it/host.rs"]
#[allow(dead_code, reason = "the tests that share this file need more")]
mod host;
#[path = "receiver.rs"]
mod receiver;
#[path = "sender.rs"]
mod sender;

use std::sync::Arc;

use arena_driver::protocol::Settings;
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use weir::Algorithm;
use weir_quinn::RealTime;

use crate::limits;

pub use receiver::receive;
pub use sender::send;

/// The controllers that quinn comes with, by name, and ours.
fn factory(name: &str, settings: &Settings) -> anyhow::Result<host::Factory> {
    Ok(match name {
        "cubic" => Arc::new(CubicConfig::default()),
        "new-reno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        ours => Arc::new(RealTime::new(ours.parse::<Algorithm>()?, limits(settings)?)),
    })
}
