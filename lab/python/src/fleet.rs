//! Dumps of many calls as Arrow tables.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Take};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use weir_analyze::{
    AnalyzeError, Cause, Dump, FleetCall, estimate, fleet_call, open_loop_records, record,
    watched_scenario_text,
};
use weir_record::calls::stats::Kind;
use weir_record::shell::CommandLine;
use weir_report::Report;

use crate::arrow::ArrowTable;
use crate::error;
use crate::run::watched;

/// Bytes of the content's hash that name a call.
const ID_BYTES: usize = 16;
/// Bytes of a file that are hashed at once.
const HASHED_AT_ONCE: usize = 64 << 10;

/// A dump, and what came of it.
struct Analyzed {
    /// Hash of the content.
    id: String,
    call: Result<FleetCall, NotAnalyzed>,
    /// Whether an earlier dump of the batch has the same content.
    is_repeated: bool,
}

/// Why there is no call, in words.
enum NotAnalyzed {
    Failed(String),
    /// The capture is sound, and has no call: it is neither good nor bad.
    NoCall(String),
}

impl NotAnalyzed {
    fn words(&self) -> &str {
        let (Self::Failed(words) | Self::NoCall(words)) = self;
        words
    }
}

impl From<AnalyzeError> for NotAnalyzed {
    fn from(error: AnalyzeError) -> Self {
        match error {
            AnalyzeError::NoCall { .. } => Self::NoCall(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Analyzes dumps on some threads. Each is the name of a file, and its content if it is a member of
/// an archive. Returns the tables of calls, streams, findings and, if they are asked for, seconds;
/// the calls are in the order of the dumps.
#[pyfunction]
pub fn fleet_tables(
    py: Python<'_>,
    dumps: Vec<(String, Option<PyBackedBytes>)>,
    jobs: usize,
    has_seconds: bool,
) -> PyResult<Vec<ArrowTable>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(error)?;
    let mut read: Vec<Analyzed> =
        py.detach(|| pool.install(|| dumps.par_iter().map(analyzed).collect()));
    let mut seen = BTreeSet::new();
    for it in read.iter_mut().filter(|it| it.call.is_ok()) {
        it.is_repeated = !seen.insert(it.id.clone());
    }
    let mut tables = vec![calls(&read), streams(&read), findings(&read)];
    if has_seconds {
        tables.push(seconds(&read));
    }
    let mut made = Vec::with_capacity(tables.len());
    for batch in tables {
        let batch = batch.map_err(error)?;
        let schema = batch.schema();
        made.push(ArrowTable::new(vec![batch], schema));
    }
    Ok(made)
}

/// The names of the causes, in the order of the columns.
#[pyfunction]
pub fn fleet_causes() -> Vec<&'static str> {
    Cause::ALL.map(Cause::name).to_vec()
}

/// The scenario of the network that a dump's call met, with a film and its watcher, as text.
/// `content` is that of a member of an archive.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands the values over")]
pub fn fleet_scenario(
    py: Python<'_>,
    name: &str,
    content: Option<PyBackedBytes>,
) -> PyResult<String> {
    let text = py.detach(|| {
        guarded(|| {
            let dump = dump_of(name, content.as_deref())?;
            Ok::<_, AnalyzeError>(watched_scenario_text(name, &dump, &estimate(&dump)))
        })
    });
    text.map_err(error)?.map_err(error)
}

/// Writes the report of one call from its dump, as `weir analyze -o` does. `folder` takes the
/// records that it is made of. Returns whether the dump has a stream to report of.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands the values over")]
pub fn fleet_call_report(
    py: Python<'_>,
    name: &str,
    content: Option<PyBackedBytes>,
    folder: PathBuf,
    file: PathBuf,
) -> PyResult<bool> {
    let stop = AtomicBool::new(false);
    let content = content.as_deref();
    let written = watched(py, &stop, || {
        guarded(|| write_call_report(name, content, [&folder, &file], &stop))
    })?;
    written.and_then(|it| it).map_err(error)
}

/// Writes the report of one call. An error is one line.
fn write_call_report(
    name: &str,
    content: Option<&[u8]>,
    [folder, file]: [&Path; 2],
    stop: &AtomicBool,
) -> Result<bool, String> {
    let dump = dump_of(name, content).map_err(|error| error.to_string())?;
    if dump.connections.is_empty() {
        return Ok(false);
    }
    let mut records = vec![record(name, &dump).map_err(|error| error.to_string())?];
    records.extend(open_loop_records(name, &dump).map_err(|error| error.to_string())?);
    let mut folders = Vec::with_capacity(records.len());
    for record in &records {
        folders.push(record.write(folder).map_err(|error| error.to_string())?);
    }
    let command = CommandLine::new("weir analyze").name(name).to_string();
    let report = Report::of(&folders, &command, stop);
    let Some(report) = report.map_err(|error| error.to_string())? else { return Ok(false) };
    report.write_html(file).map_err(|error| error.to_string())?;
    Ok(true)
}

fn dump_of(name: &str, content: Option<&[u8]>) -> Result<Dump, AnalyzeError> {
    let path = Path::new(name);
    match content {
        Some(content) => weir_analyze::read_bytes(path, content.to_vec()),
        None => weir_analyze::read_from(path, Box::new(opened(path)?), None),
    }
}

/// A file as long as it is now. What is no regular file is not opened: a pipe would wait for
/// another program, and a device may have no end.
fn opened(path: &Path) -> Result<Take<File>, AnalyzeError> {
    open_regular(path).map_err(|error| AnalyzeError::Io { path: path.into(), error })
}

fn open_regular(path: &Path) -> io::Result<Take<File>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("no regular file"));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok(file.take(length))
}

