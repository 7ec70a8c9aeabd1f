//! Why a dump could not be read.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;

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
        "{} is none of the known formats: webrtc-internals dump, rtcstats dump, RTC event log, \
         pcap, pcapng (each may be gzip)",
        .0.display()
    )]
    Unknown(PathBuf),
    /// The content is not what its format demands.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
    #[error("{}: this {format} has no video or audio stream with two reports", path.display())]
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
