//! The kinds of runs with real programs, and what each has alone.

use serde::{Deserialize, Serialize};

use super::captured::Capture;
use super::finding::Finding;
use super::page::{PageConnection, PageEvent, ReceivedAudio};
use super::quality::Quality;
use super::sound::Speech;

/// A kind of run. In the file, the key `kind` names it and the keys of the variant lie beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// Calls between programs of the lab's choice: `weir call`.
    Call(CallRun),
    /// An application under test: `weir call --app`.
    Application(ApplicationRun),
    /// Any command: `weir link`.
    Link(LinkRun),
    /// A call that others made: `weir analyze`.
    Dump(DumpRun),
}

impl Default for Kind {
    fn default() -> Self {
        Self::Call(CallRun::default())
    }
}

/// What only a run of `weir call` has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallRun {
    /// The browsers, or other programs that took part, with their versions.
    pub browser: String,
    /// The relay's program and version; `null` without one.
    pub relay: Option<String>,
    /// Number of attempts: runs that the machine disturbed are repeated.
    pub attempts: usize,
    /// What the cameras were asked for; absent in the first records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<AskedPicture>,
    /// The calls whose two ends were captured.
    pub captures: Vec<Capture>,
    /// With `--quality`: the pictures that each peer received.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quality: Vec<Quality>,
    /// With `--quality`: the speech that each peer heard.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speech: Vec<Speech>,
}

impl Default for CallRun {
    /// Of records without `attempts`, which were made before runs were repeated.
    fn default() -> Self {
        Self {
            browser: String::new(),
            relay: None,
            attempts: 1,
            picture: None,
            captures: Vec::new(),
            quality: Vec::new(),
            speech: Vec::new(),
        }
    }
}

/// What only a run of an application has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplicationRun {
    /// The browser and its version.
    pub browser: String,
    /// What limited the streams, and when. The largest effect on the call comes first.
    pub findings: Vec<Finding>,
    /// The RTCPeerConnections of its pages.
    pub connections: Vec<PageConnection>,
    /// What its pages called, and what happened to their connections, by time.
    pub page_events: Vec<PageEvent>,
    /// The audio that its participants received.
    pub audio: Vec<ReceivedAudio>,
    /// The pictures that each participant saw of each other one, by the tags in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quality: Vec<Quality>,
}

/// What only a run of a command has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkRun {
    /// The words of the command.
    pub command: Vec<String>,
    /// What ran at the far end; `null` if nothing did.
    pub peer: Option<String>,
    /// The command's exit code.
    pub exit_code: u8,
}

/// What only an analyzed dump has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DumpRun {
    /// The program that wrote the dump.
    pub browser: String,
    /// What happened to the call, in a few sentences.
    pub verdict: String,
    /// What limited the streams, and when. The largest effect on the call comes first.
    pub findings: Vec<Finding>,
    /// The first report, or packet, from which times count, in ms since 1970; `null` if unknown.
    pub began_ms: Option<f64>,
}

/// What the cameras were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedPicture {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// Frames a second.
    pub fps: u32,
    /// The codec that is offered first.
    pub codec: String,
    /// What the cameras show, unless it is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What the senders give up first, unless it is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degradation: Option<String>,
    /// Number of layers that each sender makes, unless it is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
}
