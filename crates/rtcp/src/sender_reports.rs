//! Sender reports: they let receivers answer with round-trip times [RFC3550 §6.4.1].

use core::fmt;

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_wire::report::{
    Report, ReportBlock, SenderInfo, compact_ntp, compact_ntp_from_micros, ntp_from_micros,
};

use crate::interval::{DEFAULT_MEAN, Interval, Random};
use crate::message::compact_ntp_to_time;

/// Sender reports that may be answered: the receiver answers the newest one that it has.
const REMEMBERED: usize = 16;
/// Bytes of a sender report without blocks.
const SIZE: usize = 28;

/// Sends a sender report of one stream about once a second.
pub struct SenderReports {
    ssrc: u32,
    interval: Interval,
    next: Timestamp,
    packets: u32,
    octets: u64,
    /// Compact NTP times of the newest reports; zero where there was none yet.
    sent: [u32; REMEMBERED],
    /// Where the next one goes.
    next_slot: usize,
}

impl SenderReports {
    /// For the stream with this SSRC, from now on. Reports follow each other after half a second to one
    /// and a half, as `random` decides; the first comes after half of that, so that a newcomer is soon
    /// known [RFC3550 §6.2].
    ///
    /// [RFC3550 §6.2]: https://www.rfc-editor.org/rfc/rfc3550#section-6.2
    pub fn new(now: Timestamp, ssrc: u32, random: Random) -> Self {
        let mut interval = Interval::new(DEFAULT_MEAN, random);
        let next = now + interval.draw() / 2;
        let sent = [0; REMEMBERED];
        Self { ssrc, interval, next, packets: 0, octets: 0, sent, next_slot: 0 }
    }

    /// A packet of the stream left with so many bytes of payload.
    pub fn on_packet_sent(&mut self, payload: DataSize) {
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(payload.as_bytes());
    }

    /// When [`SenderReports::on_timeout`] is due.
    pub const fn next_timeout(&self) -> Timestamp {
        self.next
    }

    /// Sends the report if it is due. `rtp_time` is `now` by the clock of the stream's RTP timestamps.
    pub fn on_timeout(&mut self, now: Timestamp, rtp_time: u32, send: impl FnOnce(&[u8])) {
        if self.next > now {
            return;
        }
        self.next = now + self.interval.draw();
        let info = SenderInfo {
            ntp_time: ntp_from_micros(now.as_micros()),
            rtp_time,
            packet_count: self.packets,
            // The field counts modulo 2^32.
            octet_count: self.octets as u32,
        };
        self.sent[self.next_slot] = compact_ntp(info.ntp_time);
        self.next_slot = (self.next_slot + 1) % REMEMBERED;
        let report = Report::new(self.ssrc, Some(info), &[]).expect("no block is not too many");
        let mut bytes = [0; SIZE];
        report.emit(&mut bytes);
        send(&bytes);
    }

    /// The round-trip time that a report block measured which arrived now; `None` unless it answers one
    /// of the newest sixteen reports of this sender.
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
