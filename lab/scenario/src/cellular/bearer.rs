//! The bearers of a terminal: quality of service, queues, RLC, and when they begin and end.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::cellular::{
    BearerConfig, BearerQueue, Directions, Guarantee, PacketFilter, PortRange, Priority, RlcMode,
    Subnet,
};
use weir_net::{Aqm, QueueLimit};

use super::values::{directed, time_or, whole};
use super::{DEFAULT, Result, check_name, qci};
use crate::aqm::aqm;
use crate::reader::{Item, Table, steps};

const BEARER: &[&str] =
    &["qci", "gbr", "mbr", "arp", "filter", "queue", "rlc", "from", "until", "changes"];
const FILTER: &[&str] = &["protocol", "ports", "remote", "remote_ports"];
const ARP: &[&str] = &["level", "may_preempt", "preemptable"];
const RATES: &[&str] = &["gbr", "mbr"];
const QUEUE: &[&str] = &["limit", "aqm"];
const RLC: &[&str] = &["mode", "reordering", "status_prohibit", "poll_retransmit"];

/// Maximum number of bearers of a terminal (3GPP TS 24.301: 11 from Release 8, 15 later).
const BEARERS_MAX: usize = 15;
/// Largest queue; some 20 times the deepest one known.
const QUEUE_MAX: DataSize = DataSize::from_bytes(100_000_000);
const PACKETS_MAX: usize = 1_000_000;
/// Maximum number of filters of a bearer (3GPP TS 24.008 §10.5.6.12).
const FILTERS_MAX: usize = 15;
const ADDRESS: &str = "an IPv4 address or subnet, such as \"192.0.2.0/24\"";
const PORTS: &str = "expected the first and the last port, such as [5000, 5010]";
/// Longest timer of RLC (3GPP TS 36.331: 2400 ms).
const TIMER_MAX: TimeDelta = TimeDelta::from_millis(2_400);
const MS: TimeDelta = TimeDelta::from_millis(1);

/// Values of a profile.
pub(super) struct Defaults {
    /// Acknowledged mode.
    pub(super) rlc: RlcMode,
}

/// A bearer beside the default one, and when it changes.
pub(super) struct Scheduled {
    pub(super) bearer: BearerConfig,
    /// When it is added; `None` if it is there from the start.
    pub(super) from: Option<Timestamp>,
    /// Later guarantees.
    pub(super) changes: Vec<(Timestamp, Guarantee)>,
    /// When it is removed; `None` if it stays.
    pub(super) until: Option<Timestamp>,
}

/// The default bearer, from the keys of the terminal.
pub(super) fn default_bearer(table: &Table, defaults: &Defaults) -> Result<BearerConfig> {
    let mut bearer = BearerConfig::default();
    bearer.rlc = defaults.rlc;
    common(table, &mut bearer, defaults)?;
    if let Some(item) = table.get("qci").filter(|_| bearer.qci.guaranteed) {
        return Err(item.error("the default bearer has no guarantee; write a QCI from 5 to 9"));
    }
    Ok(bearer)
}

/// Reads the keys that every bearer has.
fn common(table: &Table, bearer: &mut BearerConfig, defaults: &Defaults) -> Result<()> {
    bearer.qci = table.or("qci", bearer.qci, qci)?;
    bearer.rlc = table.or("rlc", bearer.rlc, |item| rlc(item, defaults))?;
    if let Some(item) = table.get("queue") {
        bearer.queue = queues(&item, bearer.queue)?;
    }
    Ok(())
}

/// Reads the bearers beside the default one.
pub(super) fn bearers(
    item: &Item,
    duration: TimeDelta,
    defaults: &Defaults,
) -> Result<Vec<Scheduled>> {
    let named = item.named()?;
    if named.len() >= BEARERS_MAX {
        let error =
            format!("a terminal has at most {BEARERS_MAX} bearers, the default one included");
        return Err(item.error(&error));
    }
    let mut bearers = Vec::new();
    for (name, item) in &named {
        check_name(name, item)?;
        if *name == DEFAULT {
            return Err(item.error("the keys of the default bearer stand at the terminal itself"));
        }
        bearers.push(scheduled(name, &item.table(BEARER)?, duration, defaults)?);
    }
    Ok(bearers)
}

