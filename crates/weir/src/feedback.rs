//! Feedback: what a receiver notes, and what a sender learns when it joins it with what it sent.
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

mod arrivals;
mod history;
mod rtp_arrivals;
mod unwrap;

pub use arrivals::ArrivalRecorder;
pub use history::{
    CcfbPacket, CcfbReception, Outgoing, ReceiverReport, RtpNumber, SendHistory, TwccHeader,
};
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

/// A probe's number: rises by one with each probe of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct ProbeId(pub u32);

/// A packet that left the pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// Transport-wide sequence number, unwrapped: rises by one with each packet.
    pub sequence_number: i64,
    /// Its size. The driver chooses what counts, the same everywhere; the lab counts whole IP packets,
    /// because those fill the bottleneck.
    pub size: DataSize,
    /// What was left in the send queue behind it.
    pub queued: DataSize,
    /// The probe that it belongs to.
    pub probe: Option<ProbeId>,
    /// It carries no media and no repair of media.
    pub padding: bool,
}

impl SentPacket {
    /// A media packet that belongs to no probe and has nothing behind it in the send queue.
    pub const fn new(sequence_number: i64, size: DataSize) -> Self {
        Self { sequence_number, size, queued: DataSize::ZERO, probe: None, padding: false }
    }

    with! {
        with_queued: queued: DataSize,
        with_probe: probe: Option<ProbeId>,
        with_padding: padding: bool,
    }

    /// The transport-wide sequence number as the header extension carries it: the low 16 bits.
    pub const fn transport_sequence_number(&self) -> u16 {
        self.sequence_number as u16
    }
}

/// The fate of one packet, as far as feedback told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketReport {
    /// As in [`SentPacket::sequence_number`].
    pub sequence_number: i64,
    /// As in [`SentPacket::size`].
    pub size: DataSize,
    /// When it left the pacer, by the sender's clock.
    pub send_time: Timestamp,
    /// When it arrived, by the receiver's clock; `None` if the receiver does not have it.
    pub arrival_time: Option<Timestamp>,
    /// ECN bits on arrival.
    pub ecn: Ecn,
    /// An earlier report called it lost: it was only late.
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

    /// Arrival minus send time: the one-way delay plus an unknown clock offset.
    pub fn one_way_delay(&self) -> Option<TimeDelta> {
        self.arrival_time.map(|arrival| arrival - self.send_time)
    }
}

/// What one feedback packet told about packets that were sent. Each packet's fate is told once, and a
/// second time only if it was called lost and then arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedbackReport {
    /// By rising sequence number.
    pub packets: Vec<PacketReport>,
    /// Feedback packets that were sent and did not arrive since the last report, where that is known.
    pub missing_feedback: u32,
    /// What the arrival times are worth.
    pub arrival_times: ArrivalTimes,
    /// The arrival times are by another clock than those of the last report, so that one-way delays
    /// of the two cannot be compared: a base delay has to be found anew.
    pub new_clock: bool,
}

/// Where the arrival times of a report come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrivalTimes {
    /// The receiver measured each packet.
    #[default]
    Measured,
    /// From RTCP receiver reports alone: the send time plus the last round-trip time, the same for all
    /// packets of a report. Which packets were lost is a guess, how many is not. Good for delays,
    /// worthless for gradients.
    RoundTrip,
}

impl FeedbackReport {
    /// A report on these packets, by rising sequence number, with measured arrival times of one clock and
    /// no feedback packet missing.
    pub fn new(packets: Vec<PacketReport>) -> Self {
        Self { packets, ..Self::default() }
    }

    with! {
        with_missing_feedback: missing_feedback: u32,
        with_arrival_times: arrival_times: ArrivalTimes,
        with_new_clock: new_clock: bool,
    }

    /// Time from the sending of the newest received packet to now: round-trip time plus the time the
    /// receiver held the feedback back ("feedback response time").
    pub fn rtt(&self, now: Timestamp) -> Option<TimeDelta> {
        self.received().map(|packet| packet.send_time).max().map(|sent| now - sent)
    }

    /// Packets that arrived.
    pub fn received(&self) -> impl Iterator<Item = &PacketReport> {
        self.packets.iter().filter(|packet| packet.arrival_time.is_some())
    }

    /// Packets newly called lost, those that turned out to be only late, and all that were newly
    /// judged (received for the first time or called lost).
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
pub struct LossCounts {
    /// Received, and not called lost before.
    pub received: u64,
    /// Newly called lost.
    pub lost: u64,
    /// Called lost by an earlier report, received after all.
    pub recovered: u64,
}
