//! Tests of both ends of a flow, connected by bytes: each end must read what the other writes.

mod path;
mod receiver;
mod sender;
