//! Dumps of calls that were made elsewhere: what limited the call and when, and the network that it
//! met.
//!
//! ```text
//! file -> format by its first bytes -> reports of each stream -> samples -> findings
//!                                                            +-> the network, as a scenario
//!                                                            +-> a record, for the report
//! ```
#![forbid(unsafe_code)]

mod answer;
mod app;
mod browser;
mod call;
mod connectivity;
mod delay_spikes;
mod dump;
mod error;
mod finding;
mod fleet;
mod format;
mod full_again;
mod good_time;
mod headroom;
mod input;
mod live;
mod merge;
mod network;
mod open_loop;
mod packets;
mod page;
mod private;
mod quality;
mod record;
mod rules;
mod samples;
mod seconds;
mod srtp;
mod verdict;

use std::io::{BufRead, Cursor};
use std::net::IpAddr;
use std::path::Path;

use dump::Collector;

pub use answer::{Answer, answer, findings};
pub use app::{AppDump, app_record};
pub use dump::{
    Connection, ConnectionChange, ConnectionEvent, ConnectionState, Dump, Stream, StreamDirection,
    StreamReport,
};
pub use error::AnalyzeError;
pub use finding::Finding;
pub use fleet::{Cause, FleetCall, FleetFinding, FleetStream, fleet_call};
pub use format::Format;
pub use good_time::GoodTime;
pub use live::{LiveCall, LiveFinding};
pub use network::{NetworkEstimate, WayEstimate, estimate, scenario_text, watched_scenario_text};
pub use open_loop::{OpenLoop, open_loop};
pub use packets::PacketLog;
pub use record::{open_loop_records, record};
pub use rules::{Part, RULES, Rule};
pub use seconds::FleetSecond;
pub use srtp::KeyLog;

/// Reads a dump. Its content tells its format; gzip is unpacked.
///
/// # Errors
/// If the file cannot be opened, has an unknown format, or holds no stream. A dump whose connection
/// failed needs no stream. What of the file was left out is in [`Dump::warnings`].
pub fn read(path: &Path) -> Result<Dump, AnalyzeError> {
    read_with(path, Collector::default(), None)
}

/// Reads a dump that is in memory, such as a member of an archive. Errors name it by `path`.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(path: &Path, content: Vec<u8>) -> Result<Dump, AnalyzeError> {
    let opened = input::unpacked(path, Box::new(Cursor::new(content)))?;
    read_opened(path, opened, Collector::default(), None)
}

/// What a capture does not say itself.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// Keys of its RTCP, if that is encrypted.
    pub keys: Option<KeyLog>,
    /// Address of the end at which it was made. Otherwise, where the file does not say which
    /// packets were sent, this is the source of the first packet of RTP.
    pub local: Option<IpAddr>,
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
    let opened = input::open(path)?;
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
        Format::Internals => dump::internals::read(from, collector),
        Format::Rtcstats => dump::rtcstats::read(from, collector),
        Format::Capture => dump::capture::read(from, options.unwrap_or(&CaptureOptions::default())),
        Format::EventLog => dump::event_log::read(from),
    };
    let dump = dump.map_err(|what| AnalyzeError::Damaged { path: path.into(), what })?;
    let has_stream = dump.connections.iter().any(|connection| !connection.streams.is_empty());
    if !has_stream && !connectivity::has_failure(&dump) {
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
