//! The loads of a terminal: traffic that the cell generates itself.

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::cellular::{BearerConfig, Load};
use weir_net::load::Arrivals;
use weir_net::path::Way;

use super::values::{or, size, time};
use super::{Result, number_of};
use crate::scenario::reader::{Item, Table};

const LOAD: &[&str] =
    &["kind", "direction", "bearer", "rate", "packet", "period", "packets", "start", "stop"];
/// Range of IP packet sizes in bytes, headers included; PDCP carries no larger ones
/// (3GPP TS 38.323 §4.3.1).
const PACKETS: std::ops::RangeInclusive<u64> = 28..=9_000;
/// More than any carrier here can serve.
const RATE_MAX: Bitrate = Bitrate::from_kbps(10_000_000);
const MAX_BURST: f64 = 10_000.0;
/// Maximum number of loads of a terminal.
const LOADS_MAX: usize = 100;
const PERIODS: std::ops::RangeInclusive<TimeDelta> =
    TimeDelta::from_millis(1)..=TimeDelta::from_secs(3_600);

#[derive(Clone, Copy)]
enum LoadKind {
    Saturated,
    Constant,
    Poisson,
    Bursts,
}

pub(super) fn loads(
    table: &Table,
    bearers: &[BearerConfig],
    duration: TimeDelta,
) -> Result<Vec<Load>> {
    let tables = table.tables("load", LOAD)?;
    if tables.len() > LOADS_MAX {
        return Err(table.error(&format!("a terminal has at most {LOADS_MAX} loads")));
    }
    tables.iter().map(|table| load(table, bearers, duration)).collect()
}

fn load(table: &Table, bearers: &[BearerConfig], duration: TimeDelta) -> Result<Load> {
    let kind = table.require("kind", "\"constant\"")?.choice(&[
        ("saturated", LoadKind::Saturated),
        ("constant", LoadKind::Constant),
        ("poisson", LoadKind::Poisson),
        ("bursts", LoadKind::Bursts),
    ])?;
    let foreign: &[&'static str] = match kind {
        LoadKind::Saturated => &["rate", "period", "packets"],
        LoadKind::Constant | LoadKind::Poisson => &["period", "packets"],
        LoadKind::Bursts => &["rate"],
    };
    for &key in foreign {
        table.refuse(key, "this kind of load has no such key")?;
    }
    let rate = || {
        let item = table.require("rate", "\"1Mbps\"")?;
        match item.rate()? {
            rate if rate > RATE_MAX => Err(item.error("must be at most 10Gbps")),
            rate => Ok(rate),
        }
    };
    let arrivals = match kind {
        LoadKind::Saturated => Arrivals::Saturated,
        LoadKind::Constant => Arrivals::Constant(rate()?),
        LoadKind::Poisson => Arrivals::Poisson(rate()?),
        LoadKind::Bursts => Arrivals::Bursts {
            period: time(&table.require("period", "\"33ms\"")?, PERIODS)?,
            packets: table.require("packets", "32")?.whole(MAX_BURST)? as u32,
        },
    };
    let moment = |key, default: TimeDelta| {
        or(table, key, Timestamp::ZERO + default, |item: &Item| item.moment(duration))
    };
    let (start, stop) = (moment("start", TimeDelta::ZERO)?, moment("stop", duration)?);
    if stop <= start {
        return Err(table.error("stop must come after start"));
    }
    Ok(Load {
        way: or(table, "direction", Way::Up, |item| {
            item.choice(&[("up", Way::Up), ("down", Way::Down)])
        })?,
        bearer: or(table, "bearer", 0, |item| number_of(bearers, item))?,
        arrivals,
        size: size(&table.require("packet", "\"1500B\"")?, PACKETS)?,
        start,
        stop,
    })
}
