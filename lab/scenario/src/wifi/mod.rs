//! The `[network]` of kind `wifi`: an access point, its stations, and neighbours on the channel.

mod placement;
mod retry;
mod words;

use std::ops::{Range, RangeInclusive};

use self::placement::{place, placement};
use self::retry::retry;
use super::error::{ScenarioError, nearest, quoted};
use super::kind::{Access, Kind, NodeGroup};
use super::load::{CommonLoad, common_load};
use super::reader::{Item, Table, steps};
use super::trace::{self, Want};
use super::trace_files::TraceFiles;
use super::wired::Recorded;
use weir::units::{TimeDelta, Timestamp};
use weir_net::path::Attachment;
use weir_net::wifi::propagation::Fading;
use weir_net::wifi::{
    AccessCategory, Aggregation, Association, Band, Bursts, CellConfig, DataRate, Edca,
    EdcaParameters, Errors, GuardInterval, Link, Mcs, Neighbour, NodeConfig, NodeId, NodeQueue,
    Noise, RateControl, RateSet, Station, StationLoad, WaitLimit,
};
use weir_net::{CoDelConfig, QueueLimit};

type Result<T> = std::result::Result<T, ScenarioError>;

const NODE: &[&str] = &["queue", "aggregation", "edca", "retry", "place"];
const STATION: &[&str] = &[
    "queue",
    "aggregation",
    "edca",
    "retry",
    "place",
    "count",
    "power",
    "rate",
    "errors",
    "up",
    "down",
    "load",
];
const NEIGHBOUR: &[&str] =
    &["queue", "aggregation", "edca", "retry", "place", "rate", "errors", "load"];
const LINK: &[&str] = &["rate", "errors", "load"];
const RATE: &[&str] = &["control", "mcs", "streams", "guard"];
const ERRORS: &[&str] =
    &["good", "bad", "error_good", "error_bad", "noise_figure", "k_factor", "coherence"];
/// The subset of [`ERRORS`] for a channel with noise.
const NOISE: &[&str] = &["noise_figure", "k_factor", "coherence"];
/// Range of received powers in dBm.
const POWERS: RangeInclusive<f64> = -100.0..=0.0;
const LOAD: &[&str] = &["kind", "rate", "packet", "period", "packets", "category", "start", "stop"];
const QUEUE: &[&str] = &["kind", "limit", "target", "interval", "ecn"];
const AGGREGATION: &[&str] = &["mpdus", "bytes", "duration"];
const CATEGORIES: &[(&str, AccessCategory)] = &[
    ("background", AccessCategory::Background),
    ("best-effort", AccessCategory::BestEffort),
    ("video", AccessCategory::Video),
    ("voice", AccessCategory::Voice),
];
const EDCA: &[&str] = &["background", "best-effort", "video", "voice"];
const PARAMETERS: &[&str] = &["aifsn", "cw_min", "cw_max", "txop"];

/// Maximum number of stations that one table can describe.
const MAX_COUNT: f64 = 100.0;
/// Maximum number of stations of a cell. Memory grows with its square, because powers are kept per
/// pair.
const STATIONS_MAX: usize = 1_000;
/// Upper limit of the contention window.
const MAX_WINDOW: f64 = 32_767.0;
const MAX_AIFSN: f64 = 15.0;
/// Range of IP packet sizes of a load in bytes, headers included.
const PACKETS: RangeInclusive<u64> = 28..=2_304;

/// An 802.11n cell.
pub(super) const KIND: Kind = Kind {
    name: "wifi",
    keys: &["band", "access_point", "station", "neighbour", "hidden", "propagation"],
    refusal: "only a Wi-Fi cell has this key; write kind = \"wifi\"",
    place_keys: &["station"],
    class_keys: &["category"],
    flow_refusal: "only a flow in a Wi-Fi cell has this key; write kind = \"wifi\" in [network]",
    has_hop: false,
    access,
    attachments,
};

