//! The keys of a table that names a trace file.

use std::path::Path;

use toml::de::DeTable;
use weir::units::{DataSize, TimeDelta};
use weir_net::{Opportunity, TraceEnd};

use super::clock::is_format;
use super::{
    Cell, Column, Decimal, Format, Options, Reading, Result as ReadResult, RowTimes, Trace, Unit,
    Want, read_all, read_opportunities,
};
use crate::error::{ScenarioError, printable, quoted};
use crate::reader::{File, Item, Table};
use crate::trace_files::{FileText, TraceFiles};

type Result<T> = std::result::Result<T, ScenarioError>;

macro_rules! keys {
    ($($more:literal),*) => {
        &[
            "trace", "format", "column", "unit", "time", "time_unit", "time_format", "times",
            "duration", "interval", "list", "round_trip", "counter", "skip", "opportunity",
            "decimal", "where", "from", "to", "trace_end", $($more),*
        ]
    };
}

/// The keys.
pub(crate) const KEYS: &[&str] = keys!();
/// The keys of a delay, which may keep its packets in order.
pub(crate) const DELAY_KEYS: &[&str] = keys!("reorder");
/// The keys of a jitter.
pub(crate) const JITTER_KEYS: &[&str] = keys!("kind", "reorder", "distribution", "correlation");
/// The keys of a signal.
pub(crate) const SINR_KEYS: &[&str] = keys!("period");
/// Most columns that a number may count.
const MAX_COLUMN: f64 = 10_000.0;
/// Most lines at the start that are not read.
const MAX_SKIP: f64 = 10_000.0;
/// Largest opportunity.
const MAX_OPPORTUNITY: DataSize = DataSize::from_bytes(1_000_000);

/// Reads the trace that a table names, and makes something of it. Errors of the trace are those of
/// the key `trace`.
pub(crate) fn from_table<T>(
    table: &Table<'_>,
    want: Want,
    files: &TraceFiles<'_>,
    make: impl FnOnce(Trace, Option<TraceEnd>) -> ReadResult<T>,
) -> Result<T> {
    let file = table.require("trace", "\"uplink.mahi\"")?;
    let name = file.string("a file name")?;
    let (reading, end) = reading(table, want, files)?;
    make(reading.trace, end).map_err(|error| file.error(&format!("{}: {error}", quoted(name))))
}

fn reading(
    table: &Table<'_>,
    want: Want,
    files: &TraceFiles<'_>,
) -> Result<(Reading, Option<TraceEnd>)> {
    let file = table.require("trace", "\"uplink.mahi\"")?;
    let name = file.string("a file name")?;
    let options = options(table, want)?;
    let ends = [("repeat", TraceEnd::Repeat), ("hold", TraceEnd::Hold)];
    let end = table.optional_choice("trace_end", &ends)?;
    let text = files.get(name);
    let text = text.map_err(|why| cannot_read(&file, name, &why))?;
    let reading = match read_kept(&text, &options) {
        Ok(Some(reading)) => Ok(reading),
        Ok(None) => {
            let text = text.read();
            let text = text.map_err(|error| cannot_read(&file, name, &error.to_string()))?;
            read_all(&text, &options)
        }
        Err(error) => Err(error),
    };
    let reading = reading.map_err(|error| file.error(&format!("{}: {error}", quoted(name))))?;
    Ok((reading, end))
}

fn cannot_read(file: &Item<'_>, name: &str, why: &str) -> ScenarioError {
    file.error(&format!("cannot read {}: {}", quoted(name), printable(why)))
}

/// Reads a trace that records share line by line, if it is one of mahimahi: its text may be larger
/// than everything else. `None` for others.
fn read_kept(text: &FileText, options: &Options) -> ReadResult<Option<Reading>> {
    match text {
        FileText::Kept(kept) => read_opportunities(kept, options),
        FileText::Held(_) => Ok(None),
    }
}

