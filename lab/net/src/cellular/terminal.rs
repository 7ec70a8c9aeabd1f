//! The state of a terminal.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::Ipv4Addr;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::adaptation::Known;
use super::bearer::{Bearer, Bucket};
use super::carrier::{Carrier, Technology, Tti};
use super::config::{self, Drx, Handover};
use super::directions::Directions;
use super::fading::Grid;
use super::radio::Channel;
use crate::packet::FlowKey;
use crate::path::Direction;
use crate::seed::{Seed, Stream};

/// Bandwidth of a resource block at a subcarrier spacing of 15 kHz.
const PRB_HZ: f64 = 180e3;

/// A terminal with its bearers.
#[derive(Debug)]
pub(super) struct Terminal<T> {
    pub(super) name: String,
    pub(super) bearers: Vec<Bearer<T>>,
    pub(super) channels: Directions<Channel>,
    pub(super) known: Directions<Known>,
    /// Average of granted bytes a second, for proportional fairness.
    pub(super) averages: Directions<f64>,
    /// Blocks in progress.
    pub(super) processes: Directions<u32>,
    pub(super) totals: Directions<Totals>,
    pub(super) chances: Directions<Stream>,
    pub(super) ambr: Directions<Bucket>,
    pub(super) uplink: Uplink,
    drx: Option<Drx>,
    handovers: Vec<Handover>,
    /// Number of handovers that have begun.
    pub(super) handovers_begun: usize,
    /// Indices of its saturating loads.
    pub(super) saturating: Vec<usize>,
    /// When it last sent or received something.
    pub(super) active_at: Timestamp,
}

/// Totals of a terminal in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    /// First transmissions of blocks, and how many of them failed.
    pub(super) blocks: u64,
    pub(super) failures: u64,
    /// Further transmissions, and blocks that were given up.
    pub(super) retransmissions: u64,
    pub(super) abandoned: u64,
    /// Sum of the MCS of first transmissions.
    pub(super) mcs: u64,
    /// Bits of first transmissions that were decoded at once or later.
    pub(super) decoded: DataSize,
}

/// What the base station knows of a terminal's queues, and what the terminal has told it.
#[derive(Debug, Default)]
pub(super) struct Uplink {
    /// Bytes that the base station believes to wait.
    pub(super) believed: u64,
    /// Grants since the last report: when the terminal reads them, and their bytes.
    pub(super) granted: VecDeque<(Tti, u64)>,
    /// Bytes a second granted in this TTI.
    pub(super) granted_rate: f64,
    /// Whether the terminal has something new to report.
    pub(super) is_fresh: bool,
    /// When the terminal reports again while data waits.
    pub(super) report_at: Option<Tti>,
    /// Whether a scheduling request is on its way or answered by a grant in progress.
    pub(super) has_requested: bool,
    /// Bytes of each bearer as the terminal counts them; see `UplinkAccess::Ideal`.
    pub(super) claims: Vec<u64>,
}

