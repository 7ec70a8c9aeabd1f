//! Network emulation: runs the network models of `weir-net` in real time, for unmodified programs.
//!
//! [`Emulator`] creates the hosts of a [`Plan`] as network namespaces with one TUN interface each.
//! It moves packets between them through a [`Bottleneck`](weir_net::Bottleneck) for each direction
//! of each hop, the same type that the simulator uses. Linux only. It needs root, or a kernel that
//! lets users create user namespaces ([`gain_rights`]).
//!
//! One thread moves the packets. It sleeps in `ppoll` until the model's next event or the next
//! packet, and measures how late it wakes up. Its hosts are namespaces along a row of hops, or
//! terminals of an access network in front of the hops, and may be behind a NAT. All programs that
//! only answer a question, such as for their version, run by [`output`]: with a time limit, a
//! bound, and an end with the process.
//!
//! Why TUN: many machines lack the kernel's netem module, and netem knows neither our traces nor
//! our seeds. A TUN device delivers whole IP packets without ARP, and works for any program. With
//! virtio headers one system call moves many packets; `offload` splits them before the model sees
//! them.

mod answer;
mod emulator;
mod enclosure;
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

pub use answer::{Limits, interrupt_answers, output, status};
pub use emulator::Emulator;
pub use enclosure::Enclosure;
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
