//! Results of a run in memory, before they are written to a record. Real calls use the same
//! structure.

use std::borrow::Cow;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use weir_net::path::{AccessLog, NOTE_INTERVAL};

/// Interval between two rows of a flow.
pub const ROW_INTERVAL: TimeDelta = NOTE_INTERVAL;

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// Names of the flows, in the scenario's order. Rows and events refer to flows by index.
    pub flows: Vec<String>,
    /// One row per flow and [`ROW_INTERVAL`], sorted by time, then by flow.
    pub rows: Vec<Row>,
    /// Rate changes, sorted by time.
    pub events: Vec<RateChange>,
    /// Names of the nodes of the access network, by number. Empty without an access network.
    pub nodes: Vec<String>,
    /// Events in the access network.
    pub access: AccessLog,
    /// Decisions of a forwarding server, sorted by time.
    pub decisions: Vec<LayerDecision>,
}

impl Trace {
    /// A trace of flows with these names, without results.
    pub fn new(flows: Vec<String>) -> Self {
        Self { flows, ..Self::default() }
    }

    weir::with! {
        with_rows: rows: Vec<Row>,
        with_events: events: Vec<RateChange>,
        with_nodes: nodes: Vec<String>,
        with_access: access: AccessLog,
    }

    /// Number of rows, rate changes and decisions.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.events.len() + self.decisions.len()
    }

    /// Appends the next part of the run and leaves `part` without rows and events.
    pub fn append(&mut self, part: &mut Self) {
        if self.flows.is_empty() {
            (self.flows, self.nodes) = (part.flows.clone(), part.nodes.clone());
        }
        self.rows.append(&mut part.rows);
        self.events.append(&mut part.events);
        self.access.append(&mut part.access);
        self.decisions.append(&mut part.decisions);
    }

    /// Removes everything except the names.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.events.clear();
        self.access.clear();
        self.decisions.clear();
    }
}

/// Results of one flow over one interval. A value that was not measured is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// End of the interval.
    pub time: Timestamp,
    /// Index of the flow.
    pub flow: usize,
    /// Capacity of the bottleneck in the flow's direction at the beginning of the interval; `None`
    /// if unlimited.
    pub capacity: Option<Bitrate>,
    /// Mean capacity over the interval: the integral of what the bottleneck carries. `None` if it
    /// is `capacity`.
    pub mean_capacity: Option<Bitrate>,
    /// Bits of the flow that the narrowest link of its path carried within the interval, with the
    /// parts of packets that were in transmission at its ends. `None` if they are as many as those
    /// of `received`, or unknown.
    pub carried_bits: Option<u64>,
    /// Target bitrate at the end of the interval.
    pub target: Option<Bitrate>,
    /// Pacing rate at the end of the interval.
    pub pacing_rate: Option<Bitrate>,
    /// Congestion window at the end of the interval.
    pub congestion_window: Option<DataSize>,
    /// Bytes that wait in the sender's pacer at the end of the interval. `None` for flows other
    /// than media. Records do not contain it.
    pub send_queue: Option<DataSize>,
    /// IP bytes that left the sender.
    pub sent: DataSize,
    /// IP bytes that arrived at the receiver.
    pub received: DataSize,
    /// Packets that left the sender.
    pub sent_packets: u64,
    /// Packets that the network lost or dropped.
    pub lost_packets: u64,
    /// Minimum feedback response time over the feedback reports of the interval.
    pub rtt: Option<TimeDelta>,
    /// Mean time that the packets which arrived in the interval spent in the bottleneck's queue.
    pub queuing_delay: Option<TimeDelta>,
    /// Bytes in the bottleneck's queue at the end of the interval.
    pub queue: DataSize,
    /// Results of the video. `None` if the receiver plays none.
    pub video: Option<Video>,
    /// What is seen of the video. `None` unless the receiver plays it as a browser does.
    pub seen: Option<Seen>,
    /// What is heard of an audio flow. `None` unless the receiver plays it.
    pub heard: Option<Heard>,
    /// Results of a TCP flow. `None` for other flows, and where they are unknown.
    pub transfer: Option<Transfer>,
    /// IP bytes of RTCP that left the receiver of a media flow. `None` for other flows, and where
    /// they are unknown.
    pub feedback: Option<DataSize>,
    /// What a forwarding server did for the subscriber. `None` for other flows.
    pub forwarded: Option<Forwarded>,
    /// Packets that arrived with the mark Congestion Experienced. `None` if there was none.
    pub marked_packets: Option<u64>,
}