impl<T: Debug + Send + 'static> Terminal<T> {
    pub(super) fn new(config: &config::Terminal, carrier: &Carrier, seed: Seed) -> Self {
        let name = &config.name;
        let spacing = match carrier.technology {
            Technology::Lte => PRB_HZ,
            Technology::Nr { numerology } => PRB_HZ * f64::from(1_u32 << numerology),
        };
        let bearers = config.bearers.iter().map(|bearer| Bearer::new(bearer.clone(), name, seed));
        let channels = Directions::from_fn(|direction| {
            let grid =
                Grid { prbs: *carrier.prbs.of(direction), prb_hz: spacing, tti: carrier.tti() };
            let stream = seed.stream(&format!("cellular/{name}/signal/{}", direction.word()));
            Channel::new(config.signal.of(direction), &config.handovers, grid, stream)
        });
        let chances = Directions::from_fn(|direction| {
            seed.stream(&format!("cellular/{name}/errors/{}", direction.word()))
        });
        Self {
            name: name.clone(),
            bearers: bearers.collect(),
            channels,
            known: Directions::default(),
            // As in ns-3: nobody has had anything yet.
            averages: Directions::both(1.0),
            processes: Directions::default(),
            totals: Directions::default(),
            chances,
            ambr: Directions::from_fn(|direction| Bucket::new(*config.ambr.of(direction))),
            uplink: Uplink { claims: vec![0; config.bearers.len()], ..Uplink::default() },
            drx: config.drx,
            handovers: config.handovers.clone(),
            handovers_begun: 0,
            saturating: Vec::new(),
            active_at: Timestamp::ZERO,
        }
    }

    /// The bearer of a packet: the one that the caller names if it is active, otherwise the last
    /// one with a filter for the flow, otherwise the default bearer.
    pub(super) fn bearer_of(
        &self,
        class: Option<usize>,
        direction: Direction,
        flow: FlowKey,
        addresses: &[(Ipv4Addr, Ipv4Addr)],
    ) -> usize {
        if let Some(index) = class
            && self.bearers.get(index).is_some_and(|it| it.is_active)
        {
            return index;
        }
        let selecting = self.bearers.iter().rposition(|bearer| {
            bearer.is_active
                && bearer.config.filters.iter().any(|it| it.selects(direction, flow, addresses))
        });
        selecting.unwrap_or(0)
    }

    /// Bytes that wait in a direction and may be sent now.
    pub(super) fn sendable(&mut self, now: Timestamp, direction: Direction) -> u64 {
        let limit = self.ambr.of_mut(direction).left(now);
        let (mut guaranteed, mut other) = (0, 0);
        for bearer in self.bearers.iter_mut().filter(|bearer| bearer.is_active) {
            let bytes = bearer.sendable(now, direction);
            if bearer.config.guarantee.is_some() {
                guaranteed += bytes;
            } else {
                other += bytes;
            }
        }
        guaranteed + limit.map_or(other, |limit| other.min(limit))
    }

    /// Bytes that guarantees still owe.
    pub(super) fn owed(&mut self, now: Timestamp, direction: Direction) -> u64 {
        let bearers = self.bearers.iter_mut().filter(|it| it.config.guarantee.is_some());
        bearers.map(|bearer| bearer.owed(now, direction)).sum()
    }

    /// Whether a bearer has data.
    pub(super) fn has_data(&self, bearer: usize, direction: Direction) -> bool {
        self.bearers[bearer].is_active && self.bearers[bearer].channels.of(direction).backlog() > 0
    }

    /// Order among terminals with a guarantee: the priority of its most urgent bearer, less the
    /// share of the delay budget that its oldest packet has used.
    pub(super) fn urgency(&self, now: Timestamp, direction: Direction) -> f64 {
        let guaranteed = self.bearers.iter().filter(|it| it.config.guarantee.is_some());
        let urgency =
            guaranteed.filter(|it| it.channels.of(direction).backlog() > 0).map(|bearer| {
                let budget = bearer.config.qci.budget.as_secs_f64();
                let used = bearer.channels.of(direction).head_delay(now).as_secs_f64() / budget;
                bearer.config.qci.priority - used.min(1.0)
            });
        urgency.fold(f64::INFINITY, f64::min)
    }

    /// Whether anything waits in a direction.
    pub(super) fn has_backlog(&self, direction: Direction) -> bool {
        self.bearers.iter().any(|bearer| bearer.channels.of(direction).backlog() > 0)
    }

    /// Whether something waits, or the base station believes so.
    pub(super) fn has_work(&self) -> bool {
        self.uplink.believed > 0
            || self.has_backlog(Direction::Up)
            || self.has_backlog(Direction::Down)
    }

    /// Whether a handover interrupts it at this time.
    pub(super) fn is_away(&self, now: Timestamp) -> bool {
        let begun = self.handovers[..self.handovers_begun].last();
        begun.is_some_and(|handover| now < handover.at + handover.gap)
    }

    /// When its next handover begins; `MAX` for never.
    pub(super) fn next_handover(&self) -> Timestamp {
        self.handovers.get(self.handovers_begun).map_or(Timestamp::MAX, |handover| handover.at)
    }

    /// Whether it listens to the base station at this time.
    pub(super) fn is_listening(&self, now: Timestamp) -> bool {
        let Some(Drx { inactivity, cycle, on }) = self.drx else { return true };
        let phase = (now - Timestamp::ZERO).as_nanos() % cycle.as_nanos().max(1);
        now < self.active_at + inactivity || TimeDelta::from_nanos(phase) < on
    }
}
