#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! ```text
//! publisher --> Uplink: bitrates of layers, who watches what, key frames
//!                 |
//!                 v                       one for each subscriber
//!  packets --> Subscriber::forward --> Rewriter --> weir_rtcp::Sender --> next_packet
//!                 ^                                   |   Probing: a controller that probes
//!                 |                                   v
//!              Allocator <------------------------- target bitrate
//! ```
//!
//! [`Subscriber`] combines the parts, with bytes on both sides. A server that has its own send path
//! uses single parts: [`Allocator`] over any estimate, [`Probing`] around any controller, and
//! [`Rewriter`] for the numbers of a forwarded stream.
//!
//! Nothing here reads a clock or opens a socket: `now` is always an argument, counted from any
//! origin. The same calls give the same results.
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/forward-media.md")]
struct GuidePage;

mod allocator;
mod cache;
mod ceiling;
mod decision;
mod hysteresis;
mod pairs;
mod plan;
mod prober;
mod rewriter;
mod subscriber;
mod targets;
mod track;
mod trains;
mod uplink;
mod usual_loss;
mod utility;
mod vp8;

pub use allocator::Allocator;
pub use cache::{Cache, Resend};
pub use decision::{Change, Decision, Reason};
pub use prober::{ProbeOutcome, ProbeResult, Probing};
pub use rewriter::{Rewriter, Verdict};
pub use subscriber::{ForwardError, OutgoingStream, Subscriber, SubscriberConfig, TrackStats};
pub use targets::{DependencyReader, Selection, TargetSelector};
pub use track::{Frame, Kind, Layer, Structure, TrackConfig, TrackId};
pub use uplink::{LayerDemand, Uplink};
pub use vp8::PayloadDescriptor;
