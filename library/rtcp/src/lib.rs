#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! ```text
//! sender                                                 receiver
//! RTP    MediaSender -> header extension  ------------>  Receiver::on_rtp -> Reporter
//! TWCC, CCFB, RR, REMB  Message -> SendHistory  <------  Reporter
//! SR     SenderReports  ------------------------------>  Reporter::on_sender_report
//! ```
//!
//! [`Sender`] and [`Receiver`] combine these parts, with bytes on both sides. A program with its
//! own RTP stack can use single parts: [`Message`] to read feedback (and [`rtcp_from_fci`], if the
//! stack keeps the RTCP header), [`FeedbackInput`] to pass it to the controller, [`SenderReports`]
//! and [`Reporter`].
//!
//! Nothing here reads a clock or opens a socket: `now` is always an argument, counted from any
//! origin. All RTCP packets written are of reduced size: each one stands alone, not in a compound
//! packet that starts with a report and a canonical name [RFC3550 §6.1]. The peer has to accept
//! that (`a=rtcp-rsize`).
//!
//! [RFC3550 §6.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.1
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embed-a-controller.md")]
struct Guide;

mod circuit_breaker;
mod feedback_input;
mod interval;
mod message;
mod outbox;
mod receiver;
mod reporter;
mod rtp_packet;
mod sender;
mod sender_reports;

pub use circuit_breaker::{CircuitBreak, CircuitBreaker};
pub use feedback_input::FeedbackInput;
pub use interval::{Random, seeded};
pub use message::{
    FeedbackKind, KeyFrameRequest, Message, RtcpEvent, compact_ntp_to_time, messages, rtcp_from_fci,
};
pub use receiver::{Receiver, ReceiverConfig};
pub use reporter::{Feedback, Reporter, ReporterConfig};
pub use rtp_packet::{is_rtcp, write_element};
pub use sender::{EnqueueError, Sender, SenderConfig};
pub use sender_reports::SenderReports;
