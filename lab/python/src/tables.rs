//! The results of runs as Arrow tables.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, MapBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use serde_json::{Map, Value};
use weir_metrics::Metrics;
use weir_record::number_columns;
use weir_record::run::RunInfo;
use weir_record::summary::{FlowSummary, Summary};
use weir_sim::Trace;

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
    let controller = info.subject.to_string();
    vec![
        filled("scenario", texts(repeat_n(&info.scenario, rows))),
        filled("controller", texts(repeat_n(&controller, rows))),
        filled("seed", seeds(repeat_n(info.seed, rows))),
    ]
}

/// A column with a value in each row.
fn filled(name: &str, values: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, values.data_type().clone(), false), values)
}

fn texts<T: AsRef<str>>(values: impl Iterator<Item = T>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn numbers(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn seeds(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
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
    columns.push(filled("flow", texts(rows.iter().map(|row| &run.trace.flows[row.flow]))));
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
    let mut signals = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for event in events {
        for (name, value) in &event.signals {
            signals.keys().append_value(name);
            signals.values().append_value(*value);
        }
        signals.append(true)?;
    }
    let mut columns = run_columns(&run.info, events.len());
    columns.extend([
        filled("flow", texts(events.iter().map(|event| &run.trace.flows[event.flow]))),
        filled("time_us", numbers(events.iter().map(|event| event.time.as_micros()))),
        filled("from_bps", numbers(events.iter().map(|event| event.from.as_bps().cast_signed()))),
        filled("to_bps", numbers(events.iter().map(|event| event.to.as_bps().cast_signed()))),
        filled("reason", texts(events.iter().map(|event| event.reason.to_string()))),
        filled("state", texts(events.iter().map(|event| event.state.to_string()))),
        filled("signals", Arc::new(signals.finish())),
    ]);
    batch(columns)
}

/// The metrics of each flow: over its whole time, where `section` is empty, and over each section
/// of the scenario. A metric with parts has a column for each part, such as `rate_mbps.mean`.
pub fn summaries(runs: &[MeasuredRun]) -> Result<Table, ArrowError> {
    let mut rows: Vec<(&RunInfo, Map<String, Value>)> = Vec::new();
    for run in runs {
        rows.extend(rows_of(&run.summary).into_iter().map(|row| (&run.info, row)));
    }
    let mut names: Vec<&String> = Vec::new();
    for (_, row) in &rows {
        names.extend(row.iter().filter(|(_, value)| value.is_number()).map(|(name, _)| name));
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let mut columns = vec![
        filled("scenario", texts(rows.iter().map(|(run, _)| &run.scenario))),
        filled("controller", texts(rows.iter().map(|(run, _)| run.subject.to_string()))),
        filled("seed", seeds(rows.iter().map(|(run, _)| run.seed))),
        filled("flow", texts(rows.iter().map(|(_, row)| text_in(row, "flow")))),
        filled("kind", texts(rows.iter().map(|(_, row)| text_in(row, "kind")))),
        filled("section", texts(rows.iter().map(|(_, row)| text_in(row, "section")))),
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
        rows.push(row(flow, "", &flow.metrics));
        for section in &flow.sections {
            rows.push(row(flow, &section.name, &section.metrics));
        }
    }
    rows
}

/// The cells of one row.
fn row(flow: &FlowSummary, section: &str, metrics: &Metrics) -> Map<String, Value> {
    let mut cells = Map::new();
    cells.insert("flow".into(), Value::from(flow.flow.clone()));
    cells.insert("kind".into(), Value::from(flow.kind.clone()));
    cells.insert("section".into(), Value::from(section));
    flatten("", &serde_json::to_value(metrics).unwrap_or_default(), &mut cells);
    cells
}

/// The text in a cell of a row.
fn text_in<'a>(row: &'a Map<String, Value>, name: &str) -> &'a str {
    row[name].as_str().unwrap_or("")
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
