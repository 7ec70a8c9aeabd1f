//! The `[network]` of kind `cellular`: a base station and its terminals, over LTE or NR.

mod bearer;
mod carrier;
mod control;
mod load;
mod signal;
mod values;
mod words;

use std::ops::Range;

use weir::units::TimeDelta;
use weir_net::cellular::{
    BearerChange, BearerConfig, BearerRef, CellularConfig, FILTERED, Qci, Signal, Terminal,
};
use weir_net::path::{AccessConfig, Attachment};

use self::bearer::{Defaults, Scheduled, bearers, default_bearer};
use self::values::directed;
use super::error::{ScenarioError, nearest, quoted};
use super::kind::{Access, Kind, NodeGroup};
use super::reader::{Item, Table};
use super::trace_files::TraceFiles;

type Result<T> = std::result::Result<T, ScenarioError>;

const TERMINAL: &[&str] = &[
    "count", "sinr", "place", "fading", "handover", "drx", "queue", "rlc", "qci", "ambr", "bearer",
    "load",
];

/// Maximum number of terminals that one table can describe.
const MAX_COUNT: f64 = 100.0;
/// Maximum number of terminals of a cell: each one takes part in every decision of the scheduler.
const TERMINALS_MAX: usize = 1_000;
/// Maximum number of scheduled changes of bearers, of all terminals together.
const CHANGES_MAX: usize = 100_000;
/// Maximum length of a name.
const NAME_MAX: usize = 32;
/// The default bearer's name, which no other bearer may have.
const DEFAULT: &str = "default";

/// A cellular cell.
pub(super) const KIND: Kind = Kind {
    name: "cellular",
    keys: &[
        "technology",
        "numerology",
        "symbols",
        "qam256",
        "tdd",
        "bandwidth",
        "prbs",
        "layers",
        "profile",
        "scheduler",
        "stops_at_queue_end",
        "sharing",
        "control_errors",
        "harq",
        "adaptation",
        "uplink",
        "timing",
        "admission",
        "path_loss",
        "terminal",
    ],
    refusal: "only a cellular cell has it; write kind = \"cellular\"",
    place_keys: &["terminal"],
    class_keys: &["bearer"],
    flow_refusal: "only a flow in a cellular cell has this key; write kind = \"cellular\" in \
        [network]",
    has_hop: false,
    access,
    attachments,
};