impl Row {
    /// A row of a flow in which nothing was measured, for the interval that ends at `time`.
    pub fn new(time: Timestamp, flow: usize) -> Self {
        Self { time, flow, ..Self::default() }
    }

    /// The capacity over the interval; `None` if unlimited.
    pub fn capacity_over_it(&self) -> Option<Bitrate> {
        self.mean_capacity.or(self.capacity)
    }

    /// The row with what the narrowest link of its path could carry and did carry: its capacity at
    /// the beginning, the mean capacity over the interval, and the bits of the flow. It holds only
    /// what no other value tells.
    #[must_use]
    pub fn with_link(
        self,
        capacity: Option<Bitrate>,
        mean_capacity: Option<Bitrate>,
        bits: Option<u64>,
    ) -> Self {
        let mean_capacity = if mean_capacity == capacity { None } else { mean_capacity };
        let is_known = bits == Some(self.received.as_bits());
        let carried_bits = if is_known { None } else { bits };
        Self { capacity, mean_capacity, carried_bits, ..self }
    }

    /// The flow's bits in the capacity over the interval.
    pub fn bits_carried(&self) -> u64 {
        self.carried_bits.unwrap_or(self.received.as_bits())
    }

    weir::with! {
        with_capacity: capacity: Option<Bitrate>,
        with_mean_capacity: mean_capacity: Option<Bitrate>,
        with_carried_bits: carried_bits: Option<u64>,
        with_target: target: Option<Bitrate>,
        with_pacing_rate: pacing_rate: Option<Bitrate>,
        with_congestion_window: congestion_window: Option<DataSize>,
        with_send_queue: send_queue: Option<DataSize>,
        with_sent: sent: DataSize,
        with_received: received: DataSize,
        with_sent_packets: sent_packets: u64,
        with_lost_packets: lost_packets: u64,
        with_rtt: rtt: Option<TimeDelta>,
        with_queuing_delay: queuing_delay: Option<TimeDelta>,
        with_queue: queue: DataSize,
        with_video: video: Option<Video>,
        with_seen: seen: Option<Seen>,
        with_heard: heard: Option<Heard>,
        with_transfer: transfer: Option<Transfer>,
        with_feedback: feedback: Option<DataSize>,
        with_forwarded: forwarded: Option<Forwarded>,
        with_marked_packets: marked_packets: Option<u64>,
    }
}

/// Results of a flow's video over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Video {
    /// Received IP bytes of first transmissions of media.
    pub media: DataSize,
    /// Received IP bytes of retransmissions.
    pub rtx: DataSize,
    /// Received IP bytes of parity packets.
    pub fec: DataSize,
    /// Media packets that became available to the receiver, received or repaired. Each counts once.
    pub media_packets: u64,
    /// Media packets that stayed missing. They are counted when the receiver continues with a later
    /// key frame, and at the end of the run if the receiver had given them up.
    pub unrepaired_packets: u64,
    /// Frames shown.
    pub frames: u64,
    /// Freezes that ended.
    pub freezes: u64,
    /// Total duration of these freezes.
    pub frozen: TimeDelta,
    /// Mean time from capture to display of the frames shown.
    pub frame_delay: Option<TimeDelta>,
}

impl Video {
    weir::with! {
        with_media: media: DataSize,
        with_rtx: rtx: DataSize,
        with_fec: fec: DataSize,
        with_media_packets: media_packets: u64,
        with_unrepaired_packets: unrepaired_packets: u64,
        with_frames: frames: u64,
        with_freezes: freezes: u64,
        with_frozen: frozen: TimeDelta,
        with_frame_delay: frame_delay: Option<TimeDelta>,
    }
}

