//! Congestion controllers of Weir and of moq-noq over the same networks, in virtual time. Prints a
//! Markdown table.

#[path = "../tests/it/compare.rs"]
mod compare;
#[path = "../tests/it/pair.rs"]
mod pair;
#[path = "../tests/moq/shim.rs"]
#[allow(dead_code, unused_imports, reason = "the tests need more of it")]
mod shim;

use std::sync::Arc;

use moq_noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};

fn main() {
    compare::compare([
        ("moq-noq's CUBIC", Arc::new(CubicConfig::default()) as compare::Factory),
        ("moq-noq's NewReno", Arc::new(NewRenoConfig::default())),
        ("moq-noq's BBRv3", Arc::new(Bbr3Config::default())),
    ]);
}
