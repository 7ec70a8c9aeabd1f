//! Calls over noq.

#[path = "../../../library/noq/tests/it/host.rs"]
#[allow(dead_code, reason = "the tests that share this file need more")]
mod host;
#[path = "receiver.rs"]
mod receiver;
#[path = "sender.rs"]
mod sender;

use std::sync::Arc;

use arena_driver::protocol::Settings;
use noq::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};
use weir::Algorithm;
use weir_noq::RealTime;

use crate::limits;

pub use receiver::receive;
pub use sender::send;

/// The controllers that noq comes with, by name, and ours.
fn factory(name: &str, settings: &Settings) -> anyhow::Result<host::Factory> {
    Ok(match name {
        "cubic" => Arc::new(CubicConfig::default()),
        "new-reno" => Arc::new(NewRenoConfig::default()),
        "bbr3" => Arc::new(Bbr3Config::default()),
        ours => Arc::new(RealTime::new(ours.parse::<Algorithm>()?, limits(settings)?)),
    })
}
