//! The tables `[handover.NAME]`: a participant's change to a second interface, which only real
//! calls have.

use weir::units::{TimeDelta, Timestamp};
use weir_net::Hop;

use super::error::ScenarioError;
use super::nat::is_participant;
use super::reader::{Item, Table};
use super::trace_files::TraceFiles;
use super::wired;

type Result<T> = std::result::Result<T, ScenarioError>;

const HANDOVER: &[&str] = &["at", "gap", "up", "down", "hop"];

/// A participant's change from its interface to another one.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticipantHandover {
    /// The participant: one on A's side of calls, or one of an application.
    pub participant: String,
    /// When the first interface goes away.
    pub at: Timestamp,
    /// Time from then until the second one is there.
    pub gap: TimeDelta,
    /// The bottlenecks between the second interface and the far end of the network.
    pub hops: Vec<Hop>,
}

/// Reads all tables.
pub(super) fn handovers(
    top: &Table,
    duration: TimeDelta,
    files: &TraceFiles<'_>,
) -> Result<Vec<ParticipantHandover>> {
    let mut found = Vec::new();
    for (name, item) in top.or("handover", Vec::new(), Item::named)? {
        found.push(handover(name, &item, duration, files)?);
    }
    Ok(found)
}

fn handover(
    name: &str,
    item: &Item,
    duration: TimeDelta,
    files: &TraceFiles<'_>,
) -> Result<ParticipantHandover> {
    if !is_participant(name) || name.starts_with('b') {
        let message = "a hand-over is of a participant on A's side, such as a, a2 or p1";
        return Err(item.error(message));
    }
    let table = item.table(HANDOVER)?;
    Ok(ParticipantHandover {
        participant: name.to_owned(),
        at: table.require("at", "\"15s\"")?.moment(duration)?,
        gap: table.or("gap", TimeDelta::ZERO, Item::time)?,
        hops: wired::hops(&table, duration, files)?,
    })
}