fn access(network: &Table, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<Option<Access>> {
    cell(network, duration, files).map(Some)
}

/// Reads the attachments from a flow's keys `terminal` and `bearer`.
fn attachments(table: &Table, access: &Access) -> Result<Vec<Attachment>> {
    let Some(item) = table.get("terminal") else {
        table.refuse("bearer", "only a flow at a terminal has one; write terminal = \"...\"")?;
        return Ok(Vec::new());
    };
    let AccessConfig::Cellular(config) = &access.config else { return Ok(Vec::new()) };
    let name = item.string("a terminal's name")?;
    let Some(nodes) = access.nodes(name).filter(|nodes| nodes.start > 0) else {
        let known = access.names();
        let hint = nearest(name, known.iter().skip(1).map(String::as_str))
            .first()
            .map_or(String::new(), |near| format!("; write one such as \"{near}\""));
        return Err(item.error(&format!("there is no terminal {}{hint}", quoted(name))));
    };
    let class = match table.get("bearer") {
        None => FILTERED,
        Some(item) => {
            let wanted = item.string("a bearer's name")?;
            let names = bearer_names(config, nodes.start - 1);
            names.iter().position(|name| *name == wanted).ok_or_else(|| {
                let known = names.join(", ");
                item.error(&format!("{name} has no bearer {}; it has {known}", quoted(wanted)))
            })?
        }
    };
    Ok(nodes.map(|terminal| Attachment { terminal, class }).collect())
}

/// The bearers of a terminal by their numbers: those that it has from the start, then the scheduled
/// ones in the order in which they are added.
fn bearer_names(config: &CellularConfig, terminal: usize) -> Vec<&str> {
    let own = config.terminals[terminal].bearers.iter().map(|bearer| bearer.name.as_str());
    let added = config.changes.iter().filter_map(|(_, change)| match change {
        BearerChange::Add { terminal: of, bearer } if *of == terminal => Some(bearer.name.as_str()),
        _ => None,
    });
    own.chain(added).collect()
}

/// Reads the cell from the `[network]` table.
fn cell(network: &Table, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<Access> {
    let carrier = carrier::carrier(network)?;
    let (mut config, rlc) = control::cell(network, carrier)?;
    let read = Reading { network, duration, files, defaults: Defaults { rlc } };
    let mut groups = Vec::new();
    for (name, item) in network.require("terminal", "{ phone = { sinr = 20 } }")?.named()? {
        check_name(name, &item)?;
        let table = item.table(TERMINAL)?;
        let count = table.whole("count", 1, MAX_COUNT)?;
        let first = 1 + config.terminals.len();
        groups.push(NodeGroup { name: name.into(), nodes: first..first + count });
        let (terminal, scheduled) = read.terminal(name, &table)?;
        match table.get("count") {
            None => config.terminals.push(terminal),
            Some(_) => config.terminals.extend((1..=count).map(|number| {
                let mut terminal = terminal.clone();
                terminal.name = format!("{name}-{number}");
                terminal
            })),
        }
        if config.terminals.len() > TERMINALS_MAX {
            return Err(network.error(&format!("a cell has at most {TERMINALS_MAX} terminals")));
        }
        schedule(&mut config, first - 1..first - 1 + count, &scheduled);
        if config.changes.len() > CHANGES_MAX {
            let error = format!("a cell has at most {CHANGES_MAX} changes of bearers");
            return Err(network.error(&error));
        }
    }
    if config.terminals.is_empty() {
        return Err(network.error("a cell needs a terminal; write [network.terminal.phone]"));
    }
    // Changes of one time stay in the order of the file.
    config.changes.sort_by_key(|(time, _)| *time);
    refuse_doubles(network, &config)?;
    let words = words::in_words(&config, &groups);
    Ok(Access { config: config.into(), groups, words })
}

/// Adds the changes of a group's scheduled bearers for each of its terminals.
fn schedule(config: &mut CellularConfig, terminals: Range<usize>, bearers: &[Scheduled]) {
    for terminal in terminals {
        for Scheduled { bearer, from, changes, until } in bearers {
            let named = BearerRef { terminal, bearer: bearer.name.clone() };
            if let Some(from) = from {
                let add = BearerChange::Add { terminal, bearer: bearer.clone() };
                config.changes.push((*from, add));
            }
            for (time, guarantee) in changes {
                let (bearer, guarantee) = (named.clone(), Some(*guarantee));
                config.changes.push((*time, BearerChange::Guarantee { bearer, guarantee }));
            }
            config.changes.extend(until.map(|until| (until, BearerChange::Remove(named))));
        }
    }
}

/// What the tables of terminals are read with.
struct Reading<'a> {
    network: &'a Table<'a>,
    duration: TimeDelta,
    files: &'a TraceFiles<'a>,
    defaults: Defaults,
}

impl Reading<'_> {
    fn terminal(&self, name: &str, table: &Table) -> Result<(Terminal, Vec<Scheduled>)> {
        let means = signal::means(self.network, table, self.duration, self.files)?;
        let fading = table.optional("fading", signal::fading)?;
        let signals = weir_net::cellular::Directions {
            up: Signal::new(means.up, fading),
            down: Signal::new(means.down, fading),
        };
        let mut terminal = Terminal::new(name, signals);
        let scheduled = match table.get("bearer") {
            Some(item) => bearers(&item, self.duration, &self.defaults)?,
            None => Vec::new(),
        };
        terminal.bearers = vec![default_bearer(table, &self.defaults)?];
        let standing = scheduled.iter().filter(|scheduled| scheduled.from.is_none());
        terminal.bearers.extend(standing.map(|scheduled| scheduled.bearer.clone()));
        terminal.ambr = match table.get("ambr") {
            Some(item) => directed(&item, Some(terminal.ambr), |item| item.rate().map(Some))?,
            None => terminal.ambr,
        };
        terminal.drx = table.or("drx", None, signal::drx)?;
        terminal.handovers = signal::handovers(table, self.duration)?;
        terminal.loads = load::loads(table, &terminal.bearers, self.duration)?;
        Ok((terminal, scheduled))
    }
}

/// Refuses names that the files of a record, metrics or random streams could not tell apart.
fn check_name(name: &str, item: &Item) -> Result<()> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !name.is_empty() && name.len() <= NAME_MAX && is_plain {
        return Ok(());
    }
    let error = format!("a name has up to {NAME_MAX} letters, digits, \"-\" and \"_\"");
    Err(item.error(&error))
}

/// Refuses duplicate names, because names identify the nodes.
fn refuse_doubles(network: &Table, config: &CellularConfig) -> Result<()> {
    let mut names = AccessConfig::from(config.clone()).names();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(network.error(&format!("two nodes are called {}", quoted(&pair[0])))),
        None => Ok(()),
    }
}

/// Reads the number of a class.
fn qci(item: &Item) -> Result<Qci> {
    let number = item.number()?;
    let known = Qci::all().iter().find(|class| f64::from(class.number) == number);
    known.copied().ok_or_else(|| item.error("must be a QCI from 1 to 9"))
}

/// Number of a bearer that a terminal has from the start.
fn number_of(bearers: &[BearerConfig], item: &Item) -> Result<usize> {
    let wanted = item.string("a bearer's name")?;
    bearers.iter().position(|bearer| bearer.name == wanted).ok_or_else(|| {
        let hint = "write one that has no from";
        item.error(&format!("there is no bearer {} from the start; {hint}", quoted(wanted)))
    })
}
