//! The signal of a terminal: a constant, steps, a trace, or its place; fading; handovers and DRX.

use weir::units::{TimeDelta, Timestamp};
use weir_net::TraceEnd;
use weir_net::cellular::fading::{Fading, Origin, Profile};
use weir_net::cellular::{Directions, Drx, Handover, MovingTerminal, SignalChange};

use super::Result;
use super::values::{directed, frequency, time, time_or, within, within_or};
use crate::reader::{Item, Table, steps};
use crate::trace::{self, Want};
use crate::trace_files::TraceFiles;

const PLACE: &[&str] = &["distance", "speed", "range"];
const PATH_LOSS: &[&str] = &["sinr_at_1km", "slope", "shadowing", "correlation"];
const FADING: &[&str] = &["profile", "speed", "carrier"];
const HANDOVER: &[&str] = &["at", "gap", "change"];
const DRX: &[&str] = &["inactivity", "cycle", "on"];

/// Range of SINR in decibels.
const SINR: std::ops::RangeInclusive<f64> = -30.0..=60.0;
/// Range of distances in metres: at one metre the far field begins; no LTE cell exceeds 100 km.
const DISTANCE: std::ops::RangeInclusive<f64> = 1.0..=100_000.0;
/// Maximum speed in kilometres an hour: LTE is specified for up to 500.
const SPEED_MAX: f64 = 500.0;
/// Decrease of the signal per factor of ten in distance in decibels, beyond the first hundred
/// metres of a city (3GPP TR 36.942 §4.5.2).
const SLOPE_DB: f64 = 37.6;
/// Distance over which shadowing changes in metres (3GPP TR 36.814 §A.2.1.1).
const CORRELATION_M: f64 = 50.0;
/// Default frequency of the carrier for fading.
const CARRIER_HZ: f64 = 2e9;
/// Maximum number of values of a trace.
const VALUES_MAX: usize = 1_000_000;
/// Longest handover; a failed one takes about a second.
const GAP_MAX: TimeDelta = TimeDelta::from_secs(60);
/// Longest DRX cycle (3GPP TS 36.331, extended values left out).
const CYCLE_MAX: TimeDelta = TimeDelta::from_millis(2_560);
const MS: TimeDelta = TimeDelta::from_millis(1);

/// Reads the mean signals from `sinr` or `place`.
pub(super) fn means(
    network: &Table,
    table: &Table,
    duration: TimeDelta,
    files: &TraceFiles<'_>,
) -> Result<Directions<SignalChange>> {
    match (table.get("sinr"), table.get("place")) {
        (Some(item), None) => directed(&item, None, |item| sinr(item, duration, files)),
        (None, Some(item)) => place(network, &item),
        (Some(_), Some(item)) => {
            Err(item.error("the SINR follows from the place; leave one of the two out"))
        }
        (None, None) => Err(table.require("sinr", "20").expect_err("it is not there")),
    }
}

/// Reads `20`, steps such as `[["0s", 20], ["10s", 5]]`, or `{ trace = "walk.txt" }`.
fn sinr(item: &Item, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<SignalChange> {
    if let Some(elements) = item.elements() {
        let values = steps(&elements, duration, "20", |item| within(item, SINR))?;
        let starts = values.first().is_some_and(|first| first.0 == Timestamp::ZERO);
        if !starts || !values.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(item.error("the first step must be at 0s, and each step after the last"));
        }
        return Ok(SignalChange::Trace { values, period: None });
    }
    if !item.is_table() {
        return within(item, SINR).map(SignalChange::Constant);
    }
    let table = item.table(trace::SINR_KEYS)?;
    let file = table.require("trace", "\"walk.txt\"")?;
    let period = table.get("period").map(|item| time(&item, MS..=TimeDelta::MAX)).transpose()?;
    let (values, own_period) = trace::from_table(&table, Want::Decibels, files, |trace, end| {
        let series = trace.decibels()?;
        let repeats = end == Some(TraceEnd::Repeat);
        Ok((series.steps().to_vec(), repeats.then(|| series.length())))
    })?;
    if let Some((at, db)) = values.iter().find(|value| !SINR.contains(&value.1)) {
        let at = at.as_secs_f64();
        return Err(file.error(&format!("{db} dB after {at} s; expected -30 to 60 dB")));
    }
    if values.len() > VALUES_MAX {
        return Err(file.error(&format!("a signal has at most {VALUES_MAX} values")));
    }
    match (period, own_period) {
        (Some(_), Some(_)) => Err(table.error("write period or trace_end = \"repeat\", not both")),
        (period, own_period) => Ok(SignalChange::Trace { values, period: period.or(own_period) }),
    }
}

