//! A packet capture, or what a server recorded of a stream.
//!
//! ```text
//! file -> frames -> IP packets -> paths and their streams of RTP -> calls -> one connection each
//!                                 +-> signs of the ends ------------^
//! ```
//! Streams are the SSRCs of RTP between two sockets; SRTP leaves these headers in the clear.
//! Packets of an interval become a report like a browser's: what was sent, or what arrived and how
//! many sequence numbers are missing. RTCP that is readable, or that a key opens, adds round-trip
//! times, losses, and the fate of each packet. Without it, rules that need these are silent.

mod calls;
mod clock;
pub(crate) mod ends;
mod flows;
mod handshakes;
mod hosts;
mod kinds;
mod packets;
mod replay;
mod sessions;

use std::io::BufRead;

use weir_capture::file;

use super::Dump;
use super::left_out::LeftOut;
use crate::CaptureOptions;
use crate::read::format::Format;

use packets::Packets;

/// Earlier times in ms since 1970 are no times of day: those of recordings that begin with zero. It
/// is the year 1980.
const BEFORE_CAPTURES_MS: f64 = 315_532_800_000.0;

/// Why a capture is no dump.
pub(crate) enum NotRead {
    Damaged(String),
    /// It is sound, and has no call.
    NoCall(String),
}

impl From<String> for NotRead {
    fn from(what: String) -> Self {
        Self::Damaged(what)
    }
}

/// What a file that begins so is called: servers and tools record single streams.
fn name(first: &[u8]) -> &'static str {
    let is_recording = first.starts_with(b"MJR") || first.starts_with(b"#!rtp");
    if is_recording { "recording" } else { CAPTURE }
}

const CAPTURE: &str = "capture";

/// Reads the packets one by one.
pub(crate) fn read(mut from: Box<dyn BufRead>, options: &CaptureOptions) -> Result<Dump, NotRead> {
    let mut packets = Packets::new(options.keys.as_ref());
    let mut left_out = LeftOut::default();
    let mut end = None;
    let name = name(from.fill_buf().unwrap_or_default());
    if let Err(what) = file::read(&mut from, &mut |frame| packets.add(frame)) {
        // What came before is still a capture.
        if packets.is_empty() {
            return Err(match name {
                CAPTURE => what.into(),
                _ => format!("the {name} has no whole packet: it is cut, or nothing came").into(),
            });
        }
        let what = format!("after packet {}: {what}", packets.count());
        left_out.stop(what.clone());
        end = Some(what);
    }
    packets.flush(options.local);
    if let Some(complaint) = packets.complaint() {
        return Err(complaint.into());
    }
    let calls = calls::of(&packets, options.local);
    let is_absent = packets.has_media() && !packets.has_media_of(options.local);
    if let Some(local) = options.local.filter(|_| is_absent) {
        return Err(format!("no RTP in the capture comes from {local} or goes there").into());
    }
    let events = packets.handshakes.events(packets.zero(), &|ends| packets.has_rtp(ends));
    if calls.is_empty() && events.is_empty() {
        let without = packets.without_rtp(name);
        return Err(match end {
            Some(end) => NotRead::Damaged(format!("{without}; {end}")),
            None => NotRead::NoCall(without),
        });
    }
    left_out.note(packets.note());
    left_out.note(calls.note());
    let zero_ms = Some(packets.zero() as f64 / 1e6).filter(|ms| *ms > BEFORE_CAPTURES_MS);
    let connections = replay::connections(packets, calls);
    let mut cuts: Vec<String> = Vec::new();
    for connection in &connections {
        cuts.extend(connection.packets.as_ref().and_then(|log| log.cut_warning()));
    }
    cuts.dedup();
    cuts.into_iter().for_each(|cut| left_out.note(Some(cut)));
    Ok(Dump {
        format: Format::Capture,
        program: None,
        connections,
        warnings: left_out.warnings("packets"),
        events,
        zero_ms,
        end_s: 0.0,
        is_part: false,
        data_channels: Vec::new(),
    })
}