fn access(network: &Table, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<Option<Access>> {
    cell(network, Recorded { duration, files }).map(Some)
}

/// Reads the attachments from a flow's keys `station` and `category`.
fn attachments(table: &Table, cell: &Access) -> Result<Vec<Attachment>> {
    let Some(item) = table.get("station") else {
        table.refuse("category", "only a flow at a station has one; write station = \"...\"")?;
        return Ok(Vec::new());
    };
    let name = item.string("a station's name")?;
    let stations = cell.config.terminals();
    let nodes = cell.nodes(name);
    let Some(nodes) = nodes.filter(|it| stations.contains(&it.start) && it.end <= stations.end)
    else {
        let known = cell.names();
        let hint = nearest(name, known.iter().skip(1).map(String::as_str))
            .first()
            .map_or(String::new(), |near| format!("; write one such as \"{near}\""));
        return Err(item.error(&format!("there is no station {}{hint}", quoted(name))));
    };
    let category = category(table)?;
    Ok(nodes.map(|node| Association { station: NodeId(node), category }.into()).collect())
}

fn category(table: &Table) -> Result<AccessCategory> {
    table.choice("category", AccessCategory::BestEffort, CATEGORIES)
}

/// Reads the cell from the `[network]` table.
fn cell(network: &Table, run: Recorded<'_>) -> Result<Access> {
    let band = network.choice(
        "band",
        Band::GHZ_2_4,
        &[("2.4GHz", Band::GHZ_2_4), ("5GHz", Band::GHZ_5)],
    )?;
    let mut places = vec![None];
    let access_point = match network.get("access_point") {
        Some(item) => {
            let table = item.table(NODE)?;
            places[0] = place(&table)?;
            node("ap", &table)?
        }
        None => NodeConfig::new("ap"),
    };
    let (mut stations, mut groups, mut powers) = (Vec::new(), Vec::new(), Vec::new());
    for (name, item) in network.require("station", "{ laptop = { rate = 7 } }")?.named()? {
        let table = item.table(STATION)?;
        let count = table.whole("count", 1, MAX_COUNT)?;
        let first = 1 + stations.len();
        groups.push(NodeGroup { name: name.into(), nodes: first..first + count });
        let station = station(name, &table, run)?;
        let own = place(&table)?;
        places.extend(std::iter::repeat_n(own, count));
        if own.is_some() {
            table.refuse("power", "the power follows from the place; leave out one of the two")?;
        }
        if let Some(item) = table.get("power") {
            powers.push((first..first + count, power(&item)?));
        }
        for number in 1..=count {
            let mut numbered = station.clone();
            if table.get("count").is_some() {
                numbered.node.name = format!("{name}-{number}");
            }
            stations.push(numbered);
        }
    }
    if stations.len() > STATIONS_MAX {
        return Err(network.error(&format!("a cell has at most {STATIONS_MAX} stations")));
    }
    if stations.is_empty() {
        return Err(network.error("a cell needs a station; write [network.station.laptop]"));
    }
    let mut config = CellConfig::new(band, stations).with_access_point(access_point);
    for (nodes, dbm) in powers {
        for node in nodes.map(NodeId) {
            config.powers.between.push((node, NodeId::ACCESS_POINT, dbm));
            config.powers.between.push((NodeId::ACCESS_POINT, node, dbm));
        }
    }
    if let Some(neighbours) = network.get("neighbour") {
        for (name, item) in neighbours.named()? {
            let number = 1 + config.stations.len() + config.neighbours.len();
            groups.push(NodeGroup { name: name.into(), nodes: number..number + 1 });
            let table = item.table(NEIGHBOUR)?;
            places.push(place(&table)?);
            let link = link(&table, None, run)?;
            config.neighbours.push(Neighbour::new(node(name, &table)?, link));
        }
    }
    config.powers.placement = placement(network, band, places)?;
    refuse_doubles(network, &config)?;
    let words = words::in_words(&config, &groups);
    let mut cell = Access { config: config.clone().into(), groups, words };
    if let Some(pairs) = network.get("hidden") {
        hide(&pairs, &cell, &mut config)?;
        cell.config = config.into();
    }
    Ok(cell)
}

/// Power in dBm with which the access point and a station receive each other.
fn power(item: &Item) -> Result<f64> {
    let dbm = item.number()?;
    if POWERS.contains(&dbm) {
        return Ok(dbm);
    }
    Err(item.error("must be a power in dBm between -100 and 0"))
}

/// Refuses duplicate names, because names identify the nodes.
fn refuse_doubles(network: &Table, cell: &CellConfig) -> Result<()> {
    let mut names: Vec<&str> = cell.names().collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(network.error(&format!("two nodes are called {}", quoted(pair[0])))),
        None => Ok(()),
    }
}

