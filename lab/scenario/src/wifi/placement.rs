//! Positions of a cell's nodes: `place` of a node, and `propagation` of the network.

use weir_net::wifi::propagation::Propagation;
use weir_net::wifi::{Band, Placement};

use crate::error::ScenarioError;
use crate::reader::{Item, Table};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Coordinates in metres.
pub(super) type Place = (f64, f64);

const PROPAGATION: &[&str] = &["power", "exponent", "shadowing"];
/// Default sending power of a node, in dBm.
const SENT_DBM: f64 = 20.0;

/// Reads the position of a node, such as `[12, 5]`, if it has one.
pub(super) fn place(table: &Table) -> Result<Option<Place>> {
    let Some(item) = table.get("place") else { return Ok(None) };
    match item.elements().as_deref() {
        Some([x, y]) => Ok(Some((x.number()?, y.number()?))),
        _ => Err(item.error("expected metres such as [12, 5]")),
    }
}

/// Builds the placement from the nodes' positions, the access point's first. Either all nodes have
/// a position or none has. The access point's default is the origin.
pub(super) fn placement(
    network: &Table,
    band: Band,
    mut places: Vec<Option<Place>>,
) -> Result<Option<Placement>> {
    if places.iter().all(Option::is_none) {
        network.refuse("propagation", "no node has a place; write place = [12, 5] at a station")?;
        return Ok(None);
    }
    places[0].get_or_insert((0.0, 0.0));
    let Some(places) = places.into_iter().collect::<Option<Vec<Place>>>() else {
        return Err(network.error("some nodes have a place and others none; write place = [12, 5]"));
    };
    let default = Propagation::indoor(band);
    let Some(item) = network.get("propagation") else {
        return Ok(Some(Placement::new(places, SENT_DBM, default)));
    };
    let table = item.table(PROPAGATION)?;
    let number = |key, default, range: std::ops::RangeInclusive<f64>| match table.get(key) {
        None => Ok(default),
        Some(item) => within(&item, range),
    };
    let sent_dbm = number("power", SENT_DBM, -20.0..=36.0)?;
    let propagation = default
        .with_exponent(number("exponent", default.exponent, 1.0..=6.0)?)
        .with_shadowing_db(number("shadowing", default.shadowing_db, 0.0..=20.0)?);
    Ok(Some(Placement::new(places, sent_dbm, propagation)))
}

fn within(item: &Item, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
    let number = item.number()?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(item.error(&format!("must be between {} and {}", range.start(), range.end())))
}
