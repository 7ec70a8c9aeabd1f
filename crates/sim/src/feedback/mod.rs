//! Congestion feedback as bytes, in the format that is agreed at the time.
//!
//! ```text
//! receiver: packets -> Reporter -> TWCC, CCFB or RR bytes -> network ->
//! sender:   Heard -> SendHistory -> FeedbackReport           SenderReports -> SR bytes -> Reporter
//! ```
//!
//! An algorithm that estimates at the receiver has a `Limiter` beside the `Reporter`: packets -> Limiter
//! -> REMB bytes -> network -> the limit in Heard.
//!
//! A receiver that changes the format sends what it has in the old one first, then starts afresh.

mod receiver;
mod remb;
mod rtcp_interval;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use receiver::Reporter;
pub(crate) use remb::Limiter;
pub(crate) use sender::{Heard, SenderReports};

use weir::units::Timestamp;

/// What a receiver tells of the packets that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Transport-wide feedback.
    Twcc,
    /// Congestion control feedback of RFC 8888.
    Ccfb,
    /// RTCP receiver reports alone: losses and round-trip times.
    ReceiverReports,
}

/// The formats of a flow's feedback, from given times on; TWCC before the first.
pub(crate) type Plan = [(Timestamp, Feedback)];

/// The format at a time, and when it changes next.
fn in_force(plan: &Plan, now: Timestamp) -> (Feedback, Option<Timestamp>) {
    let next = plan.partition_point(|&(from, _)| from <= now);
    let format = next.checked_sub(1).map_or(Feedback::Twcc, |index| plan[index].1);
    (format, plan.get(next).map(|&(from, _)| from))
}
