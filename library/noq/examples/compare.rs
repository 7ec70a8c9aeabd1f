//! Congestion controllers of Weir and of noq over the same networks, in virtual time. Prints a
//! Markdown table.

#[path = "../tests/it/compare.rs"]
mod compare;
#[path = "../tests/it/pair.rs"]
mod pair;
#[path = "../tests/it/shim.rs"]
#[allow(dead_code, unused_imports, reason = "the tests need more of it")]
mod shim;

use std::sync::Arc;

use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};

fn main() {
    compare::compare([
        ("noq's CUBIC", Arc::new(CubicConfig::default()) as compare::Factory),
        ("noq's NewReno", Arc::new(NewRenoConfig::default())),
        ("noq's BBRv3", Arc::new(Bbr3Config::default())),
    ]);
}
