//! Network emulation: runs the network models of `weir-net` in real time, for unmodified programs.
//!
//! [`Emulator`] creates the hosts of a [`Plan`] as network namespaces with one TUN interface each.
//! It moves packets between them through a [`Bottleneck`](weir_net::Bottleneck) for each direction
//! of each hop, the same type that the simulator uses. Linux only. It needs root, or a kernel that
//! lets users create user namespaces ([`gain_rights`]).

mod emulator;
mod error;
mod handle;
mod interfaces;
mod ip;
mod iperf;
mod kernel_tcp;
mod lateness;
mod link;
mod load;
mod namespaces;
mod nat;
mod network;
mod offload;
mod plan;
mod probe;
mod process;
mod real_time;
mod record;
mod rights;
mod self_test;
mod sys;
mod tap;
mod user;

pub use emulator::Emulator;
pub use error::Error;
pub use handle::{Change, DirectionStatus, Handle, Property, Status};
pub use interfaces::{OwnAddress, own_addresses};
pub use iperf::{IperfLoad, LoadInterval, LoadReceiver, LoadReport, RunningLoad};
pub use kernel_tcp::{KernelTcp, kernel_congestion_controls, kernel_tcp};
pub use lateness::{Lateness, Stall};
pub use link::Running;
pub use load::CpuShares;
pub use namespaces::Host;
pub use nat::{NatPlan, NatRecord, outside_addresses};
pub use plan::{HostPlan, OwnNetwork, Plan};
pub use probe::{Probe, Probed, probe, wake_lateness};
pub use process::Child;
pub use record::{
    DirectionRecord, Disturbance, Effort, Emulation, FlowRecord, FlowSample, HopRecord,
    SAMPLE_INTERVAL, Sample, TrafficTotals,
};
pub use rights::gain_rights;
pub use self_test::{QuantityCheck, SelfTest, self_test};
pub use sys::signals::Signals;
pub use tap::{DatagramTap, Tap, Tapped};
pub use user::User;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
