//! RTCP receiver reports as feedback: number of lost packets and round-trip time [RFC3550 §6.4.2].
//!
//! A block's round-trip time is that of a sender report, which may be a second old. But the block
//! says, too, which packet was the newest at the receiver. So when the report is here, the round
//! trip has taken at most the time since that packet was sent, and at least the time since the next
//! one was sent. Between two reports the round-trip time changes evenly: then as much arrives
//! between them as the second one adds, which is what the path carries while a queue stands.

use super::{Entry, Format, Receipt, SendHistory, Verdict};
use crate::feedback::FeedbackReport;
use crate::units::{TimeDelta, Timestamp};

/// A receiver report on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverReport {
    /// The media source.
    pub ssrc: u32,
    /// Highest RTP sequence number received in the low 16 bits, the count of its cycles in the high
    /// 16.
    pub extended_highest_sequence_number: u32,
    /// Loss ratio since the previous report, in units of 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start; negative if duplicates outnumber losses.
    pub cumulative_lost: i32,
    /// Round-trip time, from the sender report that this one answers; `None` if it answers none.
    pub rtt: Option<TimeDelta>,
}

impl SendHistory {
    /// Joins a receiver report with the sent packets. It reports all packets up to the highest
    /// received that no feedback reported before. The receiver only counts losses, so they are
    /// spread evenly over these packets. The other packets count as arrived one round-trip time
    /// after they were sent ([`ArrivalTimes::RoundTrip`]). It is that of the block, bounded by when
    /// the newest packet that arrived and the next one were sent. If the count of losses falls,
    /// losses reported before are taken back.
    ///
    /// Returns `None` if there is no news. A block without a round-trip time is ignored; the next
    /// one covers its packets.
    ///
    /// [`ArrivalTimes::RoundTrip`]: crate::feedback::ArrivalTimes::RoundTrip
    pub fn on_receiver_report(
        &mut self,
        now: Timestamp,
        blocks: impl Iterator<Item = ReceiverReport>,
    ) -> Option<&FeedbackReport> {
        self.begin_report(Format::ReceiverReports);
        for block in blocks {
            if let Some(rtt) = block.rtt {
                self.on_block(now, &block, rtt);
            }
        }
        self.report.packets.sort_unstable_by_key(|packet| packet.sequence_number);
        self.finish_report()
    }

    fn on_block(&mut self, now: Timestamp, block: &ReceiverReport, rtt: TimeDelta) {
        let Some(stream) = self.streams.get(block.ssrc) else { return };
        // The cycles may count from another start. The low 16 bits are the number on the wire.
        let highest = stream.unwrap(block.extended_highest_sequence_number as u16);
        // A repeated report can revise the count of losses. Its packet may have been forgotten.
        let is_known = match stream.receiver_report {
            Some((newest, _)) if highest < newest => false,
            Some((newest, _)) if highest == newest => true,
            _ => stream.transport_number(highest).is_some(),
        };
        if !is_known {
            return;
        }
        let before = stream.receiver_report.replace((highest, block.cumulative_lost));
        let round_trips = self.round_trips(now, block.ssrc, highest, rtt);
        let (numbers, unreported) = self.unreported_up_to(block.ssrc, highest);
        // The receiver misses what was not sent.
        let not_sent = numbers - unreported;
        let lost = match before {
            Some((_, before)) => i64::from(block.cumulative_lost) - i64::from(before) - not_sent,
            // The first report after another format, which already reported the losses before. The
            // fraction on the wire is rounded down, so round up here.
            None => ((i64::from(block.fraction_lost) * numbers + 255) / 256 - not_sent).max(0),
        };
        // The highest packet was received, so it is not among the lost ones.
        let share = Share { lost: lost.clamp(0, (unreported - 1).max(0)), of: unreported - 1 };
        let mut index = 0;
        for rtp_number in highest - numbers + 1..=highest {
            let Some((number, _)) = self.receipt(block.ssrc, rtp_number) else { continue };
            self.judge_by_round_trip(number, &round_trips, share.is_lost(index));
            index += 1;
        }
        self.report_recovered(block.ssrc, highest, &round_trips, -lost);
    }

