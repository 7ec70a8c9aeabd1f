//! Messages between the call page and the lab: JSON texts over one WebSocket per peer.
//!
//! The page is not trusted: any browser that knows the address can be a peer. All input is parsed
//! into these types, which reject unknown members. Texts shown to a person go through
//! [`printable`].

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir::units::Bitrate;
use weir_record::calls::stats::StatsReport;
use weir_scenario::call::{Content, Opus, Picture, degradation_name};
use weir_scenario::files;

use crate::measure::quality::sighting::{FrameSighting, Place};
use crate::peers::ims::{PageIms, SipMessage};

/// Interval of a page's `getStats` reports.
pub const STATS_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum length of a peer's text that the lab prints.
const PRINTABLE_CHARS: usize = 200;
/// Bytes at the end of a program's log among which its last words are looked for.
const LOG_END: u64 = 256 * 1024;
/// Divisors of the picture's sides for the layers of simulcast.
const SIMULCAST: [u32; 3] = [4, 2, 1];

/// One end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// The peer on host A's side.
    A,
    /// The peer on host B's side.
    B,
}

impl Peer {
    /// Both peers, in order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// The peer at the other end.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Index in an array with one element per peer.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Its name in addresses and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "peer {}", self.name())
    }
}

/// Settings that the server sends to the two pages of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSettings {
    /// The cameras' picture, and the codec.
    pub picture: Picture,
    /// Maximum encoder bitrate of peer a and peer b; `None` for a peer that sends no video.
    pub video: [Option<Bitrate>; 2],
    /// Whether peer a and peer b send audio.
    pub audio: [bool; 2],
    /// How they encode it.
    pub opus: Opus,
    /// The peer that offers. A pipeline offers to the browser that receives its video.
    pub offerer: Peer,
    /// The servers of ICE.
    pub relay: Option<RelayAccess>,
    /// Whether all media goes through the relay.
    pub relay_only: bool,
    /// Whether the offerer may restart ICE, so that both peers describe themselves again.
    pub restarts: bool,
    /// Whether it does so when the browser finds that the path is lost.
    pub restarts_itself: bool,
    /// The addresses sent to peer a and peer b instead of the other peer's addresses.
    pub bridge: Option<[SocketAddr; 2]>,
    /// The IMS of peer a and peer b, if the signalling goes through one.
    pub ims: Option<Box<[PageIms; 2]>>,
    /// Whether the pages read the tags of the frames that pass them.
    pub quality: bool,
    /// The camera of pages whose browser plays no file.
    pub drawn: Option<DrawnCamera>,
    /// Interval of `getStats` reports.
    pub stats_interval: Duration,
}

/// A camera that a page draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnCamera {
    /// Whether peer a and peer b draw theirs.
    pub by: [bool; 2],
    /// The pictures as JPEG, one behind the other.
    pub jpegs: Arc<[u8]>,
}

/// How a page reaches the servers of ICE. The members are those of `RTCIceServer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelayAccess {
    /// Such as `turn:10.45.0.3:3478?transport=udp`.
    pub urls: Vec<String>,
    /// Name of the user.
    pub username: String,
    /// The password.
    pub credential: String,
}

/// Time of each step of the set-up, in ms since the page was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SetupTimes {
    /// The camera delivers pictures. `None` at a peer that only receives.
    pub camera: Option<f64>,
    /// The page has received the configuration.
    pub joined: f64,
    /// The call starts: both peers are ready, and its start time has come.
    pub start: f64,
    /// The page has both session descriptions.
    pub described: f64,
    /// ICE has found a path. A browser may report this only together with `connected`.
    pub ice: Option<f64>,
    /// DTLS is done and media can flow.
    pub connected: f64,
}

/// An ICE candidate, with the members that the browser provides.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Candidate {
    candidate: String,
    sdp_mid: Option<String>,
    #[serde(rename = "sdpMLineIndex")]
    sdp_m_line_index: Option<u16>,
    username_fragment: Option<String>,
}

impl Candidate {
    /// The same candidate with another address.
    pub(crate) fn at(self, address: SocketAddr) -> Self {
        Self { candidate: candidate_at(address), ..self }
    }
}

