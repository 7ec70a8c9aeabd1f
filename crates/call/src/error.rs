//! Why a call could not be made, each with what to do about it.

use std::io;

use crate::message::Peer;

/// Why there is no result. Each is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No browser on this machine.
    #[error("no browser found: apt-get install chromium, or name one in WEIR_BROWSER")]
    NoBrowser,
    /// What `WEIR_BROWSER` names is no program.
    #[error("WEIR_BROWSER names '{0}', which is not there: name a Chromium, or unset it")]
    NotThere(String),
    /// The network could not be emulated.
    #[error(transparent)]
    Emulator(#[from] weir_emu::Error),
    /// The system refused something else.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The set-up took too long.
    #[error("{missing} after {seconds} s{}", said(.browser))]
    TimedOut {
        /// What did not happen.
        missing: String,
        /// How long the lab waited.
        seconds: u64,
        /// The last words of the browser, if it had any.
        browser: String,
    },
    /// A peer gave up, or broke the protocol.
    #[error("the call failed: {0}")]
    Peer(String),
    /// A browser ended, or its page did.
    #[error("{peer} left before the end of the call: its browser crashed or was closed{}",
        said(.browser))]
    Left {
        /// Who.
        peer: Peer,
        /// The last words of the browser, if it had any.
        browser: String,
    },
    /// The media would not meet the emulated link.
    #[error("{peer} uses {path}, which is not the emulated path: the result would be worthless")]
    OffPath {
        /// Who.
        peer: Peer,
        /// The candidate pair.
        path: String,
    },
    /// The user interrupted the call.
    #[error("interrupted")]
    Cancelled,
}

impl CallError {
    /// For `map_err`: a failed system call, with what it was for.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { action, source }
    }
}

fn said(browser: &str) -> String {
    if browser.is_empty() { String::new() } else { format!(" (it said: {browser})") }
}