    /// The round-trip times of a stream's packets up to the highest one that arrived, if the block
    /// at `now` has this one.
    fn round_trips(
        &mut self,
        now: Timestamp,
        ssrc: u32,
        highest: i64,
        of_block: TimeDelta,
    ) -> RoundTrips {
        let newest = self.sent_at(ssrc, highest).unwrap_or(now);
        let next = self.next_sent(ssrc, highest);
        let (most, least) = (now - newest, next.map_or(TimeDelta::ZERO, |next| now - next));
        let time = of_block.min(most).max(least);
        let this = RoundTrip { sent: newest, time };
        let before = match self.streams.get(ssrc) {
            Some(stream) => stream.round_trip.replace(this),
            None => None,
        };
        RoundTrips { before: before.filter(|before| before.sent < newest).unwrap_or(this), this }
    }

    /// When the next packet of the stream was sent; `None` if none was.
    fn next_sent(&mut self, ssrc: u32, rtp_number: i64) -> Option<Timestamp> {
        let end = self.streams.get(ssrc)?.next_number();
        (rtp_number + 1..end).find_map(|next| self.sent_at(ssrc, next))
    }

    fn sent_at(&mut self, ssrc: u32, rtp_number: i64) -> Option<Timestamp> {
        let number = self.streams.get(ssrc)?.transport_number(rtp_number)?;
        self.entry(number).map(|entry| entry.send_time)
    }

    /// Numbers in a row of a stream, up to this one, that were not sent or whose receipt is
    /// unknown. Returns their count and that of the sent ones.
    fn unreported_up_to(&mut self, ssrc: u32, highest: i64) -> (i64, i64) {
        let (mut numbers, mut unreported) = (0, 0);
        loop {
            let rtp_number = highest - numbers;
            match self.receipt(ssrc, rtp_number) {
                Some((_, Receipt::Unknown)) => unreported += 1,
                None if self.is_skipped(ssrc, rtp_number) => {}
                _ => return (numbers, unreported),
            }
            numbers += 1;
        }
    }

    /// Reports the newest `count` packets that were called lost as recovered.
    fn report_recovered(
        &mut self,
        ssrc: u32,
        highest: i64,
        round_trips: &RoundTrips,
        mut count: i64,
    ) {
        let mut rtp_number = highest;
        while count > 0 {
            match self.receipt(ssrc, rtp_number) {
                Some((number, Receipt::Lost)) => {
                    self.judge_by_round_trip(number, round_trips, false);
                    count -= 1;
                }
                None if !self.is_skipped(ssrc, rtp_number) => return,
                _ => {}
            }
            rtp_number -= 1;
        }
    }

    /// A packet's number and receipt; `None` if the history does not have it.
    fn receipt(&mut self, ssrc: u32, rtp_number: i64) -> Option<(i64, Receipt)> {
        let number = self.streams.get(ssrc)?.transport_number(rtp_number)?;
        self.entry(number).map(|entry| (number, entry.receipt))
    }

    fn is_skipped(&mut self, ssrc: u32, rtp_number: i64) -> bool {
        self.streams.get(ssrc).is_some_and(|stream| stream.is_skipped(rtp_number))
    }

    fn judge_by_round_trip(&mut self, number: i64, round_trips: &RoundTrips, is_lost: bool) {
        let Some(&mut Entry { send_time, .. }) = self.entry(number) else { return };
        let arrival = send_time + round_trips.of(send_time);
        self.judge(number, if is_lost { Verdict::LOST } else { Verdict::received(arrival) });
    }
}

/// The round-trip time of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    sent: Timestamp,
    time: TimeDelta,
}

/// The round-trip times of the newest packets of two reports in a row.
#[derive(Clone, Copy, Debug)]
struct RoundTrips {
    before: RoundTrip,
    this: RoundTrip,
}

impl RoundTrips {
    /// That of a packet that was sent then.
    fn of(&self, sent: Timestamp) -> TimeDelta {
        let passed = self.this.sent - self.before.sent;
        let left = (self.this.sent - sent).max(TimeDelta::ZERO).min(passed);
        if left <= TimeDelta::ZERO {
            return self.this.time;
        }
        self.this.time + (self.before.time - self.this.time) * (left / passed)
    }
}

/// Spreads `lost` losses evenly over `of` packets.
struct Share {
    lost: i64,
    of: i64,
}

impl Share {
    fn is_lost(&self, index: i64) -> bool {
        // Steps of `lost` around a circle of `of` packets pass its start once per lost packet.
        // Starting half-way round puts a single loss into the middle.
        index < self.of && (index * self.lost + self.of / 2) % self.of < self.lost
    }
}
