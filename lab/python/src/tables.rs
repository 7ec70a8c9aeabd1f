//! The results of runs as Arrow tables.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, MapBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use serde_json::{Map, Value};
use weir_lab::record::number_columns;
use weir_lab::run::RunInfo;
use weir_lab::summary::Summary;
use weir_sim::Trace;
use weir_sim::trace::RateChange;

/// A table: its columns, and a batch for each run.
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

/// Results of one run, until all runs are there.
pub struct MeasuredRun {
    pub info: RunInfo,
    pub trace: Trace,
    pub summary: Summary,
}

/// The columns that say which run a row belongs to.
fn run_columns(info: &RunInfo, rows: usize) -> Vec<(Field, ArrayRef)> {
    let text = |name: &str, value: &str| {
        let array: ArrayRef =
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows)));
        (Field::new(name, DataType::Utf8, false), array)
    };
    let seeds = UInt64Array::from_iter_values(std::iter::repeat_n(info.seed, rows));
    vec![
        text("scenario", &info.scenario),
        text("controller", &info.subject.to_string()),
        (Field::new("seed", DataType::UInt64, false), Arc::new(seeds)),
    ]
}

fn batch(columns: Vec<(Field, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn table(batches: Vec<RecordBatch>) -> Table {
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    Table { schema, batches }
}

/// The rows of each flow and 50 ms, with the columns of `series.csv`.
pub fn series(runs: &[MeasuredRun]) -> Result<Table, ArrowError> {
    runs.iter().map(series_of).collect::<Result<_, _>>().map(table)
}

fn series_of(run: &MeasuredRun) -> Result<RecordBatch, ArrowError> {
    let rows = &run.trace.rows;
    let mut columns = run_columns(&run.info, rows.len());
    let flows = rows.iter().map(|row| run.trace.flows[row.flow].as_str());
    let flows: ArrayRef = Arc::new(StringArray::from_iter_values(flows));
    columns.push((Field::new("flow", DataType::Utf8, false), flows));
    for column in number_columns() {
        let values = column.values(rows).map(|value| value.and_then(|it| i64::try_from(it).ok()));
        let metadata = [("unit", column.unit()), ("meaning", column.meaning())];
        let field = Field::new(column.name(), DataType::Int64, true)
            .with_metadata(metadata.map(|(key, text)| (key.to_string(), text.to_string())).into());
        columns.push((field, Arc::new(Int64Array::from_iter(values))));
    }
    batch(columns)
}

/// Every change of a target bitrate, with its reason, the controller's state and its signals.
pub fn events(runs: &[MeasuredRun]) -> Result<Table, ArrowError> {
    runs.iter().map(events_of).collect::<Result<_, _>>().map(table)
}

fn events_of(run: &MeasuredRun) -> Result<RecordBatch, ArrowError> {
    let events = &run.trace.events;
    let text = |of: &dyn Fn(&RateChange) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(events.iter().map(of)))
    };
    let number = |of: &dyn Fn(&RateChange) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(events.iter().map(of)))
    };
    let bps = |bitrate: weir::Bitrate| bitrate.as_bps().cast_signed();
    let mut signals = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for event in events {
        for (name, value) in &event.signals {
            signals.keys().append_value(name);
            signals.values().append_value(*value);
        }
        signals.append(true)?;
    }
    let signals: ArrayRef = Arc::new(signals.finish());
    let mut columns = run_columns(&run.info, events.len());
    let plain =
        |name: &str, array: ArrayRef| (Field::new(name, array.data_type().clone(), false), array);
    columns.extend([
        plain("flow", text(&|event| run.trace.flows[event.flow].clone())),
        plain("time_us", number(&|event| event.time.as_micros())),
        plain("from_bps", number(&|event| bps(event.from))),
        plain("to_bps", number(&|event| bps(event.to))),
        plain("reason", text(&|event| event.reason.to_string())),
        plain("state", text(&|event| event.state.to_string())),
        plain("signals", signals),
    ]);
    batch(columns)
}

/// The metrics of each flow: over its whole time, where `section` is empty, and over each section
/// of the scenario. A metric with parts has a column for each part, such as `rate_mbps.mean`.
pub fn summaries(runs: &[MeasuredRun]) -> Result<Table, ArrowError> {
    let rows: Vec<(usize, Map<String, Value>)> = (0..)
        .zip(runs)
        .flat_map(|(index, run)| rows_of(&run.summary).into_iter().map(move |row| (index, row)))
        .collect();
    let mut names: Vec<&String> = Vec::new();
    for (_, row) in &rows {
        names.extend(row.iter().filter(|(_, value)| value.is_number()).map(|(name, _)| name));
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let text = |of: &dyn Fn(usize, &Map<String, Value>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(run, row)| of(*run, row))))
    };
    let member =
        |row: &Map<String, Value>, name: &str| row[name].as_str().unwrap_or("").to_string();
    let plain =
        |name: &str, array: ArrayRef| (Field::new(name, array.data_type().clone(), false), array);
    let seeds = rows.iter().map(|(run, _)| runs[*run].info.seed);
    let mut columns = vec![
        plain("scenario", text(&|run, _| runs[run].info.scenario.clone())),
        plain("controller", text(&|run, _| runs[run].info.subject.to_string())),
        plain("seed", Arc::new(UInt64Array::from_iter_values(seeds))),
        plain("flow", text(&|_, row| member(row, "flow"))),
        plain("kind", text(&|_, row| member(row, "kind"))),
        plain("section", text(&|_, row| member(row, "section"))),
    ];
    for name in names {
        let values = rows.iter().map(|(_, row)| row.get(name).and_then(Value::as_f64));
        let array: ArrayRef = Arc::new(Float64Array::from_iter(values));
        columns.push((Field::new(name, DataType::Float64, true), array));
    }
    batch(columns).map(|batch| table(vec![batch]))
}

/// A row for each flow of a run, and for each of its sections.
fn rows_of(summary: &Summary) -> Vec<Map<String, Value>> {
    let mut rows = Vec::new();
    for flow in &summary.flows {
        let mut row = |section: &str, metrics: &Value| {
            let mut cells = Map::new();
            cells.insert("flow".into(), Value::from(flow.flow.clone()));
            cells.insert("kind".into(), Value::from(flow.kind.clone()));
            cells.insert("section".into(), Value::from(section));
            flatten("", metrics, &mut cells);
            rows.push(cells);
        };
        row("", &serde_json::to_value(&flow.metrics).unwrap_or_default());
        for section in &flow.sections {
            row(&section.name, &serde_json::to_value(&section.metrics).unwrap_or_default());
        }
    }
    rows
}

fn flatten(prefix: &str, value: &Value, cells: &mut Map<String, Value>) {
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(_) => flatten(&format!("{name}."), value, cells),
            Value::Number(_) => drop(cells.insert(name, value.clone())),
            _ => {}
        }
    }
}
