//! The packets of one connection: what was sent, the feedback that came back, and what arrived.
//!
//! Captures and event logs both become a [`PacketLog`]. From it follow the reports of each stream,
//! the network that the packets met ([`passages`]), and what other controllers would have done with
//! the same feedback ([`crate::measure::open_loop`]).

pub(crate) mod control;
pub(crate) mod extensions;
pub(crate) mod facts;
pub(crate) mod last_hop;
pub(crate) mod passage;
pub(crate) mod passages;
pub(crate) mod pauses;
pub(crate) mod play;
pub(crate) mod quiet;
pub(crate) mod receiver_reports;
pub(crate) mod recorder;
pub(crate) mod reports;
mod rivals;
pub(crate) mod rtp;
pub(crate) mod sequence;

use std::collections::BTreeMap;

use weir::units::{Bitrate, TimeDelta, Timestamp};

use control::Control;
use facts::StreamFacts;

use crate::read::dump::capture::ends::Ends;

/// Most packets, and most bytes of RTCP, that are kept. Later ones count in the streams' reports,
/// but are in no log, so that the memory does not grow with the file.
pub(crate) const PACKETS_MAX: usize = 1_500_000;
const RTCP_BYTES_MAX: usize = 32 << 20;
/// Datagrams of RTCP that are kept.
const RTCP_MAX: usize = 300_000;
/// Longest time over which streams are counted: a week.
const FAR: TimeDelta = TimeDelta::from_secs(7 * 86_400);
/// Most reports of all streams; one takes about a kilobyte.
const REPORTS_MAX: usize = 50_000;
/// Most streams of a connection: those with most packets.
const STREAMS_MAX: usize = 256;
/// Streams of a connection that have a line each.
const STREAM_LINES: usize = 20;
/// Longest time that a log covers. Controllers work while time passes, so a far time is far work.
const LENGTH_MAX: TimeDelta = TimeDelta::from_secs(2 * 3_600);

/// The packets of a connection, in the order of time. Times count from the first packet of the
/// file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PacketLog {
    /// Packets of RTP that left, if some feedback came. With transport-wide feedback only those
    /// with a transport-wide number.
    pub(crate) sent: Vec<Sent>,
    /// Packets of RTP that arrived and say when they left, or have a transport-wide number: others
    /// tell nothing of the path.
    pub(crate) received: Vec<Received>,
    /// Readable RTCP that arrived.
    pub(crate) rtcp: Vec<(Timestamp, Vec<u8>)>,
    /// When a sender report left, by the middle 32 bits of its NTP time.
    pub(crate) sender_reports: BTreeMap<u32, Timestamp>,
    /// The sender's own estimates of what the path carries.
    pub(crate) estimates: Vec<(Timestamp, Bitrate)>,
    /// What else its congestion control logged, by time.
    pub(crate) control: Vec<(Timestamp, Control)>,
    /// SSRCs of retransmissions, each with the SSRC of its media.
    pub(crate) repairs: BTreeMap<u32, u32>,
    /// What was measured of each stream.
    pub streams: Vec<StreamFacts>,
    /// Which end is this one, in a capture.
    pub(crate) ends: Option<Ends>,
    /// When the file ends.
    pub(crate) end: Timestamp,
    /// What else is known of the capture, a line each.
    pub(crate) notes: Vec<String>,
    rtcp_bytes: usize,
    /// Datagrams of RTCP that are encrypted, or cut short by the program that captured them.
    pub unreadable_rtcp: u64,
    /// Whether later packets of the file are left out, because it has too many.
    pub is_cut: bool,
    first_cut: Option<Cut>,
}

/// A bound that a file exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Packets,
    Rtcp,
    Length,
    Reports,
    Streams,
}