/// Messages from a peer to the lab.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum PeerMessage {
    /// The camera is open. The call can start.
    Ready,
    Offer {
        sdp: String,
    },
    Answer {
        sdp: String,
    },
    Candidate {
        candidate: Candidate,
    },
    Connected {
        setup: SetupTimes,
    },
    /// The first frame of the other peer is displayed.
    Playing {
        #[serde(rename = "firstFrame")]
        first_frame: f64,
    },
    Stats {
        report: Box<StatsReport>,
    },
    /// Frames that passed a place of the page, in order.
    Frames {
        place: Place,
        frames: Vec<FrameSighting>,
    },
    /// A message of SIP was sent or received.
    Sip {
        message: Box<SipMessage>,
    },
    Failed {
        cause: String,
    },
}

/// A change of a controller's target bitrate, as the element `weircc` tells it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetChange {
    /// When, in ns of the clock `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The target before, in bit/s.
    pub from_bps: u64,
    /// The new target in bit/s.
    pub target_bps: u64,
    /// The reason, in the words of Weir's records.
    pub reason: String,
    /// The controller's state.
    pub state: String,
    /// The controller's signals by name. The names contain the unit.
    pub signals: BTreeMap<String, f64>,
}

/// Messages from the lab to a peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum LabMessage {
    Config(Box<PageConfig>),
    /// The call starts now.
    Start,
    /// The offerer restarts ICE.
    Restart,
    Offer {
        sdp: String,
    },
    Answer {
        sdp: String,
    },
    Candidate {
        candidate: Candidate,
    },
    Stop,
    Refused {
        cause: String,
    },
}

/// Configuration of a page, the first message to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageConfig {
    offers: bool,
    video: Media,
    audio: Media,
    width: u32,
    height: u32,
    frame_rate: u32,
    codec: &'static str,
    /// `null` for the browser's own.
    opus: Option<OpusOptions>,
    /// `degradationPreference` of the sender.
    degradation: &'static str,
    /// `contentHint` of the camera's track; empty for a person's picture.
    content_hint: &'static str,
    /// Divisors of the picture's sides for each layer, the smallest picture first; empty without
    /// simulcast.
    simulcast: &'static [u32],
    /// In bit/s; 0 if no video is sent.
    max_bitrate: u64,
    relay: Option<RelayAccess>,
    /// Whether all media goes through the relay.
    relay_only: bool,
    /// Whether ICE may restart, so that a lost path does not end the call.
    restarts: bool,
    /// Whether the offerer restarts it when the path is lost.
    restarts_itself: bool,
    ims: Option<PageIms>,
    /// Whether it tells which frames it sees, and when.
    quality: bool,
    /// Whether it draws its camera's pictures, which the lab has.
    draws: bool,
    /// Interval of the reports in ms.
    stats_interval: u64,
}

/// Options of Opus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct OpusOptions {
    fec: bool,
    red: bool,
    dtx: bool,
    /// In ms.
    frame: u32,
    /// In bit/s; `null` for the browser's own.
    bitrate: Option<u64>,
}

impl From<Opus> for OpusOptions {
    fn from(Opus { fec, red, dtx, frame_ms, bitrate }: Opus) -> Self {
        Self { fec, red, dtx, frame: frame_ms, bitrate: bitrate.map(Bitrate::as_bps) }
    }
}

/// Directions of one kind of media, as seen from a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Media {
    sends: bool,
    receives: bool,
}

impl PageConfig {
    pub(crate) fn of(call: &CallSettings, peer: Peer) -> Self {
        let (near, far) = (peer.index(), peer.other().index());
        let Picture { width, height, fps, codec, content, degradation, layers } = call.picture;
        Self {
            offers: peer == call.offerer,
            video: Media { sends: call.video[near].is_some(), receives: call.video[far].is_some() },
            audio: Media { sends: call.audio[near], receives: call.audio[far] },
            width,
            height,
            frame_rate: fps,
            codec: codec.name(),
            opus: if call.opus != Opus::default() { Some(call.opus.into()) } else { None },
            degradation: degradation_name(degradation),
            content_hint: if matches!(content, Content::Screen | Content::Slides) {
                "detail"
            } else {
                ""
            },
            simulcast: if layers > 1 { &SIMULCAST } else { &[] },
            max_bitrate: call.video[near].map_or(0, Bitrate::as_bps),
            relay: call.relay.clone(),
            relay_only: call.relay_only,
            restarts: call.restarts,
            restarts_itself: call.restarts_itself,
            ims: call.ims.as_ref().map(|pages| pages[near].clone()),
            quality: call.quality,
            draws: call.drawn.as_ref().is_some_and(|drawn| drawn.by[near]),
            stats_interval: u64::try_from(call.stats_interval.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Shortens a peer's text to one line that is safe to print on a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(PRINTABLE_CHARS).filter(|c| !c.is_control()).collect()
}

/// The end of a program's log, which may be of any length; empty if it cannot be read.
pub(crate) fn end_of(log: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    // What was read before an error is still the log's.
    let _ = read_end(log, &mut text);
    text
}

fn read_end(log: &Path, text: &mut Vec<u8>) -> std::io::Result<()> {
    let mut file = files::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_END)))?;
    file.take(LOG_END).read_to_end(text).map(drop)
}

