//! Formats of dumps, and how their first bytes tell them.

use std::fmt;

/// First line of an rtcstats dump.
pub(crate) const RTCSTATS: &[u8] = b"RTCStatsDump\n";
/// The member of the heading that every rtcstats dump with a heading has.
const VERSION: &[u8] = b"\"fileFormat\"";
/// Magic number of pcap with times in µs.
pub(crate) const MICROS: u32 = 0xA1B2_C3D4;
/// Magic number of pcap with times in ns.
pub(crate) const NANOS: u32 = 0xA1B2_3C4D;
/// First block of pcapng [PCAPNG §4.1].
pub(crate) const SECTION: u32 = 0x0A0D_0D0A;

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
    /// Packets, as pcap or pcapng.
    Capture,
    /// The RTC event log of libwebrtc.
    EventLog,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Internals => "webrtc-internals dump",
            Self::Rtcstats => "rtcstats dump",
            Self::Capture => "packet capture",
            Self::EventLog => "RTC event log",
        })
    }
}

/// The format that begins with these bytes.
pub(crate) fn told_by(first: &[u8]) -> Option<Format> {
    if first.starts_with(RTCSTATS) {
        return Some(Format::Rtcstats);
    }
    if is_capture(first) {
        return Some(Format::Capture);
    }
    if first.starts_with(&BEGIN_LOG) {
        return Some(Format::EventLog);
    }
    // What libraries send to a server: events, or a heading before them.
    if first.starts_with(b"[\"")
        || first.starts_with(b"[1,")
        || first.starts_with(b"{") && holds(first, VERSION)
    {
        return Some(Format::Rtcstats);
    }
    match first.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Some(Format::Internals),
        _ => None,
    }
}

/// Whether the first line has these bytes.
fn holds(first: &[u8], wanted: &[u8]) -> bool {
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.windows(wanted.len()).any(|it| it == wanted)
}

/// Whether a file begins like a capture.
fn is_capture(first: &[u8]) -> bool {
    let Some(magic) = first.first_chunk::<4>() else { return false };
    let (little, big) = (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic));
    little == SECTION || [MICROS, NANOS].iter().any(|it| [little, big].contains(it))
}
