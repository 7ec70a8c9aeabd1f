//! A dump: the reports of each stream of each connection.

pub(crate) mod capture;
mod cells;
mod connection;
mod event;
pub(crate) mod event_log;
pub(crate) mod internals;
pub(crate) mod left_out;
mod legacy;
mod members;
mod names;
mod object;
mod objects;
mod repair;
pub(crate) mod rtcstats;

pub use weir_lab::calls::StreamDirection;
use weir_lab::calls::derive::TimedReport;
use weir_lab::calls::stats::Kind;

use crate::format::Format;
use crate::packets::PacketLog;

pub(crate) use connection::EventLog;
pub use connection::{ConnectionChange, ConnectionEvent, ConnectionState};
pub(crate) use objects::Collector;
pub(crate) use rtcstats::Reader;

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    /// Its format.
    pub format: Format,
    /// The browser, as the dump names it.
    pub program: Option<String>,
    /// The connections with at least one stream, in the order of the file.
    pub connections: Vec<Connection>,
    /// What of the file was left out and why, one line each: odd parts, an early end, or a bound.
    pub warnings: Vec<String>,
    /// What happened to all connections, those without a stream too, by time. Only dumps of
    /// getStats say it.
    pub events: Vec<ConnectionEvent>,
}

/// An RTCPeerConnection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connection {
    /// Its name in the dump.
    pub name: String,
    /// The streams: sent ones first.
    pub streams: Vec<Stream>,
    /// Its packets, from a capture or an event log.
    pub packets: Option<PacketLog>,
}

/// An RTP stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its direction.
    pub way: StreamDirection,
    /// Video or audio.
    pub kind: Kind,
    /// Its SSRC.
    pub ssrc: u32,
    /// `rid` of a layer of simulcast.
    pub rid: Option<String>,
    /// The reports, by time. At least two.
    pub reports: Vec<StreamReport>,
}

/// A report of one stream. Its time counts from the first report of the dump.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReport {
    /// The stream as `outbound` or `inbound`, whatever its kind, with its transport.
    pub timed: TimedReport,
    /// Whether the application lets the stream be sent; `None` where the browser does not say.
    pub active: Option<bool>,
}
