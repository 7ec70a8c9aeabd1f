//! The network models of `weir-net` at the wall clock, around programs that know nothing of them.
//!
//! [`Emulator`] makes the hosts of a [`Plan`] (network namespaces with one TUN interface each) and
//! moves packets between them through a [`Bottleneck`](weir_net::Bottleneck) for each direction of each
//! hop, the same object that the simulator drives. Linux only, and root only: namespaces and devices
//! need it.

mod emulator;
mod error;
mod handle;
mod ip;
mod kernel_tcp;
mod lateness;
mod link;
mod load;
mod namespaces;
mod network;
mod plan;
mod process;
mod real_time;
mod record;
mod self_test;
mod sys;

pub use emulator::Emulator;
pub use error::Error;
pub use kernel_tcp::{KernelTcp, kernel_congestion_controls, kernel_tcp};
pub use lateness::Lateness;
pub use link::{Ended, run_command};
pub use namespaces::Host;
pub use plan::{Hop, HostPlan, Plan};
pub use process::Child;
pub use record::{
    Bent, DirectionRecord, Emulation, FlowRecord, FlowSample, HopRecord, SAMPLE_INTERVAL, Sample,
    Traffic,
};
pub use self_test::{Row, SelfTest, self_test};