/// Whether a time is near the first packet of RTP, which others may precede.
fn within(time: Timestamp, length: TimeDelta) -> bool {
    (Timestamp::ZERO - length..=Timestamp::ZERO + length).contains(&time)
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sent {
    pub time: Timestamp,
    pub ssrc: u32,
    pub sequence_number: u16,
    pub rtp_timestamp: u32,
    /// Its transport-wide sequence number, unwrapped.
    pub number: Packed,
    /// Bytes of the IP packet.
    pub size: u32,
    pub is_padding: bool,
}

/// A number that may be unknown, in eight bytes: a log has one and a half million packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Packed(i64);

impl Packed {
    const NONE: i64 = i64::MIN;

    pub fn get(self) -> Option<i64> {
        (self.0 != Self::NONE).then_some(self.0)
    }
}

impl From<Option<i64>> for Packed {
    fn from(number: Option<i64>) -> Self {
        Self(number.unwrap_or(Self::NONE))
    }
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Received {
    pub time: Timestamp,
    /// When it left, in ns on the sender's clock, if it has its absolute send time.
    pub send_time: Packed,
    /// Its transport-wide sequence number, unwrapped: who sent it last, such as a server, gave it.
    pub number: Packed,
    pub size: u32,
}

impl PacketLog {
    /// Whether there is feedback about the sent packets.
    pub fn has_feedback(&self) -> bool {
        !self.sent.is_empty() && !self.rtcp.is_empty()
    }

    /// The sender's own estimate of what the path carries, if its log has it.
    pub fn estimate_at(&self, time: Timestamp) -> Option<Bitrate> {
        let known = self.estimates.partition_point(|(at, _)| *at <= time);
        known.checked_sub(1).map(|at| self.estimates[at].1)
    }

    fn add_rtcp(&mut self, time: Timestamp, bytes: &[u8]) {
        if self.rtcp_bytes + bytes.len() > RTCP_BYTES_MAX || self.rtcp.len() >= RTCP_MAX {
            return self.cut(Cut::Rtcp);
        }
        if !within(time, LENGTH_MAX) {
            return self.cut(Cut::Length);
        }
        self.rtcp_bytes += bytes.len();
        self.rtcp.push((time, bytes.to_vec()));
    }

    fn has_room(&mut self, time: Timestamp) -> bool {
        let count = self.sent.len()
            + self.received.len()
            + self.estimates.len()
            + self.control.len()
            + self.sender_reports.len();
        if count >= PACKETS_MAX {
            self.cut(Cut::Packets);
        } else if !within(time, LENGTH_MAX) {
            self.cut(Cut::Length);
        } else {
            return true;
        }
        false
    }

    fn cut(&mut self, bound: Cut) {
        self.is_cut = true;
        self.first_cut.get_or_insert(bound);
    }

    /// Drops addresses and what else names people, machines and networks.
    pub(crate) fn forget_names(&mut self) {
        self.notes.clear();
        if let Some(ends) = &mut self.ends {
            ends.forget_names();
        }
        for facts in &mut self.streams {
            (facts.ends, facts.call_id, facts.codec) = (None, None, None);
        }
    }

    /// What a capture says of itself and its streams, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(ends) = &self.ends else { return Vec::new() };
        let mut lines = vec![ends.words()];
        let twice = self.streams.iter().filter(|it| 2 * it.captured_again > it.packets).count();
        if twice > 0 {
            lines.push(format!(
                "the packets of {twice} streams were captured at two places (a bridge, several \
                 interfaces): each counts once"
            ));
        }
        lines.extend(self.notes.iter().cloned());
        for facts in self.streams.iter().take(STREAM_LINES) {
            lines.push(facts.words());
        }
        lines
    }

    /// One line on the bound that cut the log; `None` if all is in it.
    pub(crate) fn cut_warning(&self) -> Option<String> {
        let why = match self.first_cut? {
            Cut::Packets => format!("more than {PACKETS_MAX} packets"),
            Cut::Rtcp => {
                format!("more than {RTCP_MAX} datagrams or {RTCP_BYTES_MAX} bytes of RTCP")
            }
            Cut::Length => format!("packets more than {} s apart", LENGTH_MAX.as_secs_f64()),
            Cut::Reports => format!("more than {REPORTS_MAX} half seconds of streams"),
            Cut::Streams => format!("more than {STREAMS_MAX} streams"),
        };
        Some(format!("the file has {why}: what is beyond is left out"))
    }
}
