//! Dumps of calls that were made elsewhere: what limited the call and when, and the network that it
//! met.
//!
//! ```text
//! file -> format by its first bytes -> reports of each stream -> samples -> findings
//!                                                            +-> the network, as a scenario
//!                                                            +-> a record, for the report
//! ```
//!
//! # Modules
//!
//! Four stages, each of which uses those before it:
//!
//! - `read/`: a file becomes the reports of each stream. `input` opens and unpacks it and tells the
//!   format; `dump/` has a reader for each format; `dump/capture/` sorts packets into calls and
//!   tells which end is this one; `packets/` joins packets with their feedback; `srtp/`
//!   opens SRTCP.
//! - `measure/`: `samples` are the values of a stream between two reports; `open_loop` runs every
//!   controller under the recorded feedback.
//! - `judge/`: `rules` is the table of what limits a stream, `finding` the times in which a rule
//!   holds, `judgement` what they mean together, `cause` whom they blame, `network` the network
//!   that the call met.
//! - `tell/`: `says` makes sentences, `verdict` and `ticket` the answer, `table` the streams.
//!   `record` and `page` make what the report shows, `fleet` a row of many calls, `live` the answer
//!   while a call runs.
//!
//! `found` holds the types between them: rule, evidence, stream, cause and effect.
#![forbid(unsafe_code)]

mod error;
mod found;
mod judge;
mod measure;
mod read;
mod tell;

use std::io::{BufRead, Cursor, Read};
use std::path::Path;

use read::dump::Collector;
use read::dump::capture::NotRead;

pub use error::AnalyzeError;
pub use found::Part;
pub use judge::cause::Cause;
pub use judge::finding::Finding;
pub use judge::judgement::Outcome;
pub use judge::network::{
    DirectionEstimate, NetworkEstimate, estimate, scenario_text, watched_scenario_text,
};
pub use judge::rules::{RULES, Rule};
pub use measure::good_time::GoodTime;
pub use measure::open_loop::{OpenLoop, open_loop};
pub use measure::seconds::FleetSecond;
pub use read::dump::capture::ends::LocalEnd;
pub use read::dump::{
    Connection, ConnectionChange, ConnectionEvent, ConnectionState, DataChannel, Dump, Stream,
    StreamDirection, StreamReport,
};
pub use read::format::Format;
pub use read::packets::PacketLog;
pub use read::packets::facts::StreamFacts;
pub use read::srtp::KeyLog;
pub use read::time_of_day::{clock, date_and_clock, iso_8601};
pub use tell::answer::{Answer, answer, findings};
pub use tell::app::{AppDump, app_record};
pub use tell::fleet::{FleetCall, FleetFinding, FleetStream, fleet_call};
pub use tell::live::{LiveCall, LiveFinding};
pub use tell::record::{measured, open_loop_records, record};
pub use tell::table::{ConnectionRow, StreamRow};

/// Reads a dump from a regular file, or from the standard input (`-`). Its content tells its
/// format; gzip, bzip2, xz, zstd and zip are unpacked.
///
/// # Errors
/// If the file cannot be opened, is a folder, pipe or device, has an unknown format, or holds no
/// stream. A dump whose connection failed needs no stream. What of the file was left out is in
/// [`Dump::warnings`].
pub fn read(path: &Path) -> Result<Dump, AnalyzeError> {
    read_with(path, Collector::default(), None)
}

/// Reads a dump that is in memory, such as a member of an archive. Errors name it by `path`.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(path: &Path, content: Vec<u8>) -> Result<Dump, AnalyzeError> {
    read_from(path, Box::new(Cursor::new(content)), None)
}

/// Reads a dump from elsewhere, such as a pipe, as [`read`] and [`read_capture`] do. Errors name it
/// by `path`.
///
/// # Errors
/// As theirs.
pub fn read_from(
    path: &Path,
    from: Box<dyn Read>,
    options: Option<&CaptureOptions>,
) -> Result<Dump, AnalyzeError> {
    read_opened(path, read::input::unpacked(path, from)?, Collector::default(), options)
}

/// What a capture does not say itself.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// Keys of its RTCP, if that is encrypted.
    pub keys: Option<KeyLog>,
    /// The end at which it was made. Otherwise the packets tell, as far as they can.
    pub local: Option<LocalEnd>,
}

/// Reads a capture with what it does not say itself.
///
/// # Errors
/// As [`read`], and if the keys open nothing, no packet of RTP comes from or goes to the local end,
/// or the file is no capture.
pub fn read_capture(path: &Path, options: &CaptureOptions) -> Result<Dump, AnalyzeError> {
    read_with(path, Collector::default(), Some(options))
}

/// Reads a dump whose times count from a moment in ms since 1970.
pub(crate) fn read_since(path: &Path, zero_ms: f64) -> Result<Dump, AnalyzeError> {
    read_with(path, Collector::since(zero_ms), None)
}

fn read_with(
    path: &Path,
    collector: Collector,
    options: Option<&CaptureOptions>,
) -> Result<Dump, AnalyzeError> {
    let opened = read::input::open(path)?;
    read_opened(path, opened, collector, options)
}

fn read_opened(
    path: &Path,
    (format, from): (Format, Box<dyn BufRead>),
    collector: Collector,
    options: Option<&CaptureOptions>,
) -> Result<Dump, AnalyzeError> {
    if options.is_some() && format != Format::Capture {
        return Err(AnalyzeError::NoCapture { path: path.into(), format });
    }
    let dump = match format {
        Format::Internals => read::dump::internals::read(from, collector),
        Format::Rtcstats => read::dump::rtcstats::read(from, collector),
        Format::Capture => {
            let options = options.cloned().unwrap_or_default();
            match read::dump::capture::read(from, &options) {
                Ok(dump) => Ok(dump),
                Err(NotRead::NoCall(what)) => {
                    return Err(AnalyzeError::NoCall { path: path.into(), what });
                }
                Err(NotRead::Damaged(what)) => Err(what),
            }
        }
        Format::EventLog => read::dump::event_log::read(from),
        Format::GetStats => read::dump::get_stats::read(from, collector),
        Format::Qlog => read::dump::qlog::read(from),
    };
    let dump = dump.map_err(|what| AnalyzeError::Damaged { path: path.into(), what })?;
    let has_stream = dump.connections.iter().any(|connection| !connection.streams.is_empty());
    let says_something =
        !dump.data_channels.is_empty() || measure::connectivity::has_failure(&dump);
    if !has_stream && !says_something {
        // The first problem of the file is a better message than that it has no streams.
        return Err(match dump.warnings.into_iter().next() {
            Some(why) => {
                let what = format!("no video or audio stream with two reports is left: {why}");
                AnalyzeError::Damaged { path: path.into(), what }
            }
            None => AnalyzeError::Empty { path: path.into(), format },
        });
    }
    Ok(dump)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