fn analyzed((name, content): &(String, Option<PyBackedBytes>)) -> Analyzed {
    let path = Path::new(name);
    let (id, dump) = match content {
        Some(content) => {
            let id = hash(&mut &content[..]).unwrap_or_default();
            (id, guarded(|| weir_analyze::read_bytes(path, content.to_vec())))
        }
        None => {
            let content = opened(path).map(|mut file| hash(&mut file).unwrap_or_default());
            (content.unwrap_or_default(), guarded(|| dump_of(name, None)))
        }
    };
    let call = match dump {
        Ok(Ok(dump)) => guarded(|| fleet_call(dump)).map_err(NotAnalyzed::Failed),
        Ok(Err(error)) => Err(error.into()),
        Err(panic) => Err(NotAnalyzed::Failed(panic)),
    };
    Analyzed { id, call, is_repeated: false }
}

/// What the work returns. An error of the program in one call costs that call and not the fleet.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| "weir failed on this dump: tell us".into())
}

fn hash(from: &mut dyn Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut part = vec![0; HASHED_AT_ONCE];
    loop {
        match from.read(&mut part)? {
            0 => break,
            length => hash.update(&part[..length]),
        }
    }
    let digest = hash.finalize();
    Ok(digest[..ID_BYTES].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Columns of one table. A column begins with its first value, so every row has all of them.
#[derive(Default)]
struct Columns {
    columns: Vec<(&'static str, Column)>,
    next: usize,
}

enum Column {
    Text(StringBuilder),
    Number(Float64Builder),
    Count(UInt64Builder),
    Flag(BooleanBuilder),
}

impl Columns {
    fn row(&mut self) {
        self.next = 0;
    }

    fn column(&mut self, name: &'static str, new: fn() -> Column) -> &mut Column {
        if self.next == self.columns.len() {
            self.columns.push((name, new()));
        }
        self.next += 1;
        let (known, column) = &mut self.columns[self.next - 1];
        debug_assert_eq!(*known, name);
        column
    }

    fn text(&mut self, name: &'static str, value: Option<&str>) {
        if let Column::Text(to) = self.column(name, || Column::Text(StringBuilder::new())) {
            to.append_option(value);
        }
    }

    fn number(&mut self, name: &'static str, value: Option<f64>) {
        let finite = value.filter(|it| it.is_finite());
        if let Column::Number(to) = self.column(name, || Column::Number(Float64Builder::new())) {
            to.append_option(finite);
        }
    }

    fn count(&mut self, name: &'static str, value: Option<u64>) {
        if let Column::Count(to) = self.column(name, || Column::Count(UInt64Builder::new())) {
            to.append_option(value);
        }
    }

    fn flag(&mut self, name: &'static str, value: Option<bool>) {
        if let Column::Flag(to) = self.column(name, || Column::Flag(BooleanBuilder::new())) {
            to.append_option(value);
        }
    }

    fn batch(mut self) -> Result<RecordBatch, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
        for (name, column) in &mut self.columns {
            let array: ArrayRef = match column {
                Column::Text(it) => Arc::new(it.finish()),
                Column::Number(it) => Arc::new(it.finish()),
                Column::Count(it) => Arc::new(it.finish()),
                Column::Flag(it) => Arc::new(it.finish()),
            };
            fields.push(Field::new(*name, array.data_type().clone(), true));
            arrays.push(array);
        }
        if arrays.is_empty() {
            // No row came, so no column is known; the package adds them.
            return Ok(RecordBatch::new_empty(Arc::new(Schema::empty())));
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

fn calls(read: &[Analyzed]) -> Result<RecordBatch, ArrowError> {
    let mut rows = Columns::default();
    for Analyzed { id, call, is_repeated } in read {
        rows.row();
        let error = call.as_ref().err();
        let call = call.as_ref().ok().filter(|_| !is_repeated);
        rows.text("call_id", Some(id));
        let status = match (call, error) {
            (Some(_), _) => "analyzed",
            (None, Some(NotAnalyzed::Failed(_))) => "failed",
            (None, Some(NotAnalyzed::NoCall(_))) => "no_call",
            (None, None) => "duplicate",
        };
        rows.text("status", Some(status));
        rows.text("error", error.map(NotAnalyzed::words));
        rows.text("format", call.map(|it| it.format.as_str()));
        rows.text("browser", call.and_then(|it| it.browser.as_deref()));
        rows.number("duration_s", call.map(|it| it.duration_s));
        rows.text("verdict", call.map(|it| it.verdict.as_str()));
        let cause = call.map(|it| it.main_cause.map_or("none", Cause::name));
        rows.text("main_cause", cause);
        rows.number("bad_s", call.map(|it| it.bad_s));
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            rows.number(cause_column(cause), call.map(|it| it.cause_s[index]));
        }
        rows.flag("connection_failed", call.map(|it| it.failed));
        rows.flag("relay_or_tcp", call.map(|it| it.relay_or_tcp));
        rows.count("connections", call.map(|it| it.connections));
        rows.count("streams", call.map(|it| it.streams.len() as u64));
        let shares = call.and_then(|it| it.good_time.ratios());
        rows.number("good_ratio", shares.map(|[good, _, _]| good));
        rows.number("no_picture_ratio", shares.map(|[_, no_picture, _]| no_picture));
        rows.number("late_ratio", shares.map(|[_, _, late]| late));
        rows.count("freezes", call.map(|it| it.freezes));
        rows.number("frozen_s", call.map(|it| it.frozen_s));
        rows.number("concealed_ratio", call.and_then(|it| it.concealed_ratio));
        rows.number("base_rtt_ms", call.and_then(|it| it.base_rtt_ms));
        rows.number("uplink_capacity_kbps", call.and_then(|it| it.uplink_capacity_kbps));
        rows.number("downlink_capacity_kbps", call.and_then(|it| it.downlink_capacity_kbps));
    }
    rows.batch()
}

fn cause_column(cause: Cause) -> &'static str {
    match cause {
        Cause::Connection => "bad_connection_s",
        Cause::UplinkCapacity => "bad_uplink_capacity_s",
        Cause::DownlinkCapacity => "bad_downlink_capacity_s",
        Cause::UplinkLoss => "bad_uplink_loss_s",
        Cause::DownlinkLoss => "bad_downlink_loss_s",
        Cause::AirTime => "bad_air_time_s",
        Cause::Delay => "bad_delay_s",
        Cause::Controller => "bad_controller_s",
        Cause::Encoder => "bad_encoder_s",
        Cause::Processor => "bad_processor_s",
        Cause::Application => "bad_application_s",
        Cause::FarEnd => "bad_far_end_s",
        Cause::Unexplained => "bad_unexplained_s",
    }
}

fn streams(read: &[Analyzed]) -> Result<RecordBatch, ArrowError> {
    let mut rows = Columns::default();
    for (id, call) in analyzed_ones(read) {
        for stream in &call.streams {
            rows.row();
            let direction = stream.direction.name();
            let kind = if stream.kind == Kind::Video { "video" } else { "audio" };
            rows.text("call_id", Some(id));
            rows.text("stream", Some(&stream.name));
            rows.text("direction", Some(direction));
            rows.text("kind", Some(kind));
            rows.number("duration_s", Some(stream.duration_s));
            rows.number("rate_kbps", Some(stream.rate_kbps));
            rows.number("target_kbps", stream.target_kbps);
            rows.number("rtt_ms", stream.rtt_ms);
            rows.number("loss_ratio", stream.loss_ratio);
            rows.number("frames_per_second", stream.frames_per_second);
            rows.count("height_px", stream.height_px);
            rows.number("jitter_buffer_ms", stream.jitter_buffer_ms);
            rows.number("concealed_ratio", stream.concealed_ratio);
        }
    }
    rows.batch()
}

fn seconds(read: &[Analyzed]) -> Result<RecordBatch, ArrowError> {
    let mut rows = Columns::default();
    for (id, call) in analyzed_ones(read) {
        for stream in &call.streams {
            for second in &stream.seconds {
                rows.row();
                rows.text("call_id", Some(id));
                rows.text("stream", Some(&stream.name));
                rows.count("second", Some(second.second));
                rows.number("rate_kbps", Some(second.rate_kbps));
                rows.number("target_kbps", second.target_kbps);
                rows.number("estimate_kbps", second.estimate_kbps);
                rows.number("rtt_ms", second.rtt_ms);
                rows.number("loss_ratio", second.loss_ratio);
                rows.number("frames_per_second", second.frames_per_second);
                rows.count("height_px", second.height_px);
                rows.number("jitter_buffer_ms", second.jitter_buffer_ms);
                rows.number("frozen_s", Some(second.frozen_s));
            }
        }
    }
    rows.batch()
}

fn findings(read: &[Analyzed]) -> Result<RecordBatch, ArrowError> {
    let mut rows = Columns::default();
    for (id, call) in analyzed_ones(read) {
        for (rank, found) in (1..).zip(&call.findings) {
            rows.row();
            rows.text("call_id", Some(id));
            rows.count("rank", Some(rank));
            rows.text("stream", Some(&found.stream));
            rows.text("part", Some(&found.part));
            rows.text("rule", Some(&found.rule));
            rows.text("cause", found.cause.map(Cause::name));
            rows.number("from_s", Some(found.from_s));
            rows.number("to_s", Some(found.to_s));
            rows.text("says", Some(&found.says));
            rows.number("rate_kbps", found.rate_kbps);
            rows.number("rtt_ms", found.rtt_ms);
            rows.number("loss_ratio", found.loss_ratio);
        }
    }
    rows.batch()
}

fn analyzed_ones(read: &[Analyzed]) -> impl Iterator<Item = (&str, &FleetCall)> {
    let first = read.iter().filter(|it| !it.is_repeated);
    first.filter_map(|it| Some((it.id.as_str(), it.call.as_ref().ok()?)))
}