/// Reads `[["laptop", "neighbour"]]`: pairs of nodes that do not hear each other.
fn hide(pairs: &Item, cell: &Access, config: &mut CellConfig) -> Result<()> {
    const EXPECTED: &str = "expected pairs such as [[\"laptop\", \"phone\"]]";
    for pair in pairs.elements().ok_or_else(|| pairs.error(EXPECTED))? {
        let names = pair.elements();
        let Some([a, b]) = names.as_deref() else { return Err(pairs.error(EXPECTED)) };
        let (first, second) = (known_nodes(a, cell)?, known_nodes(b, cell)?);
        for a in first {
            for b in second.clone().filter(|b| *b != a) {
                config.powers.hide(NodeId(a), NodeId(b));
            }
        }
    }
    Ok(())
}

fn known_nodes(item: &Item, cell: &Access) -> Result<Range<usize>> {
    let name = item.string("a node's name")?;
    let nodes = cell.nodes(name);
    nodes.ok_or_else(|| item.error(&format!("there is no node {}", quoted(name))))
}

fn node(name: &str, table: &Table) -> Result<NodeConfig> {
    let mut node = NodeConfig::new(name);
    if let Some(item) = table.get("edca") {
        node.edca = edca(&item)?;
    }
    if let Some(item) = table.get("aggregation") {
        node.aggregation = aggregation(&item)?;
    }
    if let Some(item) = table.get("queue") {
        node.queue = queue(&item)?;
    }
    if let Some(item) = table.get("retry") {
        node.retry = retry(&item)?;
    }
    Ok(node)
}

fn station(name: &str, table: &Table, run: Recorded<'_>) -> Result<Station> {
    let mut up = link_of_station(table, "up", run)?;
    let down = link_of_station(table, "down", run)?;
    up.loads.extend(loads(table, run.duration)?);
    Ok(Station::from_parts(node(name, table)?, up, down))
}

fn link_of_station(table: &Table, key: &'static str, run: Recorded<'_>) -> Result<Link> {
    match table.get(key) {
        Some(item) => link(&item.table(LINK)?, Some(table), run),
        None => link_without_load(table, None, run),
    }
}

/// Reads one direction. Keys that it omits are taken from the station's table.
fn link(own: &Table, station: Option<&Table>, run: Recorded<'_>) -> Result<Link> {
    Ok(link_without_load(own, station, run)?.with_loads(loads(own, run.duration)?))
}

fn link_without_load(own: &Table, station: Option<&Table>, run: Recorded<'_>) -> Result<Link> {
    let rate = match own.get("rate").or_else(|| station?.get("rate")) {
        Some(item) => rate(&item, run)?,
        None => {
            return Err(own.require("rate", "7").expect_err("it is not there"));
        }
    };
    let errors = own.get("errors").or_else(|| station?.get("errors"));
    let errors = match errors {
        Some(item) => errors_of(&item)?,
        None => Errors::NONE,
    };
    Ok(Link::new(rate).with_errors(errors))
}

/// Reads `15`, `{ mcs = 15, guard = "short" }`, steps of either, `{ control = "minstrel" }`, or
/// `{ trace = "rates.csv" }`.
fn rate(item: &Item, run: Recorded<'_>) -> Result<RateControl> {
    if item.is_table() && item.named()?.iter().any(|(name, _)| *name == "trace") {
        return recorded_rate(item, run);
    }
    if let Some(elements) = item.elements() {
        let steps = steps(&elements, run.duration, "15", fixed_rate)?;
        return match steps.split_first() {
            Some((first, rest)) if first.0 == Timestamp::ZERO => {
                Ok(RateControl::Steps(first.1, rest.to_vec()))
            }
            _ => Err(item.error("the first step must be at 0s")),
        };
    }
    let control = if item.is_table() { item.table(RATE)?.get("control") } else { None };
    let Some(control) = control else { return fixed_rate(item).map(RateControl::Fixed) };
    let table = item.table(RATE)?;
    table.refuse("mcs", "the rate control chooses the MCS; leave it out")?;
    let streams = table.whole("streams", 1, 2.0)? as u8;
    let set = RateSet::new(streams, guard(&table)?);
    Ok(if control.choice(&[("ideal", true), ("minstrel", false)])? {
        RateControl::Ideal(set)
    } else {
        RateControl::Minstrel(set)
    })
}

