//! The sender's history of sent packets, joined with feedback of any format.

mod ccfb;
mod receiver_report;
mod streams;
#[cfg(test)]
mod tests;
mod twcc;

use alloc::collections::VecDeque;

use super::{ArrivalTimes, Ecn, FeedbackReport, PacketReport, SentPacket};
use crate::controller::ProbeId;
use crate::units::{DataSize, TimeDelta, Timestamp};
use ccfb::CcfbClock;
pub use ccfb::{CcfbPacket, CcfbReception};
pub use receiver_report::ReceiverReport;
use streams::Streams;
use twcc::TwccClock;
pub use twcc::TwccHeader;

/// Packets older than this are forgotten, because feedback on them is no longer of use.
const HISTORY: TimeDelta = TimeDelta::from_secs(10);
/// At most half the sequence-number space. With more, a late number could be mistaken for a new
/// one.
const MAX_PACKETS: usize = 1 << 15;

/// A packet's place in its RTP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpNumber {
    /// The media source.
    pub ssrc: u32,
    /// Its RTP sequence number: increases by one with each packet of the source. Up to 255 in a row
    /// may be left out, such as those of a picture that was discarded.
    pub sequence_number: u16,
}

/// A packet about to be sent: a [`SentPacket`] that has no number yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// As in [`SentPacket::size`].
    pub size: DataSize,
    /// As in [`SentPacket::queued`].
    pub queued: DataSize,
    /// As in [`SentPacket::probe`].
    pub probe: Option<ProbeId>,
    /// As in [`SentPacket::padding`].
    pub padding: bool,
    /// RTP number, needed for feedback by RTP stream; transport-wide feedback does not need it.
    pub rtp: Option<RtpNumber>,
}

impl Outgoing {
    /// A media packet of this size with an empty queue after it.
    pub const fn media(size: DataSize) -> Self {
        Self { size, queued: DataSize::ZERO, probe: None, padding: false, rtp: None }
    }

    with! {
        with_queued: queued: DataSize,
        with_probe: probe: Option<ProbeId>,
        with_padding: padding: bool,
        with_rtp: rtp: Option<RtpNumber>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receipt {
    Unknown,
    Lost,
    Received,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    send_time: Timestamp,
    size: DataSize,
    probe: Option<ProbeId>,
    ssrc: Option<u32>,
    receipt: Receipt,
}

impl Entry {
    /// Nothing changes the receipt of a received packet. A lost one may still arrive.
    fn is_of_no_use(&self, now: Timestamp) -> bool {
        self.receipt == Receipt::Received || self.send_time + HISTORY < now
    }
}

/// News of one packet in feedback.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    arrival_time: Option<Timestamp>,
    ecn: Ecn,
}

impl Verdict {
    const LOST: Self = Self { arrival_time: None, ecn: Ecn::NotEct };

    const fn received(arrival_time: Timestamp) -> Self {
        Self { arrival_time: Some(arrival_time), ecn: Ecn::NotEct }
    }
}

/// Feedback formats. Each has its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Twcc,
    Ccfb,
    ReceiverReports,
}

/// The packets sent in the last seconds, and their receipt as reported by feedback.
///
/// The format of the feedback may change at any time. The first report on another clock is marked
/// ([`FeedbackReport::new_clock`]). A receipt reported in one format is not reported again in the
/// next.
///
/// Memory is bounded: 10 s or 32,768 packets, whichever is less. [`SendHistory::set_capacity`]
/// lowers the number. The oldest packets are forgotten earlier once they are known to be received,
/// so without loss the history is about one round-trip time long.
#[derive(Clone, Debug)]
pub struct SendHistory {
    /// The most packets that are kept.
    capacity: usize,
    /// Sequence number of the front entry.
    first: i64,
    entries: VecDeque<Entry>,
    streams: Streams,
    /// Of the newest feedback.
    format: Option<Format>,
    /// Of the newest feedback with news.
    told: Option<Format>,
    twcc: TwccClock,
    ccfb: CcfbClock,
    /// True if the packets sent so far were forgotten and no report has been marked yet.
    new_clock: bool,
    report: FeedbackReport,
}

impl Default for SendHistory {
    fn default() -> Self {
        Self::new(0)
    }
}

impl SendHistory {
    /// An empty history whose first packet gets the sequence number `first`.
    pub fn new(first: u16) -> Self {
        Self {
            capacity: MAX_PACKETS,
            first: i64::from(first),
            entries: VecDeque::new(),
            streams: Streams::default(),
            format: None,
            told: None,
            twcc: TwccClock::default(),
            ccfb: CcfbClock::default(),
            new_clock: false,
            report: FeedbackReport::default(),
        }
    }

