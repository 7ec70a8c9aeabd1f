//! Describes a cellular cell in words: one line for the base station, one per group of terminals.

use weir::units::Timestamp;
use weir_net::cellular::{
    BearerChange, BearerConfig, BearerQueue, CellularConfig, Directions, Duplex, Load, RlcMode,
    Scheduler, Signal, SignalChange, SlotKind, Technology, Terminal, UplinkAccess,
};
use weir_net::load::Arrivals;
use weir_net::path::Direction;
use weir_net::{Aqm, QueueLimit};

use crate::aqm;
use crate::kind::NodeGroup;
use crate::words::{rate, thousands, time};

pub(super) fn in_words(config: &CellularConfig, groups: &[NodeGroup]) -> Vec<String> {
    let mut words = vec![base_station(config)];
    for NodeGroup { name, nodes } in groups {
        let terminal = &config.terminals[nodes.start - 1];
        let later: Vec<String> = config
            .changes
            .iter()
            .filter(|(_, change)| change.terminal() == nodes.start - 1)
            .filter_map(|(at, change)| later_in_words(*at, change))
            .collect();
        let terminal = terminal_in_words(terminal, &later);
        words.push(match nodes.len() {
            1 => format!("terminal {name}: {terminal}"),
            count => format!("{count} terminals {name}, each: {terminal}"),
        });
    }
    words
}

fn base_station(config: &CellularConfig) -> String {
    let carrier = &config.carrier;
    let technology = match carrier.technology {
        Technology::Lte => "LTE".into(),
        Technology::Nr { numerology } => format!("NR at {} kHz", 15 << numerology),
    };
    let mut parts =
        vec![format!("{} resource blocks", both(&carrier.prbs, |prbs| prbs.to_string()))];
    if let Duplex::Time(pattern) = &carrier.duplex {
        let letters: String = pattern.iter().map(letter).collect();
        parts.push(format!("TDD {letters}"));
    }
    parts.push(format!("TTI {}", time(carrier.tti())));
    if (carrier.layers.up, carrier.layers.down) != (1, 1) {
        parts.push(format!("{} layers", both(&carrier.layers, |layers| layers.to_string())));
    }
    parts.push(
        match config.scheduler {
            Scheduler::RoundRobin => "round robin",
            Scheduler::MaximumRate => "maximum rate",
            Scheduler::QualityOfService => "guarantees first, then proportional fair",
            _ => "proportional fair",
        }
        .into(),
    );
    parts.push(match config.uplink_access {
        UplinkAccess::Ideal => "ideal uplink grants".into(),
        UplinkAccess::Requested(request) => {
            format!("scheduling requests each {}", time(request.period))
        }
        UplinkAccess::Configured { period, .. } => {
            format!("configured grants each {}", time(period))
        }
    });
    format!("{technology} base station: {}", parts.join(", "))
}

fn letter(kind: &SlotKind) -> char {
    match kind {
        SlotKind::Down => 'D',
        SlotKind::Up => 'U',
        SlotKind::Special { .. } => 'S',
    }
}

/// One value if the directions agree, otherwise both.
fn both<V>(values: &Directions<V>, words: impl Fn(&V) -> String) -> String {
    let (up, down) = (words(&values.up), words(&values.down));
    if up == down { up } else { format!("up {up}, down {down}") }
}

/// A change of a bearer; `None` for the later guarantees, which would make the line too long.
fn later_in_words(at: Timestamp, change: &BearerChange) -> Option<String> {
    let at = time(at - Timestamp::ZERO);
    match change {
        BearerChange::Add { bearer: added, .. } => Some(format!("from {at} {}", bearer(added))),
        BearerChange::Remove(removed) => Some(format!("bearer {} until {at}", removed.bearer)),
        BearerChange::Guarantee { .. } => None,
    }
}

fn terminal_in_words(terminal: &Terminal, later: &[String]) -> String {
    let mut parts = vec![both(&terminal.signal, signal)];
    if let Some(handover) = terminal.handovers.first() {
        parts.push(match terminal.handovers.len() {
            1 => format!("a handover of {}", time(handover.gap)),
            count => format!("{count} handovers"),
        });
    }
    if terminal.drx.is_some() {
        parts.push("DRX".into());
    }
    if (terminal.ambr.up, terminal.ambr.down) != (None, None) {
        let limits = both(&terminal.ambr, |limit| limit.map_or("none".into(), rate));
        parts.push(format!("AMBR {limits}"));
    }
    parts.extend(terminal.bearers.iter().map(bearer));
    parts.extend(later.iter().cloned());
    parts.extend(terminal.loads.iter().map(load));
    parts.join("; ")
}

fn signal(signal: &Signal) -> String {
    let mean = match &signal.mean {
        SignalChange::Constant(db) => format!("SINR {db} dB"),
        SignalChange::Trace { .. } => "SINR as given".into(),
        SignalChange::Moving(moving) => format!("at {} m", moving.distance_m),
    };
    match signal.fading {
        None => mean,
        Some(fading) => {
            let profile = format!("{:?}", fading.profile).to_uppercase();
            format!("{mean}, {profile} fading at {} km/h", fading.speed_kmh)
        }
    }
}

fn bearer(bearer: &BearerConfig) -> String {
    let mut words = format!("bearer {}: QCI {}", bearer.name, bearer.qci.number);
    if let Some(guarantee) = &bearer.guarantee {
        words += &format!(", GBR {}", both(&guarantee.rate, |it| rate(*it)));
        if guarantee.limit != guarantee.rate {
            words += &format!(", MBR {}", both(&guarantee.limit, |it| rate(*it)));
        }
    }
    let mode = match bearer.rlc {
        RlcMode::Acknowledged { .. } => "AM",
        RlcMode::Unacknowledged { .. } => "UM",
    };
    format!("{words}, RLC {mode}, {}", both(&bearer.queue, queue))
}

fn queue(queue: &BearerQueue) -> String {
    let limit = match queue.limit {
        QueueLimit::Bytes(bytes) => format!("{} B", thousands(bytes.as_bytes())),
        QueueLimit::Packets(packets) => format!("{} packets", thousands(packets as u64)),
        QueueLimit::Time(limit) => time(limit),
    };
    match queue.aqm {
        Aqm::DropTail => format!("queue {limit}"),
        managed => format!("{} queue {limit}", aqm::name(managed)),
    }
}

fn load(load: &Load) -> String {
    let direction = if load.direction == Direction::Up { "up" } else { "down" };
    let words = match load.arrivals {
        Arrivals::Saturated => "always something to send".into(),
        Arrivals::Constant(bitrate) => format!("{} sent", rate(bitrate)),
        Arrivals::Poisson(bitrate) => format!("{} sent at random", rate(bitrate)),
        Arrivals::Bursts { period, packets } => format!("{packets} packets each {}", time(period)),
    };
    format!("load {direction}: {words}")
}