/// The fastest schemes that are not above recorded rates, with the long guard interval.
fn recorded_rate(item: &Item, run: Recorded<'_>) -> Result<RateControl> {
    let rates =
        trace::from_table(&item.table(trace::KEYS)?, Want::Down, run.files, |trace, end| {
            trace.rates_over(run.duration, end.unwrap_or_default())
        })?;
    let mut steps = Vec::with_capacity(rates.len());
    for (at, rate) in rates {
        let schemes = (0..Mcs::COUNT as u8).filter_map(Mcs::new).map(DataRate::long_guard);
        let fitting = schemes.filter(|scheme| scheme.bitrate() <= rate);
        let fastest = fitting.max_by_key(|scheme| scheme.bitrate());
        steps.push((at, fastest.unwrap_or(DataRate::long_guard(Mcs::LOWEST))));
    }
    let later = steps.split_off(1);
    Ok(RateControl::Steps(steps[0].1, later))
}

fn fixed_rate(item: &Item) -> Result<DataRate> {
    if !item.is_table() {
        return Ok(DataRate::long_guard(mcs(item)?));
    }
    let table = item.table(RATE)?;
    for key in ["control", "streams"] {
        table.refuse(key, "a fixed rate has only an mcs")?;
    }
    Ok(DataRate { mcs: mcs(&table.require("mcs", "15")?)?, guard: guard(&table)? })
}

fn mcs(item: &Item) -> Result<Mcs> {
    let number = item.number()?;
    let whole = (number.fract() == 0.0 && (0.0..=15.0).contains(&number)).then_some(number as u8);
    whole.and_then(Mcs::new).ok_or_else(|| item.error("must be an MCS from 0 to 15"))
}

fn guard(table: &Table) -> Result<GuardInterval> {
    table.choice(
        "guard",
        GuardInterval::Long,
        &[("long", GuardInterval::Long), ("short", GuardInterval::Short)],
    )
}

fn errors_of(item: &Item) -> Result<Errors> {
    if !item.is_table() {
        return item.probability().map(Errors::Ratio);
    }
    let table = item.table(ERRORS)?;
    if NOISE.iter().any(|key| table.get(key).is_some()) {
        return noise(&table).map(Errors::Noise);
    }
    let mean = |key, example| positive(&table.require(key, example)?);
    let ratio = |key| table.require(key, "0.1")?.probability();
    Ok(Errors::Bursts(Bursts {
        good: mean("good", "\"500ms\"")?,
        bad: mean("bad", "\"50ms\"")?,
        error_good: ratio("error_good")?,
        error_bad: ratio("error_bad")?,
    }))
}

/// Reads noise, with fading if a coherence time is given.
fn noise(table: &Table) -> Result<Noise> {
    for key in ["good", "bad", "error_good", "error_bad"] {
        table.refuse(key, "a channel with noise has no such key")?;
    }
    let k_factor = match table.get("k_factor") {
        None => 0.0,
        Some(item) => match item.number()? {
            number if number >= 0.0 => number,
            _ => return Err(item.error("must not be below zero")),
        },
    };
    let coherence = table.optional("coherence", positive)?;
    if coherence.is_none() {
        table.refuse("k_factor", "only fading has one; write coherence = \"50ms\"")?;
    }
    let fading = coherence.map(|coherence| Fading::new(k_factor, coherence));
    Ok(Noise::new(table.require("noise_figure", "7")?.number()?).with_fading(fading))
}

