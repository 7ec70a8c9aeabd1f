//! Errors of a run of calls. Each message says what to do about it.

use std::io;
use std::net::Ipv4Addr;

use weir_scenario::call::BrowserKind;

use crate::peers::stack::StackError;

/// Why a run has no result. Each message is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No browser of this kind on this machine.
    #[error("no {name} found: apt-get install {package}, or name one in {variable}",
        name = .0.name(), package = package(*.0), variable = variable(*.0))]
    NoBrowser(BrowserKind),
    /// The environment variable does not name a program.
    #[error("{variable} names '{1}', which is not there: name a {name}, or unset it",
        variable = variable(*.0), name = .0.name())]
    NotThere(BrowserKind, String),
    /// GStreamer or its Python binding is missing or incomplete.
    #[error(
        "pipelines need GStreamer ({0}): apt-get install python3-gst-1.0 \
         gir1.2-gst-plugins-bad-1.0 gstreamer1.0-plugins-good gstreamer1.0-plugins-bad \
         gstreamer1.0-nice"
    )]
    NoGstreamer(String),
    /// The plugin `weir` of GStreamer is not installed.
    #[error(
        "GStreamer has no plugin 'weir': run make install-gst, or name its folder in \
         GST_PLUGIN_PATH"
    )]
    NoPlugin,
    /// A stack of the arena is not installed.
    #[error(transparent)]
    Stack(StackError),
    /// No forwarding server on this machine.
    #[error("no forwarding server found: apt-get install janus")]
    NoJanus,
    /// No relay on this machine.
    #[error("no relay found: apt-get install coturn")]
    NoRelay,
    /// No program that connects an emulated network to others.
    #[error(
        "a server outside the emulated network needs slirp4netns: apt-get install slirp4netns \
         iproute2"
    )]
    NoBorder,
    /// The application's server has no address that a participant could reach.
    #[error(
        "the application's server '{0}' has no IPv4 address besides a loopback: name one that \
         `ip address` shows, or start the server with --serve-app"
    )]
    NoServer(String),
    /// The address given for people is not an address of this machine.
    #[error("this machine has no address {0}: name one that `ip address` shows")]
    NoAddress(Ipv4Addr),
    /// The address given for people is a network's broadcast address.
    #[error(
        "{0} is the broadcast address of a network, which no connection can have: name one \
         address that `ip address` shows, or write --serve=all"
    )]
    Broadcast(Ipv4Addr),
    /// The scenario does not fit the run.
    #[error("{0}")]
    Plan(String),
    /// The network could not be emulated.
    #[error(transparent)]
    Emulator(#[from] weir_emu::Error),
    /// Another system call failed.
    #[error("cannot {action}: {error}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The user interrupted the call.
    #[error("interrupted")]
    Cancelled,
}

impl CallError {
    /// Wraps the error of a failed system call with its purpose, for `map_err`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { action, error }
    }
}

/// The Debian package of a browser.
const fn package(kind: BrowserKind) -> &'static str {
    match kind {
        BrowserKind::Chromium => "chromium",
        BrowserKind::Firefox => "firefox-esr",
    }
}

/// The environment variable that names a browser.
pub(crate) const fn variable(kind: BrowserKind) -> &'static str {
    match kind {
        BrowserKind::Chromium => "WEIR_BROWSER",
        BrowserKind::Firefox => "WEIR_FIREFOX",
    }
}