fn scheduled(
    name: &str,
    table: &Table,
    duration: TimeDelta,
    defaults: &Defaults,
) -> Result<Scheduled> {
    let mut bearer = BearerConfig::default();
    bearer.name = name.into();
    bearer.rlc = defaults.rlc;
    table.require("qci", "2")?;
    common(table, &mut bearer, defaults)?;
    bearer.priority = table.or("arp", bearer.priority, arp)?;
    let filters = table.tables("filter", FILTER)?;
    if filters.len() > FILTERS_MAX {
        return Err(table.error(&format!("a bearer has at most {FILTERS_MAX} filters")));
    }
    bearer.filters = filters.iter().map(filter).collect::<Result<_>>()?;
    if bearer.qci.guaranteed {
        bearer.guarantee = Some(guarantee(table)?);
    } else {
        for key in ["gbr", "mbr", "changes"] {
            table.refuse(key, "only a bearer of QCI 1 to 4 has a guarantee")?;
        }
    }
    let from = table.moment("from", duration)?;
    let until = table.moment("until", duration)?;
    let end = Timestamp::ZERO + duration;
    let lasting = from.unwrap_or(Timestamp::ZERO)..until.unwrap_or(end);
    if lasting.is_empty() {
        return Err(table.error("until must come after from"));
    }
    let changes = match table.get("changes") {
        None => Vec::new(),
        Some(item) => {
            let expected = "expected steps such as [[\"20s\", { gbr = \"2Mbps\" }]]";
            let elements = item.elements().ok_or_else(|| item.error(expected))?;
            let changes = steps(&elements, duration, "{ gbr = \"2Mbps\" }", |item| {
                guarantee(&item.table(RATES)?)
            })?;
            let is_within =
                changes.iter().all(|(time, _)| lasting.start < *time && *time < lasting.end);
            if !is_within || !changes.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(item.error("changes must be in order and within the bearer's time"));
            }
            changes
        }
    };
    // A bearer that is there from the start needs no addition.
    Ok(Scheduled { bearer, from, changes, until })
}

/// Reads a packet filter. What is left out matches all.
fn filter(table: &Table) -> Result<PacketFilter> {
    let protocols = [("udp", 17), ("tcp", 6)];
    Ok(PacketFilter::Packets {
        protocol: table.require("protocol", "\"udp\"")?.choice(&protocols)?,
        ports: table.or("ports", PortRange::ANY, ports)?,
        remote: table.or("remote", Subnet::ANY, subnet)?,
        remote_ports: table.or("remote_ports", PortRange::ANY, ports)?,
    })
}

fn ports(item: &Item) -> Result<PortRange> {
    let ports =
        item.elements().filter(|ports| ports.len() == 2).ok_or_else(|| item.error(PORTS))?;
    let first = whole(&ports[0], 0..=u16::MAX.into())? as u16;
    let last = whole(&ports[1], 0..=u16::MAX.into())? as u16;
    if last < first {
        return Err(item.error(PORTS));
    }
    Ok(PortRange { first, last })
}

/// Reads an IPv4 address, or a subnet such as `192.0.2.0/24`.
fn subnet(item: &Item) -> Result<Subnet> {
    let text = item.string(ADDRESS)?;
    let (address, prefix) = text.split_once('/').unwrap_or((text, "32"));
    let is_plain = prefix.bytes().all(|byte| byte.is_ascii_digit());
    let prefix = prefix.parse().ok().filter(|prefix| is_plain && *prefix <= 32);
    match (address.parse(), prefix) {
        (Ok(address), Some(prefix)) => Ok(Subnet { address, prefix }),
        _ => Err(item.error(&format!("expected {ADDRESS}"))),
    }
}

