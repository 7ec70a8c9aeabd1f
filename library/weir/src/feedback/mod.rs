//! Feedback: the receiver records arrivals; the sender joins the feedback with what it sent.
//!
//! ```text
//! receiver: ArrivalRecorder, RtpArrivalRecorder -> batch of arrivals -> (weir-wire: bytes) ->
//! sender:   SendHistory::{on_twcc, on_ccfb, on_receiver_report} -> FeedbackReport ->
//!           Controller::on_feedback
//! ```
//!
//! | format | numbers | arrival times | ECN |
//! |---|---|---|---|
//! | TWCC | of the transport | 250 us | no |
//! | CCFB, RFC 8888 | of each RTP stream | 1/1024 s | yes |
//! | RTCP receiver reports | of each RTP stream, counts only | round-trip time only | no |
//! | ACK frames of QUIC (crate `weir-quic`) | of each number space | time of the ACK | counts |

mod arrivals;
mod history;
mod restarts;
mod rtp_arrivals;
mod unwrap;

pub use arrivals::ArrivalRecorder;
pub use history::{
    CcfbPacket, CcfbReception, Outgoing, ReceiverReport, RtpNumber, SendHistory, TwccHeader,
};
pub use restarts::{Place, Restarts};
pub use rtp_arrivals::{RtpArrival, RtpArrivalRecorder, RtpBatch};
pub use unwrap::{SeqUnwrapper, Unwrapper};

use alloc::vec::Vec;

use crate::units::{DataSize, TimeDelta, Timestamp};

/// The two ECN bits of the IP header [RFC3168 §5].
///
/// [RFC3168 §5]: https://www.rfc-editor.org/rfc/rfc3168#section-5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, L4S.
    Ect1,
    /// ECN-capable.
    Ect0,
    /// Congestion Experienced.
    Ce,
}

/// Number of a probe: increases by one with each probe of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct ProbeId(pub u32);

/// A packet that left the pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// Transport-wide sequence number, unwrapped: increases by one with each packet.
    pub sequence_number: i64,
    /// Size of the packet. The driver decides which headers count, but must count the same ones
    /// everywhere. The lab counts whole IP packets, because those fill the bottleneck.
    pub size: DataSize,
    /// Data left in the send queue after this packet.
    pub queued: DataSize,
    /// The probe to which the packet belongs.
    pub probe: Option<ProbeId>,
    /// True if the packet carries neither media nor repair of media.
    pub padding: bool,
}

impl SentPacket {
    /// A media packet that belongs to no probe, with an empty send queue after it.
    pub const fn new(sequence_number: i64, size: DataSize) -> Self {
        Self { sequence_number, size, queued: DataSize::ZERO, probe: None, padding: false }
    }

    with! {
        with_queued: queued: DataSize,
        with_probe: probe: Option<ProbeId>,
        with_padding: padding: bool,
    }

    /// The low 16 bits of the transport-wide sequence number, as in the header extension.
    pub const fn transport_sequence_number(&self) -> u16 {
        self.sequence_number as u16
    }
}

/// What became of one packet, as far as feedback reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketReport {
    /// As in [`SentPacket::sequence_number`].
    pub sequence_number: i64,
    /// As in [`SentPacket::size`].
    pub size: DataSize,
    /// Time at which the packet left the pacer, on the sender's clock.
    pub send_time: Timestamp,
    /// Time at which the packet arrived, on the receiver's clock; `None` if the receiver does not
    /// have it.
    pub arrival_time: Option<Timestamp>,
    /// ECN bits on arrival.
    pub ecn: Ecn,
    /// True if an earlier report called the packet lost, but it was only late.
    pub recovered: bool,
    /// As in [`SentPacket::probe`].
    pub probe: Option<ProbeId>,
}

impl PacketReport {
    /// A packet that did not arrive and belongs to no probe.
    pub const fn new(sequence_number: i64, size: DataSize, send_time: Timestamp) -> Self {
        Self {
            sequence_number,
            size,
            send_time,
            arrival_time: None,
            ecn: Ecn::NotEct,
            recovered: false,
            probe: None,
        }
    }

