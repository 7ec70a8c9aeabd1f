//! Congestion controllers for real-time media.
//!
//! Each controller is a pure state machine behind the [`Controller`] trait. Its inputs are sent
//! packets and feedback, each with the time `now`; its output is a [`Target`]. Nothing here reads a
//! clock, opens a socket or starts a thread. The same object can therefore run in a simulator, in a
//! media pipeline or behind a C header.
//!
//! [`MediaSender`] ties the parts of a sender together and calls them in the right order:
//!
//! ```text
//! media source -> Pacer -> SendHistory::on_packet_sent, Controller::on_packet_sent -> network
//! feedback packet -> SendHistory::on_twcc -> FeedbackReport -> Controller::on_feedback
//!                 -> Controller::target -> media source (bitrate),
//!                                          Pacer (pacing rate, send window)
//! ```
//!
//! On the receiving side, [`feedback::ArrivalRecorder`] records arrivals for feedback. The crate
//! `weir-rtcp` implements both ends with RTCP packets as bytes.
//!
//! This example runs NADA for two seconds. The path has a one-way delay of 20 ms and unlimited
//! capacity; feedback arrives every 100 ms.
//!
//! ```
//! use weir::feedback::{Outgoing, TwccHeader};
//! use weir::{Algorithm, Bitrate, DataSize, RateLimits, SendHistory, TimeDelta, Timestamp};
//!
//! let kbps = Bitrate::from_kbps;
//! let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("min <= start <= max");
//! let mut controller = Algorithm::Nada.build(limits);
//! let mut history = SendHistory::new(0);
//! let size = DataSize::from_bytes(1_200);
//! let mut now = Timestamp::ZERO;
//! for feedback_count in 0..20 {
//!     let end = now + TimeDelta::from_millis(100);
//!     let mut arrivals = Vec::new();
//!     while now < end {
//!         let packet = history.on_packet_sent(now, Outgoing::media(size));
//!         controller.on_packet_sent(now, &packet);
//!         let ticks_of_250_us = (now + TimeDelta::from_millis(20)).as_micros() / 250;
//!         arrivals.push((packet.sequence_number as u16, Some(ticks_of_250_us as i32)));
//!         now += size / controller.target().bitrate;
//!     }
//!     let header = TwccHeader { reference_time: 0, feedback_count };
//!     let report = history.on_twcc(header, arrivals.into_iter()).expect("it has new packets");
//!     controller.on_feedback(now, report);
//! }
//! assert!(controller.target().bitrate > kbps(1_000));
//! ```
#![no_std]
// Labels in the documentation say which feature adds an item.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;

/// Defines `with_*` methods, which return the value with one field changed. Callers build types
/// that are `non_exhaustive` with these. For the crates beside this one.
#[doc(hidden)]
#[macro_export]
macro_rules! with {
    (const $($name:ident: $field:ident: $type:ty,)*) => {
        $($crate::with! { @method [const fn] $name $field $type })*
    };
    ($($name:ident: $field:ident: $type:ty,)*) => {
        $($crate::with! { @method [fn] $name $field $type })*
    };
    (@method [$($function:tt)+] $name:ident $field:ident $type:ty) => {
        #[doc = concat!("The same with this \
            [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
        #[must_use]
        pub $($function)+ $name(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    };
}

pub mod controller;
pub mod controllers;
pub mod coupled;
mod duration;
mod factory;
pub mod feedback;
mod fifo;
pub mod media_sender;
pub mod observation;
pub mod pacer;
#[cfg(feature = "serde")]
mod serde_impls;
#[cfg(feature = "std")]
mod std_time;
#[cfg(feature = "testing")]
pub mod testing;
pub mod units;

pub use controller::{Controller, Metrics, RateLimits, Reason, Settings, Target};
pub use controllers::Algorithm;
pub use duration::NegativeDuration;
pub use factory::ControllerFactory;
pub use feedback::{FeedbackReport, PacketReport, SendHistory, SentPacket};
pub use media_sender::{MediaSender, PacedPacket, PacketKind, TargetChange};
pub use units::{Bitrate, DataSize, TimeDelta, Timestamp};
