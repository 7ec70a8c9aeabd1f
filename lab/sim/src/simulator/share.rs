//! The fair share of a subscriber in the capacity of its path.

use weir::units::{Bitrate, Timestamp};

use crate::config::{Config, FlowConfig, FlowKind};

/// What is left of the capacity after UDP flows, divided by the number of flows that adapt to it
/// and cross a bottleneck of this one in its direction. `None` without a known capacity on a path
/// that has one; a path without any limit has an unlimited share.
pub(super) fn share(
    config: &Config,
    index: usize,
    at: Timestamp,
    capacity: Option<Bitrate>,
) -> Option<Bitrate> {
    let own = &config.flows[index];
    let Some(capacity) = capacity else {
        return own.attachment.is_none().then_some(Bitrate::MAX);
    };
    let mut left = capacity;
    let mut adapting = 0_u32;
    for flow in config.flows.iter().filter(|flow| shares(own, flow) && is_active(flow, at)) {
        match &flow.traffic {
            FlowKind::Udp(udp) => left = left.saturating_sub(udp.rate.rate(at)),
            FlowKind::Tcp(tcp) if tcp.short.is_some() => {}
            FlowKind::Tcp(_) | FlowKind::Media(_) | FlowKind::Subscriber(_) | FlowKind::Quic(_) => {
                adapting += 1
            }
        }
    }
    Some(left * (1.0 / f64::from(adapting.max(1))))
}

fn shares(own: &FlowConfig, other: &FlowConfig) -> bool {
    let same_hop = own.hops.start < other.hops.end && other.hops.start < own.hops.end;
    let same_terminal = own.attachment.is_some() && own.attachment == other.attachment;
    own.direction == other.direction && (same_hop || same_terminal)
}

fn is_active(flow: &FlowConfig, at: Timestamp) -> bool {
    (flow.start..flow.stop).contains(&at) && !flow.pauses.iter().any(|pause| pause.contains(&at))
}