/// Reads a terminal's place and the cell's path loss.
fn place(network: &Table, item: &Item) -> Result<Directions<SignalChange>> {
    let table = item.table(PLACE)?;
    let distance_m = within(&table.require("distance", "100")?, DISTANCE)?;
    let speed_kmh = within_or(&table, "speed", 0.0, -SPEED_MAX..=SPEED_MAX)?;
    let range_m = match table.get("range") {
        None if speed_kmh == 0.0 => (distance_m, distance_m),
        None => return Err(table.require("range", "[50, 500]").expect_err("it is not there")),
        Some(item) => match item.elements().as_deref() {
            Some([near, far]) => (within(near, DISTANCE)?, within(far, DISTANCE)?),
            _ => return Err(item.error("expected metres such as [50, 500]")),
        },
    };
    if !(range_m.0..=range_m.1).contains(&distance_m) {
        return Err(table.error("the distance must lie within the range"));
    }
    let loss = network
        .require("path_loss", "{ sinr_at_1km = { up = -5, down = 13 } }")?
        .table(PATH_LOSS)?;
    let at_1_km = loss.require("sinr_at_1km", "{ up = -5, down = 13 }")?;
    let at_1_km = directed(&at_1_km, None, |item| within(item, -100.0..=100.0))?;
    let moving = MovingTerminal {
        distance_m,
        speed_mps: speed_kmh / 3.6,
        range_m,
        sinr_at_1_km_db: 0.0,
        slope_db: within_or(&loss, "slope", SLOPE_DB, 10.0..=80.0)?,
        shadowing_db: within_or(&loss, "shadowing", 0.0, 0.0..=20.0)?,
        correlation_m: within_or(&loss, "correlation", CORRELATION_M, 1.0..=10_000.0)?,
    };
    let [up, down] = [at_1_km.up, at_1_km.down]
        .map(|db| SignalChange::Moving(MovingTerminal { sinr_at_1_km_db: db, ..moving }));
    Ok(Directions { up, down })
}

/// Reads `{ profile = "EPA", speed = 3 }`.
pub(super) fn fading(item: &Item) -> Result<Fading> {
    let table = item.table(FADING)?;
    let profiles = [("EPA", Profile::Epa), ("EVA", Profile::Eva), ("ETU", Profile::Etu)];
    Ok(Fading {
        profile: table.require("profile", "\"EPA\"")?.choice(&profiles)?,
        speed_kmh: within(&table.require("speed", "3")?, 0.0..=SPEED_MAX)?,
        carrier_hz: table.or("carrier", CARRIER_HZ, frequency)?,
        origin: Origin::Own,
    })
}

/// Reads the handovers, which must be in order and must not overlap.
pub(super) fn handovers(table: &Table, duration: TimeDelta) -> Result<Vec<Handover>> {
    let mut handovers: Vec<Handover> = Vec::new();
    for table in table.tables("handover", HANDOVER)? {
        let item = table.require("at", "\"20s\"")?;
        let at = item.moment(duration)?;
        if handovers.last().is_some_and(|last| at <= last.at + last.gap) {
            return Err(item.error("handovers must be in order and must not overlap"));
        }
        let gap = time(&table.require("gap", "\"50ms\"")?, MS..=GAP_MAX)?;
        let change_db = within_or(&table, "change", 0.0, -40.0..=40.0)?;
        handovers.push(Handover { at, gap, change_db });
    }
    Ok(handovers)
}

/// Reads `true`, `false`, or a table with values that differ from the defaults.
pub(super) fn drx(item: &Item) -> Result<Option<Drx>> {
    let default = Drx::default();
    if !item.is_table() {
        return Ok(item.boolean()?.then_some(default));
    }
    let table = item.table(DRX)?;
    let mut drx = default;
    for (key, value) in
        [("inactivity", &mut drx.inactivity), ("cycle", &mut drx.cycle), ("on", &mut drx.on)]
    {
        *value = time_or(&table, key, *value, MS..=CYCLE_MAX)?;
    }
    if drx.on > drx.cycle {
        return Err(table.error("on must not be above cycle"));
    }
    Ok(Some(drx))
}
