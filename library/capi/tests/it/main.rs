//! Tests of the interface for C, from Rust and from C programs.

mod allocations;
mod c_programs;
mod common;
mod header;
#[path = "../../../weir/tests/it/heap.rs"]
mod heap;
mod properties;
mod uninitialized;