/// What is seen of a flow's video over one interval, beside [`Video`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// Mean VMAF of the pictures shown, in hundredths, by a model. `None` if none was shown, or if
    /// there is no model for what the camera shows.
    pub vmaf: Option<u64>,
    /// Mean time from the first packet of a frame until it goes to the decoder, over the frames
    /// that went there.
    pub jitter_buffer: Option<TimeDelta>,
}

impl Seen {
    weir::with! {
        with_vmaf: vmaf: Option<u64>,
        with_jitter_buffer: jitter_buffer: Option<TimeDelta>,
    }
}

/// What is heard of a flow's speech over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heard {
    /// Time played.
    pub played: TimeDelta,
    /// The part of it that was made up, because the packets were lost or late.
    pub concealed: TimeDelta,
    /// Stretches that were made up and began in the interval.
    pub concealments: u64,
    /// Time that was added to the speech by playing slower.
    pub stretched: TimeDelta,
    /// Time that was taken out of it by playing faster.
    pub shortened: TimeDelta,
    /// Mean time from the microphone to the ear of what was played and not made up.
    pub delay: Option<TimeDelta>,
    /// Delay that the buffer aims at, at the end of the interval.
    pub target: Option<TimeDelta>,
}

impl Heard {
    weir::with! {
        with_played: played: TimeDelta,
        with_concealed: concealed: TimeDelta,
        with_concealments: concealments: u64,
        with_stretched: stretched: TimeDelta,
        with_shortened: shortened: TimeDelta,
        with_delay: delay: Option<TimeDelta>,
        with_target: target: Option<TimeDelta>,
    }
}

/// Results of a TCP flow over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// Payload delivered to the receiver's application.
    pub goodput: DataSize,
    /// Packets that the sender retransmitted.
    pub retransmitted_packets: u64,
}

impl Transfer {
    /// These results.
    pub const fn new(goodput: DataSize, retransmitted_packets: u64) -> Self {
        Self { goodput, retransmitted_packets }
    }
}

/// What a forwarding server did for a subscriber in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forwarded {
    /// IP bytes of padding that left the server.
    pub padding: DataSize,
    /// Choices of another layer, of tracks that had one and were not hidden.
    pub switches: u64,
    /// Key frames asked for.
    pub key_frames: u64,
    /// Sum over the tracks at the end of the interval: 1 for the lowest layer that is sent, 2 for
    /// the next.
    pub layers: u64,
    /// The same sum for the best layers under the subscriber's share of the capacity; `None` if
    /// that is not known.
    pub best_layers: Option<u64>,
    /// Tracks of which a layer fits that share, and those of them that are sent below it.
    pub fitting: u64,
    /// Of these, the tracks that are sent in a lower layer, or not at all.
    pub below: u64,
    /// Freezes that a switch caused.
    pub switch_freezes: u64,
    /// Their total duration.
    pub switch_frozen: TimeDelta,
    /// Half seconds of its cameras that ended, by what they were like.
    pub halves_without_picture: u64,
    /// See [`HalfSecond::Late`].
    pub late_halves: u64,
    /// See [`HalfSecond::BadPicture`].
    pub bad_halves: u64,
    /// See [`HalfSecond::Good`].
    pub good_halves: u64,
}

impl Forwarded {
    /// Counts a half second that is over.
    pub fn note(&mut self, half: HalfSecond) {
        let count = match half {
            HalfSecond::NoPicture => &mut self.halves_without_picture,
            HalfSecond::Late => &mut self.late_halves,
            HalfSecond::BadPicture => &mut self.bad_halves,
            HalfSecond::Good => &mut self.good_halves,
        };
        *count += 1;
    }
}

/// What an interval of half a second was like for the person who watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfSecond {
    /// No new picture.
    NoPicture,
    /// The pictures were late.
    Late,
    /// They looked bad.
    BadPicture,
    /// All was well.
    Good,
}