/// Reads the trace that a line of TOML describes, such as `trace = "a.csv", unit = "kbps"`. The
/// file is relative to `folder`.
///
/// # Errors
/// As of a scenario with these keys.
pub fn read_file(keys: &str, want: Want, folder: &Path) -> Result<(Reading, Option<TraceEnd>)> {
    let text = format!("capacity = {{ {keys} }}\n");
    let file = File { id: "", text: &text };
    let document = DeTable::parse(&text)
        .map_err(|error| file.error(error.span().unwrap_or(0..0), error.message()))?;
    let top = Table::top(file, &document, &["capacity"])?;
    let table = top.require("capacity", "{ trace = \"uplink.mahi\" }")?.table(KEYS)?;
    reading(&table, want, &TraceFiles::beside(Some(folder)))
}

fn options(table: &Table<'_>, want: Want) -> Result<Options> {
    let times = [("start", RowTimes::Start), ("end", RowTimes::End)];
    let decimals = [(".", Decimal::Point), (",", Decimal::Comma)];
    Ok(Options {
        want,
        format: table.optional_choice("format", &Format::ALL)?,
        column: table.optional("column", column)?,
        unit: table.optional_choice("unit", &Unit::ALL)?,
        time: table.optional("time", column)?,
        time_unit: table.optional("time_unit", time_unit)?,
        time_format: table.optional("time_format", time_format)?,
        times: table.optional_choice("times", &times)?,
        duration: table.optional("duration", column)?,
        interval: table.optional("interval", Item::time)?,
        list: table.get("list").map(|item| item.string("keys").map(String::from)).transpose()?,
        round_trip: table.optional("round_trip", Item::boolean)?,
        counter: table.or("counter", false, Item::boolean)?,
        skip: table.whole("skip", 0, MAX_SKIP)?,
        opportunity: table.or("opportunity", Opportunity::Mahimahi, opportunity)?,
        decimal: table.optional_choice("decimal", &decimals)?,
        rows: table.or("where", Vec::new(), rows)?,
        from: table.optional("from", Item::time)?,
        to: table.optional("to", Item::time)?,
    })
}

fn opportunity(item: &Item<'_>) -> Result<Opportunity> {
    let size = item.size()?;
    if size > MAX_OPPORTUNITY {
        return Err(item.error("must be at most 1MB"));
    }
    Ok(Opportunity::Bytes(size))
}

fn time_format(item: &Item<'_>) -> Result<String> {
    let text = item.string("a format such as \"%d.%m.%Y %H:%M:%S\"")?;
    if !is_format(text) {
        let message = format!("{} is no format of strftime", quoted(text));
        return Err(item.error(&message));
    }
    Ok(text.into())
}

fn column(item: &Item<'_>) -> Result<Column> {
    match item.number() {
        Ok(_) => item.whole(MAX_COLUMN).map(Column::Number),
        Err(_) => {
            item.string("the name of a column or its number").map(|name| Column::Name(name.into()))
        }
    }
}

fn time_unit(item: &Item<'_>) -> Result<TimeDelta> {
    item.choice(&[
        ("s", TimeDelta::from_secs(1)),
        ("ms", TimeDelta::from_millis(1)),
        ("us", TimeDelta::from_micros(1)),
        ("ns", TimeDelta::from_nanos(1)),
        ("min", TimeDelta::from_secs(60)),
        ("h", TimeDelta::from_secs(3_600)),
        ("d", TimeDelta::from_secs(86_400)),
    ])
}

fn rows(item: &Item<'_>) -> Result<Vec<(String, Cell)>> {
    let mut cells = Vec::new();
    for (name, item) in item.named()? {
        let cell = match (item.number(), item.boolean()) {
            (Ok(number), _) => Cell::Number(number),
            (_, Ok(value)) => Cell::Text(value.to_string()),
            _ => Cell::Text(item.string("a text or a number")?.into()),
        };
        cells.push((name.to_owned(), cell));
    }
    Ok(cells)
}
