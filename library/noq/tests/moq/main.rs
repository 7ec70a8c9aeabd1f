//! moq's own stack with controllers of Weir, without sockets and with them. The tests are those
//! of noq.

#[path = "../it/loopback.rs"]
mod loopback;
#[path = "../it/pair.rs"]
mod pair;
mod shim;
#[path = "../it/virtual_time.rs"]
mod virtual_time;