    with! {
        with_arrival_time: arrival_time: Option<Timestamp>,
        with_ecn: ecn: Ecn,
        with_recovered: recovered: bool,
        with_probe: probe: Option<ProbeId>,
    }

    /// Arrival time minus send time: the one-way delay plus an unknown clock offset.
    pub fn one_way_delay(&self) -> Option<TimeDelta> {
        self.arrival_time.map(|arrival| arrival - self.send_time)
    }
}

/// The news in one feedback packet about sent packets. Each packet is reported once. It is reported
/// a second time only if it was called lost and then arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedbackReport {
    /// Packets by increasing sequence number.
    pub packets: Vec<PacketReport>,
    /// Number of feedback packets lost since the last report, if the format shows it.
    pub missing_feedback: u32,
    /// Origin of the arrival times, which determines their use.
    pub arrival_times: ArrivalTimes,
    /// The arrival times are on another clock than those of the last report. One-way delays of the
    /// two cannot be compared, so a new base delay is needed.
    pub new_clock: bool,
}

/// Origin of the arrival times in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrivalTimes {
    /// The receiver measured the arrival of each packet.
    #[default]
    Measured,
    /// Derived from RTCP receiver reports: the send time plus the round-trip time, which changes
    /// evenly from one report to the next. The number of lost packets is exact, but which ones is a
    /// guess. Usable for delays and rates over the time of a report, useless for gradients.
    RoundTrip,
    /// From the time at which the acknowledgement of the packet came, on the sender's clock, less
    /// the time for which the receiver held it back. The one-way delay is then a round-trip time:
    /// it contains the wait of the acknowledgement on the way back. Usable for a queue that
    /// stands, weak for gradients, and wrong while packets queue on the way back. Packets that one
    /// acknowledgement covers have guessed times, except the newest.
    Acknowledged,
}

impl ArrivalTimes {
    /// Whether the times are of single packets, so that a gradient of the delay can be computed.
    pub const fn is_per_packet(self) -> bool {
        matches!(self, Self::Measured | Self::Acknowledged)
    }
}

impl FeedbackReport {
    /// A report on these packets, which must be in order of sequence number. The arrival times are
    /// measured and on the same clock as before; no feedback packet is missing.
    pub fn new(packets: Vec<PacketReport>) -> Self {
        Self { packets, ..Self::default() }
    }

    with! {
        with_missing_feedback: missing_feedback: u32,
        with_arrival_times: arrival_times: ArrivalTimes,
        with_new_clock: new_clock: bool,
    }

    /// Time since the newest received packet was sent: the round-trip time plus the time for which
    /// the receiver held the feedback back ("feedback response time").
    pub fn rtt(&self, now: Timestamp) -> Option<TimeDelta> {
        self.received().map(|packet| packet.send_time).max().map(|sent| now - sent)
    }

    /// The packets that arrived.
    pub fn received(&self) -> impl Iterator<Item = &PacketReport> {
        self.packets.iter().filter(|packet| packet.arrival_time.is_some())
    }

    /// Counts the packets received for the first time, newly called lost, and recovered.
    pub fn loss_counts(&self) -> LossCounts {
        let mut counts = LossCounts::default();
        for packet in &self.packets {
            match (packet.arrival_time, packet.recovered) {
                (None, _) => counts.lost += 1,
                (Some(_), true) => counts.recovered += 1,
                (Some(_), false) => counts.received += 1,
            }
        }
        counts
    }
}

/// Numbers of packets in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossCounts {
    /// Packets received, and not called lost before.
    pub received: u64,
    /// Packets newly called lost.
    pub lost: u64,
    /// Packets called lost by an earlier report, but received now.
    pub recovered: u64,
}

impl LossCounts {
    with! {
        with_received: received: u64,
        with_lost: lost: u64,
        with_recovered: recovered: u64,
    }
}