    /// Keeps at most this many packets, from 1 to 32,768, and takes the memory for them now. For a
    /// device with little memory: 500 packets are 2 s at 3 Mbit/s. Feedback on a packet that has
    /// been forgotten is ignored, so the history must be longer than the round-trip time and the
    /// feedback interval together.
    pub fn set_capacity(&mut self, packets: usize) {
        self.capacity = packets.clamp(1, MAX_PACKETS);
        while self.entries.len() > self.capacity {
            self.forget_first();
        }
        self.entries.shrink_to(self.capacity);
        self.entries.reserve_exact(self.capacity - self.entries.len());
    }

    /// Forgets all packets sent so far, as after a change of the route: feedback on them is ignored
    /// from now on. The numbers go on.
    pub fn forget_all(&mut self) {
        while !self.entries.is_empty() {
            self.forget_first();
        }
        self.new_clock = self.told.is_some();
    }

    /// Sequence number of the next packet, unwrapped. The wire has its low 16 bits.
    pub fn next_sequence_number(&self) -> i64 {
        self.first + self.entries.len() as i64
    }

    /// Records a packet as sent and numbers it.
    #[inline]
    pub fn on_packet_sent(&mut self, now: Timestamp, packet: Outgoing) -> SentPacket {
        while self.entries.len() >= self.capacity
            || self.entries.front().is_some_and(|entry| entry.is_of_no_use(now))
        {
            self.forget_first();
        }
        let sequence_number = self.next_sequence_number();
        let Outgoing { size, queued, probe, padding, rtp } = packet;
        if let Some(rtp) = rtp {
            self.streams.on_packet_sent(rtp, sequence_number);
        }
        let ssrc = rtp.map(|rtp| rtp.ssrc);
        self.entries.push_back(Entry {
            send_time: now,
            size,
            probe,
            ssrc,
            receipt: Receipt::Unknown,
        });
        SentPacket { sequence_number, size, queued, probe, padding }
    }

    fn forget_first(&mut self) {
        if let Some(ssrc) = self.entries.pop_front().and_then(|entry| entry.ssrc) {
            self.streams.forget(ssrc, self.first);
        }
        self.first += 1;
    }

    fn entry(&mut self, sequence_number: i64) -> Option<&mut Entry> {
        let index = usize::try_from(sequence_number - self.first).ok()?;
        self.entries.get_mut(index)
    }

    /// Starts a report on feedback of this format.
    fn begin_report(&mut self, format: Format) {
        if self.format.replace(format).is_some_and(|before| before != format) {
            self.twcc.restart();
            self.ccfb.restart();
            self.streams.forget_feedback();
        }
        self.report.packets.clear();
        self.report.missing_feedback = 0;
        self.report.arrival_times = match format {
            Format::Twcc | Format::Ccfb => ArrivalTimes::Measured,
            Format::ReceiverReports => ArrivalTimes::RoundTrip,
        };
    }

    /// Adds a packet to the report, unless its receipt is no news.
    #[inline]
    fn judge(&mut self, sequence_number: i64, verdict: Verdict) {
        let Verdict { arrival_time, ecn } = verdict;
        let Some(entry) = self.entry(sequence_number) else { return };
        let recovered = match (entry.receipt, arrival_time) {
            (Receipt::Unknown, _) => false,
            (Receipt::Lost, Some(_)) => true,
            (Receipt::Lost, None) | (Receipt::Received, _) => return,
        };
        entry.receipt = if arrival_time.is_some() { Receipt::Received } else { Receipt::Lost };
        let Entry { size, send_time, probe, .. } = *entry;
        self.report.packets.push(PacketReport {
            sequence_number,
            size,
            send_time,
            arrival_time,
            ecn,
            recovered,
            probe,
        });
    }

    /// Returns the report if it has news. Only such a report can mark a new clock.
    fn finish_report(&mut self) -> Option<&FeedbackReport> {
        if self.report.packets.is_empty() {
            return None;
        }
        // Feedback without news in between, such as receiver reports while nothing is sent,
        // changes no clock.
        let told = core::mem::replace(&mut self.told, self.format);
        let is_changed = told.is_some() && told != self.format;
        self.report.new_clock = core::mem::take(&mut self.new_clock) || is_changed;
        Some(&self.report)
    }
}
