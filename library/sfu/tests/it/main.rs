//! Tests of the core of a forwarding server from outside.

mod dependency;
mod extremes;
mod restarts;
mod rewriter;
mod room;
