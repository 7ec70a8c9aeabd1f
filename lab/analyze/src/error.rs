//! Why a dump could not be read.

use std::io;
use std::path::{Path, PathBuf};

use crate::read::format::Format;

/// Why a dump could not be read. Each message is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// The file system refused, or the gzip stream is broken.
    #[error("{}: {error}{}", path.display(), hint(error))]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// Not one of the formats.
    #[error(
        "{} is none of the known formats: webrtc-internals dump, rtcstats dump, getStats JSON, \
         RTC event log, pcap, pcapng, snoop, rtpdump, qlog (each may be packed by gzip, bzip2, xz, \
         zstd or zip)",
        .0.display()
    )]
    Unknown(PathBuf),
    /// Nothing is in it.
    #[error("{} is empty", .0.display())]
    Blank(PathBuf),
    /// What people attach that is no dump.
    #[error("{}: {what}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        what: &'static str,
    },
    /// The content is not what its format demands.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A capture that is sound, and has no call.
    #[error("{}: {what}", path.display())]
    NoCall {
        /// The file.
        path: PathBuf,
        /// What it has instead.
        what: String,
    },
    /// Keys or a local end were given for a file without packets.
    #[error("{}: keys and a local end are for captures, and this is none: \
        {format}", path.display())]
    NoCapture {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: Format,
    },
    /// A sound file without a single stream.
    #[error(
        "{}: this {format} has no video or audio stream with two reports{}",
        path.display(),
        after_hanging_up(*format)
    )]
    Empty {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: Format,
    },
}

impl AnalyzeError {
    /// Makes errors of this file from those of the system.
    pub(crate) fn of_file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { path: path.into(), error }
    }
}

/// What to do about an error of the system.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": check the name, or write - for the standard input",
        _ => "",
    }
}

/// What to do where a dump of the browser's page has nothing.
fn after_hanging_up(format: Format) -> &'static str {
    match format {
        Format::Internals => {
            ": Chromium leaves connections out that were closed. Press the button before the call \
             ends, or the other one (rtcstats dump), which keeps them"
        }
        _ => "",
    }
}
