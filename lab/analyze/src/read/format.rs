//! Formats of dumps, and how their first bytes tell them.

use std::fmt;

/// First line of an rtcstats dump.
pub(crate) const RTCSTATS: &[u8] = b"RTCStatsDump\n";
/// The member of the heading that every rtcstats dump with a heading has.
const VERSION: &[u8] = b"\"fileFormat\"";
/// Begins each record of a qlog [RFC7464 §2.2].
pub(crate) const QLOG_SEPARATOR: u8 = 0x1E;
/// A member of the head of every qlog: `qlog_version`, or `file_schema` with it in its name.
const QLOG: &[u8] = b"qlog";
/// First bytes of an RTC event log: the key of its begin, which is the member 16 with a length.
const BEGIN_LOG: [u8; 2] = [0x82, 0x01];

/// A format of dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The dump of `chrome://webrtc-internals`: one JSON object with a series for each member.
    Internals,
    /// The rtcstats dump of the same page, and of the libraries of that name: one JSON array a
    /// line.
    Rtcstats,
    /// Packets, as pcap or pcapng, or a recording of a stream of RTP.
    Capture,
    /// The RTC event log of libwebrtc.
    EventLog,
    /// What `getStats` returned, as JSON.
    GetStats,
    /// The log of a QUIC stack, as JSON records.
    Qlog,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Internals => "webrtc-internals dump",
            Self::Rtcstats => "rtcstats dump",
            Self::Capture => "packet capture",
            Self::EventLog => "RTC event log",
            Self::GetStats => "getStats JSON",
            Self::Qlog => "qlog",
        })
    }
}

/// The format that begins with these bytes.
pub(crate) fn told_by(first: &[u8]) -> Option<Format> {
    if first.starts_with(RTCSTATS.trim_ascii_end()) {
        return Some(Format::Rtcstats);
    }
    if weir_capture::file::is_known(first) {
        return Some(Format::Capture);
    }
    if first.starts_with(&BEGIN_LOG) {
        return Some(Format::EventLog);
    }
    if first.first() == Some(&QLOG_SEPARATOR) && holds(first, QLOG) {
        return Some(Format::Qlog);
    }
    // What libraries send to a server: events, or a heading before them.
    if first.starts_with(b"[\"")
        || first.starts_with(b"[1,")
        || first.starts_with(b"{") && holds(first, VERSION)
    {
        return Some(Format::Rtcstats);
    }
    match first.first() {
        Some(b'{' | b'[' | b'"') if is_get_stats(first) => Some(Format::GetStats),
        Some(b'{') => Some(Format::Internals),
        _ => match json_in(first) {
            Some(at) if is_get_stats(&first[at..]) => Some(Format::GetStats),
            _ => None,
        },
    }
}

/// Where JSON with objects begins in a line of a log, behind its time and other words.
pub(crate) fn json_in(line: &[u8]) -> Option<usize> {
    const BEGINS: [&[u8]; 4] = [b"{\"", b"[{\"", b"[[\"", b"[[{"];
    for (at, byte) in line.iter().enumerate() {
        if *byte == b'\n' {
            return None;
        }
        for begin in BEGINS {
            if line[at..].starts_with(begin) {
                return Some(at);
            }
        }
    }
    None
}

/// Types of objects in reports [WEBRTC-STATS §6], and those of older drafts that have streams.
const TYPES: [&str; 15] = [
    "inbound-rtp",
    "outbound-rtp",
    "remote-inbound-rtp",
    "remote-outbound-rtp",
    "transport",
    "candidate-pair",
    "local-candidate",
    "remote-candidate",
    "data-channel",
    "peer-connection",
    "certificate",
    "media-source",
    "media-playout",
    "codec",
    "track",
];

/// Whether this is the type of an object of a report.
pub(crate) fn is_type_of_statistics(name: &str) -> bool {
    TYPES.contains(&name)
}

/// Whether JSON begins with objects of reports, and not with a page's series of them.
fn is_get_stats(first: &[u8]) -> bool {
    let text = String::from_utf8_lossy(first);
    if ["\"PeerConnections\"", "\"getUserMedia\"", "\"UserAgent\""]
        .iter()
        .any(|it| text.contains(it))
    {
        return false;
    }
    for name in TYPES {
        // Within a text, quotes are escaped. Names of one word are in other texts, too.
        let is_quoted = name.contains('-') && text.contains(&format!("\\\"{name}\\\""));
        if is_quoted || text.contains(&format!("\"{name}\"")) {
            return true;
        }
    }
    false
}

