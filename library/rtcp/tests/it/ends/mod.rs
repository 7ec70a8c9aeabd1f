//! Tests of both ends of a flow, connected by bytes: each end must read what the other writes.

#![expect(clippy::incompatible_msrv, reason = "tests run with the compiler of the lab")]

mod path;
mod receiver;
mod restarts;
mod sender;
