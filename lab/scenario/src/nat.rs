//! The tables `[nat.NAME]`: the NATs of participants, which only real calls have.

use weir::units::{TimeDelta, Timestamp};
use weir_net::nat::{Behaviour, NatConfig};

use super::error::{ScenarioError, quoted};
use super::reader::{Item, Table};

type Result<T> = std::result::Result<T, ScenarioError>;

const NAT: &[&str] =
    &["participants", "mapping", "filtering", "hairpin", "mapping_timeout", "udp", "rebind"];

/// Shortest time after which a mapping may end. The model does not check more often than packets
/// pass, and a call sends some every second.
const SHORTEST_TIMEOUT: TimeDelta = TimeDelta::from_secs(1);
/// How often a NAT may get another address in a run.
const REBINDS_MAX: usize = 200;

/// The NAT of some participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantNat {
    /// Its name in the file.
    pub name: String,
    /// The names of the participants behind it: `a`, `b2`, `p1`.
    pub participants: Vec<String>,
    /// How it behaves.
    pub config: NatConfig,
    /// When it gets another outside address, in order.
    pub rebinds: Vec<TimeDelta>,
}

/// Reads all tables.
pub(super) fn nats(top: &Table, duration: TimeDelta) -> Result<Vec<ParticipantNat>> {
    let mut nats: Vec<ParticipantNat> = Vec::new();
    for (name, item) in top.or("nat", Vec::new(), Item::named)? {
        let nat = nat(name, &item, duration)?;
        let taken = nats.iter().find_map(|other| {
            Some((other, other.participants.iter().find(|one| nat.participants.contains(one))?))
        });
        if let Some((other, participant)) = taken {
            let message = format!("{participant} is behind nat.{} already", other.name);
            return Err(item.error(&message));
        }
        nats.push(nat);
    }
    Ok(nats)
}

fn nat(name: &str, item: &Item, duration: TimeDelta) -> Result<ParticipantNat> {
    let table = item.table(NAT)?;
    let participants = match table.get("participants") {
        Some(list) => participants(&list)?,
        None if is_participant(name) => vec![name.to_owned()],
        None => {
            let message =
                format!("{} is no participant's name; write participants = [\"a\"]", quoted(name));
            return Err(item.error(&message));
        }
    };
    let default = NatConfig::default();
    let (mapping, filtering) = (behaviour(&table, "mapping")?, behaviour(&table, "filtering")?);
    let blocks_udp =
        table.get("udp").map(|item| item.choice(&[("open", false), ("blocked", true)]));
    let hairpin = table.optional("hairpin", Item::boolean)?;
    let config = NatConfig {
        mapping: mapping.unwrap_or(default.mapping),
        filtering: filtering.unwrap_or(default.filtering),
        hairpin: hairpin.unwrap_or(default.hairpin),
        mapping_timeout: table.or("mapping_timeout", default.mapping_timeout, timeout)?,
        blocks_udp: blocks_udp.transpose()?.unwrap_or(default.blocks_udp),
    };
    let rebinds = table.or("rebind", Vec::new(), |item| rebinds(item, duration))?;
    Ok(ParticipantNat { name: name.to_owned(), participants, config, rebinds })
}

fn behaviour(table: &Table, key: &'static str) -> Result<Option<Behaviour>> {
    table.optional_choice(key, &Behaviour::NAMES)
}

/// Whether a name is one that calls or applications give: `a`, `b`, `a1`, `b2`, `p3`.
pub(super) fn is_participant(name: &str) -> bool {
    let (side, number) = name.split_at(name.len().min(1));
    let is_number = number.parse::<u32>().is_ok_and(|it| it > 0 && number == it.to_string());
    match side {
        "a" | "b" => number.is_empty() || is_number,
        "p" => is_number,
        _ => false,
    }
}

fn participants(list: &Item) -> Result<Vec<String>> {
    let elements = list.elements().filter(|elements| !elements.is_empty());
    let elements = elements.ok_or_else(|| list.error("expected a list such as [\"a\", \"b\"]"))?;
    let mut names = Vec::new();
    for item in elements {
        let name = item.string("a participant's name such as \"a\"")?;
        if !is_participant(name) || names.iter().any(|known| known == name) {
            let message = format!(
                "expected different names of participants such as \"a\" or \"p1\", found {}",
                quoted(name)
            );
            return Err(item.error(&message));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn timeout(item: &Item) -> Result<TimeDelta> {
    let timeout = item.time()?;
    if timeout < SHORTEST_TIMEOUT {
        return Err(item.error("must be 1s or more"));
    }
    Ok(timeout)
}

fn rebinds(list: &Item, duration: TimeDelta) -> Result<Vec<TimeDelta>> {
    let elements = list.elements().filter(|elements| elements.len() <= REBINDS_MAX);
    let elements =
        elements.ok_or_else(|| list.error("expected a list of up to 200 times: [\"20s\"]"))?;
    let mut times: Vec<TimeDelta> = Vec::new();
    for item in elements {
        let time = item.moment(duration)? - Timestamp::ZERO;
        if times.last().is_some_and(|last| time <= *last) {
            return Err(item.error("must come after the time before it"));
        }
        times.push(time);
    }
    Ok(times)
}
