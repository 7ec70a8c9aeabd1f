//! A dump: the reports of each stream of each connection.

pub(crate) mod capture;
mod cells;
mod connection;
mod dates;
mod event;
pub(crate) mod event_log;
pub(crate) mod get_stats;
pub(crate) mod internals;
pub(crate) mod left_out;
mod legacy;
mod members;
mod names;
mod object;
mod objects;
pub(crate) mod qlog;
mod repair;
pub(crate) mod rtcstats;
mod texts;
mod untyped;

pub use weir_record::calls::StreamDirection;
use weir_record::calls::derive::TimedReport;
use weir_record::calls::stats::Kind;

use crate::read::format::Format;
use crate::read::packets::PacketLog;

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
    /// The first report, from which times count, in ms since 1970. `None` where no report has one.
    pub zero_ms: Option<f64>,
    /// When the last report was, in s since the first one, whatever it was of; 0 where reports are
    /// made of packets.
    pub end_s: f64,
    /// Whether streams may be missing, because the file ends before all of them are read.
    pub is_part: bool,
    /// The data channels of all connections.
    pub data_channels: Vec<DataChannel>,
}

/// A data channel, as its last report has it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DataChannel {
    /// The name of its connection.
    pub connection: String,
    /// Messages that this end sent, and their bytes.
    pub messages_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Messages that this end received.
    pub messages_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
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
    pub direction: StreamDirection,
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
