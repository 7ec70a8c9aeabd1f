//! quinn with controllers of Weir, without sockets and with them.

mod loopback;
#[path = "../../../noq/tests/it/pair.rs"]
mod pair;
mod shim;
mod virtual_time;
