//! The network models of `weir-net` at the wall clock, around programs that know nothing of them.
//!
//! [`Emulator`] makes two hosts (network namespaces with one TUN interface each) and moves packets
//! between them through a [`Bottleneck`](weir_net::Bottleneck) a direction, the same object that the
//! simulator drives. Linux only, and root only: namespaces and devices need it.

mod direction;
mod emulator;
mod error;
mod ip;
mod kernel_tcp;
mod lateness;
mod link;
mod load;
mod namespaces;
mod process;
mod record;
mod self_test;
mod sys;

pub use emulator::Emulator;
pub use error::Error;
pub use kernel_tcp::{KernelTcp, kernel_congestion_controls, kernel_tcp};
pub use lateness::Lateness;
pub use link::{Ended, run_command};
pub use namespaces::Host;
pub use process::Child;
pub use record::{Bent, DirectionRecord, Emulation, SAMPLE_INTERVAL, Sample};
pub use self_test::{Row, SelfTest, self_test};
