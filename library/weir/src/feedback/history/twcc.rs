//! Transport-wide feedback, by sequence number of all packets of the transport [TWCC].
//!
//! [TWCC]: https://datatracker.ietf.org/doc/html/draft-holmer-rmcat-transport-wide-cc-extensions-01

use super::{Format, SendHistory, Verdict};
use crate::feedback::{FeedbackReport, Unwrapper};
use crate::units::Timestamp;

/// Units of the reference time (64 ms) and of receive deltas (250 us), in microseconds.
const REFERENCE_TICK_US: i64 = 64_000;
const DELTA_TICK_US: i64 = 250;

/// The fields of a transport-wide feedback packet before its arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwccHeader {
    /// Reference time as on the wire: 24 bits, in units of 64 ms.
    pub reference_time: u32,
    /// Feedback packet count: wraps at 256.
    pub feedback_count: u8,
}

/// The receiver's counters.
#[derive(Clone, Debug, Default)]
pub(super) struct TwccClock {
    reference_time: Unwrapper<24>,
    feedback_count: Option<Unwrapper<8>>,
    /// Count of the newest feedback packet, unwrapped.
    last_feedback: i64,
}

impl TwccClock {
    /// Resets the count, so that no feedback counts as missing before the next packet.
    pub(super) fn restart(&mut self) {
        self.feedback_count = None;
    }

    /// Number of feedback packets missing between the newest so far and this one. Zero for a late
    /// or repeated packet, which also does not move the newest back.
    fn missing_before(&mut self, count: u8) -> u32 {
        let unwrapper = self.feedback_count.get_or_insert_with(|| {
            self.last_feedback = i64::from(count) - 1;
            let mut fresh = Unwrapper::default();
            fresh.set_last(self.last_feedback);
            fresh
        });
        let number = unwrapper.unwrap(count.into());
        let missing = u32::try_from(number - self.last_feedback - 1).unwrap_or(0);
        self.last_feedback = self.last_feedback.max(number);
        unwrapper.set_last(self.last_feedback);
        missing
    }
}

impl SendHistory {
    /// Joins a transport-wide feedback packet with the sent packets. `arrivals` has, by increasing
    /// sequence number, the number on the wire and the arrival in ticks of 250 us after the
    /// reference time, or `None` for a packet that was not received. The format has no ECN bits, so
    /// all packets count as not ECN-capable.
    ///
    /// Returns `None` if there is no news: for a duplicate, or for packets that are forgotten or
    /// were never sent.
    pub fn on_twcc(
        &mut self,
        header: TwccHeader,
        arrivals: impl Iterator<Item = (u16, Option<i32>)>,
    ) -> Option<&FeedbackReport> {
        self.begin_report(Format::Twcc);
        let reference_us =
            self.twcc.reference_time.unwrap(header.reference_time) * REFERENCE_TICK_US;
        // The reference is the newest number: all others are at most half a number space older.
        let newest = self.next_sequence_number() - 1;
        let mut unwrapper = Unwrapper::<16>::default();
        unwrapper.set_last(newest);
        for (number, ticks) in arrivals {
            let verdict = ticks.map_or(Verdict::LOST, |ticks| {
                let arrival_us = reference_us + i64::from(ticks) * DELTA_TICK_US;
                Verdict::received(Timestamp::from_micros(arrival_us))
            });
            self.judge(unwrapper.peek(number.into()), verdict);
        }
        self.report.missing_feedback = self.twcc.missing_before(header.feedback_count);
        self.finish_report()
    }
}
