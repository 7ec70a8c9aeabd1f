//! Sender reports. Receivers answer them, and the answers give round-trip times [RFC3550 §6.4.1].

use core::fmt;

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_wire::report::{
    Report, ReportBlock, SenderInfo, compact_ntp, compact_ntp_from_micros, ntp_from_micros,
};

use crate::interval::{DEFAULT_MEAN, Interval, Random};
use crate::message::compact_ntp_to_time;

/// Number of sender reports remembered: the receiver answers the newest one that has arrived.
const REMEMBERED: usize = 16;
/// Sends a sender report of one stream about once a second.
pub struct SenderReports {
    ssrc: u32,
    interval: Interval,
    next: Timestamp,
    packets: u32,
    octets: u64,
    /// Ring buffer with the compact NTP times of the newest reports. Unused entries are zero.
    sent: [u32; REMEMBERED],
    /// Index of the next entry to write.
    next_slot: usize,
}

impl SenderReports {
    /// Bytes of a sender report without blocks.
    pub const SIZE: usize = 28;

    /// Starts reports for the stream with this SSRC. The interval is 0.5 to 1.5 s, chosen by
    /// `random`. The first interval is halved, so that receivers learn of a new stream soon
    /// [RFC3550 §6.2].
    ///
    /// [RFC3550 §6.2]: https://www.rfc-editor.org/rfc/rfc3550#section-6.2
    pub fn new(now: Timestamp, ssrc: u32, random: Random) -> Self {
        let mut interval = Interval::new(DEFAULT_MEAN, random);
        let next = now + interval.draw() / 2;
        let sent = [0; REMEMBERED];
        Self { ssrc, interval, next, packets: 0, octets: 0, sent, next_slot: 0 }
    }

    /// A packet of the stream with `payload` bytes was sent.
    pub fn on_packet_sent(&mut self, payload: DataSize) {
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(payload.as_bytes());
    }

    /// When [`SenderReports::on_timeout`] is due.
    pub const fn next_timeout(&self) -> Timestamp {
        self.next
    }

    /// Returns the report to send, if it is due. `rtp_time` is `now` as an RTP timestamp of the
    /// stream.
    pub fn on_timeout(&mut self, now: Timestamp, rtp_time: u32) -> Option<[u8; Self::SIZE]> {
        if self.next > now {
            return None;
        }
        self.next = now + self.interval.draw();
        let info = SenderInfo {
            ntp_time: ntp_from_micros(now.as_micros()),
            rtp_time,
            packet_count: self.packets,
            // The field wraps at 32 bits.
            octet_count: self.octets as u32,
        };
        self.sent[self.next_slot] = compact_ntp(info.ntp_time);
        self.next_slot = (self.next_slot + 1) % REMEMBERED;
        let report = Report::new(self.ssrc, Some(info), &[]).expect("no block is not too many");
        let mut bytes = [0; Self::SIZE];
        report.emit(&mut bytes);
        Some(bytes)
    }

    /// The round-trip time from a report block that arrived at `now`. `None` unless the block
    /// answers one of the newest sixteen reports of this sender.
    pub fn round_trip_time(&self, now: Timestamp, block: &ReportBlock) -> Option<TimeDelta> {
        let answered = block.last_sender_report;
        if answered == 0 || !self.sent.contains(&answered) {
            return None;
        }
        let rtt = block.round_trip_time(compact_ntp_from_micros(now.as_micros()))?;
        Some(compact_ntp_to_time(rtt))
    }
}

impl fmt::Debug for SenderReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ssrc, next, packets, octets, .. } = self;
        write!(f, "SenderReports {{ ssrc: {ssrc:#x}, next: {next:?}, packets: {packets}, ")?;
        write!(f, "octets: {octets} }}")
    }
}
