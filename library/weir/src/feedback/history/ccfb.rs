//! Congestion control feedback (CCFB), by RTP sequence number of each media source [RFC8888 §3.1].

use super::{Format, RtpNumber, SendHistory, Verdict};
use crate::feedback::{Ecn, FeedbackReport, Unwrapper};
use crate::units::Timestamp;

const MICROS_PER_SECOND: i64 = 1_000_000;
/// Units of the report timestamp per second, as a power of two.
const TIMESTAMP_SHIFT: u32 = 16;
/// Units of the arrival time offset per second.
const OFFSET_UNITS_PER_SECOND: i64 = 1_024;
/// Offset of a packet that arrived longer ago than the field can express.
const OFFSET_TOO_LONG: u16 = 0x1ffe;
/// Offset of a packet whose arrival time is unknown, or lies after the report timestamp.
const OFFSET_UNKNOWN: u16 = 0x1fff;

/// One packet's entry in congestion control feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcfbPacket {
    /// The packet.
    pub rtp: RtpNumber,
    /// The report on it; `None` if it was not received.
    pub reception: Option<CcfbReception>,
}

/// Report on a received packet in congestion control feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcfbReception {
    /// ECN bits on arrival.
    pub ecn: Ecn,
    /// Arrival time offset as on the wire: 13 bits, in units of 1/1024 s before the report
    /// timestamp.
    pub offset: u16,
}

/// The receiver's clock and report interval.
#[derive(Clone, Debug, Default)]
pub(super) struct CcfbClock {
    timestamp: Unwrapper<32>,
    /// Timestamp of the newest report, unwrapped.
    last: Option<i64>,
    /// Time between the newest two consecutive reports.
    interval: Option<i64>,
}

impl CcfbClock {
    /// Resets the state, so that no report counts as missing before the next one.
    pub(super) fn restart(&mut self) {
        self.last = None;
        self.interval = None;
    }

    /// Number of reports that were lost before the one with this timestamp. `gap` is true if the
    /// report does not begin where the last one ended. The format has no report count, but reports
    /// follow each other without a gap. The number of reports lost in a gap is estimated from the
    /// time [RFC8888 §5].
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
        // All packets of one report have the same timestamp.
        if step > 0 {
            self.interval = Some(step);
        }
        0
    }
}

/// Arrival time of a packet on the receiver's clock.
fn arrival_time(timestamp: i64, offset: u16) -> Timestamp {
    let report_us = (timestamp * MICROS_PER_SECOND) >> TIMESTAMP_SHIFT;
    let offset = match offset {
        // Earlier than the true arrival by little: the packet arrived while the report was being
        // made.
        OFFSET_UNKNOWN => 0,
        // The latest possible arrival.
        OFFSET_TOO_LONG.. => OFFSET_TOO_LONG,
        units => units,
    };
    let offset_us = i64::from(offset) * MICROS_PER_SECOND / OFFSET_UNITS_PER_SECOND;
    Timestamp::from_micros(report_us - offset_us)
}

impl SendHistory {
    /// Joins a congestion control feedback packet with the sent packets. `timestamp` is the report
    /// timestamp as on the wire. `packets` are sorted by source, then by increasing sequence
    /// number.
    ///
    /// A packet once received stays received, whatever later reports say. A packet called lost may
    /// still arrive. Returns `None` if there is no news.
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