/// What people attach that is no dump, and what to do about it.
pub(crate) fn other(first: &[u8]) -> Option<&'static str> {
    if is_old_event_log(first) {
        return Some(
            "this is an RTC event log of the first format, which browsers wrote until 2019: have a \
             newer browser write it, or save a dump of chrome://webrtc-internals",
        );
    }
    if first.starts_with(b"MJR0") || first.starts_with(b"MEETECHO") {
        return Some(
            "this is a recording of Janus of an older format, which has no times: version 0.11 of \
             Janus and later ones write them",
        );
    }
    if first.get(257..262) == Some(b"ustar") {
        return Some("this is a tar archive: unpack it, and name the files in it");
    }
    if first.starts_with(b"7z\xBC\xAF\x27\x1C") || first.starts_with(b"Rar!") {
        return Some("this is an archive of 7-Zip or RAR, which is not read here: unpack it first");
    }
    let text = String::from_utf8_lossy(first);
    let text = text.trim_start();
    if is_hex_dump(text) {
        return Some(
            "these are packets as hexadecimal text: text2pcap (of Wireshark) makes a capture of \
             them",
        );
    }
    let is_about_webrtc = text.contains("about:webrtc") || text.contains("RTCPeerConnection (id=");
    if is_about_webrtc {
        return Some(
            "this is Firefox's page about:webrtc, which has the last values only: have the page \
             of the call send getStats once a second (weir collect), or capture its packets",
        );
    }
    if text.starts_with('<') {
        return Some(
            "this is a page of HTML: save the dump itself, such as with the buttons of \
             chrome://webrtc-internals",
        );
    }
    if text.starts_with('{') && holds(first, b"\"qlog_version\"") {
        return Some(
            "this is a qlog in one piece of JSON: have the stack write JSON records (JSON-SEQ, \
             .sqlog), as quinn and noq do",
        );
    }
    let words: String = text.chars().take(400).filter(|it| !it.is_whitespace()).collect();
    if words.starts_with("{\"log\":{") {
        return Some(
            "this is a HAR, a browser's log of HTTP, which has no media: save a dump of \
             chrome://webrtc-internals",
        );
    }
    if words.starts_with("v=0o=") || words.starts_with("v=0\\r\\no=") {
        return Some(
            "this is a session description (SDP), which has no numbers: save a dump of \
             chrome://webrtc-internals",
        );
    }
    // `[1201/170812.345:INFO:call.cc(12)]`: in JSON, no colon stands there.
    let head = text.split([']', '"', '{']).next().unwrap_or_default();
    if head.starts_with('[') && head.contains(':') {
        return Some(
            "this is the log of a program, which has no statistics: save a dump of \
             chrome://webrtc-internals",
        );
    }
    text.starts_with('[').then_some(
        "this is a JSON list without reports of getStats: each report needs objects with a type, \
         such as inbound-rtp",
    )
}

/// Whether the first message is an event of the first format: a time and a type.
pub(crate) fn is_old_event_log(first: &[u8]) -> bool {
    const EVENT: u8 = 0x0A;
    const TIME: u8 = 0x08;
    const TYPE: u8 = 0x10;
    let [EVENT, _, TIME, rest @ ..] = first else { return false };
    let time = rest.iter().take(9).take_while(|byte| **byte >= 0x80).count() + 1;
    rest.get(time) == Some(&TYPE)
}

/// Whether lines begin with offsets into a packet, as `text2pcap` reads them. Before them a
/// direction and a time may stand.
fn is_hex_dump(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(at) = words.iter().position(|word| matches!(*word, "0000" | "000000" | "00000000"))
    else {
        return false;
    };
    at <= 3 && words.len() > at + 4 && words[at + 1..at + 5].iter().all(|word| is_byte(word))
}

/// Whether a word is a byte in hexadecimal.
fn is_byte(word: &str) -> bool {
    word.len() == 2 && u8::from_str_radix(word, 16).is_ok()
}

/// Whether the first line has these bytes.
fn holds(first: &[u8], wanted: &[u8]) -> bool {
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.windows(wanted.len()).any(|it| it == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_as_text_and_old_event_logs_are_named() {
        let hex = other(b"O 12:00:00.000000 000000 80 60 00 01 00\n").unwrap();
        assert!(hex.contains("text2pcap"), "{hex}");
        assert!(other(b"0000   80 60 00 01\n").is_some());
        assert_eq!(other(b"0000 and so on\n"), None);
        let old = [0x0A, 0x08, 0x08, 0x80, 0x80, 0x80, 0x01, 0x10, 0x01];
        assert!(other(&old).unwrap().contains("2019"));
        assert_eq!(other(&[0x0A, 0x08, 0x08]), None);
    }
}
