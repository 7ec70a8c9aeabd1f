//! noq with controllers of Weir, without sockets and with them.

mod loopback;
mod pair;
mod shim;
mod virtual_time;
