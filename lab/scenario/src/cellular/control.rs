//! The base station: profile, scheduler, HARQ, link adaptation, uplink access and processing times.

use weir::units::TimeDelta;
use weir_net::cellular::{
    Adaptation, Admission, Carrier, CellularConfig, Directions, Harq, OuterLoop, RlcMode,
    Scheduler, SchedulingRequest, Sharing, Technology, Timing, UplinkAccess,
};

use super::Result;
use super::values::{directed, size, time, whole, whole_or, within_or};
use crate::reader::{Item, Table};

const HARQ: &[&str] = &["processes", "transmissions", "round", "combining"];
const ADAPTATION: &[&str] = &["period", "target", "outer_loop"];
const OUTER_LOOP: &[&str] = &["step", "limit"];
const UPLINK: &[&str] = &["access", "period", "grant", "size"];
const TIMING: &[&str] = &["down_prepare", "up_fill", "up_prepare", "decode", "report"];

const PROCESSES_MAX: u32 = 32;
const TRANSMISSIONS_MAX: u32 = 32;
/// Longest processing time, in TTIs.
const TTIS_MAX: u32 = 1_000;
/// Shortest TTI that a period can follow: a mini-slot at a spacing of 120 kHz.
const PERIOD_MIN: TimeDelta = TimeDelta::from_micros(10);
const PERIOD_MAX: TimeDelta = TimeDelta::from_secs(10);
/// Bytes of the smallest and the largest grant.
const GRANT: std::ops::RangeInclusive<u64> = 7..=100_000;

/// Reads the cell without its terminals, and the timers of RLC in acknowledged mode.
pub(super) fn cell(network: &Table, carrier: Carrier) -> Result<(CellularConfig, RlcMode)> {
    let is_ns3 = network.or("profile", false, |item| {
        let is_ns3 = item.choice(&[("usual", false), ("ns3", true)])?;
        if is_ns3 && carrier.technology != Technology::Lte {
            return Err(item.error("the LTE module of ns-3 has no NR; write \"usual\""));
        }
        Ok(is_ns3)
    })?;
    let (mut config, rlc) = if is_ns3 {
        (CellularConfig::ns3(carrier, Vec::new()), RlcMode::AM_NS3)
    } else {
        (CellularConfig::new(carrier, Vec::new()), RlcMode::AM)
    };
    config.scheduler = network.choice(
        "scheduler",
        config.scheduler,
        &[
            ("proportional-fair", Scheduler::ProportionalFair),
            ("round-robin", Scheduler::RoundRobin),
            ("maximum-rate", Scheduler::MaximumRate),
            ("qos", Scheduler::QualityOfService),
        ],
    )?;
    config.stops_at_queue_end =
        network.or("stops_at_queue_end", config.stops_at_queue_end, Item::boolean)?;
    config.control_errors = network.or("control_errors", config.control_errors, Item::boolean)?;
    config.sharing = network.choice(
        "sharing",
        config.sharing,
        &[("priority", Sharing::Priority), ("equal", Sharing::Equal)],
    )?;
    config.harq = network.or("harq", config.harq, |item| harq(item, config.harq))?;
    if let Some(item) = network.get("adaptation") {
        config.adaptation = adaptation(&item, config.adaptation)?;
    }
    config.uplink_access = network.or("uplink", config.uplink_access, uplink)?;
    if let Some(item) = network.get("timing") {
        config.timing = timing(&item, config.timing)?;
    }
    config.admission =
        network.or("admission", config.admission, |item| Ok(Admission { share: share(item)? }))?;
    Ok((config, rlc))
}

fn share(item: &Item) -> Result<f64> {
    item.probability()
}

fn harq(item: &Item, default: Harq) -> Result<Harq> {
    let table = item.table(HARQ)?;
    let mut harq = default;
    harq.processes = whole_or(&table, "processes", harq.processes, 1..=PROCESSES_MAX)?;
    harq.transmissions =
        whole_or(&table, "transmissions", harq.transmissions, 1..=TRANSMISSIONS_MAX)?;
    if let Some(item) = table.get("round") {
        harq.round = directed(&item, Some(harq.round), |item| whole(item, 1..=TTIS_MAX))?;
    }
    harq.combining = table.or("combining", harq.combining, Item::boolean)?;
    Ok(harq)
}

