//! `weir call --app`, and `weir check` of an application.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

/// Time limit for the participants of an application to join, in s.
const JOIN_WITHIN: NonZeroU32 = NonZeroU32::new(60).unwrap();

/// The application under test of `weir call` and `weir check`.
#[derive(ClapArgs, Clone)]
pub struct Application {
    /// Test a web application: open this page in the browser of each participant. `{server}` in it
    /// stands for the address of the server that --serve-app starts. Without --serve-app the server
    /// runs elsewhere, and is reached through the emulated network.
    #[arg(long, value_name = "URL", conflicts_with = "controller")]
    pub app: Option<String>,
    /// A JavaScript module whose default function makes a participant join: it gets a page of
    /// Playwright and the participant's number.
    #[arg(long, value_name = "FILE", requires = "app")]
    pub join: Option<PathBuf>,
    /// Number of participants of the application (default: 2). Each is behind the scenario's
    /// network, or behind that of its table [participant.NAME]; the server is at the far end.
    #[arg(long, value_name = "N", requires = "app")]
    pub participants: Option<usize>,
    /// Browsers of the participants, separated by commas: chromium or firefox. With fewer browsers
    /// than participants, they begin again with the first one.
    #[arg(long, value_name = "NAMES", requires = "app", value_delimiter = ',')]
    pub browsers: Vec<AppBrowser>,
    /// Seconds from the start of the browsers until a participant that has not joined has failed.
    #[arg(long, value_name = "SECONDS", requires = "app", default_value_t = JOIN_WITHIN)]
    pub join_within: NonZeroU32,
    /// The shell command that starts the application's server, on a host of its own.
    #[arg(long, value_name = "COMMAND", requires = "app")]
    pub serve_app: Option<String>,
}

/// The browser of a participant of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AppBrowser {
    /// Chromium, or a browser based on it.
    Chromium,
    /// Firefox.
    Firefox,
}
