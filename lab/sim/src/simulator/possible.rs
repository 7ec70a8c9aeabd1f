//! What an access network could have carried to each subscriber of a forwarding server.
//!
//! A Wi-Fi or cellular cell has no capacity that could be read: it depends on who else sends, on
//! fading and on retransmissions. So it is measured. A second simulation of the same network with
//! the same seed sends each subscriber as much as its server may ever send, without congestion
//! control. What arrives in a second is what could have been carried in it.

use std::sync::atomic::{AtomicBool, Ordering};

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{Schedule, Seed};

use super::Simulator;
use crate::config::{Config, FlowConfig, FlowKind, Udp};

/// Time over which is measured: longer than a fade that a queue bridges, shorter than a layer
/// should last.
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Size of the packets, as of full packets of video.
const PACKET: DataSize = DataSize::from_bytes(1_200);

/// Rates by window, then by flow.
#[derive(Debug)]
pub(super) struct PossibleRates(Vec<Vec<Bitrate>>);

impl PossibleRates {
    /// Measures; nothing without a subscriber in an access network, or if `stop` is set meanwhile.
    pub(super) fn measure(config: &Config, seed: Seed, stop: &AtomicBool) -> Option<Self> {
        if !config.flows.iter().any(is_in_cell) {
            return None;
        }
        let saturated = saturated(config);
        let all: Vec<usize> = (0..config.flows.len()).collect();
        let mut simulator = Simulator::new(&saturated, &all, seed);
        let end = Timestamp::ZERO + config.duration;
        let mut until = Timestamp::ZERO;
        let mut windows = Vec::new();
        while until < end {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let from = until;
            until = (until + WINDOW).min(end);
            simulator.run_until(until);
            let mut received = vec![DataSize::ZERO; config.flows.len()];
            for row in &simulator.trace().rows {
                received[row.flow] += row.received;
            }
            simulator.trace().clear();
            windows.push(received.into_iter().map(|size| size / (until - from)).collect());
        }
        Some(Self(windows))
    }

    /// What could have been carried to a flow in the second of this time.
    pub(super) fn rate(&self, flow: usize, at: Timestamp) -> Option<Bitrate> {
        let window = (at - Timestamp::ZERO).as_nanos() / WINDOW.as_nanos();
        self.0.get(usize::try_from(window).ok()?)?.get(flow).copied()
    }
}

fn is_in_cell(flow: &FlowConfig) -> bool {
    flow.attachment.is_some() && matches!(flow.traffic, FlowKind::Subscriber(_))
}

/// The same network, in which each subscriber is sent as much as its limits allow.
fn saturated(config: &Config) -> Config {
    let mut flows = Vec::new();
    for flow in &config.flows {
        let mut flow = flow.clone();
        if let FlowKind::Subscriber(watching) = &flow.traffic
            && let Ok(rate) = Schedule::constant(watching.media.settings.limits.max())
        {
            flow.traffic = FlowKind::Udp(Udp::new(rate, PACKET));
        }
        flows.push(flow);
    }
    Config { flows, publishers: Vec::new(), ..config.clone() }
}
