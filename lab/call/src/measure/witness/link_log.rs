//! The emulator's log of the packets between two hosts of a call.

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_emu::{Emulation, Plan};
use weir_net::Jitter;
use weir_record::calls::derive::Count;

use crate::measure::capture::Window;
use crate::plan::CallConfig;

/// Maximum time, in addition to the lateness, between a packet leaving a host and the emulator
/// reading it.
const READ_EDGE: TimeDelta = TimeDelta::from_millis(2);

/// The emulator's log of the packets from one host to another within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkLog {
    /// Packets offered to the link.
    pub offered: Count,
    /// Packets delivered.
    pub delivered: Count,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Mean of propagation, queuing and transmission delay; `None` if the model randomizes it.
    pub delay: Option<TimeDelta>,
    /// Maximum over the intervals of the mean queuing delay.
    pub longest_wait: TimeDelta,
    /// The 99th percentile of the release lateness.
    pub lateness: TimeDelta,
}

/// The window over which emulator and captures are compared: the scenario's time.
pub fn link_window(config: &CallConfig, emulation: &Emulation) -> Window {
    let latest = TimeDelta::from_secs_f64(emulation.lateness.max().as_secs_f64());
    let network = &config.network;
    let start = Timestamp::ZERO;
    let hops = network.hops.iter().map(|hop| hop.up.delay.at(start).max(hop.down.delay.at(start)));
    let access = network.hosts.iter().map(|host| host.access_delay).max();
    let travel = hops.fold(access.unwrap_or(TimeDelta::ZERO) * 2, |sum, delay| sum + delay);
    Window { start, end: start + config.duration, edge: latest + READ_EDGE, travel }
}

/// The emulator's log of the packets from one host to another. `None` if there were none, or if
/// they do not cross exactly one hop.
pub(super) fn link_log(
    emulation: &Emulation,
    network: &Plan,
    [from, to]: [usize; 2],
    window: &Window,
) -> Option<LinkLog> {
    let flow = emulation.flow(from, to)?;
    let [start, end] = [&network.hosts[from], &network.hosts[to]];
    let hop = start.node.min(end.node);
    let is_on_air = start.attachment.is_some() || end.attachment.is_some();
    if start.node.abs_diff(end.node) != 1 || is_on_air {
        return None;
    }
    let (log, link) = match start.node < end.node {
        true => (&emulation.hops[hop].up, &network.hops[hop].up),
        false => (&emulation.hops[hop].down, &network.hops[hop].down),
    };
    let access_s = (start.access_delay + end.access_delay).as_secs_f64();
    let p99 = emulation.lateness.quantile(0.99).unwrap_or_default();
    let lateness = TimeDelta::from_secs_f64(p99.as_secs_f64());
    let mut sum = LinkLog { lateness, ..LinkLog::default() };
    let (mut delay_s, mut has_outage) = (0.0, false);
    for sample in flow.samples.iter().filter(|sample| window.contains(sample.time)) {
        let traffic = &sample.traffic;
        sum.offered.packets += traffic.offered_packets;
        sum.offered.bytes += traffic.offered.as_bytes();
        sum.delivered.packets += traffic.delivered_packets;
        sum.delivered.bytes += traffic.delivered.as_bytes();
        sum.lost += traffic.lost_packets;
        sum.dropped += traffic.dropped_packets;
        sum.longest_wait = sum.longest_wait.max(traffic.mean_wait().unwrap_or(TimeDelta::ZERO));
        let at = log.samples.partition_point(|other| other.time < sample.time);
        let capacity = log.samples.get(at).and_then(|sample| sample.capacity);
        has_outage |= capacity == Some(Bitrate::ZERO);
        let transmission_s = capacity
            .map_or(0.0, |capacity| traffic.delivered.as_bits() as f64 / capacity.as_bps_f64());
        let propagation_s = link.delay.at(sample.time).as_secs_f64() + access_s;
        delay_s += traffic.waited.as_secs_f64() + transmission_s;
        delay_s += propagation_s * traffic.delivered_packets as f64;
    }
    // Changes by hand are not in the configuration. During an outage, transmission takes longer
    // than the capacity suggests.
    let is_fixed =
        !has_outage && link.jitters().all(|it| it == Jitter::None) && emulation.changes.is_empty();
    let is_fixed = is_fixed && sum.delivered.packets > 0;
    sum.delay = is_fixed.then(|| TimeDelta::from_secs_f64(delay_s / sum.delivered.packets as f64));
    Some(sum)
}
