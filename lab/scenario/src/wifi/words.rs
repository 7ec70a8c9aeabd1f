//! Describes a Wi-Fi cell in words: one line per node or group of nodes.

use weir_net::wifi::{
    Aggregation, Arrivals, CellConfig, DataRate, Edca, Errors, GuardInterval, Link, NodeConfig,
    NodeQueue, Noise, RateControl, RetryPolicy, StationLoad, WaitLimit,
};

use crate::kind::NodeGroup;
use crate::words::{percent, rate, thousands, time};

pub(super) fn in_words(config: &CellConfig, groups: &[NodeGroup]) -> Vec<String> {
    let mut words = vec![format!("Wi-Fi access point: {}", node(&config.access_point))];
    for NodeGroup { name, nodes } in groups {
        let stations = config.stations.len();
        let count = match nodes.len() {
            1 => format!("station {name}"),
            count => format!("{count} stations {name}"),
        };
        words.push(match config.stations.get(nodes.start - 1) {
            Some(station) => {
                let links = format!("up {}; down {}", link(&station.up), link(&station.down));
                format!("{count}: {links}; {}", node(&station.node))
            }
            None => {
                let neighbour = &config.neighbours[nodes.start - 1 - stations];
                let (link, node) = (link(&neighbour.link), node(&neighbour.node));
                format!("neighbour {name}: {link}; {node}")
            }
        });
    }
    words
}

fn node(node: &NodeConfig) -> String {
    let mut parts = vec![queue(node.queue)];
    parts.push(match node.aggregation {
        Aggregation { mpdus: 1, .. } => "no aggregation".into(),
        Aggregation { mpdus, .. } => format!("up to {mpdus} MPDUs a frame"),
    });
    match node.edca {
        Edca::STATION => {}
        Edca::ACCESS_POINT => parts.push("EDCA of access points".into()),
        _ => parts.push("EDCA of its own".into()),
    }
    match node.retry {
        RetryPolicy::Limit(limit) => parts.push(format!("{limit} attempts")),
        RetryPolicy::CongestionAware(policy) => parts.push(format!(
            "{} attempts, {} more without congestion",
            policy.limit, policy.extension
        )),
    }
    parts.join(", ")
}

fn queue(queue: NodeQueue) -> String {
    let words = |limit| match limit {
        WaitLimit::Packets(packets) => format!("{} packets", thousands(packets as u64)),
        WaitLimit::Bytes(bytes) => format!("{} B", thousands(bytes.as_bytes())),
    };
    match queue {
        NodeQueue::Fifo { limit } => format!("queue {}", words(limit)),
        NodeQueue::FairCoDel { limit, .. } => {
            format!("a queue under FQ-CoDel for each station, {}", words(limit))
        }
    }
}

fn link(link: &Link) -> String {
    let mut words = match &link.rate {
        RateControl::Fixed(rate) => data_rate(*rate),
        RateControl::Steps(first, _) => format!("{}, then as given", data_rate(*first)),
        RateControl::Ideal(_) => "the ideal rate".into(),
        RateControl::Minstrel(_) => "a rate by Minstrel".into(),
    };
    match link.errors {
        Errors::Ratio(0.0) => {}
        Errors::Ratio(ratio) => words += &format!(", {} of MPDUs lost", percent(ratio)),
        Errors::Bursts(bursts) => {
            let (good, bad) = (percent(bursts.error_good), percent(bursts.error_bad));
            words += &format!(", {good} of MPDUs lost in good times and {bad} in bad ones");
        }
        Errors::Noise(Noise { fading: None, .. }) => words += ", noise",
        Errors::Noise(_) => words += ", noise and fading",
    }
    for load in &link.loads {
        words += &format!(", {}", load_in_words(load));
    }
    words
}

fn data_rate(data: DataRate) -> String {
    let guard = if data.guard == GuardInterval::Short { ", short guard" } else { "" };
    format!("MCS {} ({}{guard})", data.mcs.index(), rate(data.bitrate()))
}

fn load_in_words(load: &StationLoad) -> String {
    match load.arrivals {
        Arrivals::Saturated => "always with something to send".into(),
        Arrivals::Constant(bitrate) => format!("sending {}", rate(bitrate)),
        Arrivals::Poisson(bitrate) => format!("sending {} at random", rate(bitrate)),
        Arrivals::Bursts { period, packets } => {
            format!("sending {packets} packets each {}", time(period))
        }
    }
}
