//! quinn with controllers of Weir, without sockets and with them. The tests are those of `noq`.

#[path = "../../../noq/tests/it/loopback.rs"]
mod loopback;
#[path = "../../../noq/tests/it/pair.rs"]
mod pair;
mod shim;
#[path = "../../../noq/tests/it/virtual_time.rs"]
mod virtual_time;
