//! Receiver reports alone: how many packets were lost, and the round-trip time [RFC3550 §6.4.2].

use super::{Fate, Format, SendHistory, Verdict};
use crate::feedback::FeedbackReport;
use crate::units::TimeDelta;

/// What a receiver report says of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverReport {
    /// The media source.
    pub ssrc: u32,
    /// Highest RTP sequence number received, with the count of its cycles above.
    pub extended_highest_sequence_number: u32,
    /// Loss ratio since the previous report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start; negative where duplicates outnumber losses.
    pub cumulative_lost: i32,
    /// The round-trip time, from the sender report that it answers; `None` if it answers none.
    pub rtt: Option<TimeDelta>,
}

impl SendHistory {
    /// Joins a receiver report with what was sent. It tells the fate of all packets up to the highest
    /// received that no feedback told before: the lost ones among them are spread evenly, for the
    /// report only counts them, and the others count as having arrived one round-trip time after
    /// they left ([`ArrivalTimes::RoundTrip`]). A count that falls takes back losses told before.
    ///
    /// Returns `None` if it tells nothing new. A block without a round-trip time tells nothing; the
    /// next one covers its packets.
    ///
    /// [`ArrivalTimes::RoundTrip`]: crate::feedback::ArrivalTimes::RoundTrip
    pub fn on_receiver_report(
        &mut self,
        blocks: impl Iterator<Item = ReceiverReport>,
    ) -> Option<&FeedbackReport> {
        self.begin_report(Format::ReceiverReports);
        for block in blocks {
            if let Some(rtt) = block.rtt {
                self.on_block(&block, rtt);
            }
        }
        self.report.packets.sort_unstable_by_key(|packet| packet.sequence_number);
        self.finish_report()
    }

    fn on_block(&mut self, block: &ReceiverReport, rtt: TimeDelta) {
        let Some(stream) = self.streams.get(block.ssrc) else { return };
        // The cycles may be counted from another start; the low half is the number on the wire.
        let highest = stream.unwrap(block.extended_highest_sequence_number as u16);
        let is_overtaken = stream.receiver_report.is_some_and(|(newest, _)| highest < newest);
        if is_overtaken || stream.transport_number(highest).is_none() {
            return;
        }
        let before = stream.receiver_report.replace((highest, block.cumulative_lost));
        let untold = self.untold_up_to(block.ssrc, highest);
        let lost = match before {
            Some((_, before)) => i64::from(block.cumulative_lost) - i64::from(before),
            // The first report after another format: what was lost before it, that one told. The
            // fraction is rounded down.
            None => (i64::from(block.fraction_lost) * untold + 255) / 256,
        };
        // The highest was received.
        let share = Share { lost: lost.clamp(0, (untold - 1).max(0)), of: untold - 1 };
        for index in 0..untold {
            let number = self.transport_number(block.ssrc, highest - untold + 1 + index);
            self.judge_by_round_trip(number, rtt, share.is_lost(index));
        }
        self.take_back(block.ssrc, highest, rtt, -lost);
    }

    /// Packets of a stream in a row, up to this one, whose fate no feedback told.
    fn untold_up_to(&mut self, ssrc: u32, highest: i64) -> i64 {
        let mut untold = 0;
        while self
            .transport_number(ssrc, highest - untold)
            .and_then(|number| self.entry(number))
            .is_some_and(|entry| entry.fate == Fate::Unknown)
        {
            untold += 1;
        }
        untold
    }

    /// So many packets that were called lost were only late: the newest ones.
    fn take_back(&mut self, ssrc: u32, highest: i64, rtt: TimeDelta, mut count: i64) {
        let mut rtp_number = highest;
        while count > 0 {
            let number = self.transport_number(ssrc, rtp_number);
            let Some(entry) = number.and_then(|number| self.entry(number)) else { return };
            if entry.fate == Fate::Lost {
                self.judge_by_round_trip(number, rtt, false);
                count -= 1;
            }
            rtp_number -= 1;
        }
    }

    fn transport_number(&mut self, ssrc: u32, rtp_number: i64) -> Option<i64> {
        self.streams.get(ssrc)?.transport_number(rtp_number)
    }

    fn judge_by_round_trip(&mut self, number: Option<i64>, rtt: TimeDelta, is_lost: bool) {
        let Some(number) = number else { return };
        let Some(&mut entry) = self.entry(number) else { return };
        let verdict =
            if is_lost { Verdict::LOST } else { Verdict::received(entry.send_time + rtt) };
        self.judge(number, verdict);
    }
}

/// `lost` of `of` packets, spread evenly.
struct Share {
    lost: i64,
    of: i64,
}

impl Share {
    fn is_lost(&self, index: i64) -> bool {
        // Steps of `lost` around a circle of `of` pass its start once for each lost packet. Beginning
        // half way round puts a single loss into the middle.
        index < self.of && (index * self.lost + self.of / 2) % self.of < self.lost
    }
}
