//! What a run leaves behind, before it is written to a record. Real calls fill the same shape.

use std::borrow::Cow;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use weir_net::path::{AccessLog, NOTE_INTERVAL};

/// Time between two rows of a flow.
pub const ROW_INTERVAL: TimeDelta = NOTE_INTERVAL;

/// All that was noted of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Names of the flows, in the scenario's order; rows and events refer to them by index.
    pub flows: Vec<String>,
    /// A row a flow and [`ROW_INTERVAL`], by time, then by flow.
    pub rows: Vec<Row>,
    /// Rate changes, by time.
    pub events: Vec<RateChange>,
    /// Names of the nodes of the access network, by number; none without such a network.
    pub nodes: Vec<String>,
    /// What the access network noted.
    pub access: AccessLog,
}

impl Trace {
    /// Rows and rate changes, which come in every run.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.events.len()
    }

    /// Moves what the next part of the run noted behind this one.
    pub fn append(&mut self, part: &mut Self) {
        if self.flows.is_empty() {
            (self.flows, self.nodes) = (part.flows.clone(), part.nodes.clone());
        }
        self.rows.append(&mut part.rows);
        self.events.append(&mut part.events);
        self.access.append(&mut part.access);
    }

    /// Forgets all but the names.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.events.clear();
        self.access.clear();
    }
}

/// One flow over one interval. A value that nobody measured is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// End of the interval.
    pub time: Timestamp,
    /// Index of the flow.
    pub flow: usize,
    /// Capacity of the bottleneck in the flow's direction at the beginning of the interval; `None` if
    /// unlimited.
    pub capacity: Option<Bitrate>,
    /// Target bitrate at the end of the interval.
    pub target: Option<Bitrate>,
    /// Pacing rate at the end of the interval.
    pub pacing_rate: Option<Bitrate>,
    /// Congestion window at the end of the interval.
    pub congestion_window: Option<DataSize>,
    /// IP bytes that left the sender.
    pub sent: DataSize,
    /// IP bytes that arrived at the receiver.
    pub received: DataSize,
    /// Packets that left the sender.
    pub sent_packets: u64,
    /// Packets that the network lost or dropped.
    pub lost_packets: u64,
    /// Shortest feedback response time that a feedback report of the interval gave.
    pub rtt: Option<TimeDelta>,
    /// Mean time that the packets which arrived had waited in the bottleneck's queue.
    pub queuing_delay: Option<TimeDelta>,
    /// Bytes in the bottleneck's queue at the end of the interval.
    pub queue: DataSize,
    /// What became of the video; `None` where nobody shows it.
    pub video: Option<Video>,
    /// What a TCP flow transferred; `None` for others, and where nobody knows.
    pub transfer: Option<Transfer>,
    /// IP bytes of RTCP that left the receiver of a media flow; `None` for others, and where nobody knows.
    pub feedback: Option<DataSize>,
}

/// What became of a flow's video over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Video {
    /// IP bytes received of media that was sent for the first time.
    pub media: DataSize,
    /// IP bytes received of retransmissions.
    pub rtx: DataSize,
    /// IP bytes received of parity.
    pub fec: DataSize,
    /// Media packets that the receiver now has, received or repaired; each counts once.
    pub media_packets: u64,
    /// Media packets that the receiver did without: those that it still missed when it went on with a
    /// later key frame, and at the end those that it had given up.
    pub unrepaired_packets: u64,
    /// Frames shown.
    pub frames: u64,
    /// Freezes that ended.
    pub freezes: u64,
    /// How long they had lasted.
    pub frozen: TimeDelta,
    /// Mean time of the shown frames from capture to screen.
    pub frame_delay: Option<TimeDelta>,
}

/// What a TCP flow transferred over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Payload that the receiver's application got.
    pub goodput: DataSize,
    /// Packets that left the sender again.
    pub retransmitted_packets: u64,
}

/// A target bitrate changed, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct RateChange {
    /// When.
    pub time: Timestamp,
    /// Index of the flow.
    pub flow: usize,
    /// Target bitrate before.
    pub from: Bitrate,
    /// Target bitrate after.
    pub to: Bitrate,
    /// Why, in the controller's or the browser's words.
    pub reason: Cow<'static, str>,
    /// The controller's state.
    pub state: Cow<'static, str>,
    /// What decided it: names, with the unit in them, and values.
    pub signals: Vec<(Cow<'static, str>, f64)>,
}