/// Reads `gbr` and `mbr`. The maximum bitrate is the guaranteed one if it is left out.
fn guarantee(table: &Table) -> Result<Guarantee> {
    let rate = directed(&table.require("gbr", "\"1500kbps\"")?, None, Item::rate)?;
    let limit = match table.get("mbr") {
        None => rate,
        Some(item) => {
            let limit: Directions<Bitrate> = directed(&item, Some(rate), Item::rate)?;
            if limit.up < rate.up || limit.down < rate.down {
                return Err(item.error("must not be below gbr"));
            }
            limit
        }
    };
    Ok(Guarantee { rate, limit })
}

fn arp(item: &Item) -> Result<Priority> {
    let table = item.table(ARP)?;
    let default = Priority::default();
    Ok(Priority {
        level: table.or("level", default.level, |item| whole(item, 1..=15).map(|it| it as u8))?,
        may_preempt: table.or("may_preempt", default.may_preempt, Item::boolean)?,
        preemptable: table.or("preemptable", default.preemptable, Item::boolean)?,
    })
}

/// Reads `"4MB"`, `{ limit = "4MB", aqm = "codel" }`, or one of them for each direction.
fn queues(item: &Item, defaults: Directions<BearerQueue>) -> Result<Directions<BearerQueue>> {
    // Each direction has its own default limit.
    let up = directed(item, Some(defaults), |item| queue(item, defaults.up))?.up;
    let down = directed(item, Some(defaults), |item| queue(item, defaults.down))?.down;
    Ok(Directions { up, down })
}

fn queue(item: &Item, default: BearerQueue) -> Result<BearerQueue> {
    if !item.is_table() {
        return Ok(BearerQueue { limit: limit(item)?, aqm: Aqm::DropTail });
    }
    let table = item.table(QUEUE)?;
    Ok(BearerQueue {
        limit: table.or("limit", default.limit, limit)?,
        aqm: table.or("aqm", default.aqm, aqm)?,
    })
}

fn limit(item: &Item) -> Result<QueueLimit> {
    match item.queue()? {
        QueueLimit::Time(_) => {
            Err(item.error("a cell has no fixed capacity to reckon with; write packets or bytes"))
        }
        QueueLimit::Bytes(bytes) if bytes > QUEUE_MAX => Err(item.error("must be at most 100MB")),
        QueueLimit::Packets(packets) if packets > PACKETS_MAX => {
            Err(item.error("must be at most 1000000packets"))
        }
        limit => Ok(limit),
    }
}

/// Reads `"am"`, `"um"`, or a table with timers that differ from the defaults.
fn rlc(item: &Item, defaults: &Defaults) -> Result<RlcMode> {
    let modes = [("am", defaults.rlc), ("um", RlcMode::UM)];
    if !item.is_table() {
        return item.choice(&modes);
    }
    let table = item.table(RLC)?;
    let mut mode = table.require("mode", "\"am\"")?.choice(&modes)?;
    match &mut mode {
        RlcMode::Unacknowledged { reordering } => {
            for key in ["status_prohibit", "poll_retransmit"] {
                table.refuse(key, "only acknowledged mode has it; write mode = \"am\"")?;
            }
            read_timer(&table, "reordering", reordering, TimeDelta::ZERO)?;
        }
        RlcMode::Acknowledged { reordering, status_prohibit, poll_retransmit } => {
            read_timer(&table, "reordering", reordering, TimeDelta::ZERO)?;
            read_timer(&table, "status_prohibit", status_prohibit, TimeDelta::ZERO)?;
            read_timer(&table, "poll_retransmit", poll_retransmit, MS)?;
        }
    }
    Ok(mode)
}

fn read_timer(
    table: &Table,
    key: &'static str,
    timer: &mut TimeDelta,
    min: TimeDelta,
) -> Result<()> {
    *timer = time_or(table, key, *timer, min..=TIMER_MAX)?;
    Ok(())
}
