//! Tests of the program weir that need neither root, nor a browser, nor real time.

mod analyze;
mod arena_gate;
mod as_called;
mod bounds;
mod catalogue;
mod cli;
mod collect;
mod collect_attacked;
mod collector;
mod examples;
mod gate;
mod ns_3;
mod packaging;
mod protocol;
mod replayed_calls;
mod snippets;
mod tables;
