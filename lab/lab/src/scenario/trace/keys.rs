//! The keys of a table that names a trace file.

use weir::units::TimeDelta;
use weir_net::TraceEnd;

use super::{Cell, Column, Format, Options, Result as ReadResult, Trace, Unit, Want, read};
use crate::scenario::error::{ScenarioError, printable, quoted};
use crate::scenario::reader::{Item, Table};
use crate::scenario::trace_files::TraceFiles;

type Result<T> = std::result::Result<T, ScenarioError>;

/// The keys.
pub(in crate::scenario) const KEYS: &[&str] = &[
    "trace",
    "format",
    "column",
    "unit",
    "time",
    "time_unit",
    "interval",
    "where",
    "from",
    "to",
    "trace_end",
];
/// Most columns that a number may count.
const MAX_COLUMN: f64 = 10_000.0;

/// Reads the trace that a table names, and makes something of it. Errors of the trace are those of
/// the key `trace`.
pub(in crate::scenario) fn from_table<T>(
    table: &Table<'_>,
    want: Want,
    files: &TraceFiles<'_>,
    make: impl FnOnce(Trace, TraceEnd) -> ReadResult<T>,
) -> Result<T> {
    let file = table.require("trace", "\"uplink.mahi\"")?;
    let name = file.string("a file name")?;
    let options = options(table, want)?;
    let ends = [("repeat", TraceEnd::Repeat), ("hold", TraceEnd::Hold)];
    let end = table.get("trace_end").map(|item| item.choice(&ends)).transpose()?;
    let text = files
        .read(name)
        .map_err(|why| file.error(&format!("cannot read {}: {}", quoted(name), printable(&why))))?;
    read(&text, &options)
        .and_then(|trace| make(trace, end.unwrap_or_default()))
        .map_err(|error| file.error(&format!("{}: {error}", quoted(name))))
}

fn options(table: &Table<'_>, want: Want) -> Result<Options> {
    Ok(Options {
        want,
        format: table.get("format").map(|item| item.choice(&Format::ALL)).transpose()?,
        column: table.get("column").map(|item| column(&item)).transpose()?,
        unit: table.get("unit").map(|item| item.choice(&Unit::ALL)).transpose()?,
        time: table.get("time").map(|item| column(&item)).transpose()?,
        time_unit: table.get("time_unit").map(|item| time_unit(&item)).transpose()?,
        interval: table.get("interval").map(|item| item.time()).transpose()?,
        rows: table.get("where").map_or(Ok(Vec::new()), |item| rows(&item))?,
        from: table.get("from").map(|item| item.time()).transpose()?,
        to: table.get("to").map(|item| item.time()).transpose()?,
    })
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
