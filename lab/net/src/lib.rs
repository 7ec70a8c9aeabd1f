//! Network models without input or output: packets enter at a time `now` and leave at a later time.
//!
//! The simulator drives the models in virtual time. The emulator drives them in real time with real
//! packets. Both get the same behaviour, because the models do not know which of the two drives
//! them.
//!
//! ```text
//! enqueue -> loss -> duplication -> queue -> capacity -> delay + jitter -> poll
//! ```
//!
//! # Modules
//!
//! - `bottleneck`: one direction of a hop.
//! - `queue/`: the queue disciplines, one file each.
//! - `wifi/`: the Wi-Fi cell, computed from frame to frame, with one file for each word of its
//!   figure.
//! - `cellular/`: the cellular cell, computed from TTI to TTI, with one file for each step of its
//!   figure.
//! - `path/`: the router. Every kind of network implements its trait `Network`: a packet enters,
//!   the next event, a packet leaves. A network with terminals, such as the cell, also implements
//!   `AccessNetwork`.
//! - `nat`: a NAT as a table over packets of bytes; only the emulator uses it.
//! - `access/`: the two kinds of access networks: configuration, log, changes, and the trait
//!   `AccessNetwork`. Simulator, emulator, calls and records use them through these.
//! - `seed`: the random streams of a seed.
#![forbid(unsafe_code)]

pub mod access;
pub mod bottleneck;
pub mod capacity;
pub mod cellular;
pub mod delay;
pub mod jitter;
pub mod load;
pub mod loss;
pub mod nat;
pub mod packet;
pub mod path;
pub mod policer;
pub mod queue;
pub mod seed;
pub mod wifi;

pub use bottleneck::{Bottleneck, Changes, Counters, LinkConfig};
pub use capacity::{
    Capacity, CapacityTrace, Opportunity, Schedule, ScheduleError, TraceEnd, TraceLines,
};
pub use delay::Delay;
pub use jitter::{Jitter, JitterShape, NetemJitter};
pub use loss::LossModel;
pub use packet::{Delivery, DropCause, Dropped, FlowKey, Header, Outcome};
pub use path::Hop;
pub use policer::PolicerConfig;
pub use queue::{Aqm, CoDelConfig, DualPi2Config, PieConfig, QueueLimit, RedConfig};
pub use seed::Seed;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
