//! Shards: parts of a forwarding server's scenario that have no link, no publisher and no access
//! network in common, so that nothing in one depends on another. Each is simulated on its own, two
//! at a time on two cores, and their traces are merged by time.
//!
//! A round simulates some seconds of every shard, in steps: a thread takes the shard that is
//! furthest behind. Threads change nothing in the result, for each shard is a simulation of one
//! thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use weir::units::{TimeDelta, Timestamp};
use weir_controllers::LabController;
use weir_net::Seed;

use super::Simulator;
use crate::config::{Config, FlowKind};
use crate::trace::Trace;

/// Virtual time that a thread simulates at once.
const STEP: TimeDelta = TimeDelta::from_secs(1);
/// Virtual time of a round.
const ROUND: TimeDelta = TimeDelta::from_secs(8);

/// The flows of each shard, by index and in order of their first flows. One shard without a
/// forwarding server, or with a controller of somebody's own, which may depend on other flows.
pub(super) fn shards(config: &Config) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..config.flows.len()).collect();
    if config.publishers.is_empty() || config.access.is_some() || !can_split(config) {
        return vec![all];
    }
    let mut shards: Vec<Vec<usize>> = Vec::new();
    for flow in all {
        let mut joined = vec![flow];
        let mut apart = Vec::new();
        for shard in shards {
            if shard.iter().any(|&other| is_near(config, flow, other)) {
                joined.extend(shard);
            } else {
                apart.push(shard);
            }
        }
        joined.sort_unstable();
        apart.push(joined);
        shards = apart;
    }
    shards.sort_unstable();
    shards
}

fn can_split(config: &Config) -> bool {
    for flow in &config.flows {
        match &flow.traffic {
            FlowKind::Media(_) | FlowKind::Quic(_) => return false,
            FlowKind::Subscriber(watching) => {
                if !matches!(watching.media.controller, LabController::Known(_)) {
                    return false;
                }
            }
            FlowKind::Tcp(_) | FlowKind::Udp(_) => {}
        }
    }
    true
}

/// Whether two flows cross a hop in common, or watch a publisher in common.
fn is_near(config: &Config, one: usize, other: usize) -> bool {
    let (one, other) = (&config.flows[one], &config.flows[other]);
    let has_hop = one.hops.start < other.hops.end && other.hops.start < one.hops.end;
    let (FlowKind::Subscriber(one), FlowKind::Subscriber(other)) = (&one.traffic, &other.traffic)
    else {
        return has_hop;
    };
    has_hop || one.publishers.iter().any(|publisher| other.publishers.contains(publisher))
}

/// A shard and its trace since the last round.
struct Shard<'a> {
    simulator: Simulator<'a>,
    /// The time up to which it is simulated.
    until: Timestamp,
    trace: Trace,
}

impl Shard<'_> {
    fn step(&mut self, until: Timestamp) {
        self.simulator.run_until(until);
        self.trace.append(self.simulator.trace());
        self.until = until;
    }
}

/// Simulates all shards and passes on their merged trace, as `run_in_parts` does.
pub(super) fn run<E>(
    config: &Config,
    shards: &[Vec<usize>],
    seed: Seed,
    stop: &AtomicBool,
    mut take: impl FnMut(&mut Trace) -> Result<(), E>,
) -> Result<bool, E> {
    let end = Timestamp::ZERO + config.duration;
    let mut waiting = Vec::new();
    for flows in shards {
        waiting.push(Shard {
            simulator: Simulator::new(config, flows, seed),
            until: Timestamp::ZERO,
            trace: Trace::default(),
        });
    }
    let mut until = Timestamp::ZERO;
    while until < end {
        until = (until + ROUND).min(end);
        waiting = round(waiting, until, stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        take(&mut merge(&mut waiting))?;
    }
    Ok(true)
}

/// Simulates all shards up to a time. They come back in their order.
fn round<'a>(shards: Vec<Shard<'a>>, until: Timestamp, stop: &AtomicBool) -> Vec<Shard<'a>> {
    let threads = threads().min(shards.len());
    let mut places: Vec<Option<Shard<'a>>> = Vec::new();
    for shard in shards {
        places.push(Some(shard));
    }
    let places = Mutex::new(places);
    if threads < 2 {
        work(&places, until, stop);
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| work(&places, until, stop));
            }
        });
    }
    let places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
    places.into_iter().flatten().collect()
}

/// One thread's part of a round.
fn work(places: &Mutex<Vec<Option<Shard<'_>>>>, until: Timestamp, stop: &AtomicBool) {
    while let Some((place, mut shard)) = take_furthest_behind(places, until) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let next = (shard.until + STEP).min(until);
        shard.step(next);
        let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
        places[place] = Some(shard);
    }
}

fn take_furthest_behind<'a>(
    places: &Mutex<Vec<Option<Shard<'a>>>>,
    until: Timestamp,
) -> Option<(usize, Shard<'a>)> {
    let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found: Option<(usize, Timestamp)> = None;
    for (place, shard) in places.iter().enumerate() {
        if let Some(shard) = shard
            && shard.until < until
            && found.is_none_or(|(_, least)| shard.until < least)
        {
            found = Some((place, shard.until));
        }
    }
    let (place, _) = found?;
    places[place].take().map(|shard| (place, shard))
}

/// Threads to simulate with. WebAssembly has none.
fn threads() -> usize {
    if cfg!(target_family = "wasm") {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The traces of all shards as one, sorted by time. What happens at the same time in several shards
/// comes in their order.
fn merge(shards: &mut [Shard<'_>]) -> Trace {
    let mut whole = Trace::default();
    for shard in shards {
        whole.append(&mut shard.trace);
    }
    whole.rows.sort_by_key(|row| (row.time, row.flow));
    whole.events.sort_by_key(|event| event.time);
    whole.decisions.sort_by_key(|decision| decision.time);
    whole
}
