//! Congestion controllers for real-time media.
//!
//! Each controller is a pure state machine behind the [`Controller`] trait: packets sent and feedback
//! go in with the time `now`, a [`Target`] comes out. Nothing here reads a clock, opens a socket or
//! starts a thread, so the same object runs in a simulator, in a media pipeline and behind a C header.
//!
//! A sender wires the parts so:
//!
//! ```text
//! media source -> Pacer -> SendHistory::on_packet_sent, Controller::on_packet_sent -> network
//! feedback packet -> SendHistory::on_twcc -> FeedbackReport -> Controller::on_feedback
//!                 -> Controller::target -> media source (bitrate), Pacer (pacing rate, send window)
//! ```
//!
//! The receiver's half is [`feedback::ArrivalRecorder`], whose batches `weir-wire` turns into bytes; for
//! an algorithm that estimates at the receiver it is a [`ReceiverEstimator`].
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod controller;
pub mod controllers;
pub mod coupled;
pub mod feedback;
pub mod pacer;
pub mod receiver;
pub mod units;

pub use controller::{Controller, Metrics, RateLimits, Reason, Target};
pub use controllers::Algorithm;
pub use feedback::{FeedbackReport, PacketReport, SendHistory, SentPacket};
pub use receiver::{ReceivedPacket, ReceiverEstimator};
pub use units::{Bitrate, DataSize, TimeDelta, Timestamp};
