//! The keys that loads of a Wi-Fi cell and of a cellular cell have in common.

use std::ops::RangeInclusive;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::load::Arrivals;

use super::error::ScenarioError;
use super::reader::Table;

type Result<T> = std::result::Result<T, ScenarioError>;

/// More than any cell here can carry.
const RATE_MAX: Bitrate = Bitrate::from_kbps(10_000_000);
const MAX_BURST: f64 = 10_000.0;
const PERIODS: RangeInclusive<TimeDelta> = TimeDelta::from_millis(1)..=TimeDelta::from_secs(3_600);

/// What every load has.
pub(super) struct CommonLoad {
    pub(super) arrivals: Arrivals,
    /// Size of an IP packet.
    pub(super) size: DataSize,
    pub(super) start: Timestamp,
    pub(super) stop: Timestamp,
}

#[derive(Clone, Copy)]
enum LoadKind {
    Saturated,
    Constant,
    Poisson,
    Bursts,
}

/// Reads `kind` with its keys, `packet` (within a range of bytes), `start` and `stop`.
pub(super) fn common_load(
    table: &Table,
    packets: RangeInclusive<u64>,
    duration: TimeDelta,
) -> Result<CommonLoad> {
    let arrivals = arrivals(table)?;
    let item = table.require("packet", "\"1500B\"")?;
    let size = item.size()?;
    if !packets.contains(&size.as_bytes()) {
        let error = format!("must be between {}B and {}B", packets.start(), packets.end());
        return Err(item.error(&error));
    }
    let start = table.moment("start", duration)?.unwrap_or(Timestamp::ZERO);
    let end = Timestamp::ZERO + duration;
    let stop = table.moment("stop", duration)?.unwrap_or(end);
    if stop <= start {
        return Err(table.error("stop must come after start"));
    }
    Ok(CommonLoad { arrivals, size, start, stop })
}

fn arrivals(table: &Table) -> Result<Arrivals> {
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
    Ok(match kind {
        LoadKind::Saturated => Arrivals::Saturated,
        LoadKind::Constant => Arrivals::Constant(rate()?),
        LoadKind::Poisson => Arrivals::Poisson(rate()?),
        LoadKind::Bursts => {
            let item = table.require("period", "\"33ms\"")?;
            let period = item.time()?;
            if !PERIODS.contains(&period) {
                return Err(item.error("must be between 1ms and 3600000ms"));
            }
            let packets = table.require("packets", "32")?.whole(MAX_BURST)? as u32;
            Arrivals::Bursts { period, packets }
        }
    })
}
