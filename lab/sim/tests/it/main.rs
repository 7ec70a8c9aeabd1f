//! Tests of the simulator from outside.

mod ecn;
mod wifi;
