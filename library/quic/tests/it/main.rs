//! Tests of the crate from outside.

mod allocation;
mod closed_loop;
#[path = "../../../weir/tests/it/heap.rs"]
mod heap;
mod model;
mod properties;
mod reports;
