//! Media, TCP and UDP flows over `weir-net` models, in virtual time.
//!
//! One thread, one queue of deadlines, one seed: equal inputs give equal bytes. Feedback travels as
//! real RTCP bytes through `weir-wire`. What happened is a [`trace::Trace`].

pub mod config;
mod coupling;
mod deadlines;
mod endpoint;
mod feedback;
mod flow;
mod media;
mod rtp_format;
mod simulator;
mod source;
mod tcp;
pub mod trace;
mod udp;

pub use config::{Config, Direction, Feedback, FlowConfig, FlowKind, Media, Repair, Source, Udp};
pub use simulator::{run, run_in_parts, run_unless};
pub use tcp::{Congestion, Cubic, ShortTransfers, Tcp};
pub use trace::Trace;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