fn positive(item: &Item) -> Result<TimeDelta> {
    match item.time()? {
        TimeDelta::ZERO => Err(item.error("must be above zero")),
        time => Ok(time),
    }
}

fn loads(table: &Table, duration: TimeDelta) -> Result<Vec<StationLoad>> {
    table.tables("load", LOAD)?.iter().map(|table| load(table, duration)).collect()
}

fn load(table: &Table, duration: TimeDelta) -> Result<StationLoad> {
    let CommonLoad { arrivals, size, start, stop } = common_load(table, PACKETS, duration)?;
    let load = StationLoad::new(arrivals, size).with_category(category(table)?);
    Ok(load.with_start(start).with_stop(stop))
}

/// Reads `"2000packets"`, `"64KB"`, or `{ kind = "fq-codel", limit = "1000packets" }`.
fn queue(item: &Item) -> Result<NodeQueue> {
    if !item.is_table() {
        return Ok(NodeQueue::Fifo { limit: limit(item)? });
    }
    let table = item.table(QUEUE)?;
    table.require("kind", "\"fq-codel\"")?.choice(&[("fq-codel", ())])?;
    let default = CoDelConfig::default();
    let codel = default
        .with_target(table.or("target", default.target, positive)?)
        .with_interval(table.or("interval", default.interval, positive)?)
        .with_ecn(table.or("ecn", default.ecn, Item::boolean)?);
    Ok(NodeQueue::FairCoDel { limit: limit(&table.require("limit", "\"1000packets\"")?)?, codel })
}

fn limit(item: &Item) -> Result<WaitLimit> {
    match item.queue()? {
        QueueLimit::Packets(packets) => Ok(WaitLimit::Packets(packets)),
        QueueLimit::Bytes(bytes) => Ok(WaitLimit::Bytes(bytes)),
        QueueLimit::Time(_) => Err(item.error(
            "a limit in time needs a fixed capacity, which a node does not have; \
                write packets or bytes",
        )),
    }
}

/// Reads the maximum number of MPDUs per frame, or a table of limits. Omitted limits are the
/// standard's.
fn aggregation(item: &Item) -> Result<Aggregation> {
    let standard = Aggregation::STANDARD;
    let mpdus = |item: &Item| item.whole(standard.mpdus as f64);
    if !item.is_table() {
        return Ok(standard.with_mpdus(mpdus(item)?));
    }
    let table = item.table(AGGREGATION)?;
    Ok(standard
        .with_mpdus(table.or("mpdus", standard.mpdus, mpdus)?)
        .with_bytes(table.or("bytes", standard.bytes, Item::size)?)
        .with_duration(table.or("duration", standard.duration, positive)?))
}

/// Reads `"station"`, `"access-point"`, or a table of categories that differ from a station's.
fn edca(item: &Item) -> Result<Edca> {
    if !item.is_table() {
        return item.choice(&[("station", Edca::STATION), ("access-point", Edca::ACCESS_POINT)]);
    }
    let table = item.table(EDCA)?;
    let mut edca = Edca::STATION;
    for &(name, category) in CATEGORIES {
        let key = EDCA.iter().find(|key| **key == name).expect("both list the categories");
        if let Some(item) = table.get(key) {
            let parameters = parameters(&item.table(PARAMETERS)?, edca.of(category))?;
            edca = edca.with(category, parameters);
        }
    }
    Ok(edca)
}

fn parameters(table: &Table, default: &EdcaParameters) -> Result<EdcaParameters> {
    let mut parameters = *default;
    for (key, number, max) in [
        ("aifsn", &mut parameters.aifsn, MAX_AIFSN),
        ("cw_min", &mut parameters.cw_min, MAX_WINDOW),
        ("cw_max", &mut parameters.cw_max, MAX_WINDOW),
    ] {
        if let Some(item) = table.get(key) {
            *number = item.whole(max)? as u32;
        }
    }
    if let Some(item) = table.get("txop") {
        parameters.txop = item.time()?;
    }
    if parameters.cw_min > parameters.cw_max {
        return Err(table.error("cw_min must not be above cw_max"));
    }
    Ok(parameters)
}
