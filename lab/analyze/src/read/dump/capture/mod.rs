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

/// Reads the packets one by one.
pub(crate) fn read(mut from: Box<dyn BufRead>, options: &CaptureOptions) -> Result<Dump, String> {
    let mut packets = Packets::new(options.keys.as_ref());
    let mut left_out = LeftOut::default();
    let mut end = None;
    if let Err(what) = file::read(&mut from, &mut |frame| packets.add(frame)) {
        // What came before is still a capture.
        if packets.is_empty() {
            return Err(what);
        }
        let what = format!("after packet {}: {what}", packets.count());
        left_out.stop(what.clone());
        end = Some(what);
    }
    packets.flush();
    if let Some(complaint) = packets.complaint() {
        return Err(complaint);
    }
    let calls = calls::of(&packets, options.local);
    let is_absent = packets.has_media() && !packets.has_media_of(options.local);
    if let Some(local) = options.local.filter(|_| is_absent) {
        return Err(format!("no RTP in the capture comes from {local} or goes there"));
    }
    let events = packets.handshakes.events(packets.zero(), &|ends| packets.has_rtp(ends));
    if calls.is_empty() && events.is_empty() {
        let without = packets.without_rtp();
        return Err(match end {
            Some(end) => format!("{without}; {end}"),
            None => without,
        });
    }
    left_out.note(packets.note());
    left_out.note(calls.note());
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
        zero_ms: None,
        data_channels: Vec::new(),
    })
}
