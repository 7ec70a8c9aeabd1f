//! Congestion controllers of Weir and of quinn over the same networks, in virtual time. Prints a
//! Markdown table.

#[path = "../../noq/tests/it/compare.rs"]
mod compare;
#[path = "../../noq/tests/it/pair.rs"]
mod pair;
#[path = "../tests/it/shim.rs"]
#[allow(dead_code, unused_imports, reason = "the tests need more of it")]
mod shim;

use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};

fn main() {
    compare::compare([
        ("quinn's CUBIC", Arc::new(CubicConfig::default()) as compare::Factory),
        ("quinn's NewReno", Arc::new(NewRenoConfig::default())),
        ("quinn's BBR", Arc::new(BbrConfig::default())),
    ]);
}
