//! noq with controllers of Weir, without sockets and with them.

mod allocation;
mod calls;
#[path = "../../../weir/tests/it/heap.rs"]
mod heap;
mod loopback;
mod pair;
mod shim;
mod virtual_time;
