//! Congestion control feedback: RTP sequence numbers of each media source [RFC8888 §3.1].

use super::{Format, RtpNumber, SendHistory, Verdict};
use crate::feedback::{Ecn, FeedbackReport, Unwrapper};
use crate::units::Timestamp;

const MICROS_PER_SECOND: i64 = 1_000_000;
/// Units of the report timestamp in a second, as a power of two.
const TIMESTAMP_SHIFT: u32 = 16;
/// Units of the arrival time offset in a second.
const OFFSET_UNITS_PER_SECOND: i64 = 1_024;
/// The offset of a packet that arrived too long ago for a number.
const OFFSET_TOO_LONG: u16 = 0x1ffe;
/// The offset of a packet whose arrival is not known, or lies after the report timestamp.
const OFFSET_UNKNOWN: u16 = 0x1fff;

/// What congestion control feedback says of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcfbPacket {
    /// Which packet.
    pub rtp: RtpNumber,
    /// What is said of it if it was received.
    pub reception: Option<CcfbReception>,
}

/// What congestion control feedback says of a packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcfbReception {
    /// ECN bits on arrival.
    pub ecn: Ecn,
    /// Arrival time offset on the wire: 13 bits, in 1/1024 s before the report timestamp.
    pub offset: u16,
}

/// The receiver's clock, and how often it reports.
#[derive(Clone, Debug, Default)]
pub(super) struct CcfbClock {
    timestamp: Unwrapper<32>,
    /// Timestamp of the newest report, unwrapped.
    last: Option<i64>,
    /// Time between the newest two reports that followed each other.
    interval: Option<i64>,
}

impl CcfbClock {
    /// Whatever the receiver reports next, nothing before it is missing.
    pub(super) fn restart(&mut self) {
        self.last = None;
        self.interval = None;
    }

    /// Reports that were lost before the one with this timestamp; `gap` says that it does not begin
    /// where the last one ended. The format has no count, but its reports follow each other without
    /// a gap; how many fell into one, the time says [RFC8888 §5].
    fn missing_before(&mut self, timestamp: i64, gap: bool) -> u32 {
        let Some(last) = self.last.replace(self.last.map_or(timestamp, |l| l.max(timestamp)))
        else {
            return 0;
        };
        let step = timestamp - last;
        if gap {
            let steps = self.interval.map_or(2, |interval| (step + interval / 2) / interval);
            return u32::try_from(steps - 1).unwrap_or(0).max(1);
        }
        // Several packets of one report have one timestamp.
        if step > 0 {
            self.interval = Some(step);
        }
        0
    }
}

/// When a packet arrived, by the receiver's clock.
fn arrival_time(timestamp: i64, offset: u16) -> Timestamp {
    let report_us = (timestamp * MICROS_PER_SECOND) >> TIMESTAMP_SHIFT;
    let offset = match offset {
        // Sooner than it arrived, but not by much: it came while the report was being made.
        OFFSET_UNKNOWN => 0,
        // The latest that it may have been.
        OFFSET_TOO_LONG.. => OFFSET_TOO_LONG,
        units => units,
    };
    let offset_us = i64::from(offset) * MICROS_PER_SECOND / OFFSET_UNITS_PER_SECOND;
    Timestamp::from_micros(report_us - offset_us)
}

impl SendHistory {
    /// Joins a congestion control feedback packet with what was sent: the report timestamp on the wire
    /// and the packets that it is on, source by source, by rising sequence number.
    ///
    /// A packet that was received counts as received from then on, whatever later reports say; one that
    /// was called lost may still turn up. Returns `None` if it tells nothing new.
    pub fn on_ccfb(
        &mut self,
        timestamp: u32,
        packets: impl Iterator<Item = CcfbPacket>,
    ) -> Option<&FeedbackReport> {
        self.begin_report(Format::Ccfb);
        let timestamp = self.ccfb.timestamp.peek(timestamp);
        self.ccfb.timestamp.set_last(self.ccfb.last.map_or(timestamp, |last| last.max(timestamp)));
        let mut gap = false;
        for CcfbPacket { rtp, reception } in packets {
            let Some(stream) = self.streams.get(rtp.ssrc) else { continue };
            let number = stream.unwrap(rtp.sequence_number);
            if number >= stream.next_number() {
                continue; // Never sent.
            }
            gap |= stream.reported_before.is_some_and(|before| number > before);
            stream.reported_before = stream.reported_before.max(Some(number + 1));
            let Some(sequence_number) = stream.transport_number(number) else { continue };
            let verdict = reception.map_or(Verdict::LOST, |CcfbReception { ecn, offset }| {
                Verdict { arrival_time: Some(arrival_time(timestamp, offset)), ecn }
            });
            self.judge(sequence_number, verdict);
        }
        self.report.packets.sort_unstable_by_key(|packet| packet.sequence_number);
        self.report.missing_feedback = self.ccfb.missing_before(timestamp, gap);
        self.finish_report()
    }
}