/// The line in which a program says why it ended, or else its last one. Node and Go print more
/// after their error.
pub(crate) fn complaint(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    printable(lines.clone().rfind(is_error).or(lines.next_back()).unwrap_or_default())
}

fn is_error(line: &&str) -> bool {
    line.contains("Error") || line.contains("error:") || line.starts_with("panic:")
}

/// A `candidate:` line for this address, in a form that all browsers accept [RFC8839 §5.1].
fn candidate_at(address: SocketAddr) -> String {
    let IpAddr::V4(ip) = address.ip() else { return String::new() };
    format!("candidate:1 1 udp 2130706431 {ip} {} typ host", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_complaint_of_a_program_is_its_error_or_else_its_last_line() {
        for (output, said) in [
            ("Traceback\nModuleNotFoundError: gi\n\n", "ModuleNotFoundError: gi"),
            ("cannot open the camera\n", "cannot open the camera"),
            (
                "node:256\n\nError [ERR_MODULE_NOT_FOUND]: no package 'x'\n    at y\n  \
                 code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n",
                "Error [ERR_MODULE_NOT_FOUND]: no package 'x'",
            ),
            ("panic: no camera\n\ngoroutine 1 [running]:\nexit status 2\n", "panic: no camera"),
            ("", ""),
        ] {
            assert_eq!(complaint(output.as_bytes()), said);
        }
    }

    #[test]
    fn of_a_long_log_only_the_end_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "short\n").unwrap();
        assert_eq!(end_of(&log), b"short\n");
        std::fs::File::create(&log).unwrap().set_len(1 << 40).unwrap();
        let mut file = std::fs::File::options().append(true).open(&log).unwrap();
        std::io::Write::write_all(&mut file, b"\nno camera\n").unwrap();
        let end = end_of(&log);
        assert!(end.len() as u64 == LOG_END && complaint(&end) == "no camera");
        assert_eq!(end_of(&folder.path().join("none")), b"");
    }

    fn parse(text: &str) -> Result<PeerMessage, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_message_of_the_page_is_read() {
        let sdp = "v=0".to_owned();
        assert_eq!(parse(r#"{"type":"offer","sdp":"v=0"}"#).unwrap(), PeerMessage::Offer { sdp });
        assert_eq!(parse(r#"{"type":"ready"}"#).unwrap(), PeerMessage::Ready);
    }

    #[test]
    fn unknown_kinds_and_unknown_members_are_errors() {
        for text in [
            r#"{"type":"reboot"}"#,
            r#"{"sdp":"v=0"}"#,
            r#"{"type":"offer","sdp":"v=0","more":1}"#,
            r#"{"type":"offer","sdp":7}"#,
            r#"{"type":"stats","report":{"outbound":{"bytesSent":-1}}}"#,
            "[]",
            "",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_candidate_leaves_with_the_member_names_that_browsers_use() {
        let text =
            r#"{"candidate":"candidate:1","sdpMid":"0","sdpMLineIndex":0,"usernameFragment":"u"}"#;
        let candidate: Candidate = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&candidate).unwrap(), text);
    }

    #[test]
    fn a_hostile_text_cannot_drive_the_terminal() {
        assert_eq!(printable("\u{1b}[2Jgone\r\n"), "[2Jgone");
        assert_eq!(printable(&"x".repeat(9999)).len(), PRINTABLE_CHARS);
    }

    #[test]
    fn a_candidate_is_the_address_in_the_words_of_ice() {
        let address = SocketAddr::from(([192, 0, 2, 7], 4000));
        let expected = "candidate:1 1 udp 2130706431 192.0.2.7 4000 typ host";
        assert_eq!(candidate_at(address), expected);
    }
}
