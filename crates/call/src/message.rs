//! Messages between the call page and the lab: JSON texts over one WebSocket a peer.
//!
//! The page is not trusted: any browser that knows the address can be a peer. Whatever arrives is
//! parsed into these types, which have no room for unknown members, and what is shown to a person
//! goes through [`printable`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir::units::Bitrate;
use weir_lab::scenario::call::Picture;

use crate::stats::StatsReport;

/// Time between two `getStats` reports of a page.
pub const STATS_INTERVAL: Duration = Duration::from_millis(500);
/// The longest text of a peer that is repeated in a message of the lab.
const PRINTABLE_CHARS: usize = 200;

/// One end of a call. Peer a offers, peer b answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// The peer that offers.
    A,
    /// The peer that answers.
    B,
}

impl Peer {
    /// Both peers, in order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// The peer at the far end.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Position in an array that holds one element a peer.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn name(self) -> &'static str {
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

/// What the server tells the two pages of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSettings {
    /// What the cameras show, and the codec.
    pub picture: Picture,
    /// The limit of the encoder of peer a, of peer b; `None` for one that sends no video.
    pub video: [Option<Bitrate>; 2],
    /// Whether peer a, peer b sends audio.
    pub audio: [bool; 2],
    /// The relay that all media takes.
    pub relay: Option<RelayAccess>,
    /// What peer a, peer b is told in place of the other's addresses.
    pub bridge: Option<[SocketAddr; 2]>,
    /// Time between two `getStats` reports.
    pub stats_interval: Duration,
}

/// How a page uses a relay; member for member what `RTCIceServer` wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelayAccess {
    /// `turn:10.45.0.3:3478?transport=udp`.
    pub urls: String,
    /// Name of the user.
    pub username: String,
    /// The password.
    pub credential: String,
}

/// Milliseconds from the opening of the page to each step of the set-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SetupTimes {
    /// The camera delivers; `None` at a peer that only receives.
    pub camera: Option<f64>,
    /// The lab has sent the configuration.
    pub joined: f64,
    /// The call begins: both peers are ready, and its time has come.
    pub start: f64,
    /// Both session descriptions are there.
    pub described: f64,
    /// ICE has found a path; a browser may report it only with `connected`.
    pub ice: Option<f64>,
    /// DTLS is done and media can flow.
    pub connected: f64,
}

/// An ICE candidate, member for member as the browser gives it.
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
    /// The same with another address in it.
    pub(crate) fn at(self, address: SocketAddr) -> Self {
        Self { candidate: candidate_at(address), ..self }
    }
}

/// From a peer to the lab.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum PeerMessage {
    /// The camera is open; the call can start.
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
    /// The first frame of the other peer is on the screen.
    Playing {
        #[serde(rename = "firstFrame")]
        first_frame: f64,
    },
    Stats {
        report: Box<StatsReport>,
    },
    Failed {
        cause: String,
    },
}

/// From the lab to a peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum LabMessage {
    Config(Box<PageConfig>),
    /// The call begins now.
    Start,
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

/// What a page is told first.
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
    /// In bit/s; 0 where no video is sent.
    max_bitrate: u64,
    relay: Option<RelayAccess>,
    /// Time between two reports in ms.
    stats_interval: u64,
}

/// Which ways a kind of media goes, seen from a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Media {
    sends: bool,
    receives: bool,
}

impl PageConfig {
    pub(crate) fn of(call: &CallSettings, peer: Peer) -> Self {
        let (near, far) = (peer.index(), peer.other().index());
        let Picture { width, height, fps, codec } = call.picture;
        Self {
            offers: peer == Peer::A,
            video: Media { sends: call.video[near].is_some(), receives: call.video[far].is_some() },
            audio: Media { sends: call.audio[near], receives: call.audio[far] },
            width,
            height,
            frame_rate: fps,
            codec: codec.name(),
            max_bitrate: call.video[near].map_or(0, Bitrate::as_bps),
            relay: call.relay.clone(),
            stats_interval: u64::try_from(call.stats_interval.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// A text of a peer, cut to one short line that is safe on a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(PRINTABLE_CHARS).filter(|c| !c.is_control()).collect()
}

/// `candidate:` of an address, in the form that every browser reads [RFC8839 §5.1].
fn candidate_at(address: SocketAddr) -> String {
    let IpAddr::V4(ip) = address.ip() else { return String::new() };
    format!("candidate:1 1 udp 2130706431 {ip} {} typ host", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

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