impl HalfSecond {
    /// Longest delay of a good picture in ms: longer ones disturb a conversation.
    const MAX_DELAY_MS: f64 = 250.0;
    /// Least VMAF of a good picture.
    const MIN_VMAF: f64 = 80.0;

    /// Judges an interval with so many new pictures, of this mean delay, the last of which has this
    /// VMAF. The first cause that applies counts.
    pub fn judge(shown: u64, delay_ms: Option<f64>, vmaf: f64) -> Self {
        if shown == 0 {
            Self::NoPicture
        } else if delay_ms.is_some_and(|ms| ms > Self::MAX_DELAY_MS) {
            Self::Late
        } else if vmaf < Self::MIN_VMAF {
            Self::BadPicture
        } else {
            Self::Good
        }
    }
}

/// A decision of a forwarding server for a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerDecision {
    /// When it was made.
    pub time: Timestamp,
    /// Name of the subscriber's flow.
    pub flow: String,
    /// The publisher, by number from 1; `None` for what is about the path.
    pub track: Option<u64>,
    /// What was decided.
    pub kind: DecisionKind,
    /// The layer before, by number from 0.
    pub from: Option<u64>,
    /// The layer after, or the one that was asked for or refused; `None`: nothing is sent.
    pub to: Option<u64>,
    /// Why.
    pub reason: Cow<'static, str>,
    /// What all pictures could take.
    pub budget: Bitrate,
    /// What the decision needs.
    pub needed: Bitrate,
}

impl Default for LayerDecision {
    fn default() -> Self {
        Self {
            time: Timestamp::ZERO,
            flow: String::new(),
            track: None,
            kind: DecisionKind::Chosen,
            from: None,
            to: None,
            reason: Cow::Borrowed(""),
            budget: Bitrate::ZERO,
            needed: Bitrate::ZERO,
        }
    }
}

/// What a forwarding server decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// Another layer is wanted.
    Chosen,
    /// It is sent from now on.
    Switched,
    /// A key frame was asked for.
    KeyFrameAsked,
    /// A better layer was not chosen.
    Refused,
    /// Nothing is sent until the key frame of a cheaper layer comes.
    Cut,
    /// More than the media is sent for a moment.
    Probe,
    /// A rate arrived.
    Proved,
    /// A rate did not arrive.
    Disproved,
}

impl DecisionKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Chosen,
        Self::Switched,
        Self::KeyFrameAsked,
        Self::Refused,
        Self::Cut,
        Self::Probe,
        Self::Proved,
        Self::Disproved,
    ];

    /// Name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::Switched => "switched",
            Self::KeyFrameAsked => "key frame asked",
            Self::Refused => "refused",
            Self::Cut => "cut",
            Self::Probe => "probe",
            Self::Proved => "proved",
            Self::Disproved => "disproved",
        }
    }
}

/// A change of a target bitrate and its reason.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateChange {
    /// Time of the change.
    pub time: Timestamp,
    /// Index of the flow.
    pub flow: usize,
    /// Target bitrate before.
    pub from: Bitrate,
    /// Target bitrate after.
    pub to: Bitrate,
    /// Reason, in the terms of the controller or the browser.
    pub reason: Cow<'static, str>,
    /// The controller's state.
    pub state: Cow<'static, str>,
    /// Signals that led to the change: names, which include the unit, and values.
    pub signals: Vec<(Cow<'static, str>, f64)>,
}

impl RateChange {
    /// A change with an empty reason and state, and without signals.
    pub const fn new(time: Timestamp, flow: usize, from: Bitrate, to: Bitrate) -> Self {
        let (reason, state) = (Cow::Borrowed(""), Cow::Borrowed(""));
        Self { time, flow, from, to, reason, state, signals: Vec::new() }
    }

    weir::with! {
        with_reason: reason: Cow<'static, str>,
        with_state: state: Cow<'static, str>,
        with_signals: signals: Vec<(Cow<'static, str>, f64)>,
    }
}
