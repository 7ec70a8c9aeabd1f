//! The loads of a terminal: traffic that the cell generates itself.

use weir::units::TimeDelta;
use weir_net::cellular::{BearerConfig, Load};
use weir_net::path::Direction;

use super::{Result, number_of};
use crate::load::{CommonLoad, common_load};
use crate::reader::Table;

const LOAD: &[&str] =
    &["kind", "direction", "bearer", "rate", "packet", "period", "packets", "start", "stop"];
/// Range of IP packet sizes in bytes, headers included; PDCP carries no larger ones
/// (3GPP TS 38.323 §4.3.1).
const PACKETS: std::ops::RangeInclusive<u64> = 28..=9_000;
/// Maximum number of loads of a terminal.
const LOADS_MAX: usize = 100;

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
    let CommonLoad { arrivals, size, start, stop } = common_load(table, PACKETS, duration)?;
    Ok(Load {
        direction: table.choice(
            "direction",
            Direction::Up,
            &[("up", Direction::Up), ("down", Direction::Down)],
        )?,
        bearer: table.or("bearer", 0, |item| number_of(bearers, item))?,
        arrivals,
        size,
        start,
        stop,
    })
}