/// Reads a table for both directions, or one for each.
fn adaptation(item: &Item, defaults: Directions<Adaptation>) -> Result<Directions<Adaptation>> {
    // The directions of a profile have different defaults, so each one is read with its own.
    let up = directed(item, Some(Directions::both(None)), |item| {
        adaptation_of(item, defaults.up).map(Some)
    })?;
    let down = directed(item, Some(Directions::both(None)), |item| {
        adaptation_of(item, defaults.down).map(Some)
    })?;
    Ok(Directions { up: up.up.unwrap_or(defaults.up), down: down.down.unwrap_or(defaults.down) })
}

fn adaptation_of(item: &Item, default: Adaptation) -> Result<Adaptation> {
    let table = item.table(ADAPTATION)?;
    let mut adaptation = default;
    adaptation.period = table.or("period", default.period, period)?;
    adaptation.target = table.or("target", default.target, |item| {
        let target = item.probability()?;
        if (0.001..=0.9).contains(&target) {
            return Ok(target);
        }
        Err(item.error("must be between 0.1% and 90%"))
    })?;
    adaptation.outer_loop = table.or("outer_loop", default.outer_loop, outer_loop)?;
    Ok(adaptation)
}

fn period(item: &Item) -> Result<TimeDelta> {
    time(item, PERIOD_MIN..=PERIOD_MAX)
}

/// Reads `true`, `false`, or `{ step = 0.5, limit = 6 }`.
fn outer_loop(item: &Item) -> Result<Option<OuterLoop>> {
    let default = OuterLoop::default();
    if !item.is_table() {
        return Ok(item.boolean()?.then_some(default));
    }
    let table = item.table(OUTER_LOOP)?;
    Ok(Some(OuterLoop {
        step_db: within_or(&table, "step", default.step_db, 0.0..=10.0)?,
        limit_db: within_or(&table, "limit", default.limit_db, 0.0..=30.0)?,
    }))
}

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Ideal,
    Request,
    Configured,
}

/// Reads `"ideal"`, `"request"`, or a table with `access` and its parameters.
fn uplink(item: &Item) -> Result<UplinkAccess> {
    let choices = &[
        ("ideal", Access::Ideal),
        ("request", Access::Request),
        ("configured", Access::Configured),
    ];
    let default = SchedulingRequest::default();
    if !item.is_table() {
        return match item.choice(choices)? {
            Access::Ideal => Ok(UplinkAccess::Ideal),
            Access::Request => Ok(UplinkAccess::Requested(default)),
            Access::Configured => Err(item
                .error("write { access = \"configured\", period = \"20ms\", size = \"1500B\" }")),
        };
    }
    let table = item.table(UPLINK)?;
    let access = table.require("access", "\"request\"")?.choice(choices)?;
    let foreign: &[&'static str] = match access {
        Access::Ideal => &["period", "grant", "size"],
        Access::Request => &["size"],
        Access::Configured => &["grant"],
    };
    for &key in foreign {
        table.refuse(key, "this kind of access has no such key")?;
    }
    Ok(match access {
        Access::Ideal => UplinkAccess::Ideal,
        Access::Request => UplinkAccess::Requested(SchedulingRequest {
            period: table.or("period", default.period, period)?,
            grant: table.or("grant", default.grant, |item| size(item, GRANT))?,
        }),
        Access::Configured => UplinkAccess::Configured {
            period: period(&table.require("period", "\"20ms\"")?)?,
            size: size(&table.require("size", "\"1500B\"")?, GRANT)?,
        },
    })
}

fn timing(item: &Item, default: Timing) -> Result<Timing> {
    let table = item.table(TIMING)?;
    let mut timing = default;
    for (key, ttis, min) in [
        ("down_prepare", &mut timing.down_prepare, 0),
        ("up_fill", &mut timing.up_fill, 1),
        ("up_prepare", &mut timing.up_prepare, 1),
        ("report", &mut timing.report, 0),
    ] {
        *ttis = whole_or(&table, key, *ttis, min..=TTIS_MAX)?;
    }
    if let Some(item) = table.get("decode") {
        timing.decode = directed(&item, Some(timing.decode), |item| whole(item, 1..=TTIS_MAX))?;
    }
    if timing.up_fill > timing.up_prepare {
        let error = "up_fill must not be above up_prepare: a block is filled before it is sent";
        return Err(table.error(error));
    }
    Ok(timing)
}
